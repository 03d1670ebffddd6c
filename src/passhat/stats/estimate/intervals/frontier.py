r"""The frontier: the smallest and largest value of a metric that the attempts do not contradict.

For *these tasks* the success rates p_i are fixed and unknown; only the attempts vary. Let G be the
distribution of the p_i, U the point estimate, u its value for one task at c passes, and m the
number of tasks. A distribution G is kept when

- its log-likelihood is within ``kappa`` of the largest one, and
- U is no surprise under it: for every s of a grid of both signs,

  .. math:: s U - |s| d - E_G \log E[e^{s u} \mid p] \le b / m .

The sum of m independent tasks has the cumulant generating function
:math:`m E_G \log E[e^{su} \mid p]`, so the second condition bounds the exponent of a saddlepoint
tail probability; ``b`` is half the square of a normal quantile (signed root), ``d`` a continuity
correction of half the largest step of u. Every such condition is linear in G. The ends of the
interval are the smallest and largest :math:`E_G f(p)` over all G that are kept: a linear objective,
linear constraints and one concave constraint.

Where tasks have different n, each number of attempts has a distribution of its own, because n may
say something about the rate; ``kappa`` is for all of them together. It does when an earlier run
chose n, when timeouts are left out, and when a suite grew. One common G would then describe no
task: with 99 tasks at rate .5 and n = 1 among 500 at rate 1 and n = 40 or 80, joining sizes covered
.38 at 95%.

The problem is solved on a grid of rates by a primal-dual interior-point method
(:mod:`passhat.stats.estimate.intervals.interior_point`) that starts from the most likely
distribution and stays inside the constraints, so it always has an answer. What is reported is not
the solver's value but a certificate: for any prices v, w >= 0 and rho >= 0, no kept G has an
:math:`E_G f` below

.. math:: \min_p [f(p) - \rho\, v \cdot B(p) + w \cdot A(p)] + \rho\, q(v) - w \cdot r ,

taken over a grid three times as fine. An early end of the solver makes the interval wider.

References
----------
H. E. Daniels (1987), Tail probability approximations, Int. Statist. Rev. 55.
S. Boyd and L. Vandenberghe (2004), Convex Optimization, section 11.7 (primal-dual methods).
R. Koenker and I. Mizera (2014), Convex optimization, shape constraints, compound decisions, and
    empirical Bayes rules, JASA 109.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray, log_binomial, special
from passhat.stats.estimate.intervals.interior_point import FitLimits, Problem, Side
from passhat.stats.estimate.mixture import Factored, minimise, scaled_likelihood
from passhat.stats.outcomes import Histogram

_SMALLEST = 1e-300
_LARGEST_TILT = 25.0
_TILT_RATIO = 1.5  # a tilt between two of the grid loses at most 5% of the exponent
_FINER = 3
_LET_IN = 0.02  # of the largest surprise
_MOST_STRATA = 24
_FEW_TASKS = 10
_MOST_COUNTED = 2_000
_FINEST_STEP = 0.0035
"""A third of the standard deviation of a rate after 2,000 attempts, all that are counted. Steps of
.0015 took four times as long and gave intervals of the same width."""
_MOST_KEPT = 10_000_000  # probabilities, 80 MB


@dataclass(frozen=True, slots=True)
class Calibration:
    """The constants of the frontier at one confidence level.

    ``surprise`` is b, ``fit`` is kappa; ``step`` is d in steps of u. Tuned by
    ``benchmarks/these_tasks_exact.py``, which searches for the rates with the largest chance of a
    miss.
    """

    surprise: float
    fit: float
    step: float = 0.5

    @classmethod
    def at(cls, level: float, tasks: int) -> Calibration:
        """For a two-sided interval of this level, each of whose ends holds at (1 + level) / 2.

        kappa is the log of 1 / tail: attempts that all pass at rates where that happens with chance
        ``tail`` must keep those rates, and their likelihood is that chance of the largest one. Few
        tasks make the mean of u jump in large steps, for which half a step is not enough.
        """
        tail = (1 - level) / 2
        step = 0.5 + 0.25 * min(1.0, _FEW_TASKS / tasks)
        return cls(float(special.ndtri(tail)) ** 2 / 2, -math.log(tail), step)


@dataclass(frozen=True, slots=True, eq=False)
class Attempted:
    """The attempts at some tasks, and the distributions of success rates that explain them.

    Made once for a histogram; every statistic of the same tasks uses it again.
    """

    cells: Histogram
    rates: FloatArray
    fine_rates: FloatArray
    likelihood: Factored
    fine_likelihood: FloatArray
    best: FloatArray  # the most likely weights
    _tables: dict[tuple[int, int], FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, cells: Histogram) -> Attempted:
        n = int(cells.n.max())
        rates, fine = _rate_grid(n), _rate_grid(n, _FINER)
        likelihood = Factored.of(scaled_likelihood(cells, rates))
        best = minimise(likelihood, np.zeros_like(rates), cells.tasks.astype(float), 0.0).weights
        return cls(cells, rates, fine, likelihood, scaled_likelihood(cells, fine), best)

    @property
    def sizes(self) -> list[tuple[int, float]]:
        """The different numbers of attempts, and the share of tasks that have each."""
        n, member = np.unique(self.cells.n, return_inverse=True)
        share = np.bincount(member, weights=self.cells.tasks) / self.cells.size
        return list(zip(n.tolist(), share.tolist(), strict=True))

    def probabilities(self, n: int, rates: FloatArray) -> FloatArray:
        """P(c passes in n attempts) for every c and every rate of one of the two grids.

        Kept while they are small in total, because every statistic of the same tasks needs them.
        """
        table_in_cache = self._tables.get((n, len(rates)))
        if table_in_cache is not None:
            return table_in_cache
        chances: FloatArray = np.exp(log_binomial(n, np.arange(n + 1)[:, None], rates))
        if sum(table.size for table in self._tables.values()) + chances.size <= _MOST_KEPT:
            self._tables[n, len(rates)] = chances
        return chances


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A mean over tasks of a function of their passes.

    ``values(n, c)`` is u at c passes in n attempts, c an array; ``target`` is the function f of the
    success rate that u estimates without bias. A statistic of ``sign`` -1 is subtracted; ``share``
    is the part of all tasks that it is about.
    """

    attempted: Attempted
    values: Callable[[int, IntArray], FloatArray]
    target: Callable[[FloatArray], FloatArray]
    sign: float = 1.0
    share: float = 1.0

    def largest_step(self) -> float:
        """The largest change of u from one number of passes to the next."""
        sizes = self.attempted.sizes
        return max(
            float(np.abs(np.diff(self._values_on_grid(n))).max(initial=0.0)) for n, _ in sizes
        )

    def spread(self) -> float:
        """The largest u minus the smallest."""
        return max(float(np.ptp(self._values_on_grid(n))) for n, _ in self.attempted.sizes)

    def _values_on_grid(self, n: int) -> FloatArray:
        """u at all numbers of passes, or at evenly spaced numbers where n is very large."""
        return self.values(n, np.linspace(0, n, min(n, _MOST_COUNTED) + 1).round().astype(np.int64))

    def point(self) -> float:
        """The contribution of its tasks to the mean of u over all tasks, with its sign."""
        cells, total = self.attempted.cells, 0.0
        for n, _ in self.attempted.sizes:
            at = cells.n == n
            total += float(self.values(n, cells.c[at]) @ cells.tasks[at])
        return self.sign * self.share * total / cells.size

    def log_moments(self, rates: FloatArray, tilts: FloatArray) -> FloatArray:
        """log E[e^{s u} | p] for every tilt and rate, averaged over the different n, times share.

        Beyond a few thousand attempts the moments are those of a binomial with fewer trials,
        spread over the same values: a little more variance, so a little wider an interval.
        """
        total = np.zeros((len(tilts), len(rates)))
        for size, share in self.attempted.sizes:
            u = self._values_on_grid(size)
            chances = self.attempted.probabilities(len(u) - 1, rates)
            moments = np.exp(self.sign * tilts[:, None] * u) @ chances
            total += share * np.log(moments)
        return self.share * total


