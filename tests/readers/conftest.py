"""Small logs in every format, made by tools/make_reader_fixtures.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from make_reader_fixtures import (
    SAMPLES,
    TAU2_INFO,
    inspect_log,
    json_text,
    simulation,
    zip_of,
)


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
