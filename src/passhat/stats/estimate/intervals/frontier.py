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
say something about the rate. It does when an earlier run chose it, when timeouts are left out, and
when a suite grew. One common G would then describe no task: with 99 tasks at rate .5 and n = 1
among 500 at rate 1 and n = 40 or 80, joining sizes covered .38 at 95%.

The problem is solved on a grid of rates by a primal-dual interior-point method that starts from the
most likely distribution and stays inside the constraints, so it always has an answer. What is
reported is not the solver's value but a certificate: for any prices v, w >= 0 and rho >= 0, no kept
G has an :math:`E_G f` below

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
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotrs
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.mixture import Factored, minimise, scaled_likelihood
from passhat.stats.outcomes import Histogram

__all__ = ["Attempted", "Calibration", "Statistic", "frontier", "holds", "strata"]

_MOST_ITERATIONS = 50
_STARTS = (0.3, 0.03, 0.003, 0.0003, 0.8)
_LOST = 1e2  # mean product of slack and price at which a search is given up
_PATIENCE = 3
_LATE = 1e-6  # mean product of slack and price from which on a bound should improve
_GAP = 3e-5  # between a value that some G attains and a bound that no G on the grid can pass
_STAY_INSIDE = 0.99
_SMALLEST = 1e-300
_LARGEST_TILT = 25.0
_TILT_RATIO = 1.5  # a tilt between two of the grid loses at most 5% of the exponent
_FINER = 3
_LARGEST_DENSE = 400
_LET_IN = 0.02  # of the largest surprise
_MOST_STRATA = 24
_FEW_TASKS = 10
_MOST_COUNTED = 2_000
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
        return cls(float(ndtri(tail)) ** 2 / 2, -math.log(tail), step)


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
    _kept: dict[tuple[int, int], FloatArray] = field(default_factory=dict, repr=False)

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
        known = self._kept.get((n, len(rates)))
        if known is not None:
            return known
        c = np.arange(n + 1)
        logs = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
        made = np.exp(logs[:, None] + xlogy(c[:, None], rates) + xlog1py((n - c)[:, None], -rates))
        if sum(table.size for table in self._kept.values()) + made.size <= _MOST_KEPT:
            self._kept[n, len(rates)] = made
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A mean over tasks of a function of their passes.

    ``values(n, c)`` is u at c passes in n attempts, c an array; ``target`` is the function f of the
    success rate that u estimates without bias. A statistic of ``sign`` -1 is subtracted; ``share``
    is the part of all tasks that it is about, ``parts`` how many such parts there are.
    """

    attempted: Attempted
    values: Callable[[int, IntArray], FloatArray]
    target: Callable[[FloatArray], FloatArray]
    sign: float = 1.0
    share: float = 1.0
    parts: int = 1

    def largest_step(self) -> float:
        """The largest change of u from one number of passes to the next."""
        sizes = self.attempted.sizes
        return max(float(np.abs(np.diff(self._spaced(n))).max(initial=0.0)) for n, _ in sizes)

    def spread(self) -> float:
        """The largest u minus the smallest."""
        return max(float(np.ptp(self._spaced(n))) for n, _ in self.attempted.sizes)

    def _spaced(self, n: int) -> FloatArray:
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
            u = self._spaced(size)
            seen = self.attempted.probabilities(len(u) - 1, rates)
            moments = np.exp(self.sign * tilts[:, None] * u) @ seen
            total += share * np.log(moments)
        return self.share * total


def frontier(statistics: Sequence[Statistic], calibration: Calibration) -> tuple[float, float]:
    """The smallest and the largest sum of E_G f that the attempts allow.

    One statistic gives the interval of a metric. Two, the second with sign -1, give the interval of
    a difference: the log-moments of B at s and of A at -s are added, and each side keeps its own
    likelihood region. So do the strata of either.
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
    apart = np.sort(np.diff(np.log(np.maximum(sizes, 0.5))))[::-1]
    least = apart[_MOST_STRATA - 1] if len(sizes) > _MOST_STRATA else -1.0
    label = np.concatenate([[0], np.cumsum(np.diff(np.log(np.maximum(sizes, 0.5))) > least)])
    parts = []
    for part in range(int(label[-1]) + 1):
        here = label[member] == part
        stratum = Histogram(cells.n[here], cells.c[here], cells.tasks[here])
        parts.append((stratum, stratum.size / cells.size))
    return parts


