"""mean, best@k and worst@k: the scores of attempts, between 0 and 1.

The expected best and worst of k attempts are areas: E[min of k] is the integral over t of
P(S > t)^k, so worst@k is pass^k averaged over all thresholds, and best@k is pass@k averaged over
them. Where every score is 0 or 1 they are pass^k and pass@k.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.counting import all_of_k
from passhat.stats.estimate.metrics.base import CountMetric, Metric
from passhat.stats.estimate.metrics.pass_k import PassAt, PassHat
from passhat.stats.outcomes.order import Scores

_PAPER = (
    "Order statistics of a sample without replacement (David and Nagaraja 2003, Order Statistics, "
    "section 3.7); at scores of 0 and 1 the estimators of pass@k and pass^k"
)


@dataclass(frozen=True, slots=True)
class ScoreMetric(Metric):
    """Depends on the scores of a task's attempts, and is averaged over tasks."""

    question_of_one: ClassVar[str] = "What does one attempt at a task score on average?"
    event_of_one: ClassVar[str] = "one attempt scores, on average"
    paper: ClassVar[str] = _PAPER

    @property
    @abstractmethod
    def verdict_metric(self) -> CountMetric:
        """The metric of verdicts that it averages over thresholds."""

    @abstractmethod
    def weights(self, n: int) -> FloatArray:
        """The weight of the i-th smallest of n scores, i from 1 to n."""

    def values(self, scores: Scores) -> FloatArray:
        """The unbiased value of each task; no score is missing, k <= n."""
        lengths = np.diff(scores.starts)
        values = np.zeros(len(lengths))
        for n in np.unique(lengths).tolist():
            here = np.flatnonzero(lengths == n)
            rows = np.sort(scores.values[scores.starts[here, None] + np.arange(n)], axis=1)
            values[here] = (rows * self.weights(n)).sum(axis=1)
        return np.clip(values, 0.0, 1.0)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        """The value where an attempt scores 1 with chance p and 0 otherwise."""
        return self.verdict_metric.value_at_rate(p)

    @property
    @abstractmethod
    def row_python(self) -> str:
        """The value of a task as Python, in terms of k, n and its sorted scores ``row``."""

    def python(self) -> str:
        return (
            "from math import comb\n"
            f"k = {self.k}\n"
            "def task_value(row):\n"
            "    row, n = sorted(row), len(row)\n"
            f"    return {self.row_python}\n"
            "value = sum(map(task_value, rows)) / len(rows)"
        )


@dataclass(frozen=True, slots=True)
class BestOf(ScoreMetric):
    """The score of the best of k attempts, on average."""

    word: ClassVar[str] = "best@"
    question: ClassVar[str] = "If every task gets {k} tries, what does the best of them score?"
    event: ClassVar[str] = "the best of {k} attempts scores, on average"
    formula: ClassVar[str] = (
        "best@k = mean over tasks of  sum_i C(i-1, k-1) x_(i) / C(n, k),   x_(1) <= ... <= x_(n)"
    )

    @property
    def estimator(self) -> str:
        return "task mean of sum C(i-1,k-1) x(i)/C(n,k)"

    @property
    def verdict_metric(self) -> CountMetric:
        return PassAt(self.k)

    def weights(self, n: int) -> FloatArray:
        return _worst_weights(n, self.k)[::-1]

    @property
    def row_python(self) -> str:
        return "sum(comb(i, k - 1) * x for i, x in enumerate(row)) / comb(n, k)"


@dataclass(frozen=True, slots=True)
class WorstOf(ScoreMetric):
    """The score of the worst of k attempts, on average."""

    word: ClassVar[str] = "worst@"
    question: ClassVar[str] = "If every task is done {k} times, what does the worst of them score?"
    event: ClassVar[str] = "the worst of {k} attempts scores, on average"
    formula: ClassVar[str] = (
        "worst@k = mean over tasks of  sum_i C(n-i, k-1) x_(i) / C(n, k),   x_(1) <= ... <= x_(n)"
    )

    @property
    def estimator(self) -> str:
        return "task mean of sum C(n-i,k-1) x(i)/C(n,k)"

    @property
    def verdict_metric(self) -> CountMetric:
        return PassHat(self.k)

    def weights(self, n: int) -> FloatArray:
        return _worst_weights(n, self.k)

    @property
    def row_python(self) -> str:
        return "sum(comb(n - 1 - i, k - 1) * x for i, x in enumerate(row)) / comb(n, k)"


@dataclass(frozen=True, slots=True)
class Mean(WorstOf):
    """The mean score of an attempt: best@1 and worst@1 by another name."""

    k: int = 1

    question: ClassVar[str] = ScoreMetric.question_of_one
    formula: ClassVar[str] = "mean = mean over tasks of  (x_1 + ... + x_n) / n"

    @property
    def name(self) -> str:
        return "mean"

    @property
    def estimator(self) -> str:
        return "task mean of the mean score"

    def python(self) -> str:
        return "value = sum(sum(row) / len(row) for row in rows) / len(rows)"


def _worst_weights(n: int, k: int) -> FloatArray:
    """The chance that the i-th smallest of n is the smallest of k drawn from them.

    All k are among the n - i + 1 largest, and not among the n - i largest.
    """
    within = all_of_k(np.full(n + 1, n), np.arange(n + 1), k)
    return np.diff(within)[::-1]
