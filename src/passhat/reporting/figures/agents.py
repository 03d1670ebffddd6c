"""Figures that set agents side by side: the forest plot, and the change task by task."""

from __future__ import annotations

from collections.abc import Sequence

from passhat._display import counted, number
from passhat.reporting.figures.base import (
    COLORS,
    MOST_RUNS,
    SHAPES,
    WIDTH,
    Figure,
    estimate_tip,
    labels_of,
)
from passhat.reporting.figures.vega_lite import Row, Spec, constant, field, layer, marks, stack
from passhat.reporting.task_changes import TaskChange
from passhat.reporting.view import RunReport, populations_text
from passhat.stats.compare.claims import points
from passhat.stats.estimate import Estimate
from passhat.stats.estimate.metrics import PassAt, PassHat

_ROW_HEIGHT = 26
_MOST_BARS = 160
"""Tasks drawn as bars; more become steps, so that the file stays small."""
_MOST_ROWS = 40


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
