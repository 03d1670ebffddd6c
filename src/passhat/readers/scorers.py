"""Names of judges in the records of a log, where a mapping leaves the name open."""

from __future__ import annotations

import re
from collections.abc import Iterator

from passhat.readers.parsing import number_or_none
from passhat.readers.records import Record, steps_of, value_at

__all__ = ["scorer_names"]


def scorer_names(record: Record, before: str, after: str) -> Iterator[str]:
    """The names that fit {scorer} in a record, between two parts of a path."""
    rule = re.fullmatch(r"\s*(\S+)\s*==\s*", before)
    list_step = re.fullmatch(r"(.*)\[([^\[=]+)=", before)
    if rule:  # where = "name == {scorer}"
        value = value_at(record.data, steps_of(rule[1]))
        yield from () if value is None else (str(value),)
    elif list_step:  # feedback[key={scorer}].score
        rows = value_at(record.data, steps_of(list_step[1]))
        for row in rows if isinstance(rows, list) else ():
            name = value_at(row, steps_of(list_step[2]))
            yield from () if name is None else (str(name),)
    elif after.startswith("/") or (before and not before.endswith(".")):
        yield from _scorer_columns(record.data, before, after)  # correctness/value
    else:
        yield from _scorer_fields(record.data, before, after)


def _scorer_columns(data: object, before: str, after: str) -> Iterator[str]:
    for key in map(str, data if isinstance(data, dict) else ()):
        if key.startswith(before) and key.endswith(after) and len(key) > len(before + after):
            yield key[len(before) : len(key) - len(after)]


def _scorer_fields(data: object, before: str, after: str) -> Iterator[str]:
    path = before.removesuffix(".")
    container = value_at(data, steps_of(path)) if path else data
    if container is None:
        # A table writes the path as the name of a column: feedback.correct
        yield from _scorer_columns(data, before, after)
        return
    rest = after.split(" ")[0].lstrip(".")
    for key, value in container.items() if isinstance(container, dict) else ():
        if rest and value_at(value, steps_of(rest)) is None:
            continue
        number = isinstance(value, bool | int | float) or number_or_none(value) is not None
        if rest or number or value is None:
            yield str(key)
