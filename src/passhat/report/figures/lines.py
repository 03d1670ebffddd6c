"""Lines with bands, points that say their values, and labels at their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passhat.report.figures.base import COLOURS, DASHES, HEIGHT, SHAPES, WIDTH
from passhat.report.figures.vega_lite import Row, Spec, field, layered, marks

__all__ = ["Panel", "Scale", "k_scale", "panel", "spread_labels"]

_LINEAR_UP_TO = 16
_MOST_TICKS = 9
_GAP = 15
"""Pixels between two labels at least."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its title, its ends, and where it is ruled."""

    title: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[float, ...] = ()
    form: str = ""

    def channel(self, column: str, *, ruled: bool = True) -> Spec:
        """A column along this axis, with a grid or without."""
        scale: Spec = {"domain": [self.low, self.high], "nice": False, "zero": False}
        if self.log:
            scale |= {"type": "log", "base": 2}
        axis: Spec = {"labelOverlap": True, "grid": ruled}
        if self.ticks:
            axis["values"] = list(self.ticks)
        if self.form == "+d":
            axis["labelExpr"] = "datum.value > 0 ? '+' + datum.value : datum.value"
        elif self.form:
            axis["format"] = self.form
        return field(f"{column}:Q", title=self.title, scale=scale, axis=axis)


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows with ``x, series, value, low, high, tip`` (any of value, low and high may be absent)."""

    rows: Sequence[Row]
    series: Sequence[str]
    x: Scale
    y: Scale
    title: str = ""
    labels: Mapping[str, str] | None = None
    """What stands at the end of each line, unless that is the series itself."""
    zero: bool = False
    """Whether a line marks zero."""
    height: int = HEIGHT
    width: int = WIDTH


def k_scale(ks: Sequence[int]) -> Scale:
    """k evenly spaced while they are few, doubling beyond."""
    low, high = min(ks), max(ks)
    if high <= _LINEAR_UP_TO:
        step = 1 if high - low < _MOST_TICKS else 2
        ticks = tuple(float(k) for k in range(low, high + 1, step))
        return Scale("k", low - 0.15, high + 0.15, ticks=ticks, form="d")
    powers = [1 << i for i in range(high.bit_length()) if low <= 1 << i <= high]
    every = -(-len(powers) // _MOST_TICKS)
    return Scale(
        "k", low * 0.93, high * 1.03, log=True, ticks=tuple(map(float, powers[::every])), form=",d"
    )


def panel(given: Panel) -> Spec:
    """The layers of one panel: bands below, then lines, points and labels."""

    def told_apart(values: Sequence[Any]) -> Spec:
        scale = {"domain": list(given.series), "range": list(values)[: len(given.series)]}
        return field("series:N", scale=scale, legend=None)

    colour = told_apart(COLOURS)
    x, y = given.x.channel("x", ruled=False), given.y.channel("value")
    banded = [row for row in given.rows if row.get("low") is not None]
    drawn = [row for row in given.rows if row.get("value") is not None]
    layers = [_zero(given)] if given.zero else []
    if banded:
        look = {"opacity": 0.16, "aria": False, "clip": True}
        low = given.y.channel("low")
        layers.append(marks(banded, "area", look, x=x, y=low, y2="high:Q", color=colour))
    if drawn:
        look = {"strokeWidth": 2, "aria": False, "clip": True}
        dash = told_apart(DASHES)
        layers.append(marks(drawn, "line", look, x=x, y=y, color=colour, strokeDash=dash))
        look = {"filled": True, "size": 48, "opacity": 1, "clip": True}
        shape = told_apart(SHAPES)
        layers.append(
            marks(drawn, "point", look, x=x, y=y, color=colour, shape=shape, description="tip:N")
        )
    layers.append(_end_labels(given, x, colour))
    return layered(layers, width=given.width, height=given.height, title=given.title)


def _zero(given: Panel) -> Spec:
    look = {"color": "var(--ink)", "opacity": 0.6, "aria": False}
    return marks([{"value": 0}], "rule", look, y=given.y.channel("value"))


def _end_labels(given: Panel, x: Spec, colour: Spec) -> Spec:
    """Every series by name, to the right of its last point, never on top of another."""
    ends = []
    for name in given.series:
        own = [row for row in given.rows if row["series"] == name]
        if own:
            last = max(own, key=lambda row: float(str(row["x"])))
            ends.append((name, float(str(last["x"])), _height(last)))
    gap = _GAP / given.height * (given.y.high - given.y.low)
    places = spread_labels([end[2] for end in ends], gap, given.y.low, given.y.high)
    rows: list[Row] = [
        {"series": name, "x": at, "value": place, "label": (given.labels or {}).get(name, name)}
        for (name, at, _), place in zip(ends, places, strict=True)
    ]
    look = {"align": "left", "dx": 9, "fontWeight": "bold", "aria": False}
    y = given.y.channel("value")
    return marks(rows, "text", look, x=x, y=y, text="label:N", color=colour)


def _height(row: Row) -> float:
    if row.get("value") is not None:
        return float(str(row["value"]))
    return (float(str(row["low"])) + float(str(row["high"]))) / 2


def spread_labels(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places moved apart until neighbours are ``gap`` away, within the ends.

    Examples
    --------
    >>> spread_labels([0.5, 0.5, 0.9], 0.1, 0, 1)
    [0.45, 0.55, 0.9]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = [min(high, max(low, places[i])) for i in order]
    for _ in range(50):
        moved = False
        for i in range(len(found) - 1):
            short = gap - (found[i + 1] - found[i])
            if short > 1e-9:
                found[i], found[i + 1] = found[i] - short / 2, found[i + 1] + short / 2
                moved = True
        if found and found[0] < low:
            found[0] = low
        if found and found[-1] > high:
            found[-1] = high
        if not moved:
            break
    result = [0.0] * len(places)
    for place, i in zip(found, order, strict=True):
        result[i] = round(place, 6)
    return result
