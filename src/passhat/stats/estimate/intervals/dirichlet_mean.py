"""Exact quantiles of a Dirichlet-weighted mean, by one well-behaved contour integral.

Many honest intervals for a mean come down to one random variable: give every observation a Gamma
weight, add one unseen observation at the bottom of the range, and take the weighted mean

    X = sum_j w_j m_j u_j / (sum_j w_j m_j + e m_0),   w_j ~ Gamma(a_j),  e ~ Gamma(a_0).

Its quantiles are usually simulated. They need not be: X <= x exactly when a linear combination of
independent Gamma variables is positive,

    Q(x) = sum_j w_j m_j (x - u_j) + e m_0 x >= 0,

and the Laplace transform of Q is a product. So no draws, no seed, and no Monte Carlo error.

References
----------
J. P. Imhof (1961), Computing the distribution of quadratic forms in normal variables,
    Biometrika 48.
H. E. Daniels (1954), Saddlepoint approximations in statistics, Ann. Math. Statist. 25.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arrays import FloatArray

_STEP = 0.2  # trapezoid step on the stretched contour; halving it moves ends by less than 1e-8
_NEGLIGIBLE = 25.0  # stop the integral where the integrand has fallen by e^-25
_REACHES = np.array([2.0, 2.5, 3.0, 4.0, 5.5, 7.5, 10.0, 14.0, 19.0, 26.0, 36.0])
_BENDS = np.array([0.0, -0.3, 0.3, -0.6, 0.6])
_TOLERANCE = 1e-9  # of the quantile, relative
_MAX_NEWTON = 40
_ELEMENTS_PER_CHUNK = 500_000  # keeps temporaries inside the cache


@dataclass(frozen=True, slots=True)
class _Combination:
    """B linear combinations of Gamma variables, `sum_j slope_j (x - value_j) Gamma(shape_j)`."""

    values: FloatArray  # (B, J), the unseen observation included
    shapes: FloatArray  # (B, J)
    slopes: FloatArray  # (B, J)

    def take(self, rows: NDArray[np.intp] | slice) -> _Combination:
        return _Combination(self.values[rows], self.shapes[rows], self.slopes[rows])


def lower_quantile(
    values: FloatArray,
    shapes: FloatArray,
    tail: float,
    *,
    unseen: float = 1.0,
    sizes: FloatArray | None = None,
    unseen_size: float | FloatArray = 1.0,
) -> FloatArray:
    """Quantile of the weighted mean whose one unseen observation lies at zero.

    ``values`` (B, U) in [0, 1] are B problems over U cells; ``shapes``, (B, U) or broadcastable,
    say how many observations each cell holds. ``tail`` lies in (0, 0.5]; ``unseen`` is the Gamma
    shape of the unseen observation. ``sizes`` and ``unseen_size`` say how much one unit of Gamma
    weight counts (tasks per cluster); 1 for plain tasks. Exactly 0 where every observed value is 0.
    """
    shapes = np.broadcast_to(shapes, values.shape)
    # With the largest value scaled to 1 nothing over- or underflows, however small the values.
    top = np.max(values, axis=1, initial=0.0, where=shapes > 0)
    scaled = values / np.where(top > 0, top, 1.0)[:, None]
    problem = _combine(scaled, shapes, unseen, sizes, unseen_size)
    result = np.zeros(len(values))
    for rows in _chunks(np.flatnonzero(top > 0), problem):
        result[rows] = top[rows] * _solve(problem.take(rows), tail)
    return result


def lower_probability(
    values: FloatArray,
    shapes: FloatArray,
    x: float,
    *,
    sizes: FloatArray | None = None,
    unseen_size: float | FloatArray = 1.0,
) -> FloatArray:
    """Probability that the weighted mean is at most x, for 0 < x < 1: the inverse of the quantile.

    It is the tail at which the lower bound of the mean reaches x: a p-value of "not above x".
    """
    problem = _combine(values, np.broadcast_to(shapes, values.shape), 1.0, sizes, unseen_size)
    result = np.zeros(len(values))
    for rows in _chunks(np.arange(len(values)), problem):
        result[rows] = np.exp(_log_cdf(problem.take(rows), np.full(len(rows), x))[0])
    return np.clip(result, 0.0, 1.0)


def _combine(
    values: FloatArray,
    shapes: FloatArray,
    unseen: float,
    sizes: FloatArray | None,
    unseen_size: float | FloatArray,
) -> _Combination:
    sizes = np.ones_like(values) if sizes is None else np.broadcast_to(sizes, values.shape)
    column = np.ones((len(values), 1))
    return _Combination(
        values=np.hstack([0.0 * column, values]),
        shapes=np.hstack([unseen * column, shapes]),
        slopes=np.hstack([np.reshape(unseen_size, (-1, 1)) * column, sizes]),
    )


def _chunks(rows: NDArray[np.intp], problem: _Combination) -> Iterator[NDArray[np.intp]]:
    size = max(1, _ELEMENTS_PER_CHUNK // (40 * problem.values.shape[1]))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _solve(problem: _Combination, tail: float) -> FloatArray:
    """Newton's method on log P(X <= x) against log x, where the curve is straight or concave.

    A concave curve makes Newton approach from the left without overshooting; a bracket guards the
    rest. Rows that have converged drop out.
    """
    x = _first_guess(problem, tail)
    low = np.zeros_like(x)
    high = np.ones_like(x)
    active = np.arange(len(x))
    for _ in range(_MAX_NEWTON):
        log_cdf, elasticity = _log_cdf(problem.take(active), x[active])
        gap = np.log(tail) - log_cdf
        too_low = gap > 0
        low[active[too_low]] = x[active[too_low]]
        high[active[~too_low]] = x[active[~too_low]]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = x[active] * np.exp(gap / elasticity)
        in_bracket = (step > low[active]) & (step < high[active])
        new = np.where(in_bracket, step, (low[active] + high[active]) / 2)
        still_moving = np.abs(new - x[active]) > _TOLERANCE * new
        x[active] = new
        active = active[still_moving]
        if not active.size:
            break
    return x


def _first_guess(problem: _Combination, tail: float) -> FloatArray:
    """About the quantile of the Beta variable with the same mean and variance."""
    mass = problem.shapes * problem.slopes
    mean = (mass * problem.values).sum(axis=1) / mass.sum(axis=1)
    # Values without mass may be out of all proportion to the others.
    values = np.where(problem.shapes > 0, problem.values, mean[:, None])
    deviation = problem.slopes * (values - mean[:, None])
    variance = (problem.shapes * deviation**2).sum(axis=1) / mass.sum(axis=1) ** 2
    total = np.maximum(mean * (1 - mean) / variance, 1e-3)  # a Beta(a, b) has a + b = this - 1
    guess = _beta_quantile(total * mean, total * (1 - mean), tail)
    return np.asarray(np.clip(guess, 1e-12, 1 - 1e-9), dtype=np.float64)


def _beta_quantile(a: FloatArray, b: FloatArray, tail: float) -> FloatArray:
    """The Beta quantile in closed form, to a few percent.

    SciPy's would save Newton half a step of four and take longer to import than a report to make.
    Abramowitz and Stegun 26.5.22, and power laws at both ends where a shape is at most 1.
    """
    y = -NormalDist().inv_cdf(tail)
    curvature = (y * y - 3) / 6
    with np.errstate(all="ignore"):
        inverse_a, inverse_b = 1 / (2 * a - 1), 1 / (2 * b - 1)
        h = 2 / (inverse_a + inverse_b)
        skew = (inverse_b - inverse_a) * (curvature + 5 / 6 - 2 / (3 * h))
        bell = a / (a + b * np.exp(2 * (y * np.sqrt(h + curvature) / h - skew)))
        below, above = (a / (a + b)) ** a / a, (b / (a + b)) ** b / b
        total = below + above
        rise = (a * total * tail) ** (1 / a)
        power = np.where(tail < below / total, rise, 1 - (b * total * (1 - tail)) ** (1 / b))
    quantile = np.where((a > 1) & (b > 1), bell, power)
    return np.where(np.isfinite(quantile), quantile, a / (a + b))


def _log_cdf(problem: _Combination, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""`log P(X <= x)` and its derivative with respect to `log x`.

    With :math:`d_j = m_j (x - u_j)`, for any :math:`0 < s_0 < 1/\max d`,

    .. math:: P(Q > 0) = \frac{1}{2\pi i} \int_{s_0 - i\infty}^{s_0 + i\infty}
              \prod_j (1 - s d_j)^{-a_j} \frac{ds}{s}.

    The contour crosses the axis at the saddle point, where the integrand neither oscillates nor
    cancels, and is the hyperbola :math:`s = s_0 + \tau (i \sinh v + \kappa (\cosh v - 1))`, bent
    the way the integrand falls: algebraic tails become exponential ones, on which the trapezoid
    rule converges geometrically. Nothing is crossed, as all singularities are real.
    """
    d = np.where(problem.shapes > 0, problem.slopes * (x[:, None] - problem.values), 0.0)
    s0 = _saddle(d, problem.shapes)
    ratio = 1 - s0[:, None] * d
    t = d / ratio
    tau = 1 / np.sqrt((problem.shapes * t**2).sum(axis=1) + s0**-2)
    bend, reach = _contour(t, problem.shapes, s0, tau)
    pull = problem.shapes * problem.slopes / ratio  # dK/dx over s, at the saddle
    integral, density = np.empty(len(x)), np.empty(len(x))
    # Rows with the same reach share their nodes, so that no row's answer depends on the others.
    for length in sorted(set(reach.tolist())):
        rows = np.flatnonzero(reach == length)
        integral[rows], density[rows] = _along_contour(
            t[rows], problem.shapes[rows], pull[rows], s0[rows], tau[rows], bend[rows], length
        )
    height = -(problem.shapes * np.log(ratio)).sum(axis=1)
    return height + np.log(integral), x * density / integral


