"""The toy's best temperature against long sums, a fine search and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from passhat.errors import InvalidValue
from passhat.stats.temperature.optimum import (
    _at_zero,
    _grid,
    _in_reach,
    _log_sum,
    _slope,
    _thin,
    best_temperatures,
    expected_pass_at_k,
    log_chances,
    log_failure_at_k,
    log_normalizer,
    variance,
)
from passhat.stats.temperature.tasks import TaskSet, family

LONG = np.arange(-4000, 4001, dtype=float)
"""Integers whose sum is as good as endless for T up to 10^5."""


@pytest.mark.parametrize("t", [0.01, 0.1, 0.159, 0.16, 1.0, 40.0, 1e4])
def test_normalizer_and_variance_are_those_of_a_long_sum(t: float) -> None:
    weight = np.exp(-(LONG**2) / (2 * t))
    z = weight.sum()
    at = np.array([t])
    assert log_normalizer(at)[0] == pytest.approx(np.log(z), abs=1e-12)
    assert variance(at)[0] == pytest.approx((weight @ LONG**2) / z, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("t", [0.05, 0.5, 9.0])
def test_chances_add_up_to_one_and_failures_are_the_rest(t: float) -> None:
    c = np.arange(0.0, 60.0)
    log_pass, log_fail = log_chances(c, np.array([t]))
    total = np.exp(log_pass[0]) + 2 * np.exp(log_pass[1:]).sum()
    assert total == pytest.approx(1.0, abs=1e-12)
    assert np.exp(log_fail) == pytest.approx(1 - np.exp(log_pass), abs=1e-12)


def test_the_failure_of_a_sure_task_keeps_its_digits() -> None:
    """At T = .02 the task c = 0 fails with chance 2 exp(-25) and a bit: 1 - p would lose it."""
    _, log_fail = log_chances(np.array([0.0]), np.array([0.02]))
    excess = 2 * (np.exp(-25.0) + np.exp(-100.0))
    assert log_fail[0] == pytest.approx(np.log(excess) - np.log1p(excess), rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_failure_is_the_mean_over_tasks(k: int) -> None:
    tasks = TaskSet.of(np.array([0, 1, 1, -2, 5]))
    p = np.exp(log_chances(np.array([0.0, 1.0, 1.0, 2.0, 5.0]), np.array([2.0]))[0])
    wanted = float(np.mean((1 - p) ** k))
    assert np.exp(log_failure_at_k(tasks, k, 2.0)) == pytest.approx(wanted, rel=1e-12)
    assert expected_pass_at_k(tasks, k, 2.0) == pytest.approx(1 - wanted, rel=1e-9)


def test_k_and_temperature_broadcast() -> None:
    tasks = family("gaussian", 2)
    ks, temperatures = np.array([1, 4]), np.array([[0.5], [2.0], [8.0]])
    table = expected_pass_at_k(tasks, ks, temperatures)
    assert np.shape(table) == (3, 2)
    for i in range(3):
        for j in range(2):
            alone = expected_pass_at_k(tasks, int(ks[j]), float(temperatures[i, 0]))
            assert np.asarray(table)[i, j] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    ("numbers", "k"), [([1, 2, 3], 4), ([0, 1, 5, 5], 16), ([2, 9], 3), ([7], 1), ([0, 3, 3], 2)]
)
def test_the_best_temperature_is_where_a_fine_search_finds_it(numbers: list[int], k: int) -> None:
    tasks = TaskSet.of(np.array(numbers))
    (found,) = best_temperatures(tasks, [k])
    grid = np.linspace(np.log(0.02), np.log(400), 4000)
    failures = np.array([float(log_failure_at_k(tasks, k, float(np.exp(x)))) for x in grid[::8]])
    near = float(grid[::8][failures.argmin()])
    best = minimize_scalar(
        lambda x: float(log_failure_at_k(tasks, k, float(np.exp(x)))),
        bounds=(near - 0.05, near + 0.05),
        method="bounded",
        options={"xatol": 1e-9},
    )
    if found.temperature == 0:
        assert np.log1p(-found.value) <= best.fun + 1e-9
    else:
        assert np.log(found.temperature) == pytest.approx(float(best.x), abs=1e-4)
        assert np.log1p(-found.value) == pytest.approx(float(best.fun), rel=1e-9)


def test_the_slope_has_the_sign_of_the_derivative() -> None:
    tasks = TaskSet.of(np.array([1, 2, 6]))
    for k in (1, 8):
        for t in (0.4, 1.0, 3.0, 12.0, 60.0):
            step = 1e-5
            lower, upper = (
                float(np.asarray(expected_pass_at_k(tasks, k, t * (1 + sign * step))))
                for sign in (-1, 1)
            )
            slope = float(_slope(tasks, np.array([float(k)]), np.array([t]))[0])
            assert np.sign(slope) == np.sign(upper - lower)


def test_cold_solves_the_easiest_task_only_if_it_is_zero() -> None:
    assert _at_zero(TaskSet.of(np.array([0, 0, 3]))) == pytest.approx(np.log(1 / 3))
    assert _at_zero(TaskSet.of(np.array([1, 3]))) == 0.0
    assert _at_zero(TaskSet.of(np.array([0]))) == -np.inf
    (one,) = best_temperatures(TaskSet.of(np.array([0])), [5])
    assert (one.temperature, one.value) == (0.0, 1.0)


def test_the_scan_reaches_below_the_easiest_and_above_the_hardest_task() -> None:
    grid = _grid(TaskSet.of(np.array([3, 10])))
    assert grid[0] < 9 < 100 < grid[-1]
    assert (np.diff(np.log(grid)) <= np.log(1.3) + 1e-12).all()
    assert _grid(TaskSet.of(np.array([0, 1])))[0] == pytest.approx(1 / 512)


def test_thinned_sets_keep_their_weight_and_spread() -> None:
    few = family("gaussian", 8)
    assert _thin(few) is few
    many = family("power", 2.0)
    thin = _thin(many)
    assert len(thin.difficulty) < len(many.difficulty) / 20
    assert thin.weight.sum() == pytest.approx(1.0)
    assert thin.spread == pytest.approx(many.spread, rel=1e-12)
    assert thin.difficulty[:200] == pytest.approx(many.difficulty[:200], rel=1e-12)


def test_tasks_beyond_the_reach_of_a_temperature_would_not_change_it() -> None:
    tasks = family("power", 2.0)
    near = _in_reach(tasks, 1.0)
    assert 1 <= len(near.difficulty) < 60
    assert len(_in_reach(tasks, 1e-9).difficulty) == 1  # never none
    log_pass, _ = log_chances(tasks.difficulty[len(near.difficulty) :][:1], np.array([1.0]))
    assert np.exp(log_pass[0]) < 1e-300


def test_sums_of_exponentials_neither_over_nor_underflow() -> None:
    assert _log_sum(np.array([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
    assert _log_sum(np.array([-1e6, -1e6 - 1])) == pytest.approx(-1e6 + np.log1p(np.exp(-1)))
    assert _log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert _log_sum(np.array([[0.0, -np.inf], [1.0, 1.0]])) == pytest.approx([0, 1 + np.log(2)])


@pytest.mark.parametrize(("k", "t"), [(0, 1.0), (1, 0.0), (1, -2.0), (-3, 1.0)])
def test_what_is_no_k_or_temperature_is_refused(k: int, t: float) -> None:
    with pytest.raises(InvalidValue, match="k must be at least 1"):
        log_failure_at_k(TaskSet.of(np.array([1])), k, t)
    with pytest.raises(InvalidValue, match="at least one k"):
        best_temperatures(TaskSet.of(np.array([1])), [])
