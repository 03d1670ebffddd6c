"""The attempts of every task in the order they were made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat._arrays import BoolArray, IntArray, VerdictArray
from passhat.outcomes.words import Completion, Verdict

__all__ = ["Order", "Sequences"]


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Passed or not, attempt by attempt, one task after the other; nothing is missing here.

    ``passed[starts[i]:starts[i + 1]]`` belongs to task i.
    """

    passed: BoolArray
    starts: IntArray

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.starts)

    def first(self, k: int) -> BoolArray:
        """The first k attempts of every task, tasks x k; every task must have k."""
        columns = self.starts[:-1, None] + np.arange(k)
        taken: BoolArray = self.passed[columns]
        return taken

    def matrix(self) -> BoolArray:
        """Tasks x n; every task must have the same n."""
        return self.passed.reshape(len(self.starts) - 1, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Verdicts (1 passed, 0 failed, -1 missing) laid end to end, task after task."""

    verdicts: VerdictArray
    starts: IntArray

    def completed(self, completion: Completion) -> Sequences:
        """Fill in, or close up over, the attempts without a verdict."""
        if completion is Completion.AS_PASSED:
            return Sequences(self.verdicts != Verdict.FAILED, self.starts)
        passed = self.verdicts == Verdict.PASSED
        if completion is Completion.AS_FAILED:
            return Sequences(passed, self.starts)
        scored = self.verdicts != Verdict.MISSING
        before = np.concatenate(([0], np.cumsum(scored)))
        return Sequences(passed[scored], before[self.starts])

    def of(self, index: int) -> tuple[Verdict, ...]:
        """The verdicts of one task."""
        row = self.verdicts[self.starts[index] : self.starts[index + 1]]
        return tuple(Verdict(int(value)) for value in row)

    def take(self, indices: IntArray) -> Order:
        """The order of some of the tasks."""
        lengths = np.diff(self.starts)[indices]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        # Each kept attempt sits at its offset inside the task, after that task's old start.
        shift = np.repeat(self.starts[indices] - starts[:-1], lengths)
        return Order(self.verdicts[np.arange(starts[-1]) + shift], starts)
