"""Exports written by report/export.py and read back: every name, slice and number survives."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passhat import Outcomes, Run, read
from passhat.cli import main
from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.readers import Needs, base
from passhat.readers.formats.export import EXPORT_COLUMNS, outcome_problems
from passhat.readers.sources import Source
from passhat.reporting.export import as_csv_rows, as_json_lines, as_tau2, export_rows, write_parquet
from passhat.stats.outcomes import MissingReason, Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.store.labels import Label, StoredLabel, add_labels
from passhat.store.rows import JudgementSource, StoredJudgement
from passhat.suites.base import Judgement, Task

ODD_NAMES = [
    "=1+1",
    "'=1+1",
    "''=1+1",
    "+x",
    "-",
    "@cell",
    "'plain",
    'a,b"c',
    "two\nlines",
    "ünï 漢字 \U0001f600",
    "<b>&amp;</b>",
    "$\\alpha_1$ | 50% #x",
    "null",
    "0",
    "t" * 400,
]


def _run(
    folder: Path, tasks: Sequence[str], *, name: str = "agent", slices: Sequence[str] = ()
) -> Run:
    """Three attempts at every task: passed, failed, missing."""
    endings = [(1, None), (0, "timeout: too slow"), (None, "rate_limit: 429")]
    rows = [
        {
            "model": name,
            "task": task,
            "trial": number,
            "success": success,
            "failure": why,
            "seconds": 1.5 * number,
            "steps": number,
            "tokens": 10**15 + number,
            "cost": None if success is None else 0.1 * number,
            **{f"slice:{label}": f"{label}-{place % 2}" for label in slices},
        }
        for place, task in enumerate(tasks)
        for number, (success, why) in enumerate(endings, 1)
    ]
    path = folder / f"{len(list(folder.iterdir()))}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (run,) = read(path)
    return run


def _written(runs: Sequence[Run], folder: Path, form: str) -> Path:
    path = folder / f"export.{form}"
    if form == "parquet":
        write_parquet(runs, str(path))
    else:
        parts = (as_csv_rows if form == "csv" else as_json_lines)(runs)
        path.write_text("".join(parts), encoding="utf-8", newline="")
    return path


def _content(run: Run) -> tuple[Any, ...]:
    return (
        *(run.name, run.agent, run.outcomes.to_dict()),
        *(run.failures_by_category, run.missing_by_reason),
        [attempt.to_dict() for attempt in run.attempts or ()],
    )


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_odd_names_come_back_as_they_were(tmp_path: Path, form: str) -> None:
    run = _run(tmp_path, ODD_NAMES, name='mo\'del, "v2" é', slices=["le,vel", "="])
    (again,) = read(_written([run], tmp_path, form))
    assert _content(again) == _content(run)
    assert list(again.outcomes.tasks) == ODD_NAMES


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_every_run_keeps_its_own_slices(tmp_path: Path, form: str) -> None:
    """The runs share task ids, and only some of them have a slice."""
    runs = [
        _run(tmp_path, ["a", "b"], name="plain"),
        _run(tmp_path, ["a", "b"], name="two", slices=["z", "a"]),
        _run(tmp_path, ["b", "a"], name="one", slices=["a"]),
    ]
    again = {run.name: run.outcomes for run in read(_written(runs, tmp_path, form))}
    assert dict(again["plain"].labels) == {}
    assert dict(again["two"].labels) == {"z": ("z-0", "z-1"), "a": ("a-0", "a-1")}
    assert dict(again["one"].labels) == {"a": ("a-0", "a-1")}
    assert again["one"].tasks == ("b", "a")


def test_a_slice_after_a_very_long_answer_is_read(tmp_path: Path) -> None:
    """Formats are recognized by the first 64 KiB; a slice may be beyond them."""
    run = _run(tmp_path, ["a", "b"], slices=["level"])
    rows = [json.loads(line) for line in "".join(as_json_lines([run])).splitlines()]
    rows[0]["answer"] = 'she said "slice:none": ' * 8_000
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (again,) = read(path)
    assert dict(again.outcomes.labels) == {"level": ("level-0", "level-1")}


def test_the_order_of_runs_and_rows_changes_no_count(tmp_path: Path) -> None:
    run = _run(tmp_path, ["a", "b", "c"], slices=["level"])
    lines = "".join(as_json_lines([run])).splitlines(keepends=True)
    path = tmp_path / "reversed.jsonl"
    path.write_text("".join(reversed(lines)))
    (again,) = read(path)
    counts = zip(again.outcomes.tasks, again.outcomes.n, again.outcomes.c, strict=True)
    assert {task: (int(n), int(c)) for task, n, c in counts} == dict.fromkeys("abc", (2, 1))
    assert again.outcomes.labels["level"] == ("level-0", "level-1", "level-0")


def _fill(store: Store, *, gap: bool = False) -> str:
    """A run with all kinds of endings, scores, a later judgement and a label."""
    tasks = [Task("b", "?", {"level": "hard"}), Task("a", "?"), Task("10", "?", {"level": "easy"})]
    run = RunRecord("agent", Protocol(suite="suite", judge="exact"), tasks)
    store.begin(run, 5)
    endings = (
        Judgement.passed(),
        Judgement(Verdict.FAILED, "timeout", "too slow", 0.25),
        Judgement(Verdict.FAILED, "wrong_answer"),
        Judgement(Verdict.FAILED, "FooError", "odd: text"),
        Judgement.missing(MissingReason.RATE_LIMIT, "429"),
    )
    records = [
        AttemptRecord(
            *(task.id, number, judgement, 2**32 - number, 0.5 * number, 2),
            tokens=None if number == 3 else 10.5,
            retries=number % 2,
            transcript=[
                {"role": "user", "text": "?"},
                {"role": "agent", "text": f" answer {number}\n"},
                *([{"role": "expected", "text": "4"}] if number == 1 else []),
            ]
            if number < 5
            else [],
        )
        for task in tasks
        for number, judgement in enumerate(endings, 1)
        if not (gap and number == 2)
    ]
    store.claim(run.id, [(record.task, record.number) for record in records])
    store.finish(run.id, records)
    store.add_judgement(
        run.id, "a", 3, StoredJudgement(Verdict.PASSED, "", "seen", JudgementSource.HUMAN)
    )
    add_labels(store, run.id, [StoredLabel("a", 1, "ada", Label.WRONG, "late", "2026-01-01")])
    return run.id


@pytest.mark.parametrize("reverse", [False, True])
def test_a_store_is_exported_without_its_attempts_in_memory(tmp_path: Path, reverse: bool) -> None:
    """The rows that are streamed are those that are read, in every order of the tasks."""
    place = str(tmp_path / "s.db")
    with open_store(place) as store:
        run = _fill(store)
        if reverse:
            store._db.execute("UPDATE tasks SET position = 10 - position")
    (streamed,) = read(place, needs=Needs(details=True, streamed=True))
    (whole,) = read(place, needs=Needs(details=True))
    assert (streamed.attempts, streamed.id) == (None, run)
    rows = list(export_rows([streamed]))
    assert rows == list(export_rows([whole]))
    assert [row["task"] for row in rows[::5]] == (["10", "a", "b"] if reverse else ["b", "a", "10"])
    assert "".join(as_json_lines([streamed])) == "".join(as_json_lines([whole]))
    assert "".join(as_csv_rows([streamed])) == "".join(as_csv_rows([whole]))
    assert rows[0]["score"] == 1.0  # beside a score of 0.25 elsewhere


def test_scores_that_only_repeat_verdicts_are_not_exported(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    with open_store(place) as store:
        _fill(store)
        store._db.execute("UPDATE attempts SET score = verdict WHERE verdict >= 0")
    for streamed in (True, False):
        (run,) = read(place, needs=Needs(details=True, streamed=streamed))
        assert {row["score"] for row in export_rows([run])} == {None}


def test_an_exported_attempt_has_the_number_that_the_store_has(tmp_path: Path) -> None:
    """So that task#attempt of a run with gaps can be pasted back."""
    place = str(tmp_path / "s.db")
    with open_store(place) as store:
        _fill(store, gap=True)
    (run,) = read(place, needs=Needs(details=True, streamed=True))
    assert [row["attempt"] for row in export_rows([run])] == [1, 3, 4, 5] * 3


