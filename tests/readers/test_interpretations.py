"""Readings of files that no reader is sure of: found by values, printed as commands that run."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from passhat import read
from passhat.cli import main
from passhat.cli.shared.options import column_map
from passhat.errors import PasshatError

Counts = dict[str, tuple[int, int]]


def _lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _table(header: str, *rows: str) -> str:
    return "\n".join((header, *rows)) + "\n"


HINTED: dict[str, tuple[str, Counts]] = {
    "words of one's own": (
        _table(
            "Prüffall,System,Durchgang,Bewertung",
            "a,A,1,erfüllt",
            "a,A,2,nicht erfüllt",
            "b,A,1,erfüllt",
            "b,A,2,erfüllt",
            "a,B,1,nicht erfüllt",
            "a,B,2,nicht erfüllt",
            "b,B,1,erfüllt",
            "b,B,2,nicht erfüllt",
        ),
        {"A": (3, 4), "B": (1, 4)},
    ),
    "a word in a column for each model": (
        _table("prompt,ours,other", "a,good,bad", "b,bad,bad", "c,good,good", "d,good,bad"),
        {"ours": (3, 4), "other": (1, 4)},
    ),
    "scores up to ten of each model": (
        _table("prompt,ours,other", "a,9,2", "b,10,5", "c,3,0", "d,7,4"),
        {"ours": (3, 4), "other": (1, 4)},
    ),
    "a column of failures alone beside others": (
        _table("id,ours,other,third", "a,solved,failed,failed", "b,failed,solved,failed"),
        {"ours": (1, 2), "other": (1, 2), "third": (0, 2)},
    ),
    "columns with letters": (
        _table("Test,Owner,Run A,Run B", "a,x,pass,fail", "b,y,pass,pass", "c,x,fail,pass"),
        {"mine": (4, 6)},
    ),
    "a total below them": (
        _table(
            "Test,Run A,Run B", "a,pass,fail", "b,pass,pass", "c,fail,pass", "Pass rate,67%,67%"
        ),
        {"mine": (4, 6)},
    ),
    "models beside a difficulty and a run": (
        _table("task,difficulty,run,A,B", "a,1,1,1,0", "a,1,2,1,1", "b,3,1,0,0", "b,3,2,1,1"),
        {"A": (3, 4), "B": (2, 4)},
    ),
    "an overall verdict among its parts": (
        _table(
            "task,run,format_ok,tests_ok,overall",
            "a,1,1,1,1",
            "a,2,0,1,0",
            "b,1,1,0,0",
            "b,2,1,1,1",
            "c,1,0,0,0",
        ),
        {"mine": (2, 5)},
    ),
    "the time of a pass": (
        _table(
            "challenge,attempt,solved_at",
            "a,1,2026-03-02T09:27:05",
            "a,2,",
            "b,1,2026-03-02T10:05:42",
            "b,2,",
        ),
        {"mine": (2, 4)},
    ),
    "a number of failures": (
        _table("project,run,tests,failures", "a,1,20,0", "a,2,20,3", "b,1,20,0", "b,2,20,0"),
        {"mine": (3, 4)},
    ),
    "a word for no error": (
        _table("job,repeat,error", "a,1,None", "a,2,Timeout", "b,1,None", "b,2,KeyError: x"),
        {"mine": (2, 4)},
    ),
    "passes of a number in the heading": (
        _table("task,wins (of 5)", "a,4", "b,0", "c,2"),
        {"mine": (6, 15)},
    ),
    "two counts with the same sum": (
        _table("flow,good,bad", "a,4,2", "b,6,0", "c,1,5"),
        {"mine": (11, 18)},
    ),
    "a share of a number for each model": (
        _table(
            "item,config,samples,mean_reward", "a,x,4,0.5", "b,x,4,1.0", "a,y,4,0.25", "b,y,4,0.0"
        ),
        {"x": (6, 8), "y": (1, 8)},
    ),
    "a verdict beside flags of the task": (
        _table(
            "cid,is_hard,attempt_no,used_tool,goal_met",
            *(
                f"{t},{t in 'ac'},{i},{i > 1},{g}"
                for t, i, g in (
                    ("a", 1, True),
                    ("a", 2, False),
                    ("b", 1, True),
                    ("b", 2, True),
                    ("c", 1, False),
                    ("c", 2, True),
                    ("d", 1, False),
                    ("d", 2, True),
                )
            ),
        ),
        {"mine": (5, 8)},
    ),
    "options by other names": (
        _lines(
            *(
                {"ref": f"q{i}", "right_option": r, "model_option": m}
                for i, (r, m) in enumerate(map(tuple, ("AA", "BA", "CC", "DD", "AD")))
            )
        ),
        {"mine": (3, 5)},
    ),
    "events": (
        _lines(
            {"event": "suite_start"},
            *(
                {"event": e, "task": t, "attempt": 1, **({"success": s} if e == "end" else {})}
                for t, s in (("a", True), ("b", False), ("c", True))
                for e in ("start", "end")
            ),
        ),
        {"mine": (2, 3)},
    ),
    "inside records": (
        _lines(
            *(
                {"input": {"id": t}, "run": {"model": m, "idx": 0}, "grading": {"verdict": v}}
                for t, m, v in (
                    ("a", "x", "CORRECT"),
                    ("b", "x", "INCORRECT"),
                    ("a", "y", "CORRECT"),
                    ("b", "y", "CORRECT"),
                )
            )
        ),
        {"x": (1, 2), "y": (2, 2)},
    ),
    "a heading with a comma": (
        _table('"Task, name",Judged', "a,ja-wohl", "b,leider", "c,ja-wohl", "d,ja-wohl"),
        {"mine": (3, 4)},
    ),
}


@pytest.mark.parametrize("name", HINTED)
def test_a_printed_command_gives_the_right_number(tmp_path: Path, name: str) -> None:
    text, expected = HINTED[name]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PasshatError) as caught:
        read(path)
    found = []
    lines = str(caught.value.hint).splitlines()
    for line in [line for line in lines if ": passhat report " in line][:3]:
        numbers, _, command = line.partition(": passhat report ")
        words = shlex.split(command)
        columns, _ = column_map(None, None, words[2:])  # type: ignore[arg-type]
        runs = read(path, columns=columns)
        scored = sum(run.outcomes.scored for run in runs)
        assert f" {scored} attempt" in numbers
        found.append({run.name: (run.outcomes.passes, run.outcomes.scored) for run in runs})
    assert expected in found


def test_the_command_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my table.csv").write_text(HINTED["words of one's own"][0], encoding="utf-8")
    assert main(["report", "my table.csv"]) == 2
    (line, *_) = re.findall(r"(?m): passhat (report .+)$", capsys.readouterr().err)
    assert main(shlex.split(line)) == 0
    assert "A" in capsys.readouterr().out


READ: dict[str, tuple[str, Counts]] = {
    **{
        f"{name!r} beside a number of attempts": (
            _table(f"task,{name},n", "a,50,200", "b,10,200"),
            {"mine": (120, 400)},
        )
        for name in ("passed (%)", "pass %", "% solved", "success %")
    },
    "a model in the facts about a record": (
        json.dumps(
            {
                "results": [
                    {"verdict": verdict, "meta": {"model": model}, "id": task}
                    for model, passes in (("x", ("PASS", "FAIL")), ("y", ("PASS", "PASS")))
                    for task, verdict in zip("ab", passes, strict=True)
                ],
                "finished": "2026-02-02",
            }
        ),
        {"x": (1, 2), "y": (2, 2)},
    ),
    "an ending that is no verdict": (
        _table("task,judge", "a,CORRECT", "b,INCORRECT", "c,NOT_ATTEMPTED", "d,NOT_ATTEMPTED"),
        {"mine": (1, 2)},
    ),
    "rewards of -1 and 1": (
        _table("task,trial,reward", "a,1,1", "a,2,-1", "b,1,-1", "b,2,1"),
        {"mine": (2, 4)},
    ),
    "-1 beside 0 and 1": (
        _table("task,trial,reward", "a,1,1", "a,2,-1", "b,1,0", "b,2,1"),
        {"mine": (2, 3)},
    ),
    "durations with a unit": (
        _table("task,passed,duration", "a,1,49.7 s", "b,0,3.1 s", "c,1,2.2 s"),
        {"mine": (2, 3)},
    ),
    "two columns of the same name": (
        _table("task,pass,pass", "a,TRUE,FALSE", "b,TRUE,TRUE"),
        {"mine": (3, 4)},
    ),
    "a grid": (
        "Results of run 17\n+------+-----+\n| Task | gpt |\n+------+-----+\n| a    | 1/2 |\n"
        "+------+-----+\n| b    | 2/2 |\n+------+-----+\n",
        {"gpt": (3, 4)},
    ),
    "a grid of lines": (
        "┌──────┬────────┐\n│ task │ passed │\n├──────┼────────┤\n│ a    │ yes    │\n"
        "│ b    │ no     │\n└──────┴────────┘\n",
        {"mine": (1, 2)},
    ),
    "a question that is the same in all rows": (
        _lines(*({"qid": f"m{i}", "question": "A man …", "correct": i > 1} for i in range(4))),
        {"mine": (2, 4)},
    ),
}


@pytest.mark.parametrize("name", READ)
def test_it_is_read_at_first_try(tmp_path: Path, name: str) -> None:
    text, expected = READ[name]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    runs = read(path)
    assert {run.name: (run.outcomes.passes, run.outcomes.scored) for run in runs} == expected
    tasks = {"a grid": 2, "a question that is the same in all rows": 4}
    assert all(len(run.outcomes.tasks) == tasks[name] for run in runs if name in tasks)


def test_a_database_is_read_with_the_rows_that_it_refers_to(tmp_path: Path) -> None:
    path = tmp_path / "evals.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE runs(id INTEGER PRIMARY KEY, model TEXT)")
        database.execute("CREATE TABLE results(run_id INTEGER, task TEXT, success INTEGER)")
        database.executemany("INSERT INTO runs VALUES (?, ?)", [(1, "x"), (2, "y")])
        rows = [(1, "a", 1), (1, "b", 0), (2, "a", 1), (2, "b", 1)]
        database.executemany("INSERT INTO results VALUES (?, ?, ?)", rows)
    database.close()
    counts = {run.name: (run.outcomes.passes, run.outcomes.scored) for run in read(path)}
    assert counts == {"x": (1, 2), "y": (2, 2)}


NOTHING = {
    "settings": json.dumps({"lr": 0.1, "layers": [1, 2, 3], "names": ["a", "b"]}),
    "a difficulty": _table("task,difficulty", "a,easy", "b,hard", "c,easy"),
    "a leaderboard": _table("model,size,price", "x,7,0.1", "y,70,0.9"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_label_is_no_verdict(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(NOTHING[name], encoding="utf-8")
    with pytest.raises(PasshatError):
        read(path)


UNSURE: dict[str, str] = {
    # marks, shares and numbers of passes in a column for each model
    "marks of ten": _table("task,gpt-4,claude-3", "a,7,4", "b,10,2", "c,8,9"),
    "marks of nine": _table("task,gpt-4,claude-3", "a,7,4", "b,9,2", "c,8,9"),
    "marks of people": _table("task,alice,bob", "a,7,4", "b,10,2", "c,8,9"),
    "halves": _table("task,gpt-4,claude-3", "a,5.5,4", "b,6,2", "c,1,3"),
    "up to five": _table("task,gpt-4,claude-3", "a,5,4", "b,4,2", "c,1,3"),
    "shares of three": _table("task,gpt-4,claude-3", "a,0.33,0.67", "b,1,0", "c,0.67,0.33"),
    "shares of seven": _table("task,gpt-4,claude-3", "a,14.3%,28.6%", "b,100%,0%"),
    "tenths": _table("task,gpt-4,claude-3", "a,0.1,0.5", "b,0.9,0.3"),
    "a hundred and more": _table("task,gpt-4,claude-3", "a,120,4", "b,10,2"),
    "one model": _table("task,gpt-4", "a,7", "b,10", "c,8"),
    "a model and another word": _table("task,gpt-4,mine", "a,pass,fail", "b,fail,fail"),
    "models and notes": _table("task,gpt-4,claude,notes", "a,pass,fail,x", "b,fail,fail,y"),
    "a share and its number": _table("task,score,runs", "a,0.5,2", "b,1,4"),
    # verdicts and scores
    "scores before verdicts": _table(
        "task,score_gpt,score_claude,passed_gpt,passed_claude", "a,0.2,0.3,1,0", "b,0.5,0.9,0,0"
    ),
    "verdicts behind models": _table(
        "task,gpt_score,gpt_passed,claude_score,claude_passed", "a,0.5,1,0.7,0", "b,0.4,0,0.9,1"
    ),
    "a number that is none": _table("task,score >= 50", "a,70", "b,nan", "c,20"),
    "no number at all": _table("task,gpt-4,claude", "a,nan,1", "b,inf,2"),
    "a limit in the heading": _table("task,score >= 50", "a,70", "b,", "c,50", "d,20"),
    "a strict limit": _table("task,score > 50", "a,70", "b,50", "c,20"),
    "a limit from above": _table("task,errors <= 2", "a,2", "b,3", "c,0"),
    "a limit beside the score": _table("task,score,threshold", "a,3,4", "b,5,4", "c,4,4"),
    "a pass mark": _table("task,points,pass mark", "a,3,4", "b,5,4", "c,4,4"),
    "two judges": _table("task,judge_a,judge_b", "a,pass,fail", "b,fail,fail"),
    "a final verdict": _table("task,judge_a,judge_b,final", "a,pass,fail,fail", "b,pass,pass,pass"),
    # reasons and times
    "errors": _table("task,trial,error", "a,1,", "a,2,boom", "b,1,", "b,2,late"),
    "codes of errors": _table("task,trial,error_code", "a,1,0", "a,2,3", "b,1,0", "b,2,4"),
    "numbers of failures": _table("task,trial,failure", "a,1,", "a,2,3", "b,1,", "b,2,4"),
    "notes": _table("task,trial,note", "a,1,", "a,2,boom", "b,1,", "b,2,late"),
    "dates of passes": _table("task,passed_at", "a,2026-01-01", "b,", "c,2026-01-02"),
    "a mark where it passed": _table("task,trial,fine", "a,1,x", "a,2,", "b,1,x", "b,2,x"),
    "verdicts and words for none": _table(
        "task,run,fine", "a,1,yes", "a,2,NA", "b,1,no", "b,2,yes"
    ),
    "text before verdicts": "Results of May\n\nsort: PASS\nfind: FAIL\nsum: PASS\n",
    "text without verdicts": "Results of May\n\nsort: blue\nfind: green\nsum: red\n",
    "numbers with gaps": _table("task,run,depth", "a,1,", "a,2,3", "b,1,", "b,2,4"),
    "words with gaps": _table("task,run,reason", "a,1,", "a,2,late", "b,1,", "b,2,wrong"),
    "only totals": _table("task,n,c", "total,4,2", "overall,4,2"),
    "a total twice": _table("task,n,c", "a,2,1", "total,2,1", "overall,2,1"),
    "a model beside a word": _table("task,gpt_passed,mine_passed", "a,1,0", "b,0,1"),
    "parts beside each other": _table("task,build_passed,test_passed", "a,1,0", "b,0,1"),
    "rewards and scores of runs": _table(
        "task,run_1_score,run_1_reward,run_2_score,run_2_reward", "a,0.2,1,0.3,0", "b,0.1,0,0.9,1"
    ),
    "columns of one value": _table("task,model,passed", "a,gpt,1", "b,gpt,0"),
    "tasks in the header": _table("model,sort,find", "gpt,1,0", "claude,1,1"),
    "shares of runs": _table("task,runs,share", "a,4,0.25", "b,4,1"),
    "percents of runs": _table("task,runs,rate", "a,4,25%", "b,4,100%"),
    "ids that repeat": _table("set,id,passed", "x,1,1", "x,2,0", "y,1,0", "y,2,1"),
    "dates and verdicts": _table("date,task,passed", "2026-01-01,a,1", "2026-01-02,a,0"),
    "sections": "[a]\npassed = true\n\n[b]\npassed = false\n",
    "sections of several fields": "; mine\n[1]\npassed = true\ntask = a\n[2]\npassed=no\ntask=b\n",
    "sections with words": "[x]\npassed=true\ntask=a\n[y]\npassed=false\ntask=b\n",
    "sections that failed": "[a]\nfailed = true\n\n[b]\nfailed = false\n",
    "sections twice": "[1]\na = pass\n[1]\na = fail\n",
    "fields without names": "passed = true\npassed = false\n",
    "names behind fields": "passed=1\ntask=a\npassed=0\ntask=b\npassed=1\ntask=c\n",
    "headings above fields": "# sort\npassed = yes\n# find\npassed = no\n# add\npassed = 1\n",
    # numbers of attempts
    "of so many": _table("task,passes (of 5),seconds", "a,3,4", "b,5,4"),
    "of one": _table("task,passes (of 1)", "a,1", "b,0"),
    "passes and failures": _table("task,passes,failures", "a,3,1", "b,0,4"),
    "failures and runs": _table("task,failures,runs", "a,3,4", "b,0,4"),
    "passes without runs": _table("task,passed", "a,3", "b,4", "c,0"),
    "a share without runs": _table("task,pass rate", "a,75%", "b,50%", "c,0%"),
    # rows that are not tasks
    "models as headings": _table("task,passed", "gpt,", "a,1", "b,0", "claude,", "a,1", "b,1"),
    "parts as headings": _table(
        "task,passed,seconds", "easy,,", "a,1,3", "b,0,4", "hard,,", "c,1,5", "d,1,5"
    ),
    "one heading": _table("task,passed,seconds", "easy,,", "a,1,3", "b,0,4"),
    "only a total": _table("task,n,c", "total,4,2"),
    "a total first": _table("task,n,c", "total,4,2", "a,2,1", "b,2,1"),
    "a total below each model": _table(
        "model,task,n,c", "x,a,2,1", "x,total,2,1", "y,a,2,2", "y,total,2,2"
    ),
    "a mean": _table("task,score", "a,1", "b,0", "mean,0.5"),
    # parts of a task and of a run
    "one suite": _table("suite,task,passed", "s,a,1", "s,b,0"),
    "one suite at two temperatures": _table("suite,temperature,task,passed", "s,0,a,1", "s,1,a,0"),
    "two suites": _table("suite,task,passed", "s,a,1", "t,a,0"),
    "subjects with numbers": _table(
        "subject,question,correct", "law,1,1", "law,2,0", "math,1,1", "math,2,1"
    ),
    "a domain that says nothing": _table("domain,id,correct", "law,1,1", "law,2,0", "math,3,1"),
    "tasks in two columns": _table("group,item,ok", "x,1,yes", "x,2,no", "y,1,yes", "y,2,no"),
    "steps of attempts": _table(
        "task,trial,step,passed", "a,1,1,0", "a,1,2,1", "b,1,1,0", "b,1,2,0"
    ),
    "scorers": _table(
        "task,trial,scorer,score", "a,1,strict,0", "a,1,loose,1", "b,1,strict,1", "b,1,loose,1"
    ),
    "seeds": _table("task,seed,passed", "a,7,1", "a,19,0", "b,7,1", "b,19,1"),
    "variants": _table("task,variant,passed", "a,x,1", "a,y,0", "b,x,1", "b,y,1"),
    "no name of a task": _table("passed,seconds", "1,3", "0,4", "1,3"),
    "ids and names": _table("id,name,passed", "1,a,1", "2,b,0", "3,a,1"),
    "models in records": json.dumps({"gpt-4": {"a": [1, 0]}, "claude": {"a": [1, 1]}}),
    "tasks in records": json.dumps({"a": {"run1": "pass", "run2": "fail"}, "b": {"run1": "pass"}}),
    "lists of verdicts": json.dumps({"a": [True, False], "b": [True, True]}),
    "deep records": json.dumps(
        {"results": [{"id": "a", "info": {"grade": {"passed": True}}, "meta": {"n": 3}}] * 2}
    ),
    "a lone record": json.dumps({"task": "a", "passed": True}),
    "records with totals": _lines(
        {"task": "a", "passed": True}, {"task": "b", "passed": False}, {"total": 2, "passed": 1}
    ),
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_said_of_an_unsure_table_stays(
    tmp_path: Path, name: str, as_before: Callable[[object], None]
) -> None:
    """What is read, refused and advised, word for word: weights decide it."""
    path = tmp_path / "mine.txt"
    path.write_text(UNSURE[name], encoding="utf-8")
    try:
        as_before(read(path))
    except PasshatError as error:
        as_before([str(error), str(error.hint)])


def test_verdicts_are_read_before_scores_whichever_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(UNSURE["scores before verdicts"], encoding="utf-8")
    assert {run.agent: run.outcomes.passes for run in read(path)} == {"gpt": 1, "claude": 0}


def test_one_task_of_several_models_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(UNSURE["models in records"], encoding="utf-8")
    assert {run.agent: run.outcomes.passes for run in read(path)} == {"gpt-4": 1, "claude": 2}


@pytest.mark.parametrize("name", ["first_success_attempt", "attempts_needed", "solved_at_attempt"])
@pytest.mark.parametrize("never", ["", "-1", "never", "inf"])
def test_number_of_the_first_success_is_asked_about(tmp_path: Path, name: str, never: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"task,{name}\na,1\nb,3\nc,{never}\nd,1\ne,{never}\nf,2\n")
    with pytest.raises(PasshatError) as caught:
        read(path)
    solved = '!= ""' if not never else ">= 1"
    hint = str(caught.value.hint)
    assert f"67% of 6 attempts at 6 tasks: passhat report {path}" in hint
    assert hint.index(f"{name} {solved}") < hint.index(f"{name} == 1")
    (run,) = read(path, columns={"task": "task"}, passes=f"{name} == 1")
    assert (run.outcomes.passes, run.outcomes.scored) == (2, 6)


def test_first_successes_of_one_are_no_verdicts(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("task,first_success_attempt\na,1\nb,\nc,1\n")
    with pytest.raises(PasshatError, match="67% of 3 attempts"):
        read(path)


def _hints(folder: Path, text: str) -> list[str]:
    path = folder / "mine.csv"
    path.write_text(text)
    with pytest.raises(PasshatError) as caught:
        read(path)
    lines = [line for line in str(caught.value.hint).splitlines() if "--map " in line]
    return [line.split("--map ")[1] for line in lines]


def test_a_text_that_two_tasks_share_gives_way_to_their_id(tmp_path: Path) -> None:
    rows = "".join(
        f"{10 + i},same question,m,{k},{('yes', 'no', 'maybe')[(i + k) % 3]},{(i * k) % 2}\n"
        for i in range(6)
        for k in (1, 2)
    )
    hints = _hints(tmp_path, f"pmid,question,model,sample,answer,match\n{rows}")
    assert hints[0] == "task=pmid,model=model,trial=sample,success=match"


def test_scores_with_cells_without_one_have_thresholds(tmp_path: Path) -> None:
    rows = "".join(f"n{i},{k},{(i * k) % 11},{(i + k) % 9}\n" for i in range(9) for k in (1, 2))
    hints = _hints(tmp_path, f"note_id,generation,score,minutes\n{rows}n9,1,NA,3\nn9,2,7,NA\n")
    assert hints[0] == "'task=note_id,trial=generation,success=score >= 10'"
    assert not any("@minutes" in hint for hint in hints)


@pytest.mark.parametrize("names", ["v1.4,v1.5", "v1,v2", "sys0,sys1", "baseline,tuned"])
def test_numbered_models_come_before_attempts(tmp_path: Path, names: str) -> None:
    hints = _hints(tmp_path, f"flow,{names}\nf0,1,1\nf1,1,0\nf2,0,0\n")
    assert hints[0] == "task=flow,model=@column"


@pytest.mark.parametrize("names", ["v1.4,v1.5", "run1,run2", "a,b"])
def test_columns_of_fractions_are_no_attempts(tmp_path: Path, names: str) -> None:
    hints = _hints(tmp_path, f"task,{names}\nf0,4/5,4/5\nf1,1/5,0/5\nf2,2/5,0/5\n")
    assert hints[0] == "task=task,model=@column"
    assert not any("trial=@column" in hint for hint in hints)


@pytest.mark.parametrize(
    "name",
    ["sections", "sections of several fields", "sections with words", "sections that failed"],
)
def test_a_field_of_a_section_is_a_verdict_and_its_value_no_task(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(UNSURE[name], encoding="utf-8")
    try:
        (run,) = read(path)
    except PasshatError:
        assert name == "sections that failed"
        return
    assert run.outcomes.tasks == ("a", "b")
    assert run.outcomes.c.tolist() == ([0, 1] if name == "sections that failed" else [1, 0])


def test_lists_of_ids_that_passed_are_one_run(tmp_path: Path) -> None:
    """The rule names the key of a list, so the key is no model; commands repeat the rule."""
    path = tmp_path / "m.json"
    path.write_text('{"passed": ["a", "b", "c"], "failed": ["d", "e"], "errors": ["f", "g"]}')
    stated = {"records": "*[*]", "task": "@value", "success": "^@key == passed"}
    rule = stated.pop("success")
    (run,) = read(path, records=stated.pop("records"), columns=stated, passes=rule)
    assert (run.outcomes.passes, run.outcomes.scored) == (3, 7)
    assert run.words[2] == "task=@value,records=*[*],success=^@key == passed"
    with pytest.raises(PasshatError, match="is not a path"):
        read(path, records=".*[*]")
