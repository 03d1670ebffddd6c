"""A run's name may hold what sentences are made of; every form shows it whole."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.reporting.build import build_report
from passhat.reporting.view import run_labels
from passhat.stats.outcomes import Outcomes, Run

NAME, OTHER = "base (v1). old; x", "new: v2), 4 attempts. Adjusted for 2; y"
Passhat = Callable[..., Any]


def rows(name: str, passes: list[int]) -> str:
    return "".join(
        f'"{name}",t{task},{attempt},{int(attempt < passed)}\n'
        for task, passed in enumerate(passes)
        for attempt in range(4)
    )


@pytest.fixture
def table_of_two(table: Callable[..., Path]) -> Path:
    text = "model,task,attempt,success\n" + rows(NAME, [4, 3, 2, 1, 0, 4]) + rows(OTHER, [4] * 6)
    return table(text)


def plain(text: str) -> str:
    """Text without the backslashes of Markdown, line breaks of a terminal, or HTML entities."""
    return re.sub(r"\s+", " ", html.unescape(text.replace("\\", "")))


def test_comparisons_name_both_whole(passhat: Passhat, table_of_two: Path, tmp_path: Path) -> None:
    md, page = tmp_path / "c.md", tmp_path / "c.html"
    done = passhat("compare", table_of_two, "--json", "-o", md, "-o", page)
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert (data["a"], data["b"]) == (NAME, OTHER)
    for result in data["results"]:
        assert result["headline"].startswith((f"No difference shown between {OTHER}", OTHER))
        assert f"of {OTHER} is" in result["sentence"]
        assert f"that of {NAME}" in result["sentence"]
    for form in (md, page):
        assert NAME in plain(form.read_text())
        assert OTHER in plain(form.read_text())
    assert NAME in plain(passhat("compare", table_of_two, "--full").out)


def test_reports_gates_and_plans(passhat: Passhat, table_of_two: Path, tmp_path: Path) -> None:
    md, page, gate = tmp_path / "r.md", tmp_path / "r.html", tmp_path / "g.md"
    done = passhat("report", table_of_two, "--json", "-o", md, "-o", page)
    assert [run["name"] for run in json.loads(done.out)["runs"]] == [NAME, OTHER]
    for form in (md, page):
        assert NAME in plain(form.read_text())
        assert OTHER in plain(form.read_text())
    assert NAME in plain(passhat("report", table_of_two, "--full").out)
    done = passhat(
        *("gate", table_of_two, "pass^1 >= base - 0.1", "--run", OTHER),
        *("--against", table_of_two, "--base-run", NAME, "--json", "-o", gate),
    )
    data = json.loads(done.out)
    assert (data["name"], data["base"]) == (OTHER, NAME)
    assert OTHER in plain(gate.read_text())
    done = passhat("plan", table_of_two, "--run", NAME, "--half-width", "0.2")
    assert done.code == 0, done.err


def test_methods_are_facts_and_not_cut_out_of_a_sentence() -> None:
    outcomes = Outcomes.from_counts(4, [4, 3, 2, 1, 0, 4])
    (report,) = build_report([Run(NAME, "an agent; of. ours", outcomes)]).runs
    first = report.estimates[0]
    assert first.method == f"{first.estimator}; missing as failed, and as passed beside it; " + (
        first.interval_method
    )
    ways = dict(report.methods)
    assert first.estimator in ways.values()
    assert f"{first.interval_method} ({first.population})" in ways.values()


def test_a_stored_run_is_told_by_its_id_whatever_its_name() -> None:
    outcomes = Outcomes.from_counts(4, [1, 2])
    runs = [Run(NAME, "agent", outcomes, id=one) for one in ("3ed9", "82b7")]
    assert run_labels(runs) == ["agent 3ed9", "agent 82b7"]
