"""Figures of agents: side by side, task by task, and over the runs of their history."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from passhat._display import counted, number, percent_interval
from passhat.reporting.figures.base import (
    COLORS,
    MOST_RUNS,
    SHAPES,
    WIDTH,
    Figure,
    estimate_tip,
    labels_of,
)
from passhat.reporting.figures.lines import Panel, Scale, panel
from passhat.reporting.figures.vega_lite import Row, Spec, constant, field, layer, marks, stack
from passhat.reporting.task_changes import TaskChange
from passhat.reporting.view import RunReport, populations_text
from passhat.stats.compare.claims import points
from passhat.stats.estimate import Estimate
from passhat.stats.estimate.metrics import PassAt, PassHat

if TYPE_CHECKING:
    from passhat.reporting.history import History

_ROW_HEIGHT = 26
_MOST_BARS = 160
"""Tasks drawn as bars; more become steps, so that the file stays small."""
_MOST_ROWS = 40
_BADGE = 20
_CHARACTER = 6.6
"""The width of a character of 11 pixels in the badge's fonts, about."""
_PADDING = 10


def headline_words(runs: Sequence[RunReport]) -> list[str]:
    """pass^1, and the largest k at which every run has both pass^k and pass@k."""
    first = list(dict.fromkeys(estimate.metric for estimate in runs[0].estimates))
    shared = [word for word in first if all(run.find(word) for run in runs)]
    ends = [
        max(same, key=lambda name: name.k)
        for kind in (PassHat, PassAt)
        if (same := [name for name in shared if isinstance(name, kind)])
    ]
    lead = [PassHat(1)] if PassHat(1) in shared else []
    names = list(dict.fromkeys([*lead, *(name for name in ends if name != PassAt(1))]))
    return [str(name) for name in names or shared[:3]]


def forest(runs: Sequence[RunReport]) -> Figure | None:
    """Every agent's headline metrics with their intervals, one below the other."""
    words, labels = headline_words(runs), labels_of(runs)
    by_word = {word: [run.find(word) for run in runs] for word in words}
    panels = [
        _forest_panel(word, labels, estimates, last=word == words[-1])
        for word, estimates in by_word.items()
    ]
    if not panels:
        return None
    lead, level, intervals = words[0], runs[0].level, ""
    best = max(range(len(runs)), key=lambda i: _value(by_word[lead][i]))
    if level is not None:
        about = populations_text(each for entries in by_word.values() for each in entries)
        intervals = (
            f" The lines are {100 * level:g}% intervals for {about}, each run by itself; whether "
            "one run beats another is a question for passhat compare."
        )
    return Figure(
        "forest",
        "The runs side by side",
        f"{labels[best]} has the highest {lead}, {number(_value(by_word[lead][best]))}.{intervals}",
        "Points with intervals for every run, one panel for each of "
        + ", ".join(words)
        + ". "
        + "; ".join(
            estimate_tip(estimate, label)
            for word in words
            for label, estimate in zip(labels, by_word[word], strict=True)
            if estimate is not None
        )
        + ".",
        stack(panels),
        ("run", *(cell for word in words for cell in (word, "interval"))),
        tuple(
            (
                label,
                *(cell for word in words for cell in _cells(by_word[word][i])),
            )
            for i, label in enumerate(labels)
        ),
    )


def _cells(estimate: Estimate | None) -> tuple[str, str]:
    return ("–", "–") if estimate is None else (number(estimate.value), estimate.interval_text())


def _value(estimate: Estimate | None) -> float:
    return -1.0 if estimate is None else estimate.value


