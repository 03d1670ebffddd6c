"""Every sentence of a comparison, read where the data say little."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, Run, compare, gate
from passhat.protocol import Alternative
from passhat.stats.compare import Claim, Comparison, claims
from passhat.stats.compare.lift import Interval
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import metric
from passhat.stats.outcomes import MissingPolicy

ONE = Outcomes.from_counts(1, [1])
NONE = Outcomes.from_counts(1, [0])


def _text(found: Comparison) -> str:
    return str(found)


@pytest.mark.parametrize(("a", "b"), [(ONE, NONE), (NONE, ONE), (ONE, ONE), (NONE, NONE)])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_one_task_and_one_attempt_show_nothing(
    a: Outcomes, b: Outcomes, alternative: Alternative
) -> None:
    found = compare(a, b, alternative=alternative)
    for result in (*found.results, *found.these_tasks):
        assert result.claim is Claim.INCONCLUSIVE
        assert result.sentence.startswith("Inconclusive")
        assert "Evidence of" not in result.sentence
        assert "1 paired task," in result.sentence
        assert result.headline.startswith("No difference shown")
        assert "1 task" in result.headline
        assert "1 tasks" not in result.headline
        if result.p_value is not None:
            assert result.p_value >= 0.5
    assert found.task_changes == ()
    assert found.curves == ()


def test_ties_everywhere_are_level_and_promise_nothing() -> None:
    same = Outcomes.from_counts(4, [0, 1, 2, 3, 4])
    for about in ("new tasks", "these tasks"):
        (result,) = compare(same, same, about=about).results
        assert "level with that of A (lift 0.0 points)" in result.claim_sentence
        assert result.remarks == ()
        assert (result.wins, result.losses, result.ties, result.p_value) == (0, 0, 5, 1.0)
        assert result.interval_text().startswith("-")


CHANGES = (1, 2, 4, -3, -4)


def test_a_lift_of_zero_is_zero_in_every_order_of_its_sum() -> None:
    a = Outcomes.from_counts(10, [5] * 5)
    for changes in permutations(CHANGES):
        b = Outcomes.from_counts(10, [5 + change for change in changes])
        assert pair(a, b).differences(metric("pass^1"), MissingPolicy.BOUND).lift == 0


@settings(max_examples=max_examples(6))
@given(st.permutations(CHANGES))
def test_a_lift_of_zero_is_level_whatever_its_sum_rounds_to(changes: list[int]) -> None:
    """0.1 + 0.2 - 0.3 is 3e-17: that was "0.000000 points above", and "-0.000" in a gate."""
    a = Outcomes.from_counts(10, [5] * 5)
    b = Outcomes.from_counts(10, [5 + change for change in changes])
    found = compare(a, b, about="new tasks")
    assert found.results[0].lift == 0
    assert "level with that of A (lift 0.0 points)" in found.results[0].sentence
    assert {point.lift == 0 for point in found.curves[0].points[:1]} == {True}


def test_a_gate_does_not_read_rounding_as_a_drop() -> None:
    a, b = Outcomes.from_counts(10, [1, 2, 0]), Outcomes.from_counts(10, [0, 0, 3])
    rule, default = gate(b, "pass^1 >= base - 0.1", a), gate(b, (), a)
    assert "lift over base 0.000, at least" in rule.results[0].sentence
    assert "No change of pass^1 is shown on these 3 tasks, from 10% (base) to 10%" in default.title
    assert rule.results[0].value == default.results[0].value == 0


@pytest.mark.parametrize("about", ["new tasks", "these tasks"])
def test_a_lift_that_points_away_from_the_alternative_is_settled_by_no_number(about: str) -> None:
    """Version 0.1.0's successor advised 47 attempts per task for a lift of the wrong sign."""
    a, b = Outcomes.from_counts(4, [4, 4, 3]), Outcomes.from_counts(4, [1, 2, 3])
    (wrong,) = compare(a, b, alternative="greater", about=about).results
    assert wrong.claim is Claim.INCONCLUSIVE
    assert wrong.remarks == ()
    assert wrong.high == 1.0
    (right,) = compare(b, a, alternative="greater", about=about).results
    unit = "attempts per task" if about == "these tasks" else "tasks like these"
    if right.claim is Claim.INCONCLUSIVE and right.remarks:
        assert unit in right.remarks[-1]
        assert "of 10 cases" in right.remarks[-1]


def test_about_these_tasks_no_tasks_are_asked_for() -> None:
    a, b = Outcomes.from_counts(4, [1, 2, 3, 1] * 4), Outcomes.from_counts(4, [1, 3, 3, 2] * 4)
    (result,) = compare(a, b, about="these tasks").results
    assert result.claim is Claim.INCONCLUSIVE
    last = result.remarks[-1]
    needed = int(re.findall(r"With ([\d,]+) attempts", last)[0].replace(",", ""))
    assert needed > 4
    assert "(4 now)" in last
    assert result.tasks_needed is None


