"""What an attempt costs beside the agent: CPU per attempt, and throughput with many at once.

    python benchmarks/runner.py            prints the table
    python benchmarks/runner.py --write    and keeps it in docs/benchmarks.md
    python benchmarks/runner.py --against OTHER/src    this version and another one, in turns

Everything is a ratio within one run: against a bare asyncio loop that commits to SQLite in groups,
against inspect_ai's `eval()` with its mock model, or against another version of passhat.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from measuring import machine, markdown, run_against, run_with_peers, versions_in_turns
from passhat.agents import Agent, AttemptInfo, Session
from passhat.protocol import Protocol
from passhat.runner import RunPlan, run_attempts
from passhat.runner.run import Stop
from passhat.store import PlannedAttempts, RunRecord, open_store
from passhat.suites import Turn, load_suite

INSTANT_TASKS, INSTANT_ATTEMPTS = 500, 20
SLOW_JOBS, SLOW_ATTEMPTS, SLOW_SECONDS = 1000, 20_000, 0.2
INSPECT_SAMPLES, INSPECT_EPOCHS = 50, 10


class Instant(Agent, Session):
    """Answers at once, or after a while; nothing else."""

    name = "instant"

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    async def session(self, _attempt: AttemptInfo) -> Instant:
        return self

    async def answer(self, _turn: Turn) -> str:
        if self._seconds:
            await asyncio.sleep(self._seconds)
        return "yes"


def measure() -> str:
    """All rows of the table."""
    bare, bare_rate = _bare(INSTANT_TASKS * INSTANT_ATTEMPTS), _bare_rate()
    keeping = _bare_that_keeps(INSTANT_TASKS, INSTANT_ATTEMPTS)
    ours, rate = _passhat(INSTANT_TASKS, INSTANT_ATTEMPTS), _passhat_rate()
    before = _peak()
    _passhat(INSTANT_TASKS, INSTANT_ATTEMPTS * 4)
    grown = _peak() - before
    inspect = _inspect()
    work = f"{INSTANT_TASKS * INSTANT_ATTEMPTS:,} attempts, instant agent: CPU per attempt"
    many = f"{SLOW_JOBS:,} at once, {SLOW_SECONDS} s agent: share of the ideal rate"
    rows = [
        (work, "bare asyncio loop, grouped commits of one number", f"{1e3 * bare:.3f} ms", "1"),
        (
            work,
            "the same, that keeps the facts passhat keeps",
            f"{1e3 * keeping:.3f} ms",
            f"{keeping / bare:.1f}",
        ),
        (work, "**passhat run**", f"{1e3 * ours:.3f} ms", f"{ours / bare:.1f}"),
        (
            work,
            "inspect_ai eval(), mock model",
            f"{1e3 * inspect:.1f} ms",
            f"{inspect / bare:,.0f}",
        ),
        (many, "bare asyncio loop", f"{bare_rate:.0%}", ""),
        (many, "**passhat run**", f"{rate:.0%}", ""),
        ("peak memory, 40,000 attempts against 10,000", "**passhat run**", f"+{grown:.0f} MB", ""),
    ]
    return f"{machine()}.\n\n" + markdown(("work", "way", "value", "ratio"), rows)


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _plan(folder: str, tasks: int, attempts: int, jobs: int, seconds: float) -> RunPlan:
    path = Path(folder) / "tasks.jsonl"
    lines = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(tasks)]
    path.write_text("\n".join(map(json.dumps, lines)))
    suite = load_suite(f"jsonl:{path}")
    record = RunRecord("instant", Protocol(suite=suite.name), suite.tasks)
    return RunPlan(
        suite, Instant(seconds), record, suite.tasks, PlannedAttempts(attempts), jobs=jobs
    )


def _passhat(tasks: int, attempts: int, jobs: int = 64, seconds: float = 0.0) -> float:
    with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/s.db") as store:
        plan = _plan(folder, tasks, attempts, jobs, seconds)

        def work() -> None:
            asyncio.run(run_attempts(plan, store, Stop(), lambda _record, _progress: None))

        spent = _cpu(work)
        assert store.runs()[0].passed == tasks * attempts
    return spent / (tasks * attempts)


def _passhat_rate() -> float:
    start = time.perf_counter()
    _passhat(SLOW_JOBS, SLOW_ATTEMPTS // SLOW_JOBS, SLOW_JOBS, SLOW_SECONDS)
    return SLOW_ATTEMPTS / SLOW_JOBS * SLOW_SECONDS / (time.perf_counter() - start)


def _bare(attempts: int) -> float:
    """The least there is to do: note the start, await an answer, note the result, in groups."""

    async def loop(database: sqlite3.Connection) -> None:
        waiting = iter(range(attempts))
        claimed: list[int] = []
        rows: list[tuple[int, int]] = []

        def next_attempt() -> int | None:
            if not claimed:
                claimed.extend(islice(waiting, 64))
                with database:
                    database.executemany(
                        "INSERT INTO attempts VALUES (?, NULL)", [(one,) for one in claimed]
                    )
            return claimed.pop() if claimed else None

        async def worker() -> None:
            while (number := next_attempt()) is not None:
                await asyncio.sleep(0)
                rows.append((1, number))
                if len(rows) >= 500:
                    write()

        def write() -> None:
            with database:
                database.executemany("UPDATE attempts SET passed = ? WHERE number = ?", rows)
            rows.clear()

        await asyncio.gather(*(worker() for _ in range(64)))
        write()

    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(f"{folder}/bare.db")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("CREATE TABLE attempts (number INTEGER PRIMARY KEY, passed INTEGER)")
        spent = _cpu(lambda: asyncio.run(loop(database)))
        database.close()
    return spent / attempts


def _bare_that_keeps(tasks: int, attempts: int) -> float:
    """The bare loop, with what a report needs of an attempt: place, owner, verdict, how, words."""
    wanted = [(task, number) for number in range(attempts) for task in range(tasks)]

    async def loop(database: sqlite3.Connection) -> None:
        waiting = iter(wanted)
        claimed: list[tuple[int, int]] = []
        rows: list[tuple[object, ...]] = []

        def next_attempt() -> tuple[int, int] | None:
            if not claimed:
                claimed.extend(islice(waiting, 64))
                with database:
                    database.executemany(
                        "INSERT INTO attempts (task, number, owner) VALUES (?, ?, 'host/1/2')",
                        claimed,
                    )
            return claimed.pop() if claimed else None

        async def worker() -> None:
            while (one := next_attempt()) is not None:
                start = time.monotonic()
                await asyncio.sleep(0)
                words = json.dumps(
                    [{"role": "user", "text": "?"}, {"role": "agent", "text": "yes"}]
                )
                seconds = time.monotonic() - start
                rows.append((1, "", 12345, seconds, 1, "0123456789abcdef", words, *one))
                if len(rows) >= 500:
                    write()

        def write() -> None:
            with database:
                database.executemany(
                    "UPDATE attempts SET owner = NULL, verdict = ?, why = ?, seed = ?, "
                    "seconds = ?, steps = ?, answer = ?, words = ? WHERE task = ? AND number = ?",
                    rows,
                )
            rows.clear()

        await asyncio.gather(*(worker() for _ in range(64)))
        write()

    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(f"{folder}/bare.db")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(
            "CREATE TABLE attempts (task INTEGER, number INTEGER, owner TEXT, verdict INTEGER, "
            "why TEXT, seed INTEGER, seconds REAL, steps REAL, answer TEXT, words TEXT, "
            "PRIMARY KEY (task, number)) WITHOUT ROWID"
        )
        spent = _cpu(lambda: asyncio.run(loop(database)))
        database.close()
    return spent / (tasks * attempts)


def _bare_rate() -> float:
    async def loop() -> None:
        for _ in range(SLOW_ATTEMPTS // SLOW_JOBS):
            await asyncio.gather(*(asyncio.sleep(SLOW_SECONDS) for _ in range(SLOW_JOBS)))

    start = time.perf_counter()
    asyncio.run(loop())
    return SLOW_ATTEMPTS / SLOW_JOBS * SLOW_SECONDS / (time.perf_counter() - start)


def _inspect() -> float:
    from inspect_ai import Task as InspectTask
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match

    samples = [Sample(input="?", target="Default") for _ in range(INSPECT_SAMPLES)]
    with tempfile.TemporaryDirectory() as folder:

        def work() -> Any:
            return inspect_eval(
                InspectTask(dataset=samples, scorer=match()),
                model="mockllm/model",
                epochs=INSPECT_EPOCHS,
                log_dir=folder,
                display="none",
            )

        spent = _cpu(work)
    return spent / (INSPECT_SAMPLES * INSPECT_EPOCHS)


TURNS, REPEATS = 7, 3
ONE_VERSION = """
import asyncio, json, sys, tempfile, time
from pathlib import Path
import passhat.store
from passhat.protocol import Protocol
from passhat.runner import RunPlan, run_attempts
from passhat.store import RunRecord, open_store
from passhat.suites import load_suite
from passhat.agents import Agent, Session
try:
    from passhat.runner.run import Stop
