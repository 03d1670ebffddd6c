"""The base classes of all metrics.

A metric is one of four kinds, by its input:

- :class:`CountMetric`: a value per task that depends on n and c alone, averaged over tasks;
- :class:`OrderedMetric`: a value per task that depends on the order of its attempts;
- :class:`~passhat.stats.estimate.metrics.ScoreMetric`: one that depends on their scores;
- ``delta^k``, the one that is a function of two task averages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from passhat._serialize import Text
from passhat.errors import MetricError
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.outcomes.order import Sequences


@dataclass(frozen=True, slots=True)
class Metric(Text, ABC):
    """A metric of the grammar, such as ``pass^4``; written as its name.

    A class gives its ``word`` of the grammar, before the k, and its sentences, in which ``{k}`` is
    filled in.
    """

    k: int

    word: ClassVar[str]
    question: ClassVar[str]
    question_of_one: ClassVar[str] = "How often does one attempt at a task succeed?"
    event: ClassVar[str] = "{name} counts it as a success"
    event_of_one: ClassVar[str] = "one attempt passes"
    for_users: ClassVar[str] = "who each come {times}, {many} get what {name} counts as a success"
    formula: ClassVar[str]
    paper: ClassVar[str]
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise MetricError(f"{self}: k must be at least 1.")

    @property
    def name(self) -> str:
        """The metric's word in the grammar."""
        return f"{self.word}{self.k}"

    @property
    def family(self) -> str:
        """The name with the letter k, as in ``pass^k``."""
        return f"{self.word}k"

    def with_k(self, k: int) -> Self:
        """The same metric at another k."""
        return replace(self, k=k)

    @property
    @abstractmethod
    def estimator(self) -> str:
        """The estimator, in a few words for a report."""

    @property
    def asks(self) -> str:
        """The question with its k filled in."""
        return self.question_of_one if self.k == 1 else self.question.format(k=self.k)

    @property
    def event_text(self) -> str:
        """The event whose chance it is: ``all of 4 attempts pass``."""
        return self.event_of_one if self.k == 1 else self.event.format(k=self.k, name=self.name)

    def users_text(self, many: str) -> str:
        """The metric as a sentence about users who each bring a task and come k times."""
        times = "once" if self.k == 1 else f"{self.k:,} times"
        return self.for_users.format(times=times, many=many, name=self.name)

    @abstractmethod
    def python(self) -> str:
        """Lines of Python, standard library only, that define ``value`` from ``cells``."""

    @abstractmethod
    def value_at_rate(self, p: FloatArray) -> FloatArray:
        """The metric's true value for each task whose success rate is exactly p."""

    def as_count_metric(self, _n: int) -> CountMetric | None:
        """The metric of n and c with the same expected value; ``None`` where there is none.

        ``_n`` is the number of attempts per task, for metrics whose meaning depends on it.
        """
        return None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class CountMetric(Metric):
    """Depends on n and c of each task, and is averaged over tasks."""

    @abstractmethod
    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        """The unbiased value at each cell; n sorted, k <= n."""

    def as_count_metric(self, _n: int) -> CountMetric | None:
        return self

    @property
    @abstractmethod
    def cell_python(self) -> str:
        """The value at a cell as Python, in terms of n, c and names of ``set_up_python``."""

    @property
    def set_up_python(self) -> str:
        """Lines of Python that ``cell_python`` needs."""
        return f"from math import comb\nk = {self.k}"

    def python(self) -> str:
        return (
            f"{self.set_up_python}\n"
            "tasks = sum(h for n, c, h in cells)\n"
            f"value = sum(h * {self.cell_python} for n, c, h in cells) / tasks"
        )


@dataclass(frozen=True, slots=True)
class OrderedMetric(Metric):
    """Depends on the order of attempts, and is averaged over tasks."""

    needs_equal_n: ClassVar[bool] = False

    @abstractmethod
    def values(self, sequences: Sequences) -> FloatArray:
        """1 or 0 for each task; k <= n."""
