"""A selection of tables as people write them, each with the counts that it was written from.

For each a run is a list of (attempts with a verdict, passes, missing) per task.
"""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from passhat import Run, read
from passhat.cli import main
from passhat.cli.shared.options import column_map
from passhat.errors import PasshatError

Runs = list[list[tuple[int, int, int]]]

ONE: Runs = [[(2, 1, 0), (2, 2, 0)]]
SINGLE: Runs = [[(1, 0, 0), (1, 1, 0)]]
TWO: Runs = [[(1, 0, 0), (1, 1, 0)], [(1, 1, 0), (1, 1, 0)]]
PAIR: Runs = [[(2, 1, 0), (2, 2, 0)], [(2, 0, 0), (2, 1, 0)]]

READ: dict[str, tuple[str, Runs]] = {
    # without a heading
    "no heading": ("a,1,pass\na,2,fail\nb,1,pass\nb,2,pass\n", ONE),
    "a page without a heading": (
        "<table><tr><td>a</td><td>fail</td></tr><tr><td>b</td><td>pass</td></tr>"
        "<tr><td>c</td><td>fail</td></tr></table>",
        [[(1, 0, 0), (1, 0, 0), (1, 1, 0)]],
    ),
    "a word as the heading": ("task,pass\na,no\nb,yes\n", SINGLE),
    # units and languages
    "a unit behind a heading": ("task,trials,pass rate (%)\na,2,50\nb,2,100\n", ONE),
    "Spanish counts": ("tarea,intentos,aciertos\na,2,1\nb,2,2\n", ONE),
    "Japanese": ("タスク,試行,結果\na,1,成功\na,2,失敗\nb,1,成功\nb,2,成功\n", ONE),
    "Chinese attempts": ("任务,第1次,第2次\na,通过,不通过\nb,通过,通过\n", ONE),
    "negations": ("tâche,essai,résultat\na,1,non réussi\nb,1,réussi\n", SINGLE),
    # cells and lines
    "a time first": (
        "2026-01-01T10:00:00Z,sort,pass\n".join(["time,task,outcome\n", ""])
        + "2026-01-01T10:00:01Z,sort,fail\n2026-01-01T10:00:02Z,find,pass\n"
        "2026-01-01T10:00:03Z,find,pass\n",
        ONE,
    ),
    "a table without outer bars": (
        " task | trial | passed\n------+-------+--------\n a    | 1     | t\n a    | 2     |\n"
        " b    | 1     | f\n",
        [[(1, 1, 1), (1, 0, 0)]],
    ),
    "paths": (
        "file,score\n"
        + "".join(
            f"out/{model}/{task}/{trial}/result.txt,{score}\n"
            for model, scores in (("gpt-5", "0111"), ("claude-4", "0001"))
            for (task, trial), score in zip(
                [("a", 1), ("a", 2), ("b", 1), ("b", 2)], scores, strict=True
            )
        ),
        PAIR,
    ),
    "columns of a frame": (
        json.dumps(
            {
                "task": {"0": "a", "1": "a", "2": "b", "3": "b"},
                "run": {"3": 1, "2": 0, "1": 1, "0": 0},
                "passed": {"0": True, "1": False, "2": True, "3": True},
            }
        ),
        ONE,
    ),
    "columns by task": (json.dumps({"n": {"a": 2, "b": 2}, "c": {"b": 2, "a": 1}}), ONE),
    "a share below fractions": (
        "| Task | gpt | claude |\n|---|---|---|\n| a | 1/2 | 0/2 |\n| b | 2/2 | 1/2 |\n"
        "| **Overall** | **75%** | **25%** |\n",
        PAIR,
    ),
    "a state beside the verdict": (
        "task,run,status,conclusion\na,1,completed,success\na,2,completed,failure\n"
        "b,1,completed,success\nb,2,completed,success\n",
        ONE,
    ),
    "what surrounds the agent": (
        "task,pass,fail,infra\na,1,1,1\nb,2,0,0\n",
        [[(2, 1, 1), (2, 2, 0)]],
    ),
    "fractions in sentences": ("flow,outcome\na,1 out of 2 passed\nb,2 out of 2 passed\n", ONE),
    "days": ("task,Mon 3 Mar,Tue 4 Mar,owner\na,pass,fail,x\nb,pass,pass,x\n", ONE),
    "partial successes": (
        "task,run,outcome\na,1,success\na,2,partial success\nb,1,success\nb,2,failure\n",
        [[(1, 1, 1), (2, 1, 0)]],
    ),
    "a log of Python": (
        "2026-01-01 10:00:00,123 - INFO - eval - a (trial 0) -> success\n"
        "2026-01-01 10:00:01,123 - INFO - eval - a (trial 1) -> failure\n"
        "2026-01-01 10:00:02,123 - INFO - eval - b (trial 0) -> success\n"
        "2026-01-01 10:00:03,123 - INFO - eval - b (trial 1) -> success\n",
        ONE,
    ),
    "bits": ("task,outcomes\na,01\nb,11\n", ONE),
    "gaps between columns": ("task  results\na     P F\nb     P P\n", ONE),
    "a log with times": (
        "[2026-02-01 12:00:01] a attempt 1: PASSED (3.1s)\n[2026-02-01 12:00:02] a attempt 2: "
        "FAILED (1s)\n[2026-02-01 12:01:01] b attempt 1: PASSED (1s)\n[2026-02-01 12:01:02] b "
        "attempt 2: PASSED (1s)\n",
        ONE,
    ),
    "pairs behind a verdict": (
        "PASS a run=0 dur=3s\nFAIL a run=1 dur=3s\nPASS b run=0 dur=3s\nPASS b run=1 dur=3s\n",
        ONE,
    ),
    "tasks in numbered runs": (
        json.dumps({"run_1": {"a": "pass", "b": "pass"}, "run_2": {"a": "fail", "b": "pass"}}),
        ONE,
    ),
    "pairs in lines": (
        "time=12:00 task=a trial=1 passed=true\ntime=12:01 task=a trial=2 passed=false\nbye\n"
        "time=12:02 task=b trial=1 passed=true\ntime=12:03 task=b trial=2 passed=true\n",
        ONE,
    ),
    "judges and their decision": (
        "task,trial,judge_gpt,judge_claude,final\na,1,1,1,1\na,2,1,0,0\nb,1,0,1,1\nb,2,1,1,1\n",
        ONE,
    ),
    "a list of models": (
        json.dumps(
            {
                "date": "today",
                "models": [
                    {"name": "x", "answers": [{"question": "a", "grade": "incorrect"}]},
                    {"name": "y", "answers": [{"question": "a", "grade": "correct"}]},
                ],
            }
        ),
        [[(1, 0, 0)], [(1, 1, 0)]],
    ),
    "attempts of one model in each task": (
        json.dumps(
            {
                "a": {
                    "my-model": [
                        {"total_score": 1, "criteria_results": [{"met": True}]},
                        {"total_score": 0},
                    ]
                },
                "b": {"my-model": [{"total_score": 1}, {"total_score": 1}]},
            }
        ),
        ONE,
    ),
    # words
    "German": ("Aufgabe;Versuch;bestanden\na;1;ja\na;2;nein\nb;1;ja\nb;2;ja\n", ONE),
    "Chinese": ("任务,次数,结果\na,1,通过\na,2,失败\nb,1,通过\nb,2,通过\n", ONE),
    "circles": ("task,attempt,outcome\na,1,🟢\na,2,🔴\nb,1,🟢\nb,2,🟢\n", ONE),
    "remarks behind words": (
        "task,trial,result\na,1,✅ pass\na,2,❌ fail (timeout)\nb,1,passed: ok\nb,2,PASS\n",
        ONE,
    ),
    "skipped": ("test_name,result\na,PASSED\nb,SKIPPED\n", [[(0, 0, 1), (1, 1, 0)]]),
    "programs": ("submission,task,verdict\n1,a,AC\n2,a,WA\n3,b,AC\n4,b,AC\n", ONE),
    "circles and crosses": ("問題,モデル,正解\na,x,×\nb,x,○\n", SINGLE),
    "odd endings": (
        "task,trial,result\na,1,pass\na,2,timeout\nb,1,pass\nb,2,pass\n",
        [[(1, 1, 1), (2, 2, 0)]],
    ),
    # wide
    "signs of numbers": ("Task,#1,#2,Notes\na,✓,✗,hm\nb,✓,✓,hm\n", ONE),
    "model and run": (
        "task,gpt (run 1),gpt (run 2),claude (run 1),claude (run 2)\na,1,0,0,0\nb,1,1,1,0\n",
        PAIR,
    ),
    "run and model": (
        "task,run1_gpt4,run1_claude,run2_gpt4,run2_claude\na,1,0,0,0\nb,1,1,1,0\n",
        PAIR,
    ),
    "two lines of headings": (
        ",gpt,gpt,claude,claude\ntask,run1,run2,run1,run2\na,1,0,0,0\nb,1,1,1,0\n",
        PAIR,
    ),
    "pandas' lines of headings": (
        "model,gpt,gpt,claude,claude\ntrial,1,2,1,2\ntask,,,,\na,1,0,0,0\nb,1,1,1,0\n",
        PAIR,
    ),
    "pandas' second column": ("task,passed,passed.1\na,1,0\nb,1,1\n", ONE),
    "dates": ("task,2025-03-01,2025-03-02\na,1,0\nb,1,1\n", ONE),
    "measures of attempts": (
        "task,trial_0_reward,trial_0_cost,trial_1_reward,trial_1_cost\na,1,1,0,1\nb,1,0,1,0\n",
        ONE,
    ),
    "attempts and their summary": ("task,run_1,run_2,result\na,1,0,1\nb,1,1,1\n", ONE),
    "attempts and pass@2": ("task,attempt_1,attempt_2,pass@2\na,1,0,1\nb,1,1,1\n", ONE),
    "measures of models": (
        "task,modelA,modelA_time,modelB,modelB_time\na,0,1,1,1\nb,1,0,1,0\n",
        TWO,
    ),
    "verdicts of models": (
        "Q,GPT-4 Answer,GPT-4 Correct?,Claude Answer,Claude Correct?\n"
        "a,A,No,B,Yes\nb,B,Yes,B,Yes\n",
        TWO,
    ),
    "fractions of models": (
        "task,gpt,claude\na,1/2,0/2\nb,2/2,1/2\nTotal,3/4,1/4\n",
        PAIR,
    ),
    "a column for each task": ("model,q1,q2\ngpt,0,1\nclaude,1,1\n", TWO),
    "a row for each run": ("run,q1,q2\n1,1,1\n2,0,1\n", ONE),
    # cells
    "letters": ("task,results\na,P F\nb,P P\n", ONE),
    "signs": ("task,outcomes\na,✅❌\nb,✅✅\n", ONE),
    "semicolons in a cell": ("task,results\na,1;0\nb,1;1\n", ONE),
    # counts
    "thousands": (
        'task,total,correct\na,"1,500",900\nb,"1,500","1,200"\n',
        [[(1500, 900, 0), (1500, 1200, 0)]],
    ),
    "whole percent": ("task,runs,success_rate\na,2,50\nb,2,100\n", ONE),
    "decimal commas": ("task;runs;pass_rate\na;2;50,0%\nb;2;100,0%\n", ONE),
    "pass@1 and n": ("task,pass@1,pass@2,n\na,0.5,1,2\nb,1.0,1,2\n", ONE),
    "neither passed nor failed": (
        "task,passed,failed,total\na,1,1,3\nb,2,0,2\n",
        [[(2, 1, 1), (2, 2, 0)]],
    ),
    "errors": ("task,n_pass,n_fail,n_error\na,1,1,1\nb,2,0,0\n", [[(2, 1, 1), (2, 2, 0)]]),
    # rows that are no attempts
    "sections": ("Task,Run 1,Run 2\ngpt,,\na,1,0\nb,1,1\nclaude,,\na,0,0\nb,1,0\n", PAIR),
    "another table": ("task,passed\na,0\nb,1\n\nmodel,accuracy\nm,0.5\n", SINGLE),
    "remarks": ("task,trial,passed\na,1,0\nb,1,1\nNote: the second was slow,,\n", SINGLE),
    "columns by spaces": ("task    trial  passed\na       1      0\nb       1      1\n", SINGLE),
    "lines": ("a: FAIL\nb: PASS\n", SINGLE),
    # JSON
    "true and false": (json.dumps({"a": False, "b": True}), SINGLE),
    "models and tasks": (
        json.dumps({"gpt": {"a": 0, "b": 1}, "claude": {"a": 1, "b": 1}}),
        TWO,
    ),
    "tasks and models": (
        json.dumps({"a": {"gpt-4": 0, "claude": 1}, "b": {"gpt-4": 1, "claude": 1}}),
        TWO,
    ),
    "tasks and runs": (
        json.dumps({"a": {"run_1": 1, "run_2": 0}, "b": {"run_1": 1, "run_2": 1}}),
        ONE,
    ),
    "three levels": (
        json.dumps({"gpt": {"a": {"0": True, "1": False}, "b": {"0": True, "1": True}}}),
        ONE,
    ),
    "attempts in tasks": (
        json.dumps(
            {
                "model": "m",
                "results": [
                    {"task": "a", "attempts": [{"passed": True}, {"passed": False}]},
                    {"task": "b", "attempts": [{"passed": True}, {"passed": True}]},
                ],
            }
        ),
        ONE,
    ),
    "tasks in models": (
        json.dumps(
            [
                {"model": m, "tasks": [{"id": "a", "passed": a}, {"id": "b", "passed": True}]}
                for m, a in (("x", False), ("y", True))
            ]
        ),
        TWO,
    ),
    "attempts beside a summary": (
        "\n".join(
            json.dumps({"task": t, "passed": True, "samples": [{"passed": v} for v in vs]})
            for t, vs in (("a", (True, False)), ("b", (True, True)))
        ),
        ONE,
    ),
    "tests are no attempts": (
        "\n".join(
            json.dumps({"task": t, "passed": v, "tests": [{"passed": True}, {"passed": v}]})
            for t, v in (("a", False), ("b", True))
        ),
        SINGLE,
    ),
    "ids by verdict": (json.dumps({"total": 2, "resolved": ["b"], "unresolved": ["a"]}), SINGLE),
    "rows as lists": (json.dumps([["task", "passed"], ["a", 0], ["b", 1]]), SINGLE),
    "metadata above": (
        '{"type": "meta", "date": "May"}\n{"task": "a", "passed": 0}\n{"task": "b", "passed": 1}\n',
        SINGLE,
    ),
    "headings in a text": (
        "## gpt\n\n| task | ok |\n|--|--|\n| a | no |\n| b | yes |\n\n"
        "## claude\n\n| task | ok |\n|--|--|\n| a | yes |\n| b | yes |\n",
        TWO,
    ),
    "a rule with crosses": ("| task | ok |\n|----+----|\n| a | no |\n| b | yes |\n", SINGLE),
    "a file by seeds": (
        json.dumps({"seed_0": {"a": True, "b": True}, "seed_1": {"a": False, "b": True}}),
        ONE,
    ),
    "groups of tasks": (
        json.dumps(
            {"easy": [{"name": "a", "passed": False}], "hard": [{"name": "b", "passed": True}]}
        ),
        SINGLE,
    ),
    "n and c beside an answer": ("task,n,c,code\na,2,1,f()\nb,2,2,g()\n", ONE),
    "attempts and failures": ("task,attempts,failures\na,2,1\nb,2,0\n", ONE),
    "shares behind fractions": ("task,gpt\na,1/2 (50%)\nb,2/2 (100%)\n", ONE),
    "a total below verdicts": (
        "| Task | Pass |\n|---|---|\n| a | ❌ |\n| b | ✅ |\n| **Total** | **1/2** |\n",
        SINGLE,
    ),
}

