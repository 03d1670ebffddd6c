"""passhat validate: what export writes is valid, and what is changed is pointed out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.readers.formats.export import EXPORT_COLUMNS, outcomes_json_schema

Passhat = Callable[..., Any]
SCHEMA = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture
def rows(passhat: Passhat) -> list[dict[str, Any]]:
    text = passhat("export", "example:helpdesk", "--run", "careful").out
    return [json.loads(line) for line in text.splitlines()]


def _write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_an_export_is_valid(passhat: Passhat, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    ended = passhat("validate", _write(tmp_path, rows))
    assert (ended.code, "valid passhat.outcomes" in ended.out) == (0, True)
    packed = tmp_path / "rows.parquet"
    assert passhat("export", "example:helpdesk", "-o", packed).code == 0
    assert passhat("validate", packed).code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"passed": "yes"}, "passed: 'yes' is not of type"),
        ({"attempt": 0}, "attempt: 0 is less than the minimum"),
        ({"schema": "passhat.outcomes/3"}, "none of passhat.outcomes/1 and passhat.outcomes/2"),
        ({"schema": "passhat.outcomes/1"}, "score"),
        ({"score": 1.5}, "score: 1.5 is greater than the maximum"),
        ({"cost": -1}, "cost: -1 is less than"),
        ({"cost": float("nan")}, "cost: 'NaN' is not of type"),
        ({"seconds": float("inf")}, "seconds: 'NaN' is not of type"),
        ({"judge": "lenient"}, "judge is 'lenient' in one row of run 'careful'"),
        ({"agent": "hasty"}, "agent is 'hasty' in one row"),
        ({"passed": None, "reason": None}, "reason"),
        ({"weather": "fine"}, "weather"),
        ({"task": ""}, "task"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(
    passhat: Passhat,
    tmp_path: Path,
    rows: list[dict[str, Any]],
    change: dict[str, Any],
    message: str,
) -> None:
    rows[2] |= change
    ended = passhat("validate", _write(tmp_path, rows))
    assert ended.code == 1
    assert "rows.jsonl, line 3: " in ended.err
    assert message in ended.err


def test_an_attempt_twice_is_named(
    passhat: Passhat, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    ended = passhat("validate", _write(tmp_path, [*rows[:2], rows[0]]))
    assert ended.code == 1
    assert "is also on line 1" in ended.err


def test_many_rows_of_one_problem_are_one_line(
    passhat: Passhat, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    ended = passhat("validate", _write(tmp_path, [row | {"schema": "x/9"} for row in rows[:9]]))
    assert "line 1 and 8 more rows: schema is 'x/9'" in ended.err
    assert "1 problem" in ended.out


@pytest.mark.parametrize(("text", "says"), [("", "has no rows"), ("[{}]", "is a JSON array")])
def test_a_file_without_rows_is_named(
    passhat: Passhat, tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    ended = passhat("validate", path)
    assert (ended.code, says in ended.err) == (1, True)


def test_rows_of_one_run_with_two_judges_are_not_read(
    passhat: Passhat, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    rows[0]["judge"] = "the judge of the board"
    ended = passhat("report", _write(tmp_path, rows))
    assert ended.code == 2
    assert "a run has one agent and one protocol" in ended.err


def test_a_measure_that_is_no_number_is_said_to_be_left_out(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    from passhat import read

    rows[0]["cost"] = float("nan")
    (run,) = read(_write(tmp_path, rows))
    assert any("cost of 1 attempt is no finite number" in text for text in run.decisions)


def test_the_schema_in_the_docs_is_the_one_that_is_checked(passhat: Passhat) -> None:
    for version in (1, 2):
        text = (SCHEMA / f"passhat.outcomes-{version}.schema.json").read_text()
        assert json.loads(text) == outcomes_json_schema(version)
    assert json.loads(passhat("validate", "--print-schema").out) == outcomes_json_schema()
    assert set(outcomes_json_schema()["properties"]) == {*EXPORT_COLUMNS, "labels"}


def test_formulas_are_quoted_and_read_back(passhat: Passhat, tmp_path: Path) -> None:
    path = tmp_path / "evil.csv"
    path.write_text('task,trial,success\n=cmd|1,0,1\n@x,0,1\n+1,0,0\n-2,0,1\n"\x1b[2J",0,1\n')
    text = passhat("export", path, "-o", "csv").out
    assert "\x1b" not in text
    for cell in ("'=cmd|1", "'@x", "'+1", "'-2"):
        assert f",{cell}," in text
    again = tmp_path / "again.csv"
    again.write_text(text)
    from passhat import read

    assert read(again)[0].outcomes.tasks[:4] == ("=cmd|1", "@x", "+1", "-2")
