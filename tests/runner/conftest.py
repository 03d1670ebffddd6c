"""A suite of one-line questions and a few agents, good and bad, in a folder of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENTS = """
import os, random, time

def coin(prompt, attempt):
    return "yes" if random.Random(attempt.seed).random() < 0.5 else "no"

def yes(prompt):
    return "yes"

def no(prompt):
    return "no"

async def ayes(prompt, attempt):
    assert attempt.task.startswith("t") and isinstance(attempt.seed, int)
    return "yes"

def hangs(prompt):
    time.sleep(60)

def raises(prompt):
    raise RuntimeError("my key is sk-abcdefghijklmnopqrst")

def silent(prompt):
    return " \\n"

def nonsense(prompt):
    return 42

def long(prompt):
    return os.urandom(20_000).hex()

class Remembers:
    def __init__(self):
        self.heard = []
    def __call__(self, prompt):
        self.heard.append(prompt)
        return "yes" if len(self.heard) == 1 else "no"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with tasks.jsonl (five tasks) and agents, which passhat is called in."""
    lines = [{"id": f"t{i}", "prompt": "yes?", "answer": "yes"} for i in range(5)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "some_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("some_agents", None)
