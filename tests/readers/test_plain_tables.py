"""Tables as people write them: the right number, or a refusal whose hint gives the right number.

No table may give a wrong number without a word: where the reader decides, ``decisions`` says so.
"""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.cli.shared.options import column_map
from passhat.errors import PasshatError
from passhat.readers import text_logs

Counts = dict[str, tuple[int, int]]
"""By the name of the run: passes, and attempts with a verdict."""

ONE = {"mine": (3, 4)}
ROWS = "a,1,1\na,2,1\nb,1,1\nb,2,0\n"


def _rows(header: str, passed: str = "1", failed: str = "0", sign: str = ",") -> str:
    verdicts = [("a", "1", passed), ("a", "2", passed), ("b", "1", passed), ("b", "2", failed)]
    return "\n".join([header, *(sign.join(row) for row in verdicts)]) + "\n"


def _json(*rows: dict[str, Any]) -> str:
    return json.dumps(rows)


def _lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


READ: dict[str, tuple[str, Counts]] = {
    "lists of tasks": ('{"passed": ["a", "c"], "failed": ["b"]}', {"mine": (2, 3)}),
    # one row per attempt
    "plain": (_rows("task,trial,success"), ONE),
    "words": (_rows("task,trial,passed", "yes", "no"), ONE),
    "Passed?": (_rows("Task,Run #,Passed?", "TRUE", "FALSE"), ONE),
    "outcome": (_rows("task,attempt,outcome", "pass", "fail"), ONE),
    "status": (_rows("test,run,status", "PASSED", "FAILED"), ONE),
    "verdict": (_rows("problem,sample,verdict", "correct", "incorrect"), ONE),
    "result": (_rows("question,trial,result", "✅", "❌"), ONE),
    "semicolons": (_rows("task;trial;score", "1,0", "0,0", ";"), ONE),
    "tabs": (_rows("task\ttrial\treward", "1.0", "0.0", "\t"), ONE),
    "bars": (_rows("task|trial|solved", "1", "0", "|"), ONE),
    "percent": (_rows("task,trial,score", "100%", "0%"), ONE),
    "quotes": ('task,trial,success\n"a, long",1,1\n"a, long",2,0\n', {"mine": (1, 2)}),
    "blank is missing": ("task,trial,success\na,1,1\na,2,\nb,1,0\nb,2,1\n", {"mine": (2, 3)}),
    "NA is missing": ("task,trial,success\na,1,1\na,2,N/A\nb,1,0\n", {"mine": (1, 2)}),
    "two models": (
        "model,task,success\nx,a,1\nx,b,0\ny,a,1\ny,b,1\n",
        {"x": (1, 2), "y": (2, 2)},
    ),
    "two suites": (
        "benchmark,task,success\nmath,1,1\nmath,2,0\ncode,1,1\n",
        {"mine on math": (1, 2), "mine on code": (1, 1)},
    ),
    "title": ("Results of May,,\n\n" + _rows("task,trial,success"), ONE),
    "title without commas": ("Results of May\n" + _rows("task,trial,success"), ONE),
    "comments": ("# model: x, t=0.5\n# May\n" + _rows("task,trial,success"), ONE),
    "marked header": (_rows("#task,trial,success"), ONE),
    "blank lines": ("\n\n" + _rows("task,trial,success"), ONE),
    "a run for each name": (
        "task,run,passed\na,A,1\na,B,0\nb,A,1\nb,B,1\n",
        {"A": (2, 2), "B": (1, 2)},
    ),
    "numbered runs": ("task,run,passed\na,run1,1\na,run2,0\n", {"mine": (1, 2)}),
    # graded scores, and several columns that may be the verdict
    "graded": ("task,score\na,0.667\nb,1.0\n", {"mine": (1, 2)}),
    "binarized": ("task,score,score_binarized\na,0.667,1\nb,0.3,0\n", {"mine": (1, 2)}),
    "verdict beside a score": ("task,passed,score\na,1,0.8\nb,0,0.2\n", {"mine": (1, 2)}),
    "two verdicts that agree": ("task,passed,correct\na,1,1\nb,0,0\n", {"mine": (1, 2)}),
    # one row per task
    "counts": ("task,n,c\na,10,5\nb,10,7\n", {"mine": (12, 20)}),
    "counts with a score": ("task,n,c,score\na,10,5,0.5\nb,20,12,0.6\n", {"mine": (17, 30)}),
    "counts with a rate": ("task,n,c,pass_rate\na,10,5,50\nb,20,12,60\n", {"mine": (17, 30)}),
    "attempts and passes": ("task,attempts,passes\na,4,3\nb,4,0\n", {"mine": (3, 8)}),
    "total and correct": ("question,total,correct\na,5,3\nb,5,0\n", {"mine": (3, 10)}),
    "runs and rate": ("task,runs,pass_rate\na,3,0.667\nb,4,0.25\n", {"mine": (3, 7)}),
    "percent and runs": ("task,num_runs,success_rate\na,3,66.7\nb,4,25\n", {"mine": (3, 7)}),
    "rate with a sign": ("task,trials,accuracy\na,8,62.5%\nb,8,100%\n", {"mine": (13, 16)}),
    "passes and fails": ("task,passed,failed\na,1,3\nb,0,4\n", {"mine": (1, 8)}),
    "successes and failures": ("task,successes,failures\na,7,3\nb,9,1\n", {"mine": (16, 20)}),
    "a verdict and its opposite": ("task,passed,failed\na,1,0\nb,0,1\n", {"mine": (1, 2)}),
    "fractions": ("task,score\na,3/4\nb,0/4\n", {"mine": (3, 8)}),
    "fractions in words": ("task,passed\na,3 of 4\nb,1 out of 4\n", {"mine": (4, 8)}),
    "lists": ('task,passed\na,"[1, 0, 1]"\nb,"[True, False]"\n', {"mine": (3, 5)}),
    "lists in lines": (
        '{"task": "a", "passed": [1, 0, 1]}\n{"task": "b", "passed": [true]}\n',
        {"mine": (3, 4)},
    ),
    # a column for each attempt or model
    "numbered columns": ("task,run_1,run_2\na,1,1\nb,1,0\n", ONE),
    "numbered with spaces": ("Task,Trial 1,Trial 2\na,pass,pass\nb,pass,fail\n", ONE),
    "bare numbers": ("task,1,2\na,1,1\nb,1,0\n", ONE),
    "seeds": ("task,seed_7,seed_19\na,1,1\nb,1,0\n", ONE),
    "models": (
        "Task,Model A,Model B\na,1,0\nb,1,1\nc,pass,fail\n",
        {"Model A": (3, 3), "Model B": (1, 3)},
    ),
    "names of models": (
        "question,gpt-4o,claude-3\na,1,0\nb,1,1\n",
        {"gpt-4o": (2, 2), "claude-3": (1, 2)},
    ),
    # JSON
    "records": (
        _json({"task": "a", "passed": True}, {"task": "b", "passed": False}),
        {"mine": (1, 2)},
    ),
    "records with counts": (
        _json({"task": "a", "n": 10, "c": 5, "score": 0.5}, {"task": "b", "n": 10, "c": 0}),
        {"mine": (5, 20)},
    ),
    "models in records": (
        _json({"task": "a", "gpt-4": 1, "claude": 0}, {"task": "b", "gpt-4": 1, "claude": 1}),
        {"gpt-4": (2, 2), "claude": (1, 2)},
    ),
    "wrapped": (
        json.dumps({"results": [{"task_id": "a", "correct": 1}, {"task_id": "b", "correct": 0}]}),
        {"mine": (1, 2)},
    ),
    "columns": (json.dumps({"task": ["a", "b"], "success": [1, 0]}), {"mine": (1, 2)}),
    "pandas columns": (
        json.dumps({"task": {"0": "a", "1": "b"}, "success": {"0": 1, "1": 0}}),
        {"mine": (1, 2)},
    ),
    "pandas split": (
        json.dumps({"columns": ["task", "success"], "index": [0, 1], "data": [["a", 1], ["b", 0]]}),
        {"mine": (1, 2)},
    ),
    "an id": (_rows("id,trial,success"), ONE),
    "objects": (json.dumps({"a": [True, True], "b": [True, False]}), ONE),
    # Markdown
    "markdown": (
        "# Results\n\nAs of May.\n\n| task | trial | passed |\n|---|:-:|---|\n| a | 1 | yes |\n"
        "| **b** | 1 | no |\n\nThe end.\n",
        {"mine": (1, 2)},
    ),
    "markdown models": (
        "| Task | Model A | Model B |\n| --- | --- | --- |\n| a | ✅ | ❌ |\n| b | ✅ | ✅ |\n",
        {"Model A": (2, 2), "Model B": (1, 2)},
    ),
    # logs of tests
    "pytest -v": (
        "collected 3 items\n\nt.py::a PASSED        [ 33%]\nt.py::b SKIPPED (no gpu) [ 66%]\n"
        "t.py::c FAILED        [100%]\n\nFAILED t.py::c - assert 0\n",
        {"mine": (1, 2)},
    ),
    "pytest -rA": (
        "== summary ==\nPASSED t.py::a\nERROR t.py::e - x\nFAILED t.py::c - assert 0\n",
        {"mine": (1, 2)},
    ),
    "TAP": (
        "TAP version 13\n1..4\nok 1 - a\n# note\nnot ok 2 - b\nok 3 # SKIP no ruby\nok 4 - c\n",
        {"mine": (2, 3)},
    ),
    "unittest -v": ("t_a (t.T) ... ok\nt_b (t.T) ... FAIL\nt_c (t.T) ... ok\n", {"mine": (2, 3)}),
    "go test -v": (
        "=== RUN TestA\n--- PASS: TestA (0.1s)\n--- FAIL: TestB (0.2s)\nFAIL\n",
        {"mine": (1, 2)},
    ),
    "cargo test": ("running 2 tests\ntest m::a ... ok\ntest m::b ... FAILED\n", {"mine": (1, 2)}),
    "a check list": ("# Run\n\n- [x] a\n- [ ] b\n- [X] c\n", {"mine": (2, 3)}),
    "sentences": (
        "Test case 'a' passed (0.1 s)\nTest case 'b' failed (0.2 s)\nTest case 'c' passed (1 s)\n",
        {"mine": (2, 3)},
    ),
    "a numbered list": ("1. a - PASS\n2. b - FAIL\n3. c - PASS\n", {"mine": (2, 3)}),
    "words in brackets": ("[PASS] login\n[FAIL] logout\n[PASS] search\n", {"mine": (2, 3)}),
    "a page": (
        "<html><body><h1>R</h1><table><tr><th>Task</th><th>gpt-4</th></tr>"
        "<tr><td>a</td><td><b>100%</b></td></tr><tr><td>b</td><td>0%</td></tr></table></body></html>",
        {"gpt-4": (1, 2)},
    ),
    "blocks with verdicts": (
        "=====\nquestion: a\nresult: PASS\n=====\nquestion: b\nresult: FAIL\n=====\n"
        "question: c\nresult: PASS\n=====\n",
        {"mine": (2, 3)},
    ),
    # other names of counts
    "a failure rate": ("task,runs,error_rate\na,4,0.25\nb,5,0.6\n", {"mine": (5, 9)}),
    "wins and losses": ("task,wins,losses\na,3,1\nb,0,4\n", {"mine": (3, 8)}),
    "c of k": ("problem,c,k\np1,3,5\np2,0,5\n", {"mine": (3, 10)}),
    "lists side by side": ('{"task_ids": ["a", "b"], "passed": [true, false]}', {"mine": (1, 2)}),
}

