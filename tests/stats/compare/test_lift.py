"""The interval of the lift: reference values, invariants, and what it says when nothing is."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import InvalidValue
from passhat.protocol import Alternative
from passhat.stats.compare import Interval, LiftSample
from passhat.stats.compare.lift import expected_bound, hull, tail_of
from passhat.stats.estimate.intervals.new_tasks import gaffke, gaffke_clusters

FORTY = np.array([0.0] * 27 + [1.0] * 8 + [-1.0] * 5)

fractions = st.lists(st.integers(-8, 8).map(lambda x: x / 8), min_size=1, max_size=40)
flips = st.lists(st.sampled_from((-1.0, 0.0, 1.0)), min_size=1, max_size=40)
sides = st.sampled_from(("two-sided", "greater", "less"))


def test_the_forty_task_example() -> None:
    sample = LiftSample.of(FORTY)
    found = sample.interval(0.025)
    assert sample.mean == pytest.approx(0.075)
    assert (found.low, found.high) == pytest.approx((-0.128, 0.273), abs=5e-4)


def test_with_no_break_seen_the_bound_leaves_room_for_three_in_m() -> None:
    """The rule of three: one-sided 95% and no failure in m tasks."""
    low = LiftSample.of(np.zeros(100)).interval(0.05, "greater").low
    assert low == pytest.approx(-(1 - 0.05 ** (1 / 100)), abs=1e-6)


@given(st.lists(st.integers(-8, 8), min_size=3, max_size=40), st.integers(0, 2))
def test_the_interval_moves_continuously(d: list[int], place: int) -> None:
    """Version 0.1.0 jumped to a narrower interval as soon as one difference was fractional."""
    before = np.array(d) / 8
    after = before.copy()
    after[place] += 1e-6 if after[place] < 1 else -1e-6
    one, other = (LiftSample.of(x).interval(0.025) for x in (before, after))
    assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-5)


def test_it_is_the_bound_that_estimates_use() -> None:
    d = np.array([0.5, 0.25, -0.25, 0.0, 0.5])
    values, counts = np.unique(d, return_counts=True)
    wanted = gaffke(values, counts, lowest=-1, highest=1)
    interval = LiftSample.of(d).interval(0.025)
    assert (interval.low, interval.high) == pytest.approx((wanted.lows[0], wanted.highs[0]))


def test_clusters_are_drawn_with_their_sizes() -> None:
    d = np.array([1.0, 1.0, 1.0, 0.0, 0.0, -0.5, 0.5, 0.25])
    clusters = ["a", "a", "a", "b", "b", "c", "d", "d"]
    wanted = gaffke_clusters(d, np.array(clusters), lowest=-1, highest=1)
    interval = LiftSample.of(d, clusters).interval(0.025)
    assert (interval.low, interval.high) == pytest.approx((wanted.lows[0], wanted.highs[0]))
    alone = LiftSample.of(d).interval(0.025)
    assert interval.high - interval.low > alone.high - alone.low


def test_the_expected_bound_is_near_the_one_that_data_give() -> None:
    rng = np.random.default_rng(4)
    d = (rng.binomial(8, 0.7, 120) - rng.binomial(8, 0.6, 120)) / 8
    low = LiftSample.of(d).interval(0.025).low
    assert expected_bound(120, d.mean(), d.var(), 0.025) == pytest.approx(low, abs=0.003)


@given(st.one_of(fractions, flips), sides, st.floats(0.01, 0.999))
def test_the_interval_holds_its_point_stays_in_range_and_has_width(
    d: list[float], alternative: Alternative, level: float
) -> None:
    sample = LiftSample.of(np.array(d))
    found = sample.interval(tail_of(level, alternative), alternative)
    assert -1 <= found.low <= sample.mean <= found.high <= 1
    if level > 0.5:
        assert found.high > found.low


@given(st.one_of(fractions, flips), sides, st.randoms())
def test_order_does_not_matter_and_swapping_sides_mirrors(
    d: list[float], alternative: Alternative, random: Random
) -> None:
    mirror: dict[Alternative, Alternative] = {"greater": "less", "less": "greater"}
    tail = tail_of(0.95, alternative)
    found = LiftSample.of(np.array(d)).interval(tail, alternative)
    shuffled = list(d)
    random.shuffle(shuffled)
    again = LiftSample.of(np.array(shuffled)).interval(tail, alternative)
    turned = LiftSample.of(-np.array(d)).interval(tail, mirror.get(alternative, "two-sided"))
    assert (again.low, again.high) == pytest.approx((found.low, found.high))
    assert (-turned.high, -turned.low) == pytest.approx((found.low, found.high))


def test_a_one_sided_bound_is_tighter_than_the_two_sided_one() -> None:
    sample = LiftSample.of(FORTY)
    assert sample.interval(0.05, "greater").low > sample.interval(0.025).low
    assert sample.interval(0.05, "greater").high == 1.0
    assert sample.interval(0.05, "less").low == -1.0


def test_one_task_says_almost_nothing() -> None:
    interval = LiftSample.of(np.array([0.5])).interval(0.025)
    assert interval.low < -0.9
    assert interval.high > 0.9


@pytest.mark.parametrize("bad", [[], [[0.1]], [1.5], [float("nan")]])
def test_what_are_no_differences_is_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidValue):
        LiftSample.of(np.array(bad))


def test_level_outside_its_range_is_refused() -> None:
    with pytest.raises(InvalidValue, match="level"):
        tail_of(95, "two-sided")


def test_hull_and_text() -> None:
    assert str(hull([Interval(-0.1, 0.2), Interval(0.0, 0.3)])) == "[-0.100, 0.300]"


REPETITIONS = 150


@pytest.mark.parametrize(
    ("tasks", "n", "broken"), [(20, 8, 0.5), (60, 8, 2 / 60), (60, 1, 5 / 60), (164, 4, 0.0)]
)
def test_breakage_is_seldom_missed(tasks: int, n: int, broken: float) -> None:
    """One side misses at most 3%, plus three Monte Carlo errors; benchmarks/lift.py has the study.

    The pseudo-tasks of version 0.1.0 missed 8% of the broken suites.
    """
    rng = np.random.default_rng((tasks, n))
    missed = 0
    for _ in range(REPETITIONS):
        a = rng.beta(0.5, 0.5, tasks)
        hit = rng.random(tasks) < broken
        a = np.where(hit, 1.0, a)
        b = np.where(hit, 0.0, a)
        d = (rng.binomial(n, b) - rng.binomial(n, a)) / n
        missed += LiftSample.of(d).interval(0.025, "greater").low > -broken
    assert missed / REPETITIONS <= 0.03 + 3 * np.sqrt(0.03 * 0.97 / REPETITIONS)
