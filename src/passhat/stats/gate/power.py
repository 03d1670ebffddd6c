"""The power of the gate without a rule, by simulation.

Rates are drawn from those that fit the baseline, a drop is put into them, and the same decision is
made on both simulated runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.compare.claims import points
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.pairing import pair
from passhat.stats.compare.task_changes import find_changed_tasks
from passhat.stats.compare.these_tasks import bound_lift
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, Outcomes
from passhat.stats.plan.difficulty import Difficulty, cell_likelihood
from passhat.stats.terms import Terms

__all__ = ["GatePower", "simulate_power"]


@dataclass(frozen=True, slots=True)
class GatePower:
    """How often a gate of this size calls a drop a regression, in simulated runs."""

    drop: float
    caught: int
    runs: int

    def __str__(self) -> str:
        size = points(self.drop, signed=False).removesuffix(".0")
        return (
            f"power: this gate would have caught a drop of {size} points in {self.caught} of "
            f"{self.runs} simulated runs"
        )


def simulate_power(
    base: Outcomes,
    attempts: IntArray,
    metric: CountMetric,
    drop: float = 0.1,
    level: float = 0.95,
    *,
    runs: int = 20,
    seed: int = 0,
) -> GatePower | None:
    """Simulate the gate without a rule on the baseline's tasks, with a drop of the metric.

    Parameters
    ----------
    base : Outcomes
        The baseline; its rates are drawn from the distribution that fits it.
    attempts : array
        Attempts of the new run at each task of the baseline.
    metric, drop, level
        What is compared, how far its mean falls, the one-sided level of the gate.

    Returns
    -------
    GatePower or None
        ``None`` where the baseline cannot tell tasks apart (one attempt each), or the drop is
        larger than the value.
    """
    n, c = base.counts(Completion.DROPPED)
    if int(n.max()) < 2 or int(attempts.min()) < metric.k:
        return None
    difficulty = Difficulty.from_outcomes(base)
    posterior = cell_likelihood(n, c, difficulty.rates) * difficulty.weights
    posterior /= posterior.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    base_attempts, _ = base.counts(Completion.AS_FAILED)
    terms, alpha = Terms(alternative="less"), 1 - level
    caught = 0
    for _ in range(runs):
        # One draw per task by the inverse of its cumulated posterior.
        places = (posterior.cumsum(axis=1) < rng.random(len(n))[:, None]).sum(axis=1)
        rates = difficulty.rates[np.minimum(places, len(difficulty.rates) - 1)]
        lowered = _lower_rates(rates, metric, drop)
        if lowered is None:
            return None
        pairing = pair(
            Outcomes.from_counts(base_attempts, rng.binomial(base_attempts, rates), base.tasks),
            Outcomes.from_counts(attempts, rng.binomial(attempts, lowered), base.tasks),
        )
        tasks_alpha = (1 - MEAN_SHARE) * alpha
        caught += (
            bound_lift(pairing, metric, terms, MEAN_SHARE * alpha).high < 0
            or len(find_changed_tasks(pairing, terms.missing, tasks_alpha, "less")) > 0
        )
    return GatePower(drop, caught, runs)


def _lower_rates(rates: FloatArray, metric: CountMetric, drop: float) -> FloatArray | None:
    """All rates times one factor, so that the metric's mean falls by ``drop``."""
    goal = float(metric.value_at_rate(rates).mean()) - drop
    if goal < 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        above = float(metric.value_at_rate(middle * rates).mean()) > goal
        low, high = (low, middle) if above else (middle, high)
    return low * rates
