"""The band: how small and how large a metric may be, whatever the shape of the difficulty.

n attempts per task identify no more than the first n moments of G, the distribution of success
rates over tasks. So no shape is assumed: the band reaches from the smallest to the largest
E_G[g_k(p)] over *all* distributions G on [0, 1] whose log-likelihood is within ``cutoff`` of the
largest possible,

    minimise or maximise  theta.g   subject to   sum_j h_j log (B g)_j >= maximum - cutoff,

with g the weights of G on a grid of rates, theta the metric at each rate, h_j the tasks at the
j-th pair (n, c) and B their likelihoods. That is a convex programme with one price, 1/tau, for the
likelihood; tau is searched for, and every tau gives a certificate: for any prices v > 0 no
admissible G has a smaller theta.g than

    min over p of [theta(p) - (1/tau) sum_j v_j B_j(p)] + (T + maximum - cutoff - sum_j h_j
    log(h_j / v_j)) / tau.

It is taken over a grid four times as fine, and *that* outer value is reported: what the solver
leaves undone makes the band wider, never narrower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._arrays import FloatArray
from passhat.errors import InvalidValue
from passhat.estimates.metrics import CountMetric
from passhat.forecasts.grid import rate_grid
from passhat.forecasts.interior_point import Factored, Optimum, minimise
from passhat.forecasts.likelihood import scaled_likelihood
from passhat.outcomes import Histogram

__all__ = ["Admissible", "cutoff_for"]

_CUTOFF_AT_95 = 2.5
_MOST_SOLVES = 40
_CLOSE = 0.04  # of the deficit; the certificate's loss is of second order in it
_TIGHT = 5e-5  # between what some G attains and what no G can pass
_FINER = 4
_MOST_REFINEMENTS = 4
_MOST_DIPS = 40
_LOOKS = 17  # between three neighbours of the fine grid


def cutoff_for(level: float) -> float:
    """How far below the maximum the log-likelihood may lie: 2.5 at 95%.

    Wilks' theorem would say 1.92, half the chi-square quantile; it does not hold at the edge of
    all distributions, and 2.5 is what keeps the coverage of 95% where it was measured (see
    docs/benchmarks/forecast.md). Other levels scale it by the ratio of the chi-square quantiles.
    """
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level:g}.")
    return float(_CUTOFF_AT_95 * (ndtri((1 + level) / 2) / ndtri(0.975)) ** 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Support:
    """Rates at which a distribution may have mass, and the cells' likelihoods there."""

    cells: Histogram
    rates: FloatArray
    likelihood: Factored

    @classmethod
    def of(cls, cells: Histogram, rates: FloatArray) -> _Support:
        return cls(cells, rates, Factored.of(scaled_likelihood(cells, rates)))

    def joined(self, rates: FloatArray) -> _Support:
        """The same with a few more rates."""
        more = self.likelihood.widened(scaled_likelihood(self.cells, rates))
        return _Support(self.cells, np.concatenate([self.rates, rates]), more)

    def fit(self, weights: FloatArray) -> float:
        """The log-likelihood, up to a constant."""
        return float(self.cells.tasks @ np.log(self.likelihood.times(weights)))


