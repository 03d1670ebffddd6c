"""Files that people write themselves: read right, or refused with the options that read them.

All hold two tasks with two attempts each, of which three passed.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from passhat import Run, read
from passhat.errors import PasshatError, ReadError

ROWS = [("t1", 1, True), ("t1", 2, True), ("t2", 1, True), ("t2", 2, False)]


def _csv(header: str, passed: object, failed: object, *, sign: str = ",", end: str = "\n") -> str:
    lines = [sign.join((t, str(i), str(passed if ok else failed))) for t, i, ok in ROWS]
    return end.join((header, *lines)) + end


def _counts(run: Run) -> tuple[int, int, int]:
    return len(run.outcomes), run.outcomes.attempts, run.outcomes.passes


@pytest.mark.parametrize(
    "text",
    [
        _csv("task,trial,score", "100%", "0%"),
        _csv("task,trial,passed", "Yes", "NO"),
        _csv("test,run,passed", "ok", "FAIL"),
        _csv("task,run,passed", "✓", "✗"),
        _csv("task;trial;score", "1,0", "0,0", sign=";"),
        "\ufeff" + _csv("Task ID,Attempt #,Is Correct", "TRUE", "FALSE", end="\r\n"),
        _csv("test-name,Run,Solved", "Pass", "wrong"),
        _csv("task,seed,success", 1, 0),
        _csv("task,run,status", "passed", "failed"),
        "task,seed_7,seed_19\nt1,1,1\nt2,1,0\n",
        "# notes\n" + _csv("task,trial,success", 1, 0),
        json.dumps({"task": [t for t, _, _ in ROWS], "success": [ok for _, _, ok in ROWS]}),
        json.dumps({"task": [t for t, _, _ in ROWS], "success": [ok for *_, ok in ROWS], "n": 9}),
    ],
)
def test_it_is_read_without_options(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8", newline="")
    assert [_counts(run) for run in read(path)] == [(2, 4, 3)]


def test_several_models_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    lines = [f"{m},{t},{i},{int(ok)}" for m in ("a", "b") for t, i, ok in ROWS]
    path.write_text("\n".join(["llm,question,run,correct", *lines]))
    assert {run.name: _counts(run) for run in read(path)} == {"a": (2, 4, 3), "b": (2, 4, 3)}


def test_models_around_tasks_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    tasks = {"t1": [True, True], "t2": [True, False]}
    path.write_text(json.dumps({"a": tasks, "b": {**tasks, "t3": [0, 0]}}))
    columns = {"model": "^@key", "task": "@key", "success": "@value"}
    runs = read(path, records="*.*", columns=columns)
    assert {run.name: _counts(run) for run in runs} == {"a": (2, 4, 3), "b": (3, 6, 3)}


def test_records_below_an_empty_key_are_read_and_a_file_of_them_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    rows = [{"task": t, "trial": i, "success": ok} for t, i, ok in ROWS]
    path.write_text(json.dumps({"": rows}))
    (run,) = read(path, records='""[*]', columns={"task": "task", "success": "success"})
    assert _counts(run) == (2, 4, 3)
    path.write_text(json.dumps({"": [{"odd": 1}, {"odd": 2}]}))
    with pytest.raises(PasshatError, match="not of a format passhat knows"):
        read(path)


def test_totals_are_counts_once_that_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("task,total,correct\nt1,2,2\nt2,2,1\n")
    (run,) = read(path, columns={"n": "total", "c": "correct"})
    assert _counts(run) == (2, 4, 3)


def test_a_scorer_counts_where_one_of_the_sources_has_several(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(_csv("task,trial,success", 1, 0))
    with pytest.raises(PasshatError, match="no source has several"):
        read(path, scorer="exact")
    own = tmp_path / "own.toml"
    own.write_text('[fields]\ntask = "task"\ntrial = "trial"\nsuccess = "{scorer}"\n')
    (run,) = read(path, scorer="success", mapping=own)
    assert _counts(run) == (2, 4, 3)


def test_ids_that_repeat_over_datasets_are_different_tasks(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("dataset,id,success\nmath,1,1\nmath,2,1\ncode,1,1\ncode,2,0\n")
    runs = read(path)
    assert [_counts(run) for run in runs] == [(2, 2, 2), (2, 2, 1)]


@pytest.mark.parametrize(
    ("text", "hint", "options"),
    [
        (
            "task,first,second\nt1,1,1\nt2,1,0\n",
            "trial=@column",
            {"columns": {"trial": "@column"}},
        ),
        (
            "\n".join(
                json.dumps({"instance_id": t, "eval": {"resolved": ok}}) for t, _, ok in ROWS
            ),
            "--map task=instance_id,success=eval.resolved",
            {"columns": {"task": "instance_id", "success": "eval.resolved"}},
        ),
        (_csv("task,trial,score", 80, 35), "pass_at=80", {"pass_at": 50}),
    ],
)
def test_the_refusal_names_what_reads_it(
    tmp_path: Path, text: str, hint: str, options: dict[str, Any]
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert hint in str(caught.value)
    assert [_counts(run) for run in read(path, **options)] == [(2, 4, 3)]


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b'{\n "task": "a"\n}\n{\n "task": "b"\n', "jq -c ."),
        (b"1,1\n1,0\n", "must name the columns"),
        (json.dumps({"task": ["a", "b"], "success": [1]}).encode(), "2 tasks and 1 verdicts"),
    ],
)
def test_the_refusal_says_what_to_do(tmp_path: Path, data: bytes, hint: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(data)
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert hint in str(caught.value)


def test_entries_without_a_verdict_are_no_attempts(tmp_path: Path) -> None:
    tasks = {"a": {"success": True}, "b": {"success": False}, "notes": {"by": "somebody"}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"participants": {"x": "http://x"}, "results": [{"tasks": tasks}]}))
    (run,) = read(path)
    assert sorted(run.outcomes.tasks) == ["a", "b"]


def test_a_file_that_only_begins_like_json_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('{"rows": [')
    with pytest.raises(PasshatError, match=r"begins like JSON and is none \(.+\)"):
        read(path)


def _tasks(shift: int, key: str = "task") -> list[dict[str, object]]:
    return [{key: name, "passed": (place + shift) % 3 > 0} for place, name in enumerate("abcd")]


NAMED_RUNS: dict[str, object] = {
    "runs": {"runs": [{"name": m, "tasks": _tasks(i)} for i, m in enumerate(("one", "two"))]},
    "configs": {
        "configs": [{"label": m, "results": _tasks(i, "id")} for i, m in enumerate(("one", "two"))]
    },
    "a list": [{"name": m, "tasks": _tasks(i)} for i, m in enumerate(("one", "two"))],
    "a name in settings": {
        "runs": [{"config": {"name": m}, "tasks": _tasks(i)} for i, m in enumerate(("one", "two"))]
    },
    "a seed beside the name": {
        "runs": [{"name": m, "seed": 7, "tasks": _tasks(i)} for i, m in enumerate(("one", "two"))]
    },
    "runs in tasks": {
        "tasks": [
            {
                "name": task,
                "runs": [
                    {"name": m, "passed": (place + i) % 3 > 0} for i, m in enumerate(("one", "two"))
                ],
            }
            for place, task in enumerate("abcd")
        ]
    },
}


@pytest.mark.parametrize("form", NAMED_RUNS)
def test_names_around_records_that_tell_attempts_apart_are_models(
    tmp_path: Path, form: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(NAMED_RUNS[form]))
    runs = {run.agent: (run.outcomes.attempts, run.outcomes.passes) for run in read(path)}
    assert runs == {"one": (4, 2), "two": (4, 3)}


def test_numbered_names_around_records_are_attempts(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    runs = [{"id": f"run-{number}", "tasks": _tasks(number)} for number in (1, 2, 3)]
    path.write_text(json.dumps({"model": "m", "runs": runs}))
    (run,) = read(path)
    assert (run.agent, run.outcomes.attempts, len(run.outcomes.tasks)) == ("m", 12, 4)


def _by_status(word: str, share: int) -> dict[str, object]:
    ends = [word if place % share == 0 else ("success", "failed")[place % 2] for place in range(40)]
    return {f"t{i}": {"runs": [{"status": e} for e in ends[4 * i : 4 * i + 4]]} for i in range(10)}


@pytest.mark.parametrize("word", ["max_steps_reached", "gave_up", "budget exceeded", "TurnLimit"])
def test_an_attempt_at_its_limit_failed_and_is_said(tmp_path: Path, word: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"tasks": _by_status(word, 3)}))
    (run,) = read(path)
    assert (run.outcomes.attempts, int(run.outcomes.missing.sum())) == (40, 0)
    assert f"counted as failed: {word!r} in 'status'" in run.decisions


def test_a_few_unknown_words_are_missing_with_the_command_for_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"tasks": _by_status("needs review", 10)}))
    (run,) = read(path)
    assert int(run.outcomes.missing.sum()) == 4
    (line,) = (line for line in run.decisions if "missing: 'needs review'" in line)
    (text,) = shlex.split(line.partition("failed: --map ")[2])
    pairs = dict(pair.split("=", 1) for pair in text.split(","))
    passes, records = pairs.pop("success"), pairs.pop("records")
    (run,) = read(path, columns=pairs, passes=passes, records=records)
    assert (run.outcomes.attempts, int(run.outcomes.missing.sum())) == (40, 0)


def test_many_unknown_words_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"tasks": _by_status("needs review", 3)}))
    with pytest.raises(ReadError, match="14 of 40 verdicts are words that are none") as caught:
        read(path)
    assert "success=status == success" in str(caught.value.hint)


def test_many_attempts_with_the_number_of_another_are_no_losses(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    runs = [{"run": 1, "tasks": _tasks(number)} for number in range(3)]
    path.write_text(json.dumps({"runs": runs}))
    with pytest.raises(ReadError, match="8 of 12 attempts have the task and number of another"):
        read(path)