HINTED: dict[str, tuple[str, dict[str, Any], Runs]] = {
    "passes without a number of attempts": (
        "task,x,y\na,1,0\nb,2,1\nTotal,3,1\n",
        {},
        PAIR,
    ),
    "an exit code": ("test,exit_code\na,1\nb,0\n", {"passes": "exit_code == 0"}, SINGLE),
    "tests of an attempt": (
        "task,passed_tests,total_tests\na,3,5\nb,5,5\n",
        {"passes": "passed_tests >= @total_tests"},
        SINGLE,
    ),
    "grades": (
        "sample,epoch,grade\na,1,I\na,2,C\nb,1,C\nb,2,C\n",
        {"passes": "grade == C", "columns": {"task": "sample"}},
        ONE,
    ),
    "inside a record": (
        '{"task": "a", "scores": {"exact": 0}}\n{"task": "b", "scores": {"exact": 1}}\n',
        {"columns": {"task": "task", "success": "scores.exact"}},
        SINGLE,
    ),
    "lists of verdicts": (
        json.dumps(
            [{"idx": 1, "accs": [1, 0], "usage": {"tokens": 7}}, {"idx": 2, "accs": [1, 1]}]
        ),
        {"records": "[*]", "columns": {"task": "idx", "success": "accs"}},
        ONE,
    ),
    "objects of metrics in a list": (
        json.dumps(
            [
                {"idx": 1, "steps": [{"step": 0}], "infos": [{"r": 1}, {"r": 0}]},
                {"idx": 2, "steps": [{"step": 2}], "infos": [{"r": 1}, {"r": 1}]},
            ]
        ),
        {"records": "[*].infos[*]", "columns": {"task": "^idx", "success": "r"}},
        ONE,
    ),
    "tests of an answer": (
        "task,total,passed,answer\na,3,1,def f(): pass\nb,4,4,def g(): return 1\n",
        {"passes": "passed >= @total"},
        SINGLE,
    ),
    "attempts beside an answer": (
        "task,total,passes,code\na,2,1,def f(): pass\nb,2,2,def g(): return 1\n",
        {"columns": {"n": "total", "c": "passes"}},
        ONE,
    ),
    "several parts": (
        "task,build_passed,test_passed\na,0,0\nb,1,1\n",
        {"columns": {"success": "build_passed"}},
        SINGLE,
    ),
}


