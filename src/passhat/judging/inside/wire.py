"""Data across the border between two processes that do not trust each other: frames and values."""

from __future__ import annotations

import datetime
import os
import struct
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from json import JSONEncoder, loads  # now: tests may patch what a module has
from os import read, write
from sys import getrefcount
from typing import Any, Optional

MAX_FRAME = 16 * 1024 * 1024
MAX_DEPTH = 150

_HEADER = struct.Struct("!I")
_encode = JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Closed(Exception):
    """The other side has gone."""


class Malformed(Exception):
    """The bytes do not follow this protocol."""


class NotPlain(Exception):
    """A value that cannot cross: too large, too deep, or of a kind that has no form here."""


def send_bytes(descriptor: int, content: bytes) -> None:
    """Write one frame."""
    write_all(descriptor, frame(content))


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write some bytes, however many writes that takes."""
    at = 0
    try:
        with memoryview(content) as view:
            while at < len(view):
                with view[at:] as left:
                    at += write(descriptor, left)
    except (BrokenPipeError, ConnectionResetError):
        raise Closed from None


def memory_file(content: bytes) -> int:
    """A file in memory with this content, as a descriptor at its beginning."""
    make = getattr(os, "memfd_create", None)
    if make is None:  # not on Linux, where only the caller of a container runs
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    else:
        descriptor = make("judge", os.MFD_CLOEXEC)
    write_all(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return int(descriptor)


def frame(content: bytes) -> bytes:
    """The content with its length before it."""
    if len(content) > MAX_FRAME:
        raise NotPlain(f"{len(content):,} bytes, which are more than {MAX_FRAME:,}")
    return _HEADER.pack(len(content)) + content


def receive_bytes(descriptor: int) -> bytes:
    """Read one frame; one that is too long is refused before anything is allocated."""
    (size,) = _HEADER.unpack(exactly(descriptor, _HEADER.size))
    if size > MAX_FRAME:
        raise Malformed(f"a frame of {size:,} bytes")
    return exactly(descriptor, size)


def exactly(descriptor: int, size: int) -> bytes:
    """Read so many bytes."""
    parts = []
    while size:
        try:
            part = read(descriptor, min(size, 1 << 20))
        except ConnectionResetError:
            raise Closed from None
        if not part:
            raise Closed
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_all(descriptor: int) -> bytes:
    """Read a file to its end."""
    parts = []
    while part := read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def send(descriptor: int, message: object) -> int:
    """Write one frame of JSON; its size."""
    content = _encode(message).encode()
    send_bytes(descriptor, content)
    return len(content)


def receive(descriptor: int) -> Any:
    """Read one frame of JSON."""
    return receive_sized(descriptor)[1]


def receive_sized(descriptor: int) -> tuple[int, Any]:
    """Read one frame of JSON; its size and its content."""
    content = receive_bytes(descriptor)
    try:
        return len(content), loads(content)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None


def frames(content: bytes) -> list[Any]:
    """The frames of JSON in some bytes, as far as they are whole and well formed."""
    messages = []
    while len(content) >= _HEADER.size:
        (size,) = _HEADER.unpack_from(content)
        body, content = content[_HEADER.size : _HEADER.size + size], content[_HEADER.size + size :]
        try:
            messages.append(loads(body))
        except (ValueError, RecursionError):
            break
    return messages


# -- values ---------------------------------------------------------------------------------------

_BIG = 1 << 4000 * 3
"""Longer integers cross as hexadecimal: Python limits decimal text, and rightly so."""
_PLAIN = frozenset({type(None), bool, str, float})
_TAGS: dict[type, str] = {
    list: "l",
    dict: "d",
    set: "s",
    deque: "q",
    Counter: "n",
    OrderedDict: "m",
    defaultdict: "D",
    bytearray: "a",
    array: "A",
}
_MOST_KNOWN = 2000
_TABLE: dict[int, Any] = {0: []}
_HELD_BY_THE_TABLE_ALONE = getrefcount(_TABLE[0])
"""References to a container that only a table holds; newer Pythons count fewer."""


class Codec:
    """Writes values for the other side of the border, and reads those of the other side.

    Plain data crosses as JSON in which everything but numbers, strings, booleans and None carries
    a tag; reading makes exact built-in types and never looks up a name that the other side chose.
    Containers that can be changed are known to both sides by a number: their contents are sent
    when they are new or have changed since, so that a list that is changed in place, returned
    again or shared between two results is one list here as it is there.

    ``first`` is 0 on one side and 1 on the other: the numbers of their containers never collide.
    ``export`` writes what is not plain data, ``adopt`` reads what this codec has no tag for.
    """

    def __init__(
        self, first: int, export: Callable[[Any, int], Any], adopt: Callable[[list[Any], int], Any]
    ) -> None:
        self._next = first
        self._export, self._adopt = export, adopt
        self._known: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._synced: dict[int, list[Any]] = {}
        self._pending: list[int] = []
        self.forgot = False

    def write(self, value: object) -> tuple[Any, list[Any]]:
        """A value, and the contents of containers that are new or have changed."""
        before = list(self._synced)
        data = self.encode(value)
        contents = []
        for number in before:
            content = self._content(self._known[number])
            if content != self._synced[number]:
                self._synced[number] = content
                contents.append([number, *content])
        while self._pending:
            number = self._pending.pop()
            self._synced[number] = content = self._content(self._known[number])
            contents.append([number, *content])
        return data, contents

    def read(self, data: Any, contents: Any) -> Any:
        """The value that the other side wrote."""
        try:
            for number, tag, *head in contents:
                if number not in self._known:
                    if type(number) is not int or type(tag) is not str:
                        raise Malformed("a container without a number")
                    self._register(number, _empty(tag, head))
            for number, tag, *items in contents:
                self._fill(self._known[number], tag, items)
                self._synced[number] = [tag, *items]
            return self.decode(data)
        except _UNREADABLE as error:
            raise Malformed(f"{type(error).__name__}: {str(error)[:200]}") from None

    def drop_unused(self) -> list[int]:
        """Forget containers that nothing else here refers to; their numbers."""
        containers = self._known
        numbers = [
            number
            for number in containers
            if getrefcount(containers[number]) <= _HELD_BY_THE_TABLE_ALONE
        ]
        if len(self._known) - len(numbers) > _MOST_KNOWN:
            # Comparing thousands of containers for every call would take longer than the tests.
            self.forgot = True
            numbers = list(self._known)[: len(self._known) // 2]
        self.forget(numbers)
        return numbers

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget containers that the other side no longer has."""
        for number in numbers:
            container = self._known.pop(number, None)
            self._numbers.pop(id(container), None)
            self._synced.pop(number, None)

    # -- writing ---------------------------------------------------------------------------------

    def encode(self, value: Any, depth: int = 0) -> Any:
        """A value with every container in it as a reference."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            return value if -_BIG < value < _BIG else ["i", hex(value)]
        if kind in _TAGS:
            number = self._numbers.get(id(value))
            if number is None:
                number = self._next
                self._next += 2
                self._register(number, value)
                self._pending.append(number)
            return ["@", number]
        if depth >= MAX_DEPTH:
            raise NotPlain(f"data nested deeper than {MAX_DEPTH}")
        if kind is tuple or kind is frozenset:
            return [
                "t" if kind is tuple else "f",
                *[self.encode(item, depth + 1) for item in value],
            ]
        return _rare(value, kind) or self._export(value, depth + 1)

    def _register(self, number: int, container: Any) -> None:
        self._known[number] = container
        self._numbers[id(container)] = number

    def _content(self, container: Any) -> list[Any]:
        kind = type(container)
        tag = _TAGS[kind]
        if kind is bytearray:
            return [tag, container.hex()]
        head: list[Any] = [tag]
        if kind is deque:
            head.append(container.maxlen)
        elif kind is array:
            head.append(container.typecode)
        elif kind is defaultdict:
            head.append(self.encode(container.default_factory))
        if isinstance(container, dict):
            items: Any = [part for pair in container.items() for part in pair]
        else:
            items = container
        encode = self.encode
        return head + [item if type(item) in _PLAIN else encode(item) for item in items]

    # -- reading ---------------------------------------------------------------------------------

    def decode(self, data: Any, depth: int = 0) -> Any:
        """The value of some data whose containers are known."""
        kind = type(data)
        if kind in _PLAIN or kind is int:
            return data
        if kind is not list or not data or type(data[0]) is not str or depth > MAX_DEPTH + 1:
            raise Malformed("a value without a tag, or nested too deeply")
        tag = data[0]
        if tag == "@":
            (number,) = data[1:]
            return self._known[number]
        if tag == "t":
            return tuple([self.decode(item, depth + 1) for item in data[1:]])
        if tag == "f":
            return frozenset([self.decode(item, depth + 1) for item in data[1:]])
        if tag in _SCALARS:
            kinds, make = _SCALARS[tag]
            parts = [self.decode(part, depth + 1) for part in data[1:]]
            if len(parts) != len(kinds) or any(
                type(part) not in kind
                for part, kind in zip(parts, kinds)  # noqa: B905
            ):
                raise Malformed(f"tag {tag!r} with the wrong parts")
            return make(*parts)
        return self._adopt(data, depth + 1)

    def _fill(self, container: Any, tag: str, items: list[Any]) -> None:
        if _TAGS[type(container)] != tag:
            raise Malformed("a container that has changed its type")
        decode = self.decode
        if tag == "a":
            (text,) = items
            container[:] = bytes.fromhex(text)
            return
        start = 1 if tag in "qAD" else 0  # behind what such a container is made with
        values = [
            item if type(item) in _PLAIN or type(item) is int else decode(item)
            for item in items[start:]
        ]
        if tag == "D":
            container.default_factory = decode(items[0])
        if tag in "dnmD":
            if len(values) % 2:
                raise Malformed("a dict with a key and no value")
            container.clear()
            for key, value in zip(values[::2], values[1::2]):  # noqa: B905 - Python 3.9
                container[key] = value  # not update, which adds in a Counter
        elif tag in "lA":
            container[:] = values if tag == "l" else array(container.typecode, values)
        else:
            container.clear()
            (container.update if tag == "s" else container.extend)(values)


_UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


_MAKERS: dict[str, type] = {tag: kind for kind, tag in _TAGS.items()}


def _empty(tag: str, items: list[Any]) -> Any:
    if tag == "q":
        return deque(maxlen=items[0])
    return array(items[0]) if tag == "A" else _MAKERS[tag]()


def _rare(value: Any, kind: type) -> list[Any] | None:
    write = _WRITERS.get(kind)
    if write is not None:
        return [kind.__name__, *write(value)]
    if kind.__name__ == "PosixPath" and kind.__module__.startswith("pathlib"):
        return ["PosixPath", str(value)]
    if kind.__name__ == "UUID" and kind.__module__ == "uuid":
        return ["UUID", value.hex]
    if value is Ellipsis:
        return ["..."]
    return ["NotImplemented"] if value is NotImplemented else None


def _int(value: int) -> Any:
    return value if -_BIG < value < _BIG else ["i", hex(value)]


def _zone(value: Any) -> Any:
    if value is None:
        return None
    if type(value) is not datetime.timezone:
        raise NotPlain(f"the time zone {type(value).__name__}")
    return value.utcoffset(None).total_seconds()


def _zone_back(offset: Optional[float]) -> Optional[datetime.timezone]:  # noqa: UP045
    return None if offset is None else datetime.timezone(datetime.timedelta(seconds=offset))


def _plain_time(value: Any) -> str:
    return str(value.replace(tzinfo=None).isoformat())


_WRITERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    bytes: lambda value: (value.hex(),),
    complex: lambda value: (value.real, value.imag),
    range: lambda value: (_int(value.start), _int(value.stop), _int(value.step)),
    Decimal: lambda value: (str(value),),
    Fraction: lambda value: (_int(value.numerator), _int(value.denominator)),
    datetime.date: lambda value: (value.isoformat(),),
    datetime.datetime: lambda value: (_plain_time(value), _zone(value.tzinfo), value.fold),
    datetime.time: lambda value: (_plain_time(value), _zone(value.tzinfo)),
    datetime.timedelta: lambda value: (value.days, value.seconds, value.microseconds),
    datetime.timezone: lambda value: (value.utcoffset(None).total_seconds(),),
}
DATA_TYPES = (str, float, *_TAGS, *_WRITERS)


def _moment(text: str, zone: Optional[float], fold: int) -> datetime.datetime:  # noqa: UP045
    return datetime.datetime.fromisoformat(text).replace(tzinfo=_zone_back(zone), fold=fold)


def _time(text: str, zone: Optional[float]) -> datetime.time:  # noqa: UP045
    return datetime.time.fromisoformat(text).replace(tzinfo=_zone_back(zone))


def _path(text: str) -> Any:
    from pathlib import PosixPath  # only now: it is slow to import

    return PosixPath(text)


_TEXT, _WHOLE, _REAL = (str,), (int,), (float,)
_ZONE = (float, type(None))
_SCALARS: dict[str, tuple[tuple[tuple[type, ...], ...], Callable[..., object]]] = {
    "i": ((_TEXT,), lambda text: int(text, 16)),
    "bytes": ((_TEXT,), bytes.fromhex),
    "complex": ((_REAL, _REAL), complex),
    "range": ((_WHOLE, _WHOLE, _WHOLE), range),
    "Decimal": ((_TEXT,), Decimal),
    "Fraction": ((_WHOLE, _WHOLE), Fraction),
    "date": ((_TEXT,), datetime.date.fromisoformat),
    "datetime": ((_TEXT, _ZONE, _WHOLE), _moment),
    "time": ((_TEXT, _ZONE), _time),
    "timedelta": ((_WHOLE, _WHOLE, _WHOLE), lambda *parts: datetime.timedelta(*parts)),
    "timezone": ((_REAL,), _zone_back),
    "UUID": ((_TEXT,), lambda text: __import__("uuid").UUID(hex=text)),  # slow to import
    "PosixPath": ((_TEXT,), _path),
    "...": ((), lambda: Ellipsis),
    "NotImplemented": ((), lambda: NotImplemented),
}