def holds(statistics: Sequence[Statistic], calibration: Calibration, value: float) -> bool:
    """Whether the interval holds a value; costs one end instead of two."""
    problem = _problem(statistics, calibration)
    point = sum(statistic.point() for statistic in statistics)
    if value <= point:
        return min(problem.smallest(1.0), point) <= value
    return max(-problem.smallest(-1.0), point) >= value


def _problem(statistics: Sequence[Statistic], calibration: Calibration) -> _Problem:
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
    sides = [_Side.of(statistic, tilts, calibration.fit) for statistic in statistics]
    return _Problem.of(sides, limits, _LET_IN * calibration.surprise / tasks)


def _tilts(tasks: int, surprise: float) -> FloatArray:
    """The grid of s, both signs; no statistic on [0, 1] needs a smaller s than the first."""
    first = min(0.7 * math.sqrt(8 * surprise / tasks), _LARGEST_TILT / _TILT_RATIO**4)
    count = math.ceil(math.log(_LARGEST_TILT / first) / math.log(_TILT_RATIO)) + 1
    positive = np.geomspace(first, _LARGEST_TILT, count)
    return np.concatenate([-positive[::-1], positive])


def _rate_grid(n: int, finer: int = 1) -> FloatArray:
    """Rates from 0 to 1, even in the arcsine of sqrt(p), with more of them next to 0 and 1."""
    step = max(0.055 / math.sqrt(n), 0.0015) / finer
    bulk = np.sin(np.linspace(0.0, math.pi / 2, math.ceil(math.pi / 2 / step) + 1)) ** 2
    tail = 0.5 * np.sin(step * finer) ** 2 * np.geomspace(0.02, 1.0, 6 * finer)
    return np.unique(np.concatenate([bulk, tail, 1 - tail]))


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """A statistic on the grids."""

    shares: FloatArray  # of the tasks in each cell
    likelihood: Factored
    moments: FloatArray  # (tilts, rates)
    target: FloatArray
    fine_likelihood: FloatArray
    fine_moments: FloatArray
    fine_target: FloatArray
    start: FloatArray
    floor: float  # of the mean log-likelihood

    @classmethod
    def of(cls, statistic: Statistic, tilts: FloatArray, fit: float) -> _Side:
        tried = statistic.attempted
        shares = tried.cells.tasks / tried.cells.size
        return cls(
            shares,
            tried.likelihood,
            statistic.log_moments(tried.rates, tilts),
            statistic.sign * statistic.share * statistic.target(tried.rates),
            tried.fine_likelihood,
            statistic.log_moments(tried.fine_rates, tilts),
            statistic.sign * statistic.share * statistic.target(tried.fine_rates),
            tried.best,
            # The grid's maximum is at most the true one: the floor errs to the wide side.
            # Several parts need not all fit badly at once; see docs/benchmarks/allocation.md.
            _fit(shares, tried.likelihood.times(tried.best))
            - fit / math.sqrt(statistic.parts) / tried.cells.size,
        )


def _fit(shares: FloatArray, y: FloatArray) -> float:
    """The mean log-likelihood of a task."""
    return float(shares @ np.log(np.maximum(y, _SMALLEST)))


