"""The report as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from passhat._display import number
from passhat.report.curve import AT, HAT, draw_curve
from passhat.report.tables import captured, facts, plain, plain_table
from passhat.report.view import Report, RunReport
from passhat.stats.estimate import Estimate

__all__ = ["render_report"]

# Okabe and Ito's palette: told apart by people with any kind of colour vision.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "grey50"
_MOST_TASKS_SHOWN = 200
_QUESTIONS = (
    ("new tasks", "On tasks like these: {level}interval for new tasks"),
    ("re-runs", "On exactly these tasks again: {level}interval for re-runs"),
)


def render_report(report: Report, console: Console) -> str:
    """Every run, with a table over all of them first when there are several."""
    return captured(console, lambda: _parts(report))


def _parts(report: Report) -> Iterator[RenderableType]:
    if len(report.runs) > 1:
        yield from _overview(report.runs)
    for run in report.runs:
        yield from _section(run)


def _overview(runs: Sequence[RunReport]) -> Iterator[RenderableType]:
    listed = dict.fromkeys(found.metric for found in runs[0].estimates)
    shared = [word for word in listed if all(run.find(word) for run in runs)]
    ends = [word for word in shared if not word.startswith("delta")]
    chosen = [*ends[:1], *_last(ends, "pass^"), *_last(ends, "pass@")] or shared[:3]
    chosen = list(dict.fromkeys(chosen))
    rows = []
    for run in runs:
        outcomes = run.run.outcomes
        found = [one for word in chosen if (one := run.find(word))]
        cells = [f"{_value(one)}\n{one.interval_text()}" for one in found]
        rows.append([run.name, f"{len(outcomes):,}", f"{outcomes.total_missing:,}", *cells])
    yield Text(f"{len(runs)} runs", style="bold")
    yield plain_table(("run", "tasks", "missing", *chosen), rows)
    yield Text("")


def _last(words: Sequence[str], prefix: str) -> list[str]:
    return [word for word in words if word.startswith(prefix)][-1:]


def _section(run: RunReport) -> Iterator[RenderableType]:
    yield Text.assemble(plain(run.name, "bold"), "   ", plain(run.run.source, GREY))
    yield plain(str(run.run.outcomes))
    yield Text("")
    yield plain(run.headline, "italic")
    yield Text("")
    yield from _both_questions(run.estimates)
    yield from _curve(run)
    for value, estimates in run.slices.items():
        yield plain(f"{run.slice_label} = {value}, interval for new tasks", "bold")
        yield from _estimate_tables(estimates)
    yield from _tasks(run)
    yield facts(_facts(run))
    yield Text("")


def _both_questions(estimates: Sequence[Estimate]) -> Iterator[RenderableType]:
    """The estimates about new tasks, then those about re-runs, each under its own name."""
    for about, title in _QUESTIONS:
        level = next((one.level for one in estimates if one.level is not None), None)
        yield Text(title.format(level="" if level is None else f"{level:.0%} "), style="bold")
        yield from _estimate_tables(estimates, about)
        yield Text("")
    if any(map(_moves, estimates)):
        yield Text(
            "* missing attempts count as failed; the interval reaches to both extremes", style=GREY
        )


def _estimate_tables(
    estimates: Sequence[Estimate], about: str = "new tasks"
) -> Iterator[RenderableType]:
    """pass^k, pass@k and delta^k side by side over k; other metrics below."""
    asked = {found.metric: found for found in estimates if found.about == about}
    ks = [int(name[5:]) for name in asked if name.startswith("pass^")]
    rows = [k for k in ks if f"pass@{k}" in asked]
    if rows:
        yield _over_k(rows, asked)
    side_by_side = {f"{word}{k}" for k in rows for word in ("pass^", "pass@", "delta^")}
    others = [found for name, found in asked.items() if name not in side_by_side]
    if others:
        yield _one_by_one(others)


def _over_k(ks: Sequence[int], by_name: dict[str, Estimate]) -> RenderableType:
    rows = []
    for k in ks:
        row = [str(k), *(_with_interval(by_name[f"{word}{k}"]) for word in ("pass^", "pass@"))]
        delta = by_name.get(f"delta^{k}")
        if delta is not None and delta.bounds is not None:
            row += [_with_interval(delta), number(delta.bounds[1])]
        rows.append(row)
    header = ("k", "pass^k", "pass@k", "delta^k", "at most")
    return plain_table(header[: max(map(len, rows))], rows, left=())


def _one_by_one(estimates: Sequence[Estimate]) -> RenderableType:
    rows = [
        [one.metric, _value(one), one.interval_text(), f"{one.tasks:,}", f"{one.attempts:,}"]
        for one in estimates
    ]
    return plain_table(("metric", "value", "interval", "tasks", "attempts"), rows)


def _value(found: Estimate) -> str:
    """The value, with a star where it would be another one had the missing attempts passed."""
    return number(found.value) + ("*" if _moves(found) else "")


def _moves(found: Estimate) -> bool:
    return found.value_if_passed not in (None, found.value)


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
    yield Text("Tasks, the most unsettled first", style="bold")
    yield plain_table(
        ("task", "attempts", "passed", "missing"),
        (
            (run.marked(row.task), row.dots, f"{row.c} of {row.n}", str(row.missing or ""))
            for row in run.tasks[:_MOST_TASKS_SHOWN]
        ),
        left=(0, 1),
    )
    hidden = len(run.tasks) - _MOST_TASKS_SHOWN
    if hidden > 0:
        yield Text(f"and {hidden:,} more; --json lists all of them", style=GREY)


def _facts(run: RunReport) -> Iterator[tuple[str, str]]:
    for line in (run.missing_text, *run.missing_effect_lines):
        yield "Missing", line
    if run.run.failures_by_category:
        counts = run.run.failures_by_category.items()
        yield "Failures", ", ".join(f"{why} {count:,}" for why, count in counts)
    for check in run.source_checks:
        yield "Source says", f"· {check}"
    own = [note for estimate in run.estimates for note in estimate.notes]
    for note in dict.fromkeys([*run.notes, *own]):
        yield "Notes", f"· {note}"
    for line in run.run.reading:
        yield "Read as", f"· {line}"
    for what, how in run.methods:
        yield "Method", f"· {what}: {how}"
    yield "Protocol", " · ".join(f"{name} {value}" for name, value in run.protocol_lines)