def frontier(statistics: Sequence[Statistic], calibration: Calibration) -> tuple[float, float]:
    """The smallest and the largest sum of E_G f that the attempts allow.

    One statistic gives the interval of a metric. Two, the second with sign -1, give the interval of
    a difference: the log-moments of B at s and of A at -s are added, and each run keeps its own
    likelihood region. The strata of a run share one.
    """
    problem = _problem(statistics, calibration)
    return problem.smallest(1.0), -problem.smallest(-1.0)


def strata(cells: Histogram) -> list[tuple[Histogram, float]]:
    """The tasks by their number of attempts, and the share of the tasks in each part.

    Every n has a part of its own, however few tasks have it: n may say something about the rate
    (timeouts left out, a suite that grew), and tasks of different n that are joined hide it. Of
    more than ``_MOST_STRATA`` different n the nearest by ratio are joined.
    """
    sizes, member = np.unique(cells.n, return_inverse=True)
    distances = np.sort(np.diff(np.log(np.maximum(sizes, 0.5))))[::-1]
    least = distances[_MOST_STRATA - 1] if len(sizes) > _MOST_STRATA else -1.0
    label = np.concatenate([[0], np.cumsum(np.diff(np.log(np.maximum(sizes, 0.5))) > least)])
    parts = []
    for part in range(int(label[-1]) + 1):
        here = label[member] == part
        stratum = Histogram(cells.n[here], cells.c[here], cells.tasks[here])
        parts.append((stratum, stratum.size / cells.size))
    return parts


