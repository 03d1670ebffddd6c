"""Whole results in a JSON file beside the tests: none changes without being noticed.

``PASSHAT_WRITE_RESULTS=1 python -m pytest tests/...`` writes the files again; the difference
belongs into the review.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from passhat._serialize import to_data

__all__ = ["check_results"]


def check_results(file: Path, results: dict[str, object]) -> None:
    """Compare every result, by its name, with the one in the file."""
    data = {name: _as_json(to_data(result)) for name, result in results.items()}
    if os.environ.get("PASSHAT_WRITE_RESULTS"):
        lines = (
            f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
            for name, value in data.items()
        )
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    expected = json.loads(file.read_text(encoding="utf-8"))
    assert list(data) == list(expected)
    for name, value in data.items():
        _compare(value, expected[name], name)


def _as_json(data: Any) -> Any:
    """Data with keys of text and numbers of six digits."""
    if isinstance(data, dict):
        return {str(key): _as_json(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_as_json(value) for value in data]
    return float(f"{data:.6g}") if isinstance(data, float) else data


def _compare(data: Any, expected: Any, where: str) -> None:
    if isinstance(data, dict) and isinstance(expected, dict):
        assert list(data) == list(expected), where
        for key, value in data.items():
            _compare(value, expected[key], f"{where}, {key}")
    elif isinstance(data, list) and isinstance(expected, list):
        assert len(data) == len(expected), where
        for place, (value, other) in enumerate(zip(data, expected, strict=True)):
            _compare(value, other, f"{where}, {place}")
    elif isinstance(data, float) and isinstance(expected, int | float):
        assert data == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True), where
    else:
        assert data == expected, where
        assert type(data) is type(expected), where
