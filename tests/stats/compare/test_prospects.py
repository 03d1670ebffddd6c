"""What settles an open question, and in how many cases: tried out on fresh draws."""

from __future__ import annotations

import numpy as np
import pytest

from passhat import Outcomes, compare
from passhat.protocol import Alternative
from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.compare import prospects
from passhat.stats.compare.prospects import (
    FittedRates,
    Prospect,
    Reach,
    Settles,
    foresee_attempts,
    foresee_tasks,
    no_tie_chance,
)
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import PassHat

A = [3, 5, 2, 6, 4, 7, 1, 3, 5, 4] * 2
B = [5, 5, 3, 7, 5, 7, 2, 3, 5, 5] * 2
ONE = PassHat(1)


def above(limit: float) -> Settles:
    def settles(values: FloatArray, reach: Reach) -> BoolArray:
        return (values - reach.below > limit) | (values + reach.above < limit)

    return settles


def test_the_chance_is_that_of_runs_of_this_size() -> None:
    """Fresh runs of the promised size, with bounds at their reach, settle it as often as said."""
    rng = np.random.default_rng(7)
    promised, cases = [], []
    for _ in range(60):
        rates = rng.beta(2, 2, 40)
        outcomes = Outcomes.from_counts(4, rng.binomial(4, rates))
        reach = Reach(0.09, 0.09)
        prospect = foresee_attempts([outcomes], ONE, reach, above(0.42))
        if prospect is not None:
            n = prospect.total
            value = float(rng.binomial(n, rates).mean() / n)
            shrunk = reach.shrink(n / 4)
            promised.append(prospect.chance)
            cases.append(value - shrunk.below > 0.42 or value + shrunk.above < 0.42)
    assert len(cases) > 30
    assert np.mean(cases) == pytest.approx(np.mean(promised), abs=0.17)


def test_more_attempts_settle_what_more_tasks_settle_about_new_tasks() -> None:
    outcomes = Outcomes.from_counts(4, [1, 2, 3, 4] * 10)
    for foresee, kind, now in ((foresee_attempts, "attempts", 4), (foresee_tasks, "tasks", 40)):
        prospect = foresee([outcomes], ONE, Reach(0.12, 0.12), above(0.55))
        assert prospect is not None
        assert (prospect.kind, prospect.now) == (kind, now)
        assert prospect.total > now
        assert 0.5 <= prospect.chance <= 1


def test_it_is_the_same_every_time() -> None:
    outcomes = Outcomes.from_counts(4, [1, 2, 3, 4] * 10)
    found = [foresee_tasks([outcomes], ONE, Reach(0.1, 0.1), above(0.5)) for _ in range(2)]
    assert found[0] == found[1] is not None


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        (Outcomes.from_counts(8, [5]), "pass^1"),  # one task says nothing about others
        (Outcomes.from_counts(8, [5, 3]), "pass^1"),
        (Outcomes.from_counts(2, [1, 2, 0]), "pass^3"),  # k is larger than n
    ],
)
def test_more_tasks_are_not_advised_where_nothing_is_known_of_tasks(
    outcomes: Outcomes, word: str
) -> None:
    settles = above(0.4)
    assert foresee_tasks([outcomes], metric(word), Reach(0.1, 0.1), settles) is None


@pytest.mark.parametrize(("cells", "advises"), [(20 * 18, True), (20 * 18 - 1, False)])
def test_scores_are_drawn_at_least_20_times(
    cells: int, advises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = Outcomes.from_scores([[0.1, 0.9], [0.3, 0.6], [0.7, 0.2]] * 6)
    monkeypatch.setattr(prospects, "_MOST_CELLS", cells)
    found = foresee_tasks([scores], metric("mean"), Reach(0.2, 0.2), above(0.4))
    assert (found is not None) is advises


def test_more_tasks_are_advised_for_scores_of_at_least_k_attempts() -> None:
    scores = Outcomes.from_scores([[0.1, 0.9], [0.3, 0.6], [0.7, 0.2]] * 6)
    found = {
        word: foresee_tasks([scores], metric(word), Reach(0.2, 0.2), above(0.4))
        for word in ("mean", "best@2", "best@3")
    }
    assert found["mean"] is not None
    assert found["best@2"] is not None
    assert found["best@3"] is None


def test_more_attempts_are_not_advised_for_metrics_that_more_attempts_change() -> None:
    outcomes = Outcomes.from_counts(8, [5] * 20)
    settles = above(0.4)
    assert foresee_attempts([outcomes], metric("first^2"), Reach(0.1, 0.1), settles) is None


@pytest.mark.parametrize("about", ["new tasks", "these tasks"])
def test_ties_have_no_prospect(about: str) -> None:
    for passes in ([1, 2, 3] * 10, [8] * 30, A):
        same = Outcomes.from_counts(8, passes)
        (result,) = compare(same, same, about=about).results
        assert result.evidence.prospect is None
        assert result.tasks_needed is None


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_lift_that_points_away_from_the_alternative_has_none(alternative: Alternative) -> None:
    a, b = Outcomes.from_counts(8, A), Outcomes.from_counts(8, B)
    (result,) = compare(a, b, about="these tasks", alternative=alternative, level=0.999).results
    prospect = result.evidence.prospect
    if alternative == "less":
        assert prospect is None
    else:
        assert prospect is not None
        assert prospect.sentence in result.sentence
        assert "(8 now) it is settled in" in prospect.sentence


def test_no_tie_is_surer_the_larger_the_lift() -> None:
    chances = [no_tie_chance(lift, 0.03) for lift in (0.0, 0.02, 0.05, 0.1)]
    assert chances == sorted(chances)
    assert chances[0] < 0.5 < chances[2] < chances[3]
    assert (no_tie_chance(0.0, 0.0), no_tie_chance(0.1, 0.0)) == (0.0, 1.0)


def test_no_more_is_promised_than_was_found() -> None:
    assert Prospect("tasks", 480, 60, 0.89).sentence == (
        "With 480 tasks like these (60 now) it is settled in 8 of 10 cases."
    )
    assert Prospect("attempts", 1200, 8, 0.8).text(" in both runs") == (
        "with 1,200 attempts per task in both runs (8 now) it is settled in 8 of 10 cases"
    )


def test_rates_are_drawn_near_the_counts() -> None:
    outcomes = Outcomes.from_counts(8, [0, 8, 4] * 10)
    rates = FittedRates.of(outcomes).draw(np.random.default_rng(1), 300)
    means = rates.mean(axis=0)[:3]
    assert means[0] < 0.1
    assert means[1] > 0.9
    assert means[2] == pytest.approx(0.5, abs=0.12)
    single = FittedRates.of(Outcomes.from_counts(1, [1, 0])).draw(np.random.default_rng(1), 400)
    assert single.mean(axis=0) == pytest.approx([0.75, 0.25], abs=0.06)
