"""Folders with a file for each attempt, and files in the forms of other people's tools."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from passhat import Run, read
from passhat.errors import PasshatError, ReadError
from passhat.readers.formats.attempt_files import find_verdict

Counts = tuple[int, int, int, int]


def _counts(run: Run) -> Counts:
    outcomes = run.outcomes
    return len(outcomes), outcomes.scored, outcomes.passes, outcomes.total_missing


def _read(path: Path) -> dict[str, Counts]:
    return {run.name: _counts(run) for run in read(path)}


def _write(folder: Path, files: Mapping[str, object]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return folder


def _by_first_hint(path: Path) -> dict[str, Counts]:
    """Read a file with the options of the first command that its refusal prints."""
    with pytest.raises(PasshatError) as caught:
        read(path)
    line = next(one for one in str(caught.value.hint).splitlines() if "passhat report" in one)
    words = shlex.split(line[line.index("passhat report") :])
    pairs = re.split(r",(?=\w+=)", words[words.index("--map") + 1])
    columns: dict[str, str] = {}
    options: dict[str, Any] = {}
    for name, _, value in (pair.partition("=") for pair in pairs):
        rule = re.search(r" (==|!=|>=) ", value)
        if name == "success" and rule:
            options["passes"] = value
        elif name in ("records", "where"):
            options[name] = value
        else:
            columns[name] = value
    return {run.name: _counts(run) for run in read(path, columns=columns, **options)}


# -- folders -----------------------------------------------------------------------------------


def test_two_agents_are_not_joined_by_their_tasks(tmp_path: Path) -> None:
    files: dict[str, object] = {
        f"{agent}/{task}/attempt_{number}/result.json": {"task": task, "status": "success"}
        for agent in ("hare", "tortoise")
        for task in ("sort", "find")
        for number in (1, 2)
    }
    files |= {name.replace("result.json", "agent.log"): "thinking\n" for name in files}
    del files["hare/find/attempt_2/result.json"]  # it crashed
    folder = _write(tmp_path / "runs", files)
    assert _read(folder) == {"hare": (2, 3, 3, 1), "tortoise": (2, 4, 4, 0)}
    (run, _) = read(folder)
    assert any("missing, a folder without that file" in line for line in run.decisions)


def test_paths_that_say_nothing_new_change_nothing(tmp_path: Path) -> None:
    files = {f"{n}.json": {"task": f"t{n % 2}", "passed": n > 1} for n in range(4)}
    assert _read(_write(tmp_path / "runs", files)) == {"runs": (2, 4, 2, 0)}


@pytest.mark.parametrize("name", ["summary.json", "all_metrics.json", "run-report.json"])
def test_a_summary_does_not_stand_for_its_documents(tmp_path: Path, name: str) -> None:
    files: dict[str, object] = {f"p{n}.graded.json": {"correct": n != 3} for n in range(6)}
    files |= {f"p{n}.json": {"text": "an answer"} for n in range(6)}
    files[name] = {"by_topic": {"algebra": {"n": 2, "correct": 2}, "sets": {"n": 4, "correct": 3}}}
    (run,) = read(_write(tmp_path / "runs", files))
    assert _counts(run) == (6, 6, 5, 0)
    assert any(name in line for line in run.decisions)


def test_a_claim_beside_what_the_judge_says_is_refused_with_both_numbers(tmp_path: Path) -> None:
    files = {
        f"t{n}/{k}/out.json": {"success": True, "eval": {"eval": "success" if n else "failure"}}
        for n in range(3)
        for k in range(2)
    }
    folder = _write(tmp_path / "runs", files)
    with pytest.raises(ReadError, match="6 and 4 of 6 attempts passed") as caught:
        read(folder)
    assert "--map success=eval.eval" in str(caught.value.hint)
    (run,) = read(folder, columns={"success": "eval.eval"})
    assert _counts(run) == (3, 6, 4, 0)


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        ({"passed": True}, ("passed", True)),
        ({"grade": {"correct": False}}, ("correct", False)),
        ({"id": "a", "review": {"review": "pass"}}, ("review", "pass")),
        ({"id": "a", "score": 4}, ("score", 4)),
        ({"id": "a", "status": "running"}, None),
        ({}, None),
    ],
)
def test_the_verdict_of_a_document(
    data: dict[str, object], verdict: tuple[str, object] | None
) -> None:
    assert find_verdict(data) == verdict


def test_logs_of_pytest_in_a_folder(tmp_path: Path) -> None:
    head = "============ test session starts ============\ncollected 2 items\n\n"
    files = {
        f"attempt_{n}.log": f"{head}a.py::test_x PASSED [50%]\na.py::test_y {word} [100%]\n"
        for n, word in enumerate(("PASSED", "FAILED"), 1)
    }
    files["agent.txt"] = f"I run the tests:\n{head}test_a.py::test_x FAILED [50%]\n"
    runs = _read(_write(tmp_path / "logs", files))
    assert runs == {"attempt_1": (2, 2, 2, 0), "attempt_2": (2, 2, 1, 0)}


def test_repeats_whose_documents_list_the_tasks_in_another_order(tmp_path: Path) -> None:
    ids = ["a", "b", "c"]
    files = {
        f"fixer.run{n}.json": {
            "total_instances": 3,
            "submitted_instances": 3,
            "completed_instances": 3,
            "resolved_instances": 1,
            "unresolved_instances": 2,
            "completed_ids": ids,
            "submitted_ids": ids,
            "resolved_ids": [ids[n]],
            "unresolved_ids": [i for i in ids if i != ids[n]],
            "error_ids": [],
            "empty_patch_ids": [],
            "incomplete_ids": [],
            "schema_version": 2,
        }
        for n in (0, 1)
    }
    runs = read(_write(tmp_path / "reports", files))
    assert [_counts(run) for run in runs] == [(3, 3, 1, 0)] * 2
    assert all(any("if they are attempts of one agent" in d for d in r.decisions) for r in runs)


# -- objects in columns ------------------------------------------------------------------------


def test_an_object_with_a_verdict_for_each_model(tmp_path: Path) -> None:
    rows = [
        {"question": f"q {n}", "small": {"is_correct": n > 1}, "large": {"is_correct": n > 0}}
        for n in range(4)
    ]
    expected = {"small": (4, 4, 2, 0), "large": (4, 4, 3, 0)}
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)))
    assert _by_first_hint(lines) == expected
    document = tmp_path / "document.json"
    document.write_text(json.dumps(rows))
    assert _by_first_hint(document) == expected
    named = [{"question": r["question"], "gpt-4o": r["small"], "llama-3": r["large"]} for r in rows]
    lines.write_text("\n".join(map(json.dumps, named)))
    assert _read(lines) == {"gpt-4o": (4, 4, 2, 0), "llama-3": (4, 4, 3, 0)}


# -- tables ------------------------------------------------------------------------------------

SECTIONS = (
    "Arm trials\n\nSetup: off\nTask,T1,T2\nlift,fail,success\npush,fail,fail\n\n"
    "Setup: on\nTask,T1,T2\nlift,success,success\npush,fail,fail\n"
)
READ_AT_ONCE: dict[str, tuple[str, dict[str, Counts]]] = {
    "letters and a legend": (
        "P = passed   F = failed   - = VM did not start\n\nboot  P-PP\nlogin  PFFP\n",
        {"mine": (2, 7, 5, 1)},
    ),
    "a text of letters in a column": (
        "# x crashed\ntask,outcomes,seconds\na,PFxPF,3\nb,PPPxF,4\n",
        {"mine": (2, 8, 5, 2)},
    ),
    "yes and no as letters": ("task,tries\na,YNNY\nb,YYYY\n", {"mine": (2, 8, 6, 0)}),
    "parts with a heading each": (SECTIONS, {"off": (2, 4, 1, 0), "on": (2, 4, 2, 0)}),
    "a mean that sums up other columns": (
        "task_id,n_samples,n_correct,pass@1\na,4,1,0.25\nb,4,3,0.75\nMEAN,,,0.5\n",
        {"mine": (2, 8, 4, 0)},
    ),
    "totals with a sign": (
        "Model,Question,Try 1,Try 2\nx,a,✓,✗\nx,b,✓,✓\nx,TOTAL ✓,2,1\n",
        {"x": (2, 4, 3, 0)},
    ),
    "sampled, correct, wrong and errors": (
        "problem,n_sampled,n_correct,n_wrong,n_error\na,8,5,2,1\nb,8,0,8,0\n",
        {"mine": (2, 15, 5, 1)},
    ),
    "a title and a rule": (
        "bench: passed/attempted\n\ntask      haiku  sonnet\nvim-exit    1/5     2/5\n"
        "git-fix     5/5     4/5\n-----------------------\ntotal      6/10    6/10\n",
        {"haiku": (2, 10, 6, 0), "sonnet": (2, 10, 6, 0)},
    ),
    "several tables of each model": (
        "".join(
            f"## Model: {model}\n\n### Part {part}\n\n| task_id | success |\n|---|---|\n"
            f"| {part}-1 | true |\n| {part}-2 | {word} |\n\n"
            for model, word in (("nova", "true"), ("orca", "false"))
            for part in "ab"
        ),
        {"nova": (4, 4, 4, 0), "orca": (4, 4, 2, 0)},
    ),
}


@pytest.mark.parametrize("case", READ_AT_ONCE)
def test_it_is_read_at_once(tmp_path: Path, case: str) -> None:
    text, expected = READ_AT_ONCE[case]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    assert _read(path) == expected


READ_BY_HINT: dict[str, tuple[str, dict[str, Counts]]] = {
    "attempts at a single task": (
        "attempt,date,result,minutes\n"
        + "".join(
            f"{n},2026-03-0{n},{'works' if n % 3 else 'broken'},{30 + n}\n" for n in range(1, 8)
        ),
        {"mine": (1, 7, 5, 0)},
    ),
    "labels of agents with a third code": (
        json.dumps(
            [
                {"task_id": f"t{n}", "Hare_human_label": str(n % 3), "Fox_2_human_label": "1"}
                for n in range(6)
            ]
        ),
        {"Hare_human_label": (6, 6, 2, 0), "Fox_2_human_label": (6, 6, 6, 0)},
    ),
    "a label that is empty where the run crashed": (
        "model,ticket,trial,run_state,label\n"
        + "".join(
            f"x,{t},{k},{'completed' if t + k else 'crashed'},"
            f"{('Success' if k else 'Failure') if t + k else ''}\n"
            for t in range(4)
            for k in range(3)
        ),
        {"x": (4, 11, 8, 1)},
    ),
    "true_false beside answers": (
        json.dumps(
            {
                "count": 6,
                "results": {
                    f"{n}": {"answer": f"a{n}", "answer_norm": f"a{n}", "true_false": n > 2}
                    for n in range(6)
                },
            }
        ),
        {"mine": (6, 6, 3, 0)},
    ),
}


@pytest.mark.parametrize("case", READ_BY_HINT)
def test_the_first_hint_reads_it(tmp_path: Path, case: str) -> None:
    text, expected = READ_BY_HINT[case]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    assert _by_first_hint(path) == expected


def test_two_verdicts_of_numbered_questions_are_no_tasks(tmp_path: Path) -> None:
    rows = [
        {"index": n, "goal": f"do thing {n}", "broken_in": n > 1, "broken_in_guard1": n > 2}
        for n in range(5)
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"jailbreaks": rows}))
    try:
        runs = read(path)
    except PasshatError:
        return
    assert all(len(run.outcomes) == len(rows) for run in runs)


def test_lists_of_steps_without_a_verdict_are_no_attempts(tmp_path: Path) -> None:
    rows = [
        {"question": f"q{n}", "preds": {"m": {"trace": [{"verdict": "RETRY"}], "passed": n > 1}}}
        for n in range(4)
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(rows))
    assert _read(path) == {"m": (4, 4, 2, 0)}


def test_tables_of_a_database_are_not_joined_by_their_own_ids(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE questions (id INTEGER PRIMARY KEY, question TEXT)")
        database.execute(
            "CREATE TABLE attempts (id INTEGER PRIMARY KEY, question_id INTEGER, agent TEXT,"
            " attempt_no INTEGER, execution_match INTEGER)"
        )
        database.executemany("INSERT INTO questions VALUES (?, ?)", [(1, "how?"), (2, "when?")])
        rows = [(n, 1 + n % 2, "x", n // 2, int(n > 3)) for n in range(8)]
        database.executemany("INSERT INTO attempts VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    assert _by_first_hint(path) == {"x": (2, 8, 4, 0)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("question,1st,2nd,3rd\na,✓,✗,✓\nb,✓,–,✗\n", (2, 5, 3, 1)),
        ("compito\tsuperati\na\t3 su 4\nb\t0 su 5\n", (2, 9, 3, 0)),
        ("aufgabe,task,bestanden\nx,a,3 von 4\nx,b,1 von 4\n", (2, 8, 4, 0)),
        ("# marks: P = pass, F = fail, - = none\ntask,marks,who\na,PPF,k\nb,P-F,m\n", (2, 5, 3, 1)),
    ],
)
def test_words_of_counts_and_remarks_with_commas(
    tmp_path: Path, text: str, expected: Counts
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    assert list(_read(path).values()) == [expected]


def test_what_a_judge_said_is_proposed_as_the_verdict(tmp_path: Path) -> None:
    words = ("safe", "unsafe", "no_verdict", "safe")
    lines = [f"x,p{n},{k},{words[(n + k) % 4]}" for n in range(4) for k in range(3)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["model,prompt_id,try,judge", *lines]))
    assert _by_first_hint(path) == {"x": (4, 9, 6, 3)}


def test_the_time_of_a_row_is_no_task(tmp_path: Path) -> None:
    rows = [f"2026-02-11T22:{n}:29,local,{n > 31}" for n in range(30, 35)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["when,agent,passed", *rows]))
    with pytest.raises(ReadError, match="no column was recognized as task"):
        read(path)


def test_a_report_about_tools_beside_logs_is_no_table_of_tasks(tmp_path: Path) -> None:
    report = "# Tools\n\n| Tool | Success Rate |\n|---|---|\n| click | 0% |\n| type | 100% |\n"
    table = "task_id,passed\na,1\nb,0\n"
    folder = _write(tmp_path / "runs", {"ai_report.md": report, "results.csv": table})
    assert list(_read(folder).values()) == [(2, 2, 1, 0)]
    with pytest.raises(PasshatError):
        read(_write(tmp_path / "alone", {"ai_report.md": report, "other.json": {"a": 1}}))
