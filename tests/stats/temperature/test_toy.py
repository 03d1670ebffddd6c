"""The toy: its generator, its task sets, and the best temperature for every k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import InvalidValue
from passhat.stats.temperature import TaskSet, best_temperatures, expected_pass_at_k, family, shape
from passhat.stats.temperature.optimum import (
    log_chances,
    log_failure_at_k,
    log_normalizer,
    variance,
)


@given(st.floats(0.01, 50.0))
def test_the_generator_agrees_with_a_long_sum(temperature: float) -> None:
    c = np.arange(-200, 201)
    weight = np.exp(-(c**2) / (2 * temperature))
    t = np.array(temperature)
    assert log_normalizer(t) == pytest.approx(np.log(weight.sum()), rel=1e-13, abs=1e-13)
    assert variance(t) == pytest.approx(weight @ c**2 / weight.sum(), rel=1e-10)


def test_both_sums_meet_where_they_are_switched() -> None:
    edge = 1 / (2 * np.pi)
    below, above = np.array([edge * (1 - 1e-12), edge * (1 + 1e-12)])
    assert log_normalizer(below) == pytest.approx(log_normalizer(above), rel=1e-10)
    assert variance(below) == pytest.approx(variance(above), rel=1e-10)


def test_failure_keeps_its_digits_where_success_is_almost_certain() -> None:
    _, log_fail = log_chances(np.array([0.0]), np.array([0.01]))
    assert log_fail[0] == pytest.approx(np.log(2) - 50, rel=1e-12)


SPOTS = [
    ("gaussian", 1, 2, 0.4623099155),
    ("gaussian", 8, 32, 47.08870849),
    ("gaussian", 512, 8192, 517674.1069),
    ("exponential", 1, 2, 0.2512448801),
    ("exponential", 8, 32, 32.83227281),
    ("power", 4, 16, 1.886726945),
    ("power", 2, 256, 274.4740517),
    ("power", 1.5, 8192, 242600.3872),
]


@pytest.mark.parametrize(("name", "parameter", "k", "expected"), SPOTS)
def test_spot_values(name: str, parameter: float, k: int, expected: float) -> None:
    (best,) = best_temperatures(family(name, parameter), [k])
    assert best.temperature == pytest.approx(expected, rel=5e-10)


def test_one_task_has_one_temperature_for_every_k() -> None:
    for c, excess in ((1, 2.1e-7), (2, 0.0), (7, 0.0), (300, 0.0)):
        for best in best_temperatures(TaskSet.of(np.array([c, -c])), [1, 5, 1000, 10**6]):
            assert best.temperature / c**2 - 1 == pytest.approx(excess, abs=1e-8)


def test_the_hardest_task_is_all_that_counts_in_the_end() -> None:
    tasks = TaskSet.of(np.array([0, 1, 2, 5, 30]))
    found = [best.temperature for best in best_temperatures(tasks, [2, 50, 10**4, 10**6, 10**9])]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(900, rel=1e-9)


def test_cold_is_best_for_one_attempt_and_for_lone_hard_tasks() -> None:
    assert best_temperatures(family("gaussian", 8), [1])[0].temperature == 0
    # Reaching c = 30 costs more than it is worth until k is large.
    lonely = TaskSet.of(np.array([0] * 99 + [30]))
    cold, hot = best_temperatures(lonely, [2, 10_000])
    assert cold.temperature == 0
    assert cold.value == pytest.approx(0.99)
    assert hot.temperature > 100


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=12),
    st.sampled_from([1, 2, 3, 7, 30, 200]),
)
def test_no_temperature_on_a_fine_grid_fails_less(tasks: list[int], k: int) -> None:
    found = TaskSet.of(np.array(tasks))
    (best,) = best_temperatures(found, [k])
    grid = np.geomspace(0.05, 4000, 800)
    smallest = float(log_failure_at_k(found, k, grid).min())
    mine = np.log1p(-best.value) if best.value < 0.9 else None
    if best.temperature > 0:
        mine = float(log_failure_at_k(found, k, best.temperature))
    if mine is not None:
        assert mine <= smallest + 1e-6


def test_the_value_alone_would_be_maximised_on_a_plateau() -> None:
    tasks, k = family("gaussian", 2), 2000
    (best,) = best_temperatures(tasks, [k])
    grid = np.geomspace(1, 1e4, 2000)
    value = np.asarray(expected_pass_at_k(tasks, k, grid))
    flat = grid[value == value.max()]
    assert flat[-1] / flat[0] > 5
    assert flat[0] < best.temperature < flat[-1]


def test_sampled_sets_come_close_to_their_population() -> None:
    population = family("exponential", 8)
    sampled = population.sample(20_000, np.random.default_rng(3))
    assert sampled.weight.sum() == pytest.approx(1)
    ours, theirs = (best_temperatures(tasks, [16])[0] for tasks in (sampled, population))
    assert ours.temperature == pytest.approx(theirs.temperature, rel=0.05)


def test_large_sets_are_thinned_for_the_scan_only() -> None:
    whole = shape("Student t3", 256)
    assert len(whole.difficulty) > 20_000
    kept = whole.difficulty <= 1900
    small = TaskSet(whole.difficulty[kept], whole.weight[kept] / whole.weight[kept].sum())
    # The far tail hardly matters at small k, so both ways of solving must agree.
    for a, b in zip(*(best_temperatures(t, [64, 256]) for t in (whole, small)), strict=True):
        assert a.temperature == pytest.approx(b.temperature, rel=0.02)


def test_what_cannot_be_asked() -> None:
    for broken in (
        lambda: family("uniform", 1),
        lambda: family("gaussian", 0),
        lambda: shape("square", 1),
        lambda: TaskSet.of(np.array([], np.int64)),
        lambda: best_temperatures(family("gaussian", 1), []),
        lambda: best_temperatures(family("gaussian", 1), [0]),
        lambda: expected_pass_at_k(family("gaussian", 1), 1, 0.0),
    ):
        with pytest.raises(InvalidValue):
            broken()
