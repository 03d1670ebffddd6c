"""A real checkout of tau2-bench, where PASSHAT_TAU2 names one: its mock domain, 10 tasks x 4."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.store import open_store

REAL = Path(os.environ.get("PASSHAT_TAU2", "no checkout is named"))

GOLD = """
import json, os, pathlib

PATH = pathlib.Path(os.environ["PASSHAT_TAU2"], "data/tau2/domains/mock/tasks.json")
CRITERIA = {task["id"]: task["evaluation_criteria"] for task in json.loads(PATH.read_text())}

class Gold:
    def __init__(self):
        self.left = None
    def __call__(self, prompt, task):
        wanted = CRITERIA[task]
        if self.left is None:
            self.left = list(wanted.get("actions") or ())
        if self.left:
            name, given = self.left[0]["name"], self.left.pop(0)["arguments"]
        else:
            said = " ".join(["Done.", *(wanted.get("communicate_info") or ())])
            name, given = "respond", {"content": said}
        return "<json>" + json.dumps({"name": name, "arguments": given}) + "</json>"
"""


@pytest.mark.skipif(
    not (REAL / "src" / "tau2" / "registry.py").is_file() or not (REAL / "data").is_dir(),
    reason="PASSHAT_TAU2 names no real checkout",
)
def test_its_mock_domain_with_scripted_agent_and_user(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "gold_agent.py").write_text(GOLD)
    ended = passhat("run", "-s", "tau2:mock", "-a", "python:gold_agent:Gold", "-n", 4)
    assert ended.code == 0, ended.err
    with open_store(".passhat/passhat.db") as store:
        (run,) = store.runs()
    # Two tasks need what no gold action says: a check without actions, a tool of the user's.
    assert (run.tasks, run.attempts, run.missing, run.passed) == (10, 40, 0, 32)
