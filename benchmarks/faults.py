"""Runners that are killed and paused: how many results are lost, doubled or mixed.

    python benchmarks/faults.py            prints the table (30 kills, 5 pauses per database)
    python benchmarks/faults.py --small    a few of each

Runners take turns: one answers "yes", which passes, the next "no", which fails. A result is mixed
if its verdict and its transcript are of different runners. Lost is what a runner reported as
written and the store has not; doubled is an attempt with two results.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from passhat.agents import Agent, AttemptInfo, Session
from passhat.runner import RunSpec, run_attempts
from passhat.runner.run import Stop
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, open_store
from passhat.suites import Turn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from postgres_cluster import Cluster, binaries

TASKS, ATTEMPTS = 20, 40
LEASE = 1.0


class Says(Agent, Session):
    """Answers the same word, after a few milliseconds."""

    name = "says"

    def __init__(self, word: str) -> None:
        self._word = word

    async def session(self, _attempt: AttemptInfo) -> Says:
        return self

    async def answer(self, _turn: Turn) -> str:
        await asyncio.sleep(0.004)
        return self._word


def make(place: str, word: str, reported: int | None = None) -> None:
    """One runner; every attempt that was written goes to ``reported`` as a line."""
    plan = RunSpec(suite="jsonl:tasks.jsonl", agent=Says(word), attempts=ATTEMPTS).plan()

    def seen(record: AttemptRecord, _progress: object) -> None:
        if reported is not None:
            os.write(reported, f"{record.task}#{record.number}\n".encode())

    with open_store(place, lease_seconds=LEASE) as store:
        asyncio.run(run_attempts(plan, store, Stop(), seen))


def forked(place: str, word: str) -> tuple[int, int]:
    """A runner in a process of its own: its id, and where it reports."""
    hears, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(hears)
        make(place, word, tells)
        os._exit(0)
    os.close(tells)
    return child, hears


def heard(pipe: int, lines: int | None = None) -> list[str]:
    """What a runner reports: so many lines at least, or all until it ends."""
    text = b""
    while lines is None or text.count(b"\n") < lines:
        more = os.read(pipe, 4096)
        if not more:
            break
        text += more
    return text.decode().split()


def kills(place: str, times: int, draw: random.Random) -> list[str]:
    """Kill a runner at a random moment, again and again; returns all that was reported."""
    reported: list[str] = []
    for turn in range(times):
        child, pipe = forked(place, ("yes", "no")[turn % 2])
        reported += heard(pipe, draw.randrange(1, 20))
        time.sleep(draw.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        reported += heard(pipe)
        os.close(pipe)
    return reported


def pauses(place: str, times: int, draw: random.Random) -> list[str]:
    """Stop a runner for longer than its lease while another one works, and let it go on."""
    reported: list[str] = []
    for _ in range(times):
        child, pipe = forked(place, "yes")
        reported += heard(pipe, draw.randrange(1, 20))
        os.kill(child, signal.SIGSTOP)
        time.sleep(1.5 * LEASE)
        other, other_pipe = forked(place, "no")
        reported += heard(other_pipe, 30)
        os.kill(child, signal.SIGCONT)
        time.sleep(0.2)
        for process in (child, other):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        reported += heard(pipe) + heard(other_pipe)
        os.close(pipe)
        os.close(other_pipe)
    return reported


def counted(place: str, reported: list[str]) -> tuple[int, int, int, int]:
    """Attempts, lost, doubled and mixed, after a last runner made what was left."""
    make(place, "no")
    with open_store(place, read_only=True) as store:
        (run,) = store.runs()
        verdicts = [(task, number) for task, number, _ in store.verdicts(run.id)]
        mixed = 0
        for task, number in verdicts:
            ended = store.attempt(run.id, task, number)
            assert ended is not None
            said = ended.transcript[-1]["text"] if ended.transcript else ""
            mixed += (ended.verdict is Verdict.PASSED) != (said == "yes")
    there = {f"{task}#{number}" for task, number in verdicts}
    lost = len(set(reported) - there) + TASKS * ATTEMPTS - len(there)
    doubled = sum(count - 1 for count in Counter(verdicts).values())
    doubled += sum(count - 1 for count in Counter(reported).values())
    return len(there), lost, doubled, mixed


@contextmanager
def places() -> Iterator[dict[str, Callable[[str], str]]]:
    """Names of databases, and how a fresh store is made in each."""
    found: dict[str, Callable[[str], str]] = {"SQLite": lambda name: str(Path(f"{name}.db"))}
    if binaries() is None:
        yield found
        return
    cluster = Cluster()
    cluster.start()
    try:
        yield found | {"PostgreSQL": cluster.make_database}
    finally:
        cluster.stop()


def main(small: bool) -> None:
    _say("fault", "database", "times", "attempts", "lost", "doubled", "mixed")
    _say(*["---"] * 7)
    with tempfile.TemporaryDirectory() as folder, places() as databases:
        os.chdir(folder)
        tasks = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(TASKS)]
        Path("tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
        for database, place_of in databases.items():
            for fault, times in ((kills, 3 if small else 30), (pauses, 1 if small else 5)):
                place = place_of(fault.__name__)
                reported = fault(place, times, random.Random(17))
                _say(fault.__name__, database, times, *counted(place, reported))
        os.chdir("/")


def _say(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(map(str, cells)) + " |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main("--small" in sys.argv)