def test_a_run_is_exported_whole_however_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs above a limit are counted for reports; an export has every attempt all the same."""
    place, out = str(tmp_path / "s.db"), tmp_path / "out.jsonl"
    with open_store(place) as store:
        _fill(store)
    monkeypatch.setattr(base, "FEW_ATTEMPTS", 1)
    monkeypatch.setattr(base, "MOST_ATTEMPTS", 1)
    assert main(["export", place, "-o", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["seconds"] for row in rows] == [0.5, 1.0, 1.5, 2.0, 2.5] * 3
    assert rows[1]["category"] == "timeout"


def test_rows_hold_what_the_attempt_holds(tmp_path: Path) -> None:
    run = _run(tmp_path, ["a"], slices=["level"])
    passed, failed, missing = export_rows([run])
    assert list(passed)[: len(EXPORT_COLUMNS)] == list(EXPORT_COLUMNS)
    assert (passed["passed"], passed["category"], passed["reason"]) == (True, None, None)
    assert (failed["passed"], failed["category"]) == (False, "timeout")
    assert "too slow" in str(failed["detail"])
    assert (missing["passed"], missing["category"], missing["reason"]) == (None, None, "rate_limit")
    assert (missing["cost"], failed["cost"]) == (None, 0.2)
    assert passed["slice:level"] == "level-0"
    # Counts are whole numbers, also beyond what a float prints without an exponent.
    assert json.dumps([passed["steps"], passed["tokens"]]) == "[1, 1000000000000001]"


def test_counts_alone_become_that_many_attempts() -> None:
    outcomes = Outcomes.from_counts([4, 0, 1], [3, 0, 1], ["a", "b", "c"], missing=[1, 2, 0])
    rows = list(export_rows([Run("counts", "agent", outcomes)]))
    totals: dict[object, list[object]] = {}
    for row in rows:
        totals.setdefault(row["task"], []).append(row["passed"])
    assert totals == {
        "a": [True, True, True, False, None],
        "b": [None, None],
        "c": [True],
    }
    assert {row["ordered"] for row in rows} == {False}
    assert [row["attempt"] for row in rows if row["task"] == "a"] == [1, 2, 3, 4, 5]


def test_csv_is_one_table_with_a_column_for_every_slice(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path, ["a"], name="plain"),
        _run(tmp_path, ["a"], name="sliced", slices=["level"]),
    ]
    table = list(csv.reader(io.StringIO("".join(as_csv_rows(runs)))))
    assert table[0] == [*EXPORT_COLUMNS, "slice:level"]
    assert {len(row) for row in table} == {len(table[0])}
    assert [row[-1] for row in table[1:]] == [""] * 3 + ["level-0"] * 3
    passed = table[0].index("passed")
    assert [row[passed] for row in table[1:4]] == ["true", "false", ""]


def test_no_cell_of_the_csv_is_a_formula(tmp_path: Path) -> None:
    run = _run(tmp_path, ODD_NAMES, name="=cmd|' /C calc'!A0")
    for row in csv.reader(io.StringIO("".join(as_csv_rows([run])))):
        assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_follows_its_own_schema(tmp_path: Path, form: str) -> None:
    path = _written([_run(tmp_path, ODD_NAMES, slices=["level"])], tmp_path, form)
    assert list(outcome_problems(Source(str(path), path))) == []


def test_rows_of_a_parquet_file_are_numbered_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beyond the rows that are fetched together."""
    run = _run(tmp_path, ["a", "b"])
    path = tmp_path / "twice.parquet"
    write_parquet([run, replace(run, agent="again")], str(path))
    monkeypatch.setattr("passhat.readers.rows.CHUNK_ROWS", 4)
    (agents, attempts) = outcome_problems(Source(str(path), path))
    assert agents[1].startswith("agent is 'again' in one row")
    assert attempts == ("row 7 and 5 more rows", "attempt 1 of task 'a' is also on row 1")


