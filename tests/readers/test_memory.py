"""A million attempts must fit into 400 MB, a log of 100 MB into 300, all of Python included."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LIMIT = 400 * 1024 * 1024
LOG_LIMIT = 300 * 1024 * 1024
READ_LIMIT = 240 * 1024 * 1024
"""Reading is where a log takes its room; what a report adds afterwards fits into what is left."""
LOG_BYTES = 100_000_000

# VmHWM belongs to this program alone; getrusage would count the tests that started it as well.
MEASURED = """
import re, sys
from pathlib import Path
from passhat.cli import main
code = main(sys.argv[1:])
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(code, peak * 1024, file=sys.stderr)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


def test_a_million_attempts_are_reported_in_under_400_mb(tmp_path: Path) -> None:
    path = tmp_path / "million.csv"
    with path.open("w") as stream:
        stream.write("model,task,trial,success,duration,cost\n")
        for task in range(5000):
            stream.writelines(
                f"agent,suite/task-{task},{i},{(task + i) % 3 % 2},{i}.5,0.0{i}\n"
                for i in range(200)
            )
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "report", str(path)], capture_output=True, text=True
    )
    code, peak = map(int, done.stderr.split())
    assert code == 0
    assert "5,000 tasks x 200 attempts" in done.stdout
    assert peak < LIMIT, f"{peak / 2**20:.0f} MB"


TALK = json.dumps([{"role": "user", "content": "Please change my flight. " * 20}] * 16)


def _until_full(record: Callable[[int], str], separator: str = ", ") -> Iterator[str]:
    size = number = 0
    while size < LOG_BYTES:
        text = (separator if number else "") + record(number)
        size += len(text)
        number += 1
        yield text


def _tau2(path: Path) -> None:
    def record(number: int) -> str:
        task, trial = divmod(number, 4)
        return (
            f'{{"task_id": "{task}", "trial": {trial}, "reward_info": {{"reward": {number % 2}}}, '
            f'"termination_reason": "user_stop", "messages": {TALK}}}'
        )

    with path.open("w") as stream:
        stream.write('{"info": {"environment_info": {}}, "simulations": [')
        stream.writelines(_until_full(record))
        stream.write("]}")


def _tau2_packed(path: Path) -> None:
    _tau2(path)
    plain = path.read_bytes()
    path.write_bytes(gzip.compress(plain, 1))


def _tau2_broken(path: Path) -> None:
    _tau2(path)
    with path.open("rb+") as stream:
        stream.truncate(LOG_BYTES - 1000)


def _human_eval(path: Path) -> None:
    completion = json.dumps("    return sorted(numbers)\n" * 8)

    def record(number: int) -> str:
        return (
            f'{{"task_id": "HumanEval/{number % 164}", "completion": {completion}, '
            f'"result": "passed", "passed": true, "number": {number}}}'
        )

    with path.open("w") as stream:
        stream.writelines(_until_full(record, "\n"))


def _cruxeval(path: Path) -> None:
    answers = json.dumps(["f([1, 2, 3, 4, 5], 'a word or two', 7)"] * 10)

    def record(number: int) -> str:
        return f'"sample_{number}": {answers}'

    with path.open("w") as stream:
        stream.write('{"raw_generations": {')
        stream.writelines(_until_full(record))
        stream.write('}, "raw_scored_generations": {"sample_0": [true, false]}}')


def _inspect(path: Path) -> None:
    head = {"status": "success", "eval": {"task": "t", "task_id": "i", "model": "m"}}
    rows = [{"id": i, "epoch": 1, "scores": {"m": {"value": "C"}}} for i in range(20_000)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(head))
        for row in rows:
            archive.writestr(f"samples/{row['id']}_epoch_1.json", json.dumps(row) + TALK[:5000])
        archive.writestr("summaries.json", json.dumps(rows))


LOGS = {
    "tau2-bench": _tau2,
    "tau2-bench, gzipped": _tau2_packed,
    "tau2-bench, cut off": _tau2_broken,
    "HumanEval": _human_eval,
    "CRUXEval": _cruxeval,
    "inspect_ai": _inspect,
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_100_mb_is_reported_in_under_300_mb(tmp_path: Path, name: str) -> None:
    path = tmp_path / "big.json"
    LOGS[name](path)
    command, limit = ("report", LOG_LIMIT) if name == "tau2-bench" else ("read", READ_LIMIT)
    # The talk repeats itself, so gzip packs it tighter than the default limit of 50 to 1 allows.
    more = ("--max-unpacked", "4GB") if "gzipped" in name else ()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, command, str(path), *more], capture_output=True, text=True
    )
    code, peak = map(int, done.stderr.splitlines()[-1].split())
    assert code == (4 if "cut off" in name else 0)
    assert peak < limit, f"{peak / 2**20:.0f} MB"
