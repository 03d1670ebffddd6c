"""Exports that others write: what deviates from the format is named with its place, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.errors import ReadError
from passhat.readers.formats.export import OUTCOMES_SCHEMA, outcome_problems
from passhat.readers.sources import Source

ROW: dict[str, Any] = {
    "run": "r",
    "agent": "a",
    "task": "t",
    "attempt": 1,
    "passed": True,
    "category": None,
    "reason": None,
    "suite": "s",
    "cost": 0.5,
    "schema": OUTCOMES_SCHEMA,
}


def _write(folder: Path, *rows: object) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _problems(path: Path) -> list[tuple[str, str]]:
    return list(outcome_problems(Source(str(path), path)))


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({}, []),
        ({"attempt": 2.0}, []),
        ({"score": 0.5, "tokens": 0, "slice:k": "x"}, []),
        ({"schema": "passhat.outcomes/1"}, []),
        ({"schema": "passhat.outcomes/9"}, ["schema is 'passhat.outcomes/9', none of "]),
        ({"passed": "yes"}, ["passed: 'yes' is not of type"]),
        ({"task": ""}, ["task: '' "]),
        ({"attempt": 0}, ["attempt: 0 is less than the minimum of 1"]),
        ({"attempt": 1.5}, ["attempt: 1.5 is not of type 'integer'"]),
        ({"cost": float("nan")}, ["cost: 'NaN' is not of type 'number'"]),
        ({"cost": -1}, ["cost: -1 is less than the minimum of 0"]),
        ({"score": 1.5}, ["score: 1.5 is greater than the maximum of 1"]),
        ({"agent": "b", "attempt": 2}, ["agent is 'b' in one row of run 'r' and 'a' in another"]),
        ({"judge": "j", "attempt": 2}, ["judge is 'j' in one row of run 'r' and None in another"]),
        ({"suite": "", "attempt": 2}, ["suite is None in one row of run 'r' and 's' in another"]),
        ({"agent": "b", "run": "other"}, []),
    ],
)
def test_a_deviation_is_named_with_its_line(
    tmp_path: Path, change: dict[str, Any], problems: list[str]
) -> None:
    second = {**ROW, "task": "u", **change}
    found = _problems(_write(tmp_path, ROW, second))
    assert [where for where, _ in found] == ["line 2"] * len(problems)
    for (_, text), expected in zip(found, problems, strict=True):
        assert text.startswith(expected)


def test_the_same_problem_of_many_rows_is_one(tmp_path: Path) -> None:
    rows = [{**ROW, "attempt": number, "cost": -number} for number in range(1, 4)]
    ((where, _),) = _problems(_write(tmp_path, *rows))
    assert where == "line 1 and 2 more rows"
    (first, second) = _problems(_write(tmp_path, ROW, {**ROW, "attempt": 0}, ROW))
    assert first[0] == "line 2"
    assert second == ("line 3", "attempt 1 of task 't' is also on line 1")
    missing = {key: value for key, value in ROW.items() if key not in ("agent", "passed")}
    found = _problems(_write(tmp_path, missing, {**missing, "task": "u"}))
    assert [text for _, text in found][:2] == [
        "'agent' is a required property",
        "'passed' is a required property",
    ]
    assert {where for where, _ in found} == {"line 1 and 1 more row"}


def test_what_is_no_row_and_no_file_of_rows_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path, ROW)
    path.write_text(f"{json.dumps(ROW)}\nbroken\n", encoding="utf-8")
    ((where, _),) = _problems(path)
    assert where == "line 2"
    path.write_text("", encoding="utf-8")
    assert _problems(path) == [("the file", "has no rows")]
    path.write_text("[{}]", encoding="utf-8")
    ((where, text),) = _problems(path)
    assert (where, text[:15]) == ("the file", "is a JSON array")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent": "b"}, r"line 2: agent is 'b' in one row of run 'r' and 'a' in another"),
        ({"schema": "passhat.outcomes/9", "run": "q"}, "has the schema 'passhat.outcomes/9'"),
    ],
)
def test_runs_that_are_mixed_and_newer_formats_are_not_read(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ReadError, match=message):
        read(_write(tmp_path, ROW, {**ROW, "attempt": 2, **change}))


def test_the_slices_of_another_run_are_not_a_runs_own(tmp_path: Path) -> None:
    rows = [
        {**ROW, "slice:k": "x"},
        {**ROW, "run": "q", "agent": "b", "slice:j": "y"},
        {**ROW, "run": "q", "agent": "b", "task": "u", "cost": float("nan")},
    ]
    runs = read(_write(tmp_path, *rows))
    assert [dict(run.outcomes.labels) for run in runs] == [{"k": ("x",)}, {"j": ("y", "")}]
    assert [run.outcomes.passes for run in runs] == [1, 2]
