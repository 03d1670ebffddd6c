"""Distributions of success rates on a grid: their likelihood, and the best one at a price.

Over the weights g of a distribution on the grid, with y = B g the likelihood of each cell,

    minimise   tau theta.g - sum_j h_j log y_j     subject to   g >= 0,  sum g = 1.

With v the prices of y = B g, lam the price of sum g = 1 and s the slack of each rate, the optimum
is where

    tau theta - B'v - lam - s = 0,   B g = y,   sum g = 1,   v y = h,   g s = 0.

Each iteration takes one Newton step on these, with g s = mu in place of 0 and mu shrinking
(Mehrotra's predictor and corrector). The systems to solve are no larger than the rank of B.

References
----------
S. Mehrotra (1992), On the implementation of a primal-dual interior point method,
    SIAM J. Optim. 2.
R. Koenker and I. Mizera (2014), Convex optimization, shape constraints, compound decisions, and
    empirical Bayes rules, JASA 109.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from passhat.stats.arrays import FloatArray, lapack, special
from passhat.stats.outcomes import Histogram

_MOST_ITERATIONS = 60
_TOLERANCE = 1e-6
_FEASIBLE = 1e-7  # the caller computes y = B g and the certificate itself
_STAY_INSIDE = 0.995

_SMALL = 64  # cells below which finding the rank costs more than it saves
_DIGITS = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Weights on the grid, and the price of a unit of each cell's likelihood."""

    weights: FloatArray
    prices: FloatArray


