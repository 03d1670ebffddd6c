"""Results of the toy: power laws for T*, a line for logit pass@k, and the collapse behind them.

In the scaling regime, 0.03 < pass@k < 0.98 at the best temperature,

    ln T* = ln A + a ln k + b ln s                (least squares; s is the spread of the tasks)

Far from the grain of the integers only ratios count: p(c | T) has width sqrt(T), so pass@k of a
stretched set depends on k/s and T/s^2 alone. Then T* = s^2 Phi(k/s), and a + b = 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.temperature.optimum import best_temperatures
from passhat.stats.temperature.tasks import SHAPES, TaskSet, family, shape

SPREADS = tuple(float(1 << i) for i in range(10))
GAMMAS = (4.0, 3.0, 2.5, 2.0, 1.5)
KS = (*range(1, 17), 24, *(1 << i for i in range(5, 17)))
REGIME = (0.03, 0.98)
POWER_FROM_K = 20
"""The power law shows no scaling below; the study that is followed here starts there."""


@dataclass(frozen=True, slots=True)
class Point(Plain):
    """The optimum of one eval set at one k."""

    WRITTEN = ("tasks", "spread", "k", "temperature", "value", "in_regime")

    tasks: str
    spread: float
    k: int
    temperature: float
    value: float
    parameter: str = ""

    @property
    def in_regime(self) -> bool:
        """Whether pass@k is neither close to 0 nor to 1."""
        return REGIME[0] < self.value < REGIME[1]


@dataclass(frozen=True, slots=True)
class ScalingLaw(Plain):
    """T* = factor k^k_exponent s^spread_exponent, fitted in the scaling regime."""

    WRITTEN = (
        *("name", "factor", "k_exponent", "spread_exponent", "exponent_sum", "r_squared"),
        "points",
    )

    name: str
    factor: float
    k_exponent: float
    spread_exponent: float
    r_squared: float
    points: int

    @property
    def exponent_sum(self) -> float:
        """2 where the scaling collapse holds."""
        return self.k_exponent + self.spread_exponent

    def __str__(self) -> str:
        return (
            f"T* = {self.factor:.4g} k^{self.k_exponent:.3f} s^{self.spread_exponent:.3f}, "
            f"R² {self.r_squared:.4f}, {self.points} points"
        )


@dataclass(frozen=True, slots=True)
class LogLogit:
    """logit pass@k = intercept + slope ln k for one eval set, each k at its own T*.

    A planning rule, not an estimator. The true curve is bent: ``misses_by`` is the largest error
    of a line fitted to the points below pass@k = 0.5 when it is drawn on to the others.
    """

    tasks: str
    intercept: float
    slope: float
    r_squared: float
    misses_by: float | None


@dataclass(frozen=True, slots=True)
class Study(Plain):
    """All results of the toy for a family of task sets."""

    SCHEMA = "passhat.temperature-toy/1"
    WRITTEN = (
        "family",
        "law",
        "log_logit",
        ("log_logit_median_r_squared", "median_r_squared"),
        "points",
    )

    family: str
    points: tuple[Point, ...]
    law: ScalingLaw
    log_logit: tuple[LogLogit, ...]

    @property
    def median_r_squared(self) -> float:
        """The median R² of the log-logit lines."""
        return float(np.median([line.r_squared for line in self.log_logit]))


def study(name: str, ks: Sequence[int] = KS) -> Study:
    """The sweep of one family over its spreads, with its fits.

    ``name`` is the family of task sets: gaussian, exponential or power.

    Examples
    --------
    >>> print(study("gaussian").law)
    T* = 0.2639 k^0.728 s^1.283, R² 0.9996, 158 points
    """
    sets = [family(name, value) for value in (GAMMAS if name == "power" else SPREADS)]
    points = sweep(((tasks.spread, tasks) for tasks in sets), ks)
    law = fit_law(points, name, k_from=POWER_FROM_K if name == "power" else 2)
    lines = [fit_log_logit([p for p in points if p.tasks == tasks.name]) for tasks in sets]
    return Study(name, points, law, tuple(line for line in lines if line is not None))


def head_or_tail() -> tuple[ScalingLaw, ...]:
    """The law of every shape: the effects of the head and of the tail of the distribution.

    All have the same spread, so the shape alone is left to set the exponent.
    """
    return tuple(fit_law(sweep((s, shape(name, s)) for s in SPREADS), name) for name in SHAPES)


def sweep(sets: Iterable[tuple[float, TaskSet]], ks: Sequence[int] = KS) -> tuple[Point, ...]:
    """T*(k) and pass@k there, for pairs of spread and eval set."""
    return tuple(
        Point(tasks.name, spread, best.k, best.temperature, best.value, tasks.parameter)
        for spread, tasks in sets
        for best in best_temperatures(tasks, ks)
    )


def fit_law(points: Sequence[Point], name: str = "", *, k_from: int = 2) -> ScalingLaw:
    """Least squares of ln T* on ln k and ln s in the scaling regime.

    At k = 1 the best answer to a set that holds c = 0 is T = 0, so k starts at 2.
    """
    in_law = [p for p in points if p.in_regime and p.k >= k_from and p.temperature > 0]
    if len(in_law) < 4 or len({p.spread for p in in_law}) < 2 or len({p.k for p in in_law}) < 2:
        raise InvalidValue(
            f"a law needs several k and spreads in the scaling regime, and {name or 'this set'} "
            f"has {len(in_law)} points there.",
            hint="Give more values of k, or spreads for which pass@k is neither 0 nor 1.",
        )
    logs = np.log([(p.k, p.spread, p.temperature) for p in in_law])
    fit = _least_squares(np.column_stack([np.ones(len(in_law)), logs[:, :2]]), logs[:, 2])
    factor, k_exponent, spread_exponent = fit.coefficients
    return ScalingLaw(
        name, float(np.exp(factor)), k_exponent, spread_exponent, fit.r_squared, len(in_law)
    )


def fit_log_logit(points: Sequence[Point]) -> LogLogit | None:
    """The line of one eval set over its scaling regime; ``None`` with fewer than three points."""
    in_law = [p for p in points if p.in_regime]
    if len(in_law) < 3:
        return None
    log_k = np.log([p.k for p in in_law])
    value = np.array([p.value for p in in_law])
    logit = np.log(value) - np.log1p(-value)
    design = np.column_stack([np.ones(len(in_law)), log_k])
    fit = _least_squares(design, logit)
    early = value < 0.5
    misses_by = None
    if early.sum() >= 3 and not early.all():
        line = _least_squares(design[early], logit[early])
        drawn_on = 1 / (1 + np.exp(-design[~early] @ line.coefficients))
        misses_by = float(np.abs(drawn_on - value[~early]).max())
    intercept, slope = fit.coefficients
    return LogLogit(in_law[0].tasks, intercept, slope, fit.r_squared, misses_by)


@dataclass(frozen=True, slots=True)
class _Fit:
    coefficients: tuple[float, ...]
    r_squared: float


def _least_squares(design: FloatArray, target: FloatArray) -> _Fit:
    solution = np.linalg.lstsq(design, target, rcond=None)[0]
    left = target - design @ solution
    deviations = target - target.mean()
    return _Fit(tuple(solution.tolist()), 1 - float(left @ left) / float(deviations @ deviations))
