"""A suite of five one-line questions in a folder of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.runner import queues


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers late is not announced: what is told is the trouble that a test makes."""
    monkeypatch.setattr(queues, "_ANNOUNCE_SECONDS", 3600.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with tasks.jsonl, which passhat is called in."""
    lines = [{"id": f"t{i}", "prompt": "yes?", "answer": "yes"} for i in range(5)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    agents = "import os\n\ndef long(prompt):\n    return os.urandom(20_000).hex()\n"
    (tmp_path / "some_agents.py").write_text(agents)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("some_agents", None)
