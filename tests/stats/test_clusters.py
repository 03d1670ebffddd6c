"""Clusters of tasks: labels, and what is not safe with few of them."""

from __future__ import annotations

import pytest

from passhat import Outcomes
from passhat.errors import InvalidValue
from passhat.stats.clusters import TaskClusters, shared_labels, task_clusters


def test_few_clusters_and_one_that_dominates_are_pointed_out() -> None:
    few = TaskClusters("repo", tuple(f"r{i % 19}" for i in range(190)))
    (warning,) = few.warnings()
    assert "only 19 clusters of repo" in warning
    assert "ask about these tasks" in warning
    enough = TaskClusters("repo", tuple(f"r{i % 20}" for i in range(200)))
    assert enough.warnings() == ()
    most = TaskClusters("repo", ("django",) * 60 + tuple(f"r{i}" for i in range(40)))
    assert most.largest == ("django", 0.6)
    assert "repo django holds 60% of the tasks" in most.warnings()[0]


def test_labels_come_from_the_outcomes_or_are_refused() -> None:
    outcomes = Outcomes.from_counts(1, [1, 0], labels={"repo": ["a", "b"]})
    clusters = task_clusters(outcomes, "repo")
    assert clusters is not None
    assert (clusters.count, clusters.labels) == (2, ("a", "b"))
    assert task_clusters(outcomes, None) is None
    with pytest.raises(InvalidValue, match="rep"):
        task_clusters(outcomes, "rep")


def test_both_sides_must_agree() -> None:
    a = Outcomes.from_counts(1, [1, 0], labels={"repo": ["a", "b"]})
    b = Outcomes.from_counts(1, [1, 0], labels={"repo": ["a", "c"]})
    assert shared_labels((a, Outcomes.from_counts(1, [1, 0])), "repo") == ("a", "b")
    with pytest.raises(InvalidValue, match="in slice 'b' of 'repo' in one run and in 'c'"):
        shared_labels((a, b), "repo")


def test_a_cluster_that_holds_almost_all_tasks_does_not_hold_all() -> None:
    most = TaskClusters("repo", ("django",) * 9_976 + tuple(f"r{i}" for i in range(24)))
    assert "repo django holds 99.8% of the tasks" in most.warnings()[0]


def test_one_cluster_is_counted_in_the_singular() -> None:
    (warning,) = TaskClusters("repo", ("django",) * 3).warnings()
    assert warning.startswith("only 1 cluster of repo: ")
