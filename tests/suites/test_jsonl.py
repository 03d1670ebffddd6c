"""Suites in a file, and the graders they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passhat.errors import PasshatError, ReadError
from passhat.stats.outcomes import Verdict
from passhat.suites import load_suite
from passhat.suites.graders import grader


def _suite(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return path


@pytest.mark.parametrize(
    ("word", "expected", "passes", "fails"),
    [
        ("exact", "yes", ["yes", " yes\n"], ["Yes", "yes."]),
        ("contains", "yes", ["oh yes!"], ["no"]),
        ("regex", r"^\d+ km$", ["12 km"], ["about 12 km"]),
        ("numeric", 1234.5, ["it is 1,234.5", "1234.50"], ["1234", "none"]),
        ("json", {"a": [1, 2]}, ['{"a": [1, 2]}', '{ "a":[1,2] }'], ['{"a": [2, 1]}', "a"]),
        (
            "json-schema",
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
            ['{"id": 3}', 'Here it is:\n```json\n{"id": 3, "more": []}\n```\n'],
            ['{"id": "3"}', "{}", "id 3"],
        ),
        ("python:operator:eq", "x", ["x"], ["y"]),
    ],
)
def test_graders(word: str, expected: object, passes: list[str], fails: list[str]) -> None:
    judge = grader(word)
    assert [judge(answer, expected).verdict for answer in passes] == [Verdict.PASSED] * len(passes)
    assert [judge(answer, expected).verdict for answer in fails] == [Verdict.FAILED] * len(fails)


def test_tasks_labels_and_fingerprints(tmp_path: Path) -> None:
    one = {"id": 1, "prompt": "2 + 2?", "answer": 4, "grader": "numeric", "slices": {"kind": "sum"}}
    suite = load_suite(f"jsonl:{_suite(tmp_path, one)}")
    (task,) = suite.tasks
    assert (task.id, dict(task.labels)) == ("1", {"kind": "sum"})
    asked = load_suite(f"jsonl:{_suite(tmp_path, {**one, 'prompt': '2 + 3?'})}")
    judged = load_suite(f"jsonl:{_suite(tmp_path, {**one, 'answer': 5})}")
    assert asked.fingerprint != suite.fingerprint
    assert asked.judge_fingerprint == suite.judge_fingerprint
    assert judged.fingerprint == suite.fingerprint
    assert judged.judge_fingerprint != suite.judge_fingerprint


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "holds no task"),
        (["{"], "line 1: is not a task"),
        ([{"id": "a"}], "line 1: is not a task .*prompt"),
        (
            [{"id": "a", "prompt": "x", "answer": "1"}, {"id": "a", "prompt": "y", "answer": "1"}],
            "line 2: task 'a' is listed twice",
        ),
        ([{"id": "a", "prompt": "x", "grader": "guess"}], "line 1: 'guess' is not a grader"),
        ([{"id": "a", "prompt": "x", "grader": "regex", "answer": "("}], "not a regular exp"),
        ([{"id": "a", "prompt": "x", "grader": "numeric"}], "line 1: None is not a number"),
        ([{"id": "a", "prompt": "x", "grader": "json-schema"}], "line 1: .*is the schema"),
        (
            [{"id": "a", "prompt": "x", "grader": "json-schema", "answer": {"type": "number?"}}],
            "line 1: the answer is not a JSON schema",
        ),
        (
            [{"id": "a", "prompt": "x", "grader": "python:no:where"}],
            "there is no module 'no'",
        ),
    ],
)
def test_a_broken_suite_is_refused_with_its_line(
    tmp_path: Path, lines: list[object], message: str
) -> None:
    with pytest.raises(ReadError, match=message):
        load_suite(f"jsonl:{_suite(tmp_path, *lines)}")


def test_a_suite_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_suite.py").write_text(
        "from passhat.suites.jsonl import JsonLinesSuite\n"
        "def suite():\n    return JsonLinesSuite('tasks.jsonl')\n"
        "SUITE = None\n"
    )
    _suite(tmp_path, {"id": "a", "prompt": "x", "answer": "1"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [task.id for task in load_suite("python:own_suite:suite").tasks] == ["a"]
    with pytest.raises(PasshatError, match="is not a Suite: it is a NoneType"):
        load_suite("python:own_suite:SUITE")


def test_a_file_of_tasks_is_a_suite_without_naming_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "my tasks.jsonl"
    path.write_text('{"id": "a", "prompt": "1 + 1?", "answer": "2"}\n')
    assert [task.id for task in load_suite(str(path)).tasks] == ["a"]
    with pytest.raises(PasshatError, match="is not a suite"):
        load_suite(str(tmp_path / "absent.jsonl"))


def test_a_task_without_an_id_is_called_by_its_prompt(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    long = "Add the numbers " + ", ".join(map(str, range(40)))
    rows = [{"prompt": " 2 +\n2? ", "answer": "4"}, {"prompt": long, "answer": "780"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    short, shortened = (task.id for task in load_suite(f"jsonl:{path}").tasks)
    assert short == "2 + 2?"
    assert shortened.startswith("Add the numbers 0, 1, 2")
    assert len(shortened) == 41
    path.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    assert [task.id for task in load_suite(f"jsonl:{path}").tasks] == [shortened, short]
    path.write_text('{"task_id": "a", "prompt": "2 + 2?", "answer": "4"}\n')
    with pytest.raises(ReadError, match="missing required field `id`"):
        load_suite(f"jsonl:{path}")
