"""Rows with the same task: attempts, unless a column says that they are different things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.errors import PasshatError

Counts = dict[str, tuple[int, int, int]]
"""By the name of the run: tasks, passes, and the most attempts at a task."""

READ: dict[str, tuple[str, Counts]] = {
    "subjects": (
        "subject,question_id,correct\nmath,1,1\nmath,2,0\nbio,1,1\nbio,2,1\n",
        {"mine": (4, 3, 1)},
    ),
    "subjects with trials": (
        "domain,task_id,trial,reward\na,0,0,1\na,0,1,0\nb,0,0,1\nb,0,1,1\n",
        {"mine": (2, 3, 2)},
    ),
    "two ids": ("task_id,question_id,passed\nt1,q1,1\nt1,q2,0\nt2,q1,1\n", {"mine": (3, 2, 1)}),
    "a category that is no reason": (
        "category,id,passed\nmath,1,1\nmath,2,0\nbio,1,1\nbio,2,1\n",
        {"mine": (4, 3, 1)},
    ),
    "a category that is a reason": (
        "task,passed,category\na,0,timeout\na,1,\nb,1,\nb,0,exception\n",
        {"mine": (2, 2, 2)},
    ),
    "versions": (
        "task,model,model_version,passed\na,m,v1,1\nb,m,v1,1\na,m,v2,0\nb,m,v2,0\n",
        {"m v1": (2, 2, 1), "m v2": (2, 0, 1)},
    ),
    "runs with numbered attempts": (
        "run,task,attempt,passed\nA,a,0,1\nA,a,1,0\nB,a,0,1\nB,a,1,1\n",
        {"A": (1, 1, 2), "B": (1, 2, 2)},
    ),
    "prompts": (
        "task,prompt,passed\na,cot,1\nb,cot,1\na,direct,0\nb,direct,1\n",
        {"cot": (2, 2, 1), "direct": (2, 1, 1)},
    ),
    "dates": (
        "task,date,passed\na,2024-05-01,1\nb,2024-05-01,1\na,2024-05-02,0\nb,2024-05-02,1\n",
        {"mine": (2, 3, 2)},
    ),
    "a number of an attempt": (
        "task,shuffle,passed\na,0,1\na,1,0\nb,0,1\nb,1,1\n",
        {"mine": (2, 3, 2)},
    ),
    "remarks": ("task,passed,note\na,1,ok\na,0,bad\nb,1,ok\nb,1,bad\n", {"mine": (2, 3, 2)}),
    "endings": (
        "task,passed,finish_reason\na,1,stop\na,0,length\nb,1,stop\nb,0,length\n",
        {"mine": (2, 2, 2)},
    ),
    "wide": (
        "subject,question_id,run_1,run_2\nm,1,1,0\nb,1,1,1\n",
        {"mine": (2, 3, 2)},
    ),
}


def _write(tmp_path: Path, text: str, name: str = "mine.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def _counts(path: Path, **options: Any) -> Counts:
    return {
        run.name: (len(run.outcomes), run.outcomes.passes, int(run.outcomes.n.max()))
        for run in read(path, **options)
    }


@pytest.mark.parametrize("name", READ)
def test_rows_are_grouped_by_the_column_that_tells_them_apart(tmp_path: Path, name: str) -> None:
    text, expected = READ[name]
    path = _write(tmp_path, text)
    assert _counts(path) == expected
    rows = [dict(zip(*pair, strict=True)) for pair in _pairs(text)]
    lines = _write(tmp_path, "\n".join(map(json.dumps, rows)), "mine.jsonl")
    assert _counts(lines) == expected


def _pairs(text: str) -> list[tuple[list[str], list[str]]]:
    header, *rows = [line.split(",") for line in text.splitlines()]
    return [(header, row) for row in rows]


def test_a_column_that_is_in_later_chunks_only_still_counts(tmp_path: Path) -> None:
    rows = [f"{subject},{q},1" for subject in ("math", "bio") for q in range(3_000)]
    text = "\n".join(["subject,question_id,correct", *rows])
    quoted = text.replace("math,0", '"math",0')  # by csv.reader, in chunks
    assert _counts(_write(tmp_path, quoted)) == {"mine": (6_000, 6_000, 1)}


def test_a_text_that_differs_with_the_task_is_no_run(tmp_path: Path) -> None:
    rows = [
        {"language": lang, "name": name, "prompt": f"Write {name} in {lang}. {more}", "passed": 1}
        for lang in ("python", "rust")
        for name, more in (("a", ""), ("b", "x" * 200))
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (run,) = read(path, columns={"task": "name"}, passes="passed >= 1")
    assert len(run.outcomes) == 4


def test_a_rule_keeps_the_groups(tmp_path: Path) -> None:
    path = _write(tmp_path, "subject,question_id,score\na,1,0.2\na,2,1\nb,1,1\nb,2,1\n")
    assert _counts(path, passes="score >= 0.5") == {"mine": (4, 3, 1)}


JUDGES = "task,metric,score\na,exact,0\na,f1,1\nb,exact,1\nb,f1,1\n"


@pytest.mark.parametrize("rule", [None, "score >= 0.5"])
def test_one_of_several_judges_decides(tmp_path: Path, rule: str | None) -> None:
    path = _write(tmp_path, JUDGES)
    with pytest.raises(PasshatError, match="only one can decide") as caught:
        read(path, passes=rule)
    assert "--scorer: exact, f1" in str(caught.value.hint).replace("f1, exact", "exact, f1")
    if rule is None:
        assert "exact passes 1 of 2" in str(caught.value)
    assert _counts(path, scorer="exact", passes=rule) == {"mine": (2, 1, 1)}
    assert _counts(path, scorer="f1", passes=rule) == {"mine": (2, 2, 1)}
    if rule is None:
        with pytest.raises(PasshatError, match="no scorer called 'bleu'"):
            read(path, scorer="bleu")


def test_an_unknown_column_is_asked_about_and_each_answer_works(tmp_path: Path) -> None:
    path = _write(tmp_path, "task,flavor,passed\na,u,0\na,v,1\nb,u,1\nb,v,1\n")
    with pytest.raises(PasshatError, match="differ in 'flavor'") as caught:
        read(path)
    hint = str(caught.value.hint)
    for option, expected in {
        "trial=flavor": {"mine": (2, 3, 2)},
        "model=flavor": {"u": (2, 1, 1), "v": (2, 2, 1)},
        "task=flavor+task": {"mine": (4, 3, 1)},
    }.items():
        assert f"--map {option}" in hint
        word, column = option.split("=")
        assert _counts(path, columns={word: column}) == expected


def test_ids_with_and_without_a_decimal_are_one_task(tmp_path: Path) -> None:
    path = _write(tmp_path, "task_id,trial,passed\n1,0,1\n1.0,1,0\n2,0,1\n2.0,1,1\n")
    (run,) = read(path)
    assert _counts(path) == {"mine": (2, 3, 2)}
    assert any("are one task" in line for line in run.decisions)
    sections = _write(tmp_path, "task,passed\n1,1\n1.0,1\n1.1,0\n")
    assert _counts(sections) == {"mine": (3, 2, 1)}


def _lines(rows: list[dict[str, object]]) -> str:
    return "\n".join(map(json.dumps, rows))


def test_a_number_of_retries_within_an_attempt_is_not_the_attempt(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for task in ("a", "b"):
        for attempt in (1, 2, 3):
            lost = attempt - 1
            for retry in range(lost + 1):
                status = "infra_error" if retry < lost else ("passed", "failed")[attempt % 2]
                rows.append({"task": task, "attempt": attempt, "retry": retry, "status": status})
    (run,) = read(_write(tmp_path, _lines(rows), "log.jsonl"))
    assert run.outcomes.n.tolist() == [3, 3]
    assert (run.outcomes.passes, run.outcomes.total_missing) == (2, 0)
    assert any("listed again" in line for line in run.decisions)


def test_a_grader_of_each_draft_is_no_judge_of_the_same_attempt(tmp_path: Path) -> None:
    graders = ("KL", "MP", "TR", "MP")
    rows: list[dict[str, object]] = [
        {"prompt_id": p, "draft": d, "grader": graders[(d + p) % 4], "passed": (d * p) % 3 == 1}
        for p in range(4)
        for d in range(1, 5)
    ]
    (run,) = read(_write(tmp_path, _lines(rows), "drafts.jsonl"))
    assert run.outcomes.n.tolist() == [4, 4, 4, 4]
    # Where each grader has judged each draft, one of them has to be chosen.
    rows = [{**row, "grader": name} for row in rows for name in ("KL", "MP")]
    with pytest.raises(PasshatError, match="2 judges of the same attempts"):
        read(_write(tmp_path, _lines(rows), "twice.jsonl"))