def test_missing_attempts_that_could_turn_it_come_first() -> None:
    a = Outcomes.from_counts([2, 2], [1, 1])
    b = Outcomes.from_counts([1, 2], [1, 1], missing=[1, 0])
    (result,) = compare(a, b, about="new tasks").results
    assert "1 attempt without a verdict is counted against the claim." in result.remarks
    assert "Judge or repeat those first" in result.remarks[-1]
    more = Outcomes.from_counts([0, 2], [0, 1], missing=[2, 0])
    (result,) = compare(a, more, about="new tasks").results
    assert "2 attempts without a verdict are counted against the claim." in result.remarks


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_interval_is_named_with_its_level_and_its_sides(alternative: Alternative) -> None:
    a, b = Outcomes.from_counts(2, [0, 1, 2]), Outcomes.from_counts(2, [1, 1, 2])
    (result,) = compare(a, b, alternative=alternative, level=0.995, about="new tasks").results
    assert "99.5%" in result.claim_sentence
    assert "100%" not in result.claim_sentence
    if alternative == "two-sided":
        assert "includes zero" in result.claim_sentence
    else:
        side = "lower" if alternative == "greater" else "upper"
        assert f"one-sided 99.5% {side} bound" in result.claim_sentence
        assert "does not exclude zero" in result.claim_sentence


def test_a_claim_names_who_is_better_by_how_much_and_on_what() -> None:
    a, b = Outcomes.from_counts(8, [1] * 40), Outcomes.from_counts(8, [7] * 40)
    found = compare(Run("old", "x", a), Run("new", "x", b))
    (result,) = found.results
    assert result.headline.startswith("new beats old: pass^1 88% against 12%, +75 points (")
    assert result.headline.endswith("40 tasks.")
    assert found.these_tasks[0].headline.endswith("these 40 tasks again.")
    assert result.claim_sentence.startswith(
        "Evidence of improvement on new tasks: pass^1 of new is 75.0 points above that of old; "
    )
    assert "lies above zero" in result.claim_sentence
    worse = compare(Run("old", "x", b), Run("new", "x", a)).results[0]
    assert worse.headline.startswith("new is worse than old")
    assert "lies below zero" in worse.claim_sentence


def test_several_metrics_say_so_and_widen() -> None:
    a, b = Outcomes.from_counts(4, [1, 2, 3, 4] * 5), Outcomes.from_counts(4, [2, 3, 3, 4] * 5)
    alone = compare(a, b, "pass^1", about="new tasks").results[0]
    first, _ = compare(a, b, ["pass^1", "pass^4"], about="new tasks").results
    assert "Adjusted for 2 metrics." in first.remarks
    assert "Adjusted" not in " ".join(alone.remarks)
    assert first.low < alone.low
    assert (first.low_alone, first.high_alone) == (alone.low, alone.high)


def test_no_sentence_has_an_empty_part_or_a_bare_number_of_digits() -> None:
    cases = [
        (ONE, ONE),
        (Outcomes.from_counts(3, [0, 0]), Outcomes.from_counts(3, [3, 3])),
        (Outcomes.from_counts([1, 9], [1, 0]), Outcomes.from_counts([1, 9], [0, 9])),
        (
            Outcomes.from_counts([0, 2], [0, 1], missing=[2, 0]),
            Outcomes.from_counts([2, 2], [2, 1]),
        ),
    ]
    for a, b in cases:
        text = _text(compare(a, b))
        assert "  ;" not in text
        assert "nan" not in text.lower()
        assert "None" not in text
        assert not re.search(r"\d\.\d{7,}", text)
        assert "-0.0 points" not in text


@pytest.mark.parametrize(
    ("low", "high", "alternative", "text"),
    [
        (-0.004, 0.05, "two-sided", "between 0.4 points lower and 5 higher"),
        (-0.01, 0.005, "two-sided", "between 1 point lower and 0.5 higher"),
        (-0.004, 1.0, "greater", "at most 0.4 points lower"),
        (-1.0, 0.004, "less", "at most 0.4 points higher"),
        (0.01, 0.05, "two-sided", "1 to 5 points"),
        (-0.05, -0.01, "two-sided", "1 to 5 points"),
        (0.02, 1.0, "greater", "at least 2 points"),
        (0.01, 0.01, "two-sided", "1 point"),
    ],
)
def test_the_size_of_a_change_is_its_interval(
    low: float, high: float, alternative: Alternative, text: str
) -> None:
    (result,) = compare(
        Outcomes.from_counts(4, [1, 2, 3]), Outcomes.from_counts(4, [2, 2, 3])
    ).results
    evidence = replace(result.evidence, interval=Interval(low, high), alternative=alternative)
    found = re.sub(r"[\d.]+", lambda number: f"{float(number[0]):g}", claims._size_text(evidence))
    assert found == text
