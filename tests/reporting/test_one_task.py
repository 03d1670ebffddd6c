"""A run of one task: one population and one interval on every screen, and in Python and JSON."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

import passhat
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.document import Document, Level
from passhat.reporting.documents.report import report_document
from passhat.reporting.html.page import HtmlOptions, html_report
from passhat.reporting.markdown import render_markdown
from passhat.reporting.terminal import render_terminal
from passhat.stats.outcomes import Outcomes, Run

HIGH, ONE_SIDED = 1 - 0.025**0.25, 1 - 0.05**0.25
"""The upper end of the success rate after 0 of 4: of the interval, and of a gate's bound."""


def _run(c: int = 0, name: str = "a") -> Run:
    return Run(name, name, Outcomes.from_counts(4, [c], ["sum"]))


def _text(document: Document, level: Level) -> str:
    return render_terminal(document, Console(width=120, color_system=None), level)


def test_python_json_and_gate_agree_on_one_task() -> None:
    run = _run()
    estimate = passhat.estimate(run, "pass^4")
    (row,) = [
        row
        for row in json.loads(passhat.report(run).json())["runs"][0]["estimates"]
        if row["metric"] == "pass^4"
    ]
    (judged,) = passhat.gate(run, "pass^4 >= 0.6").results
    assert (str(estimate.population), row["about"], judged.about) == ("these tasks",) * 3
    assert estimate.high == row["high"] == pytest.approx(HIGH**4, abs=1e-5)
    assert judged.high == pytest.approx(ONE_SIDED**4, abs=1e-5)
    stated = passhat.estimate(run, "pass^4", about="new tasks")
    assert str(stated.population) == "new tasks"
    assert stated.high == pytest.approx(0.975)
    assert passhat.gate(run, "pass^4 >= 0.6", about="new tasks").results[0].about == "new tasks"


def test_no_screen_of_one_task_speaks_of_new_tasks() -> None:
    runs = [_run(), _run(4, "b")]
    for chosen in (runs[:1], runs):
        report = build_report(chosen, ReportOptions(with_details=True))
        document = report_document(report)
        pages = [
            *(_text(document, level) for level in (Level.SHORT, Level.FULL)),
            render_markdown(document),
            html_report(report, HtmlOptions()),
        ]
        for page in pages:
            assert "0 to 60%" in page
            assert "0 to 13%" in page
            assert "for new tasks" not in page


def test_comparison_and_gate_against_a_baseline_stay_on_the_task() -> None:
    found = passhat.compare(_run(), _run(4, "b"), "pass^4")
    assert {str(result.evidence.population) for result in found.results} == {"these tasks"}
    assert found.these_tasks == ()
    assert "new tasks" not in passhat.gate(_run(4, "b"), against=_run()).results[0].evidence


def test_runs_of_one_and_of_several_tasks_name_both_populations() -> None:
    many = Run("m", "m", Outcomes.from_counts(4, [0, 4, 4, 3]))
    text = _text(report_document(build_report([_run(), many])), Level.SHORT)
    assert "0% (0 to 13%)" in text
    assert "intervals for fresh attempts at this task or new tasks like these." in text
