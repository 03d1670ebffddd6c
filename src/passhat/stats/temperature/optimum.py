"""Expected pass@k of an eval set, and the temperature that is best for it.

At the best temperature the derivative of pass@k is zero, which is

    V(T*) = <c^2>,   the mean weighted by w p (1 - p)^(k-1),

with V the generator's variance. The condition is used rather than the value: once the failure
probability is below 1e-12, pass@k is 1 to every digit of a float over a wide range of T, and the
largest value is found up to five times away from where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.temperature.tasks import TaskSet

_SWITCH = 1 / (2 * np.pi)
_TERMS = np.arange(1.0, 6.0)


def log_normalizer(temperature: FloatArray) -> FloatArray:
    """ln Z(T) for an array of temperatures above zero."""
    excess, _ = _sums(temperature)
    smooth = np.where(temperature <= _SWITCH, 0.0, 0.5 * np.log(2 * np.pi * temperature))
    log_z: FloatArray = smooth + np.log1p(excess)
    return log_z


def variance(temperature: FloatArray) -> FloatArray:
    """V(T), the variance of the generated numbers; it tends to T from T = 1 on."""
    excess, second = _sums(temperature)
    direct = second / (1 + excess)
    poisson = temperature - 4 * np.pi**2 * temperature**2 * direct
    values: FloatArray = np.where(temperature <= _SWITCH, direct, poisson)
    return values


def log_chances(task: FloatArray, temperature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln p(c | T) and ln(1 - p(c | T)), for arrays that broadcast."""
    log_pass: FloatArray = task**2 * (-0.5 / temperature) - log_normalizer(temperature)
    with np.errstate(divide="ignore"):
        log_fail: FloatArray = np.log1p(-np.exp(log_pass))
        cold = (task == 0) & (temperature <= _SWITCH)
        if bool(cold.any()):
            # 1 - p(0) = (Z - 1) / Z cancels, but Z - 1 is the direct sum itself.
            excess = np.broadcast_to(_sums(temperature)[0], log_fail.shape)[cold]
            log_fail[cold] = np.log(excess) - np.log1p(excess)
    return log_pass, log_fail


def _sums(temperature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """2 sum exp(-a m^2) and 2 sum m^2 exp(-a m^2), with the a of whichever sum is shorter."""
    rate = np.where(temperature <= _SWITCH, 0.5 / temperature, 2 * np.pi**2 * temperature)
    terms = 2 * np.exp(-rate[..., None] * _TERMS**2)
    return terms.sum(axis=-1), terms @ _TERMS**2


_LOWEST = 1 / 512
"""Where the scan starts if the set holds c = 0; others start at their easiest task."""
_STEP = np.log(1.3)
_UNDERFLOW = 745.0
_FEW, _EASY, _PER_UNIT = 2_000, 256, 128
"""Up to so many different tasks are scanned as they are; else those harder than 256 are grouped,
128 groups for every factor e."""
_BLOCK = 1 << 16
"""Entries of a (T x k x tasks) table held at once: few enough for the processor's cache."""
_ROUNDS = 20
_CLOSE = 1e-7
"""Two rounds this close in ln T: the method doubles its digits, so the error is below 1e-12."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best temperature for one k, and pass@k there.

    ``temperature`` is 0 when no temperature above it does better: then T = 0, always the easiest
    answer, is best.
    """

    k: int
    temperature: float
    value: float


def expected_pass_at_k(
    tasks: TaskSet, k: npt.ArrayLike, temperature: npt.ArrayLike
) -> float | FloatArray:
    """Mean of 1 - (1 - p)^k over the tasks; k and temperature broadcast.

    Examples
    --------
    >>> from passhat.stats.temperature.tasks import family
    >>> round(expected_pass_at_k(family("gaussian", 8), 32, 47.09), 4)
    0.6508
    """
    values = -np.expm1(log_failure_at_k(tasks, k, temperature))
    return float(values) if np.ndim(values) == 0 else values


def log_failure_at_k(tasks: TaskSet, k: npt.ArrayLike, temperature: npt.ArrayLike) -> FloatArray:
    """ln of the chance that all k attempts fail, averaged over the tasks; never underflows."""
    draws, at = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(temperature, np.float64))
    if not bool((draws >= 1).all()) or not bool((at > 0).all()):
        raise InvalidValue("k must be at least 1 and the temperature above 0.")
    _, log_fail = log_chances(tasks.difficulty, at[..., None])
    return _log_sum(draws[..., None] * log_fail + np.log(tasks.weight))


