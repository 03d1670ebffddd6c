"""How tasks differ: the distribution of success rates behind a pilot.

Two things make the average over a suite uncertain. *Between tasks*: other tasks would have been
easier or harder, and only more tasks help. *Within tasks*: the same tasks would have come out
differently, and more attempts help as well. With p the success rate of a task, g(p) what the metric
is worth there and u(n, C) its estimate from C passes in n attempts,

    between   = Var over tasks of g(p)
    within(n) = average over tasks of Var(u(n, C) given p)

and the average over T tasks has the variance (between + within(n)) / T. Both follow for any n once
the distribution of p is known, which is the purpose of a pilot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, Outcomes

__all__ = ["Components", "Difficulty", "binomial_chances", "cell_likelihood"]

_POINTS = 200
_ROUNDS = 400
_MOST_ATTEMPTS = 2_000
_ALIKE = 1e-6
"""An ICC this near to 0 or 1 is one: the Beta distribution there is too narrow to invert."""

_IMAGINARY_TASKS = 1.0
"""One task of unknown difficulty is added to a pilot: a pilot in which all attempts passed does not
prove that every attempt always will, and must not give a plan of zero tasks."""


@dataclass(frozen=True, slots=True)
class Components:
    """The two parts of the variance of one task's value."""

    between: float
    within: float

    @property
    def total(self) -> float:
        return self.between + self.within


@dataclass(frozen=True, slots=True, eq=False)
class Difficulty:
    """Success rates and how often each occurs among tasks."""

    rates: FloatArray
    weights: FloatArray

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> Difficulty:
        """The distribution of success rates under which the pilot is most likely.

        No shape is assumed. It is found by expectation and maximisation over a grid of rates
        (Laird 1978, "Nonparametric maximum likelihood estimation of a mixing distribution").
        Attempts without a verdict say nothing about difficulty and are left out.
        """
        cells = outcomes.histogram(Completion.DROPPED)
        kept = cells.n > 0
        n, c, tasks = cells.n[kept], cells.c[kept], cells.tasks[kept]
        if len(n) == 0 or int(n.max()) < 2:
            raise InvalidValue(
                "the pilot has at most one scored attempt per task, so what differs between tasks "
                "and what differs between attempts cannot be told apart.",
                hint="Make two or more attempts per task, or state both with --mean and --icc.",
            )
        rates = _grid()
        likelihood = cell_likelihood(n, c, rates)
        spread = np.diff(rates, prepend=0) + np.diff(rates, append=1)
        imaginary = _IMAGINARY_TASKS * spread / spread.sum()
        weights = np.full(len(rates), 1 / len(rates))
        for _ in range(_ROUNDS):
            joint = likelihood * weights
            share = tasks @ (joint / joint.sum(axis=1, keepdims=True))
            weights = (share + imaginary) / (tasks.sum() + _IMAGINARY_TASKS)
        return cls(rates, weights)

    @classmethod
    def from_mean(cls, mean: float, icc: float) -> Difficulty:
        """A Beta distribution with this mean, and this share of the variance between tasks.

        ``icc`` is ICC(1) of 0/1 attempts: 0 when all tasks are equally hard, 1 when each task
        either always passes or always fails. Beta(a, b) has ICC 1 / (a + b + 1).
        """
        if not 0 < mean < 1:
            raise InvalidValue(f"mean must lie between 0 and 1, not {mean:g}.")
        if not 0 <= icc <= 1:
            raise InvalidValue(f"icc must lie from 0 to 1, not {icc:g}.")
        if icc < _ALIKE:
            return cls(np.array([mean]), np.array([1.0]))
        if icc > 1 - _ALIKE:
            return cls(np.array([0.0, 1.0]), np.array([1 - mean, mean]))
        from scipy.special import betaincinv

        size = 1 / icc - 1
        middles = (np.arange(_POINTS) + 0.5) / _POINTS
        rates = betaincinv(mean * size, (1 - mean) * size, middles)
        return cls(np.asarray(rates, np.float64), np.full(_POINTS, 1 / _POINTS))

    def mean(self, metric: CountMetric) -> float:
        """The metric's mean over tasks like these."""
        return float(self.weights @ metric.known(self.rates))

    def components(self, metric: CountMetric, n: int) -> Components:
        """The variance of one task's value from n attempts, in its two parts."""
        if n < metric.k:
            needed = counted(metric.k, "attempt")
            raise InvalidValue(f"{metric} needs at least {needed} per task, not {n}.")
        known = metric.known(self.rates)
        mean = float(self.weights @ known)
        between = float(self.weights @ (known - mean) ** 2)
        # Many more attempts divide the variance within tasks, and need no table of all counts.
        tried = min(n, max(_MOST_ATTEMPTS, 8 * metric.k))
        value = metric.values(np.full(tried + 1, tried), np.arange(tried + 1))
        chance = binomial_chances(tried, self.rates)
        within = float(self.weights @ np.maximum(chance @ value**2 - (chance @ value) ** 2, 0))
        return Components(between, within * tried / n)


@lru_cache(maxsize=1)
def _grid() -> FloatArray:
    """Rates from 0 to 1, denser near the ends, where agents live."""
    return np.sin(np.linspace(0, np.pi / 2, _POINTS + 1)) ** 2


def cell_likelihood(n: IntArray, c: IntArray, rates: FloatArray) -> FloatArray:
    """Chance of c passes in n, up to a factor per row, for every cell and rate."""
    from scipy.special import xlog1py, xlogy

    logs = xlogy(c[:, None], rates) + xlog1py((n - c)[:, None], -rates)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)), np.float64)


def binomial_chances(n: int, rates: FloatArray) -> FloatArray:
    """Chance of 0 to n passes in n attempts, one row per rate."""
    from scipy.special import gammaln, xlog1py, xlogy

    c = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    logs = ways + xlogy(c, rates[:, None]) + xlog1py(n - c, -rates[:, None])
    return np.asarray(np.exp(logs), np.float64)