def _along_contour(
    t: FloatArray,
    shapes: FloatArray,
    pull: FloatArray,
    s0: FloatArray,
    tau: FloatArray,
    bend: FloatArray,
    reach: float,
) -> tuple[FloatArray, FloatArray]:
    """The integral and its derivative in x, by the trapezoid rule from 0 to ``reach``."""
    nodes = int(np.ceil(reach / _STEP)) + 1
    v = np.linspace(0.0, reach, nodes)
    across, up = bend[:, None] * (np.cosh(v) - 1), np.broadcast_to(np.sinh(v), (len(t), nodes))
    s = s0[:, None] + tau[:, None] * (across + 1j * up)
    speed = tau[:, None] * (np.cosh(v) - 1j * bend[:, None] * np.sinh(v))  # ds/dv over i
    weight = speed * (reach / (nodes - 1) / np.pi)
    weight[:, 0] /= 2

    exponents = (tau[:, None] * t)[:, None, :]
    real = 1 - across[:, :, None] * exponents
    imag = up[:, :, None] * exponents
    square = real**2 + imag**2
    log_size = -0.5 * np.matmul(np.log(square), shapes[:, :, None])[..., 0]
    phase = np.matmul(np.arctan2(imag, real), shapes[:, :, None])[..., 0]
    wave = weight * np.exp(log_size + 1j * phase)
    slope = (
        np.matmul(real / square, pull[:, :, None])[..., 0]
        + 1j * np.matmul(imag / square, pull[:, :, None])[..., 0]
    )
    return (wave / s).real.sum(axis=1), (wave * slope).real.sum(axis=1)


