"""Headlines, methods and remarks from facts alone: numbers are never rounded into a claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passhat import Outcomes, compare
from passhat.protocol import Alternative
from passhat.stats.compare.claims import (
    AdjustedFor,
    Claim,
    Evidence,
    Method,
    _whole,
    decide,
    headline,
    points,
    remarks,
    sentence,
)
from passhat.stats.compare.guard import Agreement
from passhat.stats.compare.lift import Interval
from passhat.stats.compare.prospects import Prospect
from passhat.stats.compare.task_changes import TaskChange
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.terms import Population

FACTS = Evidence(
    metric=PassHat(4),
    a="old",
    b="new",
    value_a=0.5,
    value_b=0.75,
    lift=0.25,
    interval=Interval(0.1, 0.4),
    level=0.95,
    alternative="two-sided",
    tasks=40,
    population=Population.NEW_TASKS,
    agreement=compare(Outcomes.from_counts(1, [1]), Outcomes.from_counts(1, [1])).agreement,
    looked=AdjustedFor(),
    missing=0,
    prospect=None,
    undecided=False,
    attempts=4,
)


def _change(task: str) -> TaskChange:
    return TaskChange(task, "broke", 8, 8, 0, 8, 0.0001, 0.001)


def test_the_headline_in_both_directions() -> None:
    assert isinstance(FACTS.agreement, Agreement)
    assert headline(FACTS) == (
        "new beats old: pass^4 75% against 50%, +25 points (10 to 40), 40 tasks."
    )
    worse = replace(FACTS, value_b=0.25, lift=-0.25, interval=Interval(-0.4, -0.1))
    assert headline(worse) == (
        "new is worse than old: pass^4 25% against 50%, -25 points (-40 to -10), 40 tasks."
    )
    neither = replace(FACTS, interval=Interval(-0.1, 0.6), tasks=1)
    assert headline(neither) == (
        "No difference shown between new and old: pass^4 75% against 50%, +25 points (-10 to 60), "
        "1 task."
    )


@pytest.mark.parametrize(
    ("alternative", "reach"), [("greater", "(at least 10)"), ("less", "(at most 40)")]
)
def test_one_direction_has_one_bound(alternative: Alternative, reach: str) -> None:
    one_sided = replace(FACTS, alternative=alternative)
    assert reach in headline(one_sided)
    bound = "lower" if alternative == "greater" else "upper"
    assert f"the one-sided 95% {bound} bound of the lift" in sentence(one_sided)


def test_these_tasks_are_named_as_such() -> None:
    again = replace(FACTS, population=Population.THESE_TASKS)
    assert headline(again).endswith("these 40 tasks again.")
    assert sentence(again).startswith("Evidence of improvement on these tasks: ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (100.0, "100"),
        (0.3, "0.3"),
        (0.04, "0.04"),
        (99.4, "99"),
        (99.7, "99.7"),
        (99.97, "99.97"),
        (50.5, "50"),
        (-0.2, "-0.2"),
        (-100.0, "-100"),
        (-99.6, "-99.6"),
        (1e-9, "0.000"),
        (-1e-9, "0.000"),
    ],
)
def test_what_is_not_0_or_100_does_not_read_so(value: float, text: str) -> None:
    assert _whole(value) == text


def test_signs_are_written_where_there_is_something_to_sign() -> None:
    assert [_whole(value, signed=True) for value in (25.0, -25.0, 0.0, 0.4)] == [
        *("+25", "-25", "0", "+0.4"),
    ]
    assert [points(share) for share in (0.25, -0.25, 0.0, 0.0004, 1e-12)] == [
        *("+25.0", "-25.0", "0.0", "+0.04", "0.000000"),
    ]


def test_one_failure_in_a_thousand_tasks_is_not_hidden() -> None:
    """999 of 1,000 against 1,000 of 1,000: the first is not 100%."""
    a = Outcomes.from_counts(1, [1] * 999 + [0])
    b = Outcomes.from_counts(1, [1] * 1000)
    (result,) = compare(a, b, "pass^1", about="new tasks").results
    assert "pass^1 100% against 99.9%, +0.1 points" in result.headline
    (result,) = compare(b, a, "pass^1", about="new tasks").results
    assert "pass^1 99.9% against 100%, -0.1 points" in result.headline


@pytest.mark.parametrize(
    ("low", "high", "claim"),
    [
        (1e-12, 0.5, Claim.IMPROVEMENT),
        (0.0, 0.5, Claim.INCONCLUSIVE),
        (-0.5, 0.0, Claim.INCONCLUSIVE),
        (-0.5, -1e-12, Claim.REGRESSION),
        (-0.5, 0.5, Claim.INCONCLUSIVE),
    ],
)
def test_only_an_interval_off_zero_claims(low: float, high: float, claim: Claim) -> None:
    assert decide(Interval(low, high)) is claim
    assert replace(FACTS, interval=Interval(low, high)).claim is claim


def test_a_method_names_its_parts_and_nothing_else() -> None:
    assert str(Method("exact")) == "interval: exact"
    assert str(Method("exact", "over 3 k", "sign test", "missing: bound")) == (
        "interval: exact, over 3 k; p-value: sign test; missing: bound"
    )
    assert str(Method("exact", missing="missing: fail")) == "interval: exact; missing: fail"


def test_adjustments_are_told_from_two_on() -> None:
    assert str(AdjustedFor()) == ""
    assert str(AdjustedFor(2)) == "Adjusted for 2 metrics."
    assert str(AdjustedFor(1200, "slices")) == "Adjusted for 1,200 slices."
    assert remarks(replace(FACTS, looked=AdjustedFor(3, "pairs"))) == ("Adjusted for 3 pairs.",)
    assert remarks(FACTS) == ()


def test_remarks_in_their_order_with_singular_and_plural() -> None:
    told = replace(
        FACTS,
        interval=Interval(-0.1, 0.6),
        broken=(_change("t1"),),
        fixed=(_change("t2"), _change("t3")),
        missing=1,
        prospect=Prospect("tasks", 1234, 40, 0.8),
    )
    assert remarks(told) == (
        "1 task broke: t1.",
        "2 tasks improved: t2, t3.",
        "1 attempt without a verdict is counted against the claim.",
        "With 1,234 tasks like these (40 now) it is settled in 8 of 10 cases.",
    )
    assert "2 attempts without a verdict are counted" in remarks(replace(told, missing=2))[2]


def test_what_settles_it_is_told_where_something_does() -> None:
    open_ = replace(FACTS, interval=Interval(-0.1, 0.6))
    assert remarks(open_) == ()
    prospect = Prospect("attempts", 16, 4, 0.7)
    (note,) = remarks(replace(open_, prospect=prospect))
    assert note == "With 16 attempts per task (4 now) it is settled in 7 of 10 cases."
    (missing,) = remarks(replace(open_, prospect=prospect, undecided=True))
    assert "More tasks alone would not settle it" in missing
    shown = replace(open_, prospect=prospect, interval=Interval(0.1, 0.6))
    assert remarks(shown) == ()  # settled already
