"""BFCL (Berkeley function calling): score files, a header line and then the failed entries.

``{"accuracy", "correct_count", "total_count"}`` first, then one line per entry that failed. Entries
that passed are counted in the header and have no line of their own, so they have no id here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import json_lines
from passhat.readers.parsing import number_or_none
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_HEADER = {"accuracy", "correct_count", "total_count"}
_MOST = 10_000_000


class _Line(msgspec.Struct):
    accuracy: Any = None
    correct_count: Any = None
    total_count: Any = None
    id: Any = None
    model_name: Any = None
    test_category: Any = None
    valid: Any = None
    error_type: Any = None


class BfclReader(Reader):
    """A line per failed entry below a line with the counts."""

    name = "bfcl"

    def recognizes(self, source: Source) -> bool:
        return source.outline.opens == "{" and source.outline.keys >= _HEADER

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "BFCL score file", options)
        head, model, category = _Line(), None, None
        entries = passed = 0
        for line, row in json_lines(source, log, _Line):
            if row.id is None and row.total_count is not None:
                head = row
                continue
            model, category = row.model_name or model, row.test_category or category
            why = "" if row.valid else f"wrong_answer: {row.error_type or ''}"
            log.add(f"line {line}", row.id, bool(row.valid), why=why)
            entries += 1
            passed += bool(row.valid)
        total, correct = number_or_none(head.total_count), number_or_none(head.correct_count)
        uncounted = 0
        if total is not None and correct is not None and entries < total <= _MOST:
            uncounted = min(int(total) - entries, max(0, int(correct) - passed))
        for number in range(1, uncounted + 1):
            log.add("line 1", f"(passed entry {number}, without id)", True, absent=True)
        accuracy = number_or_none(head.accuracy)
        agent, _, notes = from_name(source)
        note = f"{uncounted:,} passed entries are only counted, and have no id"
        facts = RunFacts(
            str(model or agent),
            Protocol(suite=f"BFCL/{category}" if category else "BFCL"),
            says={} if accuracy is None else {"accuracy": accuracy},
            reading=(*(notes if model is None else ()), *((note,) if uncounted else ())),
            guessed=model is None,
        )
        return log.runs(facts)
