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


def shared(name: str) -> Path | None:
    """A folder of files that lie beside the checkout, or beside the folder it is in."""
    above = Path(__file__).resolve().parents[2:5]
    return next((path for at in above if (path := at / "shared" / name).is_dir()), None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real repeated-attempt data beside the checkout; never part of the project."""
    folder = shared("data")
    if folder is None:
        pytest.skip("the folder shared/data is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def shared_formats() -> Path:
    """Raw logs as other tools wrote them, beside the checkout; never part of the project."""
    folder = shared("formats")
    if folder is None:
        pytest.skip("the folder shared/formats is not beside this checkout")
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
