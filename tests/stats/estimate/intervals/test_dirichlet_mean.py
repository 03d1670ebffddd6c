"""Quantiles of a Dirichlet-weighted mean against distributions that have a formula."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from passhat.stats.estimate.intervals.dirichlet_mean import lower_quantile

tails = st.sampled_from([0.5, 0.1, 0.025, 0.005, 1e-4])
values = st.floats(1e-3, 1.0)


def _one(cells: list[float], shapes: list[float], tail: float, **options: object) -> float:
    found = lower_quantile(np.array([cells]), np.array([shapes]), tail, **options)  # type: ignore[arg-type]
    return float(found[0])


@given(values, st.integers(1, 500), tails)
def test_one_value_is_a_power_of_the_tail(value: float, tasks: int, tail: float) -> None:
    """X = u Beta(h, 1), whose quantile is u tail^(1/h)."""
    assert _one([value], [tasks], tail) == pytest.approx(value * tail ** (1 / tasks), rel=1e-7)


@given(values, st.integers(1, 60), st.floats(0.05, 40), tails)
def test_one_cluster_size_has_a_closed_form(
    value: float, clusters: int, ratio: float, tail: float
) -> None:
    """P(X <= x) = E exp(-w (u - x) / (r x)) for w ~ Gamma(h), and that is (1 + t)^-h."""
    wanted = value / (1 + ratio * (tail ** (-1 / clusters) - 1))
    found = _one([value], [clusters], tail, sizes=np.array([[1.0]]), unseen_size=ratio)
    assert found == pytest.approx(wanted, rel=1e-6)
    # Only the ratio of the sizes counts.
    same = _one([value], [clusters], tail, sizes=np.array([[7.0]]), unseen_size=7 * ratio)
    assert same == pytest.approx(found, rel=1e-7)


@given(st.floats(0.05, 0.9), st.floats(0.01, 0.99), tails)
def test_two_tasks_and_the_unseen_one_fill_a_triangle(low: float, gap: float, tail: float) -> None:
    """Three equal shapes weigh uniformly over a triangle: its areas are quadratic in x."""
    a, b = low, low + (1 - low) * gap

    def cdf(x: float) -> float:
        return x * x / (a * b) if x <= a else 1 - (b - x) ** 2 / (b * (b - a))

    found = _one([a, b], [1, 1], tail)
    assert cdf(found) == pytest.approx(tail, rel=1e-6)


@given(st.integers(0, 80), st.integers(0, 80), tails, st.sampled_from([0.5, 1.0, 2.0]))
def test_passes_and_failures_are_a_beta_variable(
    passed: int, failed: int, tail: float, unseen: float
) -> None:
    found = _one([1.0, 0.0], [passed, failed], tail, unseen=unseen)
    wanted = 0.0 if passed == 0 else float(beta.ppf(tail, passed, failed + unseen))
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-15)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6),
    st.data(),
    st.floats(1e-6, 1.0),
)
def test_it_scales_with_the_values_and_moves_with_the_tail(
    cells: list[float], data: st.DataObject, factor: float
) -> None:
    shapes = [float(data.draw(st.integers(0, 9))) for _ in cells]
    if sum(shapes) == 0:
        shapes[0] = 1.0
    quantiles = [_one(cells, shapes, tail) for tail in (0.005, 0.025, 0.1, 0.5)]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(quantiles))
    scaled = _one([factor * cell for cell in cells], shapes, 0.025)
    assert scaled == pytest.approx(factor * quantiles[1], rel=1e-6, abs=1e-300)
    top = max(cell for cell, shape in zip(cells, shapes, strict=True) if shape > 0)
    assert 0 <= quantiles[0] <= quantiles[-1] <= top


def test_rows_do_not_depend_on_their_neighbors() -> None:
    """Rows are solved in blocks; one alone must give the same number to the last bit."""
    rng = np.random.default_rng(3)
    cells = rng.random((40, 5))
    shapes = rng.integers(0, 30, (40, 5)).astype(float) + np.eye(5)[rng.integers(0, 5, 40)]
    together = lower_quantile(cells, shapes, 0.025)
    alone = [_one(cells[i].tolist(), shapes[i].tolist(), 0.025) for i in range(40)]
    assert together.tolist() == alone


def test_splitting_a_cell_changes_nothing() -> None:
    """Two cells with the same value are one cell that holds the tasks of both."""
    joined = _one([0.2, 0.7, 1.0], [5, 9, 3], 0.025)
    split = _one([0.2, 0.7, 0.7, 1.0, 1.0], [5, 4, 5, 1, 2], 0.025)
    assert split == pytest.approx(joined, rel=1e-8)


@pytest.mark.parametrize("tasks", [1, 10, 1_000, 1_000_000])
def test_many_and_few_tasks_near_the_normal_quantile(tasks: int) -> None:
    """With half of the values at 1: mean p, variance p (1 - p) / (T + 2), as Beta has it."""
    found = _one([1.0, 0.0], [tasks / 2, tasks / 2], 0.025)
    assert found == pytest.approx(float(beta.ppf(0.025, tasks / 2, tasks / 2 + 1)), rel=1e-6)
    if tasks >= 1_000:
        normal = 0.5 - 1.959964 * math.sqrt(0.25 / tasks)
        assert found == pytest.approx(normal, abs=2 / tasks)