_Theta = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Admissible:
    """All distributions of difficulty that the data do not reject.

    Made once for some outcomes and the metrics that will be asked; each end of each band is then
    one search.
    """

    support: _Support
    fine_rates: FloatArray
    fine_likelihood: FloatArray
    weights: FloatArray  # of the most likely distribution
    cutoff: float

    @classmethod
    def of(cls, cells: Histogram, metrics: Sequence[CountMetric], *, cutoff: float) -> Admissible:
        """Prepare the grid and the most likely distribution; every cell needs an attempt."""
        n = int(cells.n.max())
        fine = rate_grid(n, metrics, finer=_FINER)
        start = _Support.of(cells, rate_grid(n, metrics))
        blank = cls(start, fine, scaled_likelihood(cells, fine), np.empty(0), cutoff)
        solved = blank._solved(start, np.zeros_like, 0.0)
        return replace(blank, support=solved.support, weights=solved.optimum.weights)

    def ends(self, metric: CountMetric) -> tuple[float, float]:
        """The smallest and largest value of the metric over all admissible distributions."""
        return self.low(metric), self.high(metric)

    def low(self, metric: CountMetric) -> float:
        """The smallest value that is not rejected, or a little less."""
        return self._smallest(metric.known)

    def high(self, metric: CountMetric) -> float:
        """The largest value that is not rejected, or a little more."""
        return -self._smallest(lambda rates: -metric.known(rates))

    def _smallest(self, theta: _Theta) -> float:
        """Search for the tau at which the likelihood has fallen to the threshold.

        The deficit grows with tau, about as its square. Whatever happens, each tau tried gives a
        valid bound, and the best of them is returned.
        """
        support = self.support
        best = support.fit(self.weights)
        bound = float(theta(self.fine_rates).min())
        attained = float(theta(support.rates) @ self.weights)
        tasks = float(support.cells.tasks.sum())
        search = _Search(math.log(4 * math.sqrt(tasks)), math.log(self.cutoff))
        for _ in range(_MOST_SOLVES):
            if attained - bound < _TIGHT:
                break
            tau = math.exp(search.log_tau)
            found = self._solved(support, theta, tau)
            support = found.support
            # The grid's maximum is at most the true one: the threshold errs to the wide side.
            bound = max(bound, found.reduced + (tasks + best - self.cutoff - found.priced) / tau)
            fit = support.fit(found.optimum.weights)
            if fit >= best - self.cutoff:
                attained = min(attained, float(theta(support.rates) @ found.optimum.weights))
            if not search.advance(math.log(max(best - fit, 1e-9))):
                break
        return bound

    def _solved(self, support: _Support, theta: _Theta, tau: float) -> _Solved:
        """Solve for one tau; where the grid is too coarse for it, refine the grid and repeat.

        A lone task far from all others wants its mass at exactly its own share of passes, and
        a grid that misses it by a little costs much: all tasks bid for that place.
        """
        tasks = support.cells.tasks.astype(float)
        fine_theta = theta(self.fine_rates)
        unit = tau or 1.0
        for _ in range(_MOST_REFINEMENTS):
            found = minimise(support.likelihood, theta(support.rates), tasks, tau)
            prices = found.prices / unit
            fine = fine_theta * (tau / unit) - prices @ self.fine_likelihood
            own = theta(support.rates) * (tau / unit) - support.likelihood.priced(prices)
            rates, dips = self._dips(fine, theta, prices, tau / unit)
            lowest = min(float(fine.min()), float(dips.min(initial=np.inf)))
            deep = dips < own.min() - _TIGHT * (1 if tau else tasks.sum())
            if not deep.any():
                break
            support = support.joined(rates[deep])
            found = Optimum(np.append(found.weights, np.zeros(int(deep.sum()))), found.prices)
        priced = float(tasks @ np.log(tasks / found.prices))
        return _Solved(support, found, lowest, priced)

    def _dips(
        self, fine: FloatArray, theta: _Theta, prices: FloatArray, factor: float
    ) -> tuple[FloatArray, FloatArray]:
        """Where the reduced cost has its local minima, looked up between the fine rates."""
        inner = np.flatnonzero((fine[1:-1] < fine[:-2]) & (fine[1:-1] <= fine[2:])) + 1
        inner = inner[np.argsort(fine[inner])[:_MOST_DIPS]]
        if len(inner) == 0:
            return np.empty(0), np.empty(0)
        near = np.linspace(self.fine_rates[inner - 1], self.fine_rates[inner + 1], _LOOKS)
        cells = self.support.cells
        cost = factor * theta(near.ravel()) - prices @ scaled_likelihood(cells, near.ravel())
        cost = cost.reshape(near.shape)
        chosen = cost.argmin(axis=0)
        columns = np.arange(len(inner))
        return near[chosen, columns], cost[chosen, columns]


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """The optimum for one tau and the two numbers its certificate needs."""

    support: _Support
    optimum: Optimum
    reduced: float  # min over p of theta(p) - (1/tau) sum_j v_j B_j(p)
    priced: float  # sum_j h_j log(h_j / v_j)


@dataclass(slots=True)
class _Search:
    """Bracket and secant on log tau for a given log deficit."""

    log_tau: float
    goal: float
    below: tuple[float, float] | None = None
    above: tuple[float, float] | None = None

    def advance(self, log_deficit: float) -> bool:
        """Choose the next tau; False when this one is near enough or nothing is left to try."""
        gap = log_deficit - self.goal
        if abs(gap) < _CLOSE:
            return False
        if gap < 0:
            self.below = (self.log_tau, gap)
        else:
            self.above = (self.log_tau, gap)
        if self.below and self.above:
            (x0, y0), (x1, y1) = self.below, self.above
            middle = x0 - y0 * (x1 - x0) / (y1 - y0)
            # A secant that clings to one end is pulled towards the middle.
            margin = 0.1 * (x1 - x0)
            self.log_tau = min(max(middle, x0 + margin), x1 - margin)
            return x1 - x0 > 1e-3
        self.log_tau -= min(max(gap / 2, -3.0), 3.0)
        return -30 < self.log_tau < 45
