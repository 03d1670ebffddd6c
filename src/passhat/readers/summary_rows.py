"""Rows of a table that are no attempts: a header that repeats, totals and averages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from passhat._display import counted, some
from passhat.errors import NoRows, ReadError
from passhat.readers.parsing import number_or_none
from passhat.readers.row_groups import RowGroups
from passhat.readers.rows import Losses, Rows
from passhat.readers.sources import Source
from passhat.readers.summary_labels import STATISTICS, TOTAL_WORDS, fold_label, fold_labels
from passhat.readers.wide_tables import FRACTION, Shape
from passhat.readers.zip_members import SHEET_COLUMN
from passhat.stats.outcomes import Tally
from passhat.stats.outcomes.cells import CellCodes, RowError, is_empty, parse_number
from passhat.stats.outcomes.columns import JOIN_SIGN, ColumnMap
from passhat.stats.outcomes.gathering import (
    RUN_COLUMNS,
    AttemptGatherer,
    Chunk,
    CountGatherer,
    Gathered,
)
from passhat.stats.outcomes.rewards import RewardWords, is_odd_ending, verdicts_from_rewards

Gatherer = AttemptGatherer | CountGatherer


class TableRows:
    """The rows of a table on their way to the gatherer."""

    def __init__(
        self,
        source: Source,
        rows: Rows,
        losses: Losses,
        shape: Shape,
        gatherer: Gatherer,
        table_filter: TableFilter,
    ) -> None:
        self._source = source
        self._rows = rows
        self._losses = losses
        self._shape = shape
        self._gatherer = gatherer
        self._filter = table_filter
        meaning, rivals = shape.columns.meaning, shape.columns.rivals
        self.groups = RowGroups(meaning, shape.columns.ignored)
        self._rivals = RivalVerdicts(meaning.get("success", ""), rivals, meaning.get("score", ""))
        self._nameless_lines: list[int] = []
        self._dropped = 0
        self._skipped: dict[str, int] = {}
        self._notes: list[str] = []
        self._metadata: list[int] = []
        self._totals: list[SummaryRow] = []
        self._word_tasks: dict[str, None] = {}

    @property
    def columns(self) -> ColumnMap:
        """The meaning of the columns, after cells were rearranged."""
        return self._shape.columns

    @property
    def has_trials(self) -> bool:
        """Whether a column numbers attempts: it has several values."""
        return isinstance(self._gatherer, AttemptGatherer) and self._gatherer.trial_count > 1

    def take(self, chunk: Chunk, lines: Sequence[int]) -> None:
        """Add the rows of a chunk that are neither headers nor totals."""
        self.add(*self._filter.take(chunk, lines))

    def add(self, chunk: Chunk, lines: Sequence[int]) -> None:
        """Add the rows of a chunk; those that cannot be used are lost."""
        cells, origins = self._shape.rearrange(chunk)
        if self._rows.kind == "JSON lines" and origins is None:
            cells, lines = self._without_metadata(cells, lines)
        self._rivals.add(cells)
        self.groups.add(cells)
        if origins is not None:
            lines = [lines[row] for row in origins]
        self._nameless_lines += _find_lines_without_model(self._shape.columns, cells, lines)
        _add_rows(self._gatherer, cells, lines, self._rows.place, self._losses)

    def _without_metadata(self, cells: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """Without lines about the whole file: they have neither a task nor a verdict."""
        meaning = self._shape.columns.meaning
        names = [meaning[word] for word in ("task", "success", "n") if word in meaning]
        empty = [
            i
            for i, row in enumerate(zip(*(cells[n] for n in names), strict=True))
            if not any(cell is not None for cell in row)
        ]
        if not empty or len(empty) == len(lines):
            return cells, lines
        self._metadata += [lines[row] for row in empty]
        places = [row for row in range(len(lines)) if row not in set(empty)]
        rest = {name: [cells[name][row] for row in places] for name in cells}
        return rest, [lines[row] for row in places]

    def _add_tasks(self) -> None:
        """Add rows with a task such as sum that are no totals, but for those of each attempt."""
        columns = self._shape.columns
        self._filter.part_tasks(columns)
        has_trials = columns.holds_attempts and "trial" in columns.meaning
        averages = {
            fold_label(row.task)
            for row in self._filter.tasks
            if has_trials
            and not is_plausible_task(self._shape.rearrange(row.cells)[0], columns, ())
        }
        for row in self._filter.tasks:
            label = fold_label(row.task)
            if label in averages:
                self._totals.append(row)
                continue
            self.add(row.cells, [row.line])
            if has_trials and (label in _TOTALS or label in ("mean", "all")):
                self._word_tasks[row.task] = None

    def runs(self) -> list[Gathered]:
        """The runs, without rows of totals and without rows that lack a model."""
        columns, place = self._shape.columns, self._rows.place
        self._add_tasks()
        if self._gatherer.count == 0:
            raise no_rows(self._source, self._losses)
        parts = self._gatherer.runs()
        tasks = []
        totals = self._totals
        if self._word_tasks:
            names = some(list(map(repr, self._word_tasks)), 4)
            self._notes.append(f"read as tasks with several attempts: {names}")
        for row in self._filter.summaries:
            cells, _ = self._shape.rearrange(self._filter.sections_of(row, columns))
            is_spread = fold_label(row.task) in _SPREADS and bool(totals)
            if is_spread or equals_totals(cells, columns, parts):
                totals.append(row)
            elif is_plausible_task(cells, columns, parts):
                tasks.append(row)
            else:
                raise ReadError(
                    f"{row.task!r} looks like a total of the other rows, but does not equal it.",
                    source=self._source.name,
                    line=row.line,
                    hint="Delete the row; if it is a task, give it another name.",
                )
        if totals:
            places = some([f"{place} {row.line} ({row.task})" for row in totals], 4)
            self._notes.append(f"rows with the totals of others are left out: {places}")
            self._skipped[TOTALS] = len(totals)
        for row in tasks:
            self.add(row.cells, [row.line])
            self._notes.append(
                f"{place} {row.line} ({row.task}) is read as a task: it is not the total of others"
            )
        parts = self._gatherer.runs() if tasks else parts
        self._note_rows_left_out()
        return self._with_models(parts)

    def _note_rows_left_out(self) -> None:
        """Count headers that repeat, lines about the whole file and remarks, and say so."""
        place = self._rows.place
        if self._filter.header_count:
            self._skipped[REPEATED_HEADER] = self._filter.header_count
            count = counted(self._filter.header_count, "row")
            self._notes.append(f"left out: {count} equal to the header")
        if self._metadata:
            lines = some([f"{place} {line}" for line in self._metadata], 4)
            self._skipped["a line without task and verdict"] = len(self._metadata)
            self._notes.append(f"left out, without task and verdict: {lines}")
        if self._filter.notes:
            lines = some([f"{place} {line}" for line in self._filter.notes], 4)
            self._skipped["a remark on the table"] = len(self._filter.notes)
            self._notes.append(f"left out as remarks: {lines}")

    def _with_models(self, parts: list[Gathered]) -> list[Gathered]:
        """Lose the rows without a model, where others have one."""
        with_models = [part for part in parts if part.model is not None]
        if not with_models or len(with_models) == len(parts):
            return parts
        for line in self._nameless_lines:
            why = "the model is empty, while other rows have one"
            self._losses.lose(f"{self._rows.place} {line}", why, hint=MODEL_HINT)
        self._dropped = len(self._nameless_lines)
        return with_models

    def decisions(self, pass_at: float | None) -> tuple[str, ...]:
        """Decisions that change the numbers, beside the shape of the table."""
        rivals = self._rivals.decisions(pass_at, self._source.name)
        found = (*self._shape.remarks(), *self.groups.remarks())
        return (*found, *self._shape.decisions, *self._notes, *rivals)

    def tally(self, skipped: Mapping[str, int]) -> Tally:
        """Counts of all rows; ``skipped`` were left out before."""
        for why, count in skipped.items():
            if count:
                self._skipped[why] = self._skipped.get(why, 0) + count
        lost = sum(loss.rows for loss in self._losses.all)
        count = self._gatherer.count - self._dropped
        if isinstance(self._gatherer, AttemptGatherer) and self._gatherer.repeated:
            self._skipped["an attempt without a verdict that was made again"] = (
                self._gatherer.repeated
            )
            count -= self._gatherer.repeated
        rows = count + lost + sum(self._skipped.values())
        return Tally(rows, count, MappingProxyType(self._skipped), losses=self._losses.all)


def _find_lines_without_model(columns: ColumnMap, cells: Chunk, lines: Sequence[int]) -> list[int]:
    models = cells.get(columns.meaning.get("model", ""), ())
    values = models.values if isinstance(models, CellCodes) else set(map(str, models))
    if not any(str(value).strip() in ("", "None") for value in values):
        return []
    return [
        line
        for line, model in zip(lines, models, strict=True)
        if model is None or not str(model).strip()
    ]


def _add_rows(
    gatherer: Gatherer, chunk: Chunk, lines: Sequence[int], place: str, losses: Losses
) -> None:
    """Add a chunk; where a row cannot be used, lose that row and add the others."""
    try:
        gatherer.add(chunk)
    except RowError:
        names = list(chunk)
        for line, cells in zip(lines, zip(*chunk.values(), strict=True), strict=True):
            try:
                gatherer.add({name: [cell] for name, cell in zip(names, cells, strict=True)})
            except RowError as error:
                if any(cell is not None and str(cell).strip() for cell in cells):
                    losses.lose(f"{place} {line}", error.message, hint=error.hint)


def no_rows(source: Source, losses: Losses) -> ReadError:
    """The error for a table without any row that can be used."""
    if losses.all:
        first = losses.all[0]
        message = f"no row can be used: {str(first).rstrip('.')}."
        return ReadError(message, source=source.name, hint=first.hint)
    return NoRows("has no rows: there is nothing to report.", source=source.name)


TOTALS = "the totals of other rows"
REPEATED_HEADER = "a row that repeats the header"
MODEL_HINT = (
    "Fill in the model of these rows; in Excel, unmerge the cells and fill them down. If the "
    "column is not the model, name another: --map model=COLUMN"
)
_TOTALS = TOTAL_WORDS | {
    *("summary", "solved", "passed", "passes", "correct", "successes", "# solved", "# passed"),
    *("pass rate", "pass_rate", "success rate", "solve rate", "accuracy", "pass %", "% passed"),
}
_LAST_TOTALS = STATISTICS | {"all", "min", "max", "count"}
"""Also names of real tasks: a total only below all other rows."""
_SPREADS = _LAST_TOTALS - {"mean", "sum", "all", "mittel", "somma", "suma", "均值"}
"""No total or average of others: left out below a row that is one."""
_NOTE = re.compile(
    r"\s*(notes?|legend|source|comment|remark|\*|#|†)\b|\s*[*†#]|\S.*:\s|(\S+\s+){5}", re.I
)
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
    return fold_label(task) in _TOTALS


def is_note(data: Mapping[str, object], task: str) -> bool:
    """Whether a row is a remark on the table: a sentence, and no other cell."""
    return _NOTE.match(str(data[task] or "").strip()) is not None and not any(
        str(cell).strip()
        for name, cell in data.items()
        if name not in (task, SHEET_COLUMN) and cell is not None
    )


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
    verdict_column: str | None = None
    header_count: int = 0
    notes: list[int] = field(default_factory=list)
    """Lines of remarks on the table."""
    summaries: list[SummaryRow] = field(default_factory=list)
    tasks: list[SummaryRow] = field(default_factory=list)
    """Rows that turned out to be tasks: others follow them, or they have several attempts."""

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The other rows, and their lines."""
        self.tasks += [row for row in self.summaries if fold_label(row.task) in _LAST_TOTALS]
        self.summaries = [row for row in self.summaries if row not in self.tasks]
        column = self.task_column
        if column is None or column not in chunk:
            return chunk, lines
        cells = chunk[column]
        if JOIN_SIGN in column:  # the total of a group: orders/Total
            cells = [str(cell).rpartition("/")[2] for cell in cells]
        values: Iterable[object] = (
            cells.values if isinstance(cells, CellCodes) else set(map(str, cells))
        )
        words = _TOTALS | _LAST_TOTALS | {fold_label(column)}
        if self._may_have_notes(chunk) and any(_NOTE.match(str(value)) for value in values):
            chunk, lines = self._without_notes(chunk, lines, column)
            cells = chunk[column]
        if words.isdisjoint(fold_labels(values)):
            return chunk, lines
        size = len(cells)
        tasks = [fold_label(cell) for cell in cells]
        first_rows = {tasks[row]: row for row in reversed(range(size)) if tasks[row] not in words}
        # Below are only tasks that were seen before, as those of the next model.
        newest = max(first_rows.values(), default=-1)
        early = set(tasks[: newest + 1])
        kept_rows = []
        for row in range(size):
            if tasks[row] not in words:
                kept_rows.append(row)
                continue
            data = {name: chunk[name][row] for name in chunk}
            is_last = tasks[row] in _LAST_TOTALS and tasks[row] not in early
            if is_header(data):
                self.header_count += 1
            elif is_last or tasks[row] in _TOTALS:
                part = {name: [cell] for name, cell in data.items()}
                self.summaries.append(SummaryRow(str(cells[row]).strip(), lines[row], part))
            else:
                kept_rows.append(row)
        if not kept_rows and not self.header_count:
            self.summaries = []
            return chunk, lines  # a table about nothing else
        rest = {name: [chunk[name][row] for row in kept_rows] for name in chunk}
        return rest, [lines[row] for row in kept_rows]

    def _may_have_notes(self, chunk: Chunk) -> bool:
        """Whether the column of verdicts has an empty cell, as a remark on the table has."""
        if self.verdict_column not in chunk or self.verdict_column == SHEET_COLUMN:
            return True  # a wide table
        cells = chunk[self.verdict_column or ""]
        values = cells.values if isinstance(cells, CellCodes) else cells
        return any(value is None or not str(value).strip() for value in values)

    def _without_notes(
        self, chunk: Chunk, lines: Sequence[int], column: str
    ) -> tuple[Chunk, Sequence[int]]:
        places = []
        for row in range(len(lines)):
            data = {name: chunk[name][row] for name in chunk}
            if is_note(data, column):
                self.notes.append(lines[row])
            else:
                places.append(row)
        if len(places) == len(lines):
            return chunk, lines
        rest = {name: [chunk[name][row] for row in places] for name in chunk}
        return rest, [lines[row] for row in places]

    def part_tasks(self, columns: ColumnMap) -> None:
        """Move words with several rows in a run to the tasks: they are attempts, not totals.

        Among counts, where a row is a task, they are the totals of sections.
        """
        if columns.holds_counts:
            return
        keys = [
            (fold_label(row.task), *(str(_cells(row.cells, columns, word)) for word in RUN_COLUMNS))
            for row in self.summaries
        ]
        pairs = list(zip(keys, self.summaries, strict=True))
        self.tasks += [row for key, row in pairs if keys.count(key) > 1]
        self.summaries = [row for key, row in pairs if keys.count(key) == 1]

    def sections_of(self, total: SummaryRow, columns: ColumnMap) -> Chunk:
        """The rows of counts with the label of a total: together they equal the table's."""
        if not columns.holds_counts:
            return total.cells
        label = fold_label(total.task)
        alike = [row.cells for row in self.summaries if fold_label(row.task) == label]
        return {name: [cell for cells in alike for cell in cells[name]] for name in total.cells}


