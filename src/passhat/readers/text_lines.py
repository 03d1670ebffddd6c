"""Logs of plain text, whose verdicts are in lines of one form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from passhat.readers.json_records import short_lines
from passhat.readers.records import Record
from passhat.readers.sources import Source

__all__ = ["text_records"]


def text_records(source: Source, lines: str, starts: str = "") -> Iterator[Record]:
    """A record for every line that fits ``lines``, with its named groups as fields.

    ``starts`` fits the lines that begin an attempt; one that has no verdict when the log ends is a
    record with its task alone.
    """
    verdict, start = re.compile(lines), re.compile(starts or "(?!)")
    pending: dict[str, int] = {}
    with source.open() as stream:
        for number, content in enumerate(short_lines(stream), 1):
            line = content.decode("utf-8", "replace")
            if match := verdict.search(line):
                fields = match.groupdict()
                pending.pop(str(fields.get("task")), None)
                yield Record(f"line {number}", fields, "", number - 1)
            elif match := start.search(line):
                pending.setdefault(match["task"], number)
    for task, number in pending.items():
        yield Record(f"line {number}", {"task": task}, "", number - 1)
