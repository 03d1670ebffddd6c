"""passhat's own exports, as CSV, JSON lines or Parquet: one row per attempt, read back whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from passhat.errors import ReadError
from passhat.outcomes import Run
from passhat.protocol import Protocol, Scalar
from passhat.readers.building import LogBuilder, RunFacts, number_or_none
from passhat.readers.decoding import BROKEN, decode
from passhat.readers.registry import ReadOptions
from passhat.readers.rows import CsvRows, JsonLinesRows, ParquetRows, Rows
from passhat.readers.sources import Source

__all__ = ["EXPORT_COLUMNS", "ExportReader"]

EXPORT_COLUMNS = (
    *("run", "agent", "task", "attempt", "passed", "category", "reason", "detail"),
    *("steps", "seconds", "tokens", "cost", "seed", "transcript", "suite", "judge", "decoding"),
    *("ordered", "source"),
)
"""What stands in an export, in this order; slices follow as ``slice:NAME``."""

_SIGNS = ("run", "agent", "task", "attempt", "passed", "category", "reason")
_WORDS: dict[object, object] = {"true": True, "True": True, "false": False, "False": False}
_SLICE = "slice:"


class ExportReader:
    """Recognised by its columns, which no other table has together."""

    name = "export"

    def recognises(self, source: Source) -> bool:
        if source.head.startswith(b"PAR1"):
            try:
                return set(_SIGNS) <= set(ParquetRows(source).columns())
            except ReadError:
                return False
        if source.outline.opens == "{":
            return set(_SIGNS) <= source.outline.keys
        first = source.head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
        return first.startswith(",".join(_SIGNS).encode())

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        rows = _rows_of(source)
        records = _records(rows)
        first = next(records, {})
        slices = [name.removeprefix(_SLICE) for name in first if name.startswith(_SLICE)]
        log = LogBuilder(source, "passhat export", options, order="trial", slices=slices)
        about: dict[str, dict[str, Any]] = {}
        for number, record in enumerate(_chained(first, records), 1):
            about.setdefault(str(record.get("run")), record)
            _take(log, number, record, slices)
        return log.runs(lambda key: _facts(about[key]))


def _rows_of(source: Source) -> Rows:
    if source.head.startswith(b"PAR1"):
        return ParquetRows(source)
    return JsonLinesRows(source) if source.outline.opens == "{" else CsvRows(source)


def _records(rows: Rows) -> Iterator[dict[str, Any]]:
    for chunk in rows.chunks():
        for cells in zip(*chunk.values(), strict=True):
            yield dict(zip(chunk, cells, strict=True))


def _chained(first: dict[str, Any], rest: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if first:
        yield first
    yield from rest


def _take(log: LogBuilder, number: int, record: dict[str, Any], slices: list[str]) -> None:
    passed = record.get("passed")
    ordered = _WORDS.get(record.get("ordered"), record.get("ordered"))
    trial = record.get("attempt")
    word, detail = record.get("category") or record.get("reason"), record.get("detail")
    log.add(
        f"row {number}",
        record.get("task"),
        _WORDS.get(passed, passed),
        run=str(record.get("run")),
        trial=trial if ordered is not False else f"attempt {trial}",
        why=f"{word}: {detail}" if word and detail else str(word or ""),
        seconds=_measure(record.get("seconds")),
        steps=_measure(record.get("steps")),
        tokens=_measure(record.get("tokens")),
        cost=_measure(record.get("cost")),
        seed=record.get("seed") or None,
        transcript=str(record.get("transcript") or ""),
        labels=[record.get(_SLICE + name) for name in slices],
    )


def _measure(cell: object) -> float | None:
    """An empty cell of a CSV is not recorded, and 0 is 0."""
    return None if cell == "" else number_or_none(cell)


def _facts(record: dict[str, Any]) -> RunFacts:
    agent, run = str(record.get("agent") or ""), str(record.get("run") or "")
    return RunFacts(
        agent or run,
        Protocol(
            suite=record.get("suite") or None,
            judge=record.get("judge") or None,
            decoding=_decoding(record.get("decoding")),
        ),
        variant=run.removeprefix(agent).strip(),
        reading=(f"exported from {record.get('source')}",) if record.get("source") else (),
    )


def _decoding(cell: object) -> dict[str, Scalar]:
    if not isinstance(cell, str) or not cell:
        return {}
    try:
        return decode(cell.encode(), dict[str, Scalar])
    except BROKEN:
        return {}