def thin(cells: Histogram, k: int) -> Histogram:
    """The same shares of passes in at most a few thousand attempts, which are less certain.

    The tables have a row for every number of passes: 200,000 attempts at a task would take
    gigabytes, and move the ends by less than a tenth of a point.
    """
    limit = max(_MOST_COUNTED, 8 * k)
    if int(cells.n.max()) <= limit:
        return cells
    n = np.minimum(cells.n, limit)
    c = np.round(cells.c * (n / cells.n)).astype(np.int64)
    pairs, place = np.unique(np.stack((n, c)), axis=1, return_inverse=True)
    tasks = np.bincount(place.ravel(), weights=cells.tasks).astype(np.int64)
    return Histogram(pairs[0], pairs[1], tasks)


def holds(statistics: Sequence[Statistic], calibration: Calibration, value: float) -> bool:
    """Whether the interval holds a value; costs one end instead of two."""
    problem = _problem(statistics, calibration)
    point = sum(statistic.point() for statistic in statistics)
    if value <= point:
        return min(problem.smallest(1.0), point) <= value
    return max(-problem.smallest(-1.0), point) >= value


def _problem(statistics: Sequence[Statistic], calibration: Calibration) -> Problem:
    """The statistics on their grids, with the limits of all tilts."""
    tasks = round(statistics[0].attempted.cells.size / statistics[0].share)
    # The grid of tilts is made for statistics that span 1 or less.
    unit = max(1.0, *(statistic.spread() for statistic in statistics), 1.0)
    tilts = _tilts(tasks, calibration.surprise) / unit
    step = max(statistic.largest_step() for statistic in statistics)
    limits = (
        calibration.surprise / tasks
        - tilts * sum(statistic.point() for statistic in statistics)
        + np.abs(tilts) * calibration.step * step / tasks
    )
    sides = [_side(statistic, tilts) for statistic in statistics]
    fits = _fit_limits(statistics, sides, calibration.fit)
    return Problem.of(sides, limits, fits, _LET_IN * calibration.surprise / tasks)


def _fit_limits(statistics: Sequence[Statistic], sides: Sequence[Side], kappa: float) -> FitLimits:
    """The parts of a run together fit no worse than by kappa.

    Whichever attempts all pass must keep the rates at which that has chance ``tail``, be they those
    of one part or of all. A limit for each part would let all of them fit badly at once.
    """
    tasks = np.array([statistic.attempted.cells.size for statistic in statistics], float)
    signs = np.array([statistic.sign for statistic in statistics])
    weights = np.array([np.where(signs == sign, tasks, 0.0) for sign in np.unique(signs)])
    counts = weights.sum(axis=1)
    weights /= counts[:, None]  # per task, so that the numbers of small and large suites are alike
    return FitLimits(weights, weights @ [side.fit for side in sides] - kappa / counts)


def _tilts(tasks: int, surprise: float) -> FloatArray:
    """The grid of s, both signs; no statistic on [0, 1] needs a smaller s than the first."""
    first = min(0.7 * math.sqrt(8 * surprise / tasks), _LARGEST_TILT / _TILT_RATIO**4)
    count = math.ceil(math.log(_LARGEST_TILT / first) / math.log(_TILT_RATIO)) + 1
    positive = np.geomspace(first, _LARGEST_TILT, count)
    return np.concatenate([-positive[::-1], positive])


def _rate_grid(n: int, finer: int = 1) -> FloatArray:
    """Rates from 0 to 1, even in the arcsine of sqrt(p), with more of them next to 0 and 1."""
    step = max(0.055 / math.sqrt(n), _FINEST_STEP) / finer
    bulk = np.sin(np.linspace(0.0, math.pi / 2, math.ceil(math.pi / 2 / step) + 1)) ** 2
    tail = 0.5 * np.sin(step * finer) ** 2 * np.geomspace(0.02, 1.0, 6 * finer)
    return np.unique(np.concatenate([bulk, tail, 1 - tail]))


def _side(statistic: Statistic, tilts: FloatArray) -> Side:
    """A statistic on the grids, with the best mean log-likelihood.

    The grid's maximum is at most the true one: limits made from it err to the wide side.
    """
    attempts = statistic.attempted
    shares = attempts.cells.tasks / attempts.cells.size
    return Side(
        shares,
        attempts.likelihood,
        statistic.log_moments(attempts.rates, tilts),
        statistic.sign * statistic.share * statistic.target(attempts.rates),
        attempts.fine_likelihood,
        statistic.log_moments(attempts.fine_rates, tilts),
        statistic.sign * statistic.share * statistic.target(attempts.fine_rates),
        attempts.best,
        _fit(shares, attempts.likelihood.times(attempts.best)),
    )


def _fit(shares: FloatArray, y: FloatArray) -> float:
    """The mean log-likelihood of a task."""
    return float(shares @ np.log(np.maximum(y, _SMALLEST)))