@dataclass(slots=True)
class _Point:
    """Weights, slacks and prices of all sides; also used for a direction."""

    g: FloatArray  # weights of all sides, after each other
    y: FloatArray  # likelihoods of all cells
    t: FloatArray  # the rest of each tilt's limit
    q: FloatArray  # the rest of each side's likelihood
    s: FloatArray  # prices of g >= 0
    v: FloatArray  # prices of the cells' likelihoods
    w: FloatArray  # prices of the tilts
    rho: FloatArray  # prices of the sides' likelihoods

    def finite(self) -> bool:
        return all(
            bool(np.isfinite(part).all()) for part in (self.g, self.s, self.v, self.w, self.rho)
        )

    def primal_reach(self, step: _Point) -> float:
        return min(
            _reach(self.g, step.g),
            _reach(self.y, step.y),
            _reach(self.t, step.t),
            _reach(self.q, step.q),
        )

    def dual_reach(self, step: _Point) -> float:
        return min(
            _reach(self.s, step.s),
            _reach(self.v, step.v),
            _reach(self.w, step.w),
            _reach(self.rho, step.rho),
        )

    def moved(self, step: _Point, inside: float) -> _Point:
        """A step as long as everything stays positive."""
        primal = min(1.0, inside * self.primal_reach(step))
        dual = min(1.0, inside * self.dual_reach(step))
        return _Point(
            self.g + primal * step.g,
            self.y + primal * step.y,
            self.t + primal * step.t,
            self.q + primal * step.q,
            self.s + dual * step.s,
            self.v + dual * step.v,
            self.w + dual * step.w,
            self.rho + dual * step.rho,
        )

    def gap(self) -> float:
        """The mean product of a slack and its price."""
        count = len(self.g) + len(self.t) + len(self.q)
        return float(self.g @ self.s + self.t @ self.w + self.q @ self.rho) / count


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Minimise target.g over the weights of all sides, within the constraints."""

    sides: Sequence[_Side]
    parts: Sequence[slice]
    moments: FloatArray  # (tilts, all rates)
    limits: FloatArray  # -moments @ g <= limits
    rows: FloatArray  # of the system: likelihoods of all sides, tilts, slopes of the likelihoods
    start: FloatArray
    cells: Sequence[slice]
    lengths: Sequence[int]  # cells of each side
    shares: FloatArray  # of the tasks in every cell of every side
    floors: FloatArray
    ones: FloatArray  # (sides, all rates): the rates of each side

    @classmethod
    def of(cls, sides: Sequence[_Side], limits: FloatArray, room: float) -> _Problem:
        ends = np.cumsum([0, *(len(side.start) for side in sides)]).tolist()
        parts = [slice(a, b) for a, b in pairwise(ends)]
        moments = np.hstack([side.moments for side in sides])
        best = np.concatenate([side.start for side in sides])
        # Attempts that vary less than independent ones do (copies, for example) can make the
        # point a surprise even under the most likely distribution: it is then let in.
        limits = np.maximum(limits, room - moments @ best)
        ranks = [len(side.likelihood.right) for side in sides]
        rows = np.zeros((sum(ranks) + len(limits) + len(sides), ends[-1]))
        at = 0
        for side, part, rank in zip(sides, parts, ranks, strict=True):
            rows[at : at + rank, part] = side.likelihood.right
            at += rank
        rows[at : at + len(limits)] = -moments
        lengths = [len(side.shares) for side in sides]
        edges = np.cumsum([0, *lengths]).tolist()
        ones = np.zeros((len(sides), ends[-1]))
        for k, part in enumerate(parts):
            ones[k, part] = 1.0
        return cls(
            sides,
            parts,
            moments,
            limits,
            rows,
            best,
            [slice(a, b) for a, b in pairwise(edges)],
            lengths,
            np.concatenate([side.shares for side in sides]),
            np.array([side.floor for side in sides]),
            ones,
        )

    def smallest(self, sign: float) -> float:
        """A value that no admissible distribution passes: the certificate on the fine grid.

        From a start far inside, the likelihood's slack sometimes runs out long before the rest
        fits. Starts nearer to the most likely distribution do not have that trouble, and are
        slower; the best bound of all that were tried is valid.
        """
        theta = sign * np.concatenate([side.target for side in self.sides])
        bound = -math.inf
        for even in _STARTS:
            reached, done = self._search(theta, sign, even)
            bound = max(bound, reached)
            if done:
                break
        return bound

    def _search(self, theta: FloatArray, sign: float, even: float) -> tuple[float, bool]:
        """The best bound from a start, and whether the search converged by itself."""
        here = self._start(theta, even)
        bound, since = -math.inf, 0
        for _ in range(_MOST_ITERATIONS):
            own, fine = self._bound(here, theta, sign)
            late = here.gap() < _LATE
            since = since + 1 if late and fine <= bound else 0
            bound = max(bound, fine)
            # Early on, while constraints are not met yet, the two may pass each other by chance.
            if late and abs(float(theta @ here.g) - own) < _GAP:
                return bound, True
            # Rounding ends the progress between 1e-5 and 1e-6; the bound stays valid.
            if since > _PATIENCE:
                return bound, True
            try:
                with np.errstate(all="ignore"):  # values that are not finite are noticed below
                    following = self._step(here, theta)
            except (np.linalg.LinAlgError, ValueError, ZeroDivisionError):
                return bound, late
            if not following.finite() or following.gap() > _LOST:
                return bound, late
            here = following
        return bound, False

    def _times(self, g: FloatArray) -> FloatArray:
        """The likelihoods of all cells."""
        return np.concatenate(
            [
                side.likelihood.times(g[part])
                for side, part in zip(self.sides, self.parts, strict=True)
            ]
        )

    def _priced(self, v: FloatArray) -> FloatArray:
        """The price of each rate at these prices of the cells."""
        return np.concatenate(
            [
                side.likelihood.priced(v[cells])
                for side, cells in zip(self.sides, self.cells, strict=True)
            ]
        )

    def _fits(self, y: FloatArray) -> FloatArray:
        """Each side's mean log-likelihood above its floor."""
        logs = self.shares * np.log(y)
        return np.add.reduceat(logs, [cells.start for cells in self.cells]) - self.floors

    def _start(self, theta: FloatArray, even: float) -> _Point:
        """The most likely distributions, with a share spread evenly; slacks and prices positive."""
        g = self.start.copy()
        for part in self.parts:
            g[part] = (1 - even) * g[part] / g[part].sum() + even / len(g[part])
        y = self._times(g)
        t = np.maximum(self.limits + self.moments @ g, 0.1)
        q = np.maximum(self._fits(y), 0.1)
        mu = 0.1 * float(np.ptp(theta)) / len(g)
        rho = mu / q
        v = np.repeat(rho, self.lengths) * self.shares / y
        return _Point(g, y, t, q, mu / g, v, mu / t, rho)

    def _bound(self, here: _Point, theta: FloatArray, sign: float) -> tuple[float, float]:
        """The certificate of these prices, on the solver's grid and on the fine one."""
        rho = np.repeat(here.rho, self.lengths)
        prices = here.v / rho
        common = float(here.rho @ (self.floors + 1)) - float(here.w @ self.limits)
        common -= float((rho * self.shares) @ np.log(self.shares / prices))
        costs = theta - self._priced(here.v) - here.w @ self.moments
        own = fine = common
        for side, part, cells in zip(self.sides, self.parts, self.cells, strict=True):
            own += float(costs[part].min())
            cost = sign * side.fine_target - here.v[cells] @ side.fine_likelihood
            fine += float((cost - here.w @ side.fine_moments).min())
        return own, fine

    def _step(self, here: _Point, theta: FloatArray) -> _Point:
        """A predictor step and a corrector step (Mehrotra)."""
        direction = self._directions(here, theta)
        to_vy = np.repeat(here.rho, self.lengths) * self.shares - here.v * here.y
        guess = direction(-here.g * here.s, to_vy, -here.w * here.t, -here.rho * here.q, 0.0)
        mu = here.gap()
        center = (max(here.moved(guess, 1.0).gap(), 0.0) / mu) ** 3 * mu
        bend = np.add.reduceat(
            self.shares * (guess.y / here.y) ** 2, [cells.start for cells in self.cells]
        )
        final = direction(
            center - here.g * here.s - guess.g * guess.s,
            to_vy - guess.v * guess.y,
            center - here.w * here.t - guess.w * guess.t,
            center - here.rho * here.q - guess.rho * guess.q,
            -bend / 2,
        )
        return here.moved(final, _STAY_INSIDE)

    def _directions(self, here: _Point, theta: FloatArray) -> _Direction:
        """Newton's direction as a function of how far the products are to move.

        Slacks and prices are eliminated by hand. What is left, (D + C' W C) dg = known with D
        diagonal and C the rows of all constraints, is symmetric and positive definite.
        """
        rows, size, count = self.rows, len(self.rows), len(self.sides)
        weight = np.zeros((size, size))
        at = 0
        curve, slope = here.v / here.y, self.shares / here.y
        for k, (side, part, cells) in enumerate(
            zip(self.sides, self.parts, self.cells, strict=True)
        ):
            left, rank = side.likelihood.left, len(side.likelihood.right)
            weight[at : at + rank, at : at + rank] = (left.T * curve[cells]) @ left
            at += rank
            rows[size - count + k, part] = side.likelihood.priced(slope[cells])
        tilts, slopes = rows[at : size - count], rows[size - count :]
        diagonal = np.einsum("ii->i", weight)
        diagonal[at : size - count] = here.w / here.t
        diagonal[size - count :] = here.rho / here.q
        solve = _solver(rows, weight, here.g / here.s)
        columns = solve(self.ones)
        gram = columns @ self.ones.T
        starts = [cells.start for cells in self.cells]
        # Residuals of the equations; all of them shrink with each full step.
        off_dual = theta - self._priced(here.v) + here.w @ tilts - here.s
        off_y = here.y - self._times(here.g)
        off_t = here.t + tilts @ here.g - self.limits
        off_sum = 1 - self.ones @ here.g
        off_q = self._fits(here.y) - here.q

        def direction(
            to_gs: FloatArray,
            to_vy: FloatArray,
            to_tw: FloatArray,
            to_q: FloatArray,
            bend: FloatArray | float,
        ) -> _Point:
            shift = off_q + bend - np.add.reduceat(slope * off_y, starts)
            priced = to_q - here.rho * shift
            known = (
                off_dual
                - self._priced((to_vy + here.v * off_y) / here.y)
                - (priced / here.q) @ slopes
                + ((to_tw + here.w * off_t) / here.t) @ tilts
                - to_gs / here.g
            )
            base = solve(known)
            lam = np.linalg.solve(gram, self.ones @ base + off_sum)
            g = lam @ columns - base
            y = self._times(g) - off_y
            along = tilts @ g
            q = slopes @ g + shift
            rho = (to_q - here.rho * q) / here.q
            return _Point(
                g,
                y,
                -off_t - along,
                q,
                (to_gs - here.s * g) / here.g,
                (to_vy + np.repeat(rho, self.lengths) * self.shares - here.v * y) / here.y,
                (to_tw + here.w * (off_t + along)) / here.t,
                rho,
            )

        return direction


