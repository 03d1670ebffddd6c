"""Gaffke's bound: symmetries, what clusters do, and coverage by full enumeration."""

from __future__ import annotations

from itertools import pairwise, product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Outcomes, estimate
from passhat.errors import InvalidValue
from passhat.stats.estimate.intervals.new_tasks import (
    Intervals,
    containing,
    gaffke,
    gaffke_clusters,
    group_by_cluster,
    tail_probability,
)

cells = st.lists(
    st.tuples(st.floats(0, 1), st.integers(1, 12)), min_size=1, max_size=7, unique_by=lambda x: x[0]
)


def _ends(found: Intervals) -> tuple[float, float]:
    return float(found.lows[0]), float(found.highs[0])


@given(cells, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_the_mirror_of_the_values_is_the_mirror_of_the_interval(
    suite: list[tuple[float, int]], level: float
) -> None:
    values, tasks = zip(*suite, strict=True)
    low, high = _ends(gaffke(values, tasks, level=level))
    mirrored = _ends(gaffke([1 - value for value in values], tasks, level=level))
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(cells)
def test_a_higher_level_holds_a_lower_one(suite: list[tuple[float, int]]) -> None:
    values, tasks = zip(*suite, strict=True)
    ends = [_ends(gaffke(values, tasks, level=level)) for level in (0.5, 0.8, 0.95, 0.99)]
    for inner, outer in pairwise(ends):
        assert outer[0] <= inner[0] + 1e-9
        assert inner[1] <= outer[1] + 1e-9


@given(cells)
def test_twice_the_tasks_narrow_the_interval_and_keep_the_point(
    suite: list[tuple[float, int]],
) -> None:
    values, tasks = zip(*suite, strict=True)
    once, twice = gaffke(values, tasks), gaffke(values, [2 * count for count in tasks])
    assert float(once.points[0]) == pytest.approx(float(twice.points[0]))
    assert np.subtract(*_ends(twice)[::-1]) < np.subtract(*_ends(once)[::-1]) + 1e-9


@given(cells)
def test_one_better_task_moves_neither_end_down(suite: list[tuple[float, int]]) -> None:
    values, tasks = zip(*suite, strict=True)
    before = _ends(gaffke(values, tasks))
    raised = list(values)
    raised[0] = 1.0
    after = _ends(gaffke(raised, tasks))
    assert after[0] >= before[0] - 1e-9
    assert after[1] >= before[1] - 1e-9


@given(cells, st.floats(-3, 3), st.floats(0.1, 5))
def test_another_range_is_the_same_interval_moved(
    suite: list[tuple[float, int]], start: float, width: float
) -> None:
    values, tasks = zip(*suite, strict=True)
    low, high = _ends(gaffke(values, tasks))
    stop = start + width
    moved = [min(max(start + width * value, start), stop) for value in values]
    found = _ends(gaffke(moved, tasks, lowest=start, highest=stop))
    assert found == pytest.approx((start + width * low, start + width * high), abs=1e-6)


@given(cells, st.sampled_from([0.9, 0.95]))
def test_one_side_is_the_end_of_a_wider_level(suite: list[tuple[float, int]], level: float) -> None:
    """A one-sided bound spends all of the error on its side."""
    values, tasks = zip(*suite, strict=True)
    two = _ends(gaffke(values, tasks, level=2 * level - 1))
    assert _ends(gaffke(values, tasks, level=level, sides="lower"))[0] == pytest.approx(two[0])
    assert _ends(gaffke(values, tasks, level=level, sides="upper"))[1] == pytest.approx(two[1])
    assert _ends(gaffke(values, tasks, level=level, sides="lower"))[1] == 1.0
    assert _ends(gaffke(values, tasks, level=level, sides="upper"))[0] == 0.0


@pytest.mark.parametrize(
    "chances",
    [
        (0.2, 0.3, 0.5),
        (0.05, 0.0, 0.95),
        (0.98, 0.01, 0.01),
        (1 / 3, 1 / 3, 1 / 3),
        (0.0, 0.1, 0.9),
    ],
)
@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_exact_coverage_over_all_suites(chances: tuple[float, ...], tasks: int) -> None:
    """Every suite of tasks worth 0, 1/2 or 1, weighted by its chance: nothing is simulated."""
    points = np.array([0.0, 0.5, 1.0])
    truth = float(points @ chances)
    for level in (0.8, 0.95):
        covered = missed_below = 0.0
        for counts in product(range(tasks + 1), repeat=3):
            if sum(counts) != tasks:
                continue
            ways = factorial(tasks) / prod(map(factorial, counts))
            chance = ways * prod(p**c for p, c in zip(chances, counts, strict=True))
            low, high = _ends(gaffke(points, counts, level=level))
            covered += chance * (low <= truth <= high)
            missed_below += chance * (truth < low)
        assert covered >= level - 1e-9
        assert missed_below <= (1 - level) / 2 + 1e-9


# -- clusters --------------------------------------------------------------------------------------


@given(cells, st.randoms(use_true_random=False))
def test_clusters_of_one_task_are_no_clusters(
    suite: list[tuple[float, int]], random: object
) -> None:
    values = [value for value, count in suite for _ in range(count)]
    plain = _ends(gaffke(values, [1] * len(values)))
    labels = [f"t{i}" for i in range(len(values))]
    random.shuffle(labels)  # type: ignore[attr-defined]
    assert _ends(gaffke_clusters(values, labels)) == pytest.approx(plain, abs=1e-7)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.8, 0.95]))
