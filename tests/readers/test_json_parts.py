"""JSON cut into parts without decoding: the same parts that Python's decoder gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.readers.parsing import container_end, find_container, outline, parts

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\,[]{}: é\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\,:{[é', max_size=4), inner)
    ),
    max_leaves=8,
)
SPACES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")])


def _text(value: object, spaces: tuple[str, str], *, ascii_only: bool = True) -> bytes:
    return json.dumps(value, separators=spaces, ensure_ascii=ascii_only).encode()


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=4), SPACES, st.booleans())
def test_the_parts_of_a_list_are_its_elements(
    values: list[Any], spaces: tuple[str, str], ascii_only: bool
) -> None:
    data = b"  " + _text(values, spaces, ascii_only=ascii_only) + b" rest"
    found = list(parts(data, 2))
    assert [json.loads(part.content) for part in found] == values
    assert all(part.complete and part.key == "" for part in found)
    assert container_end(data, 2) == len(data) - len(b" rest")


@settings(max_examples=40)
@given(st.dictionaries(st.text('a"\\,:{[é\n', max_size=4), VALUES, max_size=4), SPACES)
def test_the_parts_of_an_object_are_its_entries(
    entries: dict[str, Any], spaces: tuple[str, str]
) -> None:
    data = _text(entries, spaces)
    assert {part.key: json.loads(part.content) for part in parts(data, 0)} == entries
    assert outline(data).keys == set(entries)
    for key, value in entries.items():
        place = find_container(data, [key])
        if isinstance(value, list | dict):
            assert place is not None
            assert json.loads(data[place : container_end(data, place)]) == value
        else:
            assert place is None


@settings(max_examples=40)
@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_of_a_file_that_was_cut_the_parts_before_are_whole(
    values: list[Any], data: st.DataObject
) -> None:
    whole = _text(values, (",", ":"))
    length = data.draw(st.integers(1, len(whole) - 1))
    found = list(parts(whole[:length], 0))
    sound = [json.loads(part.content) for part in found if part.complete]
    assert sound == values[: len(sound)]
    assert len(found) - len(sound) <= 1  # only the last may be incomplete
    assert container_end(whole[:length], 0) is None


def test_a_container_is_found_by_its_path_and_not_by_its_name() -> None:
    data = b'{"note": "results: [1]", "old": {"results": [1]}, "run": {"results": [2]}}'
    place = find_container(data, ["run", "results"])
    assert place is not None
    assert data[place : container_end(data, place)] == b"[2]"
    assert find_container(data, ["results"]) is None
    assert find_container(data, ["note", "results"]) is None
    assert find_container(data, []) == 0
    assert find_container(b" \n", []) is None
    assert find_container(b'{"a": {"c": 1}, "b": [2]} {"d": [3]}', ["b"]) == 21
    assert find_container(b'{"a": {"c": 1}, "b": [2]} {"d": [3]}', ["d"]) is None
    assert find_container(b'\xef\xbb\xbf {"a": [1]}', ["a"]) == 10


@pytest.mark.parametrize(
    ("head", "opens", "keys"),
    [
        (b'{"a": 1, "b": {"c": 2}, "d', "{", {"a", "b"}),
        (b'\xef\xbb\xbf\r\n [ {"a": "x:y", "b": [', "[", {"a", "b"}),
        (b'[1, {"a": 2}]', "[", set()),
        (b'["{", "a"]', "[", set()),
        (b'{"a\\u0062": 1}', "{", {"ab"}),
        (b'{"a": [{}]} {"b": 1}', "{", {"a"}),
        (b'{"a": "b\\": 1, \\"c"}', "{", {"a"}),
        (b"task,success\n", "", set()),
        (b"", "", set()),
        (b"{", "{", set()),
    ],
)
def test_the_outline_of_a_head(head: bytes, opens: str, keys: set[str]) -> None:
    found = outline(head)
    assert (found.opens, set(found.keys)) == (opens, keys)