def _runs(path: Path, **options: Any) -> Runs:
    return _counts(read(path, **options))


def _counts(found: Iterable[Run]) -> Runs:
    runs = []
    for run in found:
        columns = (run.outcomes.n, run.outcomes.c, run.outcomes.missing)
        runs.append(sorted(zip(*(map(int, column) for column in columns), strict=True)))
        assert run.tally is not None
        assert not run.tally.lost
    return runs


@pytest.mark.parametrize("name", READ)
def test_it_is_read_at_first_try(
    tmp_path: Path, name: str, as_before: Callable[[object], None]
) -> None:
    text, expected = READ[name]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    runs = read(path)
    assert sorted(_counts(runs)) == sorted(sorted(run) for run in expected)
    as_before(runs)


@pytest.mark.parametrize("name", HINTED)
def test_the_hint_works(tmp_path: Path, name: str, as_before: Callable[[object], None]) -> None:
    text, options, expected = HINTED[name]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PasshatError) as caught:
        read(path)
    as_before([str(caught.value), str(caught.value.hint)])
    hint = str(caught.value.hint)
    commands = re.findall(r"(?m): passhat report \S+ --map (.+)$", hint)
    if hint.startswith("Say how to read it"):
        maps = [column_map(None, None, shlex.split(words))[0] for words in commands]  # type: ignore[arg-type]
        assert sorted(expected) in [sorted(_runs(path, columns=columns)) for columns in maps]
        return
    assert options.get("passes", "--map") in hint
    assert options.get("records", "") in hint
    assert all(f"{word}={name}" in hint for word, name in options.get("columns", {}).items())
    assert _runs(path, **options) == expected


