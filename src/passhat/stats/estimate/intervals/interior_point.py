"""The interior-point solver of the frontier: a linear goal within linear and likelihood limits.

The problem and its certificate are derived in :mod:`passhat.stats.estimate.intervals.frontier`.
The variables are the weights of every side's grid of rates. Each iteration is a predictor and a
corrector step of Mehrotra's method (Boyd and Vandenberghe 2004, section 11.7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from passhat.stats.arrays import FloatArray, lapack
from passhat.stats.estimate.mixture import Factored

_MOST_ITERATIONS = 50
_STARTS = (0.3, 0.03, 0.003, 0.0003, 0.8)
_LOST = 1e2  # mean product of slack and price at which a search is given up
_PATIENCE = 3
_LATE = 1e-6  # mean product of slack and price from which on a bound should improve
_GAP = 3e-5  # between a value that some G attains and a bound that no G on the grid can pass
_STAY_INSIDE = 0.99
_LARGEST_DENSE = 400


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A statistic on the grids."""

    shares: FloatArray  # of the tasks in each cell
    likelihood: Factored
    moments: FloatArray  # (tilts, rates)
    target: FloatArray
    fine_likelihood: FloatArray
    fine_moments: FloatArray
    fine_target: FloatArray
    start: FloatArray
    fit: float  # the mean log-likelihood of the start


@dataclass(frozen=True, slots=True, eq=False)
class FitLimits:
    """Floors of the mean log-likelihoods of the sides: ``weights @ fits >= floors``."""

    weights: FloatArray  # (limits, sides)
    floors: FloatArray


