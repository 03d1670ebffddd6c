"""Figures on failures by task, on the measures of attempts, and on the gain from more of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from passhat._display import counted, figure, percent
from passhat._serialize import to_data
from passhat.reporting.details import Width
from passhat.reporting.figures.base import MOST_RUNS, WIDTH, Figure, color_channel, labels_of
from passhat.reporting.figures.lines import Panel, Scale, panel
from passhat.reporting.figures.vega_lite import Row, Spec, field, layer, marks, stack
from passhat.reporting.measures import Measure, Quantiles
from passhat.reporting.view import RunReport

_ROW_HEIGHT = 22


def width(runs: Sequence[RunReport]) -> Figure | None:
    """How wide the interval would be with other numbers of tasks and attempts; the first run's."""
    details = runs[0].details
    if details is None or not details.widths or details.plan is None:
        return None
    word, task_count = details.plan.metric, len(runs[0].run.outcomes)
    by_n: dict[int, list[Width]] = {}
    for point in details.widths:
        by_n.setdefault(point.attempts, []).append(point)
    series = [f"n = {n:,}" for n in by_n][:MOST_RUNS]
    rows: list[Row] = [
        {
            "x": point.tasks,
            "series": f"n = {n:,}",
            "value": 100 * point.width,
            "tip": f"{counted(point.tasks, 'task')} x {counted(n, 'attempt')}: "
            f"{100 * point.width:.1f} points wide",
        }
        for n, points in by_n.items()
        for point in points
    ]
    ticks = tuple(float(point.tasks) for point in next(iter(by_n.values())))
    x = Scale("tasks", min(ticks) * 0.95, max(ticks) * 1.05, log=True, ticks=ticks, form=",d")
    top = max(float(str(row["value"])) for row in rows)
    y = Scale("width of the interval in points", 0, top * 1.08, form="d")
    who = f" ({labels_of(runs)[0]})" if len(runs) > 1 else ""
    return Figure(
        "width",
        f"More tasks or more attempts? {word}{who}",
        f"With the {counted(task_count, 'task')} of this run, {details.plan.attempts_text}.",
        f"Lines of the width of the interval of {word} over the number of tasks, on a doubling "
        "scale, one for each number of attempts per task n; by normal theory from the difficulty "
        "seen here. All fall with more tasks; more attempts lower them only a little.",
        panel(Panel(rows, series, x, y, height=240)),
        ("tasks", "attempts per task", "width in points"),
        tuple(
            (f"{point.tasks:,}", f"{point.attempts:,}", f"{100 * point.width:.1f}")
            for point in details.widths
        ),
    )


def failures(runs: Sequence[RunReport]) -> Figure | None:
    """Why attempts failed or have no verdict, as shares of all attempts."""
    labelled_runs = [
        (label, run)
        for label, run in zip(labels_of(runs), runs, strict=True)
        if run.run.failures_by_category or run.run.missing_by_reason
    ][:MOST_RUNS]
    if not labelled_runs:
        return None
    missing = {
        label: {f"missing: {why}": n for why, n in run.run.missing_by_reason.items()}
        for label, run in labelled_runs
    }
    counts = {
        label: Counter({**run.run.failures_by_category, **missing[label]})
        for label, run in labelled_runs
    }
    reasons = {why for by_reason in missing.values() for why in by_reason}
    attempts = {label: run.run.outcomes.attempts for label, run in labelled_runs}
    total = sum(counts.values(), Counter[str]())
    order = sorted(total, key=lambda why: (why in reasons, -total[why], why))
    labels = [label for label, _ in labelled_runs]
    rows: list[Row] = [
        {
            "why": why.replace("_", " "),
            "series": label,
            "share": counts[label][why] / attempts[label],
            "tip": f"{label}: {why.replace('_', ' ')}, {counts[label][why]:,} of "
            f"{counted(attempts[label], 'attempt')} "
            f"({percent(counts[label][why] / attempts[label])})",
        }
        for why in order
        for label in labels
    ]
    axis = {"format": ".0%", "tickCount": 5, "grid": True}
    bars = marks(
        rows,
        "bar",
        {"cornerRadiusEnd": 2},
        x=field("share:Q", title="share of all attempts", axis=axis),
        y=field(
            "why:N",
            sort=[why.replace("_", " ") for why in order],
            title=None,
            axis={"labelLimit": 190, "labelColor": "var(--ink)"},
            scale={"paddingInner": 0.3},
        ),
        yOffset=field("series:N", sort=labels),
        color=color_channel(labels),
        description="tip:N",
    )
    thickness = 1.2 if len(labels) == 1 else 0.85 * len(labels)
    height = max(60, _ROW_HEIGHT * len(order) * thickness)
    lead = order[0]
    return Figure(
        "failures",
        "Why attempts fail",
        "; ".join(
            f"{label}: {lead.replace('_', ' ')} in {counts[label][lead]:,} of "
            f"{counted(attempts[label], 'attempt')}"
            for label in labels
        )
        + ".",
        "Bars of the share of attempts that failed by category, and of those without a verdict by "
        "reason. " + "; ".join(str(row["tip"]) for row in rows) + ".",
        {**bars, "width": WIDTH - 60, "height": height},
        ("run", "category", "attempts", "share"),
        tuple(
            (label, why, f"{counts[label][why]:,}", percent(counts[label][why] / attempts[label]))
            for label in labels
            for why in order
        ),
    )