PRINTED: dict[str, tuple[str, Runs]] = {
    "inside records": (
        json.dumps(
            {
                "config": {"model": "x"},
                "results": [
                    {
                        "id": t,
                        "epoch": e,
                        "outcome": {"success": ok},
                        "messages": [{"role": "user"}],
                    }
                    for t, e, ok in (
                        ("a", 1, True),
                        ("a", 2, False),
                        ("b", 1, True),
                        ("b", 2, True),
                    )
                ],
            }
        ),
        ONE,
    ),
    "grades of inspect": (
        "".join(
            json.dumps({"id": t, "epoch": e, "score": grade}) + "\n"
            for t, e, grade in (("a", 1, "C"), ("a", 2, "I"), ("b", 1, "C"), ("b", 2, "C"))
        ),
        ONE,
    ),
    "an empty reason": (
        "task,attempt,error\na,1,\na,2,gave up\nb,1,\nb,2,\n",
        ONE,
    ),
    "colors": ("Use case,Run,Status\na,#1,green\na,#2,red\nb,#1,green\nb,#2,green\n", ONE),
    "exit codes": ("cmd_id,repeat,rc\na,1,0\na,2,137\nb,1,0\nb,2,0\n", ONE),
    "ids by verdict and run": (
        json.dumps(
            [
                {"run": 1, "passed": ["a", "b"], "failed": []},
                {"run": 2, "passed": ["b"], "failed": ["a"]},
            ]
        ),
        ONE,
    ),
    "verdicts without names": (
        json.dumps(
            {
                "config": {"llm": {"model": "x", "retries": 5}, "output": {"dir": "y", "n": 1}},
                "games": [{"success": True, "log": [["1", [0]]]}, {"success": False, "log": []}],
            }
        ),
        SINGLE,
    ),
    "answers of two models": (
        "qid,gold,pred_gpt,pred_llama\na,A,B,A\nb,C,C,C\nc,D,D,B\n",
        [[(1, 0, 0), (1, 1, 0), (1, 1, 0)], [(1, 0, 0), (1, 1, 0), (1, 1, 0)]],
    ),
    "judges": (
        "task,trial,judge_a,judge_b\na,1,1,1\na,2,0,1\nb,1,1,0\nb,2,1,1\n",
        ONE,
    ),
    "a number beside an id": (
        json.dumps(
            [
                {"idx": 1, "summary": {"max_reward": 0.0}, "turns": [True, False]},
                {"idx": 2, "summary": {"max_reward": 1.0}, "turns": [True]},
            ]
        ),
        SINGLE,
    ),
    "a heading with spaces": (
        "what,who did it,was good (mostly),other flag\na,x,no,no\na,y,yes,yes\n",
        SINGLE,
    ),
    "jobs of a matrix": (
        "name,conclusion\n"
        + "".join(
            f'"bench ({task}, {model}, {trial})",{"success" if passed == "1" else "failure"}\n'
            for model, passes in (("x", "0111"), ("y", "0001"))
            for (task, trial), passed in zip(
                [("a", 1), ("a", 2), ("b", 1), ("b", 2)], passes, strict=True
            )
        ),
        PAIR,
    ),
    "shares without a number of attempts": ("task,x,y\na,50%,0%\nb,100%,50%\n", PAIR),
    "means and spreads": ("task,x,y\na,50.0 ± 3.1,0.0 ± 0\nb,100.0 ± 0,50.0 ± 1\n", PAIR),
    "errors beside passes and failures": (
        "task,pass,fail,error\na,1,0,1\nb,2,0,0\n",
        ONE,
    ),
    "a scale to 100": ("question_number,iteration,score\n1,1,100\n1,2,0\n2,1,100\n2,2,100\n", ONE),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_command_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    text, expected = PRINTED[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    Path("mine.txt").write_text(text, encoding="utf-8")
    assert main(["report", "mine.txt"]) == 2
    printed = capsys.readouterr().err
    line = next((t for t in printed.splitlines() if "Write: " in t), "")
    options = re.search(r"--map ('[^']*'|\S+)", printed)
    assert line or options
    commands = line.partition("Write: ")[2] or f"passhat report mine.txt {options and options[0]}"
    for command in commands.split(" && "):
        assert main(shlex.split(command)[1:]) == 0
    words = shlex.split(commands)
    if not line:
        pairs = dict(pair.split("=", 1) for pair in words[words.index("--map") + 1].split(","))
        assert sorted(_runs(Path("mine.txt"), columns=pairs)) == sorted(expected)
    else:
        assert sorted(_runs(Path("runs.jsonl"))) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("groups.json", json.dumps({"x": [{"id": "u", "ok": 1}], "y": [{"id": "v", "ok": 0}]})),
        ("errors.csv", "task,runs,errors\na,4,1\nb,4,4\n"),
        ("loss.csv", "task,loss\na,1\nb,0\n"),
        ("rates.csv", "task,pass_rate\na,0.5\nb,1\n"),
        ("page.html", "<table><tr><td>a</td></tr></table>"),
        ("metrics.json", json.dumps({"gpt": {"exact": 1, "f1": 0}, "x": {"exact": 1, "f1": 1}})),
        ("metrics of attempts.json", json.dumps([{"em": 1, "ok": 0}, {"em": 0, "ok": 0}])),
        ("settings.json", json.dumps({"accuracy": 0.5, "n": 10})),
    ],
)
def test_a_file_without_verdicts_is_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(PasshatError):
        read(path)