HINTED: dict[str, tuple[str, int, Counts]] = {
    # the text, which of the hints is meant, and what it gives
    "verdict or passes: passes": ("task,attempts,passed\na,5,1\nb,5,0\n", 1, {"mine": (1, 10)}),
    "verdict or passes: verdict": ("task,attempts,passed\na,5,1\nb,5,0\n", 0, {"mine": (1, 2)}),
    "two verdicts: first": ("task,passed,correct\na,1,1\nb,1,0\n", 0, {"mine": (2, 2)}),
    "two verdicts: second": ("task,passed,correct\na,1,1\nb,1,0\n", 1, {"mine": (1, 2)}),
    "other columns: models": (
        "task,left,right\na,1,0\nb,1,1\n",
        0,
        {"left": (2, 2), "right": (1, 2)},
    ),
    "other columns: attempts": ("task,built,tested\na,1,0\nb,1,1\n", 1, {"mine": (3, 4)}),
    "other columns: a verdict": ("task,built,tested\na,1,0\nb,1,1\n", 2, {"mine": (1, 2)}),
    "answers": ("task,pred,answer\na,B,B\nb,C,D\n", 0, {"mine": (1, 2)}),
    "other columns: tasks": ("task,built,tested\na,1,0\nb,1,1\n", 3, {"mine": (3, 4)}),
    "parts of a row": (
        _lines(
            {"model": "m", "day": 1, "part1_correct": True, "part2_correct": False},
            {"model": "m", "day": 2, "part1_correct": True, "part2_correct": True},
        ),
        3,
        {"m": (3, 4)},
    ),
    "ties: failures": ("task,wins,losses,ties\na,3,1,1\nb,0,4,0\n", 0, {"mine": (3, 9)}),
    "ties: missing": ("task,wins,losses,ties\na,3,1,1\nb,0,4,0\n", 1, {"mine": (3, 8)}),
    "errors": ("task,runs,errors\na,4,1\nb,5,3\n", 0, {"mine": (5, 9)}),
    "another name of a verdict": (
        "task,sample,verified,timed_out\na,0,1,0\na,1,0,1\nb,0,1,0\nb,1,1,0\n",
        0,
        {"mine": (3, 4)},
    ),
    "a better name of a verdict": (
        "task,parsed_ok,oracle_pass,cached\na,1,1,0\nb,1,0,1\nc,0,0,1\n",
        0,
        {"mine": (1, 3)},
    ),
    "a word for a pass": (
        "task,label\na,misled\nb,not_misled\nc,not_misled\n",
        0,
        {"mine": (2, 3)},
    ),
    "the answer at the end of a text": (
        _json(
            {"task": "a", "response": "We add. So the answer is No.", "target": "No"},
            {"task": "b", "response": "It is 13", "target": "3"},
            {"task": "c", "response": "The answer is (B).", "target": "(B)"},
        ),
        0,
        {"mine": (2, 3)},
    ),
    "the first of several right answers": (
        _json(
            {"question": "a", "pred": "4", "correct": ["4", 4]},
            {"question": "b", "pred": "x", "correct": ["[0, 5]", [0, 5]]},
        ),
        0,
        {"mine": (1, 2)},
    ),
    "blocks of lines": (
        "Task: a\nPrediction: 4\nAnswer: 4\n\nTask: b\nPrediction: 5\nAnswer: 6\n\nTask: c\n"
        "Prediction: x\nAnswer: x\n",
        0,
        {"mine": (2, 3)},
    ),
    "an attempt that is listed again": (
        _json(
            {"runId": "u1", "model": "m", "task": "a", "trial": 1, "solved": True},
            {"runId": "u2", "model": "m", "task": "a", "trial": 1, "solved": False},
        ),
        0,
        {"m": (1, 2)},
    ),
    "a word that may mean a pass": (
        "task,status\na,completed\nb,failed\nc,completed\n",
        0,
        {"mine": (2, 3)},
    ),
    "a threshold in the row": (
        "task,judge_score,threshold\na,0.8,0.7\nb,0.6,0.7\n",
        0,
        {"mine": (1, 2)},
    ),
    "0 and 100": ("task,score\na,100\nb,0\nc,100\n", 0, {"mine": (2, 3)}),
}