def distributions(runs: Sequence[RunReport]) -> Figure | None:
    """Seconds, steps, tokens and cost of attempts: middle half, nine tenths, and the median."""
    measured = [  # attempts without a verdict are of neither kind
        (label, [measure for measure in run.details.measures if measure.spread])
        for label, run in zip(labels_of(runs), runs, strict=True)
        if run.details is not None
    ]
    labelled_runs = [(label, group) for label, group in measured if group][:MOST_RUNS]
    if not labelled_runs:
        return None
    names = list(dict.fromkeys(measure.name for _, group in labelled_runs for measure in group))
    panels, table = [], []
    for name in names:
        measures = [
            (label, measure)
            for label, group in labelled_runs
            for measure in group
            if measure.name == name
        ]
        panels.append(_measure_panel(name, measures, [label for label, _ in labelled_runs]))
        table += [
            (
                label,
                name,
                part.verdict,
                f"{part.attempts:,}",
                *map(figure, (part.p5, part.p25, part.median, part.p75, part.p95)),
            )
            for label, measure in measures
            for part in measure.spread
        ]
    means = "; ".join(
        f"{label}: {', '.join(f'{figure(measure.mean)} {measure.name}' for measure in group)}"
        for label, group in labelled_runs
    )
    return Figure(
        "distributions",
        "What an attempt takes",
        f"On average per attempt, {means}.",
        "For attempts that passed and that failed: a thin line from the 5th to the 95th "
        "percentile, a thick one over the middle half, a point at the median. On average per "
        f"attempt, {means}.",
        stack(panels),
        ("run", "measure", "attempts that", "count", "5%", "25%", "median", "75%", "95%"),
        tuple(table),
    )


def _measure_panel(
    name: str, measures: Sequence[tuple[str, Measure]], labels: Sequence[str]
) -> Spec:
    several = len(labels) > 1
    rows: list[Row] = [
        {
            **to_data(part),
            "row": f"{label}, {part.verdict}" if several else part.verdict,
            "series": label,
            "tip": f"{label}, {part.verdict}: median {figure(part.median)} {name}, middle "
            f"half {figure(part.p25)} to {figure(part.p75)}, nine tenths "
            f"{figure(part.p5)} to {figure(part.p95)}",
        }
        for label, measure in measures
        for part in measure.spread
    ]
    axis = {"labelLimit": 180, "labelColor": "var(--ink)"}
    y = field("row:N", sort=[str(row["row"]) for row in rows], title=None, axis=axis)
    form = "~s" if _large(measures) else "~g"

    def x(column: str) -> Spec:
        axis = {"tickCount": 5, "grid": True, "format": form}
        return field(f"{column}:Q", title=None, axis=axis, scale={"zero": True})

    thin: Spec = {"strokeWidth": 1.5, "aria": False}
    thick: Spec = {"height": 9, "opacity": 0.45, "aria": False}
    dot: Spec = {"filled": True, "size": 60, "opacity": 1}
    color = color_channel(labels)
    layers = [
        marks(rows, "rule", thin, x=x("p5"), x2="p95:Q", y=y, color=color),
        marks(rows, "bar", thick, x=x("p25"), x2="p75:Q", y=y, color=color),
        marks(rows, "point", dot, x=x("median"), y=y, color=color, description="tip:N"),
    ]
    return layer(layers, title=name, width=WIDTH - 40, height=_ROW_HEIGHT * len(rows))


def _large(measures: Sequence[tuple[str, Measure]]) -> bool:
    parts: list[Quantiles] = [part for _, measure in measures for part in measure.spread]
    return max(part.p95 for part in parts) >= 10_000
