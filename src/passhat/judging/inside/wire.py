"""Plain data across the border: frames, and a codec that can only make built-in values.

The two sides of a judgement do not trust each other. A value is written as JSON in which every
container carries a tag; reading it back makes exact built-in types, up to a depth and a size, and
never looks up a name that the other side chose. What is not plain data crosses as a number that
stands for an object over there.
"""

from __future__ import annotations

import json
import os
import struct
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

__all__ = [
    "MAX_FRAME",
    "Closed",
    "Malformed",
    "NotPlain",
    "decode",
    "encode",
    "exactly",
    "framed",
    "frames",
    "receive",
    "receive_bytes",
    "send",
    "send_bytes",
]

MAX_FRAME = 16 * 1024 * 1024
MAX_DEPTH = 150
_JSON_DIGITS = 4000
"""Longer integers cross as hexadecimal: Python limits decimal text, and rightly so."""

_HEADER = struct.Struct("!I")


class Closed(Exception):
    """The other side has gone."""


class Malformed(Exception):
    """The bytes are not what this protocol allows."""


class NotPlain(Exception):
    """A value that has no plain form and that nobody keeps."""


def send_bytes(descriptor: int, content: bytes) -> None:
    """Write one frame."""
    left = memoryview(framed(content))
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except (BrokenPipeError, ConnectionResetError):
        raise Closed from None


def framed(content: bytes) -> bytes:
    """The content with its length before it."""
    if len(content) > MAX_FRAME:
        raise NotPlain(f"{len(content):,} bytes, which are more than {MAX_FRAME:,}")
    return _HEADER.pack(len(content)) + content


def receive_bytes(descriptor: int, most: int = MAX_FRAME) -> bytes:
    """Read one frame; a length beyond ``most`` is refused before anything is allocated."""
    (size,) = _HEADER.unpack(exactly(descriptor, _HEADER.size))
    if size > most:
        raise Malformed(f"a frame of {size:,} bytes")
    return exactly(descriptor, size)


def exactly(descriptor: int, size: int) -> bytes:
    """Read so many bytes."""
    parts = []
    while size:
        try:
            part = os.read(descriptor, min(size, 1 << 20))
        except ConnectionResetError:
            raise Closed from None
        if not part:
            raise Closed
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(descriptor: int, message: object) -> None:
    """Write one frame of JSON."""
    send_bytes(descriptor, json.dumps(message, separators=(",", ":")).encode())


def receive(descriptor: int, most: int = MAX_FRAME) -> Any:
    """Read one frame of JSON."""
    content = receive_bytes(descriptor, most)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None


def frames(content: bytes) -> list[Any]:
    """The frames of JSON in some bytes, as far as they are whole and well formed."""
    found = []
    while len(content) >= _HEADER.size:
        (size,) = _HEADER.unpack_from(content)
        body, content = content[_HEADER.size : _HEADER.size + size], content[_HEADER.size + size :]
        try:
            found.append(json.loads(body))
        except (ValueError, RecursionError):
            break
    return found


# -- writing --------------------------------------------------------------------------------------


def encode(value: object, keep: Callable[[object], list[Any]], depth: int = 0) -> Any:
    """Write a value; ``keep`` is asked for what is not plain and returns its stand-in."""
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return _whole(value)  # type: ignore[arg-type]
    if depth >= MAX_DEPTH:
        raise NotPlain(f"data nested deeper than {MAX_DEPTH}")
    if kind in _LISTS:
        below = depth + 1
        return [_LISTS[kind], *[encode(item, keep, below) for item in value]]  # type: ignore[attr-defined]
    if kind in _DICTS:
        flat = [part for pair in value.items() for part in pair]  # type: ignore[attr-defined]
        return [_DICTS[kind], *[encode(part, keep, depth + 1) for part in flat]]
    return _rare(value, kind) or keep(value)


_LISTS: dict[type, str] = {list: "l", tuple: "t", set: "s", frozenset: "f", deque: "q"}
_DICTS: dict[type, str] = {dict: "d", Counter: "n", OrderedDict: "m"}


def _whole(value: int) -> Any:
    return value if value.bit_length() < _JSON_DIGITS * 3 else ["i", hex(value)]


def _rare(value: Any, kind: type) -> list[Any] | None:
    if kind is bytes or kind is bytearray:
        return ["b" if kind is bytes else "a", value.hex()]
    if kind is complex:
        return ["c", value.real, value.imag]
    if kind is range:
        return ["r", *map(_whole, (value.start, value.stop, value.step))]
    if kind is Decimal:
        return ["D", str(value)]
    if kind is Fraction:
        return ["F", _whole(value.numerator), _whole(value.denominator)]
    if value is Ellipsis:
        return ["."]
    return None


# -- reading --------------------------------------------------------------------------------------


def decode(data: Any, adopt: Callable[[list[Any]], object], depth: int = 0) -> Any:
    """Make the value again; ``adopt`` is given stand-ins and returns what stands for them here."""
    kind = type(data)
    if data is None or kind is bool or kind is str or kind is float or kind is int:
        return data
    if kind is not list or not data or type(data[0]) is not str or depth > MAX_DEPTH:
        raise Malformed("a value without a tag, or nested too deeply")
    try:
        return _tagged(data[0], data, adopt, depth + 1)
    except (TypeError, ValueError, ZeroDivisionError, InvalidOperation, OverflowError) as error:
        raise Malformed(f"tag {data[0][:8]!r}: {error}") from None


_MAKERS: dict[str, Callable[[Any], object]] = {tag: kind for kind, tag in _LISTS.items()}
_DICT_MAKERS: dict[str, Callable[[Any], object]] = {tag: kind for kind, tag in _DICTS.items()}


def _tagged(tag: str, data: list[Any], adopt: Callable[[list[Any]], object], depth: int) -> Any:
    if tag in _MAKERS:
        return _MAKERS[tag]([decode(item, adopt, depth) for item in data[1:]])
    if tag in _DICT_MAKERS:
        flat = [decode(item, adopt, depth) for item in data[1:]]
        if len(flat) % 2:
            raise Malformed("a dict with a key and no value")
        return _DICT_MAKERS[tag](dict(zip(flat[::2], flat[1::2])))  # noqa: B905 - Python 3.9
    if tag in _SCALARS:
        kinds, make = _SCALARS[tag]
        parts = [decode(part, adopt, depth) if type(part) is list else part for part in data[1:]]
        if [type(part) for part in parts] != kinds:
            raise Malformed(f"tag {tag!r} with the wrong parts")
        return make(*parts)
    return adopt(data)


_SCALARS: dict[str, tuple[list[type], Callable[..., object]]] = {
    "i": ([str], lambda text: int(text, 16)),
    "b": ([str], bytes.fromhex),
    "a": ([str], bytearray.fromhex),
    "c": ([float, float], complex),
    "r": ([int, int, int], range),
    "D": ([str], Decimal),
    "F": ([int, int], Fraction),
    ".": ([], lambda: Ellipsis),
}