def _counts(path: Path, **options: Any) -> Counts:
    return {run.name: (run.outcomes.passes, run.outcomes.scored) for run in read(path, **options)}


@pytest.mark.parametrize("name", READ)
def test_it_is_read_at_first_try(
    tmp_path: Path, name: str, as_before: Callable[[object], None]
) -> None:
    text, expected = READ[name]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8", newline="")
    runs = read(path)
    assert {run.name: (run.outcomes.passes, run.outcomes.scored) for run in runs} == expected
    as_before(runs)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(('"[1, 0, 1]"', '"[1, 0]"'), (3, 5)), (("0110", "1011"), (5, 8)), (("1/2", "2/2"), (3, 4))],
)
def test_verdicts_of_a_stated_column_may_be_several(
    tmp_path: Path, cells: tuple[str, str], expected: tuple[int, int]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"task,marks\na,{cells[0]}\nb,{cells[1]}\n", encoding="utf-8")
    assert _counts(path, columns={"success": "marks"}) == {"mine": expected}


@pytest.mark.parametrize("name", HINTED)
def test_the_hint_of_a_refusal_gives_the_right_number(
    tmp_path: Path, name: str, as_before: Callable[[object], None]
) -> None:
    text, choice, expected = HINTED[name]
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(PasshatError) as caught:
        read(path)
    as_before([str(caught.value), str(caught.value.hint)])
    hint = str(caught.value.hint)
    commands = re.findall(r"(?m): passhat report \S+ (--map .+)$", hint)
    if hint.startswith("Say how to read it"):
        maps = [column_map(None, None, shlex.split(command)[1:]) for command in commands]  # type: ignore[arg-type]
        assert expected in [_counts(path, columns=columns) for columns, _ in maps]
    else:
        assert _counts(path, **_options(hint, choice)) == expected


