"""The reader on the page works as the page says, installed through its entry point."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def blocks() -> list[tuple[str, str, str]]:
    text = PAGE.read_text(encoding="utf-8")
    return BLOCK.findall(text.partition("\n## Write your own reader")[2])


def test_the_reader_of_the_page(blocks: list[tuple[str, str, str]], tmp_path: Path) -> None:
    for _, rest, body in blocks:
        if file := re.search(r'title="([^"]+)"', rest):
            (tmp_path / file[1]).write_text(body, encoding="utf-8")
    (toml,) = [body for language, _, body in blocks if language == "toml"]
    # What pip would write: the entry point without quotes, in the metadata beside the module.
    installed = tmp_path / "slowmill-1.0.dist-info"
    installed.mkdir()
    (installed / "entry_points.txt").write_text(
        toml.replace('[project.entry-points."passhat.readers"]', "[passhat.readers]").replace(
            '"', ""
        )
    )
    (shown,) = [body for _, _, body in blocks if body.startswith("$ passhat")]
    command, _, expected = shown.partition("\n")
    done = subprocess.run(
        [sys.executable, "-m", "passhat", *command.split()[2:]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == expected
    assert done.returncode == 4
    assert "line 6: has 2 cells, not 4" in done.stderr


def test_it_has_about_thirty_lines(blocks: list[tuple[str, str, str]]) -> None:
    (code,) = [body for language, rest, body in blocks if language == "python" and "title=" in rest]
    assert len([line for line in code.splitlines() if line.strip()]) <= 32
