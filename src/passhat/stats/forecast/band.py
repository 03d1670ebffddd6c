"""The band: the smallest and largest value of a metric over all shapes of difficulty.

n attempts per task identify no more than the first n moments of G, the distribution of success
rates over tasks. So no shape is assumed: the band reaches from the smallest to the largest
E_G[g_k(p)] over *all* distributions G on [0, 1] whose log-likelihood is within ``cutoff`` of the
largest possible,

    minimize or maximize  theta.g   subject to   sum_j h_j log (B g)_j >= maximum - cutoff,

with g the weights of G on a grid of rates, theta the metric at each rate, h_j the tasks at the
j-th pair (n, c) and B their likelihoods. That is a convex program with one price, 1/tau, for the
likelihood; tau is searched for, and every tau gives a certificate: for any prices v > 0 no
admissible G has a smaller theta.g than

    min over p of [theta(p) - (1/tau) sum_j v_j B_j(p)] + (T + maximum - cutoff - sum_j h_j
    log(h_j / v_j)) / tau.

It is taken over a grid four times as fine, and *that* outer value is reported: what the solver
leaves undone makes the band wider, never narrower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, on_one_thread, special
from passhat.stats.estimate.metrics import CountMetric, GPass, PassAt, PassHat
from passhat.stats.estimate.mixture import Factored, minimise, scaled_likelihood
from passhat.stats.outcomes import Histogram

_TAIL_STEP = 0.1
_BULK_STEP = 0.1  # in units of the likelihood's width times two
_FINEST_BULK = 0.0015  # about a thousand points, for any n
_SMALLEST_TAIL = 1e-13  # nearer to 1 a double has no digits left
_STEEP = np.linspace(-4.0, 4.0, 65)  # widths around the step of gpass@k:t


def rate_grid(n: int, metrics: Iterable[CountMetric], *, finer: int = 1) -> FloatArray:
    """The grid for up to n attempts per task and these metrics; ``finer`` divides its steps.

    Below the first point after 0 every function of interest is a straight line to within a
    hundredth of its change, so that nothing is lost between the two; likewise before 1.
    """
    metrics = list(metrics)
    reach = [
        max((metric.k for metric in metrics if _matters(metric, side)), default=0) for side in "01"
    ]
    first, last = (max(0.02 / max(k, n) if k > n else 0.05 / n, _SMALLEST_TAIL) for k in reach)
    bulk_step = max(_BULK_STEP / math.sqrt(n), _FINEST_BULK)
    # Where both spacings are equally dense: sin(2 phi) = 4 bulk_step / tail_step.
    ratio = min(1.0, 4 * bulk_step / _TAIL_STEP)
    turn = math.asin(ratio) / 2
    bulk = np.sin(_steps(turn, math.pi / 2 - turn, bulk_step / finer)) ** 2
    joint = float(special.logit(math.sin(turn) ** 2))
    near_zero = special.expit(_steps(float(special.logit(first)), joint, _TAIL_STEP / finer))
    near_one = 1 - special.expit(_steps(float(special.logit(last)), joint, _TAIL_STEP / finer))
    steep = [_points_at_step(metric, finer) for metric in metrics if isinstance(metric, GPass)]
    points = np.unique(np.concatenate([[0.0, 1.0], near_zero, near_one, bulk, *steep]))
    is_distinct = np.diff(points, prepend=-1.0) > 1e-15
    return np.asarray(points[is_distinct], np.float64)


def _matters(metric: CountMetric, side: str) -> bool:
    """Whether k attempts distinguish rates that n attempts cannot: near 0 or near 1."""
    if metric.k == 1:
        return False
    if isinstance(metric, PassAt):
        return side == "0"
    return side == "1" if isinstance(metric, PassHat) else True


def _steps(start: float, stop: float, step: float) -> FloatArray:
    """Even steps from start to stop, both included; empty when there is no way to go."""
    if stop < start:
        return np.empty(0)
    return np.linspace(start, stop, max(2, math.ceil((stop - start) / step) + 1))


def _points_at_step(metric: GPass, finer: int) -> FloatArray:
    """Points where the chance of at least m of k passes climbs from 0 to 1."""
    middle = math.asin(math.sqrt((metric.needed - 0.5) / metric.k))
    offsets = np.linspace(_STEEP[0], _STEEP[-1], (len(_STEEP) - 1) * finer + 1)
    angles = np.clip(middle + offsets / (2 * math.sqrt(metric.k)), 0, math.pi / 2)
    return np.asarray(np.sin(angles) ** 2, np.float64)


_CUTOFF_AT_95 = 2.5
_EXTRA_WHEN_RARE, _RARE = 0.5, 3.0
_MOST_SOLVES = 40
_CLOSE = 0.04  # of the deficit; the certificate's loss is of second order in it
_TIGHT = 5e-5  # between a value that some G attains and a bound that no G can pass
_FINER = 4
_MOST_REFINEMENTS = 4
_TINY = 1e-300  # a product of rounded factors may fall below zero
_MOST_DIPS = 40
_LOOKS = 17  # between three neighbors of the fine grid


def cutoff_for(level: float, rare: float = math.inf) -> float:
    """How far below the maximum the log-likelihood may lie: 2.5 at 95%, 3 where an end is unseen.

    Wilks' theorem would say 1.92, half the chi-square quantile; it does not hold at the edge of
    all distributions, and 2.5 is what keeps the coverage of 95% where both kinds of tasks are
    plenty (docs/benchmarks/forecast.md). Where one kind was hardly seen, 2.5 is too little: a
    share of tasks of which none was seen is bounded by (1 - share)^tasks >= exp(-cutoff), which
    holds in 1 - exp(-2.5) = .918 of cases, at 10 tasks and at 1,000. The cutoff therefore rises to
    3 as ``rare``, the tasks of the rarer kind, falls to 0. Other levels scale it by the ratio of
    the chi-square quantiles.
    """
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level:g}.")
    at_95 = _CUTOFF_AT_95 + _EXTRA_WHEN_RARE * _RARE / (_RARE + rare)
    return float(at_95 * (special.ndtri((1 + level) / 2) / special.ndtri(0.975)) ** 2)


def rare_tasks(cells: Histogram, metric: CountMetric) -> int:
    """Tasks of the rarer kind at the end of the rates that the metric depends on.

    For pass@k the tasks that never passed or the others, for pass^k those that always passed or
    the others, whichever are fewer; for other metrics, and for k = 1, where they are one metric,
    the smaller of both.
    """
    total = int(cells.tasks.sum())
    never = int(cells.tasks[cells.c == 0].sum())
    always = int(cells.tasks[cells.c == cells.n].sum())
    kinds: tuple[int, ...] = (never, always)
    if metric.k > 1 and isinstance(metric, PassAt | PassHat):
        kinds = (never,) if isinstance(metric, PassAt) else (always,)
    return min(min(count, total - count) for count in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class _Support:
    """Rates at which a distribution may have mass, and the cells' likelihoods there."""

    cells: Histogram
    rates: FloatArray
    likelihood: Factored

    @classmethod
    def of(cls, cells: Histogram, rates: FloatArray) -> _Support:
        return cls(cells, rates, Factored.of(scaled_likelihood(cells, rates)))

    def add_rates(self, rates: FloatArray) -> _Support:
        """The same with a few more rates."""
        likelihood = self.likelihood.append_columns(scaled_likelihood(self.cells, rates))
        return _Support(self.cells, np.concatenate([self.rates, rates]), likelihood)

    def fit(self, weights: FloatArray) -> float:
        """The log-likelihood, up to a constant."""
        return float(self.cells.tasks @ np.log(np.maximum(self.likelihood.times(weights), _TINY)))