def test_tau2_takes_one_run(tmp_path: Path) -> None:
    runs = [_run(tmp_path, ["a"], name="first"), _run(tmp_path, ["a"], name="second")]
    with pytest.raises(InvalidValue, match="holds one run, and there are 2") as caught:
        list(as_tau2(runs))
    assert "first, second" in str(caught.value.hint)
    with pytest.raises(InvalidValue, match="there are 0"):
        list(as_tau2([]))


def test_tau2_keeps_every_verdict(tmp_path: Path) -> None:
    run = _run(tmp_path, ODD_NAMES)
    data = json.loads("".join(as_tau2([run])))
    assert [task["id"] for task in data["tasks"]] == ODD_NAMES
    rewards = [s["reward_info"] and s["reward_info"]["reward"] for s in data["simulations"]]
    assert rewards == [1.0, 0.0, None] * len(ODD_NAMES)
    assert {s["trial"] for s in data["simulations"]} == {0, 1, 2}
    assert [s["termination_reason"] for s in data["simulations"][:3]] == [
        *("agent_stop", "max_steps", "infrastructure_error"),
    ]
    assert len({s["id"] for s in data["simulations"]}) == len(data["simulations"])
    path = tmp_path / "results.json"
    path.write_text(json.dumps(data))
    (again,) = read(path)
    assert again.outcomes.c.tolist() == run.outcomes.c.tolist()
    assert again.outcomes.missing.tolist() == run.outcomes.missing.tolist()
