"""Tables: one row per attempt, or one row per task with n and c."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from passhat._display import counted, some
from passhat.errors import Hint, InvalidValue, NoRows, PasshatError, ReadError, UnknownFormat
from passhat.protocol import Protocol, Scalar
from passhat.readers import base
from passhat.readers.base import NotResults, Reader, ReadOptions, is_counted, note_counted
from passhat.readers.formats.events import expand_events
from passhat.readers.formats.pages import MarkdownRows
from passhat.readers.formats.parquet import CountedParquet
from passhat.readers.formats.swe_bench import expand_ids
from passhat.readers.guessing import guess_mapping, unknown_format
from passhat.readers.identity import split_numbered
from passhat.readers.interpretations import Interpretation, interpret, suggest_commands
from passhat.readers.json_records import expand_frame, expand_grid
from passhat.readers.mapping import read_mapped
from passhat.readers.nested_records import guess_nested
from passhat.readers.parsing import conversation_text, with_answers
from passhat.readers.record_map import RecordMap
from passhat.readers.records import RecordRows, content_kind, find_facts, find_threshold
from passhat.readers.rewrites import Rewrites
from passhat.readers.row_groups import (
    Regrouping,
    ScorerChoice,
    ScorerFilter,
    UnclearRole,
    join_columns,
    name_columns,
    named_parts,
)
from passhat.readers.rows import CsvRows, JsonLinesRows, Losses, ParquetRows, Rows
from passhat.readers.shapes import find_shape
from passhat.readers.sources import Source, is_text
from passhat.readers.summary_labels import (
    LabelFilter,
    Sections,
    UnknownWords,
    prefer_words,
    suite_remarks,
)
from passhat.readers.summary_rows import (
    TOTALS,
    CopyFilter,
    TableFilter,
    TableRows,
    differing_words,
    no_rows,
)
from passhat.readers.zip_members import drop_index, is_excel
from passhat.stats.outcomes import Attempts, Outcomes, Run, Tally
from passhat.stats.outcomes.attempts import Categorical
from passhat.stats.outcomes.cells import RowError, TextColumn
from passhat.stats.outcomes.columns import EVERY_COLUMN, EVERY_PART, ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, Chunk, CountGatherer, Gathered
from passhat.stats.outcomes.rewards import REWARD_NAMES

_PARQUET_MAGIC = b"PAR1"
_MOST_REGROUPINGS = 3
_MOST_SCORERS = 4
_ANSWER_WORDS = ("answer", "expected")


class TableReader(Reader):
    """CSV, JSON lines (both may be gzipped) and Parquet."""

    name = "table"
    general = True

    def recognizes(self, source: Source) -> bool:
        head = source.head
        is_prose = source.is_markdown and content_kind(source) == "CSV"
        return not is_prose and (head.startswith(_PARQUET_MAGIC) or is_excel(head) or is_text(head))

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        source = _expand(source, options, expand_events)
        source = _expand(source, options, expand_frame) if options.is_mapped else source
        try:
            runs = self._read(source, options)
            return runs if "task" in options.columns else [split_numbered(run) for run in runs]
        except (ReadError, InvalidValue) as error:
            if (frame := _expand(source, options, expand_frame)) is not source:
                return self.read(frame, options)
            if not source.found:
                self.add_readings(error, source, options, source.name)
            raise

    def add_readings(
        self, error: PasshatError, source: Source, options: ReadOptions, name: str, **stated: str
    ) -> list[Interpretation]:
        """Add the likeliest readings of a file to its refusal, as commands about ``name``."""
        is_unknown = isinstance(error, _UnknownColumns | UnknownFormat | _RowRefused)
        has_options = not is_unknown and "--" in str(error.hint)
        if isinstance(error, NoRows | NotResults) or options.is_stated:
            return []
        readings = interpret(source, options, self._read)
        is_vague = isinstance(error, _RowRefused) and "COLUMN" in str(error.hint)
        if isinstance(error.hint, Hint) and "pass_at" in error.hint.options:  # counts have none
            readings = [one for one in readings if {"n", "c", "fails"} & one.columns.keys()]
        elif isinstance(error, UnclearRole):
            readings = [one for one in readings if error.is_answered(one.columns)]
        elif has_options or isinstance(error, _RowRefused):  # rows of two kinds, or a wrong task
            words = {"where", "trial"} if is_vague else {"where"}
            readings = [one for one in readings if words & one.columns.keys()]
        readings = [replace(r, columns={**stated, **r.columns}) for r in readings]
        if readings:
            commands = suggest_commands(name, readings, name if stated else source.name)
            if isinstance(error.hint, Hint):
                error.hint = error.hint.then(f"\n{commands}")
            else:
                error.hint = commands if is_unknown else f"{error.hint or ''}\n{commands}".strip()
        return readings

    def _read(self, source: Source, options: ReadOptions) -> list[Run]:
        if options.needs.growing and not source.head.startswith(_PARQUET_MAGIC):
            source = source.whole_lines()
        kind = content_kind(source)
        sheet_only = kind == "Excel" and replace(options, records=None)
        is_mapped = (sheet_only or options).is_mapped  # --records names a sheet
        if is_mapped or kind == "XML":
            mapping = _mapping(source, options)
            runs = _with_rate(read_mapped(source, options, mapping), source.stated_rate)
            is_document = kind == "JSON" and len(runs) == 1
            return [_name_by_document(runs[0], source)] if is_document else runs
        if kind == "JSON":
            return _read_stated(source, options, _read_json)
        if kind == "JSON lines":
            return _with_rate(_read_lines(source, options), source.stated_rate)
        return _read_stated(
            source, options, lambda s, o: _read_table(s, o, lambda losses: _rows_of(s, o, losses))
        )


def _expand(
    source: Source, options: ReadOptions, expand: Callable[[Source], Source | None]
) -> Source:
    """The table that a file is by its form alone, unless its records are stated."""
    is_open = options.records is options.mapping is options.where is None
    return (is_open and content_kind(source).startswith("JSON") and expand(source)) or source


class _RowRefused(ReadError):
    """A row contradicts others."""

    may_be_copy = False


class _UnknownColumns(ReadError):
    """No column for the task or the verdict was found."""


def _read_lines(source: Source, options: ReadOptions) -> list[Run]:
    """JSON lines: a table, or records with attempts inside."""
    if runs := _read_nested(source, options, attempts_only=True):
        return runs
    try:
        return _read_table(source, options, lambda losses: JsonLinesRows(source, losses))
    except _UnknownColumns:
        if runs := _read_nested(source, options, attempts_only=False):
            return runs
        raise


def _read_nested(source: Source, options: ReadOptions, *, attempts_only: bool) -> list[Run]:
    """The runs in nested records; none where their place is unclear or none has a verdict."""
    nested = None if options.columns else guess_nested(source, attempts_only=attempts_only)
    runs = [] if nested is None else read_mapped(source, options, nested)
    return runs if any(run.outcomes.scored for run in runs) else []


def _read_stated(
    source: Source, options: ReadOptions, read: Callable[[Source, ReadOptions], list[Run]]
) -> list[Run]:
    """A file; where it states the reward from which an attempt passes, by that."""
    is_open = options.pass_at is None and options.score_range is None
    stated = find_threshold(source) if is_open else None
    if stated is None:
        return read(source, options)
    name, limit = stated
    if limit > 1:  # verdicts of 0 and 1 are none of its scores
        with suppress(InvalidValue, ReadError):
            return read(source, options)
    said = f"the document states {name!r}: a reward of {limit:g} or more passes"
    options = replace(options, pass_at=limit)
    return [replace(run, decisions=(said, *run.decisions)) for run in read(source, options)]


def _read_json(source: Source, options: ReadOptions) -> list[Run]:
    """A document whose records are flat is a table; others are read by a mapping."""
    if "@" not in str(options.columns) and (grid := expand_grid(source) or expand_ids(source)):
        return _read_lines(grid, options)
    if runs := _read_nested(source, options, attempts_only=True):
        return runs
    mapping, certain = guess_mapping(source, options)
    path, certain = mapping.records, certain and mapping.records not in ("", "*.*[*]")
    stated = options.columns if EVERY_COLUMN in str(options.columns) else mapping.fields
    paths = [each.partition(EVERY_COLUMN)[0] for word in stated for each in mapping.fields[word]]
    is_flat = path != "*.*[*]" and not any("." in each or "@" in each for each in paths)
    if is_flat and (certain or _is_table(source, path, options)):
        runs = _read_table(source, options, lambda losses: RecordRows(source, path, losses))
    else:
        runs = [] if certain else _read_nested(source, options, attempts_only=False)
        runs = runs or read_mapped(source, options, _mapping(source, options))
    return [_name_by_document(runs[0], source)] if len(runs) == 1 else runs


def _name_by_document(run: Run, source: Source) -> Run:
    """The run with the agent and the rate that the document states beside its records."""
    model, rate = find_facts(source)
    (run,) = _with_rate([run], rate)
    if model is None or not run.agent_guessed:
        return run
    reading = tuple(line for line in run.reading if "is named after the file" not in line)
    return replace(run, name=model, agent=model, agent_guessed=False, reading=reading)


def _with_rate(runs: list[Run], rate: float | None) -> list[Run]:
    """The only run of a file with the share of passes that the file states."""
    if rate is not None and len(runs) == 1 and not runs[0].source_says:
        runs = [replace(runs[0], source_says=MappingProxyType({"pass^1": rate}))]
    return runs


def _is_table(source: Source, path: str, options: ReadOptions) -> bool:
    """Whether the records at a path are a table that needs no further word."""
    chunks = RecordRows(source, path, Losses()).chunks()
    first = next(drop_index(chunks, options.columns.values()), None)
    if not first or not _has_columns(first, options):
        return False
    first, _ = Rewrites(options.columns, False).take(first, range(len(next(iter(first.values())))))
    columns = ColumnMap.resolve(first, options.columns, options.labels)
    if path:
        columns = find_shape(name_columns(columns, first)[0], first, source.name).columns
    return columns.holds_attempts or columns.holds_counts


def _has_columns(names: Collection[str], options: ReadOptions) -> bool:
    """Whether the columns that the user states are columns of the table."""
    return all(
        column in names
        or column.removesuffix(EVERY_PART) in names
        or column.startswith(EVERY_COLUMN)
        or (word == "success" and any(c.startswith(EVERY_COLUMN) for c in options.columns.values()))
        for word, column in options.columns.items()
    )


def _read_table(
    source: Source, options: ReadOptions, open_rows: Callable[[Losses], Rows]
) -> list[Run]:
    """The runs in a table; rows that are written twice count once where nothing contradicts."""
    try:
        return _read_rows(source, options, open_rows)
    except _RowRefused as error:
        if error.may_be_copy:
            with suppress(PasshatError):
                return _read_rows(source, options, open_rows, copies=CopyFilter())
        raise


def _read_rows(
    source: Source,
    options: ReadOptions,
    open_rows: Callable[[Losses], Rows],
    regroupings: tuple[Regrouping, ...] = (),
    copies: CopyFilter | None = None,
) -> list[Run]:
    losses = Losses()
    rows = open_rows(losses)
    if isinstance(rows, ParquetRows):
        large = _count_runs(source, rows, options)
        if large is not None:
            return large
    scorer = ScorerFilter(options.scorer)
    sections = Sections(rows.title if isinstance(rows, CsvRows) else "")
    rewrites = Rewrites(options.columns, rows.kind in ("CSV", "Excel", "Markdown"))
    labels = LabelFilter(options.columns)
    chunks = _select(rows, options, scorer, sections, rewrites, labels, copies)
    with _placing(source, rows):
        first, first_lines = next(chunks, (None, ()))
    if first is None:
        scorer.refuse_unknown(source.name)
        raise no_rows(source, losses)
    if isinstance(rows, JsonLinesRows) and not _has_columns(first, options):
        # A field inside a record, such as report.resolved.
        return read_mapped(source, options, _mapping(source, options))
    with _placing(source, rows):
        table = _gather(source, options, rows, losses, first, first_lines)
        for chunk, lines in chunks:
            table.take(chunk, lines)
        scorer.refuse_unknown(source.name)
        found = table.groups.find(source.name, scorer=options.scorer)
        if isinstance(found, ScorerChoice):
            raise _refuse_scorers(source, options, open_rows, found)
        if found is not None and len(regroupings) < _MOST_REGROUPINGS:
            # A table with a column for each task is read so again.
            task = options.columns.get("task", EVERY_COLUMN)
            named = {w: c.replace("passhat:task", task) for w, c in found.columns.items()}
            again = replace(options, columns={**options.columns, **named})
            return _read_rows(source, again, open_rows, (*regroupings, found), copies)
        try:
            parts = table.runs()
        except RowError as error:
            refusal = _with_line(_with_trial(error, table, options), source, rows)
            refusal.may_be_copy = error.other is not None and table.has_trials
            raise refusal from None
        decisions = table.decisions(options.pass_at)
    before = (part.decisions for part in (source, rows, sections, rewrites))
    after = (part.decisions for part in (labels, scorer, copies) if part is not None)
    decisions = (*chain(*before, *(r.decisions for r in regroupings)), *decisions, *chain(*after))
    tally = table.tally(
        {
            "of another judge": scorer.skipped,
            "a heading": sections.count + sections.headers,
            TOTALS: labels.counts.total(),
            "a row that is written twice": copies.count if copies is not None else 0,
        }
    )
    columns = table.columns
    reading = (f"{rows.kind} table, {counted(tally.rows, 'row')}", *columns.sentences())
    told_apart = differing_words(parts)
    decisions = (*decisions, *(suite_remarks(columns) if "suite" in told_apart else ()))
    judge = options.scorer if scorer.column else None
    runs = [_as_run(part, source, options, reading, columns, told_apart, judge) for part in parts]
    return [replace(run, tally=tally, decisions=(*decisions, *run.decisions)) for run in runs]


def _with_trial(error: RowError, table: TableRows, options: ReadOptions) -> RowError:
    """The refusal of an attempt that is listed twice, with the column that tells both apart."""
    trial = table.groups.suggest_trial() if error.other is not None else None
    if trial is None:
        if table.has_trials and not table.columns.ignored:
            error.hint = "Keep the row that counts, or number the attempts anew."
        return error
    pairs = [f"{word}={name}" for word, name in options.columns.items() if word != "trial"]
    hint = f"If both are attempts: --map {','.join((*pairs, f'trial={trial}'))}"
    return RowError(error.row, error.message, other=error.other, hint=hint)


def _gather(
    source: Source,
    options: ReadOptions,
    rows: Rows,
    losses: Losses,
    first: Chunk,
    lines: Sequence[int],
) -> TableRows:
    """The table with its first rows, by which its shape is found."""
    columns = ColumnMap.resolve(first, options.columns, options.labels)
    columns, task_notes = name_columns(columns, first, is_prose=source.found and source.is_prose)
    columns, task_notes = prefer_words(columns, first, task_notes)
    verdicts = [columns.meaning[word] for word in ("success", "n") if word in columns.meaning]
    verdicts += [name for name in reversed(list(first)) if name != columns.meaning.get("task")]
    table_filter = TableFilter(columns.meaning.get("task"), (*verdicts, None)[0])
    first, lines = table_filter.take(first, lines)
    shape = find_shape(columns, first, source.name, is_named=not source.found)
    shape = replace(shape, decisions=(*task_notes, *shape.decisions))
    gatherer = _gatherer(shape.columns, options, first, source)
    table = TableRows(source, rows, losses, shape, gatherer, table_filter)
    table.add(first, lines)
    return table


@contextmanager
def _placing(source: Source, rows: Rows) -> Iterator[None]:
    """Errors of the rows of a table with the file, and with the line where one is known."""
    try:
        yield
    except RowError as error:
        raise _with_line(error, source, rows) from None
    except ReadError:
        raise
    except PasshatError as error:
        kind = _UnknownColumns if isinstance(error, UnknownWords) else ReadError
        raise kind(error.message, source=source.name, hint=error.hint) from None


def _select(
    rows: Rows,
    options: ReadOptions,
    scorer: ScorerFilter,
    sections: Sections,
    rewrites: Rewrites,
    labels: LabelFilter,
    copies: CopyFilter | None,
) -> Iterator[tuple[Chunk, Sequence[int]]]:
    """The chunks of a table with joined columns, of one judge, without those that are empty."""
    for chunk in drop_index(rows.chunks(), options.columns.values()):
        selection, lines = sections.take(chunk, rows.lines)
        selection, lines = rewrites.take(selection, lines)
        if copies is not None:
            selection, lines = copies.take(selection, lines)
        selection, lines = scorer.take(join_columns(selection, options.columns), lines)
        selection, lines = labels.take(selection, lines)
        if len(lines):
            yield selection, lines


def _refuse_scorers(
    source: Source,
    options: ReadOptions,
    open_rows: Callable[[Losses], Rows],
    choice: ScorerChoice,
) -> ReadError:
    """The refusal of a table with the verdicts of several judges, with the numbers of each."""
    numbers = []
    for name in choice.names[:_MOST_SCORERS]:
        with suppress(PasshatError):
            runs = _read_table(source, replace(options, scorer=name), open_rows)
            passes = sum(run.outcomes.passes for run in runs)
            total = sum(run.outcomes.scored for run in runs)
            numbers.append(f"{name} passes {passes:,} of {total:,}")
    detail = f": {'; '.join(numbers)}" if numbers else ""
    return ReadError(
        f"column {choice.column!r} names {len(choice.names)} judges of the same attempts, and "
        f"only one can decide what passed{detail}.",
        source=source.name,
        hint=f"Choose with --scorer: {some(list(choice.names), 20)}.",
    )


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
            where=options.where or mapping.where,
            fields={**mapping.fields, **{w: (p,) for w, p in options.columns.items()}},
        )
    mapping, certain = guess_mapping(source, options)
    if not certain:
        raise unknown_format(source, options)
    mapping.check("--map")
    return mapping


def _count_runs(source: Source, rows: ParquetRows, options: ReadOptions) -> list[Run] | None:
    """Runs of a table with many attempts; ``None`` when it is to be read row by row."""
    names = rows.columns()
    if not _has_columns(names, options):
        return None  # columns that are joined
    columns = ColumnMap.resolve(names, options.columns, options.labels)
    count = rows.count()
    needs = options.needs
    rewards = columns.meaning.get("success", "").lower() in REWARD_NAMES
    has_scores = "score" in columns.meaning or rewards
    if needs.spread or (needs.scores and has_scores):  # they are read with the attempts
        needs = replace(needs, attempts=True, attempts_up_to=None)
    is_open = "trial" not in columns.meaning and columns.names_of("n", "c", "fails")
    if is_open or not is_counted(count, needs) or not columns.holds_attempts:
        return None  # also where the shape of the table is decided by its rows
    columns = columns.without("n", "c", "fails", "rate", "score")
    answers = options.needs.answers and count <= base.MOST_ATTEMPTS
    needs = replace(options.needs, answers=answers)
    table = CountedParquet(source, columns, replace(options, needs=needs))
    try:
        if options.scorer is not None or table.vary(named_parts(columns.ignored)):
            return None  # a column tells rows of a task apart: they are read one by one
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
    told_apart = differing_words(runs)
    decisions = tuple(
        f"column {columns.meaning['success']!r} decides; {rival!r} was not compared with it"
        for rival in columns.rivals
    )
    return [
        replace(
            _as_run(part, source, options, reading, columns, told_apart),
            tally=Tally(count, count),
            aggregates=part.aggregates,
            decisions=(*decisions, *part.notes),
        )
        for part in runs
    ]


def _rows_of(source: Source, options: ReadOptions, losses: Losses) -> Rows:
    if source.head.startswith(_PARQUET_MAGIC):
        return ParquetRows(source)
    kind = content_kind(source)
    if kind == "Excel":
        return RecordRows(source, options.records or "", losses)
    return MarkdownRows(source, losses) if kind == "Markdown" else CsvRows(source, losses)


def _gatherer(
    columns: ColumnMap, options: ReadOptions, chunk: Chunk, source: Source
) -> AttemptGatherer | CountGatherer:
    if columns.holds_attempts:
        texts = columns.names_of("answer", "expected") if options.needs.conversations else {}
        extras = tuple(texts.values())
        return AttemptGatherer(columns, options.pass_at, extras, score_range=options.score_range)
    if columns.holds_counts:
        return CountGatherer(columns)
    short = [name if len(name) <= 40 else f"{name[:40]}…" for name in chunk]
    lacking = "task" if "task" not in columns.meaning else "success (or n and c)"
    raise _UnknownColumns(
        f"no column was recognized as {lacking}; the columns are {some(short, 12)}. A table needs "
        "task and success (one row per attempt), or task, n and c (one row per task).",
        source=source.name,
        line=1,
        hint="Say which column is which: --map task=COLUMN,success=COLUMN ; if several columns "
        "hold an attempt each: --map trial=@column",
    )


def _with_line(error: RowError, source: Source, rows: Rows) -> _RowRefused:
    other = "" if error.other is None else f" (see {rows.place} {rows.line_of(error.other)})"
    return _RowRefused(
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
    judge: str | None = None,
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
            judge=judge,
            pass_at=options.threshold,
        ),
        attempts=_with_conversations(gathered.attempts, columns, options),
        source=source.name,
        agent_guessed=not gathered.model,
        attempts_counted=True,
        reading=(*reading, *columns.gaps(), *gathered.notes, *gathered.remarks),
        decisions=gathered.notes,
    )


def _with_conversations(
    attempts: Attempts | None, columns: ColumnMap, options: ReadOptions
) -> Attempts | None:
    """The attempts with answer and expected answer as their conversation, where asked for."""
    names = columns.names_of(*_ANSWER_WORDS)
    if attempts is None or not names or not options.needs.conversations:
        return attempts
    texts = TextColumn()
    for row in range(len(attempts)):
        cells = (attempts.extras[names[w]][row] if w in names else None for w in _ANSWER_WORDS)
        texts.extend([conversation_text(with_answers((), *cells))])
    conversation = Categorical(texts.values, texts.codes)
    return replace(attempts, extras=MappingProxyType({"conversation": conversation}))


def _name(agent: str, gathered: Gathered, told_apart: set[str]) -> str:
    """The agent, with the suite and temperature where they differ within this table."""
    name = f"{agent} on {gathered.suite}" if gathered.suite and "suite" in told_apart else agent
    if gathered.temperature is not None and "temperature" in told_apart:
        name += f" T={gathered.temperature:g}"
    return name
