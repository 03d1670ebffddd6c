"""Rows of a table that are no attempts: a header that repeats, totals and averages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from passhat.readers.parsing import number_or_none
from passhat.stats.outcomes.cells import CellCodes
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import RUN_COLUMNS, Chunk, Gathered
from passhat.stats.outcomes.rewards import RewardWords

__all__ = [
    "MODEL_HINT",
    "REPEATED_HEADER",
    "SummaryRow",
    "TableFilter",
    "equals_totals",
    "is_header",
    "is_plausible_task",
    "is_total",
]

REPEATED_HEADER = "a row that repeats the header"
MODEL_HINT = (
    "Fill in the model of these rows; in Excel, unmerge the cells and fill them down. If the "
    "column is not the model, name another: --map model=COLUMN"
)
_TOTALS = frozenset({"total", "totals", "grand total", "subtotal", "overall", "average", "avg"})
_LAST_TOTALS = frozenset({"mean", "sum", "all"})
"""Also names of real tasks: a total only below all other rows."""
_ROUNDING = 0.0051
"""Averages are printed with two digits or more."""


def is_header(data: object) -> bool:
    """Whether every cell of a row is the name of its column."""
    return (
        isinstance(data, dict)
        and len(data) > 1
        and all(
            isinstance(cell, str) and cell.strip() == name.strip() for name, cell in data.items()
        )
    )


def is_total(task: object) -> bool:
    """Whether the name of a task is a word for a total of others."""
    return str(task).strip().lower() in _TOTALS


@dataclass(frozen=True, slots=True, eq=False)
class SummaryRow:
    """A row whose task is a word such as total, as a chunk of its own."""

    task: str
    line: int
    cells: Chunk


@dataclass(slots=True)
class TableFilter:
    """Takes repeated headers and rows that may be totals out of the chunks of a table."""

    task_column: str | None
    header_count: int = 0
    summaries: list[SummaryRow] = field(default_factory=list)
    tasks: list[SummaryRow] = field(default_factory=list)
    """Rows that turned out to be tasks: others follow them, or they have several attempts."""

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The other rows, and their lines."""
        self.tasks += [row for row in self.summaries if row.task.lower() in _LAST_TOTALS]
        self.summaries = [row for row in self.summaries if row not in self.tasks]
        column = self.task_column
        if column is None or column not in chunk:
            return chunk, lines
        cells = chunk[column]
        values: Iterable[object] = (
            cells.values if isinstance(cells, CellCodes) else set(map(str, cells))
        )
        words = _TOTALS | _LAST_TOTALS | {column.strip().lower()}
        if not any(str(value).strip().lower() in words for value in values):
            return chunk, lines
        size = len(cells)
        tasks = [str(cell).strip().lower() for cell in cells]
        last = max((row for row in range(size) if tasks[row] not in words), default=-1)
        kept_rows = []
        for row in range(size):
            if tasks[row] not in words:
                kept_rows.append(row)
                continue
            data = {name: chunk[name][row] for name in chunk}
            is_last = tasks[row] in _LAST_TOTALS and row > last
            if is_header(data):
                self.header_count += 1
            elif is_last or is_total(tasks[row]):
                part = {name: [cell] for name, cell in data.items()}
                self.summaries.append(SummaryRow(str(cells[row]).strip(), lines[row], part))
            else:
                kept_rows.append(row)
        if not kept_rows and not self.header_count:
            self.summaries = []
            return chunk, lines  # a table about nothing else
        rest = {name: [chunk[name][row] for row in kept_rows] for name in chunk}
        return rest, [lines[row] for row in kept_rows]

    def part_tasks(self, columns: ColumnMap) -> None:
        """Move words with several rows in a run to the tasks: they are attempts, not totals."""
        keys = [
            (row.task.lower(), *(str(_cells(row.cells, columns, word)) for word in RUN_COLUMNS))
            for row in self.summaries
        ]
        pairs = list(zip(keys, self.summaries, strict=True))
        self.tasks += [row for key, row in pairs if keys.count(key) > 1]
        self.summaries = [row for key, row in pairs if keys.count(key) == 1]


def equals_totals(cells: Chunk, columns: ColumnMap, parts: Sequence[Gathered]) -> bool:
    """Whether a row holds the totals or the averages of the runs that it is about."""
    words = RewardWords()
    models = [str(cell or "").strip() for cell in _cells(cells, columns, "model")]
    for model in dict.fromkeys(models or [""]):
        rows = [
            row
            for row in range(len(next(iter(cells.values()))))
            if not models or models[row] == model
        ]
        about = [part for part in parts if not model or part.model == model]
        n, c = (sum(int(getattr(part.columns, word).sum()) for part in about) for word in "nc")
        tasks = sum(len(part.columns.tasks) for part in about)
        if not n:
            return False
        if columns.holds_counts:
            counts = [_cells(cells, columns, word)[row] for word in "nc" for row in rows]
            total, passes = (number_or_none(cell) for cell in counts[:2])
            pairs = ((n, c), (n / tasks, c / tasks))
            if total is None or passes is None:
                return False
            if not any(
                abs(total - a) < _ROUNDING and abs(passes - b) < _ROUNDING for a, b in pairs
            ):
                return False
            continue
        try:
            rewards = [words[_cells(cells, columns, "success")[row]] for row in rows]
        except (ValueError, TypeError):
            return False
        rewards = [reward for reward in rewards if reward == reward]
        if not rewards:
            continue
        scores = [part.attempts.scores for part in about if part.attempts is not None]
        graded = [float(x) for column in scores if column is not None for x in column if x == x]
        total_reward, mean = sum(rewards), sum(rewards) / len(rewards)
        sums = [float(c), sum(graded)] if graded else [float(c)]
        means = [c / n, 100 * c / n, *([sum(graded) / len(graded)] if graded else [])]
        if not (
            any(abs(total_reward - each) < _ROUNDING for each in sums)
            or any(abs(mean - each) < _ROUNDING * (10 if each > 1 else 1) for each in means)
        ):
            return False
    return True


def is_plausible_task(cells: Chunk, columns: ColumnMap, parts: Sequence[Gathered]) -> bool:
    """Whether a row may be a task like the others: verdicts, or as many attempts as they have."""
    if any(not str(cell or "").strip() for cell in _cells(cells, columns, "model")):
        return False
    if columns.holds_counts:
        most = max(int(part.columns.n.max()) for part in parts)
        totals = [number_or_none(cell) for cell in _cells(cells, columns, "n")]
        return all(total is not None and total <= most for total in totals)
    words = RewardWords()
    try:
        rewards = [words[cell] for cell in _cells(cells, columns, "success")]
    except (ValueError, TypeError):
        return False
    return all(reward in (0.0, 1.0) or reward != reward for reward in rewards)


def _cells(cells: Chunk, columns: ColumnMap, word: str) -> Sequence[object]:
    column = columns.meaning.get(word)
    return cells[column] if column is not None and column in cells else ()
