"""What the world does to a runner: kills it, locks its store, fills its disk, stops its clock."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moved_clock import move_clock, run_with_clock
from passhat.agents import Agent, AttemptInfo, Session
from passhat.runner import run as running
from passhat.runner.run import Progress, RunPlan, Stop, run_attempts, silent
from passhat.runner.run_spec import RunSpec
from passhat.store import Store, open_store
from passhat.suites import load_suite
from passhat.suites.base import Turn

Passhat = Callable[..., Any]


class Asked(Agent, Session):
    """An agent that does what it is given for every question."""

    name = "asked"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    async def session(self, _attempt: AttemptInfo) -> Asked:
        return self

    async def answer(self, _turn: Turn) -> str:
        return str(await self._answer())


async def _yes() -> str:
    await asyncio.sleep(0.01)
    return "yes"


def _plan(
    answer: Callable[[], Any] = _yes, tell: Callable[[str], None] = silent, **settings: Any
) -> RunPlan:
    suite = load_suite("jsonl:tasks.jsonl")
    return RunSpec(suite=suite, agent=Asked(answer), attempts=4, **settings).plan(tell=tell)


def _run(plan: RunPlan, store: Store) -> Progress:
    return run_with_clock(run_attempts(plan, store, Stop(), lambda _record, _progress: None))


def test_killed_at_twenty_random_moments_nothing_finished_is_lost(folder: Path) -> None:
    program = Path(__file__).with_name("killed_runners.py")
    done = subprocess.run(
        [sys.executable, program, "store.db", "20", "7"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    looks = [
        {(task, number) for task, number in json.loads(one)} for one in done.stdout.split("\n")[:-1]
    ]
    assert len(looks) == 21
    assert all(before <= after for before, after in pairwise(looks))
    # The kills hit runners at work: not all before the first attempt, not all after the last.
    assert len({len(look) for look in looks}) > 10
    assert looks[-1] == {(f"t{task}", number) for task in range(5) for number in range(1, 401)}


@pytest.mark.usefixtures("folder", "patient")
def test_a_locked_store_is_waited_for() -> None:
    told: list[str] = []
    with open_store("store.db") as store, contextlib.closing(_other("store.db")) as other:
        other.execute("BEGIN IMMEDIATE")

        def unlock(reason: str) -> None:
            told.append(reason)
            other.execute("ROLLBACK")

        progress = _run(_plan(tell=unlock), store)
    assert (progress.passed, progress.missing) == (20, 0)
    assert "locked" in told[0]


def _other(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@pytest.mark.usefixtures("folder", "patient")
def test_a_full_disk_is_waited_for_and_nothing_made_is_lost() -> None:
    told: list[str] = []
    with open_store("store.db") as store:
        store._db.execute("PRAGMA max_page_count = 20")

        def make_room(reason: str) -> None:
            told.append(reason)
            store._db.execute("PRAGMA max_page_count = 1000000")

        async def long_answer() -> str:
            return os.urandom(20_000).hex()

        progress = _run(_plan(long_answer, tell=make_room), store)
        made = len(store.load_attempts(store.runs()[0].id))
        assert store.is_sound()
    assert progress.failed == made == 20
    assert "full" in told[0]


@pytest.mark.usefixtures("patient")
def test_a_disk_that_stays_full_ends_the_run_with_a_reason_and_it_goes_on_later(
    passhat: Passhat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "RETRY_SECONDS", 0.1)
    command = ["run", "-s", "jsonl:tasks.jsonl", "-a", "python:some_agents:long", "-n", "4"]
    connect = sqlite3.connect
    with open_store(str(folder / "empty.db")):
        pass
    # Room for the tables of a store, and for little else: it opens, and its run does not fit.
    (pages,) = connect(folder / "empty.db").execute("PRAGMA page_count").fetchone()

    def small(*given: Any, **named: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*given, **named)
        database.execute(f"PRAGMA max_page_count = {pages + 2}")
        return database

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", small)
        ended = passhat(*command, "--store", folder / "small.db")
    assert ended.code == 2
    assert "full" in ended.err
    assert "Traceback" not in ended.err
    ended = passhat(*command, "--store", folder / "small.db")
    assert ended.code == 0
    with open_store(str(folder / "small.db")) as store:
        assert store.runs()[0].attempts == 20


@pytest.mark.usefixtures("folder")
def test_time_in_which_the_machine_stood_still_is_not_the_agents() -> None:
    """The whole process is held up for longer than an answer may take."""
    asked: list[bool] = []

    async def held_up() -> str:
        asked.append(True)
        if len(asked) == 20:
            move_clock(45)  # the loop itself stands still, with all attempts in flight
        while len(asked) < 20:
            await asyncio.sleep(0)
        for _ in range(100):  # until the limits have been looked at
            await asyncio.sleep(0)
        return "yes"

    with open_store("store.db") as store:
        progress = _run(
            _plan(held_up, max_steps=5, step_seconds=40.0, attempt_seconds=500.0, jobs=20), store
        )
    assert (progress.passed, progress.failed) == (20, 0)


@pytest.mark.usefixtures("folder")
def test_an_agent_that_will_not_be_cancelled_hurts_only_its_own_attempt() -> None:
    stubborn: list[bool] = []

    async def answer() -> str:
        if len(stubborn) >= 3:
            return "yes"
        stubborn.append(True)
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        return await asyncio.sleep(60, "never")

    with open_store("store.db") as store:
        progress = _run(_plan(answer, max_steps=5, step_seconds=0.2, attempt_seconds=30.0), store)
        why = [row[3] for block in store.rows(store.runs()[0].id) for row in block if row[2] == 0]
    assert (progress.passed, progress.failed) == (17, 3)
    assert why == ["timeout"] * 3


@pytest.mark.parametrize(
    "junk",
    [
        "print('\\x00\\x01\\x7f\\u202e\\U0001f4a9' * 100)",
        "sys.stdout.buffer.write(bytes(range(256)) * 50)",
    ],
)
@pytest.mark.usefixtures("way")
def test_binary_junk_fails_its_attempt_and_no_more(
    passhat: Passhat, folder: Path, junk: str
) -> None:
    agent = folder / "junk"
    agent.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.readline()\n{junk}\n")
    agent.chmod(0o755)
    word = f"command:{agent}"
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", word, "-n", "1", "--keep-going")
    assert ended.code == 0
    assert "Traceback" not in ended.err
    with open_store() as store:
        (run,) = store.runs()
        assert (run.attempts, run.missing, run.passed) == (5, 0, 0)
