"""The generated parts of the documentation are up to date: `make docs` writes them again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _made(function: str) -> str:
    """Call a function of tools/write_docs.py where no other test has touched the commands."""
    code = f"import runpy; print(runpy.run_path('tools/write_docs.py')['{function}'](), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_reference() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == _made("command_reference")


def test_the_api_reference() -> None:
    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert written == _made("api_reference")


def test_the_picture_of_the_report() -> None:
    picture = (ROOT / "docs" / "images" / "report.svg").read_text(encoding="utf-8")
    assert picture == _made("report_picture")
    assert "http" not in picture.replace("http://www.w3.org", "")
