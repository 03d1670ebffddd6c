"""Frames and values as they are written: byte by byte, up to their limits, and back."""

from __future__ import annotations

import datetime
import os
import struct
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath
from typing import Any
from uuid import UUID

import pytest

from passhat.judging.inside import wire


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = list(os.pipe())
    yield ends[0], ends[1]
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue  # the test has closed it


def test_bytes_are_written_however_many_writes_that_takes(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        sizes.append(len(data))
        return os.write(descriptor, bytes(data[:4]))

    monkeypatch.setattr(wire, "write", write)
    wire.write_all(pipe[1], b"abcdefghij")
    wire.write_all(pipe[1], b"")
    assert sizes == [10, 6, 2]
    assert os.read(pipe[0], 99) == b"abcdefghij"


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_an_end_that_has_gone_is_closed(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(wire, "write", fail)
    monkeypatch.setattr(wire, "read", fail)
    with pytest.raises(wire.Closed):
        wire.write_all(1, b"x")
    if error is ConnectionResetError:
        with pytest.raises(wire.Closed):
            wire.exactly(0, 1)


def test_so_many_bytes_are_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    left, sizes = [b"ab", b"cde", b"f", b""], []

    def read(_descriptor: int, size: int) -> bytes:
        sizes.append(size)
        return left.pop(0)

    monkeypatch.setattr(wire, "read", read)
    assert wire.exactly(0, 6) == b"abcdef"
    assert sizes == [6, 4, 1]
    assert wire.exactly(0, 0) == b""
    with pytest.raises(wire.Closed):
        wire.exactly(0, 3 << 20)
    assert sizes == [6, 4, 1, 1 << 20]
    left[:] = [b"abc", b"de", b""]
    assert wire.read_all(0) == b"abcde"
    assert sizes[-1] == 1 << 20


def test_a_frame_is_its_length_and_its_content(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wire.MAX_FRAME == 16 << 20
    monkeypatch.setattr(wire, "MAX_FRAME", 5)
    assert wire.frame(b"12345") == b"\0\0\0\x0512345"
    with pytest.raises(wire.NotPlain, match="6 bytes, which are more than 5"):
        wire.frame(b"123456")
    wire.send_bytes(pipe[1], b"12345")
    assert wire.receive_bytes(pipe[0]) == b"12345"
    os.write(pipe[1], struct.pack("!I", 6))
    with pytest.raises(wire.Malformed, match="a frame of 6 bytes"):
        wire.receive_bytes(pipe[0])
    assert wire.send(pipe[1], [1, 2]) == 5
    assert wire.receive_sized(pipe[0]) == (5, [1, 2])
    assert wire.send(pipe[1], {}) == 2
    assert wire.receive(pipe[0]) == {}
    for broken in (b"{", b"[" * 5, b"\xff"):
        wire.send_bytes(pipe[1], broken)
        with pytest.raises(wire.Malformed, match="not JSON"):
            wire.receive(pipe[0])


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (b"", []),
        (b"\0\0\0", []),
        (b"\0\0\0\0", []),
        (b"\0\0\0\x011", [1]),
        (b"\0\0\0\x011\0\0\0\x02[]\0\0", [1, []]),
        (b"\0\0\0\x011\0\0\0\x01{\0\0\0\x012", [1]),
        (b"\0\0\0\x0912", [12]),
        (b"\0\0\0\x0912]", []),
    ],
)
def test_frames_are_read_as_far_as_they_are_whole(content: bytes, messages: list[Any]) -> None:
    assert wire.frames(content) == messages


@pytest.mark.parametrize("is_linux", [True, False])
def test_a_file_in_memory_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, is_linux: bool
) -> None:
    if not is_linux:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    file = wire.memory_file(b"content")
    assert wire.read_all(file) == b"content"
    assert not os.get_inheritable(file)
    os.close(file)


# -- values ----------------------------------------------------------------------------------------

BIG = 1 << 12000
SCALARS: list[tuple[object, object]] = [
    (None, None),
    (True, True),
    (0.5, 0.5),
    ("a", "a"),
    (7, 7),
    (BIG - 1, BIG - 1),
    (1 - BIG, 1 - BIG),
    (BIG, ["i", hex(BIG)]),
    (-BIG, ["i", hex(-BIG)]),
    (b"\1\xff", ["bytes", "01ff"]),
    (1 - 2.5j, ["complex", 1.0, -2.5]),
    (range(1, 9, 2), ["range", 1, 9, 2]),
    (range(BIG), ["range", 0, ["i", hex(BIG)], 1]),
    (Decimal("1.50"), ["Decimal", "1.50"]),
    (Fraction(1, 3), ["Fraction", 1, 3]),
    (Fraction(BIG, BIG - 1), ["Fraction", ["i", hex(BIG)], BIG - 1]),
    (datetime.date(2024, 2, 29), ["date", "2024-02-29"]),
    (datetime.datetime(2024, 1, 2, 3, fold=1), ["datetime", "2024-01-02T03:00:00", None, 1]),
    (
        datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc),  # noqa: UP017
        ["datetime", "2024-01-02T00:00:00", 0.0, 0],
    ),
    (datetime.time(1, 2), ["time", "01:02:00", None]),
    (datetime.timedelta(-1, 2, 3), ["timedelta", -1, 2, 3]),
    (datetime.timezone(datetime.timedelta(hours=2)), ["timezone", 7200.0]),
    (UUID(int=7), ["UUID", f"{7:032x}"]),
    (PosixPath("a/b"), ["PosixPath", "a/b"]),
    (..., ["..."]),
    (NotImplemented, ["NotImplemented"]),
    ((1, (2,)), ["t", 1, ["t", 2]]),
    (frozenset({3}), ["f", 3]),
]
CONTAINERS: list[tuple[object, list[object]]] = [
    ([1, "a"], ["l", 1, "a"]),
    ({"k": 2}, ["d", "k", 2]),
    ({4}, ["s", 4]),
    (deque([1], 3), ["q", 3, 1]),
    (deque([1]), ["q", None, 1]),
    (Counter("aa"), ["n", "a", 2]),
    (OrderedDict(b=1, a=2), ["m", "b", 1, "a", 2]),
    (defaultdict(None, a=1), ["D", None, "a", 1]),
    (bytearray(b"\1\2"), ["a", "0102"]),
    (array("d", [1.5]), ["A", "d", 1.5]),
]