def _options(hint: str, choice: int) -> dict[str, Any]:
    """The options that a hint prints, as arguments of read()."""
    if "--pass '" in hint:
        (rule,) = re.findall(r"--pass '([^']+)'", hint)
        records = re.findall(r"--map 'records=([^']+)'", hint)
        options: dict[str, Any] = {"passes": rule, "records": records[0] if records else None}
        tasks = re.findall(r"--map task=(\S+)", hint)
        return {**options, "columns": {"task": tasks[0]}} if tasks else options
    threshold = re.search(r"pass_at=(\d+)", hint)
    if threshold:
        return {"pass_at": float(threshold[1])}
    pairs = re.findall(r"--map (\S+?)[,.;]?(?:\s|$)", hint)[choice]
    options = {"columns": dict(pair.split("=") for pair in pairs.split(","))}
    for records in re.findall(r"--map 'records=([^']+)'", hint):
        options["records"] = records
    return options


SAID = {
    "title": "above the header",
    "comments": "above the header",
    "graded": "passed means reward >= 1",
    "binarized": "is graded and read as the score",
    "verdict beside a score": "is graded and read as the score",
    "counts with a score": "are counts",
    "total and correct": "of its 'total' attempts",
    "runs and rate": "share of its 'runs'",
    "passes and fails": "a row is a task",
    "fractions": "passes / attempts",
    "lists": "verdicts of its attempts",
    "numbered columns": "a column for each attempt",
    "models": "a column for each model",
    "a run for each name": "--map trial=run",
}


