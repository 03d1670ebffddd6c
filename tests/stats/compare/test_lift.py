"""The interval of the lift: reference values, invariants, and what it says when nothing is."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import InvalidValue
from passhat.protocol import Alternative
from passhat.stats.compare import Interval, Spread
from passhat.stats.compare.lift import hull, tail_of, tasks_needed
from passhat.stats.estimate import pass_hat_k

FORTY = np.array([0.0] * 27 + [1.0] * 8 + [-1.0] * 5)

fractions = st.lists(st.integers(-8, 8).map(lambda x: x / 8), min_size=1, max_size=40)
flips = st.lists(st.sampled_from((-1.0, 0.0, 1.0)), min_size=1, max_size=40)
sides = st.sampled_from(("two-sided", "greater", "less"))


def test_the_forty_task_example() -> None:
    spread = Spread.of(FORTY)
    found = spread.interval(0.025)
    assert spread.mean == pytest.approx(0.075)
    assert (found.low, found.high) == pytest.approx((-0.108, 0.251), abs=5e-4)


def test_graded_differences_take_half_a_pseudo_task_and_t() -> None:
    d = np.array([0.5, 0.25, -0.25, 0.0, 0.5])
    m, v = d.sum() / 6, (float(d @ d) + 1) / 6 - (d.sum() / 6) ** 2
    reach = 2.7764451 * np.sqrt(v / 6)
    found = Spread.of(d).interval(0.025)
    assert (found.low, found.high) == pytest.approx((m - reach, m + reach), abs=1e-6)


@given(st.one_of(fractions, flips), sides, st.floats(0.01, 0.999))
def test_the_interval_holds_its_point_stays_in_range_and_has_width(
    d: list[float], alternative: Alternative, level: float
) -> None:
    spread = Spread.of(np.array(d))
    found = spread.interval(tail_of(level, alternative), alternative)
    assert -1 <= found.low <= spread.mean <= found.high <= 1
    if level > 0.5:
        assert found.high > found.low


@given(st.one_of(fractions, flips), sides, st.randoms())
def test_order_does_not_matter_and_swapping_sides_mirrors(
    d: list[float], alternative: Alternative, random: Random
) -> None:
    mirror: dict[Alternative, Alternative] = {"greater": "less", "less": "greater"}
    tail = tail_of(0.95, alternative)
    found = Spread.of(np.array(d)).interval(tail, alternative)
    shuffled = list(d)
    random.shuffle(shuffled)
    again = Spread.of(np.array(shuffled)).interval(tail, alternative)
    turned = Spread.of(-np.array(d)).interval(tail, mirror.get(alternative, "two-sided"))
    assert (again.low, again.high) == pytest.approx((found.low, found.high))
    assert (-turned.high, -turned.low) == pytest.approx((found.low, found.high))


def test_a_one_sided_bound_is_tighter_than_the_two_sided_one() -> None:
    spread = Spread.of(FORTY)
    assert spread.interval(0.05, "greater").low > spread.interval(0.025).low
    assert spread.interval(0.05, "greater").high == 1.0
    assert spread.interval(0.05, "less").low == -1.0


def test_one_graded_task_says_nothing() -> None:
    assert Spread.of(np.array([0.5])).interval(0.025) == Interval(-1.0, 1.0)


@pytest.mark.parametrize("bad", [[], [[0.1]], [1.5], [float("nan")]])
def test_what_are_no_differences_is_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidValue):
        Spread.of(np.array(bad))


def test_level_outside_its_range_is_refused() -> None:
    with pytest.raises(InvalidValue, match="level"):
        tail_of(95, "two-sided")


def test_tasks_needed_is_the_first_number_that_excludes_zero() -> None:
    spread = Spread.of(FORTY)
    needed = tasks_needed(spread, 0.025, "two-sided")
    assert needed is not None
    assert needed == 225

    def low(tasks: int) -> float:
        return Spread(tasks, spread.mean, spread.square, graded=False).interval(0.025).low

    assert low(needed) > 0 >= low(needed - 1)


def test_tasks_needed_knows_when_none_would_do() -> None:
    assert tasks_needed(Spread.of(np.zeros(5)), 0.025, "two-sided") is None
    assert tasks_needed(Spread.of(-FORTY), 0.05, "greater") is None
    assert tasks_needed(Spread.of(FORTY), 0.05, "less") is None
    assert tasks_needed(Spread.of(-FORTY), 0.05, "less") == 160


def test_hull_and_text() -> None:
    assert str(hull([Interval(-0.1, 0.2), Interval(0.0, 0.3)])) == "[-0.100, 0.300]"


REPETITIONS = 600


@pytest.mark.parametrize("tasks", [20, 50, 164])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (8, 4)])
@pytest.mark.parametrize("exchanged", [False, True])
def test_equal_agents_are_seldom_called_an_improvement(
    tasks: int, n: int, k: int, exchanged: bool
) -> None:
    """At most 2.5%, plus three Monte Carlo standard errors."""
    rng = np.random.default_rng((tasks, n, k, exchanged))
    a = rng.beta(0.5, 0.5, (REPETITIONS, tasks))
    b = rng.beta(0.5, 0.5, (REPETITIONS, tasks)) if exchanged else a
    values = np.asarray(pass_hat_k(n, np.arange(n + 1), k))
    d = values[rng.binomial(n, b)] - values[rng.binomial(n, a)]
    found = [Spread.of(row).interval(0.025) for row in d]
    allowance = 3 * np.sqrt(0.025 * 0.975 / REPETITIONS)
    assert np.mean([interval.low > 0 for interval in found]) <= 0.025 + allowance
    assert np.mean([interval.high < 0 for interval in found]) <= 0.025 + allowance
