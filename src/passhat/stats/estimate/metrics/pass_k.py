"""pass@k, pass^k and gpass@k:t: do any, all or a share t of k attempts pass?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray, special
from passhat.stats.estimate.counting import (
    all_of_k,
    any_of_k,
    as_share,
    at_least_of_k,
    passes_needed,
)
from passhat.stats.estimate.metrics.base import CountMetric


@dataclass(frozen=True, slots=True)
class GPass(CountMetric):
    """Between coverage (small t) and reliability (t = 1)."""

    t: Fraction = Fraction(1)

    word: ClassVar[str] = "gpass@"
    question: ClassVar[str] = "If every task gets {k} tries, how often do enough of them succeed?"
    for_users: ClassVar[str] = "who each come {times}, {many}"
    formula: ClassVar[str] = (
        "gpass@k:t = mean over tasks of  sum_{j >= ceil(t k)} C(c, j) C(n-c, k-j) / C(n, k)"
    )
    paper: ClassVar[str] = (
        "Liu et al. 2024, Are Your LLMs Capable of Stable Reasoning?, arXiv:2412.13147"
    )

    def __post_init__(self) -> None:
        as_share(self.t)
        # The zero-argument super() does not reach the base of a slotted dataclass.
        CountMetric.__post_init__(self)

    @property
    def name(self) -> str:
        exact_decimal = Fraction(repr(float(self.t))) == self.t
        return f"gpass@{self.k}:{float(self.t)!r}" if exact_decimal else f"gpass@{self.k}:{self.t}"

    @property
    def family(self) -> str:
        return self.name.replace(f"@{self.k}:", "@k:")

    @property
    def event_text(self) -> str:
        return f"at least {self.needed} of {self.k} attempts pass"

    def users_text(self, many: str) -> str:
        times = f"at least {self.needed:,} times" if self.needed > 1 else "at least once"
        return CountMetric.users_text(self, f"{many} are served well {times}")

    @property
    def needed(self) -> int:
        """How many of the k attempts must pass."""
        return passes_needed(self.t, self.k)

    @property
    def estimator(self) -> str:
        return f"task mean of P(at least {self.needed} of k pass), hypergeometric"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        return at_least_of_k(n, c, self.k, self.needed)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        tail: FloatArray = special.bdtrc(self.needed - 1, self.k, p)
        return tail

    @property
    def set_up_python(self) -> str:
        return (
            "from math import comb\n"
            f"k, needed = {self.k}, {self.needed}\n"
            "def at_least(n, c):\n"
            "    ways = sum(comb(c, j) * comb(n - c, k - j) for j in range(needed, k + 1))\n"
            "    return ways / comb(n, k)"
        )

    @property
    def cell_python(self) -> str:
        return "at_least(n, c)"


@dataclass(frozen=True, slots=True)
class PassAt(CountMetric):
    """Coverage: the chance that k tries find a solution."""

    word: ClassVar[str] = "pass@"
    question: ClassVar[str] = "If every task gets {k} tries, how often does at least one succeed?"
    event: ClassVar[str] = "at least one of {k} passes"
    for_users: ClassVar[str] = "who each try {times}, {many} succeed at least once"
    formula: ClassVar[str] = "pass@k = mean over tasks of  1 - C(n-c, k) / C(n, k)"
    paper: ClassVar[str] = (
        "Chen et al. 2021, Evaluating Large Language Models Trained on Code, arXiv:2107.03374"
    )

    @property
    def estimator(self) -> str:
        return "task mean of 1 - C(n-c,k)/C(n,k)"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        return any_of_k(n, c, self.k)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        # log1p and expm1 keep the digits of tiny success rates and of tiny failure rates.
        with np.errstate(divide="ignore"):
            rate: FloatArray = -np.expm1(self.k * np.log1p(-p))
        return rate

    @property
    def cell_python(self) -> str:
        return "(1 - comb(n - c, k) / comb(n, k))"


@dataclass(frozen=True, slots=True)
class PassHat(CountMetric):
    """Reliability: the chance that k tries in a row all succeed."""

    word: ClassVar[str] = "pass^"
    question: ClassVar[str] = "If every task is done {k} times, how often do all of them succeed?"
    event: ClassVar[str] = "all of {k} attempts pass"
    for_users: ClassVar[str] = "who each come {times}, {many} never see a failure"
    formula: ClassVar[str] = "pass^k = mean over tasks of  C(c, k) / C(n, k)"
    paper: ClassVar[str] = (
        "Yao et al. 2024, tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World "
        "Domains, arXiv:2406.12045"
    )

    @property
    def estimator(self) -> str:
        return "task mean of C(c,k)/C(n,k)"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        return all_of_k(n, c, self.k)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        return p**self.k

    @property
    def cell_python(self) -> str:
        return "comb(c, k) / comb(n, k)"


@dataclass(frozen=True, slots=True)
class Rate(CountMetric):
    """The share of attempts that passed, averaged over tasks: pass^1 by another name."""

    k: int = 1

    word: ClassVar[str] = PassHat.word
    question: ClassVar[str] = CountMetric.question_of_one
    for_users: ClassVar[str] = PassHat.for_users
    paper: ClassVar[str] = PassHat.paper
    formula: ClassVar[str] = "rate = mean over tasks of  c / n  (= pass^1 = pass@1)"

    @property
    def name(self) -> str:
        return "rate"

    @property
    def estimator(self) -> str:
        return "task mean of c/n"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        return c / n

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        return p

    @property
    def cell_python(self) -> str:
        return "c / n"
