"""Small logs in every format, made by tools/make_reader_fixtures.py."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from make_reader_fixtures import (
    SAMPLES,
    TAU2_INFO,
    inspect_log,
    json_text,
    simulation,
    zip_of,
)
from passhat._serialize import to_data

READINGS = Path(__file__).with_name("readings.json")
"""What was read before: ``PASSHAT_WRITE_READINGS=1 pytest tests/readers`` writes it again."""


class Samples:
    """Writes a sample log, or any log that was changed a little."""

    names = tuple(SAMPLES)
    log = staticmethod(inspect_log)
    simulation = staticmethod(simulation)
    zip_of = staticmethod(zip_of)
    tau2_info = TAU2_INFO

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def content(self, name: str) -> bytes:
        return SAMPLES[name]()

    def write(
        self, name: str, content: bytes | object | None = None, file: str = "log.json"
    ) -> Path:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            content = self.content(name)
        path.write_bytes(content if isinstance(content, bytes) else json_text(content))
        return path


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    return Samples(tmp_path)


@pytest.fixture(params=Samples.names)
def sample_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def readings() -> dict[str, Any]:
    """What each test read before, by the name of the test."""
    return dict(json.loads(READINGS.read_text(encoding="utf-8")))


def _filled(data: Any) -> Any:
    """Data without what is empty."""
    if isinstance(data, dict):
        parts = {key: _filled(part) for key, part in data.items()}
        return {key: part for key, part in parts.items() if part not in (None, "", [], {})}
    return [_filled(part) for part in data] if isinstance(data, list) else data


@pytest.fixture
def as_before(
    request: pytest.FixtureRequest, tmp_path: Path, readings: dict[str, Any]
) -> Callable[[object], None]:
    """Compare all that is said of what was read with what was said before."""
    name = f"{request.path.stem} {request.node.name}"

    def compare(value: object) -> None:
        text = json.dumps(_filled(to_data(value))).replace(str(tmp_path), "")
        if os.environ.get("PASSHAT_WRITE_READINGS"):
            readings[name] = json.loads(text)
            lines = (f"{json.dumps(key)}: {json.dumps(readings[key])}" for key in sorted(readings))
            READINGS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        assert name in readings, "write readings.json again: see CONTRIBUTING.md"
        assert json.loads(text) == readings[name]

    return compare
