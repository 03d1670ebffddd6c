"""Which attempt at a task a row is: its place among them, and that no two rows claim the same."""

from __future__ import annotations

import numpy as np

from passhat.stats.arrays import IntArray
from passhat.stats.outcomes.cells import RowError, TextColumn

__all__ = ["SPLIT_HINT", "Trials"]

SPLIT_HINT = (
    "If another column tells them apart, say what it is: --map suite=COLUMN, --map model=COLUMN or "
    "--map trial=COLUMN."
)


class Trials:
    """Trial labels as ranks: by number when all are whole numbers, by appearance otherwise.

    Attributes
    ----------
    rank : array
        For each row; a smaller rank within a task is an earlier attempt.
    ordered : bool
        Whether the ranks really are the order in which attempts were made.
    """

    def __init__(self, column: TextColumn, *, gives_order: bool) -> None:
        self._labels = column.values
        self._codes = column.codes
        numbers = [_whole_number(label) for label in self._labels]
        if any(number is None for number in numbers):
            self.ordered = False
            self.rank = self._codes
        else:
            self.ordered = gives_order
            self.rank = np.array(numbers, np.int64)[self._codes]

    def refuse_duplicates(self, rows: IntArray, task: IntArray, names: tuple[str, ...]) -> None:
        """An attempt that stands in the table twice would count twice."""
        rank = self.rank[rows]
        sorting = np.lexsort((rows, rank, task))
        same = (np.diff(task[sorting]) == 0) & (np.diff(rank[sorting]) == 0)
        if not same.any():
            return
        at = int(np.flatnonzero(same)[0])
        first, second = int(sorting[at]), int(sorting[at + 1])
        label = self._labels[self._codes[rows[second]]]
        raise RowError(
            int(rows[second]),
            f"trial {label!r} of task {names[task[second]]!r} stands there twice.",
            other=int(rows[first]),
            hint=SPLIT_HINT,
        )


def _whole_number(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**62 else None
