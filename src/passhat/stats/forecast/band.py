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

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.estimate.mixture import Factored, minimise, scaled_likelihood
from passhat.stats.forecast.grid import rate_grid
from passhat.stats.outcomes import Histogram

__all__ = ["Admissible", "cutoff_for"]

_CUTOFF_AT_95 = 2.5
_MOST_SOLVES = 40
_CLOSE = 0.04  # of the deficit; the certificate's loss is of second order in it
_TIGHT = 5e-5  # between what some G attains and what no G can pass
_FINER = 4
_MOST_REFINEMENTS = 4
_TINY = 1e-300  # a product of rounded factors may fall below zero
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
        return float(self.cells.tasks @ np.log(np.maximum(self.likelihood.times(weights), _TINY)))


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
        support = _Support.of(cells, rate_grid(n, metrics))
        blank = cls(support, fine, scaled_likelihood(cells, fine), np.empty(0), cutoff)
        for _ in range(_MOST_REFINEMENTS):
            solved = blank._solved(support, np.zeros_like, 0.0)
            if len(solved.wanted) == 0:
                break
            support = support.joined(solved.wanted)
        weights = np.pad(solved.weights, (0, len(support.rates) - len(solved.weights)))
        return replace(blank, support=support, weights=weights)

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
        refinements = 0
        for _ in range(_MOST_SOLVES):
            tau = math.exp(search.log_tau)
            found = self._solved(support, theta, tau)
            # The grid's maximum is at most the true one: the threshold errs to the wide side.
            bound = max(bound, found.reduced + (tasks + best - self.cutoff - found.priced) / tau)
            fit = support.fit(found.weights)
            if fit >= best - self.cutoff:
                attained = min(attained, float(theta(support.rates) @ found.weights))
            if attained - bound < _TIGHT:
                break
            if not search.advance(math.log(max(best - fit, 1e-9))):
                if len(found.wanted) == 0 or refinements == _MOST_REFINEMENTS:
                    break
                refinements += 1
            support = support.joined(found.wanted)
        return bound

    def _solved(self, support: _Support, theta: _Theta, tau: float) -> _Solved:
        """Solve for one tau, and say at which further rates mass would be wanted.

        A lone task far from all others wants its mass at exactly its own share of passes, and
        a grid that misses it by a little costs much: all tasks bid for that place.
        """
        tasks = support.cells.tasks.astype(float)
        found = minimise(support.likelihood, theta(support.rates), tasks, tau)
        # Without a metric (tau = 0) costs are counted in tasks.
        unit, factor = (tau, 1.0) if tau else (float(tasks.sum()), 0.0)
        prices = found.prices / unit
        fine = factor * theta(self.fine_rates) - prices @ self.fine_likelihood
        own = factor * theta(support.rates) - support.likelihood.priced(prices)
        rates, dips = self._dips(fine, theta, prices, factor)
        return _Solved(
            weights=found.weights,
            reduced=min(float(fine.min()), float(dips.min(initial=np.inf))),
            priced=float(tasks @ np.log(tasks / found.prices)),
            wanted=rates[dips < own.min() - _TIGHT],
        )

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
    """The optimum for one tau, the two numbers its certificate needs, and a finer grid."""

    weights: FloatArray
    reduced: float  # min over p of theta(p) - (1/tau) sum_j v_j B_j(p)
    priced: float  # sum_j h_j log(h_j / v_j)
    wanted: FloatArray  # rates that are missing on the grid


@dataclass(slots=True)
class _Search:
    """Bracket and secant on log tau for a given log deficit."""

    log_tau: float
    goal: float
    below: tuple[float, float] | None = None
    above: tuple[float, float] | None = None
    last_gap: float = 0.0

    def advance(self, log_deficit: float) -> bool:
        """Choose the next tau; False when this one is near enough or nothing is left to try."""
        gap = log_deficit - self.goal
        if abs(gap) < _CLOSE:
            return False
        same_side = self.last_gap * gap > 0
        self.last_gap = gap
        if gap < 0:
            self.below = (self.log_tau, gap)
        else:
            self.above = (self.log_tau, gap)
        if not self.below or not self.above:
            self.log_tau -= min(max(gap / 2, -3.0), 3.0)
            return -30 < self.log_tau < 45
        (x0, y0), (x1, y1) = self.below, self.above
        # A secant that stays on one side is replaced by the middle.
        self.log_tau = (x0 + x1) / 2 if same_side else x0 - y0 * (x1 - x0) / (y1 - y0)
        return x1 - x0 > _CLOSE / 4
