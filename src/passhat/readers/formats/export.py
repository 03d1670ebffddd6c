"""passhat's own exports, as CSV, JSON lines or Parquet: one row per attempt, read back whole."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from passhat._display import csv_text
from passhat.errors import ReadError, shorten
from passhat.protocol import RULE_JUDGE, Protocol, Scalar
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import BROKEN, decode, decode_protocol, json_lines
from passhat.readers.parsing import number_or_none
from passhat.readers.rows import ParquetRows
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run
from passhat.store.labels import labels_from_attempts

__all__ = [
    "EXPORT_COLUMNS",
    "OUTCOMES_SCHEMA",
    "ExportReader",
    "outcome_problems",
    "outcomes_json_schema",
]

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
        for where, record in _records(source, log):
            with log.row(where):
                if about.setdefault(str(record.get("run")), record) is record:
                    _refuse_newer(record, source)
                _take(log, where, record, slices)
        runs = [_with_own_slices(run) for run in log.runs(lambda key: _facts(about[key]))]
        return [replace(run, labels=labels_from_attempts(run.attempts)) for run in runs]


def _refuse_newer(record: _Record, source: Source) -> None:
    name = str(record.get("schema") or OUTCOMES_SCHEMA)
    if name not in [f"{_SCHEMA_NAME}{version}" for version in _VERSIONS]:
        raise ReadError(
            f"has the schema {shorten(name)}; this passhat reads {OUTCOMES_SCHEMA} and older.",
            source=source.name,
            hint="Upgrade passhat: pip install --upgrade passhat",
        )


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
    """Deviations of a file from the version of passhat.outcomes it states: place and problem."""
    from jsonschema import Draft202012Validator

    checks = {
        f"{_SCHEMA_NAME}{version}": Draft202012Validator(outcomes_json_schema(version))
        for version in _VERSIONS
    }
    log = LogBuilder(source, "outcomes", ReadOptions())
    places: dict[tuple[str, str, object], str] = {}
    rows = 0
    for where, record in _records(source, log):
        rows += 1
        number = record.get("attempt")
        if isinstance(number, float) and number.is_integer():  # Parquet keeps it as a double
            record = {**record, "attempt": int(number)}
        check = checks.get(str(record.get("schema")), checks[OUTCOMES_SCHEMA])
        for error in check.iter_errors(record):
            place = ".".join(map(str, error.absolute_path))
            message = error.message[:160]
            yield where, f"{place}: {message}" if place else message
        key = (str(record.get("run")), str(record.get("task")), record.get("attempt"))
        if key in places:
            yield where, f"attempt {key[2]} of task {shorten(key[1])} is also on {places[key]}"
        places.setdefault(key, where)
    for loss in log.tally().losses:
        yield loss.where, loss.what
    if not rows:
        yield "the file", "has no rows"


def _records(source: Source, log: LogBuilder) -> Iterator[tuple[str, _Record]]:
    """The rows with the place of each; a broken row is lost, and the others are not."""
    if source.head.startswith(_PARQUET):
        number = 0
        for chunk in ParquetRows(source).chunks():
            for cells in zip(*chunk.values(), strict=True):
                number += 1
                yield f"row {number}", dict(zip(chunk, cells, strict=True))
    elif source.outline.opens == "{":
        for line, row in json_lines(source, log, dict[str, Any]):
            yield f"line {line}", row
    else:
        yield from _csv_records(source, log)


def _csv_records(source: Source, log: LogBuilder) -> Iterator[tuple[str, _Record]]:
    with source.open() as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        reader = csv.reader(text)
        try:
            header = next(reader)
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
    """An empty cell of a CSV is not recorded, and 0 is 0."""
    return None if cell == "" else number_or_none(cell)


def _facts(record: _Record) -> RunFacts:
    agent, run = str(record.get("agent") or ""), str(record.get("run") or "")
    source = str(record.get("source") or "")
    reading = [f"exported from {source}"] if source else []
    if source.startswith("langfuse:"):
        reading.append("Langfuse scores")  # its ids are those of traces, which can get scores
    protocol = _protocol(record)
    return RunFacts(
        agent or run,
        protocol,
        decisions=tuple(_judging(protocol)),
        variant=run.removeprefix(agent).strip(),
        reading=tuple(reading),
        about={word: str(record.get(word) or "") for word in _ABOUT},
        started=str(record.get("started") or ""),
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
