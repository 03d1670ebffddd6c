"""Clusters mean the same in estimates, comparisons, gates, plans and forecasts."""

from __future__ import annotations

import numpy as np
import pytest

from passhat import Outcomes, compare, estimate, forecast, gate, plan_tasks
from passhat.errors import InvalidValue
from passhat.stats.clusters import ENOUGH, TaskClusters, shared_labels, task_clusters


def _suite(clusters: int, size: int, seed: int = 0) -> Outcomes:
    """All or nothing by cluster: the tasks of one cluster are copies."""
    rng = np.random.default_rng(seed)
    passes = np.repeat(rng.integers(0, 2, clusters) * 4, size)
    labels = {
        "repo": [f"r{i // size}" for i in range(clusters * size)],
        "own": [f"t{i}" for i in range(clusters * size)],
        "all": ["x"] * (clusters * size),
    }
    return Outcomes.from_counts(4, passes, labels=labels)


SUITE = _suite(24, 4)


def _width(low: float | None, high: float | None) -> float:
    assert low is not None
    assert high is not None
    return high - low


def test_every_answer_about_new_tasks_widens_by_about_the_root_of_the_size() -> None:
    """Four copies of 24 tasks are 24 tasks: twice as wide as 96 independent ones."""
    plain, by_repo = estimate(SUITE, "pass^1"), estimate(SUITE, "pass^1", cluster="repo")
    ratio = _width(by_repo.low, by_repo.high) / _width(plain.low, plain.high)
    assert 1.7 < ratio < 2.2
    other = _suite(24, 4, seed=1)
    lifts = [compare(SUITE, other, cluster=c, about="new tasks").results[0] for c in (None, "repo")]
    ratio = _width(lifts[1].low, lifts[1].high) / _width(lifts[0].low, lifts[0].high)
    assert 1.6 < ratio < 2.2
    bands = [forecast(SUITE, "pass^1", cluster=c) for c in (None, "repo")]
    ratio = _width(bands[1].low, bands[1].high) / _width(bands[0].low, bands[0].high)
    assert 1.5 < ratio < 2.8
    plans = [plan_tasks(SUITE, half_width=0.05, cluster=c) for c in (None, "repo")]
    assert 2.5 < plans[1].cheapest.tasks / plans[0].cheapest.tasks < 6
    rules = [gate(SUITE, "pass^1 >= 0.5", cluster=c).results[0] for c in (None, "repo")]
    assert (rules[1].low or 0) < (rules[0].low or 0)


def test_clusters_of_one_task_change_nothing_but_the_forecasts_small_sample_factor() -> None:
    plain, own = estimate(SUITE, "pass^1"), estimate(SUITE, "pass^1", cluster="own")
    assert (own.low, own.high) == pytest.approx((plain.low, plain.high), abs=1e-7)
    other = _suite(24, 4, seed=1)
    (one,) = compare(SUITE, other, about="new tasks").results
    (two,) = compare(SUITE, other, cluster="own", about="new tasks").results
    assert (two.low, two.high) == pytest.approx((one.low, one.high), abs=1e-7)
    assert two.p_value == pytest.approx(one.p_value)
    bands = [forecast(SUITE, "pass^1", cluster=c) for c in (None, "own")]
    assert _width(bands[1].low, bands[1].high) < 1.1 * _width(bands[0].low, bands[0].high)
    same = [plan_tasks(SUITE, half_width=0.05, cluster=c).cheapest.tasks for c in (None, "own")]
    assert same[1] == pytest.approx(same[0], rel=0.05)


def test_one_cluster_for_all_tasks_is_warned_about_or_refused() -> None:
    found = estimate(SUITE, "pass^1", cluster="all")
    assert _width(found.low, found.high) > 0.9
    assert any("only 1 cluster of all" in note for note in found.notes)
    with pytest.raises(InvalidValue, match="all tasks share one all"):
        forecast(SUITE, "pass^1", cluster="all")


def test_warnings_at_the_edge_of_enough() -> None:
    few = TaskClusters("repo", tuple(f"r{i}" for i in range(ENOUGH - 1)))
    enough = TaskClusters("repo", tuple(f"r{i}" for i in range(ENOUGH)))
    assert "only 19 clusters of repo" in few.warnings()[0]
    assert enough.warnings() == ()
    half = TaskClusters("repo", (*["big"] * 20, *(f"r{i}" for i in range(20))))
    assert half.largest == ("big", 0.5)
    assert half.warnings() == ()
    most = TaskClusters("repo", (*["big"] * 21, *(f"r{i}" for i in range(20))))
    assert "repo big holds 51% of the tasks" in most.warnings()[0]
    assert "ask about these tasks" in most.warnings()[0]


def test_labels_of_pairs_come_from_the_side_that_has_them() -> None:
    plain = Outcomes.from_counts(2, [1, 2])
    labeled = Outcomes.from_counts(2, [1, 2], labels={"repo": ["a", "b"]})
    for sides in ((plain, labeled), (labeled, plain), (labeled, labeled)):
        assert shared_labels(sides, "repo") == ("a", "b")
    with pytest.raises(InvalidValue, match="slices here: none"):
        shared_labels((plain, plain), "repo")
    other = Outcomes.from_counts(2, [1, 2], labels={"repo": ["a", "c"]})
    with pytest.raises(InvalidValue, match="in slice 'b' of 'repo' in one run and in 'c'"):
        shared_labels((labeled, other), "repo")
    assert task_clusters(labeled, None) is None


def test_a_middle_side_that_disagrees_is_noticed() -> None:
    """Three sides: only the first and the last were compared."""
    a = Outcomes.from_counts(2, [1, 2], labels={"repo": ["a", "b"]})
    b = Outcomes.from_counts(2, [1, 2], labels={"repo": ["b", "a"]})
    with pytest.raises(InvalidValue, match="in one run and in"):
        shared_labels((a, b, a), "repo")
