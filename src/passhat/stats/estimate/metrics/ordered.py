"""Metrics of the attempts as they came: the first k, and k in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.metrics.base import OrderedMetric
from passhat.stats.outcomes.order import Sequences

__all__ = ["FirstAll", "FirstAny", "Window"]

_DEFINITION = "Defined here as it is used in evaluation harnesses that keep the order of attempts"


@dataclass(frozen=True, slots=True)
class FirstAny(OrderedMetric):
    """Did any of the first k attempts pass? What was seen, not what is to be expected."""

    question: ClassVar[str] = "In how many tasks did one of the first {k} attempts succeed?"
    formula: ClassVar[str] = "first@k = mean over tasks of  max(x_1, ..., x_k)"
    paper: ClassVar[str] = _DEFINITION

    @property
    def name(self) -> str:
        return f"first@{self.k}"

    @property
    def estimator(self) -> str:
        return "task mean of any(first k)"

    def values(self, sequences: Sequences) -> FloatArray:
        return np.asarray(sequences.first(self.k).any(axis=1), np.float64)

    def known(self, p: FloatArray) -> FloatArray:
        return 1.0 - (1.0 - p) ** self.k

    def python(self) -> str:
        return f"k = {self.k}\nvalue = sum(any(row[:k]) for row in rows) / len(rows)"


@dataclass(frozen=True, slots=True)
class FirstAll(OrderedMetric):
    """Did all of the first k attempts pass? Success from a cold start."""

    question: ClassVar[str] = "In how many tasks did all of the first {k} attempts succeed?"
    formula: ClassVar[str] = "first^k = mean over tasks of  min(x_1, ..., x_k)"
    paper: ClassVar[str] = _DEFINITION

    @property
    def name(self) -> str:
        return f"first^{self.k}"

    @property
    def estimator(self) -> str:
        return "task mean of all(first k)"

    def values(self, sequences: Sequences) -> FloatArray:
        return np.asarray(sequences.first(self.k).all(axis=1), np.float64)

    def known(self, p: FloatArray) -> FloatArray:
        return p**self.k

    def python(self) -> str:
        return f"k = {self.k}\nvalue = sum(all(row[:k]) for row in rows) / len(rows)"


@dataclass(frozen=True, slots=True)
class Window(OrderedMetric):
    """Did some w attempts in a row pass? It grows with n, so n must be equal on all tasks."""

    question: ClassVar[str] = "In how many tasks did some {k} attempts in a row all succeed?"
    formula: ClassVar[str] = "window^w = mean over tasks of  max_i min(x_i, ..., x_{i+w-1})"
    paper: ClassVar[str] = _DEFINITION
    needs_equal_n: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"window^{self.k}"

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

    def known(self, _p: FloatArray) -> FloatArray:
        raise InvalidValue(
            f"{self.name} depends on how many attempts are made: p alone does not give it."
        )

    def python(self) -> str:
        return (
            f"w = {self.k}\n"
            "def found(row):\n"
            "    return any(all(row[i:i + w]) for i in range(len(row) - w + 1))\n"
            "value = sum(found(row) for row in rows) / len(rows)"
        )