def test_settings_beside_results_are_no_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"stream": True, "debug": False}))
    (tmp_path / "flags.csv").write_text("task,is_public\na,1\nb,0\n")
    (tmp_path / "README.md").write_text("| task | ok |\n|--|--|\n| a | no |\n")
    (tmp_path / "gpt.csv").write_text("task,passed\na,0\nb,1\n")
    (run,) = read(tmp_path)
    assert run.name == "gpt"
    assert any("tables not read" in line for line in run.decisions)


def test_texts_in_a_folder_are_no_tables_and_folders_may_say_what_passed(tmp_path: Path) -> None:
    for name in ("pass/a", "fail/b", "fail/c"):
        path = tmp_path / "diffs" / f"{name}-diff.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("@@ -1,7 +1,7 @@ class A, pass\n x,y,1\n z,w,0\n")
    (tmp_path / "README.md").write_text("# Results\n")
    with pytest.raises(PasshatError) as caught:
        read(tmp_path)
    pattern = "diffs/{success}/{task}-diff.txt"
    assert pattern in str(caught.value.hint)
    assert _runs(tmp_path, records=pattern) == [[(1, 0, 0), (1, 0, 0), (1, 1, 0)]]


def _sheet(rows: list[str], merged: str = "") -> str:
    cells = "".join(f"<row>{row}</row>" for row in rows)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{cells}</sheetData>{merged}</worksheet>'


def _row(number: int, *cells: object) -> str:
    return "".join(
        f'<c r="{"ABCDE"[i]}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
        for i, cell in enumerate(cells)
        if cell != ""
    )


def test_merged_cells_of_a_workbook_are_filled(tmp_path: Path) -> None:
    rows = [("model", "task", "passed"), ("x", "a", 1), ("", "b", 0), ("y", "a", 1), ("", "b", 1)]
    merged = '<mergeCells><mergeCell ref="A2:A3"/><mergeCell ref="A4:A5"/></mergeCells>'
    path = tmp_path / "mine.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        content = _sheet([_row(i, *row) for i, row in enumerate(rows, 1)], merged)
        archive.writestr("xl/worksheets/sheet1.xml", content)
    runs = read(path)
    assert {run.name: run.outcomes.passes for run in runs} == {"x": 1, "y": 2}
    assert any("merged cells" in line for line in runs[0].decisions)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "задача;попытка;результат\nа;1;успех\nа;2;неудача\nб;1;успех\nб;2;успех\n"),
        ("cp932", "タスク,試行,結果\na,1,成功\na,2,失敗\nb,1,成功\nb,2,成功\n"),
        ("gb18030", "任务,试次,结果\na,1,成功\na,2,失败\nb,1,成功\nb,2,成功\n"),
        ("big5", "任務,試行,結果\na,1,成功\na,2,失敗\nb,1,成功\nb,2,成功\n"),
        ("euc_kr", "task,시도,결과\na,1,성공\na,2,실패\nb,1,성공\nb,2,성공\n"),
        ("cp1252", "task,trial,result,note\na,1,pass,it’s\na,2,fail,\nb,1,pass,\nb,2,pass,–\n"),
        ("cp1252", "tâche;essai;résultat\na;1;réussi\na;2;échoué\nb;1;réussi\nb;2;réussi\n"),
    ],
)
def test_the_code_page_of_a_text_is_found_and_said(
    tmp_path: Path, encoding: str, text: str
) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode(encoding))
    (run,) = read(path, columns={"task": text.split(";" if ";" in text else ",")[0]})
    assert (run.outcomes.n.tolist(), run.outcomes.passes) == ([2, 2], 3)
    assert run.decisions[0].startswith("the text is not UTF-8 and was read as ")


def test_a_webarena_log_has_a_verdict_per_task(tmp_path: Path) -> None:
    path = tmp_path / "merged_log.txt"
    lines = [
        *("[Config file]: /tmp/x/0.json", "[Result] (PASS) /tmp/x/0.json"),
        *("[Config file]: /tmp/x/1.json", "[Result] (FAIL) /tmp/x/1.json"),
        *("[Config file]: /tmp/x/2.json", "[Unhandled Error] timeout"),
    ]
    path.write_text("\n".join(f"10:00:00 - INFO - {line}" for line in lines))
    assert _runs(path) == [[(0, 0, 1), (1, 0, 0), (1, 1, 0)]]
    (run,) = read(path)
    assert (run.protocol.suite, run.outcomes.tasks) == ("webarena", ("0", "1", "2"))


