"""Results as plain data: ``to_data``, ``as_json``, and the base classes ``Plain`` and ``Screen``.

A result is a dataclass, and its fields are written. A class that writes anything else
derives from ``Plain`` and lists it in ``WRITTEN``, or, where values differ from the fields, in
``_as_dict``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import EllipsisType
from typing import Any, ClassVar

import msgspec

from passhat._display import html_text


class Text:
    """A value that is written as its text: a metric as ``pass^4``."""

    __slots__ = ()


class Plain:
    """A result that can be written as plain data.

    Attributes
    ----------
    SCHEMA : str
        Written first, as ``schema``, where it is not empty.
    WRITTEN : tuple
        The attributes that are written, in order, where they are not just the fields. A pair
        (key, attribute) is written under another name; ``...`` stands for all fields.
    """

    __slots__ = ()

    SCHEMA: ClassVar[str] = ""
    WRITTEN: ClassVar[tuple[str | tuple[str, str] | EllipsisType, ...]] = (...,)

    def __repr__(self) -> str:
        """Its first line: a result with all its fields fills a screen."""
        if type(self).__str__ is object.__str__:
            return f"<{type(self).__name__}>"
        return f"<{type(self).__name__}: {str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        return html_text(str(self), wrap=True)

    def to_dict(self) -> dict[str, Any]:
        """The result as dicts, lists, strings, numbers, booleans and ``None``, as in ``--json``."""
        data: dict[str, Any] = to_data(self)
        return data

    def _as_dict(self) -> dict[str, object]:
        """Values to write, by key; a value may be another result."""
        data: dict[str, object] = {}
        for entry in self.WRITTEN:
            if isinstance(entry, EllipsisType):
                data |= _fields(self)
            else:
                key, name = (entry, entry) if isinstance(entry, str) else entry
                data[key] = getattr(self, name)
        return data


class Screen(Plain):
    """A result that ``print`` shows as its command does, without colors and command lines."""

    __slots__ = ()

    @property
    def title(self) -> str:
        """A line that names the result."""
        return ""

    def __str__(self) -> str:
        # By name: what draws a screen lies layers above the results.
        screen: str = import_module("passhat.reporting.public").screen(self)
        return screen

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"


_LEAVES = frozenset({str, int, float, bool, type(None)})


def to_data(value: object) -> Any:
    """Dicts, lists, strings, numbers, booleans and ``None`` of a result and all it holds."""
    if type(value) in _LEAVES:
        return value
    if isinstance(value, Text | str):
        return str(value)
    if isinstance(value, Plain):
        schema: dict[str, Any] = {"schema": value.SCHEMA} if value.SCHEMA else {}
        return schema | {key: to_data(item) for key, item in value._as_dict().items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {key: to_data(item) for key, item in _fields(value).items()}
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_data(item) for item in value]
    return msgspec.to_builtins(value, enc_hook=_from_array)


def as_json(value: object) -> str:
    """JSON as commands print it: indented, every digit, a newline at the end."""
    # Not msgspec.json: it writes NaN as null, which would hide a bug.
    return json.dumps(to_data(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _fields(value: Any) -> dict[str, object]:
    names = [field.name for field in fields(value)]
    return {name: getattr(value, name) for name in names if not name.startswith("_")}


def _from_array(value: Any) -> Any:
    """NumPy's arrays and numbers as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no plain form.")
