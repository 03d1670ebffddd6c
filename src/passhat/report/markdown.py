"""The report as Markdown, for a pull request or a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat._display import number
from passhat.report.markdown_text import escape as _escape
from passhat.report.markdown_text import table as _table
from passhat.report.view import Report, RunReport
from passhat.stats.estimate import Estimate

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
        rows = [
            (run.marked(row.task), row.dots, f"{row.c} of {row.n}", str(row.missing))
            for row in run.tasks
        ]
        yield from _table(("task", "attempts", "passed", "missing"), rows)
    yield from _table(("metrics", "how"), run.methods)
    yield from _table(("protocol", ""), run.protocol_lines)
    if run.run.reading:
        yield "Read as: " + _escape("; ".join(run.run.reading))
        yield ""


def _estimates(estimates: Sequence[Estimate]) -> Iterator[str]:
    """One row per metric, with both intervals side by side."""
    found = {(one.metric, one.about): one for one in estimates}
    level = next((f"{one.level:.0%} " for one in estimates if one.level is not None), "")
    range_of_values = any(one.value_if_passed not in (None, one.value) for one in estimates)
    header = ["metric", "value", f"{level}new tasks", f"{level}re-runs", "tasks", "attempts"]
    rows = []
    for name in dict.fromkeys(one.metric for one in estimates):
        new, again = found[name, "new tasks"], found[name, "re-runs"]
        bound = "" if new.bounds is None else f" (at most {number(new.bounds[1])})"
        row = [name, f"{number(new.value)}{bound}", new.interval_text(), again.interval_text()]
        rows.append([*row, f"{new.tasks:,}", f"{new.attempts:,}"])
        if range_of_values:
            rows[-1].insert(2, number(new.value_if_passed))
    if range_of_values:
        header.insert(2, "if missing passed")
    yield from _table(header, rows)