_Direction = Callable[..., _Point]


def _solver(
    rows: FloatArray, weight: FloatArray, scale: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Solve (1 / scale + rows' weight rows) x = known for several known.

    On a grid of a few hundred rates by Cholesky after scaling to 1 + S rows' weight rows S, whose
    eigenvalues are at least 1, so that nothing is lost to rounding. On a larger one (thousands of
    attempts per task) by Woodbury's formula: less accurate, and the certificate says how much.
    """
    root = np.sqrt(scale)
    if len(scale) <= _LARGEST_DENSE:
        half = rows * root
        system = half.T @ (weight @ half)
        system.ravel()[:: len(scale) + 1] += 1
        factor, wrong = dpotrf(system)
        if wrong:
            raise np.linalg.LinAlgError("not positive definite")

        def dense(known: FloatArray) -> FloatArray:
            solved: FloatArray = dpotrs(factor, (known * root).T)[0]
            return solved.T * root

        return dense
    scaled = rows * scale
    system = weight @ (scaled @ rows.T)
    system.ravel()[:: len(system) + 1] += 1
    factors, pivots, wrong = dgetrf(system)
    if wrong:
        raise np.linalg.LinAlgError("singular")

    def woodbury(known: FloatArray) -> FloatArray:
        inner: FloatArray = dgetrs(factors, pivots, weight @ (scaled @ known.T))[0]
        return scale * known - (scaled.T @ inner).T

    return woodbury


def _reach(value: FloatArray, step: FloatArray) -> float:
    """How many steps can be taken before a value reaches zero."""
    steepest = float(np.min(step / value))
    return -1 / steepest if steepest < 0 else math.inf