def best_temperatures(tasks: TaskSet, ks: Sequence[int]) -> tuple[Optimum, ...]:
    """T*(k) for every k at once.

    The sign of V - <c^2> is scanned on a grid of ln T; every change from + to - of the derivative
    holds a local maximum, which is bracketed and solved for; the one with the smallest failure
    probability is kept.
    """
    draws = np.asarray(ks, np.float64)
    if len(draws) == 0 or not bool((draws >= 1).all()):
        raise InvalidValue("k must be at least 1, and at least one k is needed.")
    grid, coarse = _grid(tasks), _thin(tasks)
    slope = _scan(coarse, draws, grid)
    step, which = np.nonzero((slope[:-1] > 0) & (slope[1:] <= 0))
    bracket = _Bracket(
        np.log(grid[step]), np.log(grid[step + 1]), slope[step, which], slope[step + 1, which]
    )
    solve = _solve if coarse is tasks else _solve_one_by_one
    roots = solve(tasks, draws[which], bracket)
    failure = log_failure_at_k(tasks, draws[which], roots) if len(roots) else roots
    cold = _at_zero(tasks)
    optima = []
    for j, k in enumerate(ks):
        members = np.flatnonzero(which == j)
        best = members[np.argmin(failure[members])] if len(members) else None
        # T = 0 is a local maximum of its own where the derivative starts below zero.
        if best is None or (slope[0, j] < 0 and cold < failure[best]):
            optima.append(Optimum(k, 0.0, float(-np.expm1(cold))))
        else:
            optima.append(Optimum(k, float(roots[best]), float(-np.expm1(failure[best]))))
    return tuple(optima)


def _at_zero(tasks: TaskSet) -> float:
    """ln failure at T = 0, where c = 0 always passes and nothing else ever does."""
    easy_share = float(tasks.weight[0]) if tasks.difficulty[0] == 0 else 0.0
    return float(np.log1p(-easy_share)) if easy_share < 1 else -np.inf


def _in_reach(tasks: TaskSet, temperature: float) -> TaskSet:
    """Without the tasks whose p(c | T) is no float; they would only be multiplied by zero."""
    count = int(np.searchsorted(tasks.difficulty, np.sqrt(2 * _UNDERFLOW * temperature)))
    count = max(count, 1)
    return TaskSet(tasks.difficulty[:count], tasks.weight[:count])


def _grid(tasks: TaskSet) -> FloatArray:
    """ln T in equal steps, from below the optimum of the easiest task to above the hardest's."""
    easiest, hardest = float(tasks.difficulty[0]), float(tasks.difficulty[-1])
    low = np.log(0.8 * easiest**2) if easiest > 0 else np.log(_LOWEST)
    high = np.log(1.2 * max(hardest, 1.0) ** 2)
    grid: FloatArray = np.exp(np.linspace(low, high, int(np.ceil((high - low) / _STEP)) + 1))
    return grid


