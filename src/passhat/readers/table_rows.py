"""The rows of a table on their way to runs: totals, second headers and broken rows apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from passhat._display import counted, some
from passhat.errors import NoRows, ReadError
from passhat.readers.row_groups import RowGroups
from passhat.readers.rows import Losses, Rows
from passhat.readers.shape import Shape
from passhat.readers.shapes import RivalVerdicts
from passhat.readers.sources import Source
from passhat.readers.summary_rows import (
    MODEL_HINT,
    REPEATED_HEADER,
    TableFilter,
    equals_totals,
    is_plausible_task,
)
from passhat.stats.outcomes import Tally
from passhat.stats.outcomes.cells import CellCodes, RowError
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, Chunk, CountGatherer, Gathered

__all__ = ["TableRows", "no_rows"]

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
        self._lines_without_model: list[int] = []
        self._dropped = 0
        self._skipped: dict[str, int] = {}
        self._notes: list[str] = []
        self._metadata: list[int] = []

    @property
    def columns(self) -> ColumnMap:
        """The meaning of the columns, after cells were rearranged."""
        return self._shape.columns

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
        self._lines_without_model += _lines_without_model(self._shape.columns, cells, lines)
        _add(self._gatherer, cells, lines, self._rows.place, self._losses)

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
        """Add rows with a task such as sum that are no totals."""
        self._filter.part_tasks(self._shape.columns)
        for row in self._filter.tasks:
            self.add(row.cells, [row.line])

    def runs(self) -> list[Gathered]:
        """The runs, without rows of totals and without rows that lack a model."""
        columns, place = self._shape.columns, self._rows.place
        self._add_tasks()
        if self._gatherer.count == 0:
            raise no_rows(self._source, self._losses)
        parts = self._gatherer.runs()
        tasks = []
        totals = []
        for row in self._filter.summaries:
            cells, _ = self._shape.rearrange(row.cells)
            if equals_totals(cells, columns, parts):
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
            self._skipped["the totals of other rows"] = len(totals)
        for row in tasks:
            self.add(row.cells, [row.line])
            self._notes.append(
                f"{place} {row.line} ({row.task}) is read as a task: it is not the total of others"
            )
        parts = self._gatherer.runs() if tasks else parts
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
        return self._with_models(parts)

    def _with_models(self, parts: list[Gathered]) -> list[Gathered]:
        """Lose the rows without a model, where others have one."""
        with_models = [part for part in parts if part.model is not None]
        if not with_models or len(with_models) == len(parts):
            return parts
        for line in self._lines_without_model:
            why = "the model is empty, while other rows have one"
            self._losses.lose(f"{self._rows.place} {line}", why, hint=MODEL_HINT)
        self._dropped = len(self._lines_without_model)
        return with_models

    def decisions(self, pass_at: float | None) -> tuple[str, ...]:
        """Decisions that change the numbers, beside the shape of the table."""
        rivals = self._rivals.decisions(pass_at, self._source.name)
        return (*self._shape.decisions, *self._shape.remarks(), *self._notes, *rivals)

    def tally(self, skipped: Mapping[str, int]) -> Tally:
        """Counts of all rows; ``skipped`` were left out before."""
        self._skipped |= {why: count for why, count in skipped.items() if count}
        lost = sum(loss.rows for loss in self._losses.all)
        count = self._gatherer.count - self._dropped
        rows = count + lost + sum(self._skipped.values())
        return Tally(rows, count, MappingProxyType(self._skipped), losses=self._losses.all)


def _lines_without_model(columns: ColumnMap, cells: Chunk, lines: Sequence[int]) -> list[int]:
    models = cells.get(columns.meaning.get("model", ""), ())
    values = models.values if isinstance(models, CellCodes) else set(map(str, models))
    if not any(str(value).strip() in ("", "None") for value in values):
        return []
    return [
        line
        for line, model in zip(lines, models, strict=True)
        if model is None or not str(model).strip()
    ]


def _add(
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