def _forest_panel(
    word: str, labels: Sequence[str], estimates: Sequence[Estimate | None], *, last: bool
) -> Spec:
    rows: list[Row] = [
        {
            "run": label,
            "value": estimate.value,
            "low": estimate.low if estimate.low is not None else estimate.value,
            "high": estimate.high if estimate.high is not None else estimate.value,
            "tip": estimate_tip(estimate, label),
        }
        for label, estimate in zip(labels, estimates, strict=True)
        if estimate is not None
    ]
    ticks = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%", "grid": True, "labels": last}
    along: Spec = {"scale": {"domain": [0, 1], "nice": False}, "axis": ticks, "title": None}
    y = field("run:N", sort=list(labels), title=None, axis={"labelLimit": 170})
    many = len(labels) > MOST_RUNS
    colors = ["var(--c1)"] * len(labels) if many else list(COLORS[: len(labels)])
    shapes = ["circle"] * len(labels) if many else list(SHAPES[: len(labels)])
    color = field("run:N", scale={"domain": list(labels), "range": colors}, legend=None)
    shape = field("run:N", scale={"domain": list(labels), "range": shapes}, legend=None)
    line: Spec = {"strokeWidth": 2.5, "aria": False}
    rules = marks(rows, "rule", line, x=field("low:Q", **along), x2="high:Q", y=y, color=color)
    dot: Spec = {"filled": True, "size": 90, "opacity": 1}
    at = field("value:Q", **along)
    dots = marks(rows, "point", dot, x=at, y=y, color=color, shape=shape, description="tip:N")
    return layer([rules, dots], title=word, width=WIDTH - 40, height=_ROW_HEIGHT * len(rows))


def flips(changes: Sequence[TaskChange], word: str, names: tuple[str, str]) -> Figure | None:
    """The change on every task, the largest gain first; a mark where the task flipped."""
    if not changes:
        return None
    rows: list[Row] = [
        {
            "rank": rank,
            "change": 100 * change.change,
            "side": "better" if change.change > 0 else "worse",
            "flip": change.flip,
            "beyond": 100 * change.change + (7 if change.change > 0 else -7),
            "tip": f"{change.task}: {number(change.a)} to {number(change.b)} "
            f"({points(change.change)} points)" + (f", {change.flip}" if change.flip else ""),
        }
        for rank, change in enumerate(changes, 1)
    ]
    gains, losses = (sum(change.flip == way for change in changes) for way in ("won", "lost"))
    up = sum(change.change > 0 for change in changes)
    down = sum(change.change < 0 for change in changes)
    return Figure(
        "flips",
        f"The change on every task, {word}",
        f"{names[1]} is better on {counted(up, 'task')} and worse on {down:,}; "
        f"{len(changes) - up - down:,} are the same. On {gains:,} at least half of the attempts "
        f"pass where less than half did, on {losses:,} the other way round.",
        f"Bars of the change in {word} from {names[0]} to {names[1]}, one for each task, sorted "
        "from the largest gain to the largest loss. Triangles mark tasks that flipped.",
        layer(_flip_layers(rows), width=WIDTH + 60, height=230),
        ("task", names[0], names[1], "change in points", "flip"),
        tuple(
            (
                *(change.task, number(change.a), number(change.b), points(change.change)),
                change.flip or "",
            )
            for change in _extremes(changes)
        ),
    )


def _flip_layers(rows: Sequence[Row]) -> list[Spec]:
    """A line at zero, a bar for every task, and a triangle where it flipped."""
    x = field(
        "rank:Q",
        title="tasks, the largest gain first",
        scale={"domain": [0.4, len(rows) + 0.6], "nice": False},
        axis={"tickMinStep": 1, "grid": False, "format": ",d", "tickCount": 6},
    )
    y = field(
        "change:Q",
        title="change in points",
        scale={"domain": [-112, 112], "nice": False},
        axis={
            "values": [-100, -50, 0, 50, 100],
            "labelExpr": "datum.value > 0 ? '+' + datum.value : datum.value",
        },
    )
    sides = {"domain": ["better", "worse"], "range": ["var(--c1)", "var(--c2)"]}
    color = field("side:N", scale=sides, legend=None)
    line = {"color": "var(--ink)", "opacity": 0.6, "aria": False}
    zero = marks([{"change": 0}], "rule", line, y=y)
    if len(rows) > _MOST_BARS:
        steps = {"interpolate": "step", "opacity": 0.85, "aria": False}
        return [zero, marks(rows, "area", steps, x=x, y=y, color=color)]
    bar = {"width": max(1.5, 0.72 * WIDTH / len(rows))}
    ways = {"domain": ["won", "lost"], "range": ["triangle-up", "triangle-down"]}
    triangles = marks(
        [row for row in rows if row["flip"]],
        "point",
        {"filled": True, "size": 40, "opacity": 1, "aria": False},
        x=x,
        y=field("beyond:Q", title="change in points"),
        shape=field("flip:N", scale=ways, legend=None),
        color=constant("var(--ink)"),
    )
    return [zero, marks(rows, "bar", bar, x=x, y=y, color=color, description="tip:N"), triangles]