def _scan(tasks: TaskSet, k: FloatArray, grid: FloatArray) -> FloatArray:
    """The slope at every point of the grid (rows) for every k (columns), in blocks of rows."""
    rows = max(1, _BLOCK // (len(k) * len(tasks.difficulty)))
    blocks = [grid[at : at + rows, None] for at in range(0, len(grid), rows)]
    return np.concatenate([_slope(_in_reach(tasks, t[-1, 0]), k, t) for t in blocks])


def _thin(tasks: TaskSet) -> TaskSet:
    """A histogram good enough to scan with: a hard task represents its neighbors too.

    Only large populations are thinned. They are smooth, so the sign can only be wrong right beside
    a root, and the brackets are widened for that.
    """
    if len(tasks.difficulty) <= _FEW:
        return tasks
    place = np.floor(_PER_UNIT * np.log(tasks.difficulty[tasks.difficulty > _EASY]))
    near = int((tasks.difficulty <= _EASY).sum())
    _, group = np.unique(place, return_inverse=True)
    group = np.concatenate([np.arange(near), near + group])
    weight: FloatArray = np.bincount(group, tasks.weight).astype(np.float64)
    square = np.bincount(group, tasks.weight * tasks.difficulty**2) / weight
    return TaskSet(np.sqrt(square), weight)


def _slope(tasks: TaskSet, k: FloatArray, temperature: FloatArray) -> FloatArray:
    """(<c^2> - V) / (<c^2> + V): the sign of the derivative, on a scale of its own."""
    log_pass, log_fail = log_chances(tasks.difficulty, temperature[..., None])
    exponent = (k - 1)[..., None] * log_fail
    exponent += np.log(tasks.weight) + log_pass
    exponent -= exponent.max(axis=-1, keepdims=True)
    weight = np.exp(exponent, out=exponent)
    square = weight @ tasks.difficulty**2 / weight.sum(axis=-1)
    spread = variance(temperature)
    slope: FloatArray = (square - spread) / (square + spread)
    return slope


@dataclass(frozen=True, slots=True)
class _Bracket:
    """Two ends in ln T with a root between them, and the slope at each; arrays, one per root."""

    low: FloatArray
    high: FloatArray
    at_low: FloatArray
    at_high: FloatArray

    def narrow(self, point: FloatArray, value: FloatArray) -> _Bracket:
        """The side of the point on which the sign changes."""
        up, down = (value > 0) & (point > self.low), (value <= 0) & (point < self.high)
        return _Bracket(
            np.where(up, point, self.low),
            np.where(down, point, self.high),
            np.where(up, value, self.at_low),
            np.where(down, value, self.at_high),
        )


def _solve(tasks: TaskSet, k: FloatArray, bracket: _Bracket) -> FloatArray:
    """T at the root in every bracket, by Ridders' method on all of them together."""
    new = bracket.low
    for _ in range(_ROUNDS if len(k) else 0):
        before, middle = new, (bracket.low + bracket.high) / 2
        at_middle = _slope(tasks, k, np.exp(middle))
        root = np.sqrt(at_middle**2 - bracket.at_low * bracket.at_high)
        share = np.divide(at_middle, root, out=np.zeros_like(root), where=root > 0)
        new = middle + (middle - bracket.low) * share
        if bool((np.abs(new - before) < _CLOSE).all()):
            break
        bracket = bracket.narrow(middle, at_middle)
        bracket = bracket.narrow(new, _slope(tasks, k, np.exp(new)))
    roots: FloatArray = np.exp(new)
    return roots


def _solve_one_by_one(tasks: TaskSet, k: FloatArray, scanned: _Bracket) -> FloatArray:
    """The same for a large set: a root at a low temperature costs only the tasks in its reach.

    The brackets come from the thinned set, so they are widened and their ends looked at again.
    """
    roots = [np.zeros(0)]
    for i in range(len(k)):
        low, high = scanned.low[i : i + 1] - _STEP / 2, scanned.high[i : i + 1] + _STEP / 2
        near, one_k = _in_reach(tasks, float(np.exp(high[0]))), k[i : i + 1]
        ends = (_slope(near, one_k, np.exp(end)) for end in (low, high))
        roots.append(_solve(near, one_k, _Bracket(low, high, *ends)))
    return np.concatenate(roots)


def _log_sum(exponent: FloatArray) -> FloatArray:
    """ln sum exp over the last axis."""
    top = exponent.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: FloatArray = np.log(np.exp(exponent - top).sum(axis=-1)) + top[..., 0]
    return total
