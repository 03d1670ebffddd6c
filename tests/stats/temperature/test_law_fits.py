"""Laws fitted to points that follow one exactly, and what is left out of a fit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat._serialize import to_data
from passhat.errors import InvalidValue
from passhat.stats.temperature import Point, fit_law, fit_log_logit
from passhat.stats.temperature.tasks import SHAPES, TaskSet, family, shape


def _points(
    factor: float, a: float, b: float, *, value: float = 0.5, ks: tuple[int, ...] = (2, 4, 8, 32)
) -> list[Point]:
    return [
        Point("set", spread, k, factor * k**a * spread**b, value)
        for spread in (1.0, 4.0, 16.0)
        for k in ks
    ]


@given(st.floats(0.01, 10), st.floats(-2, 2), st.floats(-2, 2))
def test_an_exact_law_is_found_to_every_digit(factor: float, a: float, b: float) -> None:
    if abs(a) < 1e-3 and abs(b) < 1e-3:
        return  # constant: nothing to explain
    law = fit_law(_points(factor, a, b), "exact")
    assert law.factor == pytest.approx(factor, rel=1e-8)
    assert (law.k_exponent, law.spread_exponent) == pytest.approx((a, b), abs=1e-8)
    assert law.exponent_sum == pytest.approx(a + b, abs=1e-8)
    assert law.r_squared == pytest.approx(1.0, abs=1e-6)
    assert law.points == 12
    assert str(law).endswith("12 points")


@pytest.mark.parametrize(
    ("value", "inside"), [(0.03, False), (0.031, True), (0.979, True), (0.98, False), (1.0, False)]
)
def test_the_regime_leaves_out_its_ends(value: float, inside: bool) -> None:
    (point, *_) = _points(1.0, 1.0, 1.0, value=value)
    assert point.in_regime is inside
    assert to_data(point)["in_regime"] is inside


def test_points_outside_the_regime_or_at_temperature_zero_change_nothing() -> None:
    good = _points(0.3, 0.7, 1.3)
    wild = [
        Point("set", 4.0, 64, 1e6, 0.99),  # pass@k near 1
        Point("set", 4.0, 64, 1e6, 0.01),  # and near 0
        Point("set", 4.0, 1, 1e6, 0.5),  # k = 1
        Point("set", 4.0, 64, 0.0, 0.5),  # T* = 0 has no logarithm
    ]
    assert fit_law([*good, *wild]) == fit_law(good)
    later = fit_law([*good, *wild], k_from=8)
    assert later.points == 6
    assert later.k_exponent == pytest.approx(0.7)


@pytest.mark.parametrize(
    "points",
    [
        [],
        _points(1, 1, 1, ks=(4,)),  # one k
        [point for point in _points(1, 1, 1) if point.spread == 4.0],  # one spread
        _points(1, 1, 1, value=0.99),  # none in the regime
    ],
)
def test_too_few_points_for_a_law_are_counted_in_the_refusal(points: list[Point]) -> None:
    used = sum(point.in_regime for point in points)
    with pytest.raises(InvalidValue, match=f"mine has {used} points") as caught:
        fit_law(points, "mine")
    assert "more values of k" in str(caught.value)


def _line(intercept: float, slope: float, ks: list[int], bend: float = 0.0) -> list[Point]:
    return [
        Point("set", 1.0, k, 1.0, 1 / (1 + math.exp(-(intercept + slope * x + bend * x * x))))
        for k in ks
        for x in (math.log(k),)
    ]


@given(st.floats(-2, 0), st.floats(0.2, 0.8))
def test_a_straight_line_is_found_and_misses_nothing(intercept: float, slope: float) -> None:
    points = _line(intercept, slope, [2, 3, 5, 9, 17, 33])
    used = [point for point in points if point.in_regime]
    found = fit_log_logit(points)
    if len(used) < 3:
        assert found is None
        return
    assert found is not None
    assert (found.intercept, found.slope) == pytest.approx((intercept, slope), abs=1e-8)
    assert found.r_squared == pytest.approx(1.0)
    early = [point for point in used if point.value < 0.5]
    if 3 <= len(early) < len(used):
        assert found.misses_by == pytest.approx(0.0, abs=1e-8)
    else:
        assert found.misses_by is None


def test_a_bent_curve_is_missed_by_what_the_early_line_says_too_little() -> None:
    points = _line(-2.0, 0.3, [1, 2, 4, 8, 16, 32], bend=0.15)
    early = [point for point in points if point.value < 0.5]
    late = [point for point in points if point.value >= 0.5]
    assert len(early) >= 3
    slope, intercept = np.polyfit(
        [math.log(point.k) for point in early],
        [math.log(point.value / (1 - point.value)) for point in early],
        1,
    )
    errors = [
        abs(1 / (1 + math.exp(-(intercept + slope * math.log(point.k)))) - point.value)
        for point in late
    ]
    found = fit_log_logit(points)
    assert found is not None
    assert found.misses_by == pytest.approx(max(errors), rel=1e-9)
    assert found.r_squared < 1


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=30))
def test_a_set_of_tasks_is_its_histogram(tasks: list[int]) -> None:
    made = TaskSet.of(np.array(tasks))
    sizes = sorted({abs(task) for task in tasks})
    assert made.difficulty.tolist() == [float(size) for size in sizes]
    counts = [sum(abs(task) == size for task in tasks) / len(tasks) for size in sizes]
    assert made.weight.tolist() == pytest.approx(counts)
    assert made.spread == pytest.approx(math.sqrt(sum(t * t for t in tasks) / len(tasks)))


def _variance(frequency: Callable[[int], float], easiest: int, farthest: int) -> float:
    """The mean of c^2 over integers of both signs: a sum, not an integral."""
    weights = {c: (2 if c else 1) * frequency(c) for c in range(easiest, farthest + 1)}
    return sum(c * c * weight for c, weight in weights.items()) / sum(weights.values())


@pytest.mark.parametrize(
    ("name", "parameter", "variance"),
    [
        ("gaussian", 3.0, _variance(lambda c: math.exp(-c * c / 18), 0, 60)),
        ("exponential", 4.0, _variance(lambda c: math.exp(-c * math.sqrt(2) / 4), 0, 400)),
        ("power", 4.0, _variance(lambda c: c**-4.0, 1, 50_000)),
    ],
)
def test_populations_have_the_spread_of_their_sums(
    name: str, parameter: float, variance: float
) -> None:
    population = family(name, parameter)
    assert population.spread**2 == pytest.approx(variance, rel=1e-9)
    assert population.weight.sum() == pytest.approx(1.0)
    assert bool(population.difficulty[0] == 0) is (name != "power")


@pytest.mark.parametrize("name", list(SHAPES))
def test_every_shape_has_the_standard_deviation_it_is_stretched_to(name: str) -> None:
    made = shape(name, 40.0)
    tolerance = 0.1 if name == "Student t3" else 0.01  # its tail is cut at 50,000 / 512 spreads
    assert made.spread / 40.0 == pytest.approx(1.0, abs=tolerance)
    assert made.parameter == "s = 40"


def test_a_sample_keeps_the_name_and_counts_its_tasks() -> None:
    population = family("gaussian", 2.0)
    drawn = population.sample(500, np.random.default_rng(1))
    assert drawn.weight.sum() == pytest.approx(1.0)
    assert set((drawn.weight * 500).round(9) % 1) == {0.0}
    assert drawn.name == population.name
    assert set(drawn.difficulty) <= set(population.difficulty)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: family("gauss", 1.0), "There are: gaussian, exponential, power"),
        (lambda: family("gaussian", 0.0), "must be above 0, not 0"),
        (lambda: family("gaussian", float("nan")), "must be above 0, not nan"),
        (lambda: shape("square", 1.0), "There are: Laplace"),
        (lambda: TaskSet.of(np.array([], np.int64)), "at least one task"),
    ],
)
def test_what_is_no_population_is_refused(make: object, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        make()  # type: ignore[operator]
