"""The attempts of every task in the order they were made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.arrays import BoolArray, FloatArray, IntArray, VerdictArray
from passhat.stats.outcomes.vocabulary import Completion, Verdict


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
        window: BoolArray = self.passed[columns]
        return window

    def matrix(self) -> BoolArray:
        """Tasks x n; every task must have the same n."""
        return self.passed.reshape(len(self.starts) - 1, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Verdicts (1 passed, 0 failed, -1 missing) laid end to end, task after task.

    ``numbers`` is the number of each attempt at its task, from 0, where some in between are not
    there; ``None`` where they follow each other without a gap, or that is unknown.
    """

    verdicts: VerdictArray
    starts: IntArray
    numbers: IntArray | None = None

    def completed(self, completion: Completion) -> Sequences:
        """Fill in, or close up over, the attempts without a verdict."""
        if completion is Completion.AS_PASSED:
            return Sequences(self.verdicts != Verdict.FAILED, self.starts)
        passed = self.verdicts == Verdict.PASSED
        if completion is Completion.AS_FAILED:
            return Sequences(passed, self.starts)
        has_verdict = self.verdicts != Verdict.MISSING
        before = np.concatenate(([0], np.cumsum(has_verdict)))
        return Sequences(passed[has_verdict], before[self.starts])

    def of(self, index: int) -> tuple[Verdict, ...]:
        """The verdicts of one task."""
        row = self.verdicts[self.starts[index] : self.starts[index + 1]]
        return tuple(Verdict(int(value)) for value in row)

    def take(self, indices: IntArray) -> Order:
        """The order of some of the tasks."""
        rows, starts = _rows_of_tasks(self.starts, indices)
        numbers = None if self.numbers is None else self.numbers[rows]
        return Order(self.verdicts[rows], starts, numbers)

    def filled(self, planned: int | IntArray) -> Order:
        """With a missing attempt wherever one of so many per task is not there.

        ``planned`` is a number, or one for every task.

        They stand in the gaps of the numbers. Where there are none, or numbers go beyond the plan
        and so do not count its attempts, they are taken to be the last ones.
        """
        lengths = np.diff(self.starts)
        task = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(self.verdicts)) - self.starts[task]
        if self.numbers is not None:
            beyond = np.zeros(len(lengths), np.bool_)
            limit = np.broadcast_to(planned, lengths.shape)
            beyond[task[self.numbers >= limit[task]]] = True
            places = np.where(beyond[task], places, self.numbers)
        starts = np.concatenate(([0], np.cumsum(np.maximum(lengths, planned))))
        verdicts = np.full(int(starts[-1]), Verdict.MISSING, np.int8)
        verdicts[starts[task] + places] = self.verdicts
        return Order(verdicts, starts)

    def gaps_before(self, count: int | None = None) -> int:
        """Tasks whose numbers have a gap before their so-manieth attempt, or before the last."""
        if self.numbers is None:
            return 0
        lengths = np.diff(self.starts)
        window = lengths if count is None else np.minimum(lengths, count)
        has_attempts = window > 0
        last = self.numbers[(self.starts[:-1] + window - 1)[has_attempts]]
        return int((last != window[has_attempts] - 1).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Graded results on [0, 1] laid end to end, task after task; NaN where an attempt is missing.

    ``values[starts[i]:starts[i + 1]]`` belongs to task i. An attempt that has a verdict and no
    score of its own has its verdict, 1 or 0, as score.
    """

    values: FloatArray
    starts: IntArray

    def of(self, index: int) -> FloatArray:
        """The scores of one task."""
        row: FloatArray = self.values[self.starts[index] : self.starts[index + 1]]
        return row

    def take(self, indices: IntArray) -> Scores:
        """The scores of some of the tasks."""
        rows, starts = _rows_of_tasks(self.starts, indices)
        return Scores(self.values[rows], starts)

    @property
    def mean(self) -> float:
        """The mean over all attempts that have a score; NaN when none has."""
        recorded = self.values[~np.isnan(self.values)]
        return float(recorded.mean()) if len(recorded) else float("nan")


def _rows_of_tasks(starts: IntArray, indices: IntArray) -> tuple[IntArray, IntArray]:
    """The attempts of some tasks, laid end to end, and where each task starts among them."""
    lengths = np.diff(starts)[indices]
    new_starts = np.concatenate(([0], np.cumsum(lengths)))
    # Each kept attempt sits at its offset inside the task, after that task's old start.
    shift = np.repeat(starts[indices] - new_starts[:-1], lengths)
    return np.arange(new_starts[-1]) + shift, new_starts
