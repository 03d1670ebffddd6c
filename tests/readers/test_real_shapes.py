"""Shapes of files in public repositories that were read wrongly, or refused with a wrong hint."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from passhat import read
from passhat.cli import main
from passhat.errors import PasshatError, ReadError
from passhat.stats.outcomes.vocabulary import Verdict

_Capture = pytest.CaptureFixture[str]


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _commands(path: Path, capsys: _Capture) -> list[str]:
    """The commands that the refusal of a file prints, each after its number."""
    assert main(["report", str(path)]) == 2
    return re.findall(r"^    (.* of .*: passhat report .*)$", capsys.readouterr().err, re.MULTILINE)


@pytest.mark.parametrize("where", ["setup", "teardown"])
def test_an_error_of_a_fixture_is_missing(tmp_path: Path, where: str) -> None:
    error = f'<error message="failed on {where} with &quot;OSError: no daemon&quot;"/>'
    cases = f'<testcase name="a"/><testcase name="b">{error}</testcase>'
    path = _write(tmp_path / "r.xml", f"<testsuite>{cases}</testsuite>")
    (run,) = read(path)
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (1, 1, 1)
    assert run.attempts is not None
    assert "infrastructure" in str(run.attempts.reasons(Verdict.MISSING))


def test_a_teardown_beside_a_failure_is_no_attempt(tmp_path: Path) -> None:
    failure = '<testcase name="a"><failure message="no"/></testcase>'
    error = '<testcase name="a"><error message="failed on teardown with &quot;x&quot;"/></testcase>'
    (run,) = read(_write(tmp_path / "r.xml", f"<testsuite>{failure}{error}</testsuite>"))
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (0, 1, 0)


def test_a_pipeline_is_refused_with_a_whole_command(tmp_path: Path, capsys: _Capture) -> None:
    rows = [
        f"p{p},q{q},{r},{0.9 - 0.5 * (p * q * r)},0.7"
        for p in (0, 1)
        for q in (0, 1)
        for r in (0, 1)
    ]
    path = _write(
        tmp_path / "r.csv", "\n".join(["pipeline,question,repeat,score,threshold", *rows])
    )
    first, *_ = _commands(path, capsys)
    assert first.startswith("88% of 8 attempts at 2 tasks, 2 runs")
    assert "model=pipeline" in first
    assert main(shlex.split(first.partition("passhat ")[2])) == 0


def test_prose_is_no_table(tmp_path: Path) -> None:
    """A text in Markdown with a comma in its second line."""
    path = _write(tmp_path / "36.md", "# Run\nDate: 3 May, 2024\nPassed, 1\nfor i in range(1, 2)\n")
    with pytest.raises(PasshatError):
        read(path)
    with pytest.raises(PasshatError):
        read(tmp_path)


_SHARES = """| Model | Games | **Success Rate** | Format Failures (Turns) |
|---|---|---|---|
| gpt-9 | 25 | **60.0%** [40.7%; 76.6%] | 23.1% |
| claude-9 | 50 | **36.0%** [24.1%; 49.9%] | 0.0% |
"""


def test_a_readme_that_begins_with_html_is_read(tmp_path: Path, capsys: _Capture) -> None:
    """A rate with its interval is a number, and a column of failures is no score."""
    path = _write(tmp_path / "README.md", f'<p align="center">Bench</p>\n\n{_SHARES}')
    commands = _commands(path, capsys)
    assert commands[0].startswith("44% of 75 attempts")
    assert all("success=Success Rate" in command for command in commands)


def test_counts_with_their_shares(tmp_path: Path) -> None:
    rows = "| Task | PASS | FAIL | TIMEOUT | Total |\n|---|---|---|---|---|\n"
    rows += "| a | 9 (90%) | 1 (10%) | 0 | 10 |\n| b | 4 (40%) | 5 (50%) | 1 (10%) | 10 |\n"
    (run,) = read(_write(tmp_path / "t.md", rows))
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (13, 19, 1)


def test_zeros_among_percentages_are_no_verdicts(tmp_path: Path) -> None:
    rows = ["task_id,gpt-1,gpt-2,qwen-1,qwen-2", "a,80.0,100.0,0.0,", "b,66.7,50.0,0.0,0.0"]
    with pytest.raises(ReadError, match="no column was recognized as success"):
        read(_write(tmp_path / "t.csv", "\n".join(rows)))


def test_a_version_is_no_verdict(tmp_path: Path) -> None:
    """A list of submissions states a rate, and no attempts."""
    rows = [{"id": name, "suite_version": "1.0", "rates": {"success": 0.5}} for name in "ab"]
    with pytest.raises(PasshatError):
        read(_write(tmp_path / "r.json", json.dumps({"results": rows})))


def test_ids_of_several_question_lists(tmp_path: Path) -> None:
    """The first question of each list is a task of its own."""
    document = [
        {
            "topic": topic,
            "cases": [
                {"case_id": n, "case_question": f"{topic} {n}?", "case_result": result}
                for n, result in enumerate(results, 1)
            ],
        }
        for topic, results in {"joins": ("Pass", "Fail"), "plans": ("Pass", "Pass", "Fail")}.items()
    ]
    (run,) = read(_write(tmp_path / "gpt.json", json.dumps(document)))
    assert (len(run.outcomes.tasks), run.outcomes.passes, run.outcomes.scored) == (5, 3, 5)
    assert any("^topic+case_id" in line for line in run.decisions)


def test_the_agreement_of_two_verdicts_is_asked(tmp_path: Path) -> None:
    rows = ["instance_id,old_status,new_status,match"]
    rows += ["a,resolved,resolved,True", "b,unresolved,unresolved,True", "c,error,error,True"]
    with pytest.raises(
        ReadError, match="'match' and 'old_status' may both hold the verdict"
    ) as info:
        read(_write(tmp_path / "replay.csv", "\n".join(rows)))
    assert "--map success=old_status" in str(info.value.hint)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (  # deferred steps are in neither column
            "item,Total Steps,Accepted,Rejected,Deferred\na,6,5,0,1\nb,9,4,3,2\nc,7,1,2,4\n",
            "fails=Rejected",
        ),
        ("timestamp,model,pass_rate\n20250913_164120,gpt,0.57\n20250914_170000,qwen,0.5\n", "n="),
        (
            "org,model,green_rate,score_2,asked,error_count\nx,m1,0.91,91,100,0\ny,m2,0.3,30,100,0\n",
            "fails=error_count",
        ),
    ],
)
def test_hints_leave_out_what_cannot_be(
    tmp_path: Path, capsys: _Capture, text: str, wrong: str
) -> None:
    commands = _commands(_write(tmp_path / "t.csv", text), capsys)
    assert not [command for command in commands if wrong in command]


def test_scores_in_a_column_for_each_task(tmp_path: Path, capsys: _Capture) -> None:
    path = _write(tmp_path / "t.csv", "model,sums,joins,plans\ngpt,9.2,7.65,3\nqwen,4.5,6.3,8.2\n")
    first, *_ = _commands(path, capsys)
    assert "model=model,task=@column" in first
    assert first.startswith("67% of 6 attempts at 3 tasks, 2 runs")


def test_a_rule_holds_in_a_file_for_each_attempt(tmp_path: Path) -> None:
    for task, state in {"x1": "found", "x2": "missed", "x3": "found"}.items():
        (tmp_path / task).mkdir()
        _write(tmp_path / task / "result.json", json.dumps({"level": 2, "state": state}))
    (run,) = read(tmp_path, records="{task}/result.json", passes="state == found")
    assert (run.outcomes.passes, run.outcomes.scored) == (2, 3)


def test_a_hint_about_a_folder_names_the_file_of_its_numbers(
    tmp_path: Path, capsys: _Capture
) -> None:
    for name, states in {"a": "10", "b": "11"}.items():
        games = [{"target": f"t{n}", "won": s == "1"} for n, s in enumerate(states)]
        _write(tmp_path / f"{name}.json", json.dumps({"setup": {"k": 2}, "games": games}))
    assert main(["report", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert re.search(r"the numbers are those of \S+/[ab]\.json\)", error)


def test_a_long_text_is_no_answer_to_compare(tmp_path: Path, capsys: _Capture) -> None:
    """What the model wrote is called solution, and what it answered pred."""
    rows = [
        {"question": f"q{n}?", "correct": [key, 1], "solution": "so " * 99 + key, "pred": pred}
        for n, (key, pred) in enumerate([("7", "7"), ("8", "5"), ("9", "9"), ("6", "4")])
    ]
    path = _write(tmp_path / "gpt.jsonl", "\n".join(map(json.dumps, rows)))
    first, *others = _commands(path, capsys)
    assert first.startswith("50% of 4 attempts at 4 tasks")
    assert not [command for command in (first, *others) if "@solution" in command]


def test_whole_passes_behind_an_unrounded_rate(tmp_path: Path, capsys: _Capture) -> None:
    text = "model,rounds_played,turns_sum,success_rate\n"
    text += "opus,78,756,0.8333333333333334\nkimi,78,801,0.7692307692307693\n"
    first, *_ = _commands(_write(tmp_path / "t.csv", text), capsys)
    assert first.startswith("80% of 156 attempts")
    assert "n=rounds_played,success=success_rate" in first


def test_a_pattern_for_a_folder_leaves_the_model_to_the_rows(
    tmp_path: Path, capsys: _Capture
) -> None:
    for model in ("alpha", "beta"):
        rows = [
            {"name": f"t{n}", "model": model, "state": "good" if n else "poor"} for n in range(4)
        ]
        _write(tmp_path / f"eval_{model}.jsonl", "\n".join(map(json.dumps, rows)))
    assert main(["report", str(tmp_path)]) == 2
    assert "of its own" not in capsys.readouterr().err


def test_rows_of_a_warm_up_are_said(tmp_path: Path, capsys: _Capture) -> None:
    rows = [{"task": "a", "trial": n, "ok": n != 2, "warmup": n < 2} for n in range(5)]
    path = _write(tmp_path / "r.jsonl", "\n".join(map(json.dumps, rows)))
    (run,) = read(path)
    assert any("rows with 'warmup' count (2)" in line for line in run.decisions)
    assert main(["report", str(path), "--map", "where=warmup != true"]) == 0
    assert "1 task x 3 attempts, 2 passed" in capsys.readouterr().out


def test_a_folder_of_documents_is_refused_with_a_pattern(tmp_path: Path, capsys: _Capture) -> None:
    for task, state in {"x1": "found", "x2": "missed"}.items():
        (tmp_path / task).mkdir()
        for name in ("first", "second"):
            _write(tmp_path / task / f"{name}.json", json.dumps({"level": 2, "state": state}))
    assert main(["report", str(tmp_path)]) == 2
    hint = "--map 'records={task}/{trial}.json,success=FIELD == WORD'"
    assert hint in capsys.readouterr().err
    option = hint.replace("FIELD == WORD", "state == found").removeprefix("--map ").strip("'")
    assert main(["report", str(tmp_path), "--map", option]) == 0
    assert "2 tasks x 2 attempts, 2 passed" in capsys.readouterr().out