@pytest.mark.parametrize("name", SAID)
def test_what_was_decided_is_said(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(READ[name][0], encoding="utf-8", newline="")
    for run in read(path):
        assert SAID[name] in " / ".join(run.decisions)
        assert SAID[name] in json.dumps(run.to_dict()["decisions"], ensure_ascii=False)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1", "cp1252", "utf-8-sig"])
def test_encodings_are_read_and_said(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "mine.csv"
    text = "model,task,success\nKäse,a,1\nKäse,b,0\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    path.write_bytes((mark + text).encode(encoding))
    (run,) = read(path)
    assert (run.name, run.outcomes.passes, run.outcomes.scored) == ("Käse", 1, 2)
    assert bool(run.decisions) == (encoding != "utf-8-sig")


def _workbook(path: Path, sheets: dict[str, list[list[object]]]) -> None:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"

    with zipfile.ZipFile(path, "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        names = "".join(
            f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1)
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relation}"><sheets>{names}</sheets></workbook>',
        )
        links = "".join(
            f'<Relationship Id="r{i}" Target="worksheets/sheet{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}">{links}</Relationships>',
        )
        for number, rows in enumerate(sheets.values(), 1):
            lines = "".join(
                f'<row r="{i}">'
                + "".join(
                    f'<c r="{chr(65 + j)}{i}" t="inlineStr"><is><t>{value}</t></is></c>'
                    for j, value in enumerate(row)
                )
                + "</row>"
                for i, row in enumerate(rows, 1)
            )
            book.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
            )


