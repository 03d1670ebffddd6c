"""From cells to rewards to verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.stats.outcomes.rewards import (
    RewardWords,
    ScoreRange,
    check_threshold,
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
