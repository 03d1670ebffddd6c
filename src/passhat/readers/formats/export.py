"""passhat's own exports, as CSV, JSON lines or Parquet: one row per attempt, read back whole."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from math import isfinite
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from passhat._display import counted, csv_text
from passhat.errors import ReadError, shorten
from passhat.protocol import RULE_JUDGE, Protocol, Scalar
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import BROKEN, decode, decode_protocol, json_lines
from passhat.readers.parsing import number_or_none, utc_text
from passhat.readers.rows import ParquetRows
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run
from passhat.store.labels import labels_from_attempts

EXPORT_COLUMNS = (
    *("run", "agent", "task", "attempt", "passed", "category", "reason", "detail", "score"),
    *("steps", "seconds", "tokens", "cost", "retries", "seed", "answer", "expected"),
    *("transcript", "suite"),
    *("judge", "model", "model_version", "provider", "revision", "started"),
    *("decoding", "protocol"),
    *("ordered", "source", "source_id", "sample_hash", "extension", "schema"),
)
"""The columns of an export, in this order; slices follow as ``slice:NAME``."""

_SCHEMA_NAME = "passhat.outcomes/"
OUTCOMES_SCHEMA = f"{_SCHEMA_NAME}2"
"""The name and version of the format; a reader refuses versions it does not know."""
_VERSIONS = (1, 2)
_ABOUT = ("model", "model_version", "provider", "revision")
_EXTRAS = ("retries", "expected", "sample_hash", "extension", "labels")

_SIGNS = ("run", "agent", "task", "attempt", "passed", "category", "reason")
_REQUIRED = ("run", "agent", "task", "attempt", "passed", "schema")
_IDENTITY = ("agent", "suite", "judge", "decoding", "protocol")
"""Fields that are the same in all rows of a run."""
_NUMBERS = ("score", "steps", "seconds", "tokens", "cost", "retries")
_WORDS = {"true": True, "false": False}
_PARQUET = b"PAR1"
_SLICE = "slice:"
_SLICE_KEY = re.compile(rb'"slice:[^"\\]*(?:\\.[^"\\]*)*"(?=\s*:)')
_QUOTED_SLICE, _BACKSLASH = b'"slice:', ord("\\")
_BLOCK, _LONGEST_KEY = 1 << 20, 4096
_Record = dict[str, Any]
_Mapping = TypeVar("_Mapping", bound=dict[str, Any])


class ExportReader(Reader):
    """Recognized by its columns, which no other table has together."""

    name = "export"

    def recognizes(self, source: Source) -> bool:
        if source.head.startswith(_PARQUET):
            try:
                return set(_SIGNS) <= set(ParquetRows(source).columns())
            except ReadError:
                return False
        if source.outline.opens == "{":
            # A writer may leave out what is empty; the name of the schema is required.
            names_schema = _SCHEMA_NAME.encode() in source.head
            return set(_REQUIRED if names_schema else _SIGNS) <= source.outline.keys
        first = source.head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
        return first.startswith(",".join(_SIGNS).encode())

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        slices = _slices(source)
        log = LogBuilder(
            source, "passhat export", options, order="trial", slices=slices, extras=_EXTRAS
        )
        about: dict[str, _Record] = {}
        unusable: dict[str, Counter[str]] = defaultdict(Counter)
        for where, record in _records(source, log):
            with log.row(where):
                run = str(record.get("run"))
                if about.setdefault(run, record) is record:
                    _refuse_newer(record, source)
                _refuse_mixture(where, about[run], record, source)
                unusable[run].update(name for name, _ in _unusable_numbers(record))
                _take(log, where, record, slices)
        runs = [
            _with_own_slices(run) for run in log.runs(lambda key: _facts(about[key], unusable[key]))
        ]
        return [replace(run, labels=labels_from_attempts(run.attempts)) for run in runs]


def _refuse_newer(record: _Record, source: Source) -> None:
    name = str(record.get("schema") or OUTCOMES_SCHEMA)
    if name not in [f"{_SCHEMA_NAME}{version}" for version in _VERSIONS]:
        raise ReadError(
            f"has the schema {shorten(name)}; this passhat reads {OUTCOMES_SCHEMA} and older.",
            source=source.name,
            hint="Upgrade passhat: pip install --upgrade passhat",
        )


def _find_mixture(first: _Record, record: _Record) -> str:
    """The field in which two rows of one run differ, in words; empty where they agree."""
    for name in _IDENTITY:
        mine, theirs = record.get(name) or None, first.get(name) or None
        if mine != theirs:
            return (
                f"{name} is {shorten(mine)} in one row of run {shorten(str(record.get('run')))} "
                f"and {shorten(theirs)} in another: a run has one agent and one protocol"
            )
    return ""


def _refuse_mixture(where: str, first: _Record, record: _Record, source: Source) -> None:
    """The rows of a run that disagree on its protocol are not one run."""
    if record is not first and (problem := _find_mixture(first, record)):
        raise ReadError(
            f"{where}: {problem}.",
            source=source.name,
            hint="Give the rows of each agent and protocol a run name of their own.",
        )


def _unusable_numbers(record: _Record) -> Iterator[tuple[str, object]]:
    """Measures and scores that are stated and are no finite numbers of at least 0."""
    for name in _NUMBERS:
        cell = record.get(name)
        if cell is None or cell == "":
            continue
        number = number_or_none(cell)
        if number is None or number < 0:
            yield name, cell


def _with_own_slices(run: Run) -> Run:
    """The run without the slices of other runs in the file, which are empty for its tasks."""
    labels = {name: values for name, values in run.outcomes.labels.items() if any(values)}
    if len(labels) == len(run.outcomes.labels):
        return run
    return replace(run, outcomes=replace(run.outcomes, labels=MappingProxyType(labels)))


def outcomes_json_schema(version: int = 2) -> dict[str, Any]:
    """The JSON Schema of one row of a version of passhat.outcomes."""
    text = (files("passhat.readers") / "schemas" / f"outcomes-{version}.json").read_bytes()
    return decode(text, dict[str, Any])


def outcome_problems(source: Source) -> Iterator[tuple[str, str]]:
    """Deviations of a file from the version of passhat.outcomes it states: place and problem.

    The same problem of many rows is one, with the first place and how many more there are.
    """
    problems: dict[object, tuple[str, str]] = {}
    repeats: Counter[object] = Counter()
    for where, kind, text in _find_problems(source):
        problems.setdefault(kind, (where, text))
        repeats[kind] += 1
    for kind, (where, text) in problems.items():
        more = repeats[kind] - 1
        yield f"{where} and {counted(more, 'more row')}" if more else where, text


def _find_problems(source: Source) -> Iterator[tuple[str, object, str]]:
    """Place, kind and text of every problem."""
    if source.outline.opens == "[":
        yield "the file", "array", "is a JSON array; the format has one object on each line"
        return
    find_row_problems = _row_check()
    log = LogBuilder(source, "outcomes", ReadOptions())
    places: dict[tuple[str, str, object], str] = {}
    about: dict[str, _Record] = {}
    for where, record in _records(source, log):
        number = record.get("attempt")
        if isinstance(number, float) and number.is_integer():  # Parquet keeps it as a double
            record = {**record, "attempt": int(number)}
        for kind, text in find_row_problems(record):
            yield where, kind, text
        run = str(record.get("run"))
        if problem := _find_mixture(about.setdefault(run, record), record):
            yield where, ("mixture", run, problem.partition(" ")[0]), problem
        key = (run, str(record.get("task")), record.get("attempt"))
        if key in places:
            text = f"attempt {key[2]} of task {shorten(key[1])} is also on {places[key]}"
            yield where, "repeated", text
        places.setdefault(key, where)
    for loss in log.tally().losses:
        yield loss.where, loss.what, loss.what
    if not places:
        yield "the file", "empty", "has no rows"


def _row_check() -> Callable[[_Record], Iterator[tuple[object, str]]]:
    """Finds kind and text of the problems of one row."""
    from jsonschema import Draft202012Validator

    checks = {
        f"{_SCHEMA_NAME}{version}": Draft202012Validator(outcomes_json_schema(version))
        for version in _VERSIONS
    }

    def find(record: _Record) -> Iterator[tuple[object, str]]:
        name = str(record.get("schema"))
        if "schema" in record and name not in checks:
            yield "schema", f"schema is {shorten(name)}, none of {' and '.join(checks)}"
        for error in checks.get(name, checks[OUTCOMES_SCHEMA]).iter_errors(record):
            place = ".".join(map(str, error.absolute_path))
            if place == "schema":
                continue
            message = error.message[:160]
            kind = (place, error.validator, message if error.validator == "required" else "")
            yield kind, f"{place}: {message}" if place else message
        for field, cell in _unusable_numbers(record):
            # The schema finds texts and negative numbers; to it, NaN is a number of any size.
            if isinstance(cell, float) and not isfinite(cell):
                yield (field, "finite"), f"{field}: {cell} is not a finite number"

    return find


def _records(source: Source, log: LogBuilder) -> Iterator[tuple[str, _Record]]:
    """The rows with the place of each; a broken row is lost, and the others are not."""
    if source.head.startswith(_PARQUET):
        number = 0
        for chunk in ParquetRows(source).chunks():
            for cells in zip(*chunk.values(), strict=True):
                number += 1
                yield f"row {number}", dict(zip(chunk, cells, strict=True))
    elif source.outline.opens == "{":
        for line, row in json_lines(source, log, dict[str, Any], marks=True):
            yield f"line {line}", row
    else:
        yield from _csv_records(source, log)


def _csv_records(source: Source, log: LogBuilder) -> Iterator[tuple[str, _Record]]:
    with source.open() as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        reader = csv.reader(text)
        try:
            header = next(reader, [])
            for cells in reader:
                where = f"line {reader.line_num}"
                if len(cells) == len(header):
                    yield where, dict(zip(header, map(csv_text, cells), strict=True))
                elif cells:
                    log.lose(where, f"has {len(cells)} cells, and the header {len(header)}")
        except csv.Error as error:
            log.lose(f"line {reader.line_num}", f"is not a CSV record ({error})")


def _slices(source: Source) -> list[str]:
    """The labels of tasks in any row, in the order of their first appearance."""
    if source.head.startswith(_PARQUET):
        names = ParquetRows(source).columns()
    elif source.outline.opens == "{":
        names = list(_json_slices(source))
    else:
        with source.open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
            try:
                names = next(csv.reader(text), [])
            except csv.Error:
                names = []
    return [name.removeprefix(_SLICE) for name in names if name.startswith(_SLICE)]


def _json_slices(source: Source) -> dict[str, None]:
    """Keys of JSON lines that name a slice: rows of another run may have other slices."""
    keys: dict[bytes, None] = {}
    with suppress(ReadError), source.open() as stream:  # a truncated file is reported later
        before = b""
        while block := stream.read(_BLOCK):
            block = before + block
            # Plain bytes are searched for fast. What begins a block was seen with the one before.
            at = block.find(_QUOTED_SLICE, 1)
            while at >= 0:
                # A quote that is escaped is inside a text; one that is not opens a key or a text.
                if block[at - 1] != _BACKSLASH and (match := _SLICE_KEY.match(block, at)):
                    keys[match[0]] = None
                at = block.find(_QUOTED_SLICE, at + 1)
            before = block[-_LONGEST_KEY:]  # a key may lie across two blocks
    names: dict[str, None] = {}
    for key in keys:
        with suppress(*BROKEN):
            names[decode(key, str)] = None
    return names


def _take(log: LogBuilder, where: str, record: _Record, slices: list[str]) -> None:
    has_order = _flag(record.get("ordered"))
    trial = record.get("attempt")
    word, detail = record.get("category") or record.get("reason"), record.get("detail")
    passed, score = _flag(record.get("passed")), _measure(record.get("score"))
    if log.options.pass_at is not None and passed in (True, False) and score is not None:
        passed = score  # the user states another threshold
    log.add(
        where,
        record.get("task"),
        passed,
        run=str(record.get("run")),
        trial=trial if has_order is not False else f"attempt {trial}",
        why=f"{word}: {detail}" if word and detail else str(word or ""),
        seconds=_measure(record.get("seconds")),
        steps=_measure(record.get("steps")),
        tokens=_measure(record.get("tokens")),
        cost=_measure(record.get("cost")),
        answer=record.get("answer") or None,
        seed=record.get("seed") or None,
        transcript=str(record.get("transcript") or ""),
        source_id=record.get("source_id") or None,
        labels=[record.get(_SLICE + name) for name in slices],
        score=score,
        extras=[_plain(record.get(name)) for name in _EXTRAS],
    )


def _plain(cell: object) -> object:
    """A count without a decimal point, an object as JSON text."""
    if isinstance(cell, dict | list):
        return msgspec.json.encode(cell).decode()
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _flag(cell: object) -> object:
    """A cell of a CSV, with true and false as booleans."""
    return _WORDS.get(cell.lower(), cell) if isinstance(cell, str) else cell


def _measure(cell: object) -> float | None:
    """An empty cell of a CSV is not recorded, 0 is 0, and less than that is no measure."""
    number = None if cell == "" else number_or_none(cell)
    return None if number is not None and number < 0 else number


def _facts(record: _Record, unusable: Counter[str]) -> RunFacts:
    agent, run = str(record.get("agent") or ""), str(record.get("run") or "")
    source = str(record.get("source") or "")
    reading = [f"exported from {source}"] if source else []
    if source.startswith("langfuse:"):
        reading.append("Langfuse scores")  # its ids are those of traces, which can get scores
    protocol = _protocol(record)
    return RunFacts(
        agent or run,
        protocol,
        decisions=(
            *_judging(protocol),
            *(
                f"{name} of {counted(count, 'attempt')} is no finite number of at least 0 and is "
                "taken as not recorded"
                for name, count in unusable.items()
            ),
        ),
        variant=run.removeprefix(agent).strip(),
        guessed=not agent,
        reading=tuple(reading),
        about={word: str(record.get(word) or "") for word in _ABOUT},
        started=utc_text(record.get("started")),
    )


def _judging(protocol: Protocol) -> Iterator[str]:
    """How attempts were judged where the export was written, if not by plain verdicts."""
    if RULE_JUDGE in (protocol.judge or ""):
        yield f"passed was decided by {protocol.judge} when the file was written"
    elif protocol.pass_at != 1:
        yield f"passed meant score >= {protocol.pass_at:g} when the file was written"


def _protocol(record: _Record) -> Protocol:
    """The protocol of a run: its own columns, and whatever else the writer recorded of it."""
    columns = {
        "suite": record.get("suite") or None,
        "judge": record.get("judge") or None,
        "decoding": _mapping(record.get("decoding"), dict[str, Scalar]),
    }
    further = _mapping(record.get("protocol"), dict[str, Any])
    return decode_protocol({**further, **columns})


def _mapping(cell: object, kind: type[_Mapping]) -> _Mapping:
    """An object, in CSV and Parquet as JSON text; empty when it is none."""
    if isinstance(cell, dict):
        cell = msgspec.json.encode(cell).decode()
    try:
        return decode(cell.encode() if isinstance(cell, str) and cell else b"{}", kind)
    except BROKEN:
        return kind()
