"""Charts as plain SVG, drawn by hand: a page that changes twice a second cannot wait for an engine.

Colours are classes of the page's style sheet, so that one drawing serves light and dark, and no
element carries a style of its own. Series differ in colour, dash and the shape of their points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

_LEFT, _TOP, _BOTTOM = 44, 14, 40
_LABEL_ROOM = 15
_LETTER = 9.2
"""Room for one letter of a name, wide enough for the larger letters of a narrow screen."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point on a line; ``value`` None draws the band alone."""

    x: float
    value: float | None
    low: float | None
    high: float | None
    tip: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A line with its name; ``place`` chooses colour, dash and shape, from 1 to 6."""

    name: str
    points: Sequence[Point]
    place: int = 1
    bars: bool = False
    """Intervals as bars at the points, not as a band between them."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line where something changed."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Series, axes and text description of a chart."""

    name: str
    title: str
    description: str
    series: Sequence[Series]
    x_title: str = "attempts k"
    ticks: Sequence[tuple[float, str]] = ()
    marks: Sequence[Mark] = ()
    log: bool = False
    width: int = 620
    height: int = 300
    low: float = 0.0
    high: float = 1.0
    percent: bool = True
    _xs: tuple[float, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        xs = tuple(point.x for series in self.series for point in series.points)
        object.__setattr__(self, "_xs", xs)

    def x(self, value: float) -> float:
        first, last = self._at(min(self._xs)), self._at(max(self._xs))
        share = 0.5 if first == last else (self._at(value) - first) / (last - first)
        return _LEFT + share * (self.width - _LEFT - self.right)

    def _at(self, value: float) -> float:
        return math.log2(value) if self.log else value

    @property
    def right(self) -> float:
        """Room for the names of the lines."""
        longest = max((len(series.name) for series in self.series), default=0)
        return max(18.0, min(longest * _LETTER + 16, 210.0))

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)


def draw(plot: Plot) -> Markup:
    """The chart as one element."""
    if not any(series.points for series in plot.series):
        return Markup("")
    parts = [
        f'<svg viewBox="0 0 {plot.width} {plot.height}" class="plot" role="img" '
        f'aria-labelledby="{plot.name}-title {plot.name}-desc">',
        f'<title id="{plot.name}-title">{escape(plot.title)}</title>',
        f'<desc id="{plot.name}-desc">{escape(plot.description)}</desc>',
        *_grid(plot),
    ]
    for series in plot.series:
        parts += _spread(plot, series)
    for series in plot.series:
        parts += _line(plot, series)
    parts += _names(plot)
    return Markup("\n".join([*parts, "</svg>"]))


def _grid(plot: Plot) -> list[str]:
    end = plot.width - plot.right
    parts = []
    for step in range(5):
        value = plot.low + (plot.high - plot.low) * step / 4
        # Four steps of less than a percent each would round to the same label.
        digits = 0 if plot.high - plot.low >= 0.04 else 1
        text = f"{100 * value:.{digits}f}%" if plot.percent else f"{value:.3g}"
        y = plot.y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_n(end)}" y1="{_n(y)}" y2="{_n(y)}"/>')
        parts.append(
            f'<text class="tick" x="{_LEFT - 8}" y="{_n(y + 4)}" text-anchor="end">{text}</text>'
        )
    base = plot.height - _BOTTOM
    for mark in plot.marks:
        x = _n(plot.x(mark.x))
        parts.append(
            f'<line class="mark" x1="{x}" x2="{x}" y1="{_TOP}" y2="{base}" '
            f'data-tip="{escape(mark.text)}"/>'
            f'<path class="flag" d="M{x},{_TOP} h9 l-3,4 l3,4 h-9 Z" '
            f'data-tip="{escape(mark.text)}"><title>{escape(mark.text)}</title></path>'
        )
    for value, text in _distinct(plot.ticks):
        parts.append(
            f'<text class="tick" x="{_n(plot.x(value))}" y="{base + 17}" text-anchor="middle">'
            f"{escape(text)}</text>"
        )
    middle = (_LEFT + end) / 2
    parts.append(
        f'<text class="axis" x="{_n(middle)}" y="{plot.height - 5}" text-anchor="middle">'
        f"{escape(plot.x_title)}</text>"
    )
    return parts


def _distinct(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Ticks without those that would repeat a label, such as two runs of one day."""
    value_by_text: dict[str, float] = {}
    for value, text in ticks:
        value_by_text.setdefault(text, value)
    return [(value, text) for text, value in value_by_text.items()]


