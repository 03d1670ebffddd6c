"""One way from results to plain data: ``to_data`` and ``as_json``.

A result is a dataclass, and its fields are what is written. Two class attributes add to them:
``SCHEMA`` is written first as ``schema``, and ``COMPUTED`` names properties that are written after
the fields. The statistics declare both without importing anything from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

__all__ = ["as_json", "to_data"]


def to_data(value: object) -> Any:
    """Dicts, lists, strings, numbers, booleans and ``None`` of a result and all it holds."""
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_data(item) for item in value]
    return msgspec.to_builtins(value, enc_hook=_from_array)


def as_json(value: object) -> str:
    """JSON as commands print it: indented, every digit, a newline at the end."""
    # Not msgspec.json: it writes NaN as null, which would hide a mistake of ours.
    return json.dumps(to_data(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _object(value: Any) -> dict[str, Any]:
    if hasattr(value, "to_dict"):
        return {key: to_data(item) for key, item in value.to_dict().items()}
    kind = type(value)
    schema: dict[str, Any] = {"schema": kind.SCHEMA} if hasattr(kind, "SCHEMA") else {}
    names = [field.name for field in fields(value) if not field.name.startswith("_")]
    names += getattr(kind, "COMPUTED", ())
    return schema | {name: to_data(getattr(value, name)) for name in names}


def _from_array(value: Any) -> Any:
    """NumPy's arrays and numbers as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no plain form.")
