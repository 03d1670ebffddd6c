"""Most likely distributions and priced optima with answers that can be written down."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from hypothesis_profiles import max_examples
from passhat.stats.estimate.metrics import PassAt, PassHat
from passhat.stats.estimate.mixture import Factored, minimise, scaled_likelihood
from passhat.stats.forecast.band import Admissible, _Search, cutoff_for
from passhat.stats.outcomes import Histogram, Outcomes


def _cells(n: int | list[int], c: list[int]) -> Histogram:
    return Outcomes.from_counts(n, c).histogram()


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 40)).map(lambda x: (max(x), min(x))),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=max_examples(25))
def test_a_scaled_likelihood_is_binomial_over_its_largest_value(
    tasks: list[tuple[int, int]],
) -> None:
    cells = _cells([n for n, _ in tasks], [c for _, c in tasks])
    rates = np.array([0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
    found = scaled_likelihood(cells, rates)
    at_best = np.asarray(binom.pmf(cells.c, cells.n, cells.c / cells.n))
    wanted = binom.pmf(cells.c[:, None], cells.n[:, None], rates) / at_best[:, None]
    assert found == pytest.approx(wanted, abs=1e-9)
    assert found.max() <= 1 + 1e-9


def test_a_likelihood_of_ten_thousand_attempts_neither_vanishes_nor_overflows() -> None:
    cells = _cells(10_000, [5_000])
    found = scaled_likelihood(cells, np.array([0.49, 0.5, 0.51]))
    assert found[0, 1] == pytest.approx(1.0)
    assert found[0, 0] == pytest.approx(found[0, 2], rel=1e-9)
    # Two standard deviations: exp(-2), but for the fourth order.
    assert found[0, 0] == pytest.approx(math.exp(-2), rel=1e-3)


def test_tasks_that_are_sure_have_their_shares_at_both_ends() -> None:
    cells = _cells(50, [0] * 6 + [50] * 14)
    rates = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    found = minimise(
        Factored.of(scaled_likelihood(cells, rates)), np.zeros(5), cells.tasks.astype(float), 0.0
    )
    assert found.weights == pytest.approx([0.3, 0, 0, 0, 0.7], abs=1e-5)


def test_the_best_mixture_of_two_rates_by_calculus() -> None:
    """One attempt each, 30% passed, rates .2 and .6: the mean must be .3, so a quarter at .6."""
    cells = _cells(1, [1] * 30 + [0] * 70)
    rates = np.array([0.2, 0.6])
    found = minimise(
        Factored.of(scaled_likelihood(cells, rates)), np.zeros(2), cells.tasks.astype(float), 0.0
    )
    assert found.weights == pytest.approx([0.75, 0.25], abs=1e-4)


def test_a_price_without_limit_goes_to_the_cheapest_rate_that_explains_the_data() -> None:
    """With tau large, the objective counts and the likelihood only keeps weights positive."""
    cells = _cells(2, [1, 1, 1])
    rates = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    theta = rates**2
    weights = [
        minimise(Factored.of(scaled_likelihood(cells, rates)), theta, np.array([3.0]), tau).weights
        for tau in (1.0, 30.0, 3_000.0)
    ]
    values = [float(theta @ weight) for weight in weights]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.02


@pytest.mark.parametrize("metric", [PassAt(1), PassHat(1)], ids=str)
@pytest.mark.parametrize("passed", [0, 4, 10])
def test_one_attempt_each_is_the_likelihood_interval_of_a_proportion(
    metric: PassAt | PassHat, passed: int
) -> None:
    """T (H(x) - p log x - q log(1 - x)) = cutoff has two roots, or one at an end."""
    tasks, cutoff = 10, cutoff_for(0.95)
    cells = _cells(1, [1] * passed + [0] * (tasks - passed))
    low, high = Admissible.of(cells, [metric]).ends(metric, cutoff)

    def deficit(x: float) -> float:
        seen = passed / tasks
        total = 0.0
        for share, chance in ((seen, x), (1 - seen, 1 - x)):
            if share:
                total += share * math.log(share / chance)
        return tasks * total

    if passed == 0:
        assert low == pytest.approx(0.0, abs=1e-4)
    else:
        assert deficit(low) == pytest.approx(cutoff, abs=0.02)
    if passed == tasks:
        assert high == pytest.approx(1.0, abs=1e-4)
    else:
        assert deficit(high) == pytest.approx(cutoff, abs=0.02)


def test_of_a_million_tasks_the_band_is_what_two_moments_allow() -> None:
    """A million tasks with two attempts fix two moments: a linear program bounds the third."""
    counts = [160_000, 480_000, 360_000]  # a binomial at .6, so all tasks may be alike
    cells = Histogram(np.full(3, 2), np.arange(3), np.array(counts))
    low, high = Admissible.of(cells, [PassHat(3)]).ends(PassHat(3), cutoff_for(0.95))
    rates = np.linspace(0, 1, 2001)
    equal = np.stack([np.ones_like(rates), rates, rates**2])
    room = 0.002
    bounds = []
    for sign in (1, -1):
        program = linprog(
            sign * rates**3,
            A_eq=equal[:1],
            b_eq=[1.0],
            A_ub=np.vstack([equal[1:], -equal[1:]]),
            b_ub=np.array([0.6 + room, 0.36 + room, -0.6 + room, -0.36 + room]),
            method="highs",
        )
        assert program.fun is not None
        bounds.append(sign * float(program.fun))
    assert bounds[0] <= low <= 0.216 <= high <= bounds[1]
    assert high - low < 0.02


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("start", [-5.0, 3.0, 20.0])
def test_the_search_for_a_price_ends_at_its_goal(slope: float, start: float) -> None:
    """The deficit grows as a power of tau; the search does not know which."""
    search = _Search(start, goal=math.log(2.5))
    for _ in range(40):
        if not search.advance(slope * (search.log_tau - 4.0)):
            break
    assert slope * (search.log_tau - 4.0) == pytest.approx(math.log(2.5), abs=0.05)


def test_a_goal_that_is_never_reached_ends_the_search() -> None:
    search = _Search(0.0, goal=0.0)
    steps = 0
    while search.advance(-10.0):  # no tau makes a deficit
        steps += 1
        assert steps < 40
    assert search.log_tau >= 45


def test_a_deficit_that_jumps_over_its_goal_is_bracketed_closely() -> None:
    """A secant between the two sides of a jump stays on one side, and the middle replaces it."""
    search = _Search(-2.0, goal=0.0)
    steps = 0
    while search.advance(-6.0 if search.log_tau < 4.0 else 0.5):
        steps += 1
        assert steps < 40
    assert search.log_tau == pytest.approx(4.0, abs=0.02)
