"""The report as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from passhat._display import number
from passhat.estimates import Estimate
from passhat.report.curve import AT, HAT, draw_curve
from passhat.report.view import Report, RunReport

__all__ = ["render_report"]

# Okabe and Ito's palette: told apart by people with any kind of colour vision.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "grey50"
_MOST_TASKS_SHOWN = 200


def render_report(report: Report, console: Console) -> str:
    """Every run, with a table over all of them first when there are several.

    The text has the colours and the width that the console would show.
    """
    with console.capture() as captured:
        if len(report.runs) > 1:
            console.print(_overview(report.runs))
        for run in report.runs:
            console.print(_section(run))
    return captured.get()


def _overview(runs: Sequence[RunReport]) -> RenderableType:
    shared = [e.metric for e in runs[0].estimates if all(run.find(e.metric) for run in runs)]
    ends = [word for word in shared if not word.startswith("delta")]
    chosen = (
        list(dict.fromkeys([*ends[:1], *_last(ends, "pass^"), *_last(ends, "pass@")])) or shared[:3]
    )
    table = _table("run", "tasks", "missing", *chosen)
    for run in runs:
        cells = [_with_interval(found) for word in chosen if (found := run.find(word))]
        outcomes = run.run.outcomes
        table.add_row(run.name, f"{len(outcomes):,}", f"{outcomes.total_missing:,}", *cells)
    return Group(Text(f"{len(runs)} runs", style="bold"), table, Text(""))


def _last(words: Sequence[str], prefix: str) -> list[str]:
    return [word for word in words if word.startswith(prefix)][-1:]


def _section(run: RunReport) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble((run.name, "bold"), ("   " + run.run.source, GREY)),
        Text(str(run.run.outcomes)),
        Text(""),
        Text(run.headline, style="italic"),
        Text(""),
        *_estimate_tables(run.estimates),
        *_curve(run),
    ]
    for value, estimates in run.slices.items():
        parts += [Text(f"{run.slice_label} = {value}", style="bold"), *_estimate_tables(estimates)]
    parts += [*_tasks(run), _facts(run), Text("")]
    return Group(*parts)


def _estimate_tables(estimates: Sequence[Estimate]) -> Iterator[RenderableType]:
    """pass^k, pass@k and delta^k side by side over k; other metrics below."""
    by_name = {found.metric: found for found in estimates}
    ks = [int(name[5:]) for name in by_name if name.startswith("pass^") and name[5:].isdigit()]
    rows = [k for k in ks if f"pass@{k}" in by_name]
    if rows:
        yield _over_k(rows, by_name)
    side_by_side = {f"{word}{k}" for k in rows for word in ("pass^", "pass@", "delta^")}
    others = [found for found in estimates if found.metric not in side_by_side]
    if others:
        table = _table("metric", "value", "interval", "tasks", "attempts")
        for found in others:
            table.add_row(
                found.metric,
                _value(found),
                found.interval_text(),
                f"{found.tasks:,}",
                f"{found.attempts:,}",
            )
        yield table


def _over_k(ks: Sequence[int], by_name: dict[str, Estimate]) -> RenderableType:
    deltas = [by_name.get(f"delta^{k}") for k in ks]
    with_delta = any(deltas)
    table = _table("k", "pass^k", "pass@k", *(("delta^k", "its bounds") if with_delta else ()))
    for k, delta in zip(ks, deltas, strict=True):
        cells = [_with_interval(by_name[f"pass^{k}"]), _with_interval(by_name[f"pass@{k}"])]
        if delta is not None and delta.bounds is not None:
            low, high = delta.bounds
            cells += [_with_interval(delta), f"{number(low)} to {number(high)}"]
        table.add_row(str(k), *cells)
    return table


def _value(found: Estimate) -> str:
    upper = found.value_if_passed
    if upper is None or upper == found.value:
        return number(found.value)
    low, high = sorted((found.value, upper))
    return f"{number(low)}–{number(high)}"


def _with_interval(found: Estimate) -> str:
    return _value(found) if found.low is None else f"{_value(found)} {found.interval_text()}"


def _curve(run: RunReport) -> Iterator[RenderableType]:
    if len(run.curve) < 2:
        return
    lines = Text("\n".join(draw_curve(run.curve)))
    lines.highlight_regex(HAT, BLUE)
    lines.highlight_regex(AT, ORANGE)
    legend = Text.assemble(
        (HAT, BLUE), " pass^k, all of k pass   ", (AT, ORANGE), " pass@k, any of k"
    )
    yield Padding(Group(lines, legend), (0, 0, 1, 1))


def _tasks(run: RunReport) -> Iterator[RenderableType]:
    if not run.tasks:
        return
    table = _table("task", "attempts", "passed", "missing")
    for row in run.tasks[:_MOST_TASKS_SHOWN]:
        table.add_row(row.task, row.dots, f"{row.c} of {row.n}", str(row.missing or ""))
    yield Text("Tasks, the most unsettled first", style="bold")
    yield table
    hidden = len(run.tasks) - _MOST_TASKS_SHOWN
    if hidden > 0:
        yield Text(f"and {hidden:,} more; --json lists all of them", style=GREY)


def _facts(run: RunReport) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("Missing", "\n".join([run.missing_text, *run.missing_effect_lines]))
    if run.run.failures_by_category:
        counts = run.run.failures_by_category.items()
        grid.add_row("Failures", ", ".join(f"{why} {count:,}" for why, count in counts))
    source = [str(check) for check in run.source_checks]
    for title, lines in (
        ("Source says", source),
        ("Notes", _all_notes(run)),
        ("Read as", run.run.reading),
    ):
        if lines:
            grid.add_row(title, "\n".join(f"· {line}" for line in lines))
    facts = " · ".join(f"{name} {value}" for name, value in run.protocol_lines)
    grid.add_row("Protocol", Text(facts, style=GREY))
    return grid


def _all_notes(run: RunReport) -> list[str]:
    own = [note for estimate in run.estimates for note in estimate.notes]
    return list(dict.fromkeys([*run.notes, *own]))


def _table(*header: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(header):
        text = index == 0 and name != "k"
        table.add_column(name, justify="left" if text else "right", overflow="fold")
    return table
