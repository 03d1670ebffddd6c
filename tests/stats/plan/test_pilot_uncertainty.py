"""A plan carries the pilot's uncertainty: redrawn variances, against redraws of our own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from passhat import Outcomes, plan_tasks
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.plan import Difficulty
from passhat.stats.plan.plan_result import Detect, HalfWidth

Z = float(norm.ppf(0.975))
WIDTH = 0.004  # so small that rounding to whole tasks does not matter


def _factors(squares: np.ndarray, draws: int = 20_000) -> np.ndarray:
    """Variance ratios: Gamma weights on the seen squares and on one more as large as the largest.

    The mean of squares about a mean that is estimated too is T / (T - 1) times too small.
    """
    tasks = len(squares)
    weights = np.random.default_rng(99).gamma(1.0, size=(draws, tasks + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    drawn = weights @ np.append(squares, squares.max())
    return np.asarray(drawn / squares.mean() * tasks / (tasks - 1))


@pytest.mark.parametrize(
    "passes", [[0, 1, 2, 3, 4, 4], [4, 4, 4, 4, 0, 2, 4, 3], [0, 1, 2, 3, 4, 4] * 5]
)
def test_a_plan_is_made_for_four_of_five_redraws(passes: list[int]) -> None:
    pilot = Outcomes.from_counts(4, passes)
    made = plan_tasks(pilot, metric="pass^1", half_width=WIDTH)
    values = np.array(passes) / 4
    factors = _factors((values - values.mean()) ** 2)
    difficulty = Difficulty.from_outcomes(pilot)
    for row in made.rows:
        variance = difficulty.components(PassHat(1), row.attempts).total
        used = (row.tasks - Z**2 / 2) * WIDTH**2 / Z**2 / variance
        assert used == pytest.approx(np.quantile(factors, 0.8), rel=0.07)
    assert made.tasks_range is not None
    variance = difficulty.components(PassHat(1), made.cheapest.attempts).total
    for tasks, share in zip(made.tasks_range, (0.1, 0.9), strict=True):
        used = (tasks - Z**2 / 2) * WIDTH**2 / Z**2 / variance
        assert used == pytest.approx(np.quantile(factors, share), rel=0.12)


def test_a_small_pilot_asks_for_more_than_a_large_one_of_the_same_shape() -> None:
    few, many = (
        plan_tasks(Outcomes.from_counts(4, [0, 1, 2, 3, 4, 4] * copies), half_width=0.05)
        for copies in (1, 20)
    )
    assert few.tasks_range is not None
    assert many.tasks_range is not None
    spread = [high / low for low, high in (few.tasks_range, many.tasks_range)]
    assert spread[0] > 1.5 * spread[1]
    assert few.cheapest.tasks > many.cheapest.tasks


def test_without_a_pilot_nothing_is_redrawn() -> None:
    made = plan_tasks(metric="pass^1", half_width=WIDTH, mean=0.5, icc=0.5)
    for row in made.rows:
        # Beta(.5, .5): the variance of c / n is mean (1 - mean) (icc + (1 - icc) / n).
        variance = 0.25 * (0.5 + 0.5 / row.attempts)
        assert row.tasks == pytest.approx(Z**2 * variance / WIDTH**2 + Z**2 / 2, rel=5e-3)


def test_a_difference_of_two_pilots_is_redrawn_as_differences() -> None:
    """Both pilots move together: the lift is the same on every task, and so is every redraw."""
    a = Outcomes.from_counts(4, [0, 1, 2, 3] * 4)
    same = Outcomes.from_counts(4, [1, 2, 3, 4] * 4)
    crossed = Outcomes.from_counts(4, [3, 2, 1, 0] * 4)
    together = plan_tasks(a, metric="pass^1", detect=0.2, against=same)
    apart = plan_tasks(a, metric="pass^1", detect=0.2, against=crossed)
    assert together.between < 0.02 < apart.between
    assert together.cheapest.total_attempts < apart.cheapest.total_attempts
    assert "measured on the two pilots" in " ".join(together.assumptions)


@pytest.mark.parametrize("variance", [0.02, 0.05, 0.25])
@pytest.mark.parametrize("target", [0.02, 0.05, 0.2])
def test_the_fewest_tasks_with_the_power_are_the_fewest(variance: float, target: float) -> None:
    goal = Detect(target, 0.95, 0.8)
    tasks = goal.tasks(variance)
    assert goal.power_at(variance, tasks) >= 0.8 > goal.power_at(variance, tasks - 1)
    assert goal.reach(variance, tasks) <= target < goal.reach(variance, tasks - 1)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 4])
def test_a_difference_has_twice_the_noise_and_what_the_agents_do_not_share(
    correlation: float, n: int
) -> None:
    """Var(b - a) = 2 (1 - r) between + 2 within, and the noise of attempts is never shared."""
    made = plan_tasks(
        metric="pass^1", detect=0.1, mean=0.5, icc=0.4, correlation=correlation, attempts=n
    )
    between, within = 0.25 * 0.4, 0.25 * 0.6
    assert made.between == pytest.approx(2 * (1 - correlation) * between, rel=0.02, abs=1e-9)
    assert made.within == pytest.approx(2 * within / made.rows[0].attempts, rel=0.02)
    goal = Detect(0.1, 0.95, 0.8)
    row = next(row for row in made.rows if row.attempts == n)
    exact = goal.tasks(2 * (1 - correlation) * between + 2 * within / n)
    assert row.tasks == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_a_higher_level_needs_more_tasks_by_the_square_of_its_quantile(level: float) -> None:
    z = float(norm.ppf((1 + level) / 2))
    assert HalfWidth(0.01, level).tasks(0.2) == int(np.ceil(z**2 * 0.2 / 0.01**2 + z**2 / 2))
