"""The contract of a reader."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from passhat.errors import InvalidValue
from passhat.readers import Reader
from passhat.readers.base import _load_entry, load_readers


@pytest.mark.parametrize(
    ("name", "meant"),
    [("recognises", "recognizes"), ("recognise", "recognizes"), ("reads", "read"), ("nam", "name")],
)
def test_a_misspelt_hook_is_pointed_out(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine\.{name} .*Did you mean '{meant}'"):
        type("Mine", (Reader,), {name: lambda *_: None})


def test_other_names_are_free() -> None:
    type("Mine", (Reader,), {"name": "mine", "columns": 3, "_reads": 1, "helper": len})


def test_a_reader_without_its_methods_says_which() -> None:
    reader = type("Mine", (Reader,), {})()
    with pytest.raises(NotImplementedError, match="Mine needs a method recognizes"):
        reader.recognizes(None)
    with pytest.raises(NotImplementedError, match="Mine needs a method read"):
        reader.read(None, None)


def test_a_plug_in_that_cannot_be_used_is_named() -> None:
    entry = EntryPoint("mine", "collections:OrderedDict", "passhat.readers")
    with pytest.raises(InvalidValue, match=r"'mine'.*not a subclass"):
        _load_entry(entry)
    with pytest.raises(InvalidValue, match=r"'mine'.*cannot be loaded"):
        _load_entry(EntryPoint("mine", "no_such_module:Mine", "passhat.readers"))


def test_general_readers_are_asked_last() -> None:
    names = [reader.name for reader in load_readers()]
    assert names[-1] == "table"
    assert len(names) == len(set(names))
