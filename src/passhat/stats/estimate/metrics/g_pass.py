"""gpass@k:t: do at least a share t of k attempts pass?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from passhat.stats.arrays import FloatArray, IntArray, special
from passhat.stats.estimate.counting import as_share, at_least_of_k, passes_needed
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
