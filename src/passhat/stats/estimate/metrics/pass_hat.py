"""pass^k: do all of k attempts pass?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.counting import all_of_k
from passhat.stats.estimate.metrics.base import CountMetric

__all__ = ["PassHat", "Rate"]


@dataclass(frozen=True, slots=True)
class PassHat(CountMetric):
    """Reliability: the chance that k tries in a row all succeed."""

    question: ClassVar[str] = "If every task is done {k} times, how often do all of them succeed?"
    formula: ClassVar[str] = "pass^k = mean over tasks of  C(c, k) / C(n, k)"
    paper: ClassVar[str] = (
        "Yao et al. 2024, tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World "
        "Domains, arXiv:2406.12045"
    )

    @property
    def name(self) -> str:
        return f"pass^{self.k}"

    @property
    def estimator(self) -> str:
        return "task mean of C(c,k)/C(n,k)"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        return all_of_k(n, c, self.k)

    def known(self, p: FloatArray) -> FloatArray:
        return p**self.k

    @property
    def cell_python(self) -> str:
        return "comb(c, k) / comb(n, k)"


@dataclass(frozen=True, slots=True)
class Rate(PassHat):
    """The share of attempts that passed, averaged over tasks: pass^1 by another name."""

    k: int = 1

    question: ClassVar[str] = "How often does one attempt at a task succeed?"
    formula: ClassVar[str] = "rate = mean over tasks of  c / n  (= pass^1 = pass@1)"

    @property
    def name(self) -> str:
        return "rate"

    @property
    def estimator(self) -> str:
        return "task mean of c/n"