def _extremes(changes: Sequence[TaskChange]) -> list[TaskChange]:
    """All of them, or the largest gains and losses; the page lists every task below."""
    if len(changes) <= _MOST_ROWS:
        return list(changes)
    half = _MOST_ROWS // 2
    return [*changes[:half], *changes[-half:]]


def trend_figure(history: History) -> Figure:
    """The metrics of every run in the order of time, with a line where a change began."""
    words = list(dict.fromkeys(str(one.metric) for run in history.runs for one in run.estimates))
    rows: list[Row] = [
        {
            "x": run.place + 1,
            "series": str(one.metric),
            "value": one.value if run.has_verdicts else None,
            "low": one.low,
            "high": one.high,
            "tip": f"{run.title}: {one}",
        }
        for run in history.runs
        for one in run.estimates
    ]
    first, last = history.runs[0].place + 1, history.runs[-1].place + 1
    title = f"{history.agent} at {history.suite}" if history.suite else history.agent
    starts = [change.since.place + 1 for change in history.changes]
    chart = panel(
        Panel(
            rows,
            words,
            Scale("run, the newest on the right", first - 0.5, last + 0.5, form="d"),
            Scale("", 0.0, 1.0, form=".0%"),
            marks_at={words[0]: starts[-1]} if starts and words else None,
            width=2 * WIDTH,
        )
    )
    sentence = "No change is shown."
    if starts:
        sentence = f"A change is shown since run {', '.join(map(str, starts))}."
    return Figure(
        "history",
        title,
        sentence,
        f"{' and '.join(words)} of {len(history.runs)} runs with intervals. {sentence}",
        chart,
        ("run", "started", "metric", "value", "low", "high"),
        tuple(
            (str(run.place + 1), run.run.started, str(one.metric), one.value_text(),
             number(one.low), number(one.high))
            for run in history.runs
            for one in run.estimates
        ),
    )  # fmt: skip


def badge_svg(history: History) -> str:
    """The newest value with its interval, as a badge of two parts."""
    values = [(run, run.estimates[0]) for run in history.runs if run.estimates]
    label, text, color, about = "pass^1", "no value", "#59636e", ""
    if values:
        run, newest = values[-1]
        label, about = str(newest.metric), f"{history.agent} at {history.suite}, {run.title}, "
        ends = dict.fromkeys(f"{100 * end:.0f}" for end in newest.value_ends)
        interval = percent_interval(newest.low, newest.high)
        text, color = "no verdict", "#59636e"
        if run.has_verdicts:
            text, color = f"{' to '.join(ends)}% ({interval})", "#0072B2"
        if history.changes and history.changes[-1].change.direction != "rise":
            text, color = f"{text}, {history.changes[-1].verdict}", "#D55E00"
    left, right = (round(len(part) * _CHARACTER) + 2 * _PADDING for part in (label, text))
    whole = left + right
    title = escape(f"{about}{label}: {text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_BADGE}" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{whole}" height="{_BADGE}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{_BADGE}" fill="#1b1f24"/>'
        f'<rect x="{left}" width="{right}" height="{_BADGE}" fill="{color}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11"><text x="{left / 2:g}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(text)}</text></g></svg>\n'
    )
