"""Line charts: lines over bands, points with their values, and labels at the ends of the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from passhat.reporting.figures.base import COLORS, DASHES, HEIGHT, SHAPES, WIDTH
from passhat.reporting.figures.drawing import round_ticks
from passhat.reporting.figures.vega_lite import Row, Spec, field, layer, marks

_LINEAR_UP_TO = 16
_MOST_TICKS = 9
_GAP = 15
"""Pixels between two labels at least."""
_MARGIN = 7
"""Pixels beyond the first and the last point, so that neither is cut off."""
_DECADE_MARGIN = 1.25
_STYLES = {"solid": (1, 0), "dashed": (6, 4)}


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its title, its ends, and its ticks."""

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
        ticks, form = self.ticks, self.form
        if not ticks and not self.log:
            ticks, digits = round_ticks(self.low, self.high)
            form = self._form_with(digits)
        if ticks:
            axis["values"] = list(ticks)
        if form.startswith("+"):
            text = f"format(datum.value, '{form[1:]}')"
            axis["labelExpr"] = f"datum.value > 0 ? '+' + {text} : {text}"
        elif form:
            axis["format"] = form
        return field(f"{column}:Q", title=self.title, scale=scale, axis=axis)

    def _form_with(self, digits: int) -> str:
        """The form with as many digits as the ticks need: no two labels may be the same."""
        if self.form.endswith("%"):
            return f".{max(digits - 2, 0)}%"
        return f"{'+' if self.form.startswith('+') else ''},.{digits}f"


@dataclass(frozen=True, slots=True)
class Panel:
    """The data of one line chart."""

    rows: Sequence[Row]
    """Each with ``x, series, value, low, high, tip``; value, low and high may be absent. Two
    optional keys: ``style`` (``"solid"`` or ``"dashed"``) splits a series into two lines of one
    color; a point with ``hollow`` is drawn as an outline.
    """
    series: Sequence[str]
    x: Scale
    y: Scale
    title: str = ""
    labels: Mapping[str, str] | None = None
    """The text at the end of each line, unless that is the name of the series."""
    zero: bool = False
    """Whether a line marks zero."""
    points: bool = True
    """Whether points are visible on the lines."""
    marks_at: Mapping[str, float] | None = None
    """A dotted vertical line for some series."""
    height: int = HEIGHT
    width: int = WIDTH


def k_scale(ks: Sequence[int]) -> Scale:
    """k in equal steps up to 16, in doublings beyond."""
    low, high = min(ks), max(ks)
    if high <= _LINEAR_UP_TO:
        step = 1 if high - low < _MOST_TICKS else 2
        ticks = tuple(float(k) for k in range(low, high + 1, step))
        return Scale("k", low - 0.15, high + 0.15, ticks=ticks, form="d")
    powers = [1 << i for i in range(high.bit_length()) if low <= 1 << i <= high]
    every = -(-len(powers) // _MOST_TICKS)
    margin = (high / low) ** (_MARGIN / WIDTH)
    ticks = tuple(map(float, powers[::every]))
    return Scale("k", low / margin, high * margin, log=True, ticks=ticks, form=",d")


def decade_scale(title: str, numbers: Sequence[float]) -> Scale:
    """A logarithmic scale just around the numbers, with ticks at powers of ten.

    Where fewer than two powers of ten are inside, the ends of the numbers are the ticks.
    """
    low, high = min(numbers) / _DECADE_MARGIN, max(numbers) * _DECADE_MARGIN
    powers = tuple(10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1))
    ticks = powers if len(powers) > 1 else (min(numbers), max(numbers))
    return Scale(title, low, high, log=True, ticks=ticks, form="~g" if high < 10_000 else "~s")


