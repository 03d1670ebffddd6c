"""Faults under runners: how many results are lost, doubled or mixed, and what is said.

    python benchmarks/faults.py            prints the table (30 kills, 5 pauses per database, ...)
    python benchmarks/faults.py --small    a few of each

Runners take turns: one answers "yes", which passes, the next "no", which fails (on Ray, and where
there is one runner, answers are drawn). A result is mixed if its verdict and its transcript are of
different attempts. Lost is what a runner reported as written and the store has not; doubled is an
attempt with two results. Locks, silences and restarts take their real time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from passhat.agents import Agent, AttemptInfo, Session
from passhat.errors import ReadError
from passhat.runner import RunSpec, run_attempts
from passhat.runner.run import Progress, Stop
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, open_store
from passhat.suites import Turn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from faulty_proxy import FaultyProxy
from postgres_cluster import Cluster, binaries
from ray_cluster import RayCluster

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


class Draws(Says):
    """Answers one of two words, and is at most a few attempts ahead of what is written."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__("")
        self._draw = draw
        self.begun = self.written = 0

    async def session(self, _attempt: AttemptInfo) -> Says:
        self.begun += 1
        while self.begun > self.written + 40:
            await asyncio.sleep(0.002)
        return Says(self._draw.choice(("yes", "no")))


def disturbed(
    place: str, at: dict[int, Callable[[], object]], heal: Callable[[], object], seed: int = 17
) -> tuple[list[str], str]:
    """One runner that faults meet at so many written attempts; what it reported, what it said.

    ``heal`` is called when the trouble is announced.
    """
    agent, messages, reported = Draws(random.Random(seed)), list[str](), list[str]()

    def tell(text: str) -> None:
        messages.append(text)
        heal()

    def seen(record: AttemptRecord, progress: Progress) -> None:
        agent.written = progress.done
        reported.append(f"{record.task}#{record.number}")
        for count in [count for count in at if progress.done >= count]:
            at.pop(count)()

    spec = RunSpec(suite="jsonl:tasks.jsonl", agent=agent, attempts=ATTEMPTS)
    with open_store(place) as store:
        asyncio.run(run_attempts(spec.plan(tell=tell), store, Stop(), seen))
    first = messages[0] if messages else "nothing"
    return reported, re.sub(r"\S*(postgresql:|/)\S+", "...", first).replace("|", "/")


def faults_of(
    place: str, cluster: Cluster | None, small: bool
) -> Iterator[tuple[str, int, list[str], str, str]]:
    """Each fault of a database: its name, how often, what was reported, what was said, where."""
    lock = 10.0 if small else 60.0

    def none() -> None:
        """Nothing to heal: it ends by itself."""

    other: list[Any] = []

    def free() -> None:
        for connection in other:
            connection.close()
        other.clear()

    def take_lock() -> None:
        if cluster is None:
            other.append(sqlite3.connect(place, isolation_level=None, check_same_thread=False))
            other[0].execute("BEGIN IMMEDIATE")
        else:
            other.append(psycopg.connect(place))
            other[0].execute("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE")
        threading.Timer(lock, free).start()

    yield f"locked for {lock:g} s", 1, *disturbed(place, {300: take_lock}, none), place
    if cluster is None:
        return
    (sock,) = cluster.folder.glob(".s.PGSQL.*[0-9]")
    proxy = FaultyProxy(sock)

    def through(name: str) -> tuple[str, str]:
        place = cluster.make_database(name)
        settings = psycopg.conninfo.conninfo_to_dict(place)
        return place, f"postgresql://{settings['user']}@127.0.0.1:{proxy.port}/{name}"

    place, proxied = through("cut")
    at: dict[int, Callable[[], object]] = dict.fromkeys(range(50, 800, 70), proxy.cut)
    times = len(at)
    yield "connections cut", times, *disturbed(proxied, at, none), place
    place, proxied = through("swallow")
    told = disturbed(proxied, {300: proxy.swallow}, proxy.restore)
    yield "bytes swallowed", 1, *told, place
    proxy.close()
    place = cluster.make_database("restart")

    def restart() -> None:
        cluster.kill()
        threading.Timer(1.0, cluster.start).start()

    yield "server killed", 2, *disturbed(place, {200: restart, 500: restart}, none), place


