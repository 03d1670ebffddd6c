"""Figures that set agents side by side: the forest plot, and the change task by task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passhat._display import counted, number
from passhat.comparison.claims import points
from passhat.estimates import Estimate, metric
from passhat.report.changes import TaskChange
from passhat.report.figures.base import (
    COLOURS,
    MOST_RUNS,
    SHAPES,
    WIDTH,
    Figure,
    Row,
    chart_of,
    joined,
    labels_of,
)
from passhat.report.view import RunReport

__all__ = ["flips", "forest", "headline_words"]

_ROW_HEIGHT = 26
_MOST_BARS = 160
"""Tasks drawn as bars; more become steps, so that the file stays small."""
_MOST_ROWS = 40


def headline_words(runs: Sequence[RunReport]) -> list[str]:
    """pass^1, and the largest k at which every run has both pass^k and pass@k."""
    first = list(dict.fromkeys(found.metric for found in runs[0].estimates))
    shared = [word for word in first if all(run.find(word) for run in runs)]
    ends = [
        max(same, key=lambda word: metric(word).k)
        for sign in "^@"
        if (same := [word for word in shared if word.startswith(f"pass{sign}")])
    ]
    lead = ["pass^1"] if "pass^1" in shared else []
    chosen = list(dict.fromkeys([*lead, *(word for word in ends if word != "pass@1")]))
    return chosen or shared[:3]


def forest(runs: Sequence[RunReport]) -> Figure | None:
    """Every agent's headline metrics with their intervals, one below the other."""
    words, labels = headline_words(runs), labels_of(runs)
    found = {word: [run.find(word) for run in runs] for word in words}
    panels = [
        _forest_panel(word, labels, estimates, last=word == words[-1])
        for word, estimates in found.items()
    ]
    if not panels:
        return None
    lead = words[0]
    best = max(range(len(runs)), key=lambda i: _value(found[lead][i]))
    level = next((one.level for one in runs[0].estimates if one.level is not None), None)
    said = "" if level is None else f" The lines are {level:.0%} intervals for new tasks, each run "
    tail = "by itself; whether one run beats another is a question for passhat compare."
    return Figure(
        "forest",
        "The runs side by side",
        f"{labels[best]} has the highest {lead}, {number(_value(found[lead][best]))}."
        + (f"{said}{tail}" if said else ""),
        "Points with intervals for every run, one panel for each of "
        + ", ".join(words)
        + ". "
        + "; ".join(
            f"{label}: {one.metric} = {number(one.value)} {one.interval_text()}"
            for word in words
            for label, one in zip(labels, found[word], strict=True)
            if one is not None
        )
        + ".",
        joined(panels),
        ("run", *(cell for word in words for cell in (word, "interval"))),
        tuple(
            (
                label,
                *(
                    cell
                    for word in words
                    for one in (found[word][i],)
                    for cell in (
                        number(one.value if one else None),
                        one.interval_text() if one else "–",
                    )
                ),
            )
            for i, label in enumerate(labels)
        ),
    )


def _value(found: Estimate | None) -> float:
    return -1.0 if found is None else found.value


def _forest_panel(
    word: str, labels: Sequence[str], found: Sequence[Estimate | None], *, last: bool
) -> Any:
    import altair as alt

    rows: list[Row] = [
        {
            "run": label,
            "value": one.value,
            "low": one.low if one.low is not None else one.value,
            "high": one.high if one.high is not None else one.value,
            "tip": f"{label}: {one.metric} = {number(one.value)} {one.interval_text()}",
        }
        for label, one in zip(labels, found, strict=True)
        if one is not None
    ]
    base = chart_of(rows)
    axis = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".0%", grid=True, labels=last)
    scale = alt.Scale(domain=[0, 1], nice=False)
    y = alt.Y("run:N", sort=list(labels), title=None, axis=alt.Axis(labelLimit=170))
    many = len(labels) > MOST_RUNS
    colours = ["var(--c1)"] * len(labels) if many else list(COLOURS[: len(labels)])
    shapes = ["circle"] * len(labels) if many else list(SHAPES[: len(labels)])
    colour = alt.Color("run:N", scale=alt.Scale(domain=list(labels), range=colours), legend=None)
    shape = alt.Shape("run:N", scale=alt.Scale(domain=list(labels), range=shapes), legend=None)
    rules = base.mark_rule(strokeWidth=2.5, aria=False).encode(
        x=alt.X("low:Q", scale=scale, axis=axis, title=None), x2="high:Q", y=y, color=colour
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("value:Q", scale=scale, axis=axis, title=None),
        y=y,
        color=colour,
        shape=shape,
        description="tip:N",
    )
    return alt.LayerChart(
        layer=[rules, dots], title=word, width=WIDTH - 40, height=_ROW_HEIGHT * len(rows)
    )


