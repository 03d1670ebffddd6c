"""Runs of up to a hundred million attempts, and what commands need for them.

The attempts are made in the database itself, or by DuckDB: a hundred million of them would take an
hour to claim and finish one group after the other. What is written is what a run writes: verdicts,
reasons, seconds, tokens, cost and answers, with half a percent missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from passhat.protocol import Protocol
from passhat.store import RunRecord, open_store
from passhat.suites.base import Task

__all__ = ["Needed", "measured", "write_parquet", "write_store"]

MEASURING = """
import os, re, sys, time
from pathlib import Path
from passhat.cli import main
start = time.perf_counter()
code = main(sys.argv[1:])
spent = time.perf_counter() - start
busy = time.process_time()
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(int(code), spent, busy, peak / 1024, file=sys.stderr)
"""

_PASSED = "({task} * 37 + {shift}) % 101 > {number} * 53 % 101"
_MISSING = "({task} * 37 + {number}) % 211 = 0"


@dataclass(frozen=True, slots=True)
class Needed:
    """Seconds on the clock and of a processor, megabytes at most, and what was said."""

    seconds: float
    busy: float
    megabytes: float
    said: str


def measured(*arguments: str, codes: tuple[int, ...] = (0,)) -> Needed:
    """A command of passhat in a process of its own.

    With one thread for linear algebra: where processors are shared, several wait for one another.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEASURING, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    *_, last = done.stderr.splitlines() or [""]
    code, spent, busy, peak = last.split()
    assert int(code) in codes, done.stderr
    return Needed(float(spent), float(busy), float(peak), done.stdout)


def write_parquet(path: str, tasks: int, each: int, agent: str = "agent", shift: int = 0) -> str:
    """A table with one row per attempt, task after task; returns its path."""
    import duckdb

    words = {"task": f"(i // {each})", "number": f"(i % {each})", "shift": shift}
    missing, passed = _MISSING.format(**words), _PASSED.format(**words)
    with duckdb.connect() as database:
        database.execute("SET memory_limit = '1GB'")
        database.execute(
            f"COPY (SELECT '{agent}' AS model, 'suite/task-' || (i // {each}) AS task, "
            f"(i % {each})::INT AS trial, CASE WHEN {missing} THEN NULL ELSE ({passed})::INT END "
            f"AS success, CASE WHEN {missing} THEN 'rate_limit' WHEN {passed} THEN '' ELSE "
            "'wrong_answer' END AS failure, 1.5 + i % 7 * 0.25 AS duration, "
            f"0.0125 AS cost, 'kind ' || (i // {each} % 5) AS \"slice:kind\" "
            f"FROM range({tasks * each}) t(i)) TO '{path}' (FORMAT parquet)"
        )
    return path


def write_store(place: str, tasks: int, each: int, agent: str = "agent", shift: int = 0) -> str:
    """A run in a store, made there if need be; returns its id."""
    record = RunRecord(
        agent,
        Protocol(suite="suite"),
        [Task(f"suite/task-{i}", "?", {"kind": f"kind {i % 5}"}) for i in range(tasks)],
    )
    words = {"task": "t.position", "number": "n.i", "shift": shift}
    missing, passed = _MISSING.format(**words), _PASSED.format(**words)
    numbers = (
        f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {each}) "
        "SELECT i FROM n)"
    )
    with open_store(place) as store:
        store.begin(record, each)
        key = store._key(record.id)
        store._db.execute(
            "INSERT INTO attempts (run, task, number, verdict, why, seed, seconds, steps, tokens, "
            "cost, answer, finished) SELECT t.run, t.key, n.i, "
            f"CASE WHEN {missing} THEN -1 WHEN {passed} THEN 1 ELSE 0 END, "
            f"CASE WHEN {missing} THEN 'rate_limit' WHEN {passed} THEN '' ELSE 'wrong_answer' END, "
            "n.i * 7919, 1.5 + n.i % 7 * 0.25, 4, 900, 0.0125, '0123456789abcdef', "
            f"'2026-11-16T00:00:00.000+00:00' FROM tasks t CROSS JOIN {numbers} n "
            f"WHERE t.run = {key}"
        )
    return record.id