@dataclass(slots=True)
class _Point:
    """Weights, slacks and prices of all sides; also used for a direction."""

    g: FloatArray  # weights of all sides, after each other
    y: FloatArray  # likelihoods of all cells
    t: FloatArray  # the rest of each tilt's limit
    q: FloatArray  # the rest of each limit of the likelihoods
    s: FloatArray  # prices of g >= 0
    v: FloatArray  # prices of the cells' likelihoods
    w: FloatArray  # prices of the tilts
    rho: FloatArray  # prices of the limits of the likelihoods

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

    def step_by(self, step: _Point, inside: float) -> _Point:
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
class Problem:
    """Minimise target.g over the weights of all sides, within the constraints."""

    sides: Sequence[Side]
    parts: Sequence[slice]
    moments: FloatArray  # (tilts, all rates)
    limits: FloatArray  # -moments @ g <= limits
    rows: FloatArray  # of the system: likelihoods of all sides, tilts, slopes of the likelihoods
    start: FloatArray
    cells: Sequence[slice]
    lengths: Sequence[int]  # cells of each side
    shares: FloatArray  # of the tasks in every cell of every side
    fits: FitLimits
    ones: FloatArray  # (sides, all rates): the rates of each side

    @classmethod
    def of(cls, sides: Sequence[Side], limits: FloatArray, fits: FitLimits, room: float) -> Problem:
        ends = np.cumsum([0, *(len(side.start) for side in sides)]).tolist()
        parts = [slice(a, b) for a, b in pairwise(ends)]
        moments = np.hstack([side.moments for side in sides])
        best = np.concatenate([side.start for side in sides])
        # Attempts that vary less than independent ones do (copies, for example) can make the
        # point a surprise even under the most likely distribution: it is then let in.
        limits = np.maximum(limits, room - moments @ best)
        ranks = [len(side.likelihood.right) for side in sides]
        rows = np.zeros((sum(ranks) + len(limits) + len(fits.floors), ends[-1]))
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
            fits,
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
            bound_here, converged = self._search(theta, sign, even)
            bound = max(bound, bound_here)
            if converged:
                break
        return bound

    def _search(self, theta: FloatArray, sign: float, even: float) -> tuple[float, bool]:
        """The best bound from a start, and whether the search converged by itself."""
        here = self._start(theta, even)
        bound, since = -math.inf, 0
        for _ in range(_MOST_ITERATIONS):
            coarse, fine = self._bound(here, theta, sign)
            late = here.gap() < _LATE
            since = since + 1 if late and fine <= bound else 0
            bound = max(bound, fine)
            # Early on, while constraints are not met yet, the two may pass each other by chance.
            if late and abs(float(theta @ here.g) - coarse) < _GAP:
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

    def _price_rates(self, v: FloatArray) -> FloatArray:
        """The price of each rate at these prices of the cells."""
        return np.concatenate(
            [
                side.likelihood.priced(v[cells])
                for side, cells in zip(self.sides, self.cells, strict=True)
            ]
        )

    def _sum_cells(self, values: FloatArray) -> FloatArray:
        """The sum over each side's cells, put together as the limits of the fits do."""
        return self.fits.weights @ np.add.reduceat(values, [cells.start for cells in self.cells])

    def _fit_rests(self, y: FloatArray) -> FloatArray:
        """The rest of the mean log-likelihoods above their floors."""
        return self._sum_cells(self.shares * np.log(y)) - self.fits.floors

    def _price_shares(self, rho: FloatArray) -> FloatArray:
        """The price of every cell's share, from the prices of the limits of the fits."""
        return np.repeat(rho @ self.fits.weights, self.lengths) * self.shares

    def _start(self, theta: FloatArray, even: float) -> _Point:
        """The most likely distributions, with a share spread evenly; slacks and prices positive."""
        g = self.start.copy()
        for part in self.parts:
            g[part] = (1 - even) * g[part] / g[part].sum() + even / len(g[part])
        y = self._times(g)
        t = np.maximum(self.limits + self.moments @ g, 0.1)
        q = np.maximum(self._fit_rests(y), 0.1)
        mu = 0.1 * float(np.ptp(theta)) / len(g)
        rho = mu / q
        v = self._price_shares(rho) / y
        return _Point(g, y, t, q, mu / g, v, mu / t, rho)

    def _bound(self, here: _Point, theta: FloatArray, sign: float) -> tuple[float, float]:
        """The certificate of these prices, on the solver's grid and on the fine one."""
        share_prices = self._price_shares(here.rho)
        common = float(here.rho @ self.fits.floors) - float(here.w @ self.limits)
        common -= float(share_prices @ (np.log(share_prices / here.v) - 1))
        costs = theta - self._price_rates(here.v) - here.w @ self.moments
        coarse = fine = common
        for side, part, cells in zip(self.sides, self.parts, self.cells, strict=True):
            coarse += float(costs[part].min())
            cost = sign * side.fine_target - here.v[cells] @ side.fine_likelihood
            fine += float((cost - here.w @ side.fine_moments).min())
        return coarse, fine

    def _step(self, here: _Point, theta: FloatArray) -> _Point:
        """A predictor step and a corrector step (Mehrotra)."""
        direction = self._directions(here, theta)
        to_vy = self._price_shares(here.rho) - here.v * here.y
        guess = direction(-here.g * here.s, to_vy, -here.w * here.t, -here.rho * here.q, 0.0)
        mu = here.gap()
        center = (max(here.step_by(guess, 1.0).gap(), 0.0) / mu) ** 3 * mu
        bend = self._sum_cells(self.shares * (guess.y / here.y) ** 2)
        final = direction(
            center - here.g * here.s - guess.g * guess.s,
            to_vy - guess.v * guess.y,
            center - here.w * here.t - guess.w * guess.t,
            center - here.rho * here.q - guess.rho * guess.q,
            -bend / 2,
        )
        return here.step_by(final, _STAY_INSIDE)

    def _directions(self, here: _Point, theta: FloatArray) -> _Direction:
        """Newton's direction as a function of how far the products are to move.

        Slacks and prices are eliminated by hand. What is left, (D + C' W C) dg = known with D
        diagonal and C the rows of all constraints, is symmetric and positive definite.
        """
        rows, size, count = self.rows, len(self.rows), len(self.fits.floors)
        at = 0
        curve, slope = here.v / here.y, self.shares / here.y
        diagonal, blocks = np.zeros(size), []
        for k, (side, part, cells) in enumerate(
            zip(self.sides, self.parts, self.cells, strict=True)
        ):
            left, rank = side.likelihood.left, len(side.likelihood.right)
            if side.likelihood.is_plain:
                diagonal[at : at + rank] = curve[cells]
            else:
                blocks.append((at, (left.T * curve[cells]) @ left))
            at += rank
            rows[size - count :, part] = np.multiply.outer(
                self.fits.weights[:, k], side.likelihood.priced(slope[cells])
            )
        tilts, slopes = rows[at : size - count], rows[size - count :]
        diagonal[at : size - count] = here.w / here.t
        diagonal[size - count :] = here.rho / here.q
        solve = _solver(rows, diagonal, blocks, here.g / here.s)
        columns = solve(self.ones)
        gram = columns @ self.ones.T
        # Residuals of the equations; all of them shrink with each full step.
        off_dual = theta - self._price_rates(here.v) + here.w @ tilts - here.s
        off_y = here.y - self._times(here.g)
        off_t = here.t + tilts @ here.g - self.limits
        off_sum = 1 - self.ones @ here.g
        off_q = self._fit_rests(here.y) - here.q

        def direction(
            to_gs: FloatArray,
            to_vy: FloatArray,
            to_tw: FloatArray,
            to_q: FloatArray,
            bend: FloatArray | float,
        ) -> _Point:
            shift = off_q + bend - self._sum_cells(slope * off_y)
            pull = to_q - here.rho * shift
            right_side = (
                off_dual
                - self._price_rates((to_vy + here.v * off_y) / here.y)
                - (pull / here.q) @ slopes
                + ((to_tw + here.w * off_t) / here.t) @ tilts
                - to_gs / here.g
            )
            base = solve(right_side)
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
                (to_vy + self._price_shares(rho) - here.v * y) / here.y,
                (to_tw + here.w * (off_t + along)) / here.t,
                rho,
            )

        return direction


