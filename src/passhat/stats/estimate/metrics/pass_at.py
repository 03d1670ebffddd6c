"""pass@k: does at least one of k attempts pass?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.counting import any_of_k
from passhat.stats.estimate.metrics.base import CountMetric

__all__ = ["PassAt"]


@dataclass(frozen=True, slots=True)
class PassAt(CountMetric):
    """Coverage: the chance that k tries find a solution."""

    question: ClassVar[str] = "If every task gets {k} tries, how often does at least one succeed?"
    formula: ClassVar[str] = "pass@k = mean over tasks of  1 - C(n-c, k) / C(n, k)"
    paper: ClassVar[str] = (
        "Chen et al. 2021, Evaluating Large Language Models Trained on Code, arXiv:2107.03374"
    )

    @property
    def name(self) -> str:
        return f"pass@{self.k}"

    @property
    def estimator(self) -> str:
        return "task mean of 1 - C(n-c,k)/C(n,k)"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        return any_of_k(n, c, self.k)

    def known(self, p: FloatArray) -> FloatArray:
        # log1p and expm1 keep the digits of tiny success rates and of tiny failure rates.
        with np.errstate(divide="ignore"):
            rate: FloatArray = -np.expm1(self.k * np.log1p(-p))
        return rate

    @property
    def cell_python(self) -> str:
        return "(1 - comb(n - c, k) / comb(n, k))"