def test_a_sheet_for_each_model(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    table: list[list[object]] = [["task", "trial", "success"], ["a", 1, 1], ["a", 2, 0]]
    other: list[list[object]] = [["Notes", "of May"], ["x", "y"]]
    _workbook(path, {"About": other, "small": table, "large": [*table, ["b", 1, 1]]})
    runs = read(path)
    assert {run.name: (run.outcomes.passes, run.outcomes.scored) for run in runs} == {
        "small": (1, 2),
        "large": (2, 3),
    }
    said = " / ".join(runs[0].decisions)
    assert "each sheet is a model" in said
    assert "2 sheets with the same columns: small, large" in said
    assert "not read: About" in said
    (run,) = read(path, records="large")
    assert run.outcomes.scored == 3


def test_a_legend_below_the_table_of_a_sheet_is_no_task(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    rows: list[list[object]] = [["Case", "Run 1", "Run 2"], ["a", "P", "F"], ["b", "P", "P"]]
    legend: list[list[object]] = [["P = passed, F = failed, n/a = machine was down"]]
    _workbook(path, {"small": [*rows, *legend], "large": [*rows, ["c", "n/a", "P"], *legend]})
    runs = read(path)
    assert [(run.name, len(run.outcomes), run.outcomes.total_missing) for run in runs] == [
        ("small", 2, 0),
        ("large", 3, 1),
    ]
    assert any("left out as remarks" in line for line in runs[0].decisions)


def test_a_title_above_the_header_of_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    _workbook(path, {"s": [["Results"], ["task", "success"], ["a", 1], ["b", 0]]})
    assert _counts(path) == {"book": (1, 2)}


def test_a_zip_of_tables_is_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for model in ("x", "y"):
            archive.writestr(f"logs/{model}.csv", f"model,task,success\n{model},a,1\n{model},b,0\n")
        archive.writestr("../outside.csv", "model,task,success\nz,a,1\n")
        archive.writestr("__MACOSX/._x.csv", "junk")
    assert _counts(path) == {"x": (1, 2), "y": (1, 2)}


def test_a_zip_of_answers_is_read_by_the_hint(tmp_path: Path) -> None:
    rows = [{"question_id": i, "answer": "A", "pred": p} for i, p in enumerate(["A", "B", None])]
    path = tmp_path / "outputs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mine.json", json.dumps(rows))
    with pytest.raises(PasshatError) as caught:
        read(path)
    columns = {"task": "question_id", "success": "pred == @answer"}
    assert ",".join(f"{word}={rule}" for word, rule in columns.items()) in str(caught.value.hint)
    (run,) = read(path, columns=columns)
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (1, 2, 1)


def test_a_field_that_no_record_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"task": "a", "eval": {"ok": 1}}\n{"task": "b", "eval": {"ok": 0}}\n')
    assert _counts(path, columns={"task": "task", "success": "eval.ok"}) == {"mine": (1, 2)}
    with pytest.raises(PasshatError, match=r"success=eval\.okay: no record of"):
        read(path, columns={"task": "task", "success": "eval.okay"})
    with pytest.raises(PasshatError, match="no record of"):
        read(path, passes="eval.okay == 1", columns={"task": "task"})
    own = tmp_path / "own.toml"
    own.write_text('[fields]\ntask = "task"\nsuccess = "eval.okay"\n')
    with pytest.raises(PasshatError, match="no record of"):
        read(path, mapping=own)


