"""Shapes of result files that people publish, with data of our own."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from passhat import Run, read
from passhat.cli.shared.options import column_map
from passhat.errors import PasshatError


def _write(folder: Path, data: Any, name: str = "mine.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in data))
    else:
        path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def _counts(run: Run) -> tuple[int, int, int]:
    return len(run.outcomes), run.outcomes.attempts, run.outcomes.passes


def _hints(path: Path) -> list[dict[str, Any]]:
    """The options of the commands that the refusal of a file prints."""
    with pytest.raises(PasshatError) as refused:
        read(path)
    lines = str(refused.value.hint).splitlines()
    commands = [shlex.split(line.partition("passhat report ")[2]) for line in lines]
    stated = [words[words.index("--map") + 1 :] for words in commands if words]
    maps = [column_map(None, None, words) for words in stated]  # type: ignore[arg-type]
    return [{"columns": columns} for columns, _ in maps]


def test_collected_files_of_pytest_are_no_tests(tmp_path: Path) -> None:
    tests = [{"nodeid": f"a.py::t{i}", "outcome": o} for i, o in enumerate(["passed", "failed"])]
    report = {
        "created": 1.0,
        "exitcode": 1,
        "environment": {},
        "summary": {"passed": 1, "failed": 1, "total": 2, "collected": 2},
        "collectors": [{"nodeid": n, "outcome": "passed", "result": []} for n in ("", "a.py")],
        "tests": tests,
    }
    (run,) = read(_write(tmp_path, report))
    assert _counts(run) == (2, 2, 1)
    assert run.source_says == {"accuracy": 0.5}


def test_criteria_by_name_are_no_attempts(tmp_path: Path) -> None:
    rows = [
        {"model": m, "prompt_id": p, "judgment": {"is_polite": True, "cites_source": ok}}
        for m, p, ok in [("x", "a", True), ("x", "b", False), ("y", "a", False), ("y", "b", False)]
    ]
    with pytest.raises(PasshatError, match="no column was recognized as success"):
        read(_write(tmp_path, rows, "mine.jsonl"))


def test_numbers_of_attempts_and_passes_count_more_than_pass_at_1(tmp_path: Path) -> None:
    rows = [
        {
            "transcript_id": t,
            "n_attempted": 8,
            "n_successful": 8,
            "n_passing": c,
            "pass_at_1": c / 8,
        }
        for t, c in [("a", 8), ("b", 0), ("c", 8)]
    ]
    (run,) = read(_write(tmp_path, {"model": "x", "per_transcript": rows}))
    assert _counts(run) == (3, 24, 16)


def test_a_test_in_code_is_no_name_of_a_task(tmp_path: Path) -> None:
    rows = [
        {"name": f"f_{i}", "test": f"def check():\n    assert f({i})", "is_solved": i > 0}
        for i in range(4)
    ]
    (run,) = read(_write(tmp_path, rows, "mine.jsonl"))
    assert list(run.outcomes.tasks) == ["f_0", "f_1", "f_2", "f_3"]
    assert "column 'name' is taken as the task" in run.decisions


def test_the_best_reward_of_several_turns_is_proposed_first(tmp_path: Path) -> None:
    rewards = [1.0, 0.4, 0.0, 1.0, 0.7]
    data = {
        str(i): {
            "environment": "shell",
            "task_id": i,
            "query": f"query {i}",
            "turn_history": {
                "actions": ["ls"] * (i + 1),
                "valid_action": [i % 2 == 0] * (i + 1),
                "rewards": [0.0] * i + [reward],
            },
            "summary": {"max_reward": reward, "turns_taken": i + 1, "turns_max": 10},
        }
        for i, reward in enumerate(rewards)
    }
    path = _write(tmp_path, data)
    first = _hints(path)[0]
    (run,) = read(path, **first)
    assert _counts(run) == (5, 5, 2)


def test_grades_in_words_are_proposed_before_errors_of_the_run(tmp_path: Path) -> None:
    grades = ["full_hit", "partial_hit", "complete_miss", "full_hit", "partial_hit", "", "full_hit"]
    rows = [
        {"issue_title": f"issue {i}", "category": g or None, "run_error": None if g else "429"}
        for i, g in enumerate(grades)
    ]
    path = _write(tmp_path, rows, "mine.jsonl")
    (run,) = read(path, **_hints(path)[0])
    assert _counts(run) == (7, 7, 3)
    assert run.outcomes.missing.sum() == 1


def test_messages_of_a_conversation_are_no_attempts(tmp_path: Path) -> None:
    messages = [
        {"role": role, "content": f"{role} says"} for role in ("system", "user", "assistant")
    ]
    with pytest.raises(PasshatError) as refused:
        read(_write(tmp_path, [messages, messages]))
    assert "passhat report" not in str(refused.value.hint)


def test_a_search_without_evidence_says_so(tmp_path: Path) -> None:
    rows = [{"task_id": i, "author": "agent", "text": f"remark {i}"} for i in range(5)]
    with pytest.raises(PasshatError) as refused:
        read(_write(tmp_path, {"analysis": rows, "other": rows}))
    assert "the likeliest first" not in str(refused.value.hint)


def test_a_comma_behind_the_last_element_is_no_error(tmp_path: Path) -> None:
    text = '{"no_generation": [], "generated": ["a", "b, ]", "c",], "resolved": ["b, ]",],\n}'
    (run,) = read(_write(tmp_path, text))
    assert _counts(run) == (3, 3, 1)
    assert "b, ]" in run.outcomes.tasks


def test_events_of_go_test_are_attempts_at_their_end(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for test, ends in {"TestPay": ("pass", "fail"), "TestShip": ("pass", "pass")}.items():
        for end in ends:
            about = {"Time": "2026-01-01T00:00:00Z", "Package": "shop", "Test": test}
            actions = ("run", "output", end)
            events += [{**about, "Action": action, "Elapsed": 0.1} for action in actions]
    events.append({"Time": "2026-01-01T00:00:01Z", "Action": "fail", "Package": "shop"})
    assert [_counts(run) for run in read(_write(tmp_path, events, "mine.jsonl"))] == [(2, 4, 3)]


def test_the_verdict_among_events_is_proposed(tmp_path: Path) -> None:
    ends = [("a", "passed"), ("a", "failed"), ("b", "passed")]
    kinds = [{"kind": kind, "name": name} for name, end in ends for kind in ("begun", "log", end)]
    readings = _hints(_write(tmp_path, kinds, "mine.jsonl"))
    assert [_counts(run) for run in read(tmp_path / "mine.jsonl", **readings[0])] == [(2, 3, 2)]


def test_headings_below_each_model_may_be_words_for_verdicts(tmp_path: Path) -> None:
    table = "task,alpha,alpha,beta,beta\n,passed,tokens,passed,tokens\nt1,1,90,0,80\nt2,1,70,1,60\n"
    path = _write(tmp_path, table, "mine.csv")
    runs = read(path, **_hints(path)[0])
    assert {run.name: run.outcomes.passes for run in runs} == {"alpha passed": 2, "beta passed": 1}


def test_a_column_for_each_model_comes_first(tmp_path: Path) -> None:
    path = _write(tmp_path, "route,north,south\nr1,2 of 3,1 of 3\nr2,3 of 3,0 of 3\n", "mine.csv")
    assert {run.name: _counts(run) for run in read(path, **_hints(path)[0])} == {
        "north": (2, 6, 5),
        "south": (2, 6, 1),
    }


def test_signs_in_headings_and_suites_with_counts(tmp_path: Path) -> None:
    rows = (
        "| Suite | Passed \u2705 | Failed \u274c |",
        "|--|--|--|",
        "| a | 8 | 2 |",
        "| b | 3 | 0 |",
    )
    table = "".join(f"{row}\n" for row in rows)
    path = _write(tmp_path, table, "mine.md")
    assert [_counts(run) for run in read(path, **_hints(path)[0])] == [(2, 13, 11)]


def test_lines_that_differ_in_a_number_alone_are_tasks(tmp_path: Path) -> None:
    path = _write(tmp_path, "1..3\nok 1 - case 0\nnot ok 2 - case 1\nok 3 - case 2\n", "mine.tap")
    assert [_counts(run) for run in read(path)] == [(3, 3, 2)]


def test_documents_of_yaml_are_records(tmp_path: Path) -> None:
    documents = "".join(f"---\ntask: t{i}\npassed: {i < 2}\n" for i in range(3))
    assert [_counts(run) for run in read(_write(tmp_path, documents, "mine.yaml"))] == [(3, 3, 2)]


def test_a_list_of_failures_alone_is_not_the_results(tmp_path: Path) -> None:
    failures = [{"task": f"t{i}", "status": "failed"} for i in range(3)]
    data = {"summary": {"total": 20, "passed": 17}, "failures": failures}
    with pytest.raises(PasshatError):
        read(_write(tmp_path, data))


def test_a_summary_that_says_otherwise_is_kept(tmp_path: Path) -> None:
    rows = [{"task": f"t{i}", "passed": i < 1} for i in range(4)]
    (run,) = read(_write(tmp_path, {"summary": {"total": 4, "passed": 3}, "results": rows}))
    assert run.source_says == {"pass^1": 0.75}


def test_reports_of_jest_and_mocha(tmp_path: Path) -> None:
    tests: list[dict[str, object]] = [
        {"fullName": f"cart {i}", "status": ("passed", "failed", "pending")[i]} for i in (0, 1, 2)
    ]
    jest = {"numTotalTests": 3, "numPassedTests": 1, "numFailedTests": 1, "testResults": [
        {"name": "/a.test.js", "status": "failed", "assertionResults": tests}
    ]}  # fmt: skip
    (run,) = read(_write(tmp_path, jest))
    assert (_counts(run), run.outcomes.total_missing) == ((3, 3, 1), 1)
    cases: list[dict[str, Any]] = [
        {"fullTitle": f"t{i}", "file": "a.js", "duration": 2, "err": {}} for i in range(3)
    ]
    cases[1]["err"] = {"message": "expected 1"}
    del cases[2]["duration"]  # pending
    lists = {"pending": cases[2:], "failures": cases[1:2], "passes": cases[:1]}
    (run,) = read(
        _write(tmp_path, {"stats": {"passes": 1, "failures": 1}, "tests": cases, **lists})
    )
    assert _counts(run) == (2, 2, 1)


def test_objects_over_several_lines_are_records(tmp_path: Path) -> None:
    rows = [{"task": f"t{i}", "passed": i < 2, "about": {"n": i}} for i in range(3)]
    for sign in ("\n", ""):
        text = sign.join(json.dumps(row, indent=2) for row in rows)
        assert [_counts(run) for run in read(_write(tmp_path, text))] == [(3, 3, 2)]
    with pytest.raises(PasshatError):
        read(_write(tmp_path, text[:-4]))


def test_counters_beside_a_verdict_are_no_attempts(tmp_path: Path) -> None:
    states = [
        {"success": i < 1, "calls": {"search": i % 2, "mail": 0, "code": 1}} for i in range(3)
    ]
    rows = [{"state": state, "task": {"task_id": i}} for i, state in enumerate(states)]
    (first, *_) = _hints(_write(tmp_path, rows, "mine.jsonl"))
    assert [_counts(run) for run in read(tmp_path / "mine.jsonl", **first)] == [(3, 3, 1)]


def test_lists_of_nulls_are_no_verdicts(tmp_path: Path) -> None:
    rows = [{"idx": i, "question": f"q{i}?", "gt": str(i), "pred": [str(i % 2)], "report": [None]}
            for i in range(4)]  # fmt: skip
    (first, *_) = _hints(_write(tmp_path, rows, "mine.jsonl"))
    assert [_counts(run) for run in read(tmp_path / "mine.jsonl", **first)] == [(4, 4, 2)]


def test_a_question_that_is_there_twice_is_no_second_attempt(tmp_path: Path) -> None:
    rows = {
        str(i): {"question": f"q{max(i, 1)}", "prediction": f"a{i % 4}", "answer": f"a{i % 3}"}
        for i in range(12)
    }
    (first, *_) = _hints(_write(tmp_path, rows))
    (run,) = read(tmp_path / "mine.json", **first)
    assert len(run.outcomes) == 12


def test_the_place_in_an_inner_list_is_no_task(tmp_path: Path) -> None:
    rows = [{"idx": i, "infos": [{"r": int(i < j)} for j in range(4)]} for i in range(4)]
    (first, *_) = _hints(_write(tmp_path, rows))
    (run,) = read(tmp_path / "mine.json", **first)
    assert _counts(run) == (4, 16, 6)
    assert sorted(run.outcomes.c) == [0, 1, 2, 3]


def test_lists_of_all_models_are_read_together(tmp_path: Path) -> None:
    ids = [f"repo-{i}" for i in range(6)]
    data = {m: {"resolved": ids[:n], "unresolved": ids[n:]} for m, n in (("wren", 2), ("owl", 5))}
    runs = read(_write(tmp_path, data))
    assert {run.name: run.outcomes.passes for run in runs} == {"wren": 2, "owl": 5}


def test_a_heading_above_each_result_names_its_task(tmp_path: Path) -> None:
    text = "".join(
        f"=== Task {i}/3: sort-{i} (attempt {j}) ===\nrunning\ntokens: {9 * i + j}\n"
        f"Result: {'SUCCESS' if i < 2 else 'FAILURE'}\n\n"
        for j in (1, 2)
        for i in (1, 2, 3)
    )
    (run,) = read(_write(tmp_path, text, "mine.log"))
    assert (_counts(run), set(run.outcomes.tasks)) == ((3, 6, 2), {"sort-1", "sort-2", "sort-3"})


def test_logs_that_end_with_an_exit_code(tmp_path: Path) -> None:
    for i in (1, 2):
        for j in (1, 2):
            text = f"start\nExit code: {int(i == j)}\n"
            _write(tmp_path, text, f"logs/job-{i}_attempt{j}.log")
    assert [_counts(run) for run in read(tmp_path / "logs")] == [(2, 4, 2)]


def test_what_is_marked_as_skipped_is_missing(tmp_path: Path) -> None:
    rows = [{"task": f"t{i}", "passed": i < 2, "skipped": i > 3} for i in range(6)]
    (run,) = read(_write(tmp_path, rows, "mine.jsonl"))
    assert (_counts(run), run.outcomes.total_missing) == ((6, 6, 2), 2)


def test_the_right_answer_beside_an_answer_is_asked_about(tmp_path: Path) -> None:
    table = "question,correct,answer\nq1,true,true\nq2,false,false\nq3,true,false\n"
    path = _write(tmp_path, table, "mine.csv")
    with pytest.raises(PasshatError, match=r"2 of 3 passed.*2 of 3 are equal") as refused:
        read(path)
    assert "--pass 'answer == @correct'" in str(refused.value.hint)
    assert _counts(read(path, columns={"success": "answer == @correct"})[0]) == (3, 3, 2)


def test_tasks_with_models_are_read_whole_in_every_order(tmp_path: Path) -> None:
    text = "So the answer is clear. " * 20
    tries = {m: [{"score": i % 2, "reply": text + m} for i in range(2)] for m in ("m-1.5", "m2")}
    for tasks in (("jug", "door"), ("door", "jug")):
        runs = read(_write(tmp_path, dict.fromkeys(tasks, tries)))
        assert [_counts(run) for run in runs] == [(2, 4, 2)] * 2


def test_cells_of_several_lines_make_no_log(tmp_path: Path) -> None:
    rows = [
        f'"In item {i}, which holds:\nA. this: passed\nB. that\nAnswer:",True,{i < 2}'
        for i in range(6)
    ]
    path = _write(tmp_path, "\n".join(["prompt,gpt-4,llama-3", *rows]), "mine.csv")
    assert {run.name: _counts(run) for run in read(path)} == {
        "gpt-4": (6, 6, 6),
        "llama-3": (6, 6, 2),
    }