def test_a_single_cluster_says_almost_nothing(values: list[float], level: float) -> None:
    """One weight against that of one unseen cluster of the same size: low = mean times the tail."""
    low, high = _ends(gaffke_clusters(values, ["only"] * len(values), level=level))
    mean, tail = float(np.mean(values)), (1 - level) / 2
    assert low == pytest.approx(mean * tail, abs=1e-9)
    assert high == pytest.approx(1 - (1 - mean) * tail, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcd")), min_size=2, max_size=15))
def test_names_and_order_of_clusters_leave_no_trace(tasks: list[tuple[float, str]]) -> None:
    values, labels = zip(*tasks, strict=True)
    other = {"a": "z", "b": "y", "c": "x", "d": "w"}
    backwards = [other[label] for label in labels][::-1]
    assert _ends(gaffke_clusters(values, labels)) == pytest.approx(
        _ends(gaffke_clusters(values[::-1], backwards)), abs=1e-10
    )


def test_copies_of_a_task_add_nothing_when_they_are_one_cluster() -> None:
    """Ten copies of every task, labeled as such, leave the interval of the single tasks."""
    values = [0.0, 0.25, 1.0, 1.0, 0.5, 0.75]
    copied = [value for value in values for _ in range(10)]
    labels = [f"c{i}" for i in range(len(values)) for _ in range(10)]
    single = _ends(gaffke(values, [1] * len(values)))
    assert _ends(gaffke_clusters(copied, labels)) == pytest.approx(single, abs=1e-8)
    ignored = _ends(gaffke(copied, [1] * len(copied)))
    assert ignored[1] - ignored[0] < 0.5 * (single[1] - single[0])


def test_the_unseen_cluster_has_the_size_a_task_finds() -> None:
    found = group_by_cluster(np.array([[0.0, 1.0, 1.0, 1.0]]), ["a", "b", "b", "b"])
    assert found.typical == pytest.approx((1 + 9) / 4)
    assert sorted(found.sizes.tolist()) == [1.0, 3.0]


def test_estimate_takes_clusters_for_ordered_and_unordered_metrics() -> None:
    rows = [[1, 1, 1]] * 6 + [[0, 0, 0]] * 6
    labels = {"repo": ["a", "b"] * 3 + ["c", "d"] * 3}
    outcomes = Outcomes.from_matrix(rows, labels=labels)
    for word in ("pass^1", "first@2", "window^2", "pass^3"):
        plain, by_repo = estimate(outcomes, word), estimate(outcomes, word, cluster="repo")
        assert by_repo.value == plain.value == 0.5
        assert (by_repo.low or 0) < (plain.low or 0)
        assert "4 clusters" in by_repo.method
        assert any("only 4 clusters of repo" in note for note in by_repo.notes)
    again = estimate(outcomes, "pass^1", cluster="repo", about="these tasks")
    assert again.notes == ()  # about these tasks nothing is drawn again but attempts


def test_what_is_no_level_or_label_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one label for each of 2 tasks"):
        gaffke_clusters([0.5, 0.5], ["a"])
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        tail_probability(1.0, "two")
    with pytest.raises(InvalidValue, match="two"):
        tail_probability(0.9, "both")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="no slice called 'repo'"):
        estimate(Outcomes.from_counts(2, [1, 2]), "pass^1", cluster="repo")


def test_an_end_that_is_moved_to_the_point_is_flagged() -> None:
    found = containing(np.array([0.5, 0.5]), np.array([0.6, 0.4]), np.array([0.9, 0.9]))
    assert found.lows.tolist() == [0.5, 0.4]
    assert found.extended.tolist() == [True, False]
