"""Attempts of an instant agent: several runners on one PostgreSQL store, and eight Ray workers.

python benchmarks/teams.py                prints both tables
python benchmarks/teams.py --write        writes them into docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from measuring import ROOT, machine, markdown, write_section
from passhat.integrations.ray.ray_runner import OnRay
from passhat.runner.run import Stop, run_attempts
from passhat.runner.run_spec import RunSpec, run
from passhat.store import open_store

sys.path.insert(0, str(ROOT / "tools"))

from postgres_cluster import Cluster
from ray_cluster import RayCluster
from scale_ray import _processor_seconds

POSTGRES_HEADER = (
    *("an instant agent into PostgreSQL", "attempts per second", "times 1 runner"),
    *("ms of a runner's processor each", "ms of the server's processor each"),
)
RAY_HEADER = (
    *("an instant agent", "attempts per second", "times one process"),
    *("ms of the command's processor each", "ms of all processors each"),
)
TASKS = 100
WORKERS = 8
AGENT = "async def answer(prompt):\n    return 'yes'\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Runners on one store, and Ray workers.")
    parser.add_argument("--write", action="store_true", help="write into docs/benchmarks.md")
    parser.add_argument("--attempts", type=int, default=20_000, help="of PostgreSQL's runners")
    parser.add_argument("--ray-attempts", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        Path("instant.py").write_text(AGENT)
        lines = [{"id": f"t{i}", "prompt": "yes?", "answer": "yes"} for i in range(TASKS)]
        Path("tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
        spec = RunSpec(suite="jsonl:tasks.jsonl", agent="python:instant:answer", in_process=True)
        tables = [
            markdown(POSTGRES_HEADER, _measure_postgres(spec, options.attempts)),
            markdown(RAY_HEADER, _measure_ray(spec, options.ray_attempts)),
        ]
        os.chdir(ROOT)
    text = "\n\n".join(
        [
            f"{machine()}, {os.cpu_count()} processors, shared with other work. PostgreSQL: "
            f"{options.attempts:,} attempts, commits wait for the disk. Ray: "
            f"{options.ray_attempts:,} attempts into SQLite.",
            *tables,
        ]
    )
    print(text)
    if options.write:
        write_section("teams", text)


def _measure_postgres(spec: RunSpec, attempts: int) -> list[tuple[str, ...]]:
    """Runners as forks of this process, which all begin at once; the store is new each time."""
    cluster = Cluster(durable=True)
    cluster.start()
    try:
        rows: list[tuple[str, ...]] = []
        rates: list[float] = []
        for runners in (1, 4, 16):
            place = cluster.make_database(f"r{runners}")
            with open_store(place):  # its tables are there before the first runner
                pass
            planned = replace(spec, store=place, attempts=attempts // TASKS)
            before = _server_seconds(cluster)
            seconds, processor = _run_forks(planned, runners)
            server = _server_seconds(cluster) - before
            with open_store(place) as store:
                (stored,) = store.runs()
                assert (stored.status, stored.attempts) == ("complete", attempts)
            rates.append(attempts / seconds)
            rows.append(
                (
                    *(f"{runners} runner{'s' * (runners > 1)}", f"{rates[-1]:,.0f}"),
                    f"{rates[-1] / rates[0]:.2f}",
                    *(f"{1e3 * processor / attempts:.2f}", f"{1e3 * server / attempts:.2f}"),
                )
            )
        return rows
    finally:
        cluster.stop()


def _run_forks(spec: RunSpec, runners: int) -> tuple[float, float]:
    """Seconds until the last runner has ended, and seconds of all their processors."""
    go, start = os.pipe()
    children = []
    for _ in range(runners):
        if (child := os.fork()) == 0:
            status = 1
            try:
                os.close(start)
                os.read(go, 1)
                run(spec)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    os.close(go)
    time.sleep(0.5)
    began = time.perf_counter()
    os.close(start)
    processor = 0.0
    for child in children:
        _, status, used = os.wait4(child, 0)
        assert status == 0
        processor += used.ru_utime + used.ru_stime
    return time.perf_counter() - began, processor


def _server_seconds(cluster: Cluster) -> float:
    first = int((cluster.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    return _processor_seconds((first,))


def _measure_ray(spec: RunSpec, attempts: int) -> list[tuple[str, ...]]:
    spec = replace(spec, attempts=attempts // TASKS, jobs=8 * WORKERS)
    rows: list[tuple[str, ...]] = []
    rates: list[float] = []
    cluster = RayCluster(processors=WORKERS)
    try:
        os.environ |= cluster.environment
        for name in ("one process", f"Ray, {WORKERS} workers"):
            plan = spec.plan()
            with ExitStack() as stack:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                store = stack.enter_context(open_store(f"{folder}/s.db"))
                work = None
                if rates:
                    engine = OnRay(plan, spec, address=cluster.address)
                    work = stack.enter_context(engine).work
                roots = (os.getpid(), cluster.pid)
                used, own = _processor_seconds(roots), time.process_time()
                began = time.perf_counter()
                asyncio.run(run_attempts(plan, store, Stop(), lambda *_: None, work))
                seconds = time.perf_counter() - began
                own = time.process_time() - own
                used = _processor_seconds(roots) - used
                assert len(store.load_attempts(plan.record.id)) == attempts
            rates.append(attempts / seconds)
            rows.append(
                (
                    *(name, f"{rates[-1]:,.0f}", f"{rates[-1] / rates[0]:.2f}"),
                    *(f"{1e3 * own / attempts:.3f}", f"{1e3 * used / attempts:.3f}"),
                )
            )
        return rows
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
