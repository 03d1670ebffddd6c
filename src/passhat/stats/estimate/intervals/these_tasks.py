"""Intervals about these tasks: the mean of f(p_i) over exactly these tasks.

"Would the same suite give this number again?" The tasks and their success rates are fixed; only the
attempts vary. See :mod:`passhat.stats.estimate.intervals.frontier` for the method. Where less is
needed, less is used:

- one task: the exact interval of its success rate, put through the metric;
- one attempt per task: nothing tells the rates of single tasks apart. The sum of unequal Bernoulli
  variables is never more spread than the binomial with the same mean (Hoeffding 1956), so that the
  binomial interval holds.

``delta^k`` is not a mean over tasks. With mu the mean rate and a = k mu0^(k-1) at the point mu0,

    delta^k = E[p^k - a p] + a mu0 - mu0^k - R(mu),   R(mu) = mu^k - mu0^k - a (mu - mu0) >= 0,

so the frontier of the linear part gives the upper end, and the lower one after subtracting the
largest R over the interval of the mean.

References
----------
W. Hoeffding (1956), On the distribution of the number of successes in independent trials,
    Ann. Math. Statist. 27.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.intervals.binomial import Ends, binomial_interval
from passhat.stats.estimate.intervals.frontier import Attempted, Calibration, Statistic, frontier
from passhat.stats.estimate.metrics import CountMetric, Delta, Metric, PassHat
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms

__all__ = ["TheseTasks", "frontier_difference"]


@dataclass(slots=True)
class TheseTasks:
    """The intervals of several metrics on the same tasks; what they share is computed once."""

    cells: Histogram
    terms: Terms
    _attempted: Attempted | None = None

    @property
    def attempted(self) -> Attempted:
        if self._attempted is None:
            self._attempted = Attempted.of(self.cells)
        return self._attempted

    def interval(self, metric: CountMetric | Delta) -> Ends | None:
        """Both ends; None where the metric is not defined on a single task."""
        if isinstance(metric, Delta):
            return self._delta(metric)
        if self._single:
            return self._one_task(metric)
        if self._once:
            return self.one_attempt_each(metric)
        seen = metric.values(self.cells.n, self.cells.c)
        if metric.k == 1 and np.allclose(seen, self.cells.c / self.cells.n):
            # pass@1, gpass@1:t and rate are pass^1: one way to compute it, to the last digit.
            metric = PassHat(1)
        return self._frontier(_values(metric), metric.known)

    def method(self, metric: Metric) -> str:
        """What :meth:`interval` does for this metric, in the few words a report prints."""
        exact = "Clopper-Pearson interval" if self.terms.equal_tails else "Blaker's interval"
        if self._single and not isinstance(metric, Delta):
            return f"{exact} of the task's success rate"
        if self._once and not isinstance(metric, Delta):
            return exact
        return "saddlepoint frontier over the likelihood region"

    @property
    def _single(self) -> bool:
        return self.cells.size == 1

    @property
    def _once(self) -> bool:
        return int(self.cells.n.max()) == 1

    def _frontier(self, values: _Values, target: Callable[[FloatArray], FloatArray]) -> Ends:
        statistic = Statistic(self.attempted, values, target)
        return frontier([statistic], Calibration.at(self.terms.level))

    def _one_task(self, metric: CountMetric) -> Ends:
        """The metric over the interval of the task's success rate."""
        n, c = int(self.cells.n[0]), int(self.cells.c[0])
        low, high = binomial_interval(c, n, self.terms)
        reached = metric.known(np.linspace(low, high, 401))
        return float(reached.min()), float(reached.max())

    def one_attempt_each(self, metric: CountMetric) -> Ends:
        """The binomial interval, put between the metric's values at no pass and at one."""
        at_zero, at_one = _values(metric)(1, np.arange(2)).tolist()
        passed = int(self.cells.c @ self.cells.tasks)
        low, high = binomial_interval(passed, self.cells.size, self.terms)
        ends = [at_zero + (at_one - at_zero) * rate for rate in (low, high)]
        return min(ends), max(ends)

    def _delta(self, metric: Delta) -> Ends | None:
        if self._single or metric.k == 1:
            return None
        k = metric.k
        power, mean = metric.parts
        mu = Statistic(self.attempted, _values(mean), mean.known).point()
        slope = k * mu ** (k - 1)
        powers, rates = _values(power), _values(mean)
        low, high = self._frontier(
            lambda n, c: powers(n, c) - slope * rates(n, c),
            lambda p: power.known(p) - slope * p,
        )
        lowest, highest = self._frontier(rates, mean.known)
        bend = max(m**k - mu**k - slope * (m - mu) for m in (lowest, highest))
        shift = slope * mu - mu**k
        top = (k - 1) * k ** (-k / (k - 1))  # the largest mu - mu^k there is
        return max(low + shift - bend, 0.0), min(high + shift, top)


_Values = Callable[[int, IntArray], FloatArray]


def _values(metric: CountMetric) -> _Values:
    """The metric at c passes in n attempts; with fewer than k attempts it is not defined."""
    return lambda n, c: metric.values(np.full(len(c), n, np.int64), c)


def frontier_difference(
    a: Histogram, b: Histogram, metric: CountMetric, terms: Terms
) -> tuple[float, float]:
    """The interval of the lift B - A of a metric on exactly these tasks.

    Parameters
    ----------
    a, b : Histogram
        The same tasks under both agents: ``outcomes.histogram(completion)`` of the paired tasks, in
        which every task has at least k attempts. The two may have different n.
    metric : CountMetric
        ``pass^k``, ``pass@k``, ``gpass@k:t`` or ``rate``; of an ordered metric take
        ``metric.unordered(n)``.
    terms : Terms
        Only the level is used. Each end alone misses at most (1 - level) / 2.

    Returns
    -------
    tuple of float
        The two ends, within [-1, 1] up to rounding. They hold the point ``mean_b - mean_a`` except
        where attempts vary less than independent ones; extend them to it.

    Notes
    -----
    The tasks of A and of B are independent given the tasks, so the cumulant generating function of
    the difference is that of B at s plus that of A at -s. Missing attempts: call it once per way to
    fill them in and take the outer ends.
    """
    statistics = [
        Statistic(Attempted.of(b), _values(metric), metric.known),
        Statistic(Attempted.of(a), _values(metric), metric.known, sign=-1.0),
    ]
    return frontier(statistics, Calibration.at(terms.level))
