"""The row of marks per task, and what it amounts to."""

from __future__ import annotations

import pytest
from rich.console import Console

from passhat.reporting.documents.attempts import attempts_document
from passhat.reporting.run_summary import MARKS, Summary, all_first, summarise, window
from passhat.reporting.terminal import render_terminal
from passhat.stats.outcomes import Verdict

OF_MARK = {mark: verdict for verdict, mark in MARKS.items()}
Row = tuple[object, ...]


def render(summary: Summary, *, verbose: bool = False) -> str:
    return render_terminal(attempts_document(summary, verbose=verbose), screen())


def verdicts(marks: str) -> list[Verdict]:
    return [OF_MARK[mark] for mark in marks]


def rows(task: str, marks: str, *, steps: float | None = 3.0) -> list[Row]:
    """One row per mark; a dot is an attempt that was not made."""
    why = {Verdict.PASSED: "", Verdict.FAILED: "wrong_answer", Verdict.MISSING: "judge_error"}
    return [
        (task, number, int(OF_MARK[mark]), why[OF_MARK[mark]], f"said {mark}", 0.5, steps, None)
        for number, mark in enumerate(marks, 1)
        if mark != "·"
    ]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [("✓✓✓✓", True), ("✗✓✓✓", False), ("✓✗✓✓", False), ("✓✓?✓", None), ("✓?✗✓", False)],
)
def test_first_k_is_about_all_of_the_first_k(marks: str, expected: bool | None) -> None:
    assert all_first(verdicts(marks), 4) is expected


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("✗✓✓✗", True),
        ("✓✗✗✓", False),
        ("✗✗✓✓", True),
        ("✗✓?✗", None),
        ("✓✗?✗", False),
        ("✗✗✗✗", False),
    ],
)
def test_a_window_is_about_some_in_a_row(marks: str, expected: bool | None) -> None:
    assert window(verdicts(marks), 2) is expected


def test_fewer_than_k_settle_nothing_but_a_failure() -> None:
    assert all_first(verdicts("✓✓"), 4) is None
    assert all_first(verdicts("✓✗"), 4) is False
    assert window(verdicts("✓"), 2) is None


def test_a_task_in_numbers() -> None:
    (task,) = summarise(rows("a", "✓✗✓?"), 4).tasks
    assert task.marks == "✓✗✓?"
    assert (task.first, task.in_a_row, task.half) == (False, None, 2)
    assert (task.passed, task.scored, task.rate) == (2, 3, 2 / 3)
    assert (task.steps_on_success, task.total_steps) == (3.0, 12.0)
    assert (dict(task.failures), dict(task.missing)) == ({"wrong_answer": 1}, {"judge_error": 1})


def test_an_attempt_that_was_not_made_keeps_its_place() -> None:
    """Two passes with a hole between them are not two in a row."""
    (task,) = summarise(rows("a", "✗✓·✓"), 4).tasks
    assert task.marks == "✗✓·✓"
    assert task.in_a_row is None
    assert task.rate == 2 / 3


def test_steps_that_nobody_recorded_are_not_zero() -> None:
    (task,) = summarise(rows("a", "✓✓", steps=None), 2).tasks
    assert task.total_steps is None
    assert task.steps_on_success is None


def test_reasons_are_kept_for_a_few_and_counted_for_many() -> None:
    many = [row for i in range(100) for row in rows(f"t{i:03}", "✓✗✗✗")]
    summary = summarise(many, 4)
    assert len(summary.details) == 200
    assert summary.not_detailed == 100
    assert dict(summary.failures) == {"wrong_answer": 300}
    assert summary.attempts == 400


def screen() -> Console:
    return Console(width=100, no_color=True, force_terminal=False)


def test_one_task_is_shown_in_full() -> None:
    text = render(summarise(rows("retail/006", "✓✗✓✓"), 4))
    assert "retail/006  ✓✗✓✓" in text
    assert "first^4       ✗ no" in text
    assert "window^2      ✓ yes" in text
    assert "75% (3 of 4 judged attempts)" in text
    assert "wrong_answer: said ✗" in text
    assert "retail/006#4" in text


def test_many_tasks_have_a_row_each_and_the_rest_is_counted() -> None:
    many = [row for i in range(70) for row in rows(f"t{i:03}", "✓✗")]
    summary = summarise(many, 2)
    text = render(summary)
    assert "and 10 more; --verbose" in text
    assert "and 50 more; --verbose" in text
    whole = render(summary, verbose=True)
    assert "t069" in whole
    assert "more" not in whole


def test_the_totals_over_tasks() -> None:
    marks = {"a": "✓✓✓✓", "b": "✗✓✓✗", "c": "✓✗✗✓", "d": "✓✓?✓"}
    summary = summarise([row for task, row_of in marks.items() for row in rows(task, row_of)], 4)
    assert summary.answers("first") == {True: 1, False: 2, None: 1}
    assert summary.answers("in_a_row") == {True: 3, False: 1}
    assert (summary.passed, summary.scored) == (11, 15)
    assert (summary.steps_on_success, summary.total_steps) == (3.0, 48.0)
    text = render(summary)
    assert "first^4       on 1 of 4 tasks, open on 1" in text
    assert "window^2      on 3 of 4 tasks" in text
    assert "success rate  73% (11 of 15 judged attempts)" in text
    assert "failures      wrong_answer 4" in text
    assert "missing       judge_error 1" in text


def test_what_an_agent_said_never_reaches_the_terminal_as_a_command() -> None:
    row: Row = ("a", 1, 0, "wrong_answer", "\x1b[2Jgone", 0.1, 1.0, None)
    text = render(summarise([row], 1))
    assert "\x1b" not in text
    assert "[2Jgone" in text


def test_as_plain_data() -> None:
    summary = summarise(rows("a", "✗✓✓✗"), 4)
    task = summary.tasks[0].to_dict()
    assert summary.to_dict()["tasks"] == [task]
    assert task["first^4"] is False
    assert task["window^2"] is True
