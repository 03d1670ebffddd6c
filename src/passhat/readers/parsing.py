"""Pieces of logs: JSON split into its parts without decoding; numbers, times, settings, errors.

A whole document is decoded in one go when it is sound. When it is not, one broken record must not
take the others with it: the list that holds them is found, cut into elements, and each is decoded
for itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = [
    "LONGEST_DETAIL",
    "Bytes",
    "Outline",
    "Part",
    "as_dict",
    "container_end",
    "error_message",
    "find_container",
    "number_or_none",
    "numbers_in",
    "outline",
    "parts",
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


# -- the parts of a JSON text ------------------------------------------------------------------

Bytes = bytes | bytearray

# A string, or one sign of structure. A lone quote is a string that never ends.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_COLON = re.compile(rb"\s*:\s*")
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Part:
    """An element of a list, or an entry of an object; ``complete`` unless the file ends in it."""

    key: str
    content: bytes
    complete: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The outermost bracket of a JSON text and the keys of its first object."""

    opens: str
    keys: frozenset[str]


def outline(head: bytes) -> Outline:
    """The keys of the first object, as far as the head of a file shows them."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
    opens = text[:1].decode("latin-1")
    if opens not in ("{", "["):
        return Outline("", frozenset())
    start = text.find(b"{")
    if start < 0 or text[1:start].strip(_SPACE) not in (b"",):
        return Outline(opens, frozenset())
    return Outline(opens, frozenset(key for key, _ in _keys(text, start)))


def find_container(data: Bytes, path: Sequence[str]) -> int | None:
    """Where the list or object at a path of keys opens, or ``None``."""
    at = _first_sign(data, 0)
    for name in path:
        if at is None or data[at : at + 1] != b"{":
            return None
        at = next((value for key, value in _keys(data, at) if key == name), None)
    return at if at is not None and data[at : at + 1] in (b"{", b"[") else None


def parts(data: Bytes, opening: int) -> Iterator[Part]:
    """The elements of the list or object that opens here; the last may be cut off."""
    has_keys = data[opening : opening + 1] == b"{"
    depth, start, stop = 1, opening + 1, len(data)
    for token in _TOKEN.finditer(data, opening + 1):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                stop = token.start()
                break
        elif sign == b"," and depth == 1:
            yield _part(data[start : token.start()], has_keys, complete=True)
            start = token.end()
        elif sign == b'"':
            break
    rest = data[start:stop]
    if rest.strip(_SPACE):
        yield _part(rest, has_keys, complete=depth == 0)


def container_end(data: Bytes, opening: int) -> int | None:
    """Just past the sign that closes a container, or ``None`` when the file ends before."""
    depth = 0
    for token in _TOKEN.finditer(data, opening):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif sign == b'"':
            return None
    return None


def _part(text: Bytes, keyed: bool, *, complete: bool) -> Part:
    content = bytes(text.strip(_SPACE))
    if not keyed:
        return Part("", content, complete)
    match = _TOKEN.match(content)
    colon = _COLON.match(content, match.end()) if match else None
    if match is None or colon is None:
        return Part("", content, False)
    return Part(_text(match[0]), content[colon.end() :], complete)


def _keys(data: Bytes, opening: int) -> Iterator[tuple[str, int]]:
    """The keys of one object, each with the place of its value."""
    depth = 1
    for token in _TOKEN.finditer(data, opening + 1):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return
        elif depth == 1 and len(sign) > 1 and (colon := _COLON.match(data, token.end())):
            yield _text(sign), colon.end()
        elif sign == b'"':
            return


def _first_sign(data: Bytes, start: int) -> int | None:
    while start < len(data) and data[start : start + 1] in (b" ", b"\t", b"\r", b"\n", b"\xef"):
        start += 3 if data[start : start + 1] == b"\xef" else 1
    return start if start < len(data) else None


def _text(quoted: bytes) -> str:
    """A key as text; escapes are rare in keys and are decoded only when there are any."""
    if b"\\" in quoted:
        import msgspec

        try:
            return str(msgspec.json.decode(quoted))
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    return quoted[1:-1].decode("utf-8", "replace")