def test_one_log_with_two_scorers_costs_itself(samples: Any) -> None:
    plain = json.loads(samples.content("inspect_ai"))
    samples.write("", plain, "logs/one.json")
    plain["eval"]["task_id"] = "another"
    plain["eval"]["task"] = "another"
    for sample in plain["samples"]:
        sample["uuid"] = f"{sample.get('uuid')}-2"
        (score,) = sample["scores"].values()
        sample["scores"] = {"exact": score, "fuzzy": score}
    samples.write("", plain, "logs/two.json")
    from passhat.readers import read_all

    reading = read_all(samples.folder / "logs")
    assert len(reading.runs) == 1
    assert [Path(name).name for name, _ in reading.refused] == ["two.json"]
    assert "2 scorers" in reading.refused[0][1]
    both = read_all(samples.folder / "logs", scorer="another=exact")
    assert len(both.runs) == 2
    assert not both.refused


def test_twenty_thousand_models_and_copies_take_linear_time(tmp_path: Path) -> None:
    """Counted by comparisons: the time of a test machine is no measure."""
    path = tmp_path / "mine.csv"
    lines = [f"m{i},a,{i % 2},0.5" for i in range(3_000)]
    path.write_text("\n".join(["model,task,success,duration", *lines]))
    from passhat.readers import identity

    calls = 0
    is_copy = identity._is_copy

    def counting(*args: Any) -> bool:
        nonlocal calls
        calls += 1
        return is_copy(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "_is_copy", counting)
        assert len(read(path)) == 3_000
    assert calls == 0


def _write_tree(folder: Path) -> None:
    for model, passes in (("x", "10"), ("y", "11")):
        for task, verdict in zip(("chrome/t1", "gimp/t1"), passes, strict=True):
            path = folder / "out" / model / task / "result.txt"
            path.parent.mkdir(parents=True)
            path.write_text(f"{verdict}.0\n")


def test_a_file_for_each_attempt_is_read_by_the_pattern_of_the_hint(tmp_path: Path) -> None:
    _write_tree(tmp_path)
    with pytest.raises(PasshatError) as caught:
        read(tmp_path / "out")
    (pattern,) = re.findall(r"--map 'records=([^']+)'", str(caught.value.hint))
    assert pattern == "{model}/{task}/result.txt"
    assert _counts(tmp_path / "out", records=pattern) == {"x": (1, 2), "y": (2, 2)}
    with pytest.raises(PasshatError, match="are one attempt by the pattern"):
        read(tmp_path / "out", records="{model}/*/{task}/result.txt")
    with pytest.raises(PasshatError, match=r"needs \{task\}"):
        read(tmp_path / "out", records="{model}/*/*/result.txt")


def test_models_around_records_are_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    tasks = {"a": {"resolved": True, "cost": 1}, "b": {"resolved": False, "cost": 2}}
    path.write_text(json.dumps({"x": tasks, "y": {**tasks, "b": {"resolved": True, "cost": 3}}}))
    assert _counts(path) == {"x": (1, 2), "y": (2, 2)}


def test_signs_and_words_of_a_markdown_report(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text(
        "| ID | Prompt | Pass/Fail |\n|----|----|----|\n| 1 | x | ❌ FAIL |\n| 2 | y | ✅ PASS |\n"
    )
    assert _counts(path) == {"mine": (1, 2)}


def test_a_block_that_is_no_row_is_said(tmp_path: Path) -> None:
    block = "question: {0}\nresult: PASS\nseconds: 2\n\n"
    text = "".join(block.format(name) for name in "abc") + "note: was cut\nat: 12:30\n"
    (tmp_path / "mine.log").write_text(text)
    (run,) = read(str(tmp_path / "mine.log"))
    assert any("left out: 1 block with other names" in line for line in run.decisions)


def test_a_text_that_is_too_long_is_refused_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_logs, "_MOST_TEXT", 40)
    (tmp_path / "mine.log").write_text("login: PASS\nlogout: FAIL\nsearch: PASS\ncart: PASS\n")
    with pytest.raises(PasshatError, match="more than 64 MiB"):
        read(str(tmp_path / "mine.log"))
