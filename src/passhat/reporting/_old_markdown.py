"""Reports, comparisons and gates as Markdown, for a pull request, a job summary or a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from passhat._display import percent, percent_interval
from passhat.reporting import comparison_view as view
from passhat.reporting.view import Report, RunReport
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.estimate import Estimate
from passhat.stats.gate import GateResult

__all__ = ["as_markdown", "code", "comparison_markdown", "escape", "gate_as_markdown", "table"]

_BACKTICKS = re.compile("`+")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINE_END = re.compile("[\r\n\x0b\x0c\x85\u2028\u2029]+")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, line by line, with every cell escaped; ends with an empty line."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(escape, row)) + " |"
    yield ""


def escape(text: str) -> str:
    """Keep a task id or a model name from being read as Markdown or HTML."""
    for sign in "\\`*_[]<|#~":
        text = text.replace(sign, f"\\{sign}")
    text = _ENTITY.sub(r"\\&", _LINE_END.sub(" ", text))
    return f"\\{text}" if text.startswith(">") else text  # elsewhere > is a sign like any other


def code(text: str) -> str:
    """Text as a code span, whatever backticks it has; nothing in it is read as Markdown."""
    flat = _LINE_END.sub(" ", text)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(flat)), default=0))
    # A space next to the fence keeps it apart from a backtick; a renderer removes it.
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"


def as_markdown(report: Report) -> str:
    """The whole report as one Markdown text."""
    return "\n".join(line for run in report.runs for line in _section(run)) + "\n"


def _section(run: RunReport) -> Iterator[str]:
    yield f"## {escape(run.name)}"
    yield ""
    yield f"{escape(str(run.run.outcomes))}; source {code(run.run.source)}"
    yield ""
    for warning in run.warnings:
        yield f"**Warning: {escape(warning)}.**"
        yield ""
    yield f"**{escape(run.headline)}**"
    yield ""
    yield from _estimates(run.estimates)
    for value, estimates in run.slices.items():
        yield f"### {escape(f'{run.slice_label} = {value}')}"
        yield ""
        yield from _estimates(estimates)
    yield f"- **missing**: {escape(run.missing_text)}"
    yield from (f"  - {escape(line)}" for line in run.missing_effect_lines)
    if run.run.failures_by_category:
        counts = run.run.failures_by_category.items()
        yield "- **failures**: " + ", ".join(f"{escape(why)} {count:,}" for why, count in counts)
    yield from (f"- **source says** {escape(str(check))}" for check in run.source_checks)
    yield from (f"- {escape(note)}" for note in run.notes)
    yield ""
    if run.tasks:
        rows = [
            (run.marked(row.task), row.dots, f"{row.c} of {row.n}", str(row.missing))
            for row in run.tasks
        ]
        yield from table(("task", "attempts", "passed", "missing"), rows)
    yield from table(("metrics", "how"), run.methods)
    yield from table(("protocol", ""), run.protocol_lines)
    if run.run.reading:
        yield "Read as: " + escape("; ".join(run.run.reading))
        yield ""


def _estimates(estimates: Sequence[Estimate]) -> Iterator[str]:
    """A row per metric, with both intervals side by side."""
    estimate_of = {(estimate.metric, estimate.about): estimate for estimate in estimates}
    level = next(
        (f"{100 * estimate.level:g}% " for estimate in estimates if estimate.level is not None), ""
    )
    range_of_values = any(
        estimate.value_if_passed not in (None, estimate.value) for estimate in estimates
    )
    header = ["metric", "value", f"{level}new tasks", f"{level}these tasks", "tasks", "attempts"]
    rows = []
    for name in dict.fromkeys(estimate.metric for estimate in estimates):
        new, again = estimate_of[name, "new tasks"], estimate_of[name, "these tasks"]
        bound = "" if new.bounds is None else f" (at most {percent(new.bounds[1], 1)})"
        row = [name, f"{percent(new.value, 1)}{bound}", _interval(new), _interval(again)]
        rows.append([*row, f"{new.tasks:,}", f"{new.attempts:,}"])
        if range_of_values:
            rows[-1].insert(2, percent(new.value_if_passed, 1))
    if range_of_values:
        header.insert(2, "if missing passed")
    yield from table(header, rows)


def _interval(estimate: Estimate) -> str:
    return percent_interval(estimate.low, estimate.high)


def comparison_markdown(comparison: Comparison | Comparisons) -> str:
    """Two runs, or three and more."""
    lines = _comparison(comparison) if isinstance(comparison, Comparison) else _ranking(comparison)
    return "\n".join(lines) + "\n"


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"## {escape(comparison.b)} (B) against {escape(comparison.a)} (A)"
    yield ""
    yield escape(comparison.pairing_text)
    yield ""
    for result in (*comparison.results, *comparison.differing):
        yield f"**{escape(result.sentence)}**"
        yield ""
    yield from table(view.RESULT_HEADER, view.result_rows(comparison.results))
    yield "Lifts are B minus A, in points."
    yield ""
    if comparison.slices:
        yield from table(view.SLICE_HEADER, view.slice_rows(comparison))
    for curve in comparison.curves:
        yield f"### {escape(curve.family)}: lift over k, all k at once"
        yield ""
        yield from table(view.CURVE_HEADER, view.curve_rows(curve))
    yield from (f"- **flips**: {escape(str(flip))}" for flip in comparison.flips)
    yield from (
        f"- **evidence**: {escape(str(result.method))}" for result in comparison.results[:1]
    )
    yield f"- **deployment value**: {escape(comparison.deployment_text)}"
    yield from (f"- **protocol**: {escape(line)}" for line in view.protocol_lines(comparison))
    yield from (f"- {escape(note)}" for note in comparison.notes)


def _ranking(comparisons: Comparisons) -> Iterator[str]:
    yield f"## {len(comparisons.names)} runs compared"
    yield ""
    yield escape(comparisons.pairing_text)
    yield ""
    yield from table(view.RANK_HEADER, view.rank_rows(comparisons))
    yield from table(view.PAIR_HEADER, view.pair_rows(comparisons))
    yield view.ranking_note(comparisons)
    yield ""
    yield from (f"- **protocol**: {escape(line)}" for line in view.ranking_lines(comparisons))


def gate_as_markdown(result: GateResult) -> str:
    """The gate as one Markdown section."""
    return "\n".join(_gate(result)) + "\n"


def _gate(result: GateResult) -> Iterator[str]:
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    yield f"## passhat gate: {escape(name)}"
    yield ""
    yield f"**{escape(result.headline)}**"
    yield ""
    rows = [
        (
            f"{rule.verdict.sign} {rule.outcome}",
            str(rule.rule),
            rule.evidence,
            str(rule.advice or ""),
        )
        for rule in result.results
    ]
    yield from table(("verdict", "rule", "evidence", "what next"), rows)
    notes = dict.fromkeys(
        [*(note for rule in result.results for note in rule.notes), *result.notes]
    )
    yield from (f"- {escape(note)}" for note in notes)
    if notes:
        yield ""
