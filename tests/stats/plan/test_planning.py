"""Plans: what they promise holds when simulated."""

from __future__ import annotations

import json
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passhat
from hypothesis_profiles import max_examples
from passhat.errors import InvalidValue
from passhat.reporting.documents.forecast import plan_table
from passhat.stats.compare.lift import LiftSample
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Attempts, Outcomes, Run
from passhat.stats.plan import Plan, plan_tasks

Floats = npt.NDArray[np.float64]


def two_agents(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Success rates of two agents on the same tasks; the lift differs from task to task."""
    a = rng.uniform(0.1, 0.75, shape)
    return a, np.clip(a + 0.08 + rng.normal(0, 0.1, shape), 0, 1)


@pytest.mark.parametrize(("word", "n"), [("pass^1", 2), ("pass^2", 4), ("pass^4", 8)])
def test_the_planned_power_is_reached(word: str, n: int) -> None:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    rng = np.random.default_rng(8)
    a, b = two_agents(rng, (40_000,))
    lift = float(np.mean(chosen.value_at_rate(b)) - np.mean(chosen.value_at_rate(a)))
    pilots = [Outcomes.from_counts(8, rng.binomial(8, rates)) for rates in (a, b)]
    made = plan_tasks(pilots[0], against=pilots[1], metric=word, detect=lift, power=0.8, attempts=n)
    tasks = next(row.tasks for row in made.rows if row.attempts == n)
    repetitions = 150
    a, b = two_agents(rng, (repetitions, tasks))
    value = chosen.values(np.full(n + 1, n), np.arange(n + 1))
    d = value[rng.binomial(n, b)] - value[rng.binomial(n, a)]
    power = float(np.mean([LiftSample.of(one).interval(0.025).low > 0 for one in d]))
    # The pilot is large, so this checks the formula and not a pilot's luck.
    assert 0.7 <= power <= 0.9


def test_the_planned_half_width_is_reached() -> None:
    rng = np.random.default_rng(9)
    pilot = Outcomes.from_counts(8, rng.binomial(8, rng.beta(2, 2, 2000)))
    made = plan_tasks(pilot, metric="pass^4", half_width=0.05)
    row = next(row for row in made.rows if row.attempts == 8)
    table = np.array([0, 0, 0, 0, 1, 5, 15, 35, 70]) / 70
    means = table[rng.binomial(8, rng.beta(2, 2, (4000, row.tasks)))].mean(axis=1)
    assert 1.96 * means.std() == pytest.approx(0.05, rel=0.08)


def test_more_attempts_need_fewer_tasks_down_to_a_floor() -> None:
    made = plan_tasks(metric="pass^4", detect=0.05, mean=0.6, icc=0.4)
    tasks = [row.tasks for row in made.rows]
    assert tasks == sorted(tasks, reverse=True)
    assert tasks[-1] >= made.fewest_tasks
    assert made.enough_attempts is not None
    enough = plan_tasks(
        metric="pass^4", detect=0.05, mean=0.6, icc=0.4, attempts=made.enough_attempts
    )
    row = next(row for row in enough.rows if row.attempts == made.enough_attempts)
    assert row.tasks <= 1.12 * made.fewest_tasks
    assert made.cheapest.total_attempts == min(row.total_attempts for row in made.rows)


def test_tasks_that_are_alike_are_helped_by_attempts_without_end() -> None:
    made = plan_tasks(metric="rate", half_width=0.05, mean=0.5, icc=0.0)
    assert made.enough_attempts is None
    assert "keep helping" in str(made)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(0.02, 0.2))
@settings(max_examples=max_examples(8))
def test_a_smaller_lift_and_more_power_need_more_tasks(
    mean: float, icc: float, lift: float
) -> None:
    def tasks(**how: float) -> int:
        return plan_tasks(mean=mean, icc=icc, **how).rows[0].tasks  # type: ignore[arg-type]

    assert tasks(detect=lift) >= tasks(detect=lift * 1.5)
    assert tasks(detect=lift, power=0.9) >= tasks(detect=lift, power=0.8)
    assert tasks(detect=lift, level=0.99) >= tasks(detect=lift, level=0.95)
    assert tasks(detect=lift, correlation=0.2) >= tasks(detect=lift, correlation=0.9)


def test_cost_and_time_when_recorded() -> None:
    verdicts = np.tile(np.array([1, 0, 1, 1], np.int8), 20)
    measures = {"cost": np.where(np.arange(80) % 2, 0.5, np.nan), "seconds": np.full(80, 36.0)}
    attempts = Attempts(
        tuple(map(str, range(20))),
        np.arange(0, 81, 4),
        verdicts,
        measures=MappingProxyType(measures),
    )
    run = Run("pilot", "pilot", Outcomes.from_counts(4, [3] * 20), attempts=attempts)
    made = plan_tasks(run, detect=0.1)
    row = made.rows[0]
    assert row.total_attempts == 2 * row.tasks * row.attempts
    assert row.cost == pytest.approx(0.5 * row.total_attempts)
    assert row.seconds == pytest.approx(36 * row.total_attempts)
    assert "hours in a row" in plan_table(made).header
    assert plan_tasks(run.outcomes, detect=0.1).rows[0].cost is None


def test_what_the_pilots_size_gives() -> None:
    pilot = Outcomes.from_counts(8, [2, 4, 6, 8] * 10)
    made = plan_tasks(pilot, metric="pass^4", half_width=0.05)
    assert made.pilot_reaches is not None
    again = plan_tasks(pilot, metric="pass^4", half_width=made.pilot_reaches, attempts=8)
    row = next(row for row in again.rows if row.attempts == 8)
    assert row.tasks == pytest.approx(40, abs=2)
    assert (
        plan_tasks(Outcomes.from_counts(2, [1, 2, 0]), metric="pass^4", detect=0.1).pilot_reaches
        is None
    )


def test_forms() -> None:
    made = passhat.plan_tasks(metric="pass^4", detect=0.03, mean=0.7, icc=0.4)
    assert isinstance(made, Plan)
    data = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert data["schema"] == "passhat.plan/1"
    assert data["cheapest"]["tasks"] == made.cheapest.tasks
    assert str(made).startswith("To see a lift of 0.03 in pass^4 with power 80% at level 95%: ")
    assert "correlates 0.75" in str(made)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"mean": 0.5, "icc": 0.2}, "one goal"),
        ({"mean": 0.5, "icc": 0.2, "detect": 0.1, "half_width": 0.1}, "one goal"),
        ({"mean": 0.5, "icc": 0.2, "detect": 0.0}, "detect must lie"),
        ({"mean": 0.5, "icc": 0.2, "half_width": 2.0}, "half_width must lie"),
        ({"mean": 0.5, "icc": 0.2, "detect": 0.1, "power": 0.3}, "power"),
        ({"mean": 0.5, "icc": 0.2, "detect": 0.1, "level": 1.0}, "level"),
        ({"mean": 0.5, "icc": 0.2, "detect": 0.1, "correlation": 2.0}, "correlation"),
        ({"detect": 0.1}, "without a pilot"),
        ({"detect": 0.1, "mean": 0.5}, "without a pilot"),
        ({"detect": 0.1, "mean": 0.5, "icc": 0.2, "metric": "delta^2"}, "cannot be planned"),
        ({"detect": 0.1, "mean": 0.5, "icc": 0.2, "metric": "pass^4", "attempts": 2}, "at least 4"),
    ],
)
def test_mistakes_are_named(how: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        plan_tasks(**how)  # type: ignore[arg-type]


def test_pilots_must_fit() -> None:
    pilot = Outcomes.from_counts(4, [1, 2, 3, 4], ["a", "b", "c", "d"])
    with pytest.raises(InvalidValue, match="here there is one"):
        plan_tasks(pilot, detect=0.1, mean=0.5)
    with pytest.raises(InvalidValue, match="share 1 task"):
        plan_tasks(pilot, against=Outcomes.from_counts(4, [1, 2], ["a", "x"]), detect=0.1)
    with pytest.raises(InvalidValue, match="needs a pilot"):
        plan_tasks(against=pilot, detect=0.1, mean=0.5, icc=0.2)
