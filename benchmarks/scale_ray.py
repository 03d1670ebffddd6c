"""What Ray costs and brings: a judge that needs a processor, and suites of programs in sandboxes.

python benchmarks/scale_ray.py            prints both tables; `scale.py` writes them down
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from measuring import ROOT, markdown
from passhat.integrations.ray.ray_runner import OnRay
from passhat.runner.run import Progress, Stop, run_attempts
from passhat.runner.run_spec import RunSpec
from passhat.store import open_store

sys.path.insert(0, str(ROOT / "tools"))

from ray_cluster import RayCluster

__all__ = ["CODE_HEADER", "JUDGE_HEADER", "ray_tables"]

JUDGE_HEADER = (
    *("a judge of 50 ms on 2 processors", "seconds", "a process spends beyond 50 ms"),
    *("times faster than 1 worker", "time against two local runners"),
)
CODE_HEADER = (
    *("programs judged in sandboxes on 2 processors", "by", "attempts per second"),
    *("ms of a processor each", "processors busy"),
    *("times faster than 1 worker", "time against the local runner"),
)
ROUNDS = 3
SECONDS_EACH = 4.0
"""About how long one measurement takes."""
TASKS = 20

SPIN = """
import time
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn, fingerprint

class Spin(Episode):
    def open(self):
        return Turn("?")
    def reply(self, answer):
        return None
    def judge(self):
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            sum(range(500))
        return Judgement.passed()

class SpinSuite(Suite):
    name = "spin"
    tasks = [Task(f"t{i}", "?") for i in range(50)]
    fingerprint = judge_fingerprint = fingerprint("spin")
    def episode(self, task, seed):
        return Spin()

async def answer(prompt):
    return "yes"
"""

PROGRAMS = """
ANSWER = '''    found = []
    for n in range(2, limit):
        if all(n % d for d in range(2, int(n ** 0.5) + 1)):
            found.append(n)
    return len(found)
'''

def write(prompt):
    return ANSWER
"""
PRIMES = 20_000
"""Finding the primes up to here takes a program some 30 to 50 ms."""


@contextmanager
def _in_folder() -> Iterator[RayCluster]:
    """A cluster of two workers, and a folder with agents and suites."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spin.py").write_text(SPIN)
        (Path(folder) / "programs.py").write_text(PROGRAMS)
        (Path(folder) / "primes.jsonl").write_text("\n".join(_primes()))
        os.chdir(folder)
        sys.path.insert(0, folder)
        cluster = RayCluster(processors=2)
        try:
            os.environ |= cluster.environment
            yield cluster
        finally:
            os.chdir(ROOT)
            sys.path.remove(folder)
            cluster.stop()


def _primes() -> Iterator[str]:
    known = [n for n in range(2, PRIMES) if all(n % d for d in range(2, int(n**0.5) + 1))]
    for number in range(TASKS):
        limit = PRIMES - 10 * number
        count = sum(n < limit for n in known)
        yield json.dumps(
            {
                "task_id": f"primes/{number}",
                "prompt": f'def primes(limit):\n    """How many are below, as {limit}?"""\n',
                "entry_point": "primes",
                "test": f"def check(primes):\n    assert primes({limit}) == {count}",
            }
        )


