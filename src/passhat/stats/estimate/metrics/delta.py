"""delta^k: how much of pass^k is due to tasks being unequal?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.metrics.base import Metric
from passhat.stats.estimate.metrics.pass_k import PassHat

__all__ = ["Delta"]


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
