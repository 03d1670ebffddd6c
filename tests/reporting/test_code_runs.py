"""Weak tests and identical programs are said in every form of a report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.suites.code_mutants import (
    TestStrength,
    keep_strengths,
    load_strengths,
    strengths_folder,
)

PROMPT = 'def cap(days):\n    """At most 5."""\n'
BODY = "    if days > 5:\n        return 5\n    return days\n"
TASKS = [
    {"task_id": name, "prompt": PROMPT, "entry_point": "cap", "canonical_solution": BODY}
    | {"test": f"def check(f):\n    assert [f(x) for x in {given}] == {expected}"}
    for name, given, expected in (
        ("strong", [-1, 0, 1, 4, 5, 6, 9], [-1, 0, 1, 4, 5, 5, 5]),
        ("weak", [2], [2]),
    )
]


def test_weak_tests_are_marked_in_every_form(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in TASKS))
    samples = [{"task_id": task["task_id"], "completion": BODY} for task in TASKS * 2]
    Path("s.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in samples))
    judge = ("judge", "s.jsonl", "-s", "code:t.jsonl", "--store", ".passhat/passhat.db")
    before = passhat(*judge)
    assert before.code == 0, before.err
    assert "weak tests" not in before.out
    assert passhat("judge", "--mutants", "-s", "code:t.jsonl").code == 0
    text = passhat("report", ".passhat/passhat.db", "--tasks").out
    assert "weak (weak tests)" in text
    assert "strong (weak tests)" not in text
    page = passhat("report", ".passhat/passhat.db", "--tasks", "-o", "md").out
    assert "| weak (weak tests) |" in page
    (run,) = json.loads(passhat("report", ".passhat/passhat.db", "--json").out)["runs"]
    assert list(run["weak_tests"]) == ["weak"]
    assert any("weak tests on 1 of 2 tasks" in note for note in run["notes"])
    assert any("4 attempts, 2 distinct programs" in note for note in run["notes"])
    assert any("bought nothing" in note for note in run["notes"])


def test_unconfirmed_passes_are_bounds_and_named_in_the_headline(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["", "", "wrong_answer", "unconfirmed"]
    rows = [
        {"task": task, "trial": trial, "success": {"": 1, "unconfirmed": None}.get(why, 0)}
        | {"failure": why or None, "judge": "plain and split judge (bubblewrap)"}
        for task in "ab"
        for trial, why in enumerate(words)
    ]
    Path("r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = " ".join(passhat("report", "r.jsonl").out.split())
    sentence = (
        "50% confirmed, 25% more (2 attempts) only by plain Python, which a program can forge."
    )
    assert f"{sentence} 50 to 75% of single attempts pass" in text
    assert "Missing: 2 attempts of 8 (25.0%): unconfirmed 2" in text
    (run,) = json.loads(passhat("report", "r.jsonl", "--json").out)["runs"]
    rate = next(one for one in run["estimates"] if one["metric"] == "pass^1")
    assert (rate["value"], rate["value_if_passed"]) == (0.5, 0.75)
    assert run["headline"].startswith(sentence)
    assert run["confirmed"] == {"low": 0.5, "high": 0.75, "only_by_plain": 0.25}


def test_strengths_are_kept_by_tests_and_broken_files_are_no_harm(tmp_path: Path) -> None:
    folder = strengths_folder(str(tmp_path / "passhat.db"))
    found = [TestStrength("a", 1, 4, True), TestStrength("b", 0, 0, False)]
    path = keep_strengths(folder, "abc", found)
    assert load_strengths(folder, "abc") == {one.task: one for one in found}
    assert load_strengths(folder, "other") == {}
    path.write_text('{"tasks": [{"task": 1}]}')
    assert load_strengths(folder, "abc") == {}
