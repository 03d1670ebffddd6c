"""The exact intervals of a success rate, against their definitions in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.estimate.intervals.these_tasks import TheseTasks, clopper_pearson
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Outcomes
from passhat.stats.terms import Terms


def _chances(n: int, p: Fraction) -> list[Fraction]:
    return [comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]


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
    low, high = clopper_pearson(c, n, level)
    other = clopper_pearson(n - c, n, level)
    assert other == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert 0 <= low <= c / n <= high <= 1


@given(counts)
def test_a_higher_level_holds_a_lower_one(at: tuple[int, int]) -> None:
    ends = [clopper_pearson(*at, level) for level in (0.5, 0.8, 0.95, 0.99)]
    for inner, outer in pairwise(ends):
        assert outer[0] <= inner[0] + 1e-9
        assert inner[1] <= outer[1] + 1e-9


@given(st.integers(1, 60), levels)
def test_one_more_pass_moves_both_ends_up(n: int, level: float) -> None:
    ends = [clopper_pearson(c, n, level) for c in range(n + 1)]
    for before, after in pairwise(ends):
        assert after[0] >= before[0] - 1e-9
        assert after[1] >= before[1] - 1e-9


@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_a_huge_n_is_close_to_the_normal_interval(n: int) -> None:
    low, high = clopper_pearson(n // 4, n, 0.95)
    half = 1.96 * (0.25 * 0.75 / n) ** 0.5
    assert (low, high) == pytest.approx((0.25 - half, 0.25 + half), abs=2 / n)


def test_the_rule_of_three() -> None:
    """No pass in n attempts: at 95% one-sided the rate is below about 3 / n."""
    for n in (30, 100, 1000):
        assert clopper_pearson(0, n, 0.9)[1] == pytest.approx(3 / n, rel=0.06)
        assert clopper_pearson(0, n, 0.9)[1] == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)


def _one_end_misses(rates: list[float], level: float) -> float:
    """The larger chance of a miss of either end with one attempt at each of these tasks."""
    chances = [1.0]
    for rate in rates:
        failed, passed = [*chances, 0.0], [0.0, *chances]
        chances = [(1 - rate) * a + rate * b for a, b in zip(failed, passed, strict=True)]
    truth, below, above = sum(rates) / len(rates), 0.0, 0.0
    for passes, chance in enumerate(chances):
        c = [1] * passes + [0] * (len(rates) - passes)
        cells = Outcomes.from_counts(1, c).histogram()
        low, high = TheseTasks(cells, Terms(level=level)).interval(PassHat(1)) or (0.0, 1.0)
        below, above = below + chance * (truth < low), above + chance * (truth > high)
    return max(below, above)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("tasks", [1, 2, 7, 12])
def test_each_end_of_one_attempt_per_task_keeps_its_half_of_the_error(
    tasks: int, level: float
) -> None:
    """Equal rates, and rates that differ: all tasks but one always pass, or never."""
    tail = (1 - level) / 2
    for rate in [i / 101 for i in range(101)] + [1 - 1.01 * tail, 1.01 * tail, 1 - tail / tasks]:
        for others in (0.0, rate, 1.0):
            assert _one_end_misses([rate] + [others] * (tasks - 1), level) <= tail + 1e-9


@pytest.mark.parametrize("tasks", [2, 5, 40])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_one_pass_and_one_failure_have_the_end_of_hoeffdings_inequality(
    tasks: int, level: float
) -> None:
    least = (1 - level) / 2 / tasks
    for passed in range(tasks + 1):
        outcomes = Outcomes.from_counts(1, [1] * passed + [0] * (tasks - passed))
        intervals = TheseTasks(outcomes.histogram(), Terms(level=level))
        low, high = intervals.one_attempt_each(PassHat(1))
        plain_low, plain_high = clopper_pearson(passed, tasks, level)
        assert low == pytest.approx(min(plain_low, least) if passed == 1 else plain_low)
        is_last = passed == tasks - 1
        assert high == pytest.approx(max(plain_high, 1 - least) if is_last else plain_high)