except ImportError:  # 0.1.0
    from passhat.runner.running import Stop

class Instant(Agent, Session):
    name = "instant"
    async def session(self, attempt):
        return self
    async def answer(self, turn):
        return "yes"

def once(tasks, each):
    with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/s.db") as store:
        path = Path(folder) / "tasks.jsonl"
        lines = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(tasks)]
        path.write_text("\\n".join(map(json.dumps, lines)))
        suite = load_suite(f"jsonl:{path}")
        record = RunRecord("instant", Protocol(suite=suite.name), suite.tasks)
        planned = getattr(passhat.store, "PlannedAttempts", int)(each)
        plan = RunPlan(suite, Instant(), record, suite.tasks, planned, jobs=64)
        start = time.process_time()
        asyncio.run(run_attempts(plan, store, Stop(), lambda record, progress: None))
        spent = time.process_time() - start
        assert store.runs()[0].passed == tasks * each
    return spent / (tasks * each)

tasks, each, repeats = map(int, sys.argv[1:])
once(tasks, 1)
print(min(once(tasks, each) for _ in range(repeats)))
"""


def against(other: str) -> str:
    """CPU per attempt of another version and of this one, in turns; the ratio of medians."""
    sizes = (INSTANT_TASKS, INSTANT_ATTEMPTS, REPEATS)
    printed = versions_in_turns(ONE_VERSION, sizes, other, TURNS)
    spent = {name: [1e3 * seconds for seconds in values] for name, values in printed.items()}
    before, now = (statistics.median(values) for values in spent.values())
    rows = [
        (name, f"{statistics.median(values):.4f} ms", f"{min(values):.4f} to {max(values):.4f} ms")
        for name, values in spent.items()
    ]
    rows.append(("ratio", f"{now / before:.2f}", ""))
    header = ("version", f"median of {TURNS}", "range")
    return f"{machine()}.\n\n" + markdown(header, rows)


if __name__ == "__main__":
    if "--against" in sys.argv:
        run_against("runner-versions", against)
    else:
        run_with_peers(__file__, "runner", ["inspect-ai"], measure)
