"""The interval of version 0.1.0 for these tasks, kept to be measured against.

Its coverage was measured over success rates drawn from Beta priors. At fixed rates, which is what
running the same suite again means, it covers 2% to 69% in some cells: see fixed_rates.py.

"Would the same suite give this number again?" The tasks are fixed; what is unknown is each task's
success rate p_i, seen through n_i attempts. Task by task that is little to go on, so the tasks lend
each other strength: p_i ~ Beta(mu s, (1 - mu) s) with mean mu and precision s unknown.

The prior is uniform in mu and (1 + s)^-2 in s, which is the same as uniform in the intra-class
correlation rho = 1 / (1 + s): every pair (mu, rho) in the unit square is equally likely beforehand.

Everything is integrated on a grid that zooms in on the posterior; nothing is drawn at random.

References
----------
A. Gelman, J. Carlin, H. Stern, D. Dunson, A. Vehtari and D. Rubin (2013), Bayesian Data Analysis,
    3rd ed., section 5.3 (the hierarchical beta-binomial model on a grid).
C. N. Morris (1983), Parametric empirical Bayes inference, JASA 78.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, betaln, expit, gammaincc, gammaln

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.intervals.new_tasks import (
    Intervals,
    Sides,
    containing,
    tail_probability,
)
from passhat.stats.outcomes import Histogram

__all__ = ["AtLeast", "Gain", "rerun_intervals"]

_GRID = 40  # nodes per axis; 96 of them move an end by less than 1e-5
_KEEP = 14.0  # nodes this many nats below the best one carry no weight
_LOGIT_MEAN = (-30.0, 30.0)
_LOGIT_ICC = (-12.0, 20.0)  # beyond: binomial, or every task always passes or always fails
_LONG_PRODUCT = 512  # from here a difference of log-Gammas is cheaper than a sum of logarithms
_BLOCK = 1_000_000  # entries of a (nodes x cells) table held at once


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The metric "at least m of k attempts pass", as a function of the success rate.

    ``AtLeast(1, k)`` is pass@k, ``AtLeast(k, k)`` is pass^k.
    """

    m: int
    k: int

    @property
    def highest(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True)
class Gain:
    """``delta^k``: the mean of p^k minus the k-th power of the mean of p, for k >= 2."""

    k: int

    @property
    def highest(self) -> float:
        """The largest possible value, ``max of mu - mu^k``."""
        return float((self.k - 1) * self.k ** (-self.k / (self.k - 1)))