def test_answers_of_mmlu_pro_pass_where_they_are_right(tmp_path: Path) -> None:
    rows = [
        {"question_id": i, "answer": "B", "answer_index": 1, "category": "law", "pred": pred}
        for i, pred in enumerate(["B", "C", None])
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(rows))
    assert _runs(path) == [[(0, 0, 1), (1, 0, 0), (1, 1, 0)]]


def test_the_words_of_a_command_read_a_run_again(tmp_path: Path) -> None:
    for name in ("m_run1", "m_run2"):
        (tmp_path / f"{name}.csv").write_text("model,task,passed\nm,a,0\nm,b,1\n")
    (run,) = read(tmp_path, join=True)
    assert run.words == (str(tmp_path), "--join")
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("a/x.csv", "task,passed\na,0\nb,1\n")
    (run,) = read(tmp_path / "logs.zip", columns={"success": "passed"})
    assert run.words == (str(tmp_path / "logs.zip"), "--map", "success=passed")


def _write_documents(folder: Path, documents: Mapping[str, object]) -> None:
    for name, data in documents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data))


def test_a_folder_of_a_document_per_attempt_is_read(tmp_path: Path) -> None:
    rows = {("a", 1): True, ("a", 2): False, ("b", 1): True, ("b", 2): True}
    stated = tmp_path / "stated"
    _write_documents(
        stated,
        {
            f"{t}_{i}.json": {"task_id": t, "trial": i, "agent": "x", "passed": ok, "log": [{}]}
            for (t, i), ok in rows.items()
        },
    )
    _write_documents(stated, {"notes.json": {"by": "me", "log": [1]}})
    (run,) = read(stated)
    assert run.name == "x"
    assert _runs(stated) == ONE
    assert any("left out, without a verdict: notes.json" in line for line in run.decisions)
    nested = tmp_path / "nested"
    _write_documents(
        nested,
        {f"{t}/{i}.json": {"result": {"resolved": ok}, "log": [1]} for (t, i), ok in rows.items()},
    )
    assert _runs(nested) == ONE
    flat = tmp_path / "flat"
    _write_documents(
        flat, {f"{t}-run{i}.json": {"resolved": ok, "log": [1]} for (t, i), ok in rows.items()}
    )
    assert _runs(flat) == ONE


def test_documents_of_one_attempt_each_are_one_run(tmp_path: Path) -> None:
    rows = {("a", 1): True, ("a", 2): False, ("b", 1): True, ("b", 2): True}
    _write_documents(
        tmp_path,
        {
            f"run_{i}/{t}/result.json": {"task": t, "status": "passed" if ok else "failed"}
            for (t, i), ok in rows.items()
        },
    )
    assert _runs(tmp_path) == ONE


