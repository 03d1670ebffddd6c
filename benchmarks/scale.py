"""Past one machine: rows per second, what Ray costs and brings, reports on ten million attempts.

    python benchmarks/scale.py            prints the tables
    python benchmarks/scale.py --write    and keeps them in docs/benchmarks.md
    python benchmarks/scale.py --small    a small part of it, to see that it works

Needs PostgreSQL on this machine (the programs, not a running server) and the extra [all].
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from measuring import ROOT, machine, markdown, write_section
from passhat.outcomes import Verdict
from passhat.protocol import Protocol
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.suites.base import Judgement, Task

sys.path.insert(0, str(ROOT / "tools"))

from postgres_cluster import Cluster
from scale_ray import CODE_HEADER, JUDGE_HEADER, ray_tables

GROUP = 500
TALK = [{"role": who, "text": "Please change my order, it was wrong. " * 12} for who in "ab"]
"""About 900 characters, 300 bytes once packed."""

REPORT = """
import re, sys, time
from pathlib import Path
from passhat.cli import main
start = time.perf_counter()
code = main(["report", sys.argv[1], "--json"])
spent = time.perf_counter() - start
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(code, spent, peak / 1024, file=sys.stderr)
"""


# -- storing -------------------------------------------------------------------------------------


def storing(attempts: int) -> list[tuple[str, ...]]:
    """Claims and results per second, and bytes per attempt."""
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder, _server() as server:
        for talk in (False, True):
            for kind, runners in (("SQLite", 1), ("PostgreSQL", 1), ("PostgreSQL", 4)):
                name = f"{kind.lower()}_{runners}_{talk}".lower()
                place = f"{folder}/{name}.db"
                if kind == "PostgreSQL":
                    place = server.make_database(name)
                rate, size = _stored(place, attempts, runners, talk)
                what = "with a transcript of 900 characters" if talk else "without transcripts"
                who = f"{runners} runners" if runners > 1 else "1 runner"
                rows.append((what, kind, who, f"{rate:,.0f}", f"{size:,.0f}"))
    return rows


def _stored(place: str, attempts: int, runners: int, talk: bool) -> tuple[float, float]:
    tasks = [Task(f"task-{i}", "?") for i in range(attempts // 20)]
    record = RunRecord("agent", Protocol(suite="suite"), tasks)
    with open_store(place) as store:
        store.begin(record, 20)
        empty = store.size()
    wanted = [(task.id, number) for number in range(1, 21) for task in tasks]

    def runner(mine: list[tuple[str, int]]) -> None:
        with open_store(place) as store:
            for start in range(0, len(mine), GROUP):
                _one_group(store, record.id, mine[start : start + GROUP], talk)

    start = time.perf_counter()
    with ThreadPoolExecutor(runners) as pool:
        list(pool.map(runner, [wanted[i::runners] for i in range(runners)]))
    spent = time.perf_counter() - start
    with open_store(place) as store:
        assert store.find(record.id).attempts == len(wanted)
        return len(wanted) / spent, (store.size() - empty) / len(wanted)


def _one_group(store: Store, run: str, group: list[tuple[str, int]], talk: bool) -> None:
    made = [
        AttemptRecord(
            *(task, number, Judgement(Verdict(number % 2), "" if number % 2 else "wrong_answer")),
            seed=number * 7919,
            seconds=1.25,
            steps=4,
            tokens=900.0,
            cost=0.0125,
            answer_hash=f"{number:016x}",
            transcript=TALK if talk else (),
        )
        for task, number in store.claim(run, group)
    ]
    store.finish(run, made)


@contextmanager
def _server() -> Iterator[Cluster]:
    """A server that waits for the disk, as a team's does."""
    server = Cluster(durable=True)
    server.start()
    try:
        yield server
    finally:
        server.stop()


# -- reports -------------------------------------------------------------------------------------


def reports(sizes: list[int]) -> list[tuple[str, ...]]:
    """Time and memory of `passhat report` on large runs."""
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder, _server() as server:
        for kind in ("Parquet", "SQLite", "PostgreSQL"):
            first = None
            for size in sizes:
                place = _large(kind, size, folder, server)
                done = subprocess.run(
                    [sys.executable, "-c", REPORT, place], capture_output=True, text=True
                )
                code, spent, peak = done.stderr.split()
                assert code == "0", done.stderr
                assert f'"attempts": {size}' in done.stdout
                seconds = float(spent)
                first = first or (size, seconds)
                growth = f"{seconds / first[1]:.1f} for {size // first[0]:,}"
                rows.append((kind, f"{size:,}", f"{seconds:.2f}", f"{float(peak):.0f}", growth))
                if kind != "PostgreSQL":
                    Path(place).unlink()
    return rows


def _large(kind: str, size: int, folder: str, server: Cluster) -> str:
    """A run with 100 attempts at every task, made in the database itself."""
    if kind == "Parquet":
        import duckdb

        path = f"{folder}/{size}.parquet"
        duckdb.execute(
            "COPY (SELECT 'agent' AS model, 'suite/task-' || (i // 100) AS task, "
            "i % 100 AS trial, (hash(i) % 1000 < i // 100 % 1000)::INT AS success, "
            f"(hash(i) % 1000) / 100.0 AS duration FROM range({size}) t(i)) "
            f"TO '{path}' (FORMAT parquet)"
        )
        return path
    place = f"{folder}/{size}.db" if kind == "SQLite" else server.make_database(f"n{size}")
    tasks = [Task(f"suite/task-{i}", "?") for i in range(size // 100)]
    record = RunRecord("agent", Protocol(suite="suite"), tasks)
    numbers = (
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
        "SELECT i FROM n)"
    )
    with open_store(place) as store:
        store.begin(record, 100)
        store._db.execute(
            "INSERT INTO attempts (run, task, number, verdict, why, seconds, finished) "
            "SELECT t.run, t.key, n.i, CASE WHEN t.key * 37 % 101 > n.i * 53 % 101 THEN 1 ELSE 0 "
            f"END, 'wrong_answer', 1.5, 'now' FROM tasks t CROSS JOIN {numbers} n"
        )
        store.vacuum()
    return place


def measure(small: bool) -> str:
    part = 20 if small else 1
    stored = storing(100_000 // part)
    ray, code = ray_tables(small)
    large = reports([10**5, 10**6, 10**7] if not small else [10**5, 3 * 10**6])
    return "\n\n".join(
        [
            f"{machine()}, {os.cpu_count()} processors. PostgreSQL waits for the disk on commit.",
            markdown(
                ("stored, in groups of 500", "store", "by", "attempts per second", "bytes each"),
                stored,
            ),
            markdown(
                JUDGE_HEADER,
                ray,
            ),
            markdown(CODE_HEADER, code),
            markdown(("report on", "attempts", "seconds", "megabytes at most", "growth"), large),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="keep the tables in the docs")
    parser.add_argument("--small", action="store_true", help="only to see that it works")
    chosen = parser.parse_args()
    text = measure(chosen.small)
    print(text)
    if chosen.write:
        write_section("scale", text)


if __name__ == "__main__":
    main()
