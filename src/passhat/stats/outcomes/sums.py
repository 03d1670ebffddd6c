"""What is known of attempts that were counted where they lie, rather than read one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from passhat.stats.arrays import FloatArray, IntArray, VerdictArray
from passhat.stats.outcomes.vocabulary import Verdict, failure_category, missing_reason

__all__ = ["MeasureSum", "Sums", "Taken"]


@dataclass(frozen=True, slots=True)
class MeasureSum:
    """A measure over the attempts that recorded it, and how many of those passed."""

    recorded: int
    total: float
    passed: int


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What attempts took, task after task: numbers alone, a few bytes each.

    ``starts``, ``verdicts`` and ``measures`` are those of
    :class:`~passhat.stats.outcomes.Attempts`.
    """

    starts: IntArray
    verdicts: VerdictArray
    measures: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Sums:
    """Reasons and measures of a run, all attempts together.

    Parameters
    ----------
    reasons : mapping of Verdict to mapping of str to int
        How often a source gave each word for why an attempt failed or is missing.
    measures : mapping of str to MeasureSum
        Seconds, steps, tokens and cost, where they were recorded.
    alike : tuple of int, optional
        Tasks with several answers, and those where all attempts gave the identical one.
    taken : Taken, optional
        What single attempts took, where somebody asked how that is spread.
    """

    reasons: Mapping[Verdict, Mapping[str, int]]
    measures: Mapping[str, MeasureSum]
    alike: tuple[int, int] | None = None
    taken: Taken | None = None

    def by_reason(self, verdict: Verdict) -> dict[str, int]:
        """Failure categories (or missing reasons) of the one vocabulary, most frequent first."""
        of = missing_reason if verdict is Verdict.MISSING else failure_category
        counts: dict[str, int] = {}
        for word, count in self.reasons.get(verdict, {}).items():
            counts[str(of(word))] = counts.get(str(of(word)), 0) + count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