@dataclass(slots=True)
class _Point:
    """The current point of the method; also used for a direction."""

    g: FloatArray
    s: FloatArray
    y: FloatArray
    v: FloatArray
    lam: float

    def step_by(self, step: _Point, primal: float, dual: float) -> _Point:
        return _Point(
            self.g + primal * step.g,
            self.s + dual * step.s,
            self.y + primal * step.y,
            self.v + dual * step.v,
            self.lam + dual * step.lam,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """A likelihood matrix B = left @ right; its rank is far below its size when n differs.

    Rows of ragged attempts are smooth functions of p and nearly repeat each other: a thousand
    cells of up to a hundred attempts have a rank of about fifty to the last digit.
    """

    left: FloatArray  # (cells, rank)
    right: FloatArray  # (rank, rates)
    is_plain: bool = False  # left is 1, and products with it are left out

    @classmethod
    def of(cls, b: FloatArray) -> Factored:
        if min(b.shape) <= _SMALL:
            return cls(np.eye(len(b)), b, is_plain=True)
        u, sizes, vt = np.linalg.svd(b, full_matrices=False)
        rank = int((sizes > _DIGITS * sizes[0]).sum())
        if 2 * rank > len(b):  # a product with a full left side costs more than the rank saves
            return cls(np.eye(len(b)), b, is_plain=True)
        return cls(u[:, :rank] * sizes[:rank], np.ascontiguousarray(vt[:rank]))

    def append_columns(self, columns: FloatArray) -> Factored:
        """The matrix with more columns; their share outside the rank is below the last digit."""
        sizes = np.einsum("ij,ij->j", self.left, self.left)
        coefficients = (self.left.T @ columns) / sizes[:, None]
        return Factored(self.left, np.hstack([self.right, coefficients]), self.is_plain)

    def times(self, g: FloatArray) -> FloatArray:
        inner: FloatArray = self.right @ g
        return inner if self.is_plain else self.left @ inner

    def priced(self, v: FloatArray) -> FloatArray:
        """B'v: the price of each rate at these prices of the cells."""
        inner = v if self.is_plain else v @ self.left
        return inner @ self.right


def minimise(b: Factored, theta: FloatArray, h: FloatArray, tau: float) -> Optimum:
    """Solve the inner problem; theta should span about 1.

    Never raises: when rounding ends the progress, the best point so far is returned, and the
    caller's certificate says what it is worth.
    """
    scale = float(h.sum()) + tau
    cost, counts = theta * (tau / scale), h / scale
    gap_limit = _TOLERANCE * max(tau, 10.0) / scale
    here = _start(b, cost, counts)
    for _ in range(_MOST_ITERATIONS):
        off = _residuals(b, cost, here)
        if float(here.g @ here.s) < gap_limit and max(map(_largest, off)) < _FEASIBLE:
            break
        try:
            with np.errstate(all="ignore"):  # values that are not finite are noticed below
                following = _step(b, counts, here, off)
        except (np.linalg.LinAlgError, ValueError, ZeroDivisionError):
            break
        if not all(np.isfinite(part).all() for part in (following.g, following.v, following.s)):
            break
        here = following
    return Optimum(here.g / here.g.sum(), here.v * scale)


def _start(b: Factored, cost: FloatArray, counts: FloatArray) -> _Point:
    """All rates equally likely, prices that fit, slack that is surely positive."""
    g = np.full(len(cost), 1 / len(cost))
    y = b.times(g)
    v = counts / y
    reduced_cost = cost - b.priced(v)
    lam = float(reduced_cost.min()) - 0.1 * float(np.ptp(reduced_cost)) - 1e-3
    return _Point(g, reduced_cost - lam, y, v, lam)


_Off = tuple[FloatArray, FloatArray, FloatArray]


def _residuals(b: Factored, cost: FloatArray, here: _Point) -> _Off:
    dual = cost - b.priced(here.v) - here.lam - here.s
    return dual, here.y - b.times(here.g), np.array([1 - here.g.sum()])


def _largest(values: FloatArray) -> float:
    return float(np.maximum.reduce(np.abs(values)))


def _step(b: Factored, counts: FloatArray, here: _Point, off: _Off) -> _Point:
    """A predictor step and a corrector step."""
    direction = _directions(b, here, off)
    mu = float(here.g @ here.s) / len(here.g)
    gs, vy = here.g * here.s, counts - here.v * here.y
    guess = direction(-gs, vy)
    ahead = here.step_by(guess, *_lengths(here, guess, 1.0))
    centring = (float(ahead.g @ ahead.s) / len(here.g) / mu) ** 3
    final = direction(centring * mu - gs - guess.g * guess.s, vy - guess.v * guess.y)
    return here.step_by(final, *_lengths(here, final, _STAY_INSIDE))


def _directions(b: Factored, here: _Point, off: _Off) -> Callable[[FloatArray, FloatArray], _Point]:
    """Newton's direction as a function of how far g s and v y are to move.

    With z = right @ g the step in g, s, y and v is eliminated by hand; what is left to solve is
    (1 + K A) dz = known, K = right diag(g/s) right' and A = left' diag(v/y) left.
    """
    dual, primal, total = off
    q, w = here.g / here.s, here.v / here.y
    k = (b.right * q) @ b.right.T
    system = k * w if b.is_plain else k @ ((b.left.T * w) @ b.left)
    system.ravel()[:: len(system) + 1] += 1
    solve = _solver(system)
    cq = b.right @ q
    unit = -w * (b.left @ solve(cq))
    schur = float(q.sum() + cq @ (unit @ b.left))

    def direction(to_gs: FloatArray, to_vy: FloatArray) -> _Point:
        t = (to_vy + here.v * primal) / here.y
        base = (to_gs - here.g * dual) / here.s
        right_side = b.right @ base + k @ (t @ b.left)
        v = t - w * (b.left @ solve(right_side))
        lam = (float(total[0]) - float(base.sum()) - float(cq @ (v @ b.left))) / schur
        v = v + lam * unit
        s = dual - b.priced(v) - lam
        return _Point((to_gs - here.g * s) / here.s, s, (to_vy - here.y * v) / here.v, v, lam)

    return direction


def _solver(system: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solve system x = known for several known; factored once, since a step solves three times."""
    factors, pivots, wrong = lapack.dgetrf(system)
    if wrong:
        raise np.linalg.LinAlgError("singular")

    def solve(known: FloatArray) -> FloatArray:
        solution: FloatArray = lapack.dgetrs(factors, pivots, known)[0]
        return solution

    return solve


def _lengths(here: _Point, step: _Point, inside: float) -> tuple[float, float]:
    """How far g and y, and how far s and v, can go while they stay positive."""
    primal = min(_room(here.g, step.g), _room(here.y, step.y))
    dual = min(_room(here.s, step.s), _room(here.v, step.v))
    return min(1.0, inside * primal), min(1.0, inside * dual)


def _room(value: FloatArray, step: FloatArray) -> float:
    steepest = float(np.minimum.reduce(step / value))
    return -1 / steepest if steepest < 0 else 2.0


def scaled_likelihood(cells: Histogram, rates: FloatArray) -> FloatArray:
    """p^c (1-p)^(n-c) for every cell and rate, divided by its largest value over all p.

    The factor depends on the cell alone, so that it changes no difference of log-likelihoods;
    without it the rows of a hundred attempts would underflow.
    """
    n, c = cells.n[:, None].astype(float), cells.c[:, None].astype(float)
    logs = special.xlogy(c, rates) + special.xlog1py(n - c, -rates)
    largest = special.xlogy(c, c / n) + special.xlog1py(n - c, -c / n)
    return np.asarray(np.exp(logs - largest), np.float64)
