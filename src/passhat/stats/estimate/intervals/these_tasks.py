"""Intervals about these tasks: the mean of f(p_i) over exactly these tasks.

"Would the same suite give this number again?" The tasks and their success rates are fixed; only the
attempts vary. See :mod:`passhat.stats.estimate.intervals.frontier` for the method. Where less is
needed, less is used:

- one task: the exact interval of its success rate, put through the metric;
- one attempt per task: nothing tells the rates of single tasks apart. The sum of unequal Bernoulli
  variables is never more spread than the binomial with the same mean (Hoeffding 1956), so that the
  binomial interval holds, but for one task that passes or fails alone (see the code).

Both are Clopper and Pearson's: each end misses at most half of the error. Blaker's interval is 4 to
9% narrower, and one of its ends may use all of the error.

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
from dataclasses import dataclass, field

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray, on_one_thread, special
from passhat.stats.estimate.intervals.frontier import (
    Attempted,
    Calibration,
    Statistic,
    frontier,
    strata,
    thin,
)
from passhat.stats.estimate.metrics import CountMetric, Delta, Metric, PassHat
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms

Ends = tuple[float, float]


def clopper_pearson(c: int, n: int, level: float) -> Ends:
    """The rates at which c is inside both tails.

    Examples
    --------
    >>> [round(end, 4) for end in clopper_pearson(0, 50, 0.95)]
    [0.0, 0.0711]
    """
    tail = (1 - level) / 2
    low = 0.0 if c == 0 else float(special.betaincinv(c, n - c + 1, tail))
    high = 1.0 if c == n else float(1 - special.betaincinv(n - c, c + 1, tail))
    return low, high


@dataclass(slots=True)
class TheseTasks:
    """The intervals of several metrics on the same tasks; shared parts are computed once."""

    cells: Histogram
    terms: Terms
    _strata: dict[int, list[tuple[Attempted, float]]] = field(default_factory=dict)
    _rate_ends: Ends | None = None

    def statistics(
        self, values: _Values, target: Callable[[FloatArray], FloatArray], k: int
    ) -> list[Statistic]:
        """A mean over the tasks, in parts of (nearly) the same number of attempts."""
        cells = thin(self.cells, k)
        most = int(cells.n.max())
        if most not in self._strata:
            self._strata[most] = [(Attempted.of(part), share) for part, share in strata(cells)]
        return [
            Statistic(attempts, values, target, share=share)
            for attempts, share in self._strata[most]
        ]

    @on_one_thread
    def interval(self, metric: CountMetric | Delta) -> Ends | None:
        """Both ends; None where the metric is not defined on a single task."""
        if isinstance(metric, Delta):
            return self._delta(metric)
        if self._single:
            return self._one_task(metric)
        if self._once:
            return self.one_attempt_each(metric)
        observed_values = metric.values(self.cells.n, self.cells.c)
        if metric.k == 1 and np.allclose(observed_values, self.cells.c / self.cells.n):
            # pass@1, gpass@1:t and rate are pass^1: one way to compute it, to the last digit.
            return self._rate()
        low, high = self._frontier(_values(metric), metric.value_at_rate, metric.k)
        return max(low, metric.lowest), min(high, metric.highest)

    def method(self, metric: Metric) -> str:
        """The method of :meth:`interval` for this metric, in a few words for a report."""
        if self._single and not isinstance(metric, Delta):
            return "Clopper-Pearson interval of the task's success rate"
        if self._once and not isinstance(metric, Delta):
            return "Clopper-Pearson interval"
        return "saddlepoint frontier over the likelihood region"

    @property
    def _single(self) -> bool:
        return self.cells.size == 1

    @property
    def _once(self) -> bool:
        return int(self.cells.n.max()) == 1

    def _frontier(
        self, values: _Values, target: Callable[[FloatArray], FloatArray], k: int
    ) -> Ends:
        calibration = Calibration.at(self.terms.level, self.cells.size)
        statistics = self.statistics(values, target, k)
        low, high = frontier(statistics, calibration)
        if int(self.cells.n.max()) in self._strata:
            return low, high
        # Thinned attempts have another mean of u; the interval is about that of all attempts.
        shift = self._point(values) - sum(part.point() for part in statistics)
        return low + shift, high + shift

    def _point(self, values: _Values) -> float:
        """The mean of u over all tasks."""
        sizes = np.unique(self.cells.n).tolist()
        places = [self.cells.n == n for n in sizes]
        sums = [
            float(values(n, self.cells.c[at]) @ self.cells.tasks[at])
            for n, at in zip(sizes, places, strict=True)
        ]
        return sum(sums) / self.cells.size

    def _rate(self) -> Ends:
        """The ends of pass^1, which every delta^k needs too."""
        if self._rate_ends is None:
            rate = PassHat(1)
            low, high = self._frontier(_values(rate), rate.value_at_rate, 1)
            self._rate_ends = max(low, 0.0), min(high, 1.0)
        return self._rate_ends

    def _one_task(self, metric: CountMetric) -> Ends:
        """The metric over the interval of the task's success rate."""
        n, c = int(self.cells.n[0]), int(self.cells.c[0])
        low, high = clopper_pearson(c, n, self.terms.level)
        values = metric.value_at_rate(np.linspace(low, high, 401))
        return float(values.min()), float(values.max())

    def one_attempt_each(self, metric: CountMetric) -> Ends:
        """The binomial interval, put between the metric's values at no pass and at one."""
        at_zero, at_one = _values(metric)(1, np.arange(2)).tolist()
        passed, tasks = int(self.cells.c @ self.cells.tasks), self.cells.size
        low, high = clopper_pearson(passed, tasks, self.terms.level)
        # Hoeffding's inequality ends one pass from the mean. Of m tasks with mean rate p all pass
        # with chance 1 - m (1 - p) at least, where the binomial has p^m.
        least = (1 - self.terms.level) / 2 / tasks
        low = min(low, least) if passed == 1 else low
        high = max(high, 1 - least) if passed == tasks - 1 else high
        ends = [at_zero + (at_one - at_zero) * rate for rate in (low, high)]
        return min(ends), max(ends)

    def _delta(self, metric: Delta) -> Ends | None:
        if self._single or metric.k == 1:
            return None
        k = metric.k
        power, mean = metric.parts
        mu = self._point(_values(mean))
        slope = k * mu ** (k - 1)
        powers, rates = _values(power), _values(mean)
        low, high = self._frontier(
            lambda n, c: powers(n, c) - slope * rates(n, c),
            lambda p: power.value_at_rate(p) - slope * p,
            k,
        )
        lowest, highest = self._rate()
        bend = max(m**k - mu**k - slope * (m - mu) for m in (lowest, highest))
        shift = slope * mu - mu**k
        top = (k - 1) * k ** (-k / (k - 1))  # the largest mu - mu^k there is
        return max(low + shift - bend, 0.0), min(high + shift, top)


_Values = Callable[[int, IntArray], FloatArray]


def _values(metric: CountMetric) -> _Values:
    """The metric at c passes in n attempts; with fewer than k attempts it is not defined."""
    return lambda n, c: metric.values(np.full(len(c), n, np.int64), c)
