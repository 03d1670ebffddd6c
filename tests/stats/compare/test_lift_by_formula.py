"""The parts of the lift's interval against closed forms: correlation, joint tails, planning."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import beta, multivariate_normal, norm

from hypothesis_profiles import max_examples
from passhat.stats.compare.lift import (
    Interval,
    LiftSample,
    _correlation,
    _root,
    cluster_rows,
    expected_bound,
    hull,
    simultaneous_tail,
    tail_of,
)


@given(
    st.lists(
        st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(-4, 4)),
        min_size=2,
        max_size=12,
    ),
    st.integers(1, 5),
)
@settings(max_examples=max_examples(30))
def test_the_correlation_is_numpys_with_one_unseen_task(
    rows: list[tuple[int, int, int]], size: int
) -> None:
    """The unseen task adds 1/T to every variance and nothing to a covariance."""
    d = np.array(rows) / 4
    covariance = np.cov(d.T, bias=True) + np.eye(3) / len(d)
    spread = np.sqrt(np.diag(covariance))
    wanted = covariance / np.outer(spread, spread)
    parts = [d[start : start + size] for start in range(0, len(d), size)]
    assert _correlation(parts) == pytest.approx(wanted, abs=1e-12)


def test_the_root_of_a_correlation_gives_it_back() -> None:
    singular = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for correlation in (np.eye(3), singular, np.array([[1.0, 0.4], [0.4, 1.0]])):
        root = _root(correlation)
        assert root @ root.T == pytest.approx(correlation, abs=1e-12)


@pytest.mark.parametrize("columns", [2, 5, 10])
def test_columns_without_correlation_get_sidaks_tail(columns: int) -> None:
    """Orthogonal columns of +1 and -1: each interval has (1 + level^(1/m)) / 2 below its end."""
    hadamard = np.array([[1.0]])
    while len(hadamard) < 16:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    d = hadamard[:, 1 : columns + 1]
    assert _correlation([d]) == pytest.approx(np.eye(columns), abs=1e-12)
    for level in (0.8, 0.95):
        both = simultaneous_tail(d, level, "two-sided")
        assert both == pytest.approx((1 - level ** (1 / columns)) / 2, rel=0.08)
        one = simultaneous_tail(d, level, "greater")
        assert one == pytest.approx(1 - level ** (1 / columns), rel=0.08)


@pytest.mark.parametrize("shared", [200, 320, 396])
def test_two_correlated_columns_get_the_tail_of_the_bivariate_normal(shared: int) -> None:
    """The quantile q with P(|X| < q, |Y| < q) = .95, by SciPy's distribution."""
    rng = np.random.default_rng(1)
    first = rng.choice([-1.0, 1.0], 400)
    second = np.where(np.arange(400) < shared, first, rng.choice([-1.0, 1.0], 400))
    d = np.stack([first, second], axis=1)
    rho = float(_correlation([d])[0, 1])
    normal = multivariate_normal([0, 0], [[1, rho], [rho, 1]])

    def inside(q: float) -> float:
        return float(normal.cdf([q, q], lower_limit=[-q, -q])) - 0.95

    q = brentq(inside, 1.5, 3.0)
    assert simultaneous_tail(d, 0.95, "two-sided") == pytest.approx(ndtr(-q), rel=0.06)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_joint_tail_lies_between_one_interval_and_bonferroni(alternative: str) -> None:
    rng = np.random.default_rng(2)
    for columns in (1, 2, 6):
        d = rng.integers(-2, 3, (30, columns)) / 2
        alone = tail_of(0.9, alternative)  # type: ignore[arg-type]
        found = simultaneous_tail(d, 0.9, alternative)  # type: ignore[arg-type]
        assert alone / columns <= found <= alone