def panel(given: Panel) -> Spec:
    """The layers of one panel: bands below, then lines, points and labels."""

    def by_series(values: Sequence[Any]) -> Spec:
        scale = {"domain": list(given.series), "range": list(values)[: len(given.series)]}
        return field("series:N", scale=scale, legend=None)

    color = by_series(COLORS)
    x, y = given.x.channel("x", ruled=False), given.y.channel("value")
    band_rows = [row for row in given.rows if row.get("low") is not None]
    value_rows = [row for row in given.rows if row.get("value") is not None]
    layers = [_zero(given)] if given.zero else []
    if band_rows:
        look: Spec = {"opacity": 0.16, "aria": False, "clip": True}
        low = given.y.channel("low")
        layers.append(marks(band_rows, "area", look, x=x, y=low, y2="high:Q", color=color))
    if given.marks_at:
        places: list[Row] = [{"series": name, "x": at} for name, at in given.marks_at.items()]
        look = {"strokeDash": [2, 3], "opacity": 0.7, "aria": False}
        layers.append(marks(places, "rule", look, x=x, color=color))
    if value_rows:
        look = {"strokeWidth": 2, "aria": False, "clip": True}
        dash = _style_channel() if _has_styles(value_rows) else by_series(DASHES)
        layers.append(marks(value_rows, "line", look, x=x, y=y, color=color, strokeDash=dash))
    if value_rows and (given.points or any(row.get("tip") for row in value_rows)):
        # Points that are not drawn still say their values on hover.
        look = {"size": 48, "opacity": int(given.points), "strokeWidth": 1.6, "clip": True}
        outline = {"condition": {"test": "datum.hollow", "value": "var(--paper)"}, **color}
        shape = by_series(SHAPES)
        points: dict[str, Spec | str] = {
            "stroke": color,
            "fill": outline,
            "shape": shape,
            "description": "tip:N",
        }
        layers.append(marks(value_rows, "point", look, x=x, y=y, **points))
    layers.append(_end_labels(given, x, color))
    return layer(layers, width=given.width, height=given.height, title=given.title)


def _has_styles(rows: Sequence[Row]) -> bool:
    return any("style" in row for row in rows)


def _style_channel() -> Spec:
    scale = {"domain": list(_STYLES), "range": list(_STYLES.values())}
    return field("style:N", scale=scale, legend=None)


def _zero(given: Panel) -> Spec:
    look = {"color": "var(--ink)", "opacity": 0.6, "aria": False}
    return marks([{"value": 0}], "rule", look, y=given.y.channel("value"))


def _end_labels(given: Panel, x: Spec, color: Spec) -> Spec:
    """Every line's name, to the right of its last point, moved apart where they would overlap."""
    ends = []
    styles = dict.fromkeys(row.get("style") for row in given.rows)
    for name in given.series:
        for style in styles:
            series_rows = [r for r in given.rows if r["series"] == name and r.get("style") == style]
            if series_rows:
                last = max(series_rows, key=lambda row: float(str(row["x"])))
                ends.append((name, float(str(last["x"])), _height(last)))
    rows: list[Row] = [
        {"series": name, "x": x_end, "value": place, "label": (given.labels or {}).get(name, name)}
        for x_end in dict.fromkeys(end[1] for end in ends)
        for (name, _, _), place in _place_labels([end for end in ends if end[1] == x_end], given)
    ]
    look = {"align": "left", "dx": 9, "fontWeight": "bold", "aria": False}
    y = given.y.channel("value")
    return marks(rows, "text", look, x=x, y=y, text="label:N", color=color)


_End = tuple[str, float, float]


def _place_labels(ends: Sequence[_End], given: Panel) -> list[tuple[_End, float]]:
    """Ends of lines at one x, with places at which their labels do not overlap."""
    # Labels are moved apart on the screen, so a logarithmic axis is spread in logarithms.
    onto, back = (log10, lambda place: 10.0**place) if given.y.log else (float, float)
    low, high = onto(given.y.low), onto(given.y.high)
    gap = _GAP / given.height * (high - low)
    places = spread_labels([onto(end[2]) for end in ends], gap, low, high)
    return [(end, back(place)) for end, place in zip(ends, places, strict=True)]


def _height(row: Row) -> float:
    if row.get("value") is not None:
        return float(str(row["value"]))
    return (float(str(row["low"])) + float(str(row["high"]))) / 2


def spread_labels(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places moved apart until neighbors are ``gap`` away, within the ends.

    Examples
    --------
    >>> spread_labels([0.5, 0.5, 0.9], 0.1, 0, 1)
    [0.45, 0.55, 0.9]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    spread = [min(high, max(low, places[i])) for i in order]
    for _ in range(50):
        overlap = False
        for i in range(len(spread) - 1):
            short = gap - (spread[i + 1] - spread[i])
            if short > 1e-9:
                spread[i], spread[i + 1] = spread[i] - short / 2, spread[i + 1] + short / 2
                overlap = True
        if spread and spread[0] < low:
            spread[0] = low
        if spread and spread[-1] > high:
            spread[-1] = high
        if not overlap:
            break
    result = [0.0] * len(places)
    for place, i in zip(spread, order, strict=True):
        result[i] = round(place, 6)
    return result
