"""What many tests need: the shared data, and a command line that can be called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from passhat.cli import main

# The machines that run this are shared and noisy: an example is never too slow to be right.
settings.register_profile("passhat", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("passhat")

SHARED = Path(__file__).parent.parent.parent / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real repeated-attempt data beside the checkout; never part of the project."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the folder shared/data is not beside this checkout")
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def passhat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Call the command line in this process: ``passhat("report", "table.csv")``."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(int(code), captured.out, captured.err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    """Write a table and return its path: ``table("task,success\\na,1\\n")``."""

    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