Form = AtLeast | Gain


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Grid nodes that matter: their weights and the Beta prior each of them stands for, (G,)."""

    weights: FloatArray
    a: FloatArray
    b: FloatArray


def rerun_intervals(
    cells: Histogram,
    points: FloatArray,
    forms: Sequence[Form],
    *,
    level: float = 0.95,
    sides: Sides = "two",
) -> Intervals:
    r"""Posterior intervals for metrics of exactly these tasks.

    With :math:`\theta = (\mu, \rho)` on the grid and Beta posteriors of the tasks given
    :math:`\theta`, the mean :math:`\bar g = \frac1T \sum_i g(p_i)` has

    .. math:: E\bar g = E_\theta E[\bar g \mid \theta], \qquad
              V\bar g = E_\theta V[\bar g \mid \theta] + V_\theta E[\bar g \mid \theta],

    all in closed form, since g is a polynomial. The interval is that of the Beta distribution with
    these two moments on the metric's range. That of delta^k begins at 0 where a test does not tell
    the tasks apart.

    Parameters
    ----------
    cells : Histogram
        How many tasks had c passes out of n attempts; n may differ between tasks.
    points : array
        The unbiased estimates of the metrics, (M,).
    forms : sequence of AtLeast and Gain
        The metrics as functions of the success rate; one posterior serves all.
    level : float
        Posterior probability of the interval.
    sides : {"two", "lower", "upper"}
        "lower" and "upper" are one-sided bounds.

    Returns
    -------
    Intervals
        Shrinkage may leave the unbiased point outside: then the interval is extended to it and
        says so.
    """
    if cells.size < 2 and any(isinstance(form, Gain) for form in forms):
        raise InvalidValue("delta^k of exactly one task is 0 by definition: two tasks are needed.")
    tail = tail_probability(level, sides)
    posterior = _posterior(cells)
    fits = np.array([_moments(posterior, cells, form) for form in forms])
    means, variances = fits[:, 0], fits[:, 1]
    tops = np.array([form.highest for form in forms])
    lows, highs = _beta_ends(means / tops, variances / tops**2, tail)
    lows = np.zeros_like(lows) if sides == "upper" else tops * lows
    highs = tops.copy() if sides == "lower" else tops * highs
    if any(isinstance(form, Gain) for form in forms) and _may_be_alike(cells, tail):
        # No posterior of ours puts weight on tasks that are exactly alike, where delta^k is 0.
        lows = np.where([isinstance(form, Gain) for form in forms], 0.0, lows)
    return containing(points, lows, highs)


def _may_be_alike(cells: Histogram, tail: float) -> bool:
    """Whether the passes are no more uneven than those of tasks with one success rate.

    Pearson's dispersion test: the sum over tasks of (c - n q)^2 / (n q (1 - q)), q the share of
    passes, against the chi-square distribution with one degree of freedom less than tasks.
    """
    passed, made = int(cells.c @ cells.tasks), int(cells.n @ cells.tasks)
    if passed in (0, made):
        return True
    share = passed / made
    spread = (cells.c - cells.n * share) ** 2 / (cells.n * share * (1 - share))
    return float(gammaincc((cells.size - 1) / 2, float(spread @ cells.tasks) / 2)) > tail


def _posterior(cells: Histogram) -> _Posterior:
    """Zoom a square grid over (logit mu, logit rho) in on the part that carries the weight."""
    rising = [_rising(part, cells.tasks) for part in (cells.c, cells.n - cells.c, cells.n)]
    mean_box, icc_box = _LOGIT_MEAN, _LOGIT_ICC
    for _ in range(12):
        mean_axis = np.linspace(*mean_box, _GRID)
        icc_axis = np.linspace(*icc_box, _GRID)
        x, r = (axis.ravel() for axis in np.meshgrid(mean_axis, icc_axis, indexing="ij"))
        log_weight = _log_posterior(x, r, rising)
        keep = log_weight > log_weight.max() - _KEEP
        next_mean = _zoom(mean_axis, x[keep], _LOGIT_MEAN)
        next_icc = _zoom(icc_axis, r[keep], _LOGIT_ICC)
        settled = np.ptp(next_mean) * np.ptp(next_icc) > 0.6 * np.ptp(mean_box) * np.ptp(icc_box)
        if settled:
            break
        mean_box, icc_box = next_mean, next_icc
    weights = np.exp(log_weight[keep] - log_weight.max())
    precision = np.exp(-r[keep])
    return _Posterior(
        weights / weights.sum(), expit(x[keep]) * precision, expit(-x[keep]) * precision
    )


def _zoom(axis: FloatArray, kept: FloatArray, limits: tuple[float, float]) -> tuple[float, float]:
    step = axis[1] - axis[0]
    return (
        max(limits[0], float(kept.min() - 2 * step)),
        min(limits[1], float(kept.max() + 2 * step)),
    )


def _rising(numbers: IntArray, tasks: IntArray) -> Callable[[FloatArray], FloatArray]:
    r"""A function of a: the sum over tasks of :math:`\log a (a+1) \cdots (a + x_i - 1)`.

    For short products the tasks collapse to :math:`\sum_t N(t) \log(a + t)` with N(t) the number of
    tasks that have more than t, so that the cost does not depend on how ragged the data are; long
    ones are differences of log-Gammas over the different x.
    """
    tally = np.bincount(numbers, weights=tasks) if numbers.max() < _LONG_PRODUCT else None
    if tally is not None:
        above = tally[::-1].cumsum()[::-1][1:]
        return lambda a: np.log(a[:, None] + np.arange(above.size)) @ above
    found, member = np.unique(numbers, return_inverse=True)
    held = np.bincount(member, weights=tasks)
    return lambda a: sum(
        (
            (gammaln(a[:, None] + x) - gammaln(a)[:, None]) @ h
            for x, h in _blocks(found, held, size=_BLOCK // len(a))
        ),
        start=np.zeros(len(a)),
    )


def _log_posterior(
    x: FloatArray, r: FloatArray, rising: Sequence[Callable[[FloatArray], FloatArray]]
) -> FloatArray:
    """Beta-binomial log-likelihood plus log prior, up to a constant."""
    precision = np.exp(-r)
    passed, failed, made = rising
    likelihood = passed(expit(x) * precision) + failed(expit(-x) * precision) - made(precision)
    uniform = sum(np.log(expit(z)) for z in (x, -x, r, -r))  # dmu drho in logit coordinates
    return np.asarray(likelihood + uniform, dtype=np.float64)


def _blocks(*columns: NDArray[Any], size: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """Equally long arrays cut into pieces that fit into memory."""
    size = max(1, size)
    for start in range(0, len(columns[0]), size):
        yield tuple(column[start : start + size] for column in columns)


def _moments(posterior: _Posterior, cells: Histogram, form: Form) -> tuple[float, float]:
    """Posterior mean and variance of the metric over these tasks (law of total variance)."""
    if isinstance(form, Gain):
        mean, variance = _gain_at_nodes(posterior, cells, form)
    else:
        mean, variance = _at_least_at_nodes(posterior, cells, form)
    overall = float(posterior.weights @ mean)
    return overall, float(posterior.weights @ (variance + (mean - overall) ** 2))


def _task_posteriors(
    posterior: _Posterior, cells: Histogram
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Beta posteriors (nodes x cells), a block of cells at a time, and each cell's task share."""
    total = cells.size
    for n, c, tasks in _blocks(cells.n, cells.c, cells.tasks, size=_BLOCK // posterior.a.size):
        yield posterior.a[:, None] + c, posterior.b[:, None] + (n - c), tasks / total


def _at_least_at_nodes(
    posterior: _Posterior, cells: Histogram, form: AtLeast
) -> tuple[FloatArray, FloatArray]:
    mean = np.zeros(posterior.a.size)
    variance = np.zeros(posterior.a.size)
    for a, b, share in _task_posteriors(posterior, cells):
        first, second = _at_least(a, b, form)
        mean += first @ share
        variance += np.maximum(second - first**2, 0.0) @ share
    return mean, variance / cells.size


def _at_least(a: FloatArray, b: FloatArray, form: AtLeast) -> tuple[FloatArray, FloatArray]:
    """`E g(p)` and `E g(p)^2` for p ~ Beta(a, b); one Beta function each for pass^k and pass@k."""
    m, k = form.m, form.k
    if m == k:
        return _power(a, b, k), _power(a, b, 2 * k)
    if m == 1:
        fail, both = _power(b, a, k), _power(b, a, 2 * k)
        return 1 - fail, 1 - 2 * fail + both
    j = np.arange(k + 1)
    log_ways = gammaln(k + 1) - gammaln(j + 1) - gammaln(k - j + 1) - k * np.log(2.0)
    ways = np.where(j >= m, np.exp(log_ways), 0.0)
    return _bernstein(a, b, ways), _bernstein(a, b, np.convolve(ways, ways))


def _power(a: FloatArray, b: FloatArray, t: int) -> FloatArray:
    """`E p^t`, a ratio of rising factorials."""
    if t <= 16:  # a short product is faster than four log-Gammas, and exact
        product = a / (a + b)
        for j in range(1, t):
            product = product * ((a + j) / (a + b + j))
        return product
    return np.asarray(np.exp(gammaln(a + t) - gammaln(a) + gammaln(a + b) - gammaln(a + b + t)))


def _bernstein(a: FloatArray, b: FloatArray, ways: FloatArray) -> FloatArray:
    """`E sum_t ways_t 2^K p^t (1-p)^(K-t)`: all terms positive, so nothing cancels."""
    degree = len(ways) - 1
    base = betaln(a, b)
    total = np.zeros_like(a)
    for t in np.flatnonzero(ways):
        log_way = np.log(ways[t]) + degree * np.log(2.0)
        total += np.exp(log_way + betaln(a + t, b + degree - t) - base)
    return total


def _gain_at_nodes(
    posterior: _Posterior, cells: Histogram, form: Gain
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of `mean(p^k) - mean(p)^k` at each node, by second and first order."""
    k = form.k
    nodes = posterior.a.size
    mean_rate, mean_power, rate_variance = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    for a, b, share in _task_posteriors(posterior, cells):
        rate = _power(a, b, 1)
        mean_rate += rate @ share
        mean_power += _power(a, b, k) @ share
        rate_variance += (_power(a, b, 2) - rate**2) @ share / cells.size
    slope = k * mean_rate[:, None] ** (k - 1)
    variance = np.zeros(nodes)
    for a, b, share in _task_posteriors(posterior, cells):
        rate, power = _power(a, b, 1), _power(a, b, k)
        spread = _power(a, b, 2 * k) - power**2 + slope**2 * (_power(a, b, 2) - rate**2)
        spread -= 2 * slope * (_power(a, b, k + 1) - power * rate)
        variance += np.maximum(spread, 0.0) @ share / cells.size
    curve = k * (k - 1) / 2 * mean_rate ** (k - 2)
    return np.maximum(mean_power - mean_rate**k - curve * rate_variance, 0.0), variance


def _beta_ends(
    mean: FloatArray, variance: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Quantiles of the Beta distributions with these moments."""
    mean = np.clip(mean, 1e-12, 1 - 1e-12)
    room = mean * (1 - mean)
    total = room / np.clip(variance, 1e-12 * room, 0.999 * room) - 1
    a, b = mean * total, (1 - mean) * total
    low, high = betaincinv(a, b, tail), 1 - betaincinv(b, a, tail)
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
