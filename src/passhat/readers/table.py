"""Tables: one row per attempt, or one row per task with n and c."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from passhat._display import counted, some
from passhat.errors import InvalidValue, NoRows, PasshatError, ReadError
from passhat.protocol import Protocol, Scalar
from passhat.readers import base
from passhat.readers.base import Reader, ReadOptions, is_counted, note_counted
from passhat.readers.guessing import find_model, guess_mapping, suggest_rule, unknown_format
from passhat.readers.mapping import read_mapped
from passhat.readers.parquet import CountedParquet
from passhat.readers.record_map import RecordMap
from passhat.readers.records import RecordRows, content_kind
from passhat.readers.rows import CsvRows, JsonLinesRows, Losses, MarkdownRows, ParquetRows, Rows
from passhat.readers.shapes import RivalVerdicts, Shape, find_shape, verdict_columns
from passhat.readers.sources import Source
from passhat.readers.summary_rows import (
    MODEL_HINT,
    REPEATED_HEADER,
    TableFilter,
    equals_totals,
    is_plausible_task,
)
from passhat.readers.zip_members import is_excel
from passhat.stats.outcomes import Outcomes, Run, Tally
from passhat.stats.outcomes.cells import CellCodes, RowError
from passhat.stats.outcomes.columns import EVERY_COLUMN, ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, Chunk, CountGatherer, Gathered

__all__ = ["TableReader"]

_PARQUET_MAGIC = b"PAR1"


class TableReader(Reader):
    """CSV, JSON lines (both may be gzipped) and Parquet."""

    name = "table"
    general = True

    def recognizes(self, source: Source) -> bool:
        head = source.head
        return head.startswith(_PARQUET_MAGIC) or is_excel(head) or _looks_like_text(head)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        if options.needs.growing and not source.head.startswith(_PARQUET_MAGIC):
            source = source.whole_lines()
        sheet_only = content_kind(source) == "Excel" and replace(options, records=None)
        is_mapped = (sheet_only or options).is_mapped  # --records names a sheet
        if is_mapped or content_kind(source) == "XML":
            return read_mapped(source, options, _mapping(source, options))
        if content_kind(source) == "JSON":
            return _read_json(source, options)
        losses = Losses()
        return _read_table(source, options, _rows_of(source, options, losses), losses)


def _read_json(source: Source, options: ReadOptions) -> list[Run]:
    """A document whose records are flat is a table; others are read by a mapping."""
    mapping, certain = guess_mapping(source, options)
    path, header = mapping.records, ""
    if {"columns", "data"} <= source.outline.keys:  # a data frame, as pandas splits it
        path, header, certain = "data[*]", "columns", False
    certain = certain and bool(path)
    paths = [path for paths in mapping.fields.values() for path in paths]
    flat = not any("." in path or "@" in path for path in paths)
    if flat and (certain or _is_table(RecordRows(source, path, Losses(), header), options, source)):
        losses = Losses()
        runs = _read_table(source, options, RecordRows(source, path, losses, header), losses)
    else:
        runs = read_mapped(source, options, _mapping(source, options))
    return [_name_by_document(runs[0], source)] if len(runs) == 1 else runs


def _name_by_document(run: Run, source: Source) -> Run:
    """The run with the agent that the document states beside its records, where they state none."""
    model = find_model(source) if run.agent_guessed else None
    if model is None:
        return run
    reading = tuple(line for line in run.reading if "is named after the file" not in line)
    return replace(run, name=model, agent=model, agent_guessed=False, reading=reading)


def _is_table(rows: Rows, options: ReadOptions, source: Source) -> bool:
    """Whether the records are a table that needs no further word."""
    first = next(rows.chunks(), None)
    if first is None or not set(options.columns.values()) <= {*first, EVERY_COLUMN}:
        return False
    columns = ColumnMap.resolve(first, options.columns, options.labels)
    columns = find_shape(columns, first, source.name).columns
    return columns.holds_attempts or columns.holds_counts


_Gatherer = AttemptGatherer | CountGatherer


def _read_table(source: Source, options: ReadOptions, rows: Rows, losses: Losses) -> list[Run]:
    if isinstance(rows, ParquetRows):
        large = _count_runs(source, rows, options)
        if large is not None:
            return large
    chunks = rows.chunks()
    first = next(chunks, None)
    if first is None:
        raise _no_rows(source, losses)
    if isinstance(rows, JsonLinesRows) and not first.keys() >= set(options.columns.values()):
        # A field inside a record, such as report.resolved.
        return read_mapped(source, options, _mapping(source, options))
    try:
        columns = ColumnMap.resolve(first, options.columns, options.labels)
        table_filter = TableFilter(columns.meaning.get("task"))
        first, first_lines = table_filter.take(first, rows.lines)
        shape = find_shape(columns, first, source.name)
        columns = shape.columns
        gatherer = _gatherer(columns, options, first, source)
        table = _Table(source, rows, losses, shape, gatherer, table_filter)
        table.add(first, first_lines)
        for chunk in chunks:
            table.add(*table_filter.take(chunk, rows.lines))
        table.add_tasks()
        if gatherer.count == 0:
            raise _no_rows(source, losses)
        parts = table.runs()
        decisions = (*shape.decisions, *table.decisions(options.pass_at))
    except RowError as error:
        raise _with_line(error, source, rows) from None
    except ReadError:
        raise
    except PasshatError as error:
        raise ReadError(error.message, source=source.name, hint=error.hint) from None
    decisions = (*source.decisions, *rows.decisions, *decisions)
    tally = table.tally()
    reading = (f"{rows.kind} table, {counted(tally.rows, 'row')}", *columns.sentences())
    told_apart = _differing(parts)
    runs = [_as_run(part, source, options, reading, columns, told_apart) for part in parts]
    return [replace(run, tally=tally, decisions=(*decisions, *run.decisions)) for run in runs]


class _Table:
    """The rows of a table on their way to the gatherer."""

    def __init__(
        self,
        source: Source,
        rows: Rows,
        losses: Losses,
        shape: Shape,
        gatherer: _Gatherer,
        table_filter: TableFilter,
    ) -> None:
        self._source = source
        self._rows = rows
        self._losses = losses
        self._shape = shape
        self._gatherer = gatherer
        self._filter = table_filter
        meaning, rivals = shape.columns.meaning, shape.columns.rivals
        self._rivals = RivalVerdicts(meaning.get("success", ""), rivals, meaning.get("score", ""))
        self._lines_without_model: list[int] = []
        self._dropped = 0
        self._skipped: dict[str, int] = {}
        self._notes: list[str] = []

    def add(self, chunk: Chunk, lines: Sequence[int]) -> None:
        """Add the rows of a chunk; those that cannot be used are lost."""
        cells, origins = self._shape.rearrange(chunk)
        self._rivals.add(cells)
        if origins is not None:
            lines = [lines[row] for row in origins]
        self._lines_without_model += _lines_without_model(self._shape.columns, cells, lines)
        _add(self._gatherer, cells, lines, self._rows.place, self._losses)

    def add_tasks(self) -> None:
        """Add rows with a task such as sum that are no totals."""
        self._filter.part_tasks(self._shape.columns)
        for row in self._filter.tasks:
            self.add(row.cells, [row.line])

    def runs(self) -> list[Gathered]:
        """The runs, without rows of totals and without rows that lack a model."""
        columns, place = self._shape.columns, self._rows.place
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
        return (*self._shape.remarks(), *self._notes, *rivals)

    def tally(self) -> Tally:
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


def _differing(parts: list[Gathered]) -> set[str]:
    """Whether the suite and the temperature tell the runs of a table apart."""
    return {
        word
        for word in ("suite", "temperature")
        if len({getattr(part, word) for part in parts}) > 1
    }


def _add(
    gatherer: _Gatherer, chunk: Chunk, lines: Sequence[int], place: str, losses: Losses
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
                losses.lose(f"{place} {line}", error.message, hint=error.hint)


def _no_rows(source: Source, losses: Losses) -> ReadError:
    if losses.all:
        first = losses.all[0]
        message = f"no row can be used: {str(first).rstrip('.')}."
        return ReadError(message, source=source.name, hint=first.hint)
    return NoRows("has no rows: there is nothing to report.", source=source.name)


def _mapping(source: Source, options: ReadOptions) -> RecordMap:
    """The mapping that the user states, or the only mapping that the field names allow."""
    if options.mapping is not None:
        try:
            text = Path(options.mapping).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InvalidValue(f"{options.mapping} cannot be read: {why}.") from None
        mapping = RecordMap.from_toml(text, options.mapping)
        return replace(
            mapping,
            records=options.records if options.records is not None else mapping.records,
            trials=options.trials or mapping.trials,
            passes=options.passes or mapping.passes,
            fields={**mapping.fields, **{w: (p,) for w, p in options.columns.items()}},
        )
    mapping, certain = guess_mapping(source, options)
    if not certain:
        raise unknown_format(source, options)
    mapping.check("--map")
    return mapping


def _count_runs(source: Source, rows: ParquetRows, options: ReadOptions) -> list[Run] | None:
    """Runs of a table with many attempts; ``None`` when it is to be read row by row."""
    columns = ColumnMap.resolve(rows.columns(), options.columns, options.labels)
    count = rows.count()
    needs = options.needs
    if needs.spread:  # measures are read with the attempts
        needs = replace(needs, attempts=True, attempts_up_to=None)
    if not is_counted(count, needs) or not columns.holds_attempts:
        return None
    if "trial" not in columns.meaning and columns.names_of("n", "c", "fails"):
        return None  # the shape of the table is decided by its rows
    columns = columns.without("n", "c", "fails", "rate", "score")
    answers = options.needs.answers and count <= base.MOST_ATTEMPTS
    needs = replace(options.needs, answers=answers)
    table = CountedParquet(source, columns, replace(options, needs=needs))
    try:
        runs = table.runs()
    except ReadError:
        raise
    except PasshatError as error:
        raise ReadError(error.message, source=source.name, hint=error.hint) from None
    if runs is None:
        return None
    reading = (
        f"{rows.kind} table, {counted(count, 'row')}",
        *columns.sentences(),
        note_counted(count),
    )
    tally = Tally(count, count)
    told_apart = _differing(runs)
    decisions = tuple(
        f"column {columns.meaning['success']!r} decides; {rival!r} was not compared with it"
        for rival in columns.rivals
    )
    return [
        replace(
            _as_run(part, source, options, reading, columns, told_apart),
            tally=tally,
            aggregates=part.aggregates,
            decisions=(*decisions, *part.notes),
        )
        for part in runs
    ]


def _looks_like_text(head: bytes) -> bool:
    if not head.strip() or b"\x00" in head:
        return False
    # The head may end in the middle of a character; anything broken before that is not text.
    tail = head[-4:]
    try:
        head[:-4].decode("utf-8") if len(head) > 4 else head.decode("utf-8", "replace")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 8 and bool(tail)
    return True


def _rows_of(source: Source, options: ReadOptions, losses: Losses) -> Rows:
    if source.head.startswith(_PARQUET_MAGIC):
        return ParquetRows(source)
    kind = content_kind(source)
    if kind == "JSON lines":
        return JsonLinesRows(source, losses)
    if kind == "Excel":
        return RecordRows(source, options.records or "", losses)
    return MarkdownRows(source, losses) if kind == "Markdown" else CsvRows(source, losses)


def _gatherer(
    columns: ColumnMap, options: ReadOptions, chunk: Chunk, source: Source
) -> AttemptGatherer | CountGatherer:
    names = list(chunk)
    if columns.holds_attempts:
        return AttemptGatherer(columns, options.pass_at, score_range=options.score_range)
    if columns.holds_counts:
        return CountGatherer(columns)
    short = [name if len(name) <= 40 else f"{name[:40]}…" for name in names]
    lacking = "task" if "task" not in columns.meaning else "success (or n and c)"
    raise ReadError(
        f"no column was recognized as {lacking}; the columns are {some(short, 12)}. A table needs "
        "task and success (one row per attempt), or task, n and c (one row per task).",
        source=source.name,
        line=1,
        hint=_stating(columns, chunk, source, options),
    )


def _stating(columns: ColumnMap, chunk: Chunk, source: Source, options: ReadOptions) -> str:
    """The options that would read a table whose columns are not recognized."""
    names = list(chunk)
    verdicts = verdict_columns(columns, chunk)
    if "task" in columns.meaning and len(verdicts) > 1:
        return (
            f"If each of {some(verdicts, 4)} is a model: --map model=@column ; if each is an "
            f"attempt: --map trial=@column ; if one of them is the verdict: --map "
            f"success={verdicts[0]}"
        )
    rule = suggest_rule(names)
    if rule:
        task = "" if "task" in columns.meaning else f" --map task={names[0]}"
        case = "an equal answer passes" if "@" in rule else "true means a failure"
        return f"If {case}: --pass '{rule}'{task}"
    mapping, _ = guess_mapping(source, options)
    pairs = [f"{word}={paths[0]}" for word, paths in mapping.fields.items()]
    pairs += [f"{word}=COLUMN" for word in ("task", "success") if word not in mapping.fields]
    return (
        f"Say which column is which: --map {','.join(pairs)} ; if several columns hold an attempt "
        "each: --trials PATTERN, as in 'run_*'"
    )


def _with_line(error: RowError, source: Source, rows: Rows) -> ReadError:
    other = "" if error.other is None else f" (see {rows.place} {rows.line_of(error.other)})"
    return ReadError(
        error.message.removesuffix(".") + f"{other}.",
        source=source.name,
        line=rows.line_of(error.row),
        hint=error.hint,
    )


def _as_run(
    gathered: Gathered,
    source: Source,
    options: ReadOptions,
    reading: tuple[str, ...],
    columns: ColumnMap,
    told_apart: set[str],
) -> Run:
    agent = gathered.model or source.stem
    decoding: dict[str, Scalar] = (
        {} if gathered.temperature is None else {"temperature": gathered.temperature}
    )
    outcomes = Outcomes.from_columns(gathered.columns)
    per_task = outcomes.n + outcomes.missing
    attempts = int(per_task[0]) if per_task.min() == per_task.max() else None
    return Run(
        name=_name(agent, gathered, told_apart),
        agent=agent,
        outcomes=outcomes,
        protocol=Protocol(
            suite=gathered.suite,
            attempts=attempts,
            decoding=decoding,
            pass_at=options.threshold,
        ),
        attempts=gathered.attempts,
        source=source.name,
        agent_guessed=not gathered.model,
        reading=(*reading, *_gaps(columns), *gathered.notes, *gathered.remarks),
        decisions=gathered.notes,
    )


def _name(agent: str, gathered: Gathered, told_apart: set[str]) -> str:
    """The agent, with the suite and temperature where they differ within this table."""
    name = agent
    if gathered.suite and "suite" in told_apart:
        name += f" on {gathered.suite}"
    if gathered.temperature is not None and "temperature" in told_apart:
        name += f" T={gathered.temperature:g}"
    return name


def _gaps(columns: ColumnMap) -> Iterator[str]:
    """Facts that the table does not give, and their consequences."""
    if "model" not in columns.meaning:
        yield "no column for the model: the run is named after the file"
    if columns.holds_attempts and "trial" not in columns.meaning:
        yield "no column for the trial: the order of attempts is unknown"
    elif columns.holds_attempts and not columns.trial_gives_order:
        yield f"column {columns.meaning['trial']!r} tells attempts apart but gives no order"
