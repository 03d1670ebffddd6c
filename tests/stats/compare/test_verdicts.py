"""One verdict about a pair of runs: its words agree with its numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, compare
from passhat.stats.compare.claims import AdjustedFor, Claim, Evidence, PairVerdict
from passhat.stats.compare.lift import Interval
from passhat.stats.compare.task_changes import TaskChange
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.terms import Population

AGREEMENT = compare(Outcomes.from_counts(1, [1]), Outcomes.from_counts(1, [1])).agreement
THESE = Evidence(
    metric=PassHat(1),
    a="old",
    b="new",
    value_a=0.84,
    value_b=0.65,
    lift=-0.19,
    interval=Interval(-0.255, -0.118),
    level=0.95,
    alternative="two-sided",
    tasks=30,
    population=Population.THESE_TASKS,
    agreement=AGREEMENT,
    looked=AdjustedFor(),
    missing=0,
    prospect=None,
    undecided=False,
)
NEW = replace(THESE, population=Population.NEW_TASKS, interval=Interval(-0.4, 0.03))
BROKEN = TaskChange("t5", "broke", 8, 8, 0, 8, 0.0001, 0.001)


def test_a_drop_on_these_tasks_that_does_not_carry() -> None:
    verdict = PairVerdict(THESE, NEW)
    assert verdict.claim is Claim.REGRESSION
    assert verdict.sentence == (
        "pass^1 dropped by 19 points, between 12 and 26, on these 30 tasks, from 84% (old) to 65% "
        "(new). "
        "For new tasks a drop is not shown: between 40 points lower and 3 higher."
    )


def test_a_rise_that_carries() -> None:
    up = replace(THESE, value_a=0.6, value_b=0.76, lift=0.16, interval=Interval(0.08, 0.24))
    new = replace(up, population=Population.NEW_TASKS, interval=Interval(0.02, 0.3))
    assert PairVerdict(up, new).sentence == (
        "pass^1 rose by 16 points, between 8 and 24, on these 30 tasks, from 60% (old) to 76% "
        "(new). A rise is shown for new tasks as well: 2 to 30 points."
    )
    assert PairVerdict(None, new).sentence == (
        "pass^1 rose by 16 points, between 2 and 30, on new tasks (30 tasks seen), from 60% (old) "
        "to 76% (new)."
    )


def test_one_task_that_broke_decides_where_the_mean_does_not() -> None:
    facts = replace(THESE, value_b=0.81, interval=Interval(-0.09, 0.05), broken=(BROKEN,))
    verdict = PairVerdict(facts, None)
    assert verdict.claim is Claim.REGRESSION
    assert verdict.sentences == (
        "1 task broke: t5 (8 of 8 passed, now 0 of 8).",
        "The mean of pass^1 is not shown to change on these 30 tasks, from 84% (old) to 81% "
        "(new): between 9 points lower and 5 higher.",
    )
    fixed = replace(facts, broken=(), fixed=(BROKEN,))
    assert PairVerdict(fixed, None).claim is Claim.IMPROVEMENT
    nothing = replace(facts, broken=())
    assert (
        PairVerdict(nothing, replace(nothing, population=Population.NEW_TASKS))
        .sentences[-1]
        .startswith("For new tasks no change is shown either: ")
    )


def test_missing_attempts_are_a_range_and_nothing_judged_is_no_number() -> None:
    facts = replace(THESE, value_b=0.56, highest_b=0.94, interval=Interval(-0.4, 0.2))
    assert "to between 56% and 94% (new)" in PairVerdict(facts, None).sentence
    empty = replace(facts, unjudged=("new",))
    assert PairVerdict(empty, None).sentence == (
        "Nothing is known about pass^1: no attempt of new has a verdict."
    )
    assert PairVerdict(empty, None).claim is Claim.INCONCLUSIVE


@pytest.mark.parametrize(
    ("alternative", "interval", "says"),
    [
        ("greater", Interval(0.08, 1.0), "rose by at least 8 points on"),
        ("greater", Interval(-0.08, 1.0), "at most 8 points lower."),
        ("less", Interval(-1.0, -0.01), "dropped by at least 1 point on"),
        ("less", Interval(-1.0, 0.04), "at most 4 points higher."),
    ],
)
def test_one_sided(alternative: str, interval: Interval, says: str) -> None:
    near = interval.low if alternative == "greater" else interval.high
    values = {"value_a": 0.5, "value_b": 0.5 + near}
    facts = replace(THESE, **values, alternative=alternative, interval=interval)  # type: ignore[arg-type]
    assert says in PairVerdict(facts, None).sentence


COUNTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=2, max_size=12)


@given(COUNTS, st.integers(0, 3))
@settings(max_examples=max_examples(30), deadline=None)
def test_words_agree_with_numbers(counts: list[tuple[int, int]], missing: int) -> None:
    passes_a, passes_b = (np.array(side) for side in zip(*counts, strict=True))
    lost = np.minimum(missing, 8 - passes_b)
    a = Outcomes.from_counts(8, passes_a)
    b = Outcomes.from_counts(8 - lost, passes_b, missing=lost)
    found = compare(a, b)
    (verdict,) = found.verdicts
    lead = next(text for text in verdict.sentences if "from " in text)
    facts = verdict.lead
    rises, drops = "rose" in lead, "dropped" in lead
    assert (rises, drops) == (facts.interval.low > 0, facts.interval.high < 0)
    assert ("is shown on" in lead or "is not shown to change" in lead) is not (rises or drops)
    from_a, *to_b = (float(text) for text in re.findall(r"([\d.]+)%", lead))
    assert len(to_b) == (2 if lost.sum() and facts.value_b != facts.highest_b else 1)
    sizes = [float(text) for text in re.findall(r"([\d.]+)(?= to | points? |\s?higher)", lead)]
    if ends := re.search(r"by ([\d.]+) points?, between ([\d.]+) and ([\d.]+), on", lead):
        assert float(ends[1]) == pytest.approx(abs(to_b[0] - from_a))
        sizes = [float(ends[2]), float(ends[3])]
    if rises or drops:
        low, high = sizes[0], sizes[1] if len(sizes) > 1 else sizes[0]
        difference = to_b[0] - from_a if rises else from_a - to_b[0]
        assert 0 < low <= difference + 1e-6
        if not lost.sum():
            assert difference <= high + 1e-6
    assert bool(re.search(r"(?<![.\d])1 points|\b1 tasks|-0\b|nan", verdict.sentence)) is False
