"""What a workspace costs beside the agent and the tests: time, at once, and disk.

``python benchmarks/workspaces.py [--files 2000] [--attempts 16]`` prints the seconds of an attempt
whose agent changes one file and whose tests take no time, the same with 8 attempts at once, the
bytes on disk before and after, and 30 tasks in three languages whose pass^k is known by hand.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from math import comb
from pathlib import Path

import passhat
from passhat.runner.run_spec import RunSpec, run
from passhat.store import AttemptRecord
from passhat.suites.workspace.walls import disk_use

_AGENT = "sed -i 's/ - / + /' add.sh\n"
_TASK = """instruction = "Fix add.sh."
test = "sh checks/run.sh"
result = "tap"
"""
_TESTS = 'echo 1..1; [ "$(sh add.sh 2 3)" = 5 ] && echo ok 1 || { echo not ok 1; exit 1; }\n'
_PARTS = {
    "python": ("add.py", "import sys\nprint(sum(map(int, sys.argv[1:])) {})\n", "python3 add.py"),
    "javascript": (
        "add.js",
        "console.log(+process.argv[2] - -process.argv[3] {})\n",
        "node add.js",
    ),
    "shell": ("add.sh", "echo $(($1 + $2 {}))\n", "sh add.sh"),
}
_CODER = """def fix(prompt, attempt):
    place, rate = attempt.workspace, int(attempt.task[-2:]) % 9
    (file,) = [path.name for path in place.folder.iterdir() if "add" in path.name]
    text = place.read(file)
    place.write(file, text.replace("+ 1", "") if attempt.number <= rate else text + "\\n")
    return "done"
"""


def write_repository(folder: Path, files: int) -> None:
    """A task whose repository has so many files of 2 kB."""
    for name, text in {
        "task.toml": _TASK,
        "start/add.sh": "echo $(($1 - $2))\n",
        "solution/add.sh": "echo $(($1 + $2))\n",
        "hidden/checks/run.sh": _TESTS,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for i in range(files):
        path = folder / "start" / f"package{i % 100}" / f"module{i}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{i} " * 400)


def write_languages(folder: Path, count: int) -> None:
    """Tasks by turns in Python, JavaScript and shell."""
    for i in range(count):
        file, code, command = list(_PARTS.values())[i % len(_PARTS)]
        test = f'echo 1..1; [ "$({command} 2 3)" = 5 ] && echo ok 1 || {{ echo not ok 1; exit 1; }}'
        place = folder / f"task-{i:02d}"
        for name, text in (
            ("task.toml", f"instruction = 'Fix.'\ntest = '''{test}'''\nresult = 'tap'\n"),
            (f"start/{file}", code.format("+ 1")),
            (f"solution/{file}", code.format("")),
        ):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)


def processor_seconds() -> float:
    """Processor time of this process and of all that it started, so far."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measure(folder: Path, attempts: int, jobs: int) -> tuple[float, float, float]:
    """Seconds of an attempt: on the wall clock in the median and the mean, and processor time."""
    spec = RunSpec(
        agent="command:sh agent.sh",
        suite="workspace:tasks",
        attempts=attempts,
        jobs=jobs,
        store=str(folder / f"store-{jobs}.db"),
    )
    run(replace(spec, attempts=1, name="warm"))
    ends: list[float] = []
    cpu, began = processor_seconds(), time.perf_counter()
    verdicts: list[str] = []

    def note(record: AttemptRecord, _: object) -> None:
        ends.append(time.perf_counter())
        verdicts.append(str(record.judgement.verdict))

    run(spec, progress=note)
    wall, used = time.perf_counter() - began, processor_seconds() - cpu
    assert verdicts == ["passed"] * attempts, verdicts
    gaps = [b - a for a, b in zip([began, *ends], ends, strict=False)]
    return statistics.median(gaps), wall / attempts, used / attempts


def agent_and_tests(folder: Path, count: int = 20) -> float:
    """Seconds that agent and tests take by themselves, without any sandbox."""
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run(["sh", str(folder / "agent.sh")], cwd=folder / "tasks/big/start", check=True)
        subprocess.run(["sh", "-c", _TESTS], cwd=folder / "tasks/big/start", capture_output=True)
    return (time.perf_counter() - began) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--attempts", type=int, default=16)
    parser.add_argument("--tasks", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="passhat-bench-") as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        os.chdir(folder)
        write_repository(folder / "tasks" / "big", options.files)
        (folder / "agent.sh").write_text(_AGENT)
        for jobs in (1, 8):
            middle, mean, cpu = measure(folder, options.attempts, jobs)
            print(f"{options.files:,} files, {jobs} at once, agent and tests included:")
            print(f"  {mean:.3f} s per attempt in the mean, {middle:.3f} s in the median")
            print(f"  {cpu:.3f} s of processor time per attempt")
            size, _ = disk_use([str(folder / "cache")])
            print(f"  {size / 2**20:.1f} MiB in the cache afterwards", flush=True)
        print(f"agent and tests alone: {agent_and_tests(folder):.3f} s")
        print("load of the machine:", *(f"{value:.1f}" for value in os.getloadavg()))
        shutil.rmtree(folder / "tasks")
        write_languages(folder / "tasks", options.tasks)
        (folder / "coder.py").write_text(_CODER)
        sys.path.insert(0, str(folder))
        place = str(folder / "rates.db")
        run(
            RunSpec(
                agent="python:coder:fix",
                suite="workspace:tasks",
                attempts=8,
                store=place,
                in_process=True,
            )
        )
        (loaded,) = passhat.read(place)
        rates = [i % 9 for i in range(options.tasks)]
        for k in (1, 4, 8):
            by_hand = sum(comb(c, k) / comb(8, k) for c in rates) / options.tasks
            value = passhat.estimate(loaded, f"pass^{k}").value
            print(f"pass^{k} of {options.tasks} tasks: {value:.4f}, by hand {by_hand:.4f}")


if __name__ == "__main__":
    main()
