"""From cells to rewards to verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.stats.outcomes.rewards import (
    RewardWords,
    ScoreRange,
    blame_notes,
    check_threshold,
    grade,
    is_failure_reason,
    verdicts_from_rewards,
)


@pytest.mark.parametrize("cell", ["1", "true", "True", "YES", "passed", " pass ", 1, True, 1.0])
def test_words_for_passed(cell: object) -> None:
    assert RewardWords()[cell] == 1.0


@pytest.mark.parametrize("cell", ["0", "false", "No", "failed", 0, False, "0.0"])
def test_words_for_failed(cell: object) -> None:
    assert RewardWords()[cell] == 0.0


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "null", "None", "NA", None, float("nan")])
def test_words_for_missing(cell: object) -> None:
    assert np.isnan(RewardWords()[cell])


@pytest.mark.parametrize("cell", ["maybe", "inf", "1,000", "%", "inf%", {"a": 1}, [1]])
def test_anything_else_is_refused(cell: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        RewardWords()[cell]


def test_minus_one_among_ones_and_zeros_is_missing_and_said() -> None:
    found = verdicts_from_rewards(np.array([1.0, 0.0, -1.0, np.nan]), None)
    assert found.verdicts.tolist() == [1, 0, -1, -1]
    assert found.notes == ("-1 was read as missing (1 attempt)",)


def test_minus_one_among_graded_rewards_is_a_low_reward() -> None:
    found = verdicts_from_rewards(np.array([-1.0, 0.5, 1.0, 1.0 - 1e-7]), None)
    assert found.verdicts.tolist() == [0, 0, 1, 1]
    assert "passed means reward >= 1" in found.notes[0]


def test_a_stated_threshold_decides() -> None:
    assert verdicts_from_rewards(np.array([40.0, 80.0]), 50).verdicts.tolist() == [0, 1]


def test_rewards_above_one_need_a_stated_threshold() -> None:
    with pytest.raises(InvalidValue, match="rewards go up to 80"):
        verdicts_from_rewards(np.array([40.0, 80.0]), None)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("1..5", 1, 5), ("-1..1", -1, 1), ("0.5..2.5", 0.5, 2.5)]
)
def test_a_range_of_scores_is_scaled_to_the_unit_interval(
    text: str, low: float, high: float
) -> None:
    bounds = ScoreRange.parse(text)
    assert (bounds.low, bounds.high) == (low, high)
    middle = (low + high) / 2
    assert bounds.scale(np.array([low, middle, high])).tolist() == [0.0, 0.5, 1.0]
    assert bounds.scale(np.array([low - 1e-12, high + 1e-12])).tolist() == [0.0, 1.0]
    for beyond in (low - 0.1, high + 0.1):
        with pytest.raises(InvalidValue, match=f"a score of {beyond:g} lies outside the stated"):
            bounds.scale(np.array([middle, beyond]))


@pytest.mark.parametrize("text", ["", "5", "5..1", "1..1", "a..b", "1..inf", "nan..1", "1-5"])
def test_what_is_no_range_of_scores_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="is no score range"):
        ScoreRange.parse(text)


@pytest.mark.parametrize(
    ("pass_at", "verdicts"), [(None, [0, 0, 1]), (3.0, [0, 1, 1]), (1.5, [0, 1, 1])]
)
def test_a_score_passes_from_its_threshold_on(pass_at: float | None, verdicts: list[int]) -> None:
    judged = ScoreRange(1, 5).judge(np.array([1.0, 3.0, 5.0]), pass_at)
    assert judged.verdicts.tolist() == verdicts
    assert judged.notes[0] == "scores from 1 to 5 are scaled to 0 to 1"


@pytest.mark.parametrize(
    ("pass_at", "is_refused"),
    [(None, False), (1, True), (1.5, False), (5, False), (5.5, True), (float("inf"), True)],
)
def test_a_threshold_that_decides_nothing_is_refused(
    pass_at: float | None, is_refused: bool
) -> None:
    if is_refused:
        with pytest.raises(InvalidValue, match="threshold"):
            check_threshold(pass_at, ScoreRange(1, 5))
    else:
        check_threshold(pass_at, ScoreRange(1, 5))
        check_threshold(pass_at, None)


NAN = float("nan")


@pytest.mark.parametrize(
    ("scores", "verdicts", "score_range", "expected", "remark"),
    [
        ([0.5, 1, NAN], [0, 1, -1], None, [0.5, 1, NAN], ""),
        ([1, 0, -1], [1, 0, -1], None, None, ""),  # the verdicts themselves
        ([1, 0, 1], [1, 0, 0], None, [1, 0, 1], ""),
        ([0.5, NAN, NAN], [0, 1, 0], None, [0.5, 1, 0], "2 attempts without a score"),
        ([0.5, NAN], [0, -1], None, [0.5, NAN], ""),
        ([1.0000005, 0.5], [1, 0], None, [1, 0.5], ""),
        ([1.000002, 0.5], [1, 0], None, None, "scores from 0.5 to 1 are not kept"),
        ([-0.0000005, 0.5], [0, 0], None, [0, 0.5], ""),
        ([-0.000002, 0.5], [0, 0], None, None, "are not kept"),
        ([5, 3, NAN], [1, 0, -1], "1..5", [1, 0.5, NAN], ""),
        ([1, 5], [0, 1], "1..5", [0, 1], ""),
        ([NAN, NAN], [-1, -1], "1..5", [NAN, NAN], ""),  # nothing was judged
    ],
)
def test_scores_are_kept_on_the_unit_interval(
    scores: list[float],
    verdicts: list[int],
    score_range: str | None,
    expected: list[float] | None,
    remark: str,
) -> None:
    bounds = None if score_range is None else ScoreRange.parse(score_range)
    values, remarks = grade(np.array(scores), np.array(verdicts, np.int8), bounds)
    assert (values is None) is (expected is None)
    if values is not None:
        assert values.tolist() == pytest.approx(expected, nan_ok=True, abs=1e-12)
    assert bool(remarks) is bool(remark)
    assert remark in "".join(remarks)


@pytest.mark.parametrize(
    ("word", "is_reason"),
    [
        ("max steps reached", True),
        ("token limit", True),
        ("time limit", True),
        ("steps", False),
        ("time", False),
        ("limit", True),
        ("max reached", False),
        ("wrong answer", True),
        ("gave up", True),
        ("gave up early", False),
        ("correct", False),
    ],
)
def test_words_that_say_why_an_attempt_failed(word: str, is_reason: bool) -> None:
    assert is_failure_reason(word) is is_reason


def test_failures_that_are_not_the_agents_are_noted_once_for_each_word() -> None:
    notes = list(blame_notes({"Judge_Error": 2, "infrastructure": 0, "wrong_answer": 3}))
    assert len(notes) == 1
    assert notes[0].startswith("2 attempts with failure 'Judge_Error' counted as failed")
