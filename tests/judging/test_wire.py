"""The border: what is plain crosses unchanged; anything else is refused, and nothing is guessed."""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict, deque
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
    SCALARS | st.binary() | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner) | st.sets(KEYS)
    ),
    max_leaves=20,
)


def refuse(value: object) -> list[Any]:
    raise wire.NotPlain(type(value).__name__)


def adopt(stand_in: list[Any]) -> object:
    raise wire.Malformed(str(stand_in))


def crossed(value: object) -> Any:
    return wire.decode(json.loads(json.dumps(wire.encode(value, refuse))), adopt)


@given(PLAIN)
def test_plain_data_crosses_unchanged(value: object) -> None:
    again = crossed(value)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        *(Counter("aab"), OrderedDict(a=1), deque([1]), Decimal("1.50"), Fraction(1, 3)),
        *(range(1, 9, 2), bytearray(b"x"), frozenset({1}), ..., 10**6000, -(2**70000)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rarer_types_cross_too(value: object) -> None:
    again = crossed(value)
    assert again == value
    assert type(again) is type(value)


def test_subclasses_and_objects_are_not_plain() -> None:
    for value in (type("I", (int,), {})(1), object(), print, type("L", (list,), {})()):
        with pytest.raises(wire.NotPlain):
            wire.encode(value, refuse)


@pytest.mark.parametrize(
    "data",
    [
        *({}, {"a": 1}, [], [1], ["?"], ["l", {}], ["d", 1], ["s", ["l"]], ["i", "zz"], ["i", 5]),
        *(["c", 1, 2], ["r", 0, 1, 0], ["D", "x"], ["F", 1, 0], ["b", "0"], [["l"]], ["o", 1]),
    ],
)
def test_malformed_data_is_refused(data: Any) -> None:
    with pytest.raises(wire.Malformed):
        wire.decode(data, adopt)


def test_depth_is_limited_on_both_sides() -> None:
    deep: list[Any] = []
    for _ in range(wire.MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(wire.NotPlain):
        wire.encode(deep, refuse)
    data: list[Any] = ["l"]
    for _ in range(wire.MAX_DEPTH + 2):
        data = ["l", data]
    with pytest.raises(wire.Malformed):
        wire.decode(data, adopt)


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
