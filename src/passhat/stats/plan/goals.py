"""What a plan is to reach, and how many tasks a given variance then takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from passhat.stats.compare.lift import expected_bound

__all__ = ["Detect", "Goal", "HalfWidth"]

_MOST_TASKS = 10**9


@dataclass(frozen=True, slots=True)
class HalfWidth:
    """To know one agent's value to within ``target``, by normal theory."""

    target: float
    level: float
    power: None = None

    kind: ClassVar[str] = "half-width"
    approximation: ClassVar[str] = (
        "normal approximation: near 0 and 1, and below about 20 tasks, the intervals passhat "
        "reports are wider"
    )

    @property
    def _quantile(self) -> float:
        from scipy.special import ndtri

        return float(ndtri((1 + self.level) / 2))

    def tasks(self, variance: float) -> int:
        """With Guenther's correction for a variance that is estimated."""
        outer = self._quantile
        return max(2, math.ceil(outer**2 * variance / self.target**2 + outer**2 / 2))

    def reached(self, variance: float, tasks: int) -> float:
        """The half-width that this many tasks give."""
        outer = self._quantile
        return outer * math.sqrt(variance / max(tasks - outer**2 / 2, 1.0))

    def reached_with_noise(self, noise: float, tail: float, cost: float) -> float:
        """The half-width of an interval whose point has this standard error."""
        return cost * _quantile(tail) * noise


@dataclass(frozen=True, slots=True)
class Detect:
    """To see a lift of ``target`` between two agents on the same tasks.

    Seen means what ``passhat compare`` calls an improvement: the interval of the lift on new tasks
    lies above zero. The mean of the differences is taken to be normal, their spread
    to be what the pilot says.
    """

    target: float
    level: float
    power: float

    kind: ClassVar[str] = "detect"
    approximation: ClassVar[str] = (
        "seen means that the interval of passhat compare lies above zero; the mean of the "
        "differences is taken to be normal"
    )

    def tasks(self, variance: float) -> int:
        """The fewest tasks with the wanted power."""
        return _smallest(lambda tasks: self._power(self.target, variance, tasks) >= self.power)

    def reached(self, variance: float, tasks: int) -> float:
        """The smallest lift that this many tasks would show with the wanted power."""
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            enough = self._power(middle, variance, tasks) >= self.power
            low, high = (low, middle) if enough else (middle, high)
        return high

    def reached_with_noise(self, noise: float, tail: float, cost: float) -> float:
        """The smallest lift that is seen with the wanted power, given its standard error."""
        return (cost * _quantile(tail) + _quantile(1 - self.power)) * noise

    def power_with(self, variance: float, tasks: int) -> float:
        """The chance to see the target with this many tasks."""
        return self._power(self.target, variance, tasks)

    def _power(self, lift: float, variance: float, tasks: int) -> float:
        from scipy.special import ndtr

        margin = expected_bound(tasks, lift, variance, (1 - self.level) / 2)
        noise = math.sqrt(variance * tasks) / (tasks + 1)
        return float(margin > 0) if noise == 0 else float(ndtr(margin / noise))


Goal = HalfWidth | Detect


def _quantile(tail: float) -> float:
    """The normal quantile that leaves ``tail`` above it."""
    from scipy.special import ndtri

    return -float(ndtri(tail))


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest number from 2 on that is enough, by doubling and halving."""
    low, high = 1, 2
    while not enough(high) and high < _MOST_TASKS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
