"""The report as Markdown, for a pull request or a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat._display import number
from passhat.estimates import Estimate
from passhat.report.view import Report, RunReport

__all__ = ["as_markdown"]


def as_markdown(report: Report) -> str:
    """The whole report as one Markdown text."""
    return "\n".join(line for run in report.runs for line in _section(run)) + "\n"


def _section(run: RunReport) -> Iterator[str]:
    yield f"## {_escape(run.name)}"
    yield ""
    yield f"{_escape(str(run.run.outcomes))}; source `{run.run.source}`"
    yield ""
    yield f"**{_escape(run.headline)}**"
    yield ""
    yield from _estimates(run.estimates)
    for value, estimates in run.slices.items():
        yield f"### {_escape(f'{run.slice_label} = {value}')}"
        yield ""
        yield from _estimates(estimates)
    yield f"- **missing**: {_escape(run.missing_text)}"
    yield from (f"  - {_escape(line)}" for line in run.missing_effect_lines)
    if run.run.failures_by_category:
        counts = run.run.failures_by_category.items()
        yield "- **failures**: " + ", ".join(f"{_escape(why)} {count:,}" for why, count in counts)
    yield from (f"- **source says** {_escape(str(check))}" for check in run.source_checks)
    yield from (f"- {_escape(note)}" for note in run.notes)
    yield ""
    if run.tasks:
        rows = [(row.task, row.dots, f"{row.c} of {row.n}", str(row.missing)) for row in run.tasks]
        yield from _table(("task", "attempts", "passed", "missing"), rows)
    yield from _table(("protocol", ""), run.protocol_lines)
    if run.run.reading:
        yield "Read as: " + _escape("; ".join(run.run.reading))
        yield ""


def _estimates(estimates: Sequence[Estimate]) -> Iterator[str]:
    header = ("metric", "value", "if missing passed", "interval", "tasks", "attempts", "method")
    rows = [
        (
            found.metric,
            number(found.value),
            number(found.value_if_passed),
            found.interval_text(),
            f"{found.tasks:,}",
            f"{found.attempts:,}",
            "; ".join((found.method, *found.notes)),
        )
        for found in estimates
    ]
    yield from _table(header, rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(_escape, row)) + " |"
    yield ""


def _escape(text: str) -> str:
    """Keep a task id or a model name from being read as Markdown or HTML."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")
