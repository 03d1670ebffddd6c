"""The generated parts of the documentation are up to date: `make docs` writes them again."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def writer() -> dict[str, object]:
    return runpy.run_path(str(ROOT / "tools" / "write_docs.py"))


def test_the_command_reference(writer: dict[str, object]) -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == writer["command_reference"]()  # type: ignore[operator]


def test_the_picture_of_the_report(writer: dict[str, object]) -> None:
    picture = (ROOT / "docs" / "images" / "report.svg").read_text(encoding="utf-8")
    assert picture == writer["report_picture"]()  # type: ignore[operator]
    assert "http" not in picture.replace("http://www.w3.org", "")
