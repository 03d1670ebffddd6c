"""How quickly pages of the dashboard answer on large stores, and how much memory the server takes.

    python benchmarks/dashboard.py            prints the table
    python benchmarks/dashboard.py --write    and keeps it in docs/benchmarks.md

One store holds 1,000 runs and a million attempts, the others a single run of a million: many tasks
with few attempts each, and few tasks with many. A fourth is written to meanwhile, ten times a
second. The server is the real one, asked over loopback.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from measuring import machine, markdown, write_section
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.suites.base import Judgement, Task

LIMIT_MS, LIMIT_MB = 300, 300
ASKED = 60


@dataclass(frozen=True, slots=True)
class Shape:
    """A store to be built."""

    name: str
    runs: int
    tasks: int
    attempts: int


SHAPES = (
    Shape("1,000 runs x 125 tasks x 8", 1000, 125, 8),
    Shape("1 run x 125,000 tasks x 8", 1, 125_000, 8),
    Shape("1 run x 1,000 tasks x 1,000", 1, 1_000, 1_000),
)


def build(path: str, shape: Shape) -> list[str]:
    """Write a store straight into its tables; returns the ids of its runs."""
    open_store(path).close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    draw = random.Random(1)
    ids = [f"{number:010x}" for number in range(1, shape.runs + 1)]
    protocol = json.dumps(Protocol(suite="made up").to_dict())
    for run, word in enumerate(ids, 1):
        stamp = f"2026-01-{1 + run % 28:02d}T{run % 24:02d}:00:00+00:00"
        db.execute(
            "INSERT INTO runs (key, id, agent, suite, name, protocol, planned, started) "
            "VALUES (?, ?, ?, 'made up', '', ?, ?, ?)",
            (run, word, f"agent-{run % 7}", protocol, shape.attempts, stamp),
        )
        first = 1 + (run - 1) * shape.tasks
        db.executemany(
            "INSERT INTO tasks (key, run, position, task, labels) VALUES (?, ?, ?, ?, ?)",
            (
                (first + i, run, i, f"made/{i:06d}", '{"band": "hard"}' if i % 3 else "{}")
                for i in range(shape.tasks)
            ),
        )
        db.executemany(
            "INSERT INTO attempts (run, task, number, verdict, why, detail, seed, seconds, steps, "
            "tokens, cost, retries, answer, finished) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
            _attempts(draw, run, first, shape),
        )
    db.execute("COMMIT")
    db.close()
    return ids


def _attempts(
    draw: random.Random, run: int, first: int, shape: Shape
) -> Iterator[tuple[object, ...]]:
    made = 0
    for task in range(first, first + shape.tasks):
        chance = draw.random()
        for number in range(1, shape.attempts + 1):
            made += 1
            verdict = int(draw.random() < chance) if draw.random() > 0.01 else -1
            why = {1: "", 0: "wrong_state", -1: "rate_limit"}[verdict]
            stamp = (
                f"2026-02-01T{made // 36_000 % 24:02d}:{made // 600 % 60:02d}:00.{made % 600:03d}"
            )
            yield (
                *(run, task, number, verdict, why, "orders.R-1 is wrong" if verdict < 1 else ""),
                *(made, 1 + 9 * draw.random(), 7, 900, 0.0123, f"{made:016x}", stamp),
            )


@contextmanager
def served(path: str) -> Iterator[tuple[str, int]]:
    """The server over a store: its address, and the id of its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", "view", "--store", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().rpartition(" ")[2].strip(), process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


class Asking:
    """One connection that is kept, as a browser does."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc)
        self._headers = {"Authorization": f"Bearer {address.partition('?token=')[2]}"}

    def seconds(self, path: str) -> float:
        start = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:300])
        return time.perf_counter() - start

    def close(self) -> None:
        self._connection.close()


def _peak_mb(pid: int) -> float:
    """The most memory the server ever had, as Linux says."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _p95(seconds: list[float]) -> float:
    return 1000 * sorted(seconds)[int(0.95 * (len(seconds) - 1))]


