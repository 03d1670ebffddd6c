"""Code suites in the runner: judged in shared sandboxes, refused before the first attempt."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import ReadError
from passhat.suites import load_suite

RUN = ("run", "-s", "code:tasks.jsonl", "-a", "python:coders:write")
PROMPT = 'def cap(days):\n    """At most 5."""\n'
TASK = {
    "task_id": "cap",
    "prompt": PROMPT,
    "entry_point": "cap",
    "test": "def check(f):\n    assert [f(x) for x in (1, 5, 9)] == [1, 5, 5]",
}
SCRIPT = {
    "task_id": "sum",
    "question": "Add the numbers of a line.",
    "cases": [{"input": "1 2\n", "output": "3\n"}],
}
CODERS = """
import pathlib, time

ANSWERS = {
    "cap": ["    return min(days, 5)", "```python\\nreturn min(5, days)\\n```", "    return days",
            "    return 1 / 0", "    return (", "def other(): pass\\ncap = None\\ndel cap"],
    "sum": ["print(sum(map(int, input().split())))", "while True: pass", "x = bytearray(2**40)",
            "import os; os.chroot('/')", "print(4)", "```\\nprint(3)\\n```"],
}
calls = []

def write(prompt, attempt):
    pathlib.Path("called").touch()
    calls.append(attempt.task)
    return ANSWERS[attempt.task][calls.count(attempt.task) - 1]

def endless(prompt):
    pathlib.Path("called").touch()
    return "    while True: pass"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.jsonl").write_text(f"{json.dumps(TASK)}\n{json.dumps(SCRIPT)}\n")
    (tmp_path / "coders.py").write_text(CODERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "coders", raising=False)
    return tmp_path


@pytest.mark.usefixtures("way")
def test_programs_are_judged_as_they_come(passhat: Callable[..., Any]) -> None:
    ended = passhat(*RUN, "-n", 6, "--jobs", 1, "--set", "program_seconds=0.5")
    assert ended.code == 0, ended.err
    assert Counter(_ended()) == {
        ("cap", 1, ""): 2, ("cap", 0, "wrong_answer"): 1, ("cap", 0, "exception"): 1,
        ("cap", 0, "syntax_error"): 1, ("cap", 0, "missing_entry_point"): 1,
        ("sum", 1, ""): 2, ("sum", 0, "timeout"): 1, ("sum", 0, "memory"): 1,
        ("sum", 0, "sandbox_violation"): 1, ("sum", 0, "wrong_answer"): 1,
    }  # fmt: skip
    assert "0.5 s cpu" in str(_protocol()["judge"])
    assert not _sandboxes(os.getpid())


def test_a_refusal_comes_before_the_first_attempt(
    passhat: Callable[..., Any], folder: Path
) -> None:
    ended = passhat(*RUN, "--sandbox", "docker:no/such/image:1")
    assert ended.code == 2
    assert "docker:no/such/image:1: not available" in ended.err
    assert not (folder / "called").exists()
    assert passhat(*RUN, "--sandbox", "chroot").code == 2


def test_no_sandbox_is_loud_and_in_the_protocol(passhat: Callable[..., Any]) -> None:
    ended = passhat(*RUN, "-n", 1, "--task", "cap", "--sandbox", "none")
    assert "WARNING: no sandbox" in ended.err
    assert "UNSAFE: no sandbox" in str(_protocol()["judge"])


def test_the_options_mean_nothing_to_other_suites(passhat: Callable[..., Any]) -> None:
    ended = passhat("run", "-s", "orderdesk/retail", "-a", "demo:careful", "--sandbox", "landlock")
    assert ended.code == 2
    assert "no programs to judge" in ended.err


def test_a_suite_that_tells_an_agent_nothing(folder: Path) -> None:
    (folder / "silent.jsonl").write_text('{"task_id": "a", "test_list": ["assert f() == 1"]}\n')
    with pytest.raises(ReadError, match="no prompt for an agent"):
        load_suite("code:silent.jsonl")


def test_ctrl_c_twice_ends_at_once_and_leaves_nothing(folder: Path) -> None:
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "passhat"),
            *("run", "-s", "code:tasks.jsonl", "-a", "python:coders:endless", "--task", "cap"),
            *("-n", "50", "--set", "program_seconds=600"),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    with running, contextlib.ExitStack() as always:
        always.callback(running.kill)  # a test that fails must not wait for a program without end
        _until(lambda: (folder / "called").exists() and len(_sandboxes(running.pid)) >= 4)
        below = _below(running.pid)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert any("finishing what is in flight" in line for line in running.stderr)
        running.send_signal(signal.SIGINT)
        assert running.wait(120) == 130
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _ended() -> list[tuple[str, int, str]]:
    with contextlib.closing(sqlite3.connect(".passhat/passhat.db")) as store:
        return store.execute(
            "SELECT t.task, a.verdict, a.why FROM attempts a JOIN tasks t ON t.key = a.task"
        ).fetchall()


def _protocol() -> dict[str, object]:
    with contextlib.closing(sqlite3.connect(".passhat/passhat.db")) as store:
        found: dict[str, object] = json.loads(
            store.execute("SELECT protocol FROM runs").fetchone()[0]
        )
    return found


def _sandboxes(root: int) -> list[int]:
    """Ours among those below one: other tests keep servers, and Ray's come and go."""
    found = []
    for pid in _below(root):
        with contextlib.suppress(OSError):
            if b"from inside.server import" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def _below(root: int) -> list[int]:
    """Every process below one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(words[1])
    found: list[int] = []
    border = {root}
    while border:
        border = {pid for pid, parent in parents.items() if parent in border}
        found += sorted(border)
    return found
