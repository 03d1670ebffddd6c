"""Millions of attempts are counted where they lie, and give the numbers that reading gives."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from passhat.errors import OrderUnknown, ReadError
from passhat.estimates import estimate
from passhat.outcomes import Outcomes, Run, Verdict
from passhat.protocol import Protocol
from passhat.readers import counted, read
from passhat.readers.store import run_from_store
from passhat.store import AttemptRecord, RunRecord, open_store
from passhat.suites.base import Judgement, Task

Passhat = Callable[..., Any]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on ten attempts are many."""
    monkeypatch.setattr(counted, "MOST_ATTEMPTS", 10)


def same(one: Run, other: Run) -> None:
    """Everything but the order and the attempts themselves."""
    a, b = one.outcomes, other.outcomes
    assert list(a.tasks) == list(b.tasks)
    for name in ("n", "c", "missing"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist()
    assert a.labels == b.labels
    assert one.protocol == other.protocol
    assert (one.name, one.agent) == (other.name, other.agent)
    assert one.missing_by_reason == other.missing_by_reason
    assert one.failures_by_category == other.failures_by_category
    for measure in ("seconds", "steps", "tokens", "cost"):
        assert one.measured(measure) == other.measured(measure)


def test_a_store_counted_is_the_store_read(
    store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [Task(f"t{i}", "?", {"kind": f"k{i % 2}"} if i else {}) for i in range(7)]
    record = RunRecord("agent", Protocol(suite="s"), tasks)
    wanted = [(task.id, number) for task in tasks for number in range(1, 6)][:-2]
    with open_store(store_place) as store:
        store.begin(record, 5)
        store.claim(record.id, wanted)
        verdicts = [Verdict(i * i % 7 % 3 - 1) for i in range(len(wanted))]
        whys = {Verdict.PASSED: "", Verdict.FAILED: "timeout", Verdict.MISSING: "budget"}
        store.finish(
            record.id,
            [
                AttemptRecord(
                    *(*one, Judgement(verdict, whys[verdict])),
                    seconds=0.5 * one[1],
                    cost=None if one[1] == 2 else 0.25,
                )
                for one, verdict in zip(wanted, verdicts, strict=True)
            ],
        )
        whole = run_from_store(store, store.find(record.id))
        monkeypatch.setattr(counted, "MOST_ATTEMPTS", 10)
        large = run_from_store(store, store.find(record.id))
    assert whole.attempts is not None
    assert large.attempts is None
    same(whole, large)
    assert "counted in the database" in large.reading[-1]
    assert estimate(large.outcomes, "pass^2") == estimate(whole.outcomes, "pass^2")
    with pytest.raises(OrderUnknown, match="counted"):
        estimate(large.outcomes, "first@2")


def table(folder: Path, rows: str) -> Path:
    path = folder / "table.parquet"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return path


TABLES = {
    "numbers": "SELECT 'agent' AS model, 't' || (i // 5) AS task, i % 5 AS trial, "
    "CASE WHEN i % 7 = 0 THEN NULL ELSE i % 3 % 2 END AS success, i * 0.5 AS duration, "
    "CASE WHEN i % 4 = 0 THEN NULL ELSE i END AS cost FROM range(60) t(i)",
    "booleans and two models": "SELECT 'm' || (i % 2) AS model, 0.5 * (i % 2) AS temperature, "
    "'t' || (i // 10) AS task, i // 2 % 5 AS trial, i % 3 = 0 AS success, "
    "'kind ' || (i // 10 % 2) AS \"slice:kind\" FROM range(60) t(i)",
    "words": "SELECT i % 4 AS task, 'x' || i AS trial, "
    "CASE i % 4 WHEN 0 THEN 'Pass' WHEN 1 THEN 'fail' WHEN 2 THEN 'it''s 1' ELSE 'n/a' END "
    "AS result, CASE WHEN i % 4 = 1 THEN 'timeout: 3 s' END AS failure "
    "FROM range(40) t(i) WHERE i % 4 <> 2",
    "rewards": "SELECT 't' || (i // 4) AS task, i AS seed, (i % 5) / 4.0 AS reward "
    "FROM range(40) t(i)",
    "minus one": "SELECT 't' || (i // 4) AS task, (i % 3) - 1 AS success FROM range(40) t(i)",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_counted_is_the_table_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = table(tmp_path, TABLES[name])
    columns = {"success": "result"} if name == "words" else None
    whole = read(path, columns=columns)
    monkeypatch.setattr(counted, "MOST_ATTEMPTS", 10)
    large = read(path, columns=columns)
    assert len(whole) == len(large)
    for one, other in zip(whole, large, strict=True):
        assert other.attempts is None
        same(one, other)
        said = [line for line in one.reading if "missing (" in line or "reward" in line]
        assert set(said) <= set(other.reading)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SELECT 't' AS task, i % 20 AS trial, 1 AS success FROM range(21) t(i)", "twice"),
        ("SELECT 't' AS task, 'x' || i % 20 AS trial, 1 AS success FROM range(21) t(i)", "twice"),
        ("SELECT 't' AS task, 'maybe' AS success FROM range(21) t(i)", "maybe"),
        ("SELECT 't' AS task, i AS success FROM range(21) t(i)", "--pass-at"),
        ("SELECT '' AS task, 1 AS success FROM range(21) t(i)", "task id is empty"),
        (
            "SELECT 't' AS task, 1 AS success, i AS \"slice:x\" FROM range(21) t(i)",
            "belongs to the task",
        ),
    ],
)
def test_what_is_broken_is_refused_here_too(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(ReadError, match=message):
        read(table(tmp_path, rows))


@pytest.mark.usefixtures("few")
def test_every_command_works_on_counts(passhat: Passhat, tmp_path: Path) -> None:
    path = table(tmp_path, TABLES["numbers"])
    assert passhat("report", path).code == 0
    assert "counted in the database" in passhat("report", path).out
    two = table(tmp_path, TABLES["booleans and two models"])
    assert passhat("compare", two, "--allow", "--metric", "pass^2").code == 0
    path = table(tmp_path, TABLES["numbers"])
    assert passhat("gate", path, "pass^2 >= 0.01", "seconds <= 100").code in (0, 3)
    assert passhat("forecast", path, "--metric", "pass^10").code == 0
    ended = passhat("report", path, "--metric", "window^2")
    assert ended.code == 2
    assert "counted" in ended.err


MEMORY = """
import re, sys
from pathlib import Path
from passhat.cli import main
code = main(["report", sys.argv[1], "--json"])
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(code, peak // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_two_million_attempts_are_reported_in_under_300_mb(tmp_path: Path) -> None:
    rows = (
        "SELECT 'a' AS model, 'task-' || (i // 100) AS task, i % 100 AS trial, "
        "(hash(i) % 1000 < i // 100 % 1000)::INT AS success FROM range(2100000) t(i)"
    )
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, table(tmp_path, rows)], capture_output=True, text=True
    )
    code, peak = map(int, done.stderr.split())
    assert code == 0
    assert json.loads(done.stdout)["runs"][0]["estimates"][0]["attempts"] == 2_100_000
    assert peak < 300, f"{peak} MB"
    assert re.search("counted in the database", done.stdout)


def test_counts_of_a_run_need_a_row_per_task_only() -> None:
    outcomes = Outcomes.from_counts([10**8, 10**8], [5, 10**7])
    assert outcomes.attempts == 2 * 10**8