_Theta = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Admissible:
    """The distributions of difficulty that the data do not reject.

    Made once for some outcomes and the metrics that will be asked; each end of each band is then
    one search. ``cutoff`` is how far the log-likelihood may lie below its maximum.
    """

    support: _Support
    fine_rates: FloatArray
    fine_likelihood: FloatArray
    weights: FloatArray  # of the most likely distribution

    @classmethod
    @on_one_thread
    def of(cls, cells: Histogram, metrics: Sequence[CountMetric]) -> Admissible:
        """Prepare the grid and the most likely distribution; every cell needs an attempt."""
        n = int(cells.n.max())
        fine = rate_grid(n, metrics, finer=_FINER)
        support = _Support.of(cells, rate_grid(n, metrics))
        blank = cls(support, fine, scaled_likelihood(cells, fine), np.empty(0))
        for _ in range(_MOST_REFINEMENTS):
            solution = blank._solve(support, np.zeros_like, 0.0)
            if len(solution.wanted) == 0:
                break
            support = support.add_rates(solution.wanted)
        weights = np.pad(solution.weights, (0, len(support.rates) - len(solution.weights)))
        return replace(blank, support=support, weights=weights)

    def ends(self, metric: CountMetric, cutoff: float) -> tuple[float, float]:
        """The smallest and largest value of the metric over all admissible distributions."""
        return self.low(metric, cutoff), self.high(metric, cutoff)

    def low(self, metric: CountMetric, cutoff: float) -> float:
        """The smallest value that is not rejected, or a little less."""
        return self._smallest(metric.value_at_rate, cutoff)

    def high(self, metric: CountMetric, cutoff: float) -> float:
        """The largest value that is not rejected, or a little more."""
        return -self._smallest(lambda rates: -metric.value_at_rate(rates), cutoff)

    @on_one_thread
    def _smallest(self, theta: _Theta, cutoff: float) -> float:
        """Search for the tau at which the likelihood has fallen to the threshold.

        The deficit grows with tau, about as its square. In any case, each tau tried gives a
        valid bound, and the best of them is returned.
        """
        support = self.support
        best = support.fit(self.weights)
        bound = float(theta(self.fine_rates).min())
        smallest_value = float(theta(support.rates) @ self.weights)
        tasks = float(support.cells.tasks.sum())
        search = _Search(math.log(4 * math.sqrt(tasks)), math.log(cutoff))
        refinements = 0
        for _ in range(_MOST_SOLVES):
            tau = math.exp(search.log_tau)
            solution = self._solve(support, theta, tau)
            # The grid's maximum is at most the true one: the threshold errs to the wide side.
            bound = max(bound, solution.reduced + (tasks + best - cutoff - solution.priced) / tau)
            fit = support.fit(solution.weights)
            if fit >= best - cutoff:
                smallest_value = min(smallest_value, float(theta(support.rates) @ solution.weights))
            if smallest_value - bound < _TIGHT:
                break
            if not search.advance(math.log(max(best - fit, 1e-9))):
                if len(solution.wanted) == 0 or refinements == _MOST_REFINEMENTS:
                    break
                refinements += 1
            support = support.add_rates(solution.wanted)
        return bound

    def _solve(self, support: _Support, theta: _Theta, tau: float) -> _Solved:
        """Solve for a tau, and find further rates that should get mass.

        A lone task far from all others wants its mass at exactly its own share of passes, and
        a grid that misses it by a little costs much: all tasks bid for that place.
        """
        tasks = support.cells.tasks.astype(float)
        optimum = minimise(support.likelihood, theta(support.rates), tasks, tau)
        # Without a metric (tau = 0) costs are counted in tasks.
        unit, factor = (tau, 1.0) if tau else (float(tasks.sum()), 0.0)
        prices = optimum.prices / unit
        fine = factor * theta(self.fine_rates) - prices @ self.fine_likelihood
        grid_cost = factor * theta(support.rates) - support.likelihood.priced(prices)
        rates, dips = self._dips(fine, theta, prices, factor)
        return _Solved(
            weights=optimum.weights,
            reduced=min(float(fine.min()), float(dips.min(initial=np.inf))),
            priced=float(tasks @ np.log(tasks / optimum.prices)),
            wanted=rates[dips < grid_cost.min() - _TIGHT],
        )

    def _dips(
        self, fine: FloatArray, theta: _Theta, prices: FloatArray, factor: float
    ) -> tuple[FloatArray, FloatArray]:
        """Local minima of the reduced cost, refined between the fine rates."""
        inner = np.flatnonzero((fine[1:-1] < fine[:-2]) & (fine[1:-1] <= fine[2:])) + 1
        inner = inner[np.argsort(fine[inner])[:_MOST_DIPS]]
        if len(inner) == 0:
            return np.empty(0), np.empty(0)
        near = np.linspace(self.fine_rates[inner - 1], self.fine_rates[inner + 1], _LOOKS)
        cells = self.support.cells
        cost = factor * theta(near.ravel()) - prices @ scaled_likelihood(cells, near.ravel())
        cost = cost.reshape(near.shape)
        lowest = cost.argmin(axis=0)
        columns = np.arange(len(inner))
        return near[lowest, columns], cost[lowest, columns]


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
