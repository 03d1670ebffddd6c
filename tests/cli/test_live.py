"""A run as it goes on: lines, a line per attempt, and a bar on a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from passhat.cli.shared.live import Display, attempt_line
from passhat.runner import Progress
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement

FAILED = Judgement.failed(FailureCategory.TIMEOUT, "max_steps: not done after 30 turns")


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def feed(display: Display, clock: Clock, count: int, total: int, **measures: float) -> Progress:
    progress = Progress(total=total)
    for number in range(1, count + 1):
        clock.now += 0.5
        seconds = measures.get("seconds", 1.0)
        record = AttemptRecord(
            *("t", number, Judgement.passed()),
            seconds=seconds,
            steps=3,
            cost=measures.get("cost"),
            tokens=measures.get("tokens"),
            retries=int(measures.get("retries", 0)),
        )
        progress.count(record)
        display.note_attempt(record, progress)
    return progress


def test_lines_come_every_two_seconds_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display("x", 2, terminal=False, clock=clock) as display:
        feed(display, clock, 20, 20)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("5 of 20 attempts: 5 passed, 0 failed, 0 missing, ")
    assert re.search(r"\d s to \d+ s to go$", lines[0])
    assert lines[-1] == "20 of 20 attempts: 20 passed, 0 failed, 0 missing"


def test_cost_tokens_and_retries_are_shown_where_they_are_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    display = Display("x", 2, terminal=False, clock=clock)
    feed(display, clock, 10, 20, cost=0.25, tokens=1500, retries=1)
    line = display.line()
    assert "10 retries" in line
    assert "15,000 tokens" in line
    found = re.search(r"cost \$2\.50, \$([\d.]+) to \$([\d.]+) in all", line)
    assert found is not None
    assert 3 < float(found[1]) < 5 < float(found[2]) < 8
    capsys.readouterr()
    free = Display("x", 2, terminal=False, clock=clock)
    feed(free, clock, 10, 20)
    assert "cost" not in free.line()
    assert "tokens" not in free.line()


def test_a_run_that_was_stopped_says_once_what_it_used(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display("x", 2, terminal=False, clock=clock) as display:
        progress = feed(display, clock, 2, 20, cost=0.25, tokens=100)
        progress.count(AttemptRecord("t", 3, FAILED))
    assert capsys.readouterr().err.splitlines() == [
        "3 of 20 attempts: 2 passed, 1 failed, 0 missing, 200 tokens, "
        "cost at least $0.5, unknown for 1 attempt"
    ]


def test_a_line_for_every_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    assert attempt_line(AttemptRecord("t", 3, FAILED, seconds=2.5, steps=30, retries=2)) == (
        "✗ t#3 failed, reward 0, 30 steps, 2.5 s, 2 retries, "
        "timeout: max_steps: not done after 30 turns"
    )
    lost = Judgement.missing(MissingReason.JUDGE_ERROR)
    assert attempt_line(AttemptRecord("t", 1, lost)) == (
        "? t#1 missing, reward –, – steps, – s, judge_error"
    )
    clock = Clock()
    with Display("x", 2, verbose=True, terminal=False, clock=clock) as display:
        feed(display, clock, 2, 2)
    assert "✓ t#2 passed, reward 1, 3 steps, 1.0 s\n" in capsys.readouterr().err


def test_the_bar_shows_what_the_line_says(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Display("agent at [suite]", 2, terminal=True, clock=clock) as display:
        feed(display, clock, 5, 20, cost=0.01)
        display.note("finishing what is in flight")
        from rich.console import Console

        screen = Console(width=100)
        with screen.capture() as caught:
            screen.print(display._paint())
    text = caught.get()
    assert "agent at [suite]" in text
    assert "5 of 20" in text
    assert "✓ 5 passed   ✗ 0 failed   ? 0 missing" in text
    assert "cost $0.05" in text
    assert "to go" in text
    assert "finishing what is in flight" in text
    assert "5 of 20 attempts: 5 passed" in capsys.readouterr().err


def _until(master: int, wanted: str, said: str = "") -> str:
    deadline = time.monotonic() + 300
    while wanted not in said:
        assert time.monotonic() < deadline, said
        if select.select([master], [], [], 1.0)[0]:
            try:
                said += os.read(master, 65536).decode("utf-8", "replace")
            except OSError:  # the other end is closed
                break
    return said


def test_on_a_real_terminal_with_ctrl_c(tmp_path: Path) -> None:
    lines = [{"id": f"t{i}", "prompt": "yes?", "answer": "yes"} for i in range(5)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "slow_agent.py").write_text(
        "import os, time\n"
        "calls = []\n"
        "def agent(prompt):\n"
        "    calls.append(prompt)\n"
        "    time.sleep(0.05)\n"
        "    while len(calls) > 40 and not os.path.exists('go'):\n"
        "        time.sleep(0.02)\n"
        "    return 'yes'\n"
    )
    master, slave = pty.openpty()
    words = ["run", "-s", "jsonl:tasks.jsonl", "-a", "python:slow_agent:agent", "-n", "500"]
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", *words],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
        stdout=subprocess.DEVNULL,
        stderr=slave,
    )
    os.close(slave)
    try:
        said = _until(master, "to go")
        process.send_signal(signal.SIGINT)
        said = _until(master, "finishing what is in flight", said)
        (tmp_path / "go").touch()
        said = _until(master, "the same command continues", said)
        assert process.wait(timeout=300) == 130
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert "2,500 attempts to make" in said
    assert "━" in said
    assert "\x1b[?25h" in said  # the cursor is shown again
    assert re.search(r"\d+ of 2,500 attempts: \d+ passed, 0 failed", said)
