"""The interval of the lift: how much better B is than A, averaged over tasks.

With d_i the difference of task i (B minus A) over T tasks, **pseudo-tasks** are added: h of them
with d = +1 and h with d = -1, flips that nobody has seen yet but that new tasks may hold.

    h = 1 and q the normal quantile, when every d is -1, 0 or 1   (Bonett and Price 2012)
    h = 1/2 and q the t quantile with T - 1 degrees of freedom, otherwise
    N = T + 2h,   m = sum d / N,   v = (sum d^2 + 2h) / N - m^2
    interval = m ± q sqrt(v / N), clipped to [-1, 1]

The point that is shown is mean(d), not m. The interval has width even when no task disagrees, is
the same for any order of the tasks, and draws no random numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import number
from passhat.errors import InvalidValue
from passhat.protocol import Alternative
from passhat.stats.arrays import FloatArray

__all__ = ["METHOD", "Interval", "Spread", "hull", "tail_of", "tasks_needed"]

METHOD = "pseudo-tasks"
_MOST_TASKS = 10**9
"""Beyond this, "more tasks" is no advice."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends of a range of lifts."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"[{number(self.low)}, {number(self.high)}]"


@dataclass(frozen=True, slots=True)
class Spread:
    """All that the interval needs to know of the differences.

    Attributes
    ----------
    tasks : int
        How many there are.
    mean, square : float
        The mean of d, which is the lift, and the mean of d squared.
    graded : bool
        Whether some d is neither -1, 0 nor 1.
    """

    tasks: int
    mean: float
    square: float
    graded: bool

    @classmethod
    def of(cls, differences: FloatArray) -> Spread:
        """Summarise differences that lie in [-1, 1]; at least one is needed."""
        d = np.asarray(differences, np.float64)
        if d.ndim != 1 or len(d) == 0:
            raise InvalidValue("one difference per task is needed, and at least one task.")
        if not bool((np.abs(d) <= 1).all()):
            raise InvalidValue("a difference of two shares lies between -1 and 1.")
        graded = bool(((d != 0) & (np.abs(d) != 1)).any())
        return cls(len(d), float(d.mean()), float(d @ d) / len(d), graded)

    @property
    def pseudo(self) -> float:
        """h, the pseudo-tasks on either side."""
        return 0.5 if self.graded else 1.0

    @property
    def centre(self) -> float:
        """m, the lift drawn a little towards zero."""
        return self.tasks * self.mean / (self.tasks + 2 * self.pseudo)

    @property
    def error(self) -> float:
        """sqrt(v / N), the standard error that goes with the centre."""
        size = self.tasks + 2 * self.pseudo
        variance = (self.tasks * self.square + 2 * self.pseudo) / size - self.centre**2
        return float(np.sqrt(variance / size))

    def quantile(self, tail: float) -> float:
        """q, leaving ``tail`` beyond it; infinite where one graded task is all there is."""
        from scipy.special import ndtri, stdtrit

        if not self.graded:
            return float(-ndtri(tail))
        return float(-stdtrit(self.tasks - 1, tail)) if self.tasks > 1 else np.inf

    def interval(self, tail: float, alternative: Alternative = "two-sided") -> Interval:
        """The interval that leaves ``tail`` beyond each end it has.

        A one-sided alternative has one bound; the other end is that of the range.
        """
        reach = self.quantile(tail) * self.error
        # At the usual levels the point lies inside anyway; at a level near 0 it must, too.
        low = min(max(-1.0, self.centre - reach), self.mean)
        high = max(min(1.0, self.centre + reach), self.mean)
        return Interval(
            -1.0 if alternative == "less" else low, 1.0 if alternative == "greater" else high
        )


def tail_of(level: float, alternative: Alternative) -> float:
    """The error left beyond each end of the interval: half of it when there are two ends."""
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
    return (1 - level) / 2 if alternative == "two-sided" else 1 - level


def hull(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval that holds all of these."""
    parts = list(intervals)
    return Interval(min(part.low for part in parts), max(part.high for part in parts))


def tasks_needed(spread: Spread, tail: float, alternative: Alternative) -> int | None:
    """How many paired tasks make the interval exclude zero, if mean and spread stay as they are.

    ``None`` when no number does: the lift is zero, or points away from the alternative.
    """

    def enough(tasks: int) -> bool:
        found = replace(spread, tasks=tasks).interval(tail, alternative)
        return found.low > 0 or found.high < 0

    wrong_way = {"greater": spread.mean < 0, "less": spread.mean > 0, "two-sided": False}
    if spread.mean == 0 or wrong_way[alternative] or not enough(_MOST_TASKS):
        return None
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