@dataclass(slots=True)
class CopyFilter:
    """Keeps the first of rows that are alike in every cell."""

    count: int = 0
    _seen: set[int] = field(default_factory=set)

    def take(self, chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        """The rows that were not there before, and their lines."""
        places = []
        for row, cells in enumerate(zip(*chunk.values(), strict=True)):
            size = len(self._seen)
            self._seen.add(hash(repr(cells)))
            if len(self._seen) > size:
                places.append(row)
        self.count += len(lines) - len(places)
        rest = {name: [cells[row] for row in places] for name, cells in chunk.items()}
        return rest, [lines[row] for row in places]

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decision to count a row once."""
        count = counted(self.count, "row")
        return (f"{count} written twice, alike in every cell: counted once",) if self.count else ()


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
        if not n:
            return False
        if columns.holds_counts:
            counts = [_sum_cells(_cells(cells, columns, word), rows) for word in "nc"]
            if not (all(map(is_empty, counts)) or _equals_counts(counts, about)):
                return False
            continue
        verdict_cells = [_cells(cells, columns, "success")[row] for row in rows]
        if all(_as_counts(cell) == (n, c) for cell in verdict_cells):
            continue  # 2/3 below verdicts
        try:
            rewards = [words[cell] for cell in verdict_cells]
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
        # Averages of columns with different numbers of verdicts have another average than all.
        absent = sum(int(p.columns.m.sum()) for p in about if p.columns.m is not None)
        close = _ROUNDING + (absent / (n + absent) / 2 if len(rewards) > 1 else 0)
        if not (
            any(abs(total_reward - each) < _ROUNDING for each in sums)
            or any(abs(mean - each) < (10 * _ROUNDING if each > 1 else close) for each in means)
        ):
            return False
    return True


def _sum_cells(cells: Sequence[object], rows: Sequence[int]) -> object:
    numbers = [number_or_none(cells[row]) for row in rows]
    if len(rows) == 1 or None in numbers:
        return cells[rows[0]]
    return sum(filter(None, numbers))


def _equals_counts(cells: Sequence[object], about: Sequence[Gathered]) -> bool:
    """Whether cells of n and c are the totals, the averages or the share of passes of runs."""
    n, c = (sum(int(getattr(part.columns, word).sum()) for part in about) for word in "nc")
    tasks = sum(len(part.columns.tasks) for part in about)
    total, passes = (number_or_none(cell) for cell in cells)
    if total is None or passes is None:
        share = parse_number(cells[1])  # 78% below counts
        rows = [zip(part.columns.n, part.columns.c, strict=True) for part in about]
        rates = [float(b / a) for pairs in rows for a, b in pairs if a]
        mean = sum(rates) / len(rates)
        return share is not None and min(abs(share - c / n), abs(share - mean)) < _ROUNDING
    return any(
        abs(total - a) < _ROUNDING and abs(passes - b) < _ROUNDING
        for a, b in ((n, c), (n / tasks, c / tasks), (c, c), (c / tasks, c / tasks))
    )


def _as_counts(cell: object) -> tuple[int, int] | None:
    match = FRACTION.fullmatch(str(cell))
    return None if match is None else (int(match[2]), int(match[1]))


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


def differing_words(parts: list[Gathered]) -> set[str]:
    """Of suite and temperature, those that tell the runs of a table apart."""
    return {
        word
        for word in ("suite", "temperature")
        if len({getattr(part, word) for part in parts}) > 1
    }


@dataclass(slots=True)
class RivalVerdicts:
    """Counts what other columns that may hold the verdict would have given."""

    chosen: str
    rivals: Sequence[str]
    score: str = ""
    _words: RewardWords = field(default_factory=RewardWords)
    _rewards: dict[str, list[float]] = field(default_factory=dict)

    def add(self, chunk: Chunk) -> None:
        """Take the next rows; a column with a cell that is no reward is no rival."""
        if not self.rivals:
            return
        for name in (self.chosen, *self.rivals):
            try:
                numbers = self._rewards_of(chunk[name])
            except (ValueError, TypeError, KeyError):
                if name == self.chosen:
                    self.rivals = ()
                    return
                self.rivals = [rival for rival in self.rivals if rival != name]
                continue
            self._rewards.setdefault(name, []).extend(numbers)

    def _rewards_of(self, cells: Sequence[object]) -> list[float]:
        try:
            return [self._words[cell] for cell in cells]
        except ValueError:  # error beside resolved and unresolved
            return [np.nan if is_odd_ending(str(c)) else self._words[c] for c in cells]

    def decisions(self, pass_at: float | None, source: str) -> tuple[str, ...]:
        """Sentences about the rivals; two that give different numbers are refused with both."""

        def verdicts(name: str) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
            rewards = np.array(self._rewards[name])
            at = 1.0 if pass_at is None and np.nanmax(rewards, initial=0) > 1 else pass_at
            return verdicts_from_rewards(rewards, at).verdicts

        def is_graded(name: str) -> bool:
            return any(r == r and r not in (0.0, 1.0, -1.0) for r in self._rewards[name])

        lines = []
        for rival in self.rivals:
            mine, other = verdicts(self.chosen), verdicts(rival)
            if len(mine) != len(other) or (mine == other).all():
                continue
            if is_graded(rival) and not is_graded(self.chosen):
                use = "read as the score" if rival == self.score else "not used"
                lines.append(f"column {self.chosen!r} decides; {rival!r} is graded and {use}")
                continue
            passes = [int((each == 1).sum()) for each in (mine, other)]
            raise ReadError(
                f"columns {self.chosen!r} and {rival!r} may both hold the verdict, and differ: "
                f"{passes[0]:,} and {passes[1]:,} of {counted(len(mine), 'attempt')} passed.",
                source=source,
                hint=f"Choose: --map success={self.chosen}, or --map success={rival}",
            )
        return tuple(lines)
