"""The border: data crosses unchanged, containers stay themselves, and nonsense is refused."""

from __future__ import annotations

import datetime
import json
import os
import uuid
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.judging.inside import wire

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.text())
PLAIN: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.binary() | st.complex_numbers(allow_nan=False) | st.datetimes() | st.uuids(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner) | st.sets(KEYS)
    ),
    max_leaves=20,
)


def refuse(value: object, _depth: int) -> Any:
    raise wire.NotPlain(type(value).__name__)


def adopt(data: list[Any], _depth: int) -> object:
    raise wire.Malformed(str(data))


class Border:
    """Both sides of a border, with JSON between."""

    def __init__(self) -> None:
        self.here = wire.Codec(0, refuse, adopt)
        self.there = wire.Codec(1, refuse, adopt)

    def out(self, value: object) -> Any:
        return self.there.read(*json.loads(json.dumps(self.here.write(value))))

    def back(self, value: object) -> Any:
        return self.here.read(*json.loads(json.dumps(self.there.write(value))))


@given(PLAIN)
def test_plain_data_crosses_unchanged(value: object) -> None:
    again = Border().out(value)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        *(Counter("aab"), OrderedDict(b=1, a=2), deque([1], 3), Decimal("1.50"), Fraction(1, 3)),
        *(range(1, 9, 2), bytearray(b"x"), frozenset({1}), ..., 10**6000, -(2**70000)),
        *(array("d", [1.5]), defaultdict(None, a=1), datetime.date(2024, 2, 29), uuid.UUID(int=7)),
        datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        *(datetime.time(1, 2, 3), datetime.timedelta(-1, 2, 3), NotImplemented),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rarer_types_cross_too(value: object) -> None:
    again = Border().out(value)
    assert again == value
    assert type(again) is type(value)
    assert getattr(again, "maxlen", None) == getattr(value, "maxlen", None)


def test_a_container_is_the_same_one_again() -> None:
    border = Border()
    row = [0]
    grid = border.out([row, row])
    assert grid[0] is grid[1]
    grid[0].append(1)
    assert border.back(grid[0]) is row
    assert row == [0, 1]
    row.append(2)
    border.out(None)
    assert grid[1] == [0, 1, 2]


def test_what_contains_itself_and_what_is_deep_cross() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    again = Border().out(loop)
    assert again[1] is again
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    depth, again = 0, Border().out(deep)
    while again:
        depth, again = depth + 1, again[0]
    assert depth == 5000


def test_containers_that_nothing_refers_to_are_forgotten() -> None:
    border = Border()
    kept: list[int] = []
    border.out([kept])
    border.out((1, [2]))
    assert len(border.here.drop_unused()) == 2
    kept.append(1)
    assert [number for number, *_ in border.here.write(None)[1]] == [2]


def test_subclasses_and_objects_are_not_plain() -> None:
    for value in (type("I", (int,), {})(1), object(), print, type("L", (list,), {})()):
        with pytest.raises(wire.NotPlain):
            Border().out(value)
    deep: tuple[Any, ...] = ()
    for _ in range(wire.MAX_DEPTH + 2):
        deep = (deep,)
    with pytest.raises(wire.NotPlain):
        Border().out(deep)


BROKEN: list[Any] = [{}, [], [1], ["?"], ["@", 5], ["i", "zz"], ["i", 5], [["l"]]]
BROKEN += [["complex", 1, 2], ["range", 0, 1, 0], ["Fraction", 1, 0], ["bytes", "0"]]
BROKEN += [["date", "x"], ["UUID", "q"], ["f", ["@", 1]]]


@pytest.mark.parametrize(
    ("data", "contents"),
    [
        *[(data, []) for data in BROKEN],
        *[(None, [content]) for content in ([1, "d", 1], [1, "?"], ["x", "l"], [1], [1, "A", "?"])],
        (None, [[1, "s", ["@", 1]]]),
        (None, [[1, "l", {}]]),
        (None, [[1, "d", ["@", 1], 2]]),
        (None, [[1, "q", "x"]]),
    ],
)
def test_malformed_data_is_refused(data: Any, contents: list[Any]) -> None:
    with pytest.raises(wire.Malformed):
        wire.Codec(0, refuse, adopt).read(data, contents)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(content: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    try:
        wire.receive(reading)
    except (wire.Malformed, wire.Closed):
        pass
    finally:
        os.close(reading)
    assert isinstance(wire.frames(content), list)
