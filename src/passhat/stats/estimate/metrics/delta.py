"""delta^k: how much of pass^k is due to tasks being unequal?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.metrics.base import Metric
from passhat.stats.estimate.metrics.pass_k import PassHat

_MOST_STEPS = 200_000_000
"""Sums of the exact search for the largest delta^k; beyond it a bound is given."""


@dataclass(frozen=True, slots=True)
class Delta(Metric):
    """pass^k minus its value for a suite of equally hard tasks with the same mean.

    By Jensen's inequality the truth lies between 0 (all tasks alike) and mu - mu^k (every task
    always or never solved). A difference of the two estimates that falls below 0 is given as 0.
    """

    word: ClassVar[str] = "delta^"
    question: ClassVar[str] = (
        "How much higher is pass^{k} than if all tasks were equally hard at the same average?"
    )
    question_of_one: ClassVar[str] = "delta^1 is always 0: pass^1 is the average itself."
    formula: ClassVar[str] = "delta^k = pass^k - (pass^1)^k,   0 <= delta^k <= mu - mu^k"
    paper: ClassVar[str] = (
        "The gap in Jensen's inequality (Jensen 1906) for p^k, with pass^k of Yao et al. 2024, "
        "arXiv:2406.12045"
    )

    @property
    def estimator(self) -> str:
        return "pass^k - (pass^1)^k, each a task mean"

    @property
    def parts(self) -> tuple[PassHat, PassHat]:
        """The two task averages that it is made of: pass^k and pass^1."""
        return PassHat(self.k), PassHat(1)

    def combine(self, pass_hat_k: float, mean: float) -> float:
        """The gain from heterogeneity."""
        return 0.0 if self.k == 1 else max(pass_hat_k - mean**self.k, 0.0)

    def largest(self, low: float, high: float) -> float:
        """The largest value there can be when the mean success rate is between these."""
        peak = 1.0 if self.k == 1 else self.k ** (-1 / (self.k - 1))
        mean = min(max(peak, low), high)
        return mean - mean**self.k

    def range_of_fillings(self, n: IntArray, c: IntArray, missing: IntArray) -> tuple[float, float]:
        """The least and the largest value over all ways to fill in missing attempts.

        Between all failed and all passed delta^k may be outside of both: it is small where tasks
        are alike and large where some pass always and others never.
        """
        cells, tasks = np.unique(np.stack([n, c, missing]), axis=1, return_counts=True)
        least = Tangents.of(self.k).smallest(cells, tasks)
        largest = self._largest_of_fillings(cells, tasks)
        return max(least, 0.0), max(largest, least, 0.0)

    def _largest_of_fillings(self, cells: IntArray, tasks: IntArray) -> float:
        """The largest pass^k for every mean that fillings can have, less mean^k.

        pass^k is convex in the passes of a task, so that of tasks alike all but one are filled in
        wholly or not at all.
        """
        n, c, missing = cells
        open_cells = np.flatnonzero(missing)
        unit = math.lcm(*n[open_cells].tolist()) if len(open_cells) else 1
        attempts = int(missing @ tasks)
        states = int((missing * tasks / n).sum() * unit) + 1
        if attempts * states > _MOST_STEPS:
            return Tangents.of(self.k).bound_largest(cells, tasks)
        power, size = self.parts[0], int(tasks.sum())
        gains = np.zeros(1)
        for at in open_cells.tolist():
            values = power.values(
                np.full(missing[at] + 1, n[at]), c[at] + np.arange(missing[at] + 1)
            )
            whole, rest = np.divmod(np.arange(missing[at] * tasks[at] + 1), missing[at])
            more = whole * (values[-1] - values[0]) + values[rest] - values[0]
            step = unit // int(n[at])
            longer = np.full(len(gains) + step * (len(more) - 1), -np.inf)
            for passes, gain in enumerate(more.tolist()):
                part = longer[passes * step : passes * step + len(gains)]
                np.maximum(part, gains + gain, out=part)
            gains = longer
        mean = float((c / n) @ tasks) + np.arange(len(gains)) / unit
        values = (float(power.values(n, c) @ tasks) + gains) / size - (mean / size) ** self.k
        return float(values.max())

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        """A single value for the whole set: delta is not an average over tasks."""
        mean = float(np.mean(p))
        return np.array([self.combine(float(np.mean(p**self.k)), mean)])

    def python(self) -> str:
        return (
            "from math import comb\n"
            f"k = {self.k}\n"
            "tasks = sum(h for n, c, h in cells)\n"
            "mean = sum(h * c / n for n, c, h in cells) / tasks\n"
            "all_k = sum(h * comb(c, k) / comb(n, k) for n, c, h in cells) / tasks\n"
            "value = max(all_k - mean**k, 0.0)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tangents:
    """delta^k from above, by means over tasks: pass^k - (slope pass^1 - offset) for every slope.

    mean^k is the largest of its tangents, so delta^k is the smallest of these numbers. Each is a
    mean over tasks, for which the worst way to fill in missing attempts is known task by task.
    """

    k: int
    slopes: FloatArray
    offsets: FloatArray

    @classmethod
    def of(cls, k: int, count: int = 129) -> Tangents:
        """Tangents at evenly spaced means."""
        means = np.linspace(0.0, 1.0, count)
        return cls(k, k * means ** (k - 1), (k - 1) * means**k)

    @property
    def gap(self) -> float:
        """How much the smallest number may lie above delta^k, because there are not all slopes."""
        return self.k * (self.k - 1) / 8 / (len(self.slopes) - 1) ** 2

    def values(self, cells: IntArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest number of every slope, for cells of (n, c, missing)."""
        power = PassHat(self.k)
        lows, highs = (np.empty((len(self.slopes), cells.shape[1])) for _ in range(2))
        for at, (n, c, missing) in enumerate(cells.T.tolist()):
            passes = np.arange(c, c + missing + 1)
            numbers = power.values(np.full(len(passes), n), passes) - np.outer(
                self.slopes, passes / n
            )
            lows[:, at], highs[:, at] = numbers.min(axis=1), numbers.max(axis=1)
        return lows, highs

    def bound_largest(self, cells: IntArray, tasks: IntArray) -> float:
        """A number that delta^k does not pass, however missing attempts are filled in."""
        _, highs = self.values(cells)
        return float((highs @ tasks / tasks.sum() + self.offsets).min())

    def smallest(self, cells: IntArray, tasks: IntArray) -> float:
        """The smallest delta^k over all ways to fill in missing attempts.

        For the slope at the smallest one's own mean every task takes its best filling. The best
        slopes of the grid are near; from there on the mean of a filling gives the next slope.
        """
        n = cells[0]
        power, size, least = PassHat(self.k), int(tasks.sum()), math.inf
        fillings = [np.arange(a, a + m + 1) for _, a, m in cells.T.tolist()]
        values = [
            power.values(np.full(len(x), a), x) for a, x in zip(n.tolist(), fillings, strict=True)
        ]
        lows, _ = self.values(cells)
        nearest = np.argsort(lows @ tasks / size + self.offsets)[:5]
        for slope in self.slopes[nearest].tolist():
            while True:
                passes = np.array(
                    [
                        x[int((u - slope * x / a).argmin())]
                        for a, x, u in zip(n.tolist(), fillings, values, strict=True)
                    ]
                )
                mean = float((passes / n) @ tasks) / size
                found = float(power.values(n, passes) @ tasks) / size - mean**self.k
                if found >= least - 1e-12:
                    break
                least, slope = found, self.k * mean ** (self.k - 1)
        return least
