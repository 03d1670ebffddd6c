"""Rows and cells that are no attempts must not change a number without a message."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from passhat import Run, read
from passhat.errors import PasshatError
from passhat.readers.rewrites import Rewrites

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str, name: str = "mine.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def _counts(run: Run) -> tuple[int, int, int]:
    return run.outcomes.passes, run.outcomes.scored, int(run.outcomes.missing.sum())


def _with_rule(path: Path, rule: str) -> Run:
    return read(path, passes=rule)[0]


@pytest.mark.parametrize("cell", ["n/a", "-", "—", "timeout", ""])
def test_an_odd_cell_is_a_missing_attempt(write: Write, cell: str) -> None:
    (run,) = read(write(f"task,run_1,run_2,run_3\na,1,1,1\nb,1,0,{cell}\n"))
    assert _counts(run) == (4, 5, 1)
    runs = read(write(f"Task,GPT-4,Claude,Llama\na,1,0,1\nb,0,1,{cell}\nc,1,1,0\n"))
    assert {run.name: _counts(run) for run in runs}["Llama"] == (1, 2, 1)
    assert any("timeout" in line for run in runs for line in run.decisions) == (cell == "timeout")


def test_reasons_of_failures_are_failures(write: Write) -> None:
    """Beside "wrong answer" a timeout says why an attempt failed; beside "failed" it may not."""
    text = "task,attempt_1,attempt_2\na,solved,gave up\nb,{},crash\nc,n/a,timeout\nd,solved,crash\n"
    (run,) = read(write(text.format("wrong answer")))
    assert _counts(run) == (2, 7, 1)
    assert (
        "cells read as failed attempts: 'gave up' (1), 'crash' (2), 'timeout' (1)" in run.decisions
    )
    (run,) = read(write("task,run_1,run_2\na,1,0\nb,failed,crash\nc,1,1\n"))
    assert _counts(run) == (3, 5, 1)
    rows = "a,1,solved\na,2,gave up\nb,1,wrong answer\nb,2,timeout\nc,1,timeout\nc,2,gave up\n"
    (run,) = read(write(f"task,run,status\n{rows}"))
    assert _counts(run) == (1, 6, 0)
    assert "counted as failed: 'gave up', 'timeout' in 'status'" in run.decisions


def test_columns_that_a_wide_table_leaves_out_are_a_decision(write: Write) -> None:
    (run,) = read(write("task,run_1,run_2,remark\na,1,1,slow\nb,1,0,slow\n"))
    assert "columns not read: remark" in run.decisions
    assert not any("ignored: run_1" in line for line in run.reading)


def test_a_header_that_repeats_is_skipped(write: Write) -> None:
    (run,) = read(write("task,passed\na,1\nb,0\ntask,passed\nc,0\nd,0\n"))
    assert _counts(run) == (1, 4, 0)
    assert run.tally is not None
    assert (run.tally.rows, sum(run.tally.skipped.values())) == (5, 1)
    text = "task,model,passed\na,x,1\nb,x,0\ntask,model,passed\na,y,1\nb,y,1\n"
    assert [run.name for run in read(write(text))] == ["x", "y"]
    assert _counts(_with_rule(write("task,s\na,1\ntask,s\nb,0\n"), "s >= 1")) == (1, 2, 0)


@pytest.mark.parametrize(
    ("text", "passes", "attempts"),
    [
        ("task,n,c\na,4,3\nb,4,1\nTOTAL,8,4\n", 4, 8),
        ("task,n,c\na,4,3\nb,4,1\nAverage,4,2\n", 4, 8),
        ("task,result\na,3/4\nb,0/4\nTotal,3/8\n", 3, 8),
        ("task,runs,pass_rate\na,4,0.75\nb,4,0.25\nOverall,8,0.5\n", 4, 8),
        ("task,GPT-4,Claude\na,✅,❌\nb,❌,✅\nTotal,1,1\n", 1, 2),
        ("task,GPT-4,Claude\na,1,1\nb,1,1\nTotal,2,2\n", 2, 2),
        ("task,passed\na,1\nb,0\nc,1\nd,1\nAverage,0.75\n", 3, 4),
        ("task,model,passed\na,x,1\nb,x,0\nc,x,1\nTotal,,2\n", 2, 3),
    ],
)
def test_a_row_of_totals_is_left_out_and_said(
    write: Write, text: str, passes: int, attempts: int
) -> None:
    run = read(write(text))[0]
    assert _counts(run) == (passes, attempts, 0)
    assert any("totals of others are left out" in line for line in run.decisions)


def test_a_task_with_the_name_of_a_total_stays(write: Write) -> None:
    (run,) = read(write("task,passed\nsum,1\na,1\nb,0\n"))
    assert _counts(run) == (2, 3, 0)
    (run,) = read(write("task,trial,passed\na,1,1\na,2,0\nall,1,1\nall,2,0\n"))
    assert _counts(run) == (2, 4, 0)
    (run,) = read(write("task,passed\na,1\nb,1\nmean,0\n"))
    assert _counts(run) == (2, 3, 0)
    assert any("read as a task" in line for line in run.decisions)


def test_a_total_that_differs_is_refused(write: Write) -> None:
    with pytest.raises(PasshatError, match="does not equal"):
        read(write("task,n,c\na,4,3\nb,4,1\nTOTAL,9,4\n"))


def test_rows_without_a_model_are_no_run(write: Write) -> None:
    name = "mine.jsonl"
    text = (
        '{"task":"a","model":"x","passed":true}\n{"task":"b","passed":false}\n'
        '{"task":"a","model":"y","passed":true}\n{"task":"b","passed":true}\n'
    )
    runs = read(write(text, name))
    assert [run.name for run in runs] == ["x", "y"]
    tally = runs[0].tally
    assert tally is not None
    assert (tally.rows, tally.attempts, tally.lost) == (4, 2, 2)
    with pytest.raises(PasshatError, match="2 records without a model"):
        _with_rule(write(text, name), "passed == true")


def test_a_table_without_any_model_is_named_after_the_file(write: Write) -> None:
    assert [run.name for run in read(write("model,task,passed\n,a,1\n,b,0\n"))] == ["mine"]


def test_a_rule_compares_with_another_field(write: Write) -> None:
    path = write("task,score,threshold\na,0.8,0.7\nb,0.6,0.7\nc,0.95,0.9\n")
    assert _counts(_with_rule(path, "score >= @threshold")) == (2, 3, 0)
    assert _counts(_with_rule(path, "score < @threshold")) == (1, 3, 0)
    with pytest.raises(PasshatError, match="no record"):
        _with_rule(path, "score >= @nosuch")


def test_two_empty_cells_are_no_pass(write: Write) -> None:
    path = write("task,answer,pred\na,4,4\nb,4,\nc,,\n")
    assert _counts(_with_rule(path, "pred == @answer")) == (1, 2, 1)


@pytest.mark.parametrize(
    ("text", "rule", "passes"),
    [
        ("task,trial,failed\na,0,False\na,1,True\nb,0,False\nb,1,False\n", "failed == false", 3),
        ("task,is_wrong\na,1\nb,0\nc,1\n", "is_wrong == 0", 1),
        ("task,error,failed\na,0,0\nb,0,1\nc,1,1\n", "failed == 0", 1),
    ],
)
def test_a_column_of_failures_is_offered_as_a_rule(
    write: Write, text: str, rule: str, passes: int
) -> None:
    path = write(text)
    with pytest.raises(PasshatError) as error:
        read(path)
    assert f"success={rule}" in str(error.value.hint)
    assert "success=failed," not in str(error.value.hint)
    assert _with_rule(path, rule).outcomes.passes == passes


def test_a_rule_is_a_decision_and_part_of_the_protocol(write: Write) -> None:
    path = write("task,trial,score\na,1,0.5\na,2,0.7\nb,1,0.9\nb,2,0\n")
    run, plain = _with_rule(path, "score >= 0.7"), read(path)[0]
    assert "passed means score >= 0.7" in run.decisions
    assert run.protocol.pass_at == 0.7
    assert len({run.protocol.digest, plain.protocol.digest}) == 2
    other = _with_rule(path, "score > 0.8")
    assert other.protocol.judge != run.protocol.judge


def test_totals_of_sections_are_no_tasks(write: Write) -> None:
    rows = "web,a,3,2\nweb,b,3,1\nweb,Subtotal,6,3\ndb,c,3,3\ndb,d,3,0\ndb,Subtotal,6,3\n"
    (run,) = read(write(f"group,task,n,c\n{rows},Grand total,12,6\n"))
    assert _counts(run) == (6, 12, 0)
    with pytest.raises(PasshatError, match="does not equal it"):
        read(write(f"group,task,n,c\n{rows.replace('db,Subtotal,6', 'db,Subtotal,5')}"))
    (run,) = read(
        write(f"group,task,n,c\n{rows.replace(',c,', ',a,')}"), columns={"task": "group+task"}
    )
    assert _counts(run) == (6, 12, 0)
    sections = "web,,\na,1,1\nb,1,0\nSubtotal,2,1\ndb,,\nc,1,1\nd,0,1\nSubtotal,1,2\n"
    (run,) = read(write(f"task,run_1,run_2\n{sections}"))
    assert _counts(run) == (6, 8, 0)


def test_rates_of_models_beside_a_number_of_attempts(write: Write) -> None:
    text = "task,n,gpt-5,llama-4\na,3,0.33,1.00\nb,3,0.67,0.00\n"
    runs = read(write(text))
    assert {run.name: _counts(run) for run in runs} == {"gpt-5": (3, 6, 0), "llama-4": (3, 6, 0)}


def test_an_object_of_tokens_does_not_lose_its_row(write: Write) -> None:
    line = '{{"task": "{}", "passed": {}, "tokens": {{"in": 3, "out": 2}}}}\n'
    path = write(line.format("a", "true") + line.format("b", "false"), "mine.jsonl")
    (run,) = read(path)
    assert _counts(run) == (1, 2, 0)
    with pytest.raises(PasshatError, match="should hold a number"):
        read(path, columns={"tokens": "tokens"})


def test_tests_that_passed_are_compared_with_the_success_of_a_run(write: Write) -> None:
    text = "task,success,tests_passed\na,true,true\nb,true,false\n"
    with pytest.raises(PasshatError, match="2 and 1 of 2 attempts passed") as refusal:
        read(write(text))
    assert "--map success=tests_passed" in str(refusal.value.hint)
    (run,) = read(write(text.replace("b,true,false", "b,false,false")))
    assert _counts(run) == (1, 2, 0)
    (run,) = read(write("task,success,tests_passed\na,true,3\nb,true,0\n"))
    assert any("'tests_passed' is graded and not used" in line for line in run.decisions)


def test_columns_of_pass_at_higher_k_are_named_as_not_read(write: Write) -> None:
    (run,) = read(write("task,pass@1,pass@2,pass@8\na,0,1,1\nb,1,1,1\n"))
    assert _counts(run) == (1, 2, 0)
    assert any("not read: 'pass@2', 'pass@8'" in line for line in run.decisions)


@pytest.mark.parametrize("head", ["", "Unnamed: 0"])
@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("task,r1,r2,r3\na,1,0,1\nb,1,1,1\n", (5, 6, 0)),
        ("task,passed\na,1\nb,0\nb,1\n", (2, 3, 0)),
        ("task,n,c\na,4,2\nb,4,1\n", (3, 8, 0)),
        ("task,attempts,passes,fails\na,4,2,2\nb,4,1,2\n", (3, 7, 1)),
        ("task,solved\na,3/4\nb,1/4\n", (4, 8, 0)),
        ('task,verdicts\na,"[1, 0]"\nb,"[1, 1]"\n', (3, 4, 0)),
    ],
)
def test_the_index_of_a_data_frame_is_no_column(
    write: Write, table: str, expected: tuple[int, int, int], head: str
) -> None:
    first, *rows = table.splitlines()
    lines = [f"{head},{first}", *(f"{place},{row}" for place, row in enumerate(rows))]
    (run,) = read(write("\n".join(lines) + "\n"))
    assert _counts(run) == expected


@pytest.mark.parametrize("head", ["", "Unnamed: 0"])
def test_the_index_of_a_data_frame_is_in_no_proposal(write: Write, head: str) -> None:
    rows = "".join(f"{i},{task},{i % 2},1\n" for i, task in enumerate("abc"))
    for last in ("", "3,average,0.333,1.0\n"):
        with pytest.raises(PasshatError) as refusal:
            read(write(f"{head},task,m1,m2\n{rows}{last}"))
        assert "67% of 6 attempts at 3 tasks, 2 runs" in str(refusal.value.hint)
        assert "3 runs" not in str(refusal.value.hint)


def test_an_index_of_names_is_the_task(write: Write) -> None:
    (run,) = read(write(",run_1,run_2\na,1,0\nb,1,1\n"))
    assert list(run.outcomes.tasks) == ["a", "b"]
    (run,) = read(write("Unnamed: 0,run_1,run_2\na,1,0\nb,1,1\n"))
    assert list(run.outcomes.tasks) == ["a", "b"]


def test_a_verdict_in_words_decides_beside_a_graded_score(write: Write) -> None:
    (run,) = read(write("task,score,outcome\na,0.9,success\nb,0.2,failure\nc,0.7,success\n"))
    assert _counts(run) == (2, 3, 0)
    assert any("'score' is graded and read as the score" in line for line in run.decisions)
    assert run.outcomes.scores is not None
    # A failure with a higher score than a pass: the words are about something else.
    (run,) = read(write("task,score,outcome\na,0.9,failure\nb,0.2,success\nc,1,success\n"))
    assert not any("outcome" in line for line in run.decisions)


def test_the_task_of_trials_is_an_object_around_them(write: Write) -> None:
    rows = [
        {
            "task": {"name": "the same", "id": task},
            "trials": [{"n": n, "passed": n > 0} for n in range(3)],
        }
        for task in ("a", "b")
    ]
    (run,) = read(write(json.dumps({"results": rows}), "mine.json"))
    assert (list(run.outcomes.tasks), _counts(run)) == (["a", "b"], (4, 6, 0))


def test_columns_in_spanish(write: Write) -> None:
    rows = "".join(
        f"{model},{task},{number},{'correcto' if number else 'incorrecto'}\n"
        for model in ("uno", "dos")
        for task in "ab"
        for number in (0, 1, 2)
    )
    runs = read(write(f"sistema,tarea,ejecución,resultado\n{rows}"))
    assert {run.name: _counts(run) for run in runs} == {"uno": (4, 6, 0), "dos": (4, 6, 0)}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"a": {"pass": 1, "fail": 2}, "b": {"pass": 0, "fail": 3}}, {"mine": (1, 6, 0)}),
        ({"a": {"passed": 2, "total": 3}, "b": {"passed": 0, "total": 3}}, {"mine": (2, 6, 0)}),
        (
            {
                "x": {"a": {"pass": 2, "fail": 1}, "b": {"pass": 1, "fail": 2}},
                "y": {"a": {"pass": 0, "fail": 3}, "b": {"pass": 3, "fail": 0}},
            },
            {"x": (3, 6, 0), "y": (3, 6, 0)},
        ),
        (
            {
                "a": {"gpt-5": {"pass": 2, "fail": 1}, "claude-4": {"pass": 1, "fail": 0}},
                "b": {"gpt-5": {"pass": 0, "fail": 1}, "claude-4": {"pass": 1, "fail": 1}},
            },
            {"gpt-5": (2, 4, 0), "claude-4": (2, 3, 0)},
        ),
    ],
)
def test_objects_of_counts_are_tasks(
    write: Write, content: object, expected: dict[str, tuple[int, int, int]]
) -> None:
    runs = read(write(json.dumps(content), "mine.json"))
    assert {run.name: _counts(run) for run in runs} == expected


def test_an_object_of_counts_that_may_be_verdicts_is_asked_about(write: Write) -> None:
    content = {task: {"passed": int(task != "b"), "total": 3} for task in "abc"}
    path = write(json.dumps(content), "mine.json")
    with pytest.raises(PasshatError, match=r"2 of 3 attempts passed.*2 of 9") as refusal:
        read(path)
    assert "--map success=passed" in str(refusal.value.hint)
    (run,) = read(path, columns={"success": "passed"})
    assert _counts(run) == (2, 3, 0)
    (run,) = read(path, columns={"n": "total", "c": "passed"})
    assert _counts(run) == (2, 9, 0)


def test_counts_beside_records_sum_them_up(write: Write) -> None:
    rows = [{"task": t, "passed": n > 0} for t in "ab" for n in range(2)]
    summary = {"a": {"passed": 1, "total": 2}, "b": {"passed": 1, "total": 2}}
    (run,) = read(write(json.dumps({"results": rows, "per_task": summary}), "mine.json"))
    assert _counts(run) == (2, 4, 0)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("task,gpt-5,claude\na,PPF,PPP\nb,FFP,PFF\n", {"gpt-5": (3, 6, 0), "claude": (4, 6, 0)}),
        (
            "task,gpt-5,goose\na,✓ - ✗,✓ ✓ ✗\nb,✗ ✗ ✗,✓ ✓ ✓\n",
            {"gpt-5": (1, 5, 1), "goose": (5, 6, 0)},
        ),
        (
            "task,gpt-5,claude\na,66.7% (n=3),50% (1/2)\nb,0% (n=3),100% (n=2)\n",
            {"gpt-5": (2, 6, 0), "claude": (3, 4, 0)},
        ),
        (
            "task,m1 1,m1 2,m2 1,m2 2\na,1,0,1,1\nb,0,0,1,1\n",
            {"m1": (1, 4, 0), "m2": (4, 4, 0)},
        ),
        (
            "┏━━━━━━┳━━━━━━━┓\n┃ Task ┃ gpt-5 ┃\n┡━━━━━━╇━━━━━━━┩\n"
            "│ a    │ pass  │\n│ b    │ fail  │\n└──────┴───────┘\n",
            {"gpt-5": (1, 2, 0)},
        ),
    ],
)
def test_several_attempts_in_a_cell_or_a_heading(
    write: Write, table: str, expected: dict[str, tuple[int, int, int]]
) -> None:
    runs = read(write(table, "mine.txt" if "┃" in table else "mine.csv"))
    assert {run.name: _counts(run) for run in runs} == expected


@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("task,m1,m2\na,PPF,PPP\nb,FFP,PFF\n", "58% of 12 attempts at 2 tasks, 2 runs"),
        ("task,m1,m2\na,P-P-F,P-P-P\nb,F-F-P,P-F-F\n", "58% of 12 attempts at 2 tasks, 2 runs"),
        ("task,m1,m2\na,50% (n=2),0% (n=2)\nb,50% (1/2),100% (n=2)\n", "50% of 8 attempts"),
    ],
)
def test_columns_of_unknown_names_with_several_attempts_are_asked_about(
    write: Write, table: str, command: str
) -> None:
    with pytest.raises(PasshatError) as refusal:
        read(write(table))
    assert command in str(refusal.value.hint).splitlines()[1]
    assert "--map task=task,model=@column" in str(refusal.value.hint).splitlines()[1]


@pytest.mark.parametrize(
    "heads",
    ["unit_1,unit_2,style_1,style_2", "gpt 4,gpt 5,claude 4,claude 5", "x1 1,x1 2,x2 1,x2 3"],
)
def test_numbers_behind_names_that_are_no_attempts(write: Write, heads: str) -> None:
    path = write(f"task,{heads}\na,1,0,1,1\nb,0,0,1,1\n")
    try:
        runs = read(path)
    except PasshatError:
        return
    assert len(runs) != 2


def test_lines_about_the_begin_of_an_attempt_are_none(write: Write) -> None:
    lines = []
    for task in "ab":
        for number in (1, 2, 3):
            lines.append(f"10:00 start task={task} attempt={number}/3")
            lost = (task, number) == ("a", 2)
            end = "sandbox died" if lost else f"verdict={'PASS' if number > 1 else 'FAIL'}"
            lines.append(f"10:05 end task={task} attempt={number} {end}")
    (run,) = read(write("\n".join(lines) + "\n", "run.log"))
    assert _counts(run) == (3, 5, 1)


def _attempt(task: str, number: int, agent: str) -> str:
    return json.dumps(
        {"task_id": task, "agent": agent, "attempt": number, "is_resolved": number == 1}
    )


def test_a_folder_of_attempts_that_name_task_and_agent(tmp_path: Path) -> None:
    for task in "ab":
        for number in (1, 2, 3):
            for agent in ("hare", "tortoise"):
                folder = tmp_path / "runs" / agent / task / str(number)
                folder.mkdir(parents=True)
                (folder / "result.json").write_text(_attempt(task, number, agent))
                (folder / "agent.log").write_text("thinking\nwriting\n")
    (tmp_path / "runs" / "config.json").write_text('{"k": 3}')
    runs = read(tmp_path / "runs")
    assert {run.name: _counts(run) for run in runs} == {"hare": (2, 6, 0), "tortoise": (2, 6, 0)}
    again = tmp_path / "runs" / "later"
    again.mkdir()
    (again / "result.json").write_text(_attempt("a", 1, "hare"))
    assert all(run.outcomes.attempts == 1 for run in read(tmp_path / "runs"))  # of two experiments


def test_rewards_lie_beside_documents_of_trials(tmp_path: Path) -> None:
    for task in ("sort", "find"):
        for number in (1, 2):
            folder = tmp_path / "jobs" / f"{task}__{number}" / "verifier"
            folder.mkdir(parents=True)
            (folder / "reward.txt").write_text(f"{number - 1}\n")
            (folder.parent / "trial.json").write_text(json.dumps({"task": task, "trial": number}))
    (run,) = read(tmp_path / "jobs")
    assert (list(run.outcomes.tasks), _counts(run)) == (["find", "sort"], (2, 4, 0))


def test_a_flag_of_failures_comes_before_a_status_of_all_rows(write: Write) -> None:
    rows = "".join(f"{t},{n},completed,{n == 1}\n" for t in "abc" for n in (1, 2, 3))
    with pytest.raises(PasshatError) as refusal:
        read(write(f"task,attempt,status,failed\n{rows}"))
    assert "success=failed == false" in str(refusal.value.hint).splitlines()[1]


@pytest.mark.parametrize("depth", [30, 900, 20_000])
def test_a_deep_document_is_refused(write: Write, depth: int) -> None:
    with pytest.raises(PasshatError):
        read(write('{"a":' * depth + "1" + "}" * depth, "mine.json"))


def test_objects_beside_counts_are_not_dropped(write: Write) -> None:
    content = {"a": {"pass": 2, "fail": 1}, "b": {"pass": 3}, "c": None}
    with pytest.raises(PasshatError):  # b and c lack a number: 1 task would be too few
        read(write(json.dumps(content), "mine.json"))


def test_an_index_that_is_stated_is_the_task(write: Write) -> None:
    path = write("Unnamed: 0,run_1,run_2\n7,1,0\n9,1,1\n")
    (run,) = read(path, columns={"task": "Unnamed: 0"})
    assert (list(run.outcomes.tasks), _counts(run)) == (["7", "9"], (3, 4, 0))


def test_an_index_of_names_and_numbers_stays_for_all_rows(write: Write) -> None:
    rows = "".join(f"{'t' if i < 2_500 else ''}{i},{i % 2},1\n" for i in range(5_000))
    (run,) = read(write(f"Unnamed: 0,run_1,run_2\n{rows}"), columns={"task": "Unnamed: 0"})
    assert (len(run.outcomes), _counts(run)) == (5_000, (7_500, 10_000, 0))


def test_lists_of_several_lengths_have_no_missing_attempts(write: Write) -> None:
    runs = read(write("task,gpt-5,claude\na,PPF,PP\nb,FFP,PFF\n"))
    assert {run.name: _counts(run) for run in runs} == {"gpt-5": (3, 6, 0), "claude": (3, 5, 0)}


def test_a_longer_list_in_later_rows_is_refused() -> None:
    rewrites = Rewrites({})
    first = {"task": ["a", "b"], "gpt-5": ["PPF", "FFP"], "claude": ["PFF", ""]}
    columns, _ = rewrites.take(first, [2, 3])
    assert list(columns["gpt-5 run 3"]) == ["fail", "pass"]
    assert list(columns["claude run 1"]) == ["pass", None]
    for cell in ("PPFP", "gone"):
        with pytest.raises(PasshatError, match="'gpt-5' lists 3 attempts in its first rows"):
            rewrites.take({"task": ["c"], "gpt-5": [cell], "claude": ["PFF"]}, [4])


def test_lists_beside_a_verdict_are_left_alone(write: Write) -> None:
    (run,) = read(write("task,passed,lint,checks\na,1,1 1 0,0 1 1\nb,0,1 0 0,0 1 0\n"))
    assert _counts(run) == (1, 2, 0)
    assert not any("cells such as" in line for line in run.decisions)


def test_words_beside_scores_decide_where_some_ended_without_a_verdict(write: Write) -> None:
    (run,) = read(write("task,score,outcome\na,.9,success\nb,.2,failure\nc,,error\n"))
    assert _counts(run) == (1, 2, 1)
    (run,) = read(write("task,score,outcome\na,1,success\nb,0,failure\nc,,error\n"))
    assert not any("graded" in line for line in run.decisions)


def test_pass_at_ten_is_named_and_pass_at_one_is_not(write: Write) -> None:
    (run,) = read(write("task,pass@1,pass@10\na,1,1\nb,0,1\n"))
    assert any(line.endswith("not read: 'pass@10'") for line in run.decisions)
    (run,) = read(write("task,pass@1\na,1\nb,0\n"))
    assert not any("not read" in line for line in run.decisions)


def test_repeats_at_several_depths_are_no_traceback(tmp_path: Path) -> None:
    for name in ("exp/seed_1", "exp_seed_2"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "r.json").write_text('[{"task": "a", "passed": true}]')
    assert len(read(tmp_path)) == 2


_ROWS = [
    (agent, task, trial, (task + trial + len(agent)) % 3 > 0)
    for agent in ("kite", "heron")
    for task in range(5)
    for trial in range(3)
]
"""Agents, tasks, attempts and verdicts: 10 of 15 passed for each agent."""


def _passes(runs: list[Run]) -> dict[str, tuple[int, int, int]]:
    """Tasks, attempts with a verdict, and passes of each run."""
    return {
        run.agent: (len(run.outcomes.tasks), run.outcomes.scored, run.outcomes.passes)
        for run in runs
    }


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("uid,scaffold,issue,seed,resolved", "{i:04x},{a},repo__{t},{n},{v}"),
        (
            "started,scaffold,issue,seed,resolved",
            "2025-03-0{n}T1{t}:{i:02}:00,{a},repo__{t},{n},{v}",
        ),
        ("row,scaffold,journey,seed,resolved", "r{i},{a},way {t},{n},{v}"),
    ],
)
def test_an_id_of_each_row_is_no_task_where_another_column_repeats(
    write: Write, head: str, row: str
) -> None:
    lines = [row.format(i=i, a=a, t=t, n=n, v=int(v)) for i, (a, t, n, v) in enumerate(_ROWS)]
    path = write("\n".join((head, *lines)))
    try:
        runs = read(path)
    except PasshatError as error:
        command = str(error.hint).split(": passhat report ")[1].splitlines()[0]
        pairs = shlex.split(command)[-1].split(",")
        runs = read(path, columns=dict(pair.split("=", 1) for pair in pairs))
    assert _passes(runs) == {"kite": (5, 15, 10), "heron": (5, 15, 10)}


def test_an_id_of_each_row_is_the_task_beside_a_few_categories(write: Write) -> None:
    rows = [f"q{i},{'abcd'[i % 4]} sort,{i % 2}" for i in range(40)]
    (run,) = read(write("\n".join(("id,kind,passed", *rows))))
    assert len(run.outcomes.tasks) == 40


def _wide(head: str, cells: Callable[[int], list[object]]) -> str:
    lines = [",".join(map(str, (f"part {t}", *cells(t)))) for t in range(4)]
    return "\n".join((head, *lines))


def test_a_number_sign_in_a_heading_numbers_attempts_of_models(write: Write) -> None:
    head = "Task,pi0 #1,pi0 #2,VLA #1,VLA #2"
    runs = read(write(_wide(head, lambda t: ["P", "F" if t else "ERR", "P", "T/O" if t else "P"])))
    assert _passes(runs) == {"pi0": (4, 7, 4), "VLA": (4, 5, 5)}
    assert runs[0].decisions[0] == "cells read as missing attempts: 'ERR' (1), 'T/O' (3)"


def test_attempts_in_all_columns_stay_with_their_models(write: Write) -> None:
    head = "Task,pi0 run 1,pi0 run 2,VLA run 1,VLA run 2"
    path = write(_wide(head, lambda t: ["fine", "fine" if t else "bad", "bad", "bad"]))
    runs = read(path, columns={"trial": "@column", "success": "fine"})
    assert _passes(runs) == {"pi0": (4, 8, 7), "VLA": (4, 8, 0)}


def test_a_row_of_averages_below_columns_with_empty_cells(write: Write) -> None:
    head = "doc,kite_t1,kite_cost1,kite_t2,kite_cost2,wren_t1,wren_cost1,wren_t2,wren_cost2"
    text = _wide(head, lambda t: [1, 0.3, int(t > 1), 0.4, "n/a" if t else 1, 0.1, 0, 0.2])
    runs = read(write(text + "\nmean,1,,0.5,,1,,0,"))
    assert _passes(runs) == {"kite": (4, 8, 6), "wren": (4, 5, 1)}
    with pytest.raises(PasshatError, match="looks like a total"):
        read(write(text + "\nmean,1,,0.5,,1,,1,"))


@pytest.mark.parametrize(
    ("head", "cells", "success"),
    [
        ("System,Kernel,seed 1,seed 2,Mean,SD,Best", "s,k,0.5,0.25,0.375,0.1,0.5", "trial=@column"),
        ("Épreuve,Assistant,Essai n°,Note (0 à 1),Coût €", "k,s,1,0.25,0.3", "Note (0 à 1)"),
        ("Fall,Modell,quality_score,Kosten", "k,s,0.25,0.3", "success=quality_score"),
    ],
)
def test_graded_cells_are_offered_as_they_are(
    write: Write, head: str, cells: str, success: str
) -> None:
    rows = [cells.replace("k", f"k{i}").replace("0.25", f"0.{25 + i}") for i in range(6)]
    with pytest.raises(PasshatError) as caught:
        read(write("\n".join((head, *rows))))
    first = str(caught.value.hint).splitlines()[1]
    assert "a mean of 0." in first
    assert success in first


def test_columns_of_a_tracker_of_experiments(write: Write) -> None:
    head = "run_id,status,params.model,params.task,params.seed,metrics.success,judge.model"
    rows = [f"{i},FINISHED,{a},{t},{n},{int(v)},j" for i, (a, t, n, v) in enumerate(_ROWS)]
    runs = read(write("\n".join((head, *rows))))
    assert _passes(runs) == {"kite": (5, 15, 10), "heron": (5, 15, 10)}


def test_models_come_first_among_the_roles_of_a_column(write: Write) -> None:
    rows = [f"a{t},{model},{t % 2}" for t in range(3) for model in ("GPT-4o", "Aleph-7B")]
    with pytest.raises(PasshatError) as caught:
        read(write("\n".join(("Aufgabe,Anbieter,passed", *rows))))
    assert "Say what it is: --map model=Anbieter (runs)" in str(caught.value.hint)


def test_groups_of_numbered_headings_are_offered_as_models_with_attempts(write: Write) -> None:
    text = ",Gripper A,,,Gripper B,,\nObject,V1,V2,V3,V1,V2,V3\n"
    path = write(text + "mug,1,0,1,0,0,1\nbox,1,1,1,0,1,1\npen,0,0,1,0,0,0\n")
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert str(caught.value.hint).splitlines()[1].endswith("--map task=Object,trial=@column")
    runs = read(path, columns={"task": "Object", "trial": "@column"})
    assert _passes(runs) == {"Gripper A": (3, 9, 6), "Gripper B": (3, 9, 3)}


@pytest.mark.parametrize(
    ("head", "row", "passes"),
    [
        ("Testfall;Lauf;Ergebnis", "{t};{n};{w}", (2, 4, 3)),
        ("Testfall;Anzahl Läufe;Erfolgsquote", "{t};10;{q}%", (2, 20, 11)),
        ("Testfall;Sprachmodell;Versuch;Bestanden", "{t};x;{n};{w}", (2, 4, 3)),
    ],
)
def test_columns_in_german(write: Write, head: str, row: str, passes: tuple[int, int, int]) -> None:
    rows = [
        row.format(
            t=t, n=n, w="nicht ok" if t == "a" and n == 2 else "ok", q=40 if t == "a" else 70
        )
        for t in "ab"
        for n in ((1,) if "{q}" in row else (1, 2))
    ]
    (run,) = read(write("\n".join((head, *rows))))
    assert (len(run.outcomes.tasks), run.outcomes.scored, run.outcomes.passes) == passes


@pytest.mark.parametrize("name", ["attack_success", "jailbroken", "prompt_injection_success"])
def test_an_attack_that_came_through_is_no_pass_of_the_agent(write: Write, name: str) -> None:
    rows = [f"{a},{t},{n},{int(v)}" for a, t, n, v in _ROWS]
    with pytest.raises(PasshatError) as caught:
        read(write("\n".join((f"defence,probe,sample,{name}", *rows))))
    assert f"success={name} == 0'" in str(caught.value.hint).splitlines()[1]


def test_an_unknown_word_beside_failures_alone_is_asked_about(write: Write) -> None:
    path = write(_wide("theorem,try1,try2", lambda t: ["closed" if t else "failed", "closed"]))
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert "--map task=theorem,trial=@column,success=closed" in str(caught.value.hint)


def test_the_time_of_a_row_is_no_task(write: Write) -> None:
    rows = [
        f"2025-03-04T09:1{i}:00Z,kite,{task},{retry},{word}"
        for i, (task, retry, word) in enumerate(
            [("a", 0, "failure"), ("a", 1, "success"), ("b", 0, "success"), ("c", 0, "failure")]
        )
    ]
    with pytest.raises(PasshatError) as caught:
        read(write("\n".join(("finished_at,agent,check,retry,conclusion", *rows))))
    assert "task=check,model=agent,trial=retry," in str(caught.value.hint).splitlines()[1]


@pytest.mark.parametrize(
    ("text", "option", "numbers"),
    [
        ("Exercise,plain,shots,Δ\na,67,33,-34\nb,0,33,+33\nc,100,67,-33\n", "n=3", "50% of 18"),
        (
            "Item ID,Area,CoT,Ours\na,Web,3/5,1/5\nb,OS,5/5,0/5\nMean,,4,0.5\n",
            "@column",
            "45% of 20",
        ),
        ("talk,judge_run,tone (1-5)\na,1,5\na,2,4\nb,1,2\nb,2,3\n", "tone (1-5) >= 4", "50% of 4"),
        (
            "item,sample,faithfulness\na,1,0.5\na,2,1.0\nb,1,0.25\n",
            "faithfulness",
            "a mean of 0.58",
        ),
        (
            "Task,Own one 1,Own one 2,Other 1,Other 2\na,1,0,1,1\nb,0,0,1,1\n",
            "trial=@column",
            "62% of 8",
        ),
    ],
)
def test_the_first_reading_that_is_offered(
    write: Write, text: str, option: str, numbers: str
) -> None:
    with pytest.raises(PasshatError) as caught:
        read(write(text))
    first = str(caught.value.hint).splitlines()[1]
    assert option in first
    assert numbers in first


def test_a_decimal_comma_behind_a_nought(write: Write) -> None:
    (run,) = read(write("task;score\na;0,797\nb;0,203\nc;1,0\n"))
    assert run.outcomes.scores is not None
    assert run.outcomes.scores.values.tolist() == [0.797, 0.203, 1.0]


def test_a_mean_of_counts_below_a_remark_is_a_total(write: Write) -> None:
    text = "Item,gpt-4,claude\na,3/5,1/5\nb,5/5,0/5\nMean,4,0.5\nNote: of five runs.,,\n"
    runs = read(write(text))
    assert _passes(runs) == {"gpt-4": (2, 10, 8), "claude": (2, 10, 1)}
    assert runs[0].losses == ()


def test_two_lines_of_headings_over_counts_and_remarks(write: Write) -> None:
    text = "Task;Tool X;;;Tool Y;;\n;Runs;Passed;Comment;Runs;Passed;Comment\n"
    runs = read(write(text + "a;3;3;needed hint;4;2;\nb;5;1;;3;3;slow\nTotal;8;4;;7;5;\n"))
    assert sorted(_passes(runs).values()) == [(2, 7, 5), (2, 8, 4)]


def test_the_success_of_a_task_among_checks_of_its_parts(write: Write) -> None:
    text = "case_id,rep,valid_json,args_match,task_success\na,1,1,1,1\na,2,1,1,0\nb,1,1,0,0\n"
    (run,) = read(write(text))
    assert (run.outcomes.passes, run.outcomes.scored) == (1, 3)


def test_a_number_of_passes_below_words_and_gaps(write: Write) -> None:
    head = "No.,Test case,Owner,R1,R2,Notes\n"
    (run,) = read(write(head + "1,a,Ana,Pass,Fail,\n2,b,Tom,,Pass,slow\n,Pass count,,1,1,\n"))
    assert (len(run.outcomes.tasks), run.outcomes.passes, run.outcomes.total_missing) == (2, 2, 1)


def test_shares_with_their_unit_in_the_heading_are_no_grades(write: Write) -> None:
    text = "Task\tOld – success % (5 runs)\tNew – success % (5 runs)\na\t40%\t20%\nb\t100%\t60%\n"
    with pytest.raises(PasshatError) as caught:
        read(write(text, "x.tsv"))
    assert "--map task=Task,model=@column,n=5" in str(caught.value.hint).splitlines()[1]


def test_a_mark_and_a_dash_are_a_pass_and_nothing(write: Write) -> None:
    path = write(
        _wide("Case ID,v1.8 #1,v1.8 #2,v1.9 #1,v1.9 #2", lambda t: ["-", "x", "x", "-x"[t > 1]])
    )
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert "trial=@column,success=x" in str(caught.value.hint).splitlines()[1]