@contextmanager
def writing(path: str, tasks: int = 200, attempts: int = 40) -> Iterator[str]:
    """A run of which half is there, and that goes on with a commit every 100 ms; its id."""
    run = RunRecord("writer", Protocol(suite="made up"), [Task(f"t{i}", "?") for i in range(tasks)])
    everything = [(task.id, number) for number in range(1, attempts + 1) for task in run.tasks]
    half, over = len(everything) // 2, threading.Event()
    draw = random.Random(2)

    def write(store: Store, part: list[tuple[str, int]]) -> None:
        store.claim(run.id, part)
        verdicts = [Judgement(Verdict(int(draw.random() < 0.6))) for _ in part]
        store.finish(
            run.id,
            [
                AttemptRecord(*place, one, seconds=1.0)
                for place, one in zip(part, verdicts, strict=True)
            ],
        )

    def keep() -> None:
        with open_store(path) as store:
            for at in range(half, len(everything), 5):
                if over.wait(0.1):
                    return
                write(store, everything[at : at + 5])

    with open_store(path) as store:
        store.begin(run, attempts)
        write(store, everything[:half])
    thread = threading.Thread(target=keep)
    thread.start()
    yield run.id
    over.set()
    thread.join()


def beside_a_writer() -> list[tuple[str, ...]]:
    """The page of a run while its attempts finish."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s.db"
        build(path, Shape("", 200, 125, 8))
        with writing(path) as run, served(path) as (address, pid):
            asking = Asking(address)
            for name, page in (
                ("a run", f"/runs/{run}"),
                ("its live part", f"/runs/{run}?part=live"),
            ):
                first, again = asking.seconds(page), []
                for _ in range(ASKED):
                    again.append(asking.seconds(page))
                    time.sleep(0.03)
                found.append((name, first, sorted(again)[ASKED // 2], _p95(again)))
            asking.close()
            peak = f"{_peak_mb(pid):.0f} MB"
    return [
        (
            *("200 runs and one being made, 8,000 attempts", name, f"{1000 * first:.0f} ms"),
            *(f"{1000 * middle:.0f} ms", f"**{p95:.0f} ms**", peak),
        )
        for name, first, middle, p95 in found
    ]


def measure() -> str:
    """All rows of the table."""
    rows = []
    for shape in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            ids = build(f"{folder}/s.db", shape)
            with served(f"{folder}/s.db") as (address, pid):
                rows += _asked(shape, ids, address, pid)
    rows += beside_a_writer()
    limits = f"Wanted: at most {LIMIT_MS} ms and {LIMIT_MB} MB."
    header = ("store", "page", "first", "p50", "p95", "server's peak memory")
    return f"{machine()}. {limits}\n\n" + markdown(header, rows)


def _asked(shape: Shape, ids: list[str], address: str, pid: int) -> list[tuple[str, ...]]:
    asking = Asking(address)
    chosen = ids[:: max(1, len(ids) // 20)][:20]
    pages = {
        "all runs": ["/"] * ASKED,
        "all runs, searched": ["/runs?part=list&q=agent-3"] * ASKED,
        "a run": [f"/runs/{chosen[i % len(chosen)]}" for i in range(ASKED)],
        "its live part": [f"/runs/{chosen[i % len(chosen)]}?part=live" for i in range(ASKED)],
        "its attempts": [f"/runs/{ids[-1]}/attempts"] * ASKED,
        "its failed attempts": [f"/runs/{ids[-1]}/attempts?verdict=failed&order=suite"] * ASKED,
    }
    found = []
    for name, paths in pages.items():
        first = asking.seconds(paths[0])
        if name == "a run":
            # Warm: every run that is asked for has been estimated once, as its data show.
            for path in dict.fromkeys(paths):
                asking.seconds(f"{path}.csv")
        again = [asking.seconds(path) for path in paths]
        middle = 1000 * sorted(again)[len(again) // 2]
        found.append((shape.name, name, first, middle, _p95(again)))
    asking.close()
    peak = f"{_peak_mb(pid):.0f} MB"
    return [
        (store, name, f"{1000 * first:.0f} ms", f"{middle:.0f} ms", f"**{p95:.0f} ms**", peak)
        for store, name, first, middle, p95 in found
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="keep the table in the docs")
    chosen = parser.parse_args()
    text = measure()
    print(text)
    if chosen.write:
        write_section("dashboard", text)


if __name__ == "__main__":
    main()
