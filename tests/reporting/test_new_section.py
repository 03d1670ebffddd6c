"""A section of the report is its facts and its blocks: nothing else has to know it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

from passhat._serialize import as_json
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.document import Block, Level, Sentence
from passhat.reporting.documents import report as sections
from passhat.reporting.documents.report import SECTIONS, ReportSection, report_document
from passhat.reporting.html import HtmlOptions, html_report
from passhat.reporting.markdown import render_markdown
from passhat.reporting.terminal import render_terminal
from passhat.reporting.view import RunReport
from passhat.stats.outcomes import Outcomes, Run


def _perfect_tasks(run: Run) -> dict[str, int]:
    outcomes = run.outcomes
    return {"perfect": int((outcomes.c == outcomes.n).sum()), "tasks": len(outcomes)}


def _blocks(run: RunReport) -> Iterator[Block]:
    facts = run.sections["perfect tasks"]
    assert isinstance(facts, dict)
    yield Sentence(f"{facts['perfect']} of {facts['tasks']} tasks passed every time.")


def test_a_new_section_is_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    new = ReportSection("perfect tasks", _blocks, _perfect_tasks)
    monkeypatch.setattr(sections, "SECTIONS", [*SECTIONS, new])
    monkeypatch.setattr("passhat.reporting.build.SECTIONS", [*SECTIONS, new])
    run = Run("bot", "bot", Outcomes.from_counts(4, [4, 4, 1]))
    report = build_report([run], ReportOptions(with_details=True, with_forecasts=False))
    document = report_document(report)
    console = Console(file=StringIO(), width=80, color_system=None)
    for text in (
        render_terminal(document, console, Level.SHORT),
        render_terminal(document, console, Level.FULL),
        render_markdown(document),
        html_report(report, HtmlOptions()),
    ):
        assert "2 of 3 tasks passed every time." in text
    written = json.loads(as_json(report))["runs"][0]["sections"]["perfect tasks"]
    assert written == {"perfect": 2, "tasks": 3}