def ray_tables(small: bool) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Both tables, on one cluster: Ray reads the secret of a cluster once per process."""
    with _in_folder() as cluster:
        return _judge_of_50_ms(50 if small else 400, cluster), _code(small, cluster)


def _judge_of_50_ms(attempts: int, cluster: RayCluster) -> list[tuple[str, ...]]:
    """A judge that needs 50 ms of a processor, by the local runner and by Ray workers."""
    spin = RunSpec(suite="python:spin:SpinSuite", agent="python:spin:answer")
    local = _timed(spin, attempts // 50, 8).seconds
    two_local = _two_runners(attempts)
    one = _timed(spin, attempts // 50, 1, cluster).seconds
    both = _timed(spin, attempts // 50, 2, cluster)
    two, start = both.seconds, both.start
    many = _timed(spin, attempts // 50, 8, cluster).seconds
    ways = [
        ("local runner, one process", local, 1),
        ("two local runners on one store", two_local, 2),
        ("Ray, 1 worker", one, 1),
        ("**Ray, 2 workers**", two, 2),
        ("Ray, 2 workers, 8 attempts at once", many, 2),
    ]
    table: list[tuple[str, ...]] = [
        (
            *(way, f"{spent:.2f}", f"{1e3 * (processes * spent / attempts - 0.05):+.1f} ms"),
            f"{one / spent:.2f}",
            f"{spent / two_local:.2f}",
        )
        for way, spent, processes in ways
    ]
    return [*table, ("starting two workers", f"{start:.2f}", "", "", "")]


def _code(small: bool, cluster: RayCluster) -> list[tuple[str, ...]]:
    """Suites of programs: ways in turn, several times; the ratios are medians over the rounds."""
    suites = {
        "programs that compute for 50 ms": RunSpec(
            suite="code:primes.jsonl", agent="python:programs:write"
        ),
        "`code:ordercode` by `demo:coder`": RunSpec(suite="code:ordercode", agent="demo:coder"),
    }
    rows: list[tuple[str, ...]] = []
    for what, spec in suites.items():
        tasks = len(spec.load().suite.tasks)
        first = _timed(spec, 1, 8).seconds
        each = 1 if small else max(1, round(SECONDS_EACH / first))
        # The same attempts at once for one worker as for two, so that only they differ.
        ways: dict[str, Callable[[], _Took]] = {
            "the local runner": partial(_timed, spec, each, 8),
            "Ray, 1 worker": partial(_timed, spec, each, 8, cluster, workers=1),
            "**Ray, 2 workers**": partial(_timed, spec, each, 8, cluster),
        }
        rounds = [
            {way: work() for way, work in ways.items()} for _ in range(1 if small else ROUNDS)
        ]
        for way in ways:
            took = [one[way] for one in rounds]
            rate = median(each * tasks / one.seconds for one in took)
            spent = median(1e3 * one.processor / (each * tasks) for one in took)
            # The highest: a shared machine takes processors away, and gives none.
            busy = max(one.processor / one.seconds for one in took)
            ones = [one["Ray, 1 worker"].seconds for one in rounds]
            locals_ = [one["the local runner"].seconds for one in rounds]
            faster = median(a / b.seconds for a, b in zip(ones, took, strict=True))
            against = median(b.seconds / a for a, b in zip(locals_, took, strict=True))
            rows.append(
                (
                    *(what, way, f"{rate:,.0f}", f"{spent:.1f}", f"{busy:.2f}"),
                    *(f"{faster:.2f}", f"{against:.2f}"),
                )
            )
    return rows


class _Few(OnRay):
    """Some of the workers that the cluster has room for."""

    most = 1

    def _start_workers(self, count: int, job: object) -> list[object]:
        return super()._start_workers(min(count, self.most), job)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Took:
    """Seconds for all attempts, for starting whoever makes them, and of all processors."""

    seconds: float
    start: float
    processor: float


def _timed(
    spec: RunSpec,
    attempts: int,
    jobs: int,
    cluster: RayCluster | None = None,
    workers: int | None = None,
) -> _Took:
    """Make so many attempts at all tasks, here or on the cluster."""
    spec = replace(spec, attempts=attempts, jobs=jobs)
    loaded = spec.load()
    plan = spec.plan(loaded)
    roots = (os.getpid(), *([cluster.pid] if cluster else []))
    spent = 0.0

    def look(_record: object, progress: Progress) -> None:
        nonlocal spent
        if progress.done == progress.total:  # sandboxes are still there, with their children's time
            spent = _processor_seconds(roots)

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(open_store(f"{folder}/s.db"))
        before = time.perf_counter()
        work = None
        if cluster is not None:
            kind = OnRay if workers is None else _Few
            work = stack.enter_context(kind(plan, spec, address=cluster.address)).work
        start, used = time.perf_counter(), _processor_seconds(roots)
        asyncio.run(run_attempts(plan, store, Stop(), look, work))
        return _Took(time.perf_counter() - start, start - before, spent - used)


def _processor_seconds(roots: tuple[int, ...]) -> float:
    """What these processes and all below them have used, with those that have ended."""
    below: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            one = int(path.parent.name)
            below[one], ticks[one] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_ours(one: int) -> bool:
        while one in below and one not in roots:
            one = below[one]
        return one in roots

    used = sum(ticks[one] for one in ticks if is_ours(one))
    return used / os.sysconf("SC_CLK_TCK")


def _two_runners(attempts: int) -> float:
    """Two processes of the local runner share a store: the most that two processors can do."""
    program = (
        "import scale_ray, sys, time; scale_ray.one_of_two(int(sys.argv[1]), sys.argv[2]); "
        "print(time.monotonic())"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}."}
        command = [sys.executable, "-c", program, str(attempts), f"{folder}/s.db"]
        both = [
            subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        for process in both:  # both have loaded everything
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        start = time.monotonic()
        ends = []
        for process in both:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in both:
            said, _ = process.communicate()
            assert process.returncode == 0
            ends.append(float(said))
    return max(ends) - start


def one_of_two(attempts: int, place: str) -> None:
    """One of the two runners: says when it is ready, and waits for the word."""
    plan = RunSpec(
        suite="python:spin:SpinSuite", agent="python:spin:answer", attempts=attempts // 50, jobs=2
    ).plan()
    with open_store(place) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        asyncio.run(run_attempts(plan, store, Stop(), lambda _record, _progress: None))


if __name__ == "__main__":
    judge, code = ray_tables("--small" in sys.argv)
    print(markdown(JUDGE_HEADER, judge), markdown(CODE_HEADER, code), sep="\n\n")
