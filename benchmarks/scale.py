"""Past one machine: rows per second, what Ray costs and brings, reports on ten million attempts.

    python benchmarks/scale.py            prints the tables
    python benchmarks/scale.py --write    and keeps them in docs/benchmarks.md
    python benchmarks/scale.py --small    a small part of it, to see that it works
    python benchmarks/scale.py --large    every command on a hundred million attempts instead
    python benchmarks/scale.py --million  copies, merges, JSON and pages of a million instead

Needs PostgreSQL on this machine (the programs, not a running server) and the extra [all].
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from large_runs import measured, write_parquet, write_store
from measuring import ROOT, machine, markdown, write_section
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.suites.base import Judgement, Task

sys.path.insert(0, str(ROOT / "tools"))

from postgres_cluster import Cluster
from scale_ray import CODE_HEADER, JUDGE_HEADER, ray_tables

GROUP = 500
TALK = [{"role": who, "text": "Please change my order, it was wrong. " * 12} for who in "ab"]
"""About 900 characters, 300 bytes once packed."""


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
    """Time and memory of `passhat report` on large runs, 100 attempts at every task."""
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder, _server() as server:
        for kind in ("Parquet", "SQLite", "PostgreSQL"):
            first = None
            for size in sizes:
                place = f"{folder}/{size}.{kind.lower()}"
                if kind == "Parquet":
                    write_parquet(place, size // 100, 100)
                else:
                    place = server.make_database(f"n{size}") if kind == "PostgreSQL" else place
                    write_store(place, size // 100, 100)
                    with open_store(place) as store:
                        store.vacuum()
                found = measured("report", place)
                assert f"{size // 100:,} tasks x 100 attempts" in found.said
                first = first or (size, found.seconds)
                growth = f"{found.seconds / first[1]:.1f} for {size // first[0]:,}"
                rows.append(
                    (kind, f"{size:,}", f"{found.seconds:.2f}", f"{found.megabytes:.0f}", growth)
                )
                if kind != "PostgreSQL":
                    Path(place).unlink()
    return rows


def measure_large(folder: str) -> str:
    """Every command on up to a hundred million attempts; needs 45 GB and two hours."""
    rows: list[tuple[str, ...]] = []
    for tasks, each in ((1_000, 100), (10_000, 10_000), (1_000_000, 100)):
        a, b = (
            write_parquet(f"{folder}/{agent}.parquet", tasks, each, agent, shift)
            for agent, shift in (("one", 0), ("two", 5))
        )
        rows += _asked("Parquet", tasks, each, a, b)
        Path(a).unlink()
        Path(b).unlink()
    with _server() as server:
        for kind in ("SQLite", "PostgreSQL"):
            for tasks, each in ((1_000, 100), (1_000_000, 100)):
                in_file = kind == "SQLite"
                place = f"{folder}/{tasks}.db" if in_file else server.make_database(f"n{tasks}")
                one = write_store(place, tasks, each, "one")
                two = write_store(place, tasks, each // 10, "two", 5)
                os.environ["PASSHAT_STORE"] = place
                rows += _asked(kind, tasks, each, one, two)
                if in_file:
                    Path(place).unlink()
    return "\n\n".join(
        [
            f"{machine()}, {os.cpu_count()} processors.",
            markdown(
                ("on", "command", "processor seconds", "on the clock", "megabytes at most"),
                rows,
            ),
        ]
    )


def measure_million(folder: str) -> str:
    """Copies and merges of a million attempts, and reports that say more than the terminal's."""
    rows: list[tuple[str, ...]] = []
    with _server() as server:
        for tasks, each in ((10_000, 100), (200_000, 5)):
            place = f"{folder}/{tasks}.db"
            write_store(place, tasks, each)
            page = f"{folder}/page.html"
            for name, words in {
                "store copy, SQLite to SQLite": ("store", "copy", place, f"{folder}/copy.db"),
                "store copy, SQLite to PostgreSQL": (
                    *("store", "copy", place, server.make_database(f"copy{tasks}")),
                ),
                "store merge into SQLite": ("store", "merge", place, "--store", f"{place}-merged"),
                "report": ("report", place),
                "report --json": ("report", place, "--json"),
                "report --html": ("report", place, "-o", page),
            }.items():
                found = measured(*words)
                needed = f"{found.busy:.0f}", f"{found.seconds:.0f}", f"{found.megabytes:.0f}"
                rows.append((name, f"{tasks:,} x {each}", *needed))
                print(*rows[-1], file=sys.stderr, flush=True)
            for path in Path(folder).iterdir():
                path.unlink()
    header = (
        "command",
        "tasks x attempts",
        "processor seconds",
        "on the clock",
        "megabytes at most",
    )
    return f"{machine()}, {os.cpu_count()} processors.\n\n{markdown(header, sorted(rows))}"


def _asked(kind: str, tasks: int, each: int, one: str, two: str) -> list[tuple[str, ...]]:
    commands = {
        "report": ("report", one),
        "forecast": ("forecast", one),
        "gate": ("gate", one, "pass^2 >= 0.3", "missing <= 2%"),
        "compare": ("compare", one, two, "--allow"),
    }
    rows: list[tuple[str, ...]] = []
    for name, words in commands.items():
        found = measured(*words)
        numbers = (f"{one:.0f}" for one in (found.busy, found.seconds, found.megabytes))
        rows.append((f"{kind}, {tasks:,} tasks x {each:,}", name, *numbers))
        print(*rows[-1], file=sys.stderr, flush=True)
    return rows


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
    parser.add_argument("--large", action="store_true", help="10^8 attempts: 45 GB, two hours")
    parser.add_argument("--million", action="store_true", help="copies and pages: ten minutes")
    parser.add_argument("--folder", help="where the large runs are written")
    chosen = parser.parse_args()
    if chosen.large or chosen.million:
        asked = measure_large if chosen.large else measure_million
        section = "scale-large" if chosen.large else "scale-million"
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            text = asked(folder)
    else:
        section, text = "scale", measure(chosen.small)
    print(text)
    if chosen.write:
        write_section(section, text)


if __name__ == "__main__":
    main()
