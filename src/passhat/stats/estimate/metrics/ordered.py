"""Metrics of attempts in their order: the first k, and k in a row."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.metrics.base import CountMetric, OrderedMetric
from passhat.stats.estimate.metrics.pass_k import PassAt, PassHat
from passhat.stats.outcomes.order import Sequences

MOST_ATTEMPTS = 128
"""Beyond that counting the sequences of ``window^w`` would take seconds."""

_DEFINITION = "Defined here as it is used in evaluation harnesses that keep the order of attempts"


@dataclass(frozen=True, slots=True)
class FirstAny(OrderedMetric):
    """Did any of the first k attempts pass? An observation, not an expectation."""

    word: ClassVar[str] = "first@"
    question: ClassVar[str] = "In how many tasks did one of the first {k} attempts succeed?"
    question_of_one: ClassVar[str] = "In how many tasks did the first attempt succeed?"
    event: ClassVar[str] = "one of the first {k} attempts passed"
    event_of_one: ClassVar[str] = "the first attempt passed"
    formula: ClassVar[str] = "first@k = mean over tasks of  max(x_1, ..., x_k)"
    paper: ClassVar[str] = _DEFINITION

    @property
    def estimator(self) -> str:
        return "task mean of any(first k)"

    def values(self, sequences: Sequences) -> FloatArray:
        return np.asarray(sequences.first(self.k).any(axis=1), np.float64)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        return 1.0 - (1.0 - p) ** self.k

    def as_count_metric(self, _n: int) -> CountMetric | None:
        return PassAt(self.k)

    def python(self) -> str:
        return f"k = {self.k}\nvalue = sum(any(row[:k]) for row in rows) / len(rows)"


@dataclass(frozen=True, slots=True)
class FirstAll(OrderedMetric):
    """Did all of the first k attempts pass? Success from a cold start."""

    word: ClassVar[str] = "first^"
    question: ClassVar[str] = "In how many tasks did all of the first {k} attempts succeed?"
    question_of_one: ClassVar[str] = "In how many tasks did the first attempt succeed?"
    event: ClassVar[str] = "all of the first {k} attempts passed"
    event_of_one: ClassVar[str] = "the first attempt passed"
    formula: ClassVar[str] = "first^k = mean over tasks of  min(x_1, ..., x_k)"
    paper: ClassVar[str] = _DEFINITION

    @property
    def estimator(self) -> str:
        return "task mean of all(first k)"

    def values(self, sequences: Sequences) -> FloatArray:
        return np.asarray(sequences.first(self.k).all(axis=1), np.float64)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        return p**self.k

    def as_count_metric(self, _n: int) -> CountMetric | None:
        return PassHat(self.k)

    def python(self) -> str:
        return f"k = {self.k}\nvalue = sum(all(row[:k]) for row in rows) / len(rows)"


@dataclass(frozen=True, slots=True)
class Window(OrderedMetric):
    """Did some w attempts in a row pass? It grows with n, so n must be equal on all tasks."""

    word: ClassVar[str] = "window^"
    question: ClassVar[str] = "In how many tasks did some {k} attempts in a row all succeed?"
    question_of_one: ClassVar[str] = "In how many tasks did some attempt succeed?"
    event: ClassVar[str] = "some {k} attempts in a row passed"
    event_of_one: ClassVar[str] = "some attempt passed"
    formula: ClassVar[str] = "window^w = mean over tasks of  max_i min(x_i, ..., x_{i+w-1})"
    paper: ClassVar[str] = _DEFINITION
    needs_equal_n: ClassVar[bool] = True

    @property
    def estimator(self) -> str:
        return "task mean of any(w in a row)"

    def values(self, sequences: Sequences) -> FloatArray:
        passed = sequences.matrix()
        streak = np.zeros(len(passed), np.int64)
        longest = streak.copy()
        for column in passed.T:
            streak = (streak + 1) * column
            np.maximum(longest, streak, out=longest)
        return (longest >= self.k).astype(np.float64)

    def value_at_rate(self, _p: FloatArray) -> FloatArray:
        raise InvalidValue(
            f"{self.name} depends on how many attempts are made: p alone does not give it."
        )

    def as_count_metric(self, n: int) -> CountMetric | None:
        return ShuffledWindow(self.k, n) if n <= MOST_ATTEMPTS else None

    def python(self) -> str:
        return (
            f"w = {self.k}\n"
            "def found(row):\n"
            "    return any(all(row[i:i + w]) for i in range(len(row) - w + 1))\n"
            "value = sum(found(row) for row in rows) / len(rows)"
        )


@dataclass(frozen=True, slots=True)
class ShuffledWindow(CountMetric):
    """The share of all orders of a task's attempts in which some w in a row pass.

    It has the expected value of ``window^w`` where attempts are independent given the task, and
    does not depend on their order. ``k`` is w; every task has n attempts.

    References
    ----------
    W. Feller (1968), An Introduction to Probability Theory and Its Applications, vol. 1, 3rd ed.,
        chapter XIII.7 (success runs).
    """

    n: int = 1

    word: ClassVar[str] = Window.word
    question: ClassVar[str] = Window.question
    question_of_one: ClassVar[str] = Window.question_of_one
    formula: ClassVar[str] = "orders of c passes in n attempts with w in a row / C(n, c)"
    paper: ClassVar[str] = "Feller 1968, chapter XIII.7"

    @property
    def name(self) -> str:
        return f"window^{self.k} in any order"

    @property
    def estimator(self) -> str:
        return "task mean of the share of orders with w in a row"

    def ways(self) -> list[int]:
        """How many of the sequences with j = 0..n passes have w of them in a row.

        Without such a run, the j passes fall into the n - j + 1 places around the failures, fewer
        than w into each; those are counted by inclusion and exclusion, in whole numbers.

        Examples
        --------
        >>> ShuffledWindow(2, 3).ways()
        [0, 0, 2, 1]
        """
        counts = []
        for j in range(self.n + 1):
            failures = self.n - j
            without = sum(
                (-1) ** i * comb(failures + 1, i) * comb(self.n - i * self.k, failures)
                for i in range(min(failures + 1, j // self.k) + 1)
            )
            counts.append(comb(self.n, j) - without)
        return counts

    def values(self, _n: IntArray, c: IntArray) -> FloatArray:
        shares = [ways / comb(self.n, j) for j, ways in enumerate(self.ways())]
        return np.asarray(np.array(shares)[c], np.float64)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        j = np.arange(self.n + 1)
        rates = np.asarray(p, np.float64)[..., None]
        ways = np.array(self.ways(), float)
        return np.asarray((rates**j * (1 - rates) ** (self.n - j)) @ ways)

    @property
    def cell_python(self) -> str:
        return f"{self.ways()}[c] / comb(n, c)"