def test_rows_of_clusters_are_sums_of_deviations() -> None:
    d = np.array([[1.0, 0.0], [0.0, 0.5], [0.5, 0.5], [-0.5, 0.0]])
    found = cluster_rows(d, ["b", "a", "b", "a"])
    assert found == pytest.approx(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    assert found.sum(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert cluster_rows(d, None) is d
    own = cluster_rows(d, ["w", "x", "y", "z"])
    assert own == pytest.approx(d - d.mean(axis=0))


def _exact_tail(values: list[Fraction], x: Fraction) -> Fraction:
    """P(weighted mean > x) for uniform weights on a simplex whose corners are all different.

    A mean with uniform Dirichlet weights is a B-spline (Curry and Schoenberg 1966): the sum of
    (u - x)^T / prod (u - other) over the corners u above x.
    """
    total = Fraction(0)
    for u in values:
        if u > x:
            product = Fraction(1)
            for other in values:
                if other != u:
                    product *= u - other
            total += (u - x) ** (len(values) - 1) / product
    return total


@pytest.mark.parametrize(
    "d",
    [
        ["1/2"],
        ["-1/4", "1/2"],
        ["0", "1/3", "-1/3", "5/6"],
        ["1/8", "3/8", "-5/8", "7/8", "1/4", "-1/2"],
        ["0", "1/10", "2/10", "3/10", "4/10", "5/10", "6/10", "7/10", "-1/10"],
    ],
)
@pytest.mark.parametrize("tail", [0.025, 0.2])
def test_both_ends_by_exact_splines(d: list[str], tail: float) -> None:
    """No numerical integration: fractions at the reported ends give the tail back."""
    shares = [(1 + Fraction(text)) / 2 for text in d]
    found = LiftSample.of(np.array([float(Fraction(text)) for text in d])).interval(tail)
    low, high = (Fraction(1 + end) / 2 for end in (found.low, found.high))
    assert float(1 - _exact_tail([*shares, Fraction(0)], low)) == pytest.approx(tail, rel=1e-6)
    assert float(_exact_tail([*shares, Fraction(1)], high)) == pytest.approx(tail, rel=1e-6)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=max_examples(20))
def test_wins_and_ties_without_a_loss_are_a_clopper_pearson_bound(
    wins: int, ties: int, losses: int
) -> None:
    """With differences of 0 and 1 only, (1 + d) / 2 is 1/2 or 1; with -1 and 1 it is binary."""
    if wins + losses:
        d = np.array([1.0] * wins + [-1.0] * losses)
        found = LiftSample.of(d).interval(0.025)
        low = 0.0 if wins == 0 else float(beta.ppf(0.025, wins, losses + 1))
        high = 1.0 if losses == 0 else float(beta.ppf(0.975, wins + 1, losses))
        assert (found.low, found.high) == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-6)
    if ties:
        level = LiftSample.of(np.zeros(ties)).interval(0.025)
        assert level.low == pytest.approx(0.025 ** (1 / ties) - 1, abs=1e-6)
        assert level.high == pytest.approx(-level.low, abs=1e-9)


@pytest.mark.parametrize(("tasks", "lift", "tail"), [(50, 0.2, 0.025), (400, 0.05, 0.05)])
def test_the_expected_bound_is_cornish_fisher_on_three_moments(
    tasks: int, lift: float, tail: float
) -> None:
    """Values d at +-sd around the lift and one unseen task at -1, moments summed one by one."""
    sd = 0.3
    values = np.array([lift - sd] * (tasks // 2) + [lift + sd] * (tasks // 2) + [-1.0])
    mean = values.mean()
    deviations = values - mean
    # Gamma(1) weights: variance sum d^2 / N^2, third cumulant 2 sum d^3 / N^3.
    spread = math.sqrt(float(deviations @ deviations)) / len(values)
    third = 2 * float((deviations**3).sum()) / len(values) ** 3
    unseen_only = 2 * float(deviations[-1] ** 3) / len(values) ** 3
    q = float(norm.ppf(tail))
    wanted = mean + q * spread + (q**2 - 1) / 6 * unseen_only / spread**2
    assert expected_bound(tasks, lift, sd**2, tail) == pytest.approx(wanted, abs=1e-9)
    # The seen tasks are taken to be symmetric, which moves the bound by little.
    assert abs(third - unseen_only) / spread**2 < 0.02


def test_more_tasks_raise_the_expected_bound_towards_the_lift() -> None:
    bounds = [expected_bound(tasks, 0.1, 0.2, 0.025) for tasks in (10, 100, 1_000, 10**6)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(0.1, abs=0.002)
    assert expected_bound(100, 0.1, 0.2, 0.005) < bounds[1] < expected_bound(100, 0.1, 0.1, 0.025)


def test_a_hull_is_as_wide_as_its_parts_and_one_part_is_itself() -> None:
    parts = [Interval(-0.2, 0.1), Interval(0.0, 0.4), Interval(-0.1, -0.05)]
    assert hull(parts) == Interval(-0.2, 0.4)
    assert hull(iter(parts[1:2])) == parts[1]