RAY_AGENT = """
import os, random, time

def answer(prompt):
    with open("workers.txt", "a") as workers:
        workers.write(f"{os.getpid()}\\n")
    time.sleep(0.05)
    return random.choice(("yes", "no"))
"""


def kills_on_ray(place: str, times: int, draw: random.Random) -> list[str]:
    """Kill the command and workers in turns, on a cluster of two; returns what was written."""
    Path("ray_says.py").write_text(RAY_AGENT)
    cluster = RayCluster()
    environment = {**os.environ, **cluster.environment, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, "-m", "passhat", "run", "--on", "ray", "--jobs", "8"]
    command += ["-s", "jsonl:tasks.jsonl", "-a", "python:ray_says:answer", "-n", str(ATTEMPTS)]
    command += ["--set", "lease=1", "--store", place]

    def start() -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)

    def written() -> list[str]:
        try:
            with open_store(place, read_only=True) as store:
                runs = store.runs()
                rows = store.verdicts(runs[0].id) if runs else ()
                return [f"{task}#{number}" for task, number, _ in rows]
        except ReadError:  # it is being made
            return []

    reported: set[str] = set()
    process = start()
    try:
        for turn in range(times):
            wanted = min(len(reported) + draw.randrange(1, 16), TASKS * ATTEMPTS)
            while len(written()) < wanted:
                if process.poll() is not None:
                    process = start()
                time.sleep(0.05)
            reported.update(written())
            if turn % 2:
                process.kill()
                process.wait()
                process = start()
            else:
                with suppress(ProcessLookupError):
                    os.kill(int(Path("workers.txt").read_text().split()[-1]), signal.SIGKILL)
        while process.wait() or len(written()) < TASKS * ATTEMPTS:
            process = start()
    finally:
        process.kill()
        cluster.stop()
    return sorted(reported)


def counted(place: str, reported: list[str], last: bool = True) -> tuple[int, int, int, int]:
    """Attempts, lost, doubled and mixed, after a last runner made what was left."""
    if last:
        make(place, "no")
    with open_store(place, read_only=True) as store:
        (run,) = store.runs()
        verdicts = [(task, number) for task, number, _ in store.verdicts(run.id)]
        mixed = 0
        for task, number in verdicts:
            ended = store.attempt(run.id, task, number)
            assert ended is not None
            answers = [entry["text"] for entry in ended.transcript if entry["role"] == "agent"]
            said = answers[-1] if answers else ""
            mixed += (ended.verdict is Verdict.PASSED) != (said == "yes")
    there = {f"{task}#{number}" for task, number in verdicts}
    lost = len(set(reported) - there) + TASKS * ATTEMPTS - len(there)
    doubled = sum(count - 1 for count in Counter(verdicts).values())
    doubled += sum(count - 1 for count in Counter(reported).values())
    return len(there), lost, doubled, mixed


@contextmanager
def databases() -> Iterator[dict[str, Cluster | None]]:
    """SQLite, and PostgreSQL with its server where it is installed."""
    if binaries() is None:
        yield {"SQLite": None}
        return
    cluster = Cluster()
    cluster.start()
    try:
        yield {"SQLite": None, "PostgreSQL": cluster}
    finally:
        cluster.stop()


def main(small: bool) -> None:
    _say("fault", "database", "times", "attempts", "lost", "doubled", "mixed", "said first")
    _say(*["---"] * 8)
    many = 4 if small else 30
    with tempfile.TemporaryDirectory() as folder, databases() as known:
        os.chdir(folder)
        tasks = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(TASKS)]
        Path("tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
        for database, cluster in known.items():

            def place_of(name: str, cluster: Cluster | None = cluster) -> str:
                return f"{name}.db" if cluster is None else cluster.make_database(name)

            for fault, times in ((kills, many), (pauses, 1 if small else 5)):
                place = place_of(fault.__name__)
                reported = fault(place, times, random.Random(17))
                _say(fault.__name__, database, times, *counted(place, reported), "")
            place = place_of("disturbed")
            for name, times, reported, said, where in faults_of(place, cluster, small):
                _say(name, database, times, *counted(where, reported, last=False), said)
        reported = kills_on_ray("ray.db", many, random.Random(17))
        _say("kills of command and workers", "Ray", many, *counted("ray.db", reported, False), "")
        os.chdir("/")


def _say(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(map(str, cells)) + " |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main("--small" in sys.argv)