_Direction = Callable[..., _Point]


def _solver(
    rows: FloatArray,
    diagonal: FloatArray,
    blocks: Sequence[tuple[int, FloatArray]],
    scale: FloatArray,
) -> Callable[[FloatArray], FloatArray]:
    """Solve (1 / scale + rows' weight rows) x = known for several known.

    The weight is diagonal but for some blocks, each given with its first row. On a grid of a few
    hundred rates, or on any with about as many rows, by Cholesky after scaling to
    1 + S rows' weight rows S, whose eigenvalues are at least 1, so that nothing is lost to
    rounding. On a larger one (thousands of attempts per task) by Woodbury's formula: less accurate,
    and the certificate says how much.
    """
    root = np.sqrt(scale)
    is_symmetric_product = not blocks and len(scale) <= 2 * len(rows)
    if len(scale) <= _LARGEST_DENSE or is_symmetric_product:
        half = rows * root
        if blocks:
            system = half.T @ (_with_blocks(diagonal, blocks) @ half)
        else:
            half *= np.sqrt(diagonal)[:, None]
            system = half.T @ half  # half of the work: NumPy sees that the factors are the same
        system.ravel()[:: len(scale) + 1] += 1
        factor, wrong = lapack.dpotrf(system)
        if wrong:
            raise np.linalg.LinAlgError("not positive definite")

        def dense(known: FloatArray) -> FloatArray:
            solved: FloatArray = lapack.dpotrs(factor, (known * root).T)[0]
            return solved.T * root

        return dense
    weight = _with_blocks(diagonal, blocks)
    wide_rows = rows * scale
    system = weight @ (wide_rows @ rows.T)
    system.ravel()[:: len(system) + 1] += 1
    factors, pivots, wrong = lapack.dgetrf(system)
    if wrong:
        raise np.linalg.LinAlgError("singular")

    def woodbury(known: FloatArray) -> FloatArray:
        inner: FloatArray = lapack.dgetrs(factors, pivots, weight @ (wide_rows @ known.T))[0]
        return scale * known - (wide_rows.T @ inner).T

    return woodbury


def _with_blocks(diagonal: FloatArray, blocks: Sequence[tuple[int, FloatArray]]) -> FloatArray:
    weight: FloatArray = np.diag(diagonal)
    for at, block in blocks:
        weight[at : at + len(block), at : at + len(block)] = block
    return weight


def _reach(value: FloatArray, step: FloatArray) -> float:
    """How many steps can be taken before a value reaches zero."""
    steepest = float(np.min(step / value))
    return -1 / steepest if steepest < 0 else math.inf