def _saddle(d: FloatArray, shapes: FloatArray) -> FloatArray:
    """Where `-sum a_j log(1 - s d_j) - log s` is smallest on `0 < s < 1 / max d`.

    The function is convex with a wall at either end, so its derivative changes sign once; bisection
    on the logit of `s max d` cannot fail, and a rough answer is enough: any crossing is exact.
    """
    top = d.max(axis=1)
    relative = d / top[:, None]
    left, right = np.full(len(d), -30.0), np.full(len(d), 30.0)
    for _ in range(12):
        middle = (left + right) / 2
        r = 1 / (1 + np.exp(-middle))
        rising = (shapes * relative / (1 - r[:, None] * relative)).sum(axis=1) > 1 / r
        right = np.where(rising, middle, right)
        left = np.where(rising, left, middle)
    return np.asarray(1 / (1 + np.exp(-(left + right) / 2)) / top, dtype=np.float64)


def _contour(
    t: FloatArray, shapes: FloatArray, s0: FloatArray, tau: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Which way to bend the hyperbola, and how far along it the integrand matters.

    Out of a few bends the one on which the integrand falls fastest: close to steepest descent.
    """
    bends = _BENDS[:, None, None]
    step = tau[:, None] * (bends * (np.cosh(_REACHES) - 1) + 1j * np.sinh(_REACHES))
    real = 1 - step.real[..., None] * t[:, None, :]
    imag = step.imag[..., None] * t[:, None, :]
    fall = 0.5 * np.matmul(np.log(real**2 + imag**2), shapes[:, :, None])[..., 0]
    fall += np.log(np.abs(1 + step / s0[:, None])) - np.log(np.cosh(_REACHES))
    is_negligible = fall > _NEGLIGIBLE
    is_negligible[..., -1] = True
    choice = np.minimum(fall, _NEGLIGIBLE).sum(axis=-1).argmax(axis=0)
    first = np.take_along_axis(is_negligible.argmax(axis=-1), choice[None], axis=0)[0]
    return _BENDS[choice], _REACHES[first]
