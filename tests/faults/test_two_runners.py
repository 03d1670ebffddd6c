"""Two runners of one run: paused, killed on another host, or unable to see each other's process.

In 0.1.0 a runner that came back after a pause mixed its conversations with the other one's
verdicts; a runner that was killed on another host stranded its attempts; and one with the same host
name in another process namespace had its live attempts taken.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from passhat.store import open_store
from passhat.store.database import is_address

ATTEMPTS = 10
JOBS = 4
PATIENCE = 300.0

AGENT = """
import os, time

def agent(prompt, attempt):
    with open("calls.txt", "a") as calls:
        calls.write(os.environ["WHO"] + "\\n")
    while os.environ["WHO"] == "A" and not os.path.exists("go"):
        time.sleep(0.02)
    return {"A": "yes", "B": "no"}[os.environ["WHO"]] + " says " + os.environ["WHO"]
"""


SHORT, LONG = 2, 30
"""Leases in seconds: one that runs out while a runner stands still, and one that does not."""


@contextmanager
def in_session(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own, which ends with it, paused or not."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for sign in (signal.SIGCONT, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, sign)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def runner(
    who: str, store: str, *around: str, lease: int = SHORT
) -> Iterator[subprocess.Popen[str]]:
    """``passhat run`` as its own process, inside other commands such as unshare."""
    command = [
        *(*around, sys.executable, "-m", "passhat", "run", "-s", "jsonl:tasks.jsonl"),
        *("-a", "python:waiting:agent", "-n", str(ATTEMPTS // 5), "--jobs", str(JOBS)),
        *("--set", f"lease={lease}", "--store", store),
    ]
    with in_session(command, {"WHO": who}) as process:
        yield process


def pause(process: subprocess.Popen[str], store: str) -> None:
    """Stop a runner; not while it writes, when a SQLite file is locked for everybody."""
    while True:
        os.killpg(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        if is_address(store) or _can_be_written(store):
            return
        os.killpg(process.pid, signal.SIGCONT)
        time.sleep(0.02)


def _can_be_written(path: str) -> bool:
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


def wait_for_calls(count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not Path("calls.txt").exists() or len(calls()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def calls() -> list[str]:
    return Path("calls.txt").read_text().split()


def namespaces(*kinds: str) -> list[str]:
    """A command that runs another one in namespaces of its own."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, *kinds]


@pytest.fixture
def place(folder: Path, store_place: str) -> str:
    (folder / "waiting.py").write_text(AGENT)
    tasks = (
        (folder / "tasks.jsonl").read_text().replace('"answer": "yes"', '"answer": "yes says A"')
    )
    (folder / "tasks.jsonl").write_text(tasks)
    return store_place


def ended(place: str) -> list[tuple[int, str]]:
    """Verdict and answer of every finished attempt."""
    with open_store(place) as store:
        (run,) = store.runs()
        assert store.is_sound()
        found = []
        for task, number, verdict in store.verdicts(run.id):
            attempt = store.attempt(run.id, task, number)
            assert attempt is not None
            (answer,) = [entry["text"] for entry in attempt.transcript if entry["role"] == "agent"]
            found.append((int(verdict), answer))
        return found


def test_a_runner_that_was_paused_for_longer_than_its_lease_writes_nothing(place: str) -> None:
    with runner("A", place) as paused:
        wait_for_calls(JOBS)
        pause(paused, place)
        with runner("B", place) as other:
            out, _ = other.communicate(timeout=PATIENCE)
            assert other.returncode == 0, out
        Path("go").touch()
        os.killpg(paused.pid, signal.SIGCONT)
        paused.communicate(timeout=PATIENCE)
    assert ended(place) == [(0, "no says B")] * ATTEMPTS


def test_what_was_killed_on_another_host_is_made_again(place: str) -> None:
    def on_host(name: str) -> list[str]:
        return [*namespaces("--uts"), "sh", "-c", f'hostname {name}; exec "$@"', "sh"]

    with runner("A", place, *on_host("pod-a")) as killed:
        wait_for_calls(JOBS)
        os.killpg(killed.pid, signal.SIGKILL)
    with runner("B", place, *on_host("pod-b")) as other:
        out, _ = other.communicate(timeout=PATIENCE)
        assert other.returncode == 0, out
    assert ended(place) == [(0, "no says B")] * ATTEMPTS


def test_a_runner_in_another_process_namespace_keeps_what_it_is_making(place: str) -> None:
    apart = [*namespaces("--pid", "--fork", "--kill-child")]
    with runner("A", place, *apart, lease=LONG) as first:
        wait_for_calls(JOBS)
        with runner("B", place, *apart, lease=LONG) as second:
            out, _ = second.communicate(timeout=PATIENCE)
        # It made what the first one had not claimed, and says what it left.
        assert second.returncode == 4, out
        assert f"{JOBS} being made by another runner" in out
        Path("go").touch()
        out, _ = first.communicate(timeout=PATIENCE)
        assert first.returncode == 0, out
    assert len(calls()) == ATTEMPTS
    assert sorted(ended(place)) == [(0, "no says B")] * 6 + [(1, "yes says A")] * JOBS
