"""The view model: what is in a report, and that every form shows the same numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from passhat import Outcomes, Run, estimate, read
from passhat._serialize import as_json
from passhat.errors import InvalidValue
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.data import as_csv
from passhat.reporting.documents.report import report_document
from passhat.reporting.markdown import render_markdown
from passhat.reporting.terminal import render_terminal
from passhat.reporting.view import Report, estimate_text
from passhat.stats.terms import Terms


def _run(outcomes: Outcomes) -> Run:
    return Run("mine", "agent", outcomes)


def as_text(report: Report) -> str:
    return render_terminal(report_document(report), _wide())


def as_markdown(report: Report) -> str:
    return render_markdown(report_document(report))


def _wide() -> Console:
    return Console(width=200, color_system=None)


def test_the_recommended_set() -> None:
    report = build_report([_run(Outcomes.from_counts(8, [1, 5, 8]))])
    (run,) = report.runs
    words = [
        *["pass^1", "pass^2", "pass^4", "pass^8"],
        *["pass@1", "pass@2", "pass@4", "pass@8"],
        *["delta^2", "delta^4", "delta^8"],
    ]
    assert [(found.metric.name, found.population) for found in run.estimates] == [
        (word, about) for about in ("new tasks", "these tasks") for word in words
    ]
    assert [point.k for point in run.curve] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_ks_and_metrics() -> None:
    run = _run(Outcomes.from_counts(8, [1, 5, 8]))

    def words(**options: object) -> list[str]:
        report = build_report([run], ReportOptions(**options))  # type: ignore[arg-type]
        return [
            found.metric.name
            for found in report.runs[0].estimates
            if found.population == "new tasks"
        ]

    assert words(metrics=("gpass@8:0.5", "pass^3", "pass^3")) == ["gpass@8:0.5", "pass^3"]
    assert words(ks=(2,)) == ["pass^1", "pass^2", "pass@2", "delta^2"]
    assert words(ks=(1,), metrics=("rate",)) == ["pass^1", "pass@1", "rate"]


def test_every_form_shows_what_python_computes() -> None:
    runs = read("example:helpdesk")
    report = build_report(runs, ReportOptions(by="band"))
    text = as_text(report)
    markdown = as_markdown(report)
    data = json.loads(as_json(report))
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))
    for run, shown in zip(runs, data["runs"], strict=True):
        for found in shown["estimates"]:
            own = estimate(run.outcomes, found["metric"], about=found["about"])
            assert found == own.to_dict()
            assert estimate_text(own) in text
            assert f"| {estimate_text(own)} |" in markdown
            (row,) = (
                r for r in rows
                if (r["run"], r["slice"]) == (run.name, "")
                if (r["metric"], r["about"]) == (own.metric.name, own.population)
            )  # fmt: skip
            assert float(row["value"]) == own.value
        for value, part in run.outcomes.by("band"):
            for found in shown["slices"][value]:
                own = estimate(part, found["metric"], about=found["about"])
                assert found == own.to_dict()


def test_the_schema() -> None:
    data = build_report(read("example:helpdesk"), ReportOptions(by="band")).to_dict()
    assert data["schema"] == "passhat.report/1"
    run = data["runs"][0]
    promised = {
        *("name", "source", "tasks", "attempts", "scored", "missing", "missing_by_reason"),
        *("missing_policy", "protocol", "source_says", "estimates", "slices", "notes"),
    }
    assert promised <= set(run)
    estimate_keys = {
        *("metric", "value", "value_if_passed", "low", "high", "level", "about", "method"),
        *("tasks", "attempts", "notes"),
    }
    assert all(estimate_keys <= set(found) for found in run["estimates"])
    assert set(run["slices"]) == {"easy", "medium", "hard"}
    assert run["attempts"] == run["scored"] + run["missing"]
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize("form", ["terminal", "markdown", "json", "csv"])
def test_what_a_number_rests_on_stands_in_every_form(form: str) -> None:
    report = build_report(read("example:helpdesk"))
    text = {
        "terminal": lambda: as_text(report),
        "markdown": lambda: as_markdown(report),
        "json": lambda: as_json(report),
        "csv": lambda: as_csv(report),
    }[form]()
    promised = report.runs[0].protocol
    for fact in (
        "8 attempts",
        "0.7",
        "bound",
        promised.digest,
        "C(n,k)" if form != "terminal" else "unbiased",
    ):
        assert fact in text, fact


def test_missing_attempts_are_counted_explained_and_weighed(table: Callable[..., Path]) -> None:
    path = table("task,trial,success,failure\na,0,1,\na,1,,rate_limit\nb,0,0,\nb,1,1,\n")
    report = build_report(read(path))
    (run,) = report.runs
    assert run.missing_text == "1 attempt of 4 (25.0%): rate_limit 1"
    assert run.missing_effect["pass^1"] == {"as failed": 0.5, "left out": 0.75, "as passed": 0.75}
    text = as_text(report)
    assert "rate_limit 1" in text
    assert "pass^1: as failed 50.0%, left out 75.0%, as passed 75.0%" in text
    assert "50 to 75% (" in text
    assert "Where a value is a range, it goes over all ways to fill in missing attempts" in text


def test_tasks_come_most_unsettled_first_with_dots(table: Callable[..., Path]) -> None:
    rows = {"sure": "1111", "never": "0000", "coin": "1001", "lost": "10--"}
    text = "".join(
        f"{task},{i},{'' if x == '-' else x}\n"
        for task, row in rows.items()
        for i, x in enumerate(row)
    )
    report = build_report(
        read(table("task,trial,success\n" + text)), ReportOptions(with_tasks=True)
    )
    found = [(row.task, row.dots) for row in report.runs[0].tasks]
    assert found == [("lost", "●○··"), ("coin", "●○○●"), ("sure", "●●●●"), ("never", "○○○○")]
    assert "●○··" in as_text(report)
    assert "●○··" in as_markdown(report)


def test_looking_at_several_slices_is_said() -> None:
    report = build_report(read("example:helpdesk"), ReportOptions(by="band"))
    assert any("3 slices of 'band' were looked at" in note for note in report.runs[0].notes)


def test_names_cannot_break_markdown_or_the_terminal() -> None:
    run = Run("a|b <script> [bold]x[/bold] `c`", "agent", Outcomes.from_counts(2, [1]))
    report = build_report([run])
    markdown = as_markdown(report)
    assert "## a\\|b \\<script> \\[bold\\]x\\[/bold\\] \\`c\\`" in markdown
    assert "[bold]x[/bold]" in as_text(report)


def test_control_characters_never_reach_the_terminal(table: Callable[..., Path]) -> None:
    # A sequence that colors is left out when the table is read; others are not.
    path = table("model,task,trial,success\n\x1b[31m\x1b=red,\x1b7title\x07,0,1\nother,t,0,1\n")
    report = build_report(read(path), ReportOptions(with_tasks=True))
    text = as_text(report)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\N{REPLACEMENT CHARACTER}=red" in text


def test_tasks_without_a_verdict_under_exclude() -> None:
    run = _run(Outcomes.from_counts([0, 4], [0, 2], ["lost", "kept"], missing=[2, 0]))
    with pytest.raises(InvalidValue, match=r"no attempt with a verdict \(lost\).*--drop-short"):
        build_report([run], ReportOptions(terms=Terms.from_options({"missing": "exclude"})))
    terms = Terms.from_options({"missing": "exclude", "drop_short": True})
    report = build_report([run], ReportOptions(terms=terms))
    assert report.runs[0].estimates[0].tasks == 1


@pytest.mark.parametrize(
    ("c", "shown"), [(1, "0.01%"), (0, "0%"), (9_999, "99.99%"), (10_000, "100%")]
)
def test_nothing_is_called_never_or_always_that_is_not(c: int, shown: str) -> None:
    outcomes = Outcomes.from_counts([10_000, 10_000, 10_000], [c, c, c])
    report = build_report([_run(outcomes)], ReportOptions(ks=(1,)))
    assert report.runs[0].headline.startswith(f"{shown} of single attempts pass (")
