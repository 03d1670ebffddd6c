"""The linear program of the lift on these tasks, part by part against SciPy and brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binom, binomtest

from hypothesis_profiles import max_examples
from passhat.stats.compare.these_tasks import (
    _clopper_pearson,
    _log_binomial,
    _Program,
    _rates,
    _tightest,
    lift_on_these_tasks,
)
from passhat.stats.estimate.intervals.frontier import thin
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Histogram, Outcomes
from passhat.stats.outcomes.cells import cells_of


def _cells(n: int | list[int], c: list[int]) -> Histogram:
    return Outcomes.from_counts(n, c).histogram()


@pytest.mark.parametrize("tasks", [1, 7, 40])
def test_limits_on_a_count_are_scipys_at_twice_the_tail(tasks: int) -> None:
    """5% beyond each limit: the exact interval at 90%."""
    count = np.arange(tasks + 1, dtype=float)
    low, high = _clopper_pearson(count, tasks, 0.05)
    for c in range(tasks + 1):
        wanted = binomtest(c, tasks).proportion_ci(0.9, method="exact")
        assert (low[c], high[c]) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 300])
def test_log_chances_are_binomial_down_to_a_floor(n: int) -> None:
    rates = np.array([0.0, 1e-4, 0.3, 1.0])
    found = _log_binomial(n, rates)
    with np.errstate(divide="ignore"):
        wanted = np.maximum(binom.logpmf(np.arange(n + 1), n, rates[:, None]), -700.0)
    assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("n", [1, 8, 500])
def test_rates_are_mirrored_from_0_to_1(n: int) -> None:
    rates = _rates(n)
    assert (rates[0], rates[-1]) == (0.0, 1.0)
    assert rates == pytest.approx(1 - rates[::-1], abs=1e-12)
    assert rates[1] == pytest.approx(0.002 / n)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
@settings(max_examples=max_examples(20))
def test_the_tightest_limits_imply_all_others(passes: list[int]) -> None:
    """Whatever the share with at most j passes: limits at all j hold if the chosen ones do."""
    n = 9
    counts = np.bincount(passes, minlength=n + 1)
    low, high = _clopper_pearson(np.cumsum(counts)[:-1].astype(float), len(passes), 0.05)
    chosen = list(_tightest(np.array(passes), n, low, high, 200))
    rng = np.random.default_rng(len(passes))
    for _ in range(60):
        below = np.cumsum(rng.dirichlet(np.full(n + 1, 0.4)))[:-1]
        kept = all(sign * below[j] <= sign * limit for j, sign, limit in chosen)
        every = bool(((low <= below) & (below <= high)).all())
        assert kept == every
    assert len(chosen) <= 2 * len(set(passes))


def _program(rows: list[list[float]], limits: list[float], firm: int) -> _Program:
    """A program whose weights sum to 1; the first rows are those that are never dropped."""
    matrix = np.array(rows).reshape(-1, len(rows[0]))
    return _Program(
        matrix[:firm],
        np.array(limits[:firm]),
        csr_array(matrix[firm:]),
        np.array(limits[firm:]),
        csr_array(np.ones((1, matrix.shape[1]))),
        np.ones(1),
    )


def test_a_program_with_a_known_answer() -> None:
    """Weights g on rates 0, 1/2, 1 with at most 30% at 1 and at least 20% at 0."""
    rates = np.array([0.0, 0.5, 1.0])
    program = _program([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]], [0.3, -0.2], firm=0)
    assert program.smallest(rates) == pytest.approx(0.0)
    assert -program.smallest(-rates) == pytest.approx(0.3 + 0.5 * 0.5)


def test_limits_that_contradict_each_other_are_dropped_and_firm_ones_are_not() -> None:
    rates = np.array([0.0, 1.0])
    rows = [[0.0, 1.0], [1.0, 0.0]]  # at most 30% at 1 and at most 30% at 0
    soft = _program(rows, [0.3, 0.3], firm=0)
    # No rates meet both, so neither says anything.
    assert soft.smallest(rates) == pytest.approx(0.0, abs=1e-3)
    assert -soft.smallest(-rates) == pytest.approx(1.0, abs=1e-3)
    half_firm = _program(rows, [0.3, 0.3], firm=1)
    assert -half_firm.smallest(-rates) == pytest.approx(0.3, abs=2e-3)
    firm = _program(rows, [0.3, 0.3], firm=2)
    assert firm.smallest(rates) == -1.0  # the least that any lift can be


def test_the_end_of_a_lift_misses_no_more_than_it_should_where_one_agent_always_passes() -> None:
    """Exact over all outcomes of 5 tasks x 4 at the rates that a search found the worst.

    With limits at a fixed 5% the last of them misses in .05 of runs instead of .0005.
    """
    for tail, rate in ((0.025, 0.6), (0.0005, 0.43)):
        chance = binom.pmf(np.arange(5), 4, rate)
        missed = 0.0
        for passes in combinations_with_replacement(range(5), 5):
            low = lift_on_these_tasks(
                _cells(4, [4] * 5), _cells(4, list(passes)), PassHat(4), tail, sign=1
            ).low
            ways = factorial(5) / np.prod([factorial(passes.count(c)) for c in range(5)])
            missed += (rate**4 - 1 < low - 1e-9) * float(ways * np.prod(chance[list(passes)]))
        assert missed <= 1.1 * tail


def test_thinning_keeps_tasks_and_shares_and_leaves_small_suites_alone() -> None:
    small = _cells([4, 8], [1, 8])
    assert thin(small, 4) is small
    huge = _cells([10_000, 10_000, 500], [2_500, 10_000, 100])
    found = thin(huge, 4)
    assert found.size == 3
    assert int(found.n.max()) == 2_000
    shares = sorted((found.c / found.n).tolist())
    assert shares == pytest.approx([0.2, 0.25, 1.0])
    # Two tasks that become one cell are counted twice.
    joined = thin(_cells([10_000, 10_000], [2_500, 2_501]), 1)
    assert (joined.c.tolist(), joined.tasks.tolist()) == ([500], [2])
    assert int(thin(_cells(100_000, [7]), 1_000).n.max()) == 8_000  # room for k


@pytest.mark.parametrize("sign", [1, -1])
def test_one_end_is_that_of_both(sign: int) -> None:
    a, b = _cells(4, [4, 4, 2, 0, 1, 3]), _cells(4, [4, 3, 2, 1, 3, 4])
    both = lift_on_these_tasks(a, b, PassHat(2), 0.05)
    one = lift_on_these_tasks(a, b, PassHat(2), 0.05, sign=sign)
    if sign > 0:
        assert (one.low, one.high) == (both.low, 1.0)
    else:
        assert (one.low, one.high) == (-1.0, both.high)
    swapped = lift_on_these_tasks(b, a, PassHat(2), 0.05)
    assert (-swapped.high, -swapped.low) == pytest.approx((both.low, both.high), abs=1e-6)


def test_a_smaller_tail_is_a_wider_interval() -> None:
    a, b = _cells(4, [4, 4, 2, 0, 1, 3]), _cells(4, [4, 3, 2, 1, 3, 4])
    ends = [lift_on_these_tasks(a, b, PassHat(1), tail) for tail in (0.5, 0.1, 0.025, 0.005)]
    lows, highs = [end.low for end in ends], [end.high for end in ends]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    over_half = lift_on_these_tasks(a, b, PassHat(1), 0.9)
    assert (over_half.low, over_half.high) == pytest.approx((lows[0], highs[0]))


@pytest.mark.parametrize("c", [4, 7])
def test_counts_without_any_spread_do_not_make_a_lift_certain(c: int) -> None:
    """30 tasks x 8 with the same count each: the interval was 0.2 points wide, not 19."""
    same = cells_of(np.full(30, 8), np.full(30, c))
    ends = lift_on_these_tasks(same, same, PassHat(1), 0.025)
    noise = np.sqrt(2 * (c / 8) * (1 - c / 8) / 240)
    assert ends.high > 1.9 * noise
    assert ends.low < -1.9 * noise
