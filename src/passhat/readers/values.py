"""Small conversions that readers share: numbers, times, settings and errors as logs write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

__all__ = [
    "LONGEST_DETAIL",
    "as_dict",
    "error_message",
    "number_or_none",
    "numbers_in",
    "scalars",
    "seconds_between",
    "sum_numbers",
    "why_missing",
]

LONGEST_DETAIL = 120
"""Characters that are kept of a source's own words about an attempt."""


def number_or_none(cell: object) -> float | None:
    """A finite number, or None: null stays null and nonsense is not a measure."""
    if cell is None or isinstance(cell, bool):
        return None
    if type(cell) is float and math.isfinite(cell):  # nearly always, and quick
        return cell
    try:
        number = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def scalars(settings: object, *left_out: str) -> dict[str, str | int | float | bool]:
    """The decoding settings of a log that have a plain value."""
    if not isinstance(settings, Mapping):
        return {}
    return {
        str(key): value
        for key, value in settings.items()
        if isinstance(value, str | int | float | bool) and key not in left_out
    }


_REASONS = (
    ("rate_limit", ("rate limit", "ratelimit", "rate_limit", "429", "quota", "overloaded")),
    ("sandbox_error", ("sandbox", "docker", "container")),
    ("judge_error", ("judge", "grader", "scorer", "verifier")),
    ("stopped", ("cancelled", "canceled", "keyboardinterrupt")),
)


def why_missing(message: object) -> str:
    """A missing reason and the message itself, from the error that left an attempt unscored."""
    text = " ".join(str(message).split())[:LONGEST_DETAIL]
    lower = text.lower()
    for reason, marks in _REASONS:
        if any(mark in lower for mark in marks):
            return f"{reason}: {text}"
    return f"infrastructure: {text}"


def error_message(error: object) -> object:
    """The message of an error that a log writes as an object, or the error itself."""
    return error.get("message", error) if isinstance(error, dict) else error


def as_dict(value: object) -> dict[Any, Any]:
    """The value, if it is an object of JSON; anything else is empty."""
    return value if isinstance(value, dict) else {}


def numbers_in(cells: Mapping[str, object]) -> dict[str, float]:
    """The entries that are finite numbers."""
    return {
        name: number for name, cell in cells.items() if (number := number_or_none(cell)) is not None
    }


def sum_numbers(cells: Iterable[object]) -> float | None:
    """The sum of the cells that are numbers; ``None`` when none is."""
    numbers = [number for cell in cells if (number := number_or_none(cell)) is not None]
    return sum(numbers) if numbers else None


def seconds_between(start: object, end: object) -> float | None:
    """The seconds between two times in ISO 8601."""
    try:
        first, last = (datetime.fromisoformat(str(at)) for at in (start, end))
        return (last - first).total_seconds()
    except (TypeError, ValueError):
        return None