@pytest.mark.parametrize("tasks", ["abc", "ab", "aab"])
def test_documents_of_a_task_each_are_one_run(tmp_path: Path, tasks: str) -> None:
    """From three on, by a field for the task that differs in all of them."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for place, task in enumerate(tasks):
        document = {"task_id": task, "attempts": [{"passed": True}, {"passed": False}]}
        (folder / f"{place}.json").write_text(json.dumps(document), encoding="utf-8")
    if tasks != "abc":
        with pytest.raises(PasshatError, match="without any log or table"):
            read(folder)
        return
    (run,) = read(folder)
    assert run.outcomes.tasks == ("a", "b", "c")
    assert (run.outcomes.n.tolist(), run.outcomes.c.tolist()) == ([2, 2, 2], [1, 1, 1])
    assert run.decisions[0] == "3 files are a task each, by their field 'task_id'"


def test_folders_of_documents_that_may_be_models_are_refused_with_a_pattern(
    tmp_path: Path,
) -> None:
    documents = {f"{m}/{t}.json": {"ok": t == "b", "log": [1]} for m in "xy" for t in "ab"}
    _write_documents(tmp_path, documents)
    with pytest.raises(PasshatError) as caught:
        read(tmp_path)
    assert "--map 'records={model}/{task}.json'" in str(caught.value.hint)
    assert _runs(tmp_path, records="{model}/{task}.json") == [*SINGLE, *SINGLE]


def test_numbered_files_of_a_folder_stay_runs_and_the_way_to_join_them_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    folder = Path("mine")
    folder.mkdir()
    (folder / "seed_1.csv").write_text("task,pass\na,1\nb,1\n")
    (folder / "seed_2.csv").write_text("task,pass\na,0\nb,1\n")
    assert main(["report", "mine"]) == 0
    printed = capsys.readouterr().out
    assert "2 runs" in printed
    command = re.search(r"one agent: (passhat read '?mine.*)$", printed, re.MULTILINE)
    assert command is not None
    assert main(shlex.split(command[1])[1:]) == 0
    assert _runs(Path("runs.jsonl")) == ONE
    (folder / "seed_2.csv").write_text("task,pass\na,0\nc,1\n")
    assert not any("one agent" in line for run in read("mine") for line in run.decisions)


def test_the_sheet_with_verdicts_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.xlsx"
    sheets: list[list[tuple[object, ...]]] = [
        [("task", "text"), ("a", "x")],
        [("task", "passed"), ("a", 0), ("b", 1)],
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for place, rows in enumerate(sheets, 1):
            cells = [_row(number, *row) for number, row in enumerate(rows, 1)]
            archive.writestr(f"xl/worksheets/sheet{place}.xml", _sheet(cells))
    assert _runs(path) == SINGLE


def _workbook(path: Path, rows: str, merged: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", _sheet([rows], merged))
    return path


_HEAD = f"{_row(1, 'task', 'passed')}</row><row>{_row(2, 'a', 1)}</row><row>"


@pytest.mark.parametrize(
    "cell",
    [
        '<c r="B3"><v></v></c>',
        '<c r="B3"><f>COUNTIF(B1:B2,1)</f><v/></c>',
        '<c r="B3" t="s"><v></v></c>',
        '<c r="B3" t="s"><v>x</v></c>',
        '<c r="B3" t="s"><v>99</v></c>',
        '<c r="B3" t="s"><v>nan</v></c>',
        '<c r="B3" t="s"><v>inf</v></c>',
        '<c r="B3" t="b"><v></v></c>',
    ],
)
def test_a_cell_of_a_workbook_without_a_value_is_missing(tmp_path: Path, cell: str) -> None:
    path = _workbook(tmp_path / "mine.xlsx", f"{_HEAD}{_row(3, 'b')}{cell}")
    assert [(run.outcomes.passes, run.outcomes.missing.sum()) for run in read(path)] == [(1, 1)]


@pytest.mark.parametrize("number", ["x", "", "-1", "9" * 5000])
@pytest.mark.parametrize("merged", ["A1:A", "A2:B" + "9" * 5000, "A2:" + "Z" * 5000 + "2"])
def test_numbers_and_references_of_a_workbook_may_be_broken(
    tmp_path: Path, number: str, merged: str
) -> None:
    far = f'<c r="{"Z" * 5000}3" t="str"><v>far</v></c>'
    rows = f'{_HEAD}</row><row r="{number}">{_row(3, "b", 0)}{far}'
    merge = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>'
    path = _workbook(tmp_path / "mine.xlsx", rows, merge)
    assert [(run.outcomes.passes, run.outcomes.attempts) for run in read(path)] == [(1, 2)]


def test_cells_without_a_reference_follow_each_other(tmp_path: Path) -> None:
    path = _workbook(tmp_path / "mine.xlsx", re.sub(r' r="\w+"', "", _HEAD + _row(3, "b", 0)))
    assert [(run.outcomes.passes, run.outcomes.attempts) for run in read(path)] == [(1, 2)]


def test_a_missing_verdict_below_joined_headings(tmp_path: Path) -> None:
    rows = [("", "x", "x", "y", "y"), ("Task", "Try 1", "Try 2", "Try 1", "Try 2")]
    rows += [("a", "Pass", "", "Pass", "Fail"), ("b", "Fail", "Fail", "", "Pass")]
    path = tmp_path / "mine.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        content = _sheet([_row(i, *row) for i, row in enumerate(rows, 1)])
        archive.writestr("xl/worksheets/sheet1.xml", content)
    found = {run.name: (run.outcomes.passes, run.outcomes.missing.sum()) for run in read(path)}
    assert found == {"x": (1, 1), "y": (2, 1)}


def _told(path: Path) -> list[tuple[str, int, int, int, int]]:
    return [
        (
            run.name,
            len(run.outcomes),
            int((run.outcomes.n + run.outcomes.missing).sum()),
            run.outcomes.passes,
            int(run.outcomes.missing.sum()),
        )
        for run in read(path)
    ]


_TOLD: dict[str, tuple[str, list[tuple[str, int, int, int, int]]]] = {
    "a column of several words filled below the model": (
        "Agent,Use case,Trial,Verdict\nx,go,1,OK\n,,2,NOK\n,stay,1,OK\n,,2,OK\n"
        "y,go,1,OK\n,,2,OK\n,stay,1,OK\n,,2,NOK\n",
        [("x", 2, 4, 3, 0), ("y", 2, 4, 3, 0)],
    ),
    "a total below each model": (
        "model,task,passes,attempts\nx,a,1,4\nx,b,2,4\nx,ALL,3,8\ny,a,0,4\ny,b,4,4\ny,ALL,4,8\n",
        [("x", 2, 8, 3, 0), ("y", 2, 8, 4, 0)],
    ),
    "a task called sum in every round": (
        "model,task,passed\nx,sum,1\nx,a,1\nx,sum,0\nx,a,1\n",
        [("x", 2, 4, 3, 0)],
    ),
    "attempts planned": (
        "task,planned,r1,r2,r3\na,3,y,n,y\nb,2,y,?,\nc,1,n,,\nd,3,y,y,y\n",
        [("mine", 4, 9, 6, 1)],
    ),
    "a number that plans nothing": (
        "task,level,r1,r2,r3\na,1,y,n,y\nb,2,y,?,\nc,3,n,,\nd,2,y,y,y\n",
        [("mine", 4, 12, 6, 4)],
    ),
    "tries that a later one replaced": (
        "agent,task,try,status,final\nx,a,0,infra_error,false\nx,a,1,pass,true\nx,b,0,fail,true\n",
        [("x", 2, 2, 1, 0)],
    ),
    "a final verdict": (
        "model,task,trial,passed,final\nx,a,1,1,1\nx,a,2,0,0\nx,b,1,1,1\nx,b,2,1,1\n",
        [("x", 2, 4, 3, 0)],
    ),
    "whose fault it was": (
        "model,task,trial,result\nx,a,1,Zeitüberschreitung des Agenten\nx,a,2,Infrastrukturfehler\n"
        "x,b,1,timeout of the agent\nx,b,2,failure of the sandbox\nx,c,1,passed\n"
        "x,c,2,Netzwerkfehler\n",
        [("x", 3, 6, 1, 3)],
    ),
    "a row for each metric": (
        "model,task,trial,metric,value\nx,a,1,steps,4\nx,a,1,resolved,1\nx,b,1,steps,9\n"
        "x,b,1,resolved,0\n",
        [("x", 2, 2, 1, 0)],
    ),
}


@pytest.mark.parametrize("name", _TOLD)
def test_what_the_table_says_itself_is_read(tmp_path: Path, name: str) -> None:
    text, expected = _TOLD[name]
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    assert _told(path) == expected


def test_a_document_states_its_threshold_and_sections_are_models(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    rows = [{"model": "x", "task": t, "reward": r} for t, r in (("a", 0.9), ("b", 0.5), ("c", 1))]
    path.write_text(json.dumps({"success_threshold": 0.9, "results": rows}))
    assert _told(path) == [("x", 3, 3, 2, 0)]
    assert any("'success_threshold'" in line for line in read(path)[0].decisions)
    rows = [{**row, "reward": float(row["reward"]) * 4} for row in rows]
    path.write_text(json.dumps({"pass_mark": 3, "results": rows}))
    assert _told(path) == [("x", 3, 3, 2, 0)]
    sections = {
        "title": "t",
        "fast": {"a": [1, 0], "b": [1, 1]},
        "slow": {"a": [0, 0], "b": [1, 0]},
    }
    path.write_text(json.dumps(sections))
    assert _told(path) == [("fast", 2, 4, 3, 0), ("slow", 2, 4, 1, 0)]


def test_a_folder_without_its_verdict_is_missing(tmp_path: Path) -> None:
    for task, trial, verdict in (("a", 1, 1), ("a", 2, None), ("b", 1, 0), ("b", 2, 1)):
        folder = tmp_path / task / f"attempt_{trial}"
        folder.mkdir(parents=True)
        name = "infra_error.txt" if verdict is None else "reward.txt"
        (folder / name).write_text("no machine" if verdict is None else f"{verdict}\n")
    (tmp_path / "a" / "attempt_1" / "transcript.txt").write_text("said:\n- hello\n- bye\n")
    ((_, *counts),) = _told(tmp_path)
    assert counts == [2, 4, 2, 1]


def test_a_column_joined_into_the_task_tells_no_runs_apart(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"{suite},{task},x,{task}" for suite in ("easy", "hard") for task in (0, 1)]
    path.write_text("\n".join(["dataset,id,model,correct", *rows]))
    runs = read(path)
    assert [run.name for run in runs] == ["x on easy", "x on hard"]
    assert any("--map 'task=dataset+id'" in line for line in runs[0].decisions)
    (run,) = read(path, columns={"task": "dataset+id"})
    assert (run.name, len(run.outcomes), run.outcomes.passes) == ("x", 4, 2)


def test_a_file_beside_its_earlier_part_counts_once(tmp_path: Path) -> None:
    rows = [{"agent": "x", "task": t, "passed": v} for t, v in (("a", True), ("b", False))]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    (tmp_path / "log.partial.jsonl").write_text(lines[0])
    runs = read(tmp_path)
    assert _told(tmp_path) == [("x", 2, 2, 1, 0)]
    assert any("the same attempts or fewer" in line for line in runs[0].decisions)
    # What the whole file does not hold stays.
    (tmp_path / "log.partial.jsonl").write_text(json.dumps({**rows[1], "passed": True}))
    assert len(read(tmp_path)) == 2


@pytest.mark.parametrize(
    "name", ["log (1).csv", "log copy.csv", "log - Copy.csv", "Copy of log.csv", "log(2).csv"]
)
def test_a_second_download_counts_once(tmp_path: Path, name: str) -> None:
    text = "model,task,trial,passed\nx,a,1,1\nx,a,2,0\nx,b,1,1\nx,b,2,1\n"
    (tmp_path / "log.csv").write_text(text)
    (tmp_path / name).write_text(text)
    assert _told(tmp_path) == [("x", 2, 4, 3, 0)]
    assert any(f"{name} holds the same attempts" in line for line in read(tmp_path)[0].decisions)
    (tmp_path / name).write_text(text.replace("x,a,2,0", "x,a,2,1"))
    assert len(read(tmp_path)) == 2


def test_what_a_comment_or_a_setting_says_of_the_threshold_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("# a task counts as solved from >= 0.6\ntask,score\na,0.7\nb,0.59\nc,1\n")
    assert _told(path) == [("x", 3, 3, 2, 0)]
    assert any("0.6 or more passes" in line for line in read(path)[0].decisions)
    path = tmp_path / "x.json"
    rows = [{"task": "a", "score": 0.7}, {"task": "b", "score": 0.59}]
    path.write_text(json.dumps({"settings": {"pass_threshold": 0.6}, "results": rows}))
    assert _told(path) == [("x", 2, 2, 1, 0)]


def test_the_name_of_a_logger_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    stamp = "2025-01-02 03:04:05,678"
    path.write_text(
        f"{stamp} INFO run: task a-1 attempt 1: FAILED (3 s)\n"
        f"{stamp} WARNING llm: too many requests, again in 5 s\n"
        f"{stamp} INFO run: task a-1 attempt 2: PASSED (3 s)\n"
        f"{stamp} INFO run: task b-1 attempt 1: PASSED (3 s)\n"
        f"{stamp} INFO run: task b-1 attempt 2: PASSED (3 s)\n"
    )
    assert [counts for _, *counts in _told(path)] == [[2, 4, 3, 0]]


def test_a_matrix_of_tasks_and_seeds(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    grid = {"tasks": ["a", "b", "c"], "seeds": [3, 4], "solved": [[1, 0], [1, 1], [0, 0]]}
    path.write_text(json.dumps(grid))
    assert _told(path) == [("x", 3, 6, 3, 0)]
    assert read(path)[0].outcomes.order is None


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("task,mark\na,A\nb,B\nc,C\nd,B\ne,A\nf,C\n", "success=mark in A|B"),
        ("task,draft_pass,final_pass\na,yes,no\nb,no,yes\nc,yes,yes\n", "success=final_pass"),
        ("job,Vendor A,Vendor B\na,yes,no\nb,no,yes\nc,yes,yes\n", "model=@column"),
    ],
)
def test_the_first_command_of_a_refusal(tmp_path: Path, text: str, option: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert re.search(r"--map ('[^']*'|\S+)", str(caught.value.hint))[1].find(option) >= 0  # type: ignore[index]
