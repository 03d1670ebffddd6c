"""The examples on the page about comparing run and say what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from passhat.cli.compare import command

PAGE = Path(__file__).parents[2] / "docs" / "comparing.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out
    assert "about 225 paired tasks" in printed
    assert "shows both" in printed
    assert "rank 1 to 2" in printed


def test_every_option_on_the_page_exists() -> None:
    known = {name for option in command.params for name in option.opts}
    assert set(re.findall(r"--[a-z][a-z-]*", PAGE.read_text(encoding="utf-8"))) <= known
