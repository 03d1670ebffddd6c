"""Cells of a Parquet table in DuckDB's words, read by the rules that single rows are read with."""

from __future__ import annotations

from typing import Any

import numpy as np

from passhat._display import counted

__all__ = ["as_literal", "as_number", "as_text", "different", "quoted", "weighted"]

_WIDEST = 65_536
_BITS = 62
_MOST_WORDS = 4


def different(column: str, low: int, high: int) -> str | None:
    """How many different whole numbers between these a group has; ``None`` if that is too wide.

    Bits in numbers, or in a text where there are many: a hundredth of the memory that the values
    themselves would take.
    """
    name, width = quoted(column), high - low + 1
    nothing = f"CAST(count(*) FILTER (WHERE {name} IS NULL) > 0 AS INTEGER)"
    if width > _WIDEST:
        return None
    if width > _BITS * _MOST_WORDS:
        return f"bit_count(bitstring_agg({name}, {low}, {high})) + {nothing}"
    bit = f"CAST(1 AS BIGINT) << CAST(({name} - {low}) % {_BITS} AS INTEGER)"
    words = [
        # As a large number: DuckDB counts bits in a byte, and several of them do not fit.
        f"coalesce(CAST(bit_count(bit_or({bit}) "
        f"FILTER (WHERE {name} BETWEEN {start} AND {start + _BITS - 1})) AS BIGINT), 0)"
        for start in range(low, high + 1, _BITS)
    ]
    return " + ".join([*words, nothing])


def quoted(column: str) -> str:
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def as_text(column: str) -> str:
    """A column as text, as a table's cell is read: nothing is the empty text."""
    return f"coalesce(trim(CAST({quoted(column)} AS VARCHAR)), '')"


def as_number(column: str) -> str:
    """A column as a number; nothing where it is empty, or none."""
    number = f"TRY_CAST({quoted(column)} AS DOUBLE)"
    return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"


def as_literal(cell: object) -> str:
    if isinstance(cell, str):
        quoted = cell.replace("'", "''")
        return f"'{quoted}'"
    return str(cell).upper() if isinstance(cell, bool) else repr(cell)


def weighted(note: str, rewards: Any, times: Any) -> str:
    """The note counts different rewards; what matters is how many attempts have them."""
    if note.startswith("-1 "):
        count = int(times[rewards == -1].sum())
        return f"-1 was read as missing ({counted(count, 'attempt')})"
    odd = ~(np.isnan(rewards) | np.isin(rewards, (0, 1, -1)))
    return f"{counted(int(times[odd].sum()), 'reward')}{note[note.index(' between') :]}"
