"""The validator in one file agrees with the schema, row by row."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import passhat
from passhat.readers.formats.export import outcome_problems
from passhat.readers.sources import expand
from passhat.reporting.export import as_json_lines

PATH = Path(__file__).parents[2] / "docs/examples/check_outcomes.py"
ROW: dict[str, Any] = {
    "schema": "passhat.outcomes/2",
    "run": "r",
    "agent": "a",
    "task": "t",
    "attempt": 1,
    "passed": True,
}
ROWS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"score": 0.5, "cost": 0, "slice:domain": "x", "extension": {"a": 1}}, True),
    ({"passed": None, "reason": "rate_limit"}, True),
    ({"passed": False, "category": "timeout"}, True),
    ({"schema": "passhat.outcomes/1", "ordered": True}, True),
    ({"passed": None}, False),
    ({"passed": None, "reason": "rate_limit", "category": "timeout"}, False),
    ({"passed": 1}, False),
    ({"passed": True, "category": "timeout"}, False),
    ({"attempt": 0}, False),
    ({"attempt": True}, False),
    ({"attempt": 1.5}, False),
    ({"task": ""}, False),
    ({"task": 3}, False),
    ({"score": 1.5}, False),
    ({"score": True}, False),
    ({"cost": -1}, False),
    ({"cost": float("nan")}, False),
    ({"seconds": float("inf")}, False),
    ({"score": float("nan")}, False),
    ({"seconds": "3"}, False),
    ({"ordered": "yes"}, False),
    ({"own": 1}, False),
    ({"slice:domain": 3}, False),
    ({"schema": "passhat.outcomes/1", "score": 0.5}, False),
]


@pytest.fixture(scope="module")
def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check_outcomes", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("change", "is_valid"), ROWS, ids=str)
def test_both_agree_on_a_row(
    change: dict[str, Any], is_valid: bool, checker: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(ROW | change) + "\n")
    assert (not list(checker.file_problems(path))) is is_valid
    (source,) = expand([str(path)])
    assert (not list(outcome_problems(source))) is is_valid


def test_what_a_schema_cannot_say(checker: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in (ROW, ROW | {"agent": "b"})) + "\n[]\n{\n")
    problems = [text for _, text in checker.file_problems(path)]
    assert "attempt 1 of t is also in line 1" in problems[0]
    assert "has agent 'a' and 'b'" in problems[1]
    assert "not an object" in problems[2]
    assert "no JSON" in problems[3]


def test_both_refuse_two_judges_in_one_run(checker: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = (ROW | {"judge": "j"}, ROW | {"attempt": 2, "judge": "lenient"})
    path.write_text("\n".join(map(json.dumps, rows)))
    assert "has judge 'j' and 'lenient'" in next(checker.file_problems(path))[1]
    (source,) = expand([str(path)])
    assert "judge is 'lenient'" in next(outcome_problems(source))[1]


def test_random_bytes_are_no_traceback(checker: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(bytes(range(128, 256)) * 3)
    assert "no JSON" in next(checker.file_problems(path))[1]


def test_an_export_is_valid(
    checker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(as_json_lines(passhat.read("example:helpdesk"))))
    assert checker.main([str(path)]) == 0
    assert "valid passhat.outcomes" in capsys.readouterr().out
    path.write_text("")
    assert checker.main([str(path)]) == 1
