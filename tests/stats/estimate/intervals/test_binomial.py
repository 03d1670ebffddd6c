"""The exact intervals of a success rate, against their definitions in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.estimate.intervals.these_tasks import (
    binomial_interval,
    blaker,
    clopper_pearson,
)
from passhat.stats.terms import Terms


def _chances(n: int, p: Fraction) -> list[Fraction]:
    return [comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]


def _acceptability(c: int, n: int, p: Fraction) -> Fraction:
    """Blaker (2000): the smaller tail at c, and the largest other tail that is not above it."""
    chances = _chances(n, p)
    lower = sum(chances[: c + 1], Fraction(0))
    upper = sum(chances[c:], Fraction(0))
    smaller = min(lower, upper)
    if upper <= lower:
        others = [sum(chances[: y + 1], Fraction(0)) for y in range(c)]
    else:
        others = [sum(chances[y:], Fraction(0)) for y in range(c + 1, n + 1)]
    other = max((tail for tail in others if tail <= smaller), default=Fraction(0))
    return min(smaller + other, Fraction(1))


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("level", [Fraction(4, 5), Fraction(19, 20)])
def test_blaker_accepts_what_its_definition_accepts(n: int, level: Fraction) -> None:
    """All rates on a grid: those inside are the hull of those that are accepted."""
    grid = [Fraction(i, 120) for i in range(1, 120)]
    for c in range(n + 1):
        low, high = blaker(c, n, float(level))
        accepted = [p for p in grid if _acceptability(c, n, p) > 1 - level]
        assert low <= float(accepted[0]) + 1e-12
        assert high >= float(accepted[-1]) - 1e-12
        # Nothing beyond the hull, up to one step of the grid.
        assert low >= float(accepted[0]) - 1 / 120 - 1e-12
        assert high <= float(accepted[-1]) + 1 / 120 + 1e-12


@pytest.mark.parametrize(("c", "n"), [(1, 5), (3, 9), (7, 9), (4, 4), (0, 6)])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_clopper_pearson_leaves_its_tail_at_each_end(c: int, n: int, level: float) -> None:
    low, high = clopper_pearson(c, n, level)
    tail = (1 - level) / 2
    if c > 0:
        above = sum(_chances(n, Fraction(low))[c:])
        assert float(above) == pytest.approx(tail, rel=1e-9)
    else:
        assert low == 0.0
    if c < n:
        below = sum(_chances(n, Fraction(high))[: c + 1])
        assert float(below) == pytest.approx(tail, rel=1e-9)
    else:
        assert high == 1.0


counts = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])


@given(counts, levels)
def test_failures_are_the_mirror_of_passes(at: tuple[int, int], level: float) -> None:
    c, n = at
    for method in (blaker, clopper_pearson):
        low, high = method(c, n, level)
        other = method(n - c, n, level)
        assert other == pytest.approx((1 - high, 1 - low), abs=1e-9)
        assert 0 <= low <= c / n <= high <= 1


@given(counts)
def test_a_higher_level_holds_a_lower_one(at: tuple[int, int]) -> None:
    """Blaker's intervals are nested, unlike those of other exact methods."""
    for method in (blaker, clopper_pearson):
        ends = [method(*at, level) for level in (0.5, 0.8, 0.95, 0.99)]
        for inner, outer in pairwise(ends):
            assert outer[0] <= inner[0] + 1e-9
            assert inner[1] <= outer[1] + 1e-9


@given(st.integers(1, 60), levels)
def test_one_more_pass_moves_both_ends_up(n: int, level: float) -> None:
    for method in (blaker, clopper_pearson):
        ends = [method(c, n, level) for c in range(n + 1)]
        for before, after in pairwise(ends):
            assert after[0] >= before[0] - 1e-9
            assert after[1] >= before[1] - 1e-9


@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_a_huge_n_is_close_to_the_normal_interval(n: int) -> None:
    for method in (blaker, clopper_pearson):
        low, high = method(n // 4, n, 0.95)
        half = 1.96 * (0.25 * 0.75 / n) ** 0.5
        assert (low, high) == pytest.approx((0.25 - half, 0.25 + half), abs=2 / n)


def test_the_rule_of_three() -> None:
    """No pass in n attempts: at 95% one-sided the rate is below about 3 / n."""
    for n in (30, 100, 1000):
        assert clopper_pearson(0, n, 0.9)[1] == pytest.approx(3 / n, rel=0.06)
        assert clopper_pearson(0, n, 0.9)[1] == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)


def test_equal_tails_choose_clopper_pearson() -> None:
    assert binomial_interval(3, 9, Terms(equal_tails=True)) == clopper_pearson(3, 9, 0.95)
    assert binomial_interval(3, 9, Terms()) == blaker(3, 9, 0.95)
    assert binomial_interval(3, 9, Terms(level=0.8)) == blaker(3, 9, 0.8)