def _spread(plot: Plot, series: Series) -> list[str]:
    """The interval: a band between the points, or a bar at each."""
    spans = [
        (p.x, p.low, p.high) for p in series.points if p.low is not None and p.high is not None
    ]
    if series.bars:
        return [
            f'<line class="bar-{series.place}" x1="{x}" x2="{x}" y1="{_n(plot.y(low))}" '
            f'y2="{_n(plot.y(high))}"/>'
            for x, low, high in ((_n(plot.x(at)), low, high) for at, low, high in spans)
        ]
    if len(spans) < 2:
        return []
    upper = [f"{_n(plot.x(x))},{_n(plot.y(high))}" for x, _, high in spans]
    back = [f"{_n(plot.x(x))},{_n(plot.y(low))}" for x, low, _ in reversed(spans)]
    return [f'<polygon class="band-{series.place}" points="{" ".join([*upper, *back])}"/>']


def _line(plot: Plot, series: Series) -> list[str]:
    positions = [(p, plot.x(p.x), plot.y(p.value)) for p in series.points if p.value is not None]
    parts = []
    if len(positions) > 1:
        points = " ".join(f"{_n(x)},{_n(y)}" for _, x, y in positions)
        parts.append(f'<polyline class="line-{series.place}" points="{points}"/>')
    for point, x, y in positions:
        outline = _shape(series.place, x, y)
        shape = f'<path class="point-{series.place}" data-tip="{escape(point.tip)}" d="{outline}"/>'
        if point.href:
            shape = f'<a href="{escape(point.href)}" aria-label="{escape(point.tip)}">{shape}</a>'
        parts.append(shape)
    for point in series.points:
        if point.value is None and point.low is not None and point.high is not None:
            x, y = plot.x(point.x), plot.y((point.low + point.high) / 2)
            parts.append(
                f'<circle class="spot" r="9" cx="{_n(x)}" cy="{_n(y)}" '
                f'data-tip="{escape(point.tip)}"/>'
            )
    return parts


def _shape(place: int, x: float, y: float) -> str:
    """Circle, square, triangle, diamond, bar, and a triangle upside down."""
    shapes = {
        1: f"M{_n(x - 3.6)},{_n(y)} a3.6,3.6 0 1,0 7.2,0 a3.6,3.6 0 1,0 -7.2,0",
        2: f"M{_n(x - 3.3)},{_n(y - 3.3)} h6.6 v6.6 h-6.6 Z",
        3: f"M{_n(x)},{_n(y - 4.4)} l4.2,7.6 h-8.4 Z",
        4: f"M{_n(x)},{_n(y - 4.8)} l4.4,4.8 l-4.4,4.8 l-4.4,-4.8 Z",
        5: f"M{_n(x - 1.8)},{_n(y - 5)} h3.6 v10 h-3.6 Z",
    }
    return shapes.get(place, f"M{_n(x)},{_n(y + 4.4)} l4.2,-7.6 h-8.4 Z")


def _names(plot: Plot) -> list[str]:
    """Every line's name next to its end, moved apart where two would overlap."""
    ends: list[tuple[float, float, Series]] = []
    for series in plot.series:
        if series.name and series.points:
            last = series.points[-1]
            middle = ((last.low or 0) + (last.high or 0)) / 2
            value = middle if last.value is None else last.value
            ends.append((plot.y(value), plot.x(last.x) + 10, series))
    parts, free = [], float(_TOP)
    room = plot.height - _BOTTOM - _LABEL_ROOM * len(ends)
    for index, (y, x, series) in enumerate(sorted(ends, key=lambda end: end[0])):
        at = max(free, min(y, room + _LABEL_ROOM * (index + 1)))
        free = at + _LABEL_ROOM
        parts.append(
            f'<text class="name-{series.place}" x="{_n(x)}" y="{_n(at + 4)}">'
            f"{escape(series.name)}</text>"
        )
    return parts


def _n(value: float) -> str:
    """A coordinate with as many digits as a screen shows."""
    return f"{value:.1f}".removesuffix(".0")
