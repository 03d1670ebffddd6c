"""Rank sets of many agents: Holm over all pairs, groups, and the Pareto front."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.stats.compare import compare
from passhat.stats.compare.ranking import find_front, find_groups, rank_agents, rank_sets
from passhat.stats.estimate import metric
from passhat.stats.estimate.intervals.dirichlet_mean import lower_probability, lower_quantile
from passhat.stats.outcomes import Outcomes
from passhat.stats.terms import Population, Terms

RNG = np.random.default_rng(18)
RATES = (0.9, 0.85, 0.5, 0.2)
SIDES = [Outcomes.from_matrix(RNG.random((60, 4)) < rate) for rate in RATES]


def test_the_probability_inverts_the_quantile() -> None:
    values, counts = np.array([[0.1, 0.5, 0.9]]), np.array([[3.0, 5.0, 2.0]])
    for tail in (0.001, 0.025, 0.3):
        x = float(lower_quantile(values, counts, tail)[0])
        assert float(lower_probability(values, counts, x)[0]) == pytest.approx(tail, rel=1e-6)


def test_a_p_value_is_the_tail_at_which_the_interval_reaches_zero() -> None:
    ranking = rank_agents(SIDES, metric("pass^1"), Terms())
    p = ranking.p_values[1, 2]
    low = compare(SIDES[2], SIDES[1], level=1 - 2 * p, about="new tasks").results[0].low
    assert low == pytest.approx(0, abs=2e-5)


def test_ranks_follow_the_pairs_that_holm_rejects() -> None:
    p_values = np.ones((3, 3))
    p_values[0, 1], p_values[0, 2], p_values[1, 2] = 0.02, 0.004, 0.013
    # Two-sided .04, .008, .026 times 1, 3, 2: only the second is below .05.
    is_better, best, worst = rank_sets(p_values, 0.05)
    assert is_better.tolist() == [[False, False, True], [False] * 3, [False] * 3]
    assert list(zip(best, worst, strict=True)) == [(1, 2), (1, 3), (2, 3)]
    p_values[1, 2] = 0.012
    _, best, worst = rank_sets(p_values, 0.05)
    assert list(zip(best, worst, strict=True)) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("population", [Population.NEW_TASKS, Population.THESE_TASKS])
@pytest.mark.parametrize("word", ["pass^1", "pass^2", "mean"])
def test_clear_differences_are_ranked_and_ties_are_not(word: str, population: Population) -> None:
    ranking = rank_agents(SIDES, metric(word), Terms(population=population))
    assert ranking.order in ([0, 1, 2, 3], [1, 0, 2, 3])
    assert ranking.best[2:] == ranking.worst[2:] == [3, 4]
    assert (ranking.best[:2], ranking.worst[:2]) == ([1, 1], [2, 2])
    assert [set(group) for group in find_groups(ranking)] == [{0, 1}, {2}, {3}]


def test_missing_attempts_count_against_every_order() -> None:
    rows = np.where(RNG.random((60, 4)) < 0.3, np.nan, 1.0)
    sides = [Outcomes.from_matrix(rows), Outcomes.from_matrix(RNG.random((60, 4)) < 0.75)]
    bound = rank_agents(sides, metric("pass^1"), Terms())
    assert not bound.is_better.any()
    left_out = rank_agents(sides, metric("pass^1"), Terms(missing="exclude"))  # type: ignore[arg-type]
    assert left_out.is_better[0, 1]


def test_equal_runs_and_many_different_lifts() -> None:
    same = rank_agents([SIDES[0]] * 3, metric("pass^1"), Terms())
    assert (same.best, same.worst) == ([1, 1, 1], [3, 3, 3])
    fine = [Outcomes.from_scores(RNG.beta(a, 2, (700, 2))) for a in (2, 4)]
    ranking = rank_agents(fine, metric("mean"), Terms())
    assert ranking.is_better.tolist() == [[False, False], [True, False]]


def test_clusters_weigh_whole_clusters() -> None:
    labels = {"template": [str(i // 15) for i in range(60)]}
    sides = [
        Outcomes.from_counts(4, np.repeat(c, 15), labels=labels)
        for c in ([4, 4, 3, 3], [3, 2, 2, 2])
    ]
    alone = rank_agents(sides, metric("pass^1"), Terms())
    together = rank_agents(sides, metric("pass^1"), Terms(cluster="template"))
    assert alone.is_better[0, 1]
    assert not together.is_better.any()


def test_the_front_and_how_sure_it_is() -> None:
    tasks = 50
    values = np.tile([0.9, 0.5, 0.6, 0.6], (tasks, 1))
    prices = np.tile([3.0, 1.0, 2.0, 2.0], (tasks, 1))
    prices[:, 3] += np.where(np.arange(tasks) % 2, 0.5, -0.5)
    front = find_front(values, prices)
    assert front.is_on_front.tolist() == [True, True, True, True]
    assert front.share[:2].tolist() == [1, 1]
    assert front.share[2] + front.share[3] == pytest.approx(1)
    dominated = find_front(values[:, :2], prices[:, :2] * [1, 4])
    assert dominated.is_on_front.tolist() == [True, False]


def test_simulated_boards_hold_all_true_ranks() -> None:
    """A small part of benchmarks/leaderboard.py: ties included."""
    rng = np.random.default_rng(7)
    strengths = np.array([0.8, 0.8, 0.7, 0.5, 0.5, 0.5])
    held = 0
    for _ in range(40):
        easiness = rng.beta(2, 2, 40)
        sides = []
        for strength in strengths:
            rates = np.clip(strength + 0.5 * (easiness - 0.5), 0, 1)
            sides.append(Outcomes.from_matrix(rng.random((40, 4)) < rates[:, None]))
        ranking = rank_agents(sides, metric("pass^1"), Terms())
        true_best = [1 + int((strengths > s).sum()) for s in strengths]
        true_worst = [int((strengths >= s).sum()) for s in strengths]
        held += all(
            b <= tb and tw <= w
            for b, w, tb, tw in zip(ranking.best, ranking.worst, true_best, true_worst, strict=True)
        )
    assert held >= 38
