"""One way from results to plain data."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest

import passhat
from passhat._serialize import Plain, as_json, to_data

SOURCE = Path(passhat.__file__).parent


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner:
    x: float
    _hidden: int = 0


@dataclass(frozen=True, slots=True)
class Outer(Plain):
    SCHEMA = "test/1"
    WRITTEN = (..., ("other", "inner"), "total")

    name: str
    inner: Inner
    parts: tuple[Inner, ...]

    @property
    def total(self) -> float:
        return self.inner.x + sum(part.x for part in self.parts)


def test_fields_other_names_and_computed_values_in_this_order() -> None:
    data = Outer("a", Inner(1.5), (Inner(2.0),)).to_dict()
    assert [*data] == ["schema", "name", "inner", "parts", "other", "total"]
    assert data["schema"] == "test/1"
    assert data["other"] == data["inner"] == {"x": 1.5}
    assert data["total"] == 3.5


def test_arrays_enums_and_keys_become_plain() -> None:
    data = {1: np.array([1, 2]), "n": np.float64(0.5), "color": Color.RED, "set": {"one"}}
    assert json.loads(as_json(data)) == {"1": [1, 2], "n": 0.5, "color": "red", "set": ["one"]}
    assert type(to_data(np.float64(0.5))) is float


def test_what_has_no_plain_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no plain form"):
        to_data(object())
    with pytest.raises(ValueError, match="JSON compliant"):
        as_json({"value": float("nan")})  # null would hide a mistake


def test_no_class_writes_itself_by_hand() -> None:
    """``to_dict`` is defined once; a class overrides ``_as_dict`` where it must."""
    places = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        for outer in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(outer, ast.ClassDef)
        for node in outer.body
        if isinstance(node, ast.FunctionDef) and node.name in {"to_dict", "as_dict", "to_json"}
    ]
    assert [place.partition(":")[0] for place in places] == ["_serialize.py"]
