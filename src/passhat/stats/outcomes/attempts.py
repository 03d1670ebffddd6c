"""Attempts in columns: a million of them fit in memory, and single attempts can be read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray, IntArray, VerdictArray
from passhat.stats.outcomes.vocabulary import (
    Verdict,
    failure_category,
    missing_reason,
    source_words,
)

MEASURES = ("seconds", "steps", "tokens", "cost")
"""Measures of an attempt besides its verdict; NaN is "not recorded", never zero."""


@dataclass(frozen=True, slots=True)
class Attempt(Plain):
    """A fresh try of an agent at a task."""

    task: str
    number: int
    verdict: Verdict
    why: str | None = None
    detail: str | None = None
    measures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    extras: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    score: float | None = None

    @property
    def id(self) -> str:
        """The name that can be pasted back anywhere, as in ``retail/012#3``."""
        return f"{self.task}#{self.number}"

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.id} {self.verdict}{why}"

    def _as_dict(self) -> dict[str, object]:
        return {
            "task": self.task,
            "attempt": self.number,
            "passed": None if self.verdict is Verdict.MISSING else bool(self.verdict),
            "score": self.score,
            "category": self.why if self.verdict is Verdict.FAILED else None,
            "reason": self.why if self.verdict is Verdict.MISSING else None,
            "detail": self.detail,
            **{name: self.measures.get(name) for name in MEASURES},
            # A conversation has forms of its own, and would outweigh everything else.
            **{name: text for name, text in self.extras.items() if name != "conversation"},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Categorical:
    """A text column with few different values: each value once, and a number per row."""

    values: tuple[str, ...]
    codes: IntArray

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]

    def take(self, rows: IntArray) -> Categorical:
        return Categorical(self.values, self.codes[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Attempts:
    """All attempts of a run, task after task, in the order of attempts within a task."""

    tasks: tuple[str, ...]
    """Task ids."""
    starts: IntArray
    """Rows ``starts[i]`` to ``starts[i + 1]`` belong to task i."""
    verdicts: VerdictArray
    """1 passed, 0 failed, -1 missing."""
    detail: Categorical | None = None
    """The source's own reason for a failed or missing attempt."""
    measures: Mapping[str, FloatArray] = field(default_factory=lambda: MappingProxyType({}))
    """Seconds, steps, tokens, cost; NaN where not recorded."""
    answers: IntArray | None = None
    """A hash of each answer, 0 where unknown."""
    extras: Mapping[str, Categorical] = field(default_factory=lambda: MappingProxyType({}))
    """Further columns of a source, as text: the attempt's seed, the place of its transcript."""
    scores: FloatArray | None = None
    """Graded results on [0, 1], NaN where missing; ``None`` where each would be its verdict."""

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Attempt]:
        for index in range(len(self.tasks)):
            yield from self.of(index)

    def of(self, index: int) -> Iterator[Attempt]:
        """The attempts at one task."""
        start, stop = int(self.starts[index]), int(self.starts[index + 1])
        # As Python's numbers: a look into an array takes ten times as long as one into a list.
        columns = {name: column[start:stop].tolist() for name, column in self.measures.items()}
        scores = None if self.scores is None else self.scores[start:stop].tolist()
        for place, value in enumerate(self.verdicts[start:stop].tolist()):
            row, verdict = start + place, Verdict(value)
            detail = self.detail[row] if self.detail is not None else ""
            why, words = describe_reason(verdict, detail)
            score = None if scores is None else scores[place]
            yield Attempt(
                self.tasks[index],
                place + 1,
                verdict,
                why,
                words,
                MappingProxyType(
                    {
                        name: cell
                        for name, column in columns.items()
                        if not math.isnan(cell := float(column[place]))
                    }
                ),
                MappingProxyType(
                    {name: text for name, column in self.extras.items() if (text := column[row])}
                ),
                None if score is None or math.isnan(score) else score,
            )

    def reasons(self, verdict: Verdict) -> dict[str, int]:
        """Count failure categories (or missing reasons), most frequent first."""
        counts: dict[str, int] = {}
        for word, count in self._count_words(verdict):
            why = str(_why(verdict, word))
            counts[why] = counts.get(why, 0) + count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def messages(self, verdict: Verdict) -> dict[str, dict[str, int]]:
        """How often each of the source's own reasons came with a category."""
        messages: dict[str, dict[str, int]] = {}
        for word, count in self._count_words(verdict):
            category, message = str(_why(verdict, word)), source_words(word)
            if message and message != category:
                messages.setdefault(category, {})[message] = count
        return messages

    def _count_words(self, verdict: Verdict) -> Iterator[tuple[str, int]]:
        rows = np.flatnonzero(self.verdicts == verdict)
        detail = self.detail or Categorical(("",), np.zeros(len(self), np.int64))
        counts = np.bincount(detail.codes[rows], minlength=len(detail.values)).tolist()
        yield from ((word, n) for word, n in zip(detail.values, counts, strict=True) if n)


@lru_cache(maxsize=1024)
def describe_reason(verdict: int, detail: str) -> tuple[str | None, str | None]:
    """Category or reason of an attempt, and the source's own words for it."""
    why = None if verdict == Verdict.PASSED else str(_why(verdict, detail))
    return why, source_words(detail) or None


def _why(verdict: int, detail: str) -> str:
    return missing_reason(detail) if verdict == Verdict.MISSING else failure_category(detail)


@dataclass(frozen=True, slots=True)
class MeasureSum:
    """A measure over the attempts that recorded it, and how many of those passed."""

    recorded: int
    total: float
    passed: int


@dataclass(frozen=True, slots=True, eq=False)
class MeasureColumns:
    """Measures of attempts, task after task: numbers alone, a few bytes each.

    ``starts``, ``verdicts`` and ``measures`` are those of
    :class:`~passhat.stats.outcomes.Attempts`.
    """

    starts: IntArray
    verdicts: VerdictArray
    measures: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Reasons and measures of a run, all attempts together."""

    reasons: Mapping[Verdict, Mapping[str, int]]
    """How often a source gave each reason why an attempt failed or is missing."""
    measures: Mapping[str, MeasureSum]
    """Seconds, steps, tokens and cost, where they were recorded."""
    alike: tuple[int, int] | None = None
    """Tasks with several answers, and those where all attempts gave the identical one."""
    columns: MeasureColumns | None = None
    """Measures of single attempts, where the spread is needed."""

    def by_reason(self, verdict: Verdict) -> dict[str, int]:
        """Counts by failure category (or missing reason), most frequent first."""
        of = missing_reason if verdict is Verdict.MISSING else failure_category
        counts: dict[str, int] = {}
        for word, count in self.reasons.get(verdict, {}).items():
            counts[str(of(word))] = counts.get(str(of(word)), 0) + count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def concatenate(
    parts: list[Attempts],
    tasks: tuple[str, ...],
    starts: IntArray,
    sorting: IntArray,
) -> Attempts:
    """The attempts of several parts at these tasks, in the order that ``sorting`` states."""
    measures = dict.fromkeys(name for part in parts for name in part.measures)
    extras = dict.fromkeys(name for part in parts for name in part.extras)
    all_answered = all(part.answers is not None for part in parts)
    scores = None
    if any(part.scores is not None for part in parts):
        scores = np.concatenate([_scores(part) for part in parts])[sorting]
    return Attempts(
        tasks,
        starts,
        np.concatenate([part.verdicts for part in parts])[sorting],
        _texts([part.detail for part in parts], parts).take(sorting),
        MappingProxyType(
            {
                name: np.concatenate(
                    [part.measures.get(name, np.full(len(part), np.nan)) for part in parts]
                )[sorting]
                for name in measures
            }
        ),
        np.concatenate([part.answers for part in parts if part.answers is not None])[sorting]
        if all_answered
        else None,
        MappingProxyType(
            {
                name: _texts([part.extras.get(name) for part in parts], parts).take(sorting)
                for name in extras
            }
        ),
        scores,
    )


def _scores(part: Attempts) -> FloatArray:
    """The scores of attempts; where the source graded none, their verdicts."""
    if part.scores is not None:
        return part.scores
    return np.where(part.verdicts == Verdict.MISSING, np.nan, part.verdicts.astype(np.float64))


def _texts(columns: list[Categorical | None], parts: list[Attempts]) -> Categorical:
    """Text columns end to end, with one list of different values."""
    values: dict[str, int] = {"": 0}
    codes = []
    for column, part in zip(columns, parts, strict=True):
        if column is None:
            codes.append(np.zeros(len(part), np.int64))
            continue
        mapping = np.array(
            [values.setdefault(text, len(values)) for text in column.values] or [0], np.int64
        )
        codes.append(mapping[column.codes])
    return Categorical(tuple(values), np.concatenate(codes))