def _refuse(value: object, depth: int) -> Any:
    raise wire.NotPlain(f"{type(value).__name__} at {depth}")


def _adopt(data: list[Any], depth: int) -> object:
    raise wire.Malformed(f"{data} at {depth}")


def _codec(first: int = 0) -> wire.Codec:
    return wire.Codec(first, _refuse, _adopt)


@pytest.mark.parametrize(("value", "data"), SCALARS, ids=lambda one: type(one).__name__)
def test_the_form_of_a_value(value: object, data: object) -> None:
    assert _codec().write(value) == (data, [])
    again = _codec(1).read(data, [])
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(("value", "content"), CONTAINERS, ids=lambda one: type(one).__name__)
def test_the_form_of_a_container(value: Any, content: list[object]) -> None:
    near, far = _codec(), _codec(1)
    data, contents = near.write((value, value))
    assert (data, contents) == (["t", ["@", 0], ["@", 0]], [[0, *content]])
    again, same = far.read(data, contents)
    assert again is same
    assert (again, type(again)) == (value, type(value))
    assert contents == [[0, *content]]
    assert far.write(again) == (["@", 0], [])  # it is theirs, and as it was
    assert near.write(value) == (["@", 0], [])
    assert near.write([0]) == (["@", 2], [[2, "l", 0]])  # numbers of one side are even
    assert far.write([0]) == (["@", 1], [[1, "l", 0]])


@pytest.mark.parametrize(
    "data",
    [
        *([tag, *parts] for tag, parts in (
            ("i", []), ("i", [5]), ("i", ["1", "2"]), ("bytes", [5]), ("complex", [1.0]),
            ("complex", [1, 2]), ("range", [0, 1]), ("range", [0, 1.0, 1]), ("date", [5]),
            ("datetime", ["2024-01-02", None]), ("datetime", ["2024-01-02", 1, 0]),
            ("time", ["01:02:00"]), ("timedelta", [1, 2, 3.0]), ("timezone", [1]),
            ("UUID", [5]), ("PosixPath", [5]), ("...", [1]), ("NotImplemented", [None]),
            ("Decimal", [1.5]), ("Fraction", [1]), ("@", []), ("@", [0, 0]),
        )),
        {}, [], [5], ["?"], ["l", 1],
    ],
    ids=str,
)  # fmt: skip
def test_a_value_with_other_parts_is_refused(data: Any) -> None:
    with pytest.raises(wire.Malformed):
        _codec().read(data, [])


def _nest(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = (value,)
    return value


def test_values_are_nested_up_to_a_depth() -> None:
    assert wire.MAX_DEPTH == 150
    for depth in (wire.MAX_DEPTH, wire.MAX_DEPTH + 1):
        data: Any = 1
        for _ in range(depth):
            data = ["t", data]
        if depth == wire.MAX_DEPTH:
            assert _codec().encode(_nest(depth)) == data
        else:
            with pytest.raises(wire.NotPlain, match="deeper than 150"):
                _codec().encode(_nest(depth))
        assert _codec().decode(data) == _nest(depth)
    with pytest.raises(wire.Malformed, match="nested too deeply"):
        _codec().decode(["t", ["t", data]])


def test_what_has_no_form_is_left_to_the_ends() -> None:
    with pytest.raises(wire.NotPlain, match="object at 2"):
        _codec().write((object(),))
    with pytest.raises(wire.Malformed, match="at 2"):
        _codec().read(["t", ["?", 1]], [])
    zone = datetime.datetime(2024, 1, 2, tzinfo=type("Zone", (datetime.tzinfo,), {})())
    with pytest.raises(wire.NotPlain, match="the time zone Zone"):
        _codec().write(zone)


def test_containers_beyond_a_number_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_MOST_KNOWN", 4)
    codec = _codec()
    kept: list[list[int]] = [[number] for number in range(4)]
    for one in kept:
        codec.write(one)
    assert codec.drop_unused() == []
    assert not codec.forgot
    kept.append([4])
    codec.write(kept[4])
    assert codec.drop_unused() == [0, 2]
    assert codec.forgot
    kept[0].append(9)
    kept[2].append(9)
    assert codec.write(None) == (None, [[4, "l", 2, 9]])
    assert codec.write(kept[0]) == (["@", 10], [[10, "l", 0, 9]])
    codec.forget([99])


@pytest.mark.parametrize(
    "contents",
    [
        [["0", "l"]], [[0, 5]], [[0, "d", 1]], [[0, "a", "01", "02"]], [[0]], [[]],
        [[0, "l"], [0, "d"]], [[0, "q", -1]], [[0, "n", "a"]],
    ],
    ids=str,
)  # fmt: skip
def test_contents_that_are_none_are_refused(contents: Any) -> None:
    with pytest.raises(wire.Malformed):
        _codec().read(None, contents)