def flips(changes: Sequence[TaskChange], word: str, names: tuple[str, str]) -> Figure | None:
    """The change on every task, the largest gain first; a mark where the task flipped."""
    if not changes:
        return None
    import altair as alt

    rows: list[Row] = [
        {
            "rank": rank,
            "change": 100 * one.change,
            "side": "better" if one.change > 0 else "worse",
            "flip": one.flip,
            "beyond": 100 * one.change + (7 if one.change > 0 else -7),
            "tip": f"{one.task}: {number(one.a)} to {number(one.b)} "
            f"({points(one.change)} points)" + (f", {one.flip}" if one.flip else ""),
        }
        for rank, one in enumerate(changes, 1)
    ]
    few = len(rows) <= _MOST_BARS
    x = alt.X(
        "rank:Q",
        title="tasks, the largest gain first",
        scale=alt.Scale(domain=[0.4, len(rows) + 0.6], nice=False),
        axis=alt.Axis(tickMinStep=1, grid=False, format=",d", tickCount=6),
    )
    y = alt.Y(
        "change:Q",
        title="change in points",
        scale=alt.Scale(domain=[-112, 112], nice=False),
        axis=alt.Axis(
            values=[-100, -50, 0, 50, 100],
            labelExpr="datum.value > 0 ? '+' + datum.value : datum.value",
        ),
    )
    colour = alt.Color(
        "side:N",
        scale=alt.Scale(domain=["better", "worse"], range=["var(--c1)", "var(--c2)"]),
        legend=None,
    )
    base = chart_of(rows)
    zero = chart_of([{"change": 0}]).mark_rule(color="var(--ink)", opacity=0.6, aria=False)
    if few:
        bars = base.mark_bar(width=max(1.5, 0.72 * WIDTH / len(rows)))
        layers = [zero.encode(y=y), bars.encode(x=x, y=y, color=colour, description="tip:N")]
        marked = chart_of([row for row in rows if row["flip"]])
        shape = alt.Shape(
            "flip:N",
            scale=alt.Scale(domain=["won", "lost"], range=["triangle-up", "triangle-down"]),
            legend=None,
        )
        marks = marked.mark_point(filled=True, size=40, opacity=1, aria=False)
        above = alt.Y("beyond:Q", title="change in points")
        layers.append(marks.encode(x=x, y=above, shape=shape, color=alt.value("var(--ink)")))
    else:
        steps = base.mark_area(interpolate="step", opacity=0.85, aria=False)
        layers = [zero.encode(y=y), steps.encode(x=x, y=y, color=colour)]
    won, lost = (sum(one.flip == way for one in changes) for way in ("won", "lost"))
    up, down = sum(one.change > 0 for one in changes), sum(one.change < 0 for one in changes)
    return Figure(
        "flips",
        f"The change on every task, {word}",
        f"{names[1]} is better on {counted(up, 'task')} and worse on {down:,}; "
        f"{len(changes) - up - down:,} are the same. {won:,} flipped from mostly failing to mostly "
        f"passing, {lost:,} the other way.",
        f"Bars of the change in {word} from {names[0]} to {names[1]}, one for each task, sorted "
        "from the largest gain to the largest loss. Triangles mark tasks that flipped.",
        alt.LayerChart(layer=layers, width=WIDTH + 60, height=230),
        ("task", names[0], names[1], "change in points", "flip"),
        tuple(
            (one.task, number(one.a), number(one.b), points(one.change), one.flip)
            for one in _extremes(changes)
        ),
    )


def _extremes(changes: Sequence[TaskChange]) -> list[TaskChange]:
    """All of them, or the largest gains and losses; the page lists every task below."""
    if len(changes) <= _MOST_ROWS:
        return list(changes)
    half = _MOST_ROWS // 2
    return [*changes[:half], *changes[-half:]]
