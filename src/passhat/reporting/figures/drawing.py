"""Vega-Lite charts drawn as SVG: the words that this package's figures use, and no others.

The engine of Vega-Lite weighs 84 MB and takes a second to start. It is needed for PNG and PDF only.
A word that is not drawn here is refused, so that no figure loses a part of itself silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, pairwise
from math import ceil, floor, log, log10, sqrt

from passhat.reporting.figures.vega_lite import Row, Spec

_INK, _FAINT, _LINE = "var(--ink)", "var(--faint)", "var(--line)"
_FONT, _TITLE_FONT = 12, 13
_PADDING, _LABEL_GAP, _TITLE_GAP, _PANEL_GAP = 5, 6, 8, 26
_CIVIDIS = ((0, 32, 77), (60, 77, 110), (124, 123, 120), (188, 175, 111), (255, 234, 70))
"""Five of its colors in equal steps, after Nunez, Anderton and Renslow (2018)."""
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]/ -"), frozenset("mwMW%@+=<>")
_WORDS = re.compile(
    "align|aria|clip|color|cornerRadiusEnd|dx|dy|filled|fontSize|fontWeight|height|interpolate|"
    "opacity|size|stroke|strokeDash|strokeWidth|type|width"
)


def text_width(text: str, size: float = _FONT) -> float:
    """About how wide a text is in a sans-serif font.

    Examples
    --------
    >>> text_width("iii") < text_width("abc") < text_width("MMM")
    True
    """
    shares = (0.36 if c in _NARROW else 0.93 if c in _WIDE else 0.62 for c in text)
    return size * sum(shares)


def round_ticks(low: float, high: float, wanted: int = 7) -> tuple[tuple[float, ...], int]:
    """Round numbers between two ends, ``wanted`` at most, and the digits that distinguish them.

    Examples
    --------
    >>> round_ticks(0, 0.013)
    ((0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012), 3)
    """
    rough = (high - low) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(step for factor in (1, 2, 5, 10) if (step := factor * power) >= rough * 0.999)
    digits = max(0, -floor(log10(step) + 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return tuple(round(i * step, digits) for i in range(first, last + 1)), digits


def draw(chart: Spec, name: str) -> tuple[str, float, float]:
    """The chart as SVG elements, its width and its height; ids in it begin with its name."""
    parts = chart.get("vconcat", [chart])
    panels = [_Panel(part, f"{name}-clip-{i}") for i, part in enumerate(parts, 1)]
    left = max(panel.left for panel in panels)
    width = left + max(panel.width + panel.right for panel in panels) + _PADDING
    drawn, top = [], float(_PADDING)
    for panel in panels:
        top += panel.top
        drawn.append(f'<g transform="translate({_n(left)},{_n(top)})">{panel.draw()}</g>')
        top += panel.height + panel.bottom + (_PANEL_GAP if panel is not panels[-1] else _PADDING)
    return "".join(drawn), width, top


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A scale from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: object) -> float:
        low, high, at = self.low, self.high, float(str(value))
        if self.log:
            low, high, at = log(low), log(high), log(at)
        share = (at - low) / ((high - low) or 1.0)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class _Names:
    """A scale from names to the middles of equal bands."""

    names: Sequence[object]
    length: float
    inner: float

    @property
    def step(self) -> float:
        return self.length / max(len(self.names), 1)

    @property
    def band(self) -> float:
        return self.step * (1 - self.inner)

    def place(self, value: object) -> float:
        return (self.names.index(value) + 0.5) * self.step


class _Panel:
    """Layers over shared axes: their scales, the room around them, and their marks."""

    def __init__(self, chart: Spec, clip: str) -> None:
        self.clip = clip
        self.layers: list[Spec] = chart.get("layer", [chart])
        self.width, self.height = float(chart["width"]), float(chart["height"])
        self.title: str = chart.get("title", "")
        self.x, self.y = self._scale("x", self.width), self._scale("y", self.height)
        self.x_labels, self.y_labels = self._labels("x"), self._labels("y")
        self.x_title, self.y_title = self._channel("x")["title"], self._channel("y")["title"]
        title_room = _FONT + _TITLE_GAP
        widest = max((text_width(text) for _, text in self.y_labels), default=0.0)
        self.left = _PADDING + widest + _LABEL_GAP + (title_room if self.y_title else 0)
        self.bottom = (_FONT + _LABEL_GAP if self.x_labels else 0.0) + (
            title_room if self.x_title else 0
        )
        self.top = _TITLE_FONT + 10.0 if self.title else 6.0
        self.right = max([0.0, *(end - self.width for end in self._text_ends())])

    def _channels(self, name: str) -> Iterable[tuple[Spec, Spec]]:
        """Every layer that has the channel, with it."""
        return ((part, part["encoding"][name]) for part in self.layers if name in part["encoding"])

    def _channel(self, name: str) -> Spec:
        return next(channel for _, channel in self._channels(name))

    def _scale(self, name: str, length: float) -> _Numbers | _Names:
        channel = self._channel(name)
        given: Spec = channel.get("scale", {})
        if channel["type"] == "nominal":
            pairs = self._channels(name)
            values = (row[c["field"]] for part, c in pairs for row in _rows(part))
            order = channel.get("sort") or list(dict.fromkeys(values))
            kinds = {part["mark"]["type"] for part in self.layers}
            return _Names(order, length, given.get("paddingInner", 0.1 if "bar" in kinds else 0.0))
        low, high = given.get("domain") or self._domain(name, given)
        start, end = (0.0, length) if name == "x" else (length, 0.0)
        return _Numbers(low, high, start, end, given.get("type") == "log")

    def _domain(self, name: str, scale: Spec) -> tuple[float, float]:
        """The ends of the numbers, with zero where it belongs."""
        numbers = [
            float(str(row[channel["field"]]))
            for word in (name, f"{name}2")
            for part, channel in self._channels(word)
            for row in _rows(part)
        ]
        low, high = min(numbers), max(numbers)
        if scale.get("type") == "log":
            margin = (high / low) ** (scale.get("padding", 0) / self.width)
            return low / margin, high * margin
        if scale.get("zero", True):
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            high = low + 1.0
        margin = (high - low) * scale.get("padding", 0) / self.width
        return low - margin * (low != 0), high + margin

    def _labels(self, name: str) -> list[tuple[float, str]]:
        """Where the axis has labels, and their texts."""
        axis: Spec = self._channel(name).get("axis", {})
        scale = self.x if name == "x" else self.y
        if not axis.get("labels", True):
            return []
        if isinstance(scale, _Names):
            limit = axis.get("labelLimit", 180)
            return [(scale.place(value), _cut(str(value), limit)) for value in scale.names]
        labels = [(scale.place(tick), text) for tick, text in _ticks(scale, axis)]
        return _apart(labels) if name == "x" else labels

    def _text_ends(self) -> Iterable[float]:
        """Where texts end, from the left edge of the panel."""
        yield from (place + text_width(text) / 2 for place, text in self.x_labels)
        yield text_width(self.title, _TITLE_FONT) + _PADDING - self.left
        for part in self.layers:
            look = part["mark"]
            if look["type"] == "text" and look.get("align") == "left":
                for row in _rows(part):
                    text = str(row[part["encoding"]["text"]["field"]])
                    size = look.get("fontSize", _FONT) * (1.07 if "fontWeight" in look else 1)
                    yield self._at(part, "x", row) + look.get("dx", 0) + text_width(text, size)

    def draw(self) -> str:
        """Title, axes and marks."""
        size = f'width="{_n(self.width)}" height="{_n(self.height)}"'
        clip = f'<clipPath id="{self.clip}"><rect {size}/></clipPath>'
        used = any(part["mark"].get("clip") for part in self.layers)
        layers = map(self._layer, self.layers)
        return "".join([clip * used, *self._axes(), *layers])

    def _axes(self) -> Iterable[str]:
        if self.title:
            yield _text(_PADDING - self.left, -10, self.title, "start", _INK, size=_TITLE_FONT)
        for name, scale in (("x", self.x), ("y", self.y)):
            axis: Spec = self._channel(name).get("axis", {})
            ruled = isinstance(scale, _Numbers) and axis.get("grid", True)
            if ruled and isinstance(scale, _Numbers):
                for tick, _ in _ticks(scale, axis):
                    at = _n(scale.place(tick))
                    up, along = f"M{at},0v{_n(self.height)}", f"M0,{at}h{_n(self.width)}"
                    line = up if name == "x" else along
                    yield f'<path d="{line}" stroke="{_LINE}" fill="none"/>'
            color = axis.get("labelColor", _FAINT)
            for place, text in self.x_labels if name == "x" else self.y_labels:
                if name == "x":
                    below = self.height + _LABEL_GAP + 0.8 * _FONT
                    yield _text(place, below, text, "middle", color)
                else:
                    yield _text(-_LABEL_GAP, place + 0.35 * _FONT, text, "end", color)
        if self.x_title:
            below = self.height + self.bottom - 2
            yield _text(self.width / 2, below, self.x_title, "middle", _INK)
        if self.y_title:
            beside = -(self.left - _PADDING - 0.8 * _FONT)
            turn = f"translate({_n(beside)},{_n(self.height / 2)}) rotate(-90)"
            yield f'<g transform="{turn}">{_text(0, 0, self.y_title, "middle", _INK)}</g>'

    def _layer(self, part: Spec) -> str:
        look: Spec = part["mark"]
        for word in look:
            if not _WORDS.fullmatch(word):
                raise ValueError(f"a mark has a word that is not drawn: {word}")
        drawn = "".join(_MARKS[look["type"]](self, part, look))
        if look.get("clip"):
            return f'<g clip-path="url(#{self.clip})">{drawn}</g>'
        return drawn

    def _at(self, part: Spec, name: str, row: Row) -> float:
        """Where a row stands along an axis."""
        scale = self.x if name.startswith("x") else self.y
        return scale.place(row[part["encoding"][name]["field"]])

    def points(self, part: Spec, look: Spec) -> Iterable[str]:
        """A shape for every row."""
        for row in _rows(part):
            at = f"translate({_n(self._at(part, 'x', row))},{_n(self._at(part, 'y', row))})"
            shape = _SHAPES[_value(part, "shape", row, "circle")]
            colors = part["encoding"]
            if look.get("filled"):
                paint = _attributes(fill=_value(part, "color", row, _INK))
            else:
                names = ("fill", "stroke") if "fill" in colors else ("fill", "color")
                paint = _attributes(
                    fill=_value(part, names[0], row, "none"),
                    stroke=_value(part, names[1], row, _INK),
                )
            outline = shape(float(look.get("size", 30)))
            yield f'<path transform="{at}" d="{outline}"{paint}{_style(look)}{_tip(part, row)}/>'

    def rules(self, part: Spec, look: Spec) -> Iterable[str]:
        """A straight line for every row: between two ends, or all the way across."""
        channels = part["encoding"]
        for row in _rows(part):
            x = self._at(part, "x", row) if "x" in channels else 0.0
            y = self._at(part, "y", row) if "y" in channels else 0.0
            x2 = self._end(part, "x", row, x, self.width)
            y2 = self._end(part, "y", row, y, self.height)
            color = _value(part, "color", row, look.get("color", _INK))
            line = f"M{_n(x)},{_n(y)}L{_n(x2)},{_n(y2)}"
            yield f'<path d="{line}"{_attributes(stroke=color)}{_style(look)}{_tip(part, row)}/>'

    def _end(self, part: Spec, name: str, row: Row, start: float, length: float) -> float:
        """Where a line ends along an axis: at its second end, where it began, or across."""
        if f"{name}2" in part["encoding"]:
            return self._at(part, f"{name}2", row)
        return start if name in part["encoding"] else length

    def texts(self, part: Spec, look: Spec) -> Iterable[str]:
        """A text for every row."""
        anchor = {"left": "start", "right": "end"}.get(look.get("align", ""), "middle")
        size = look.get("fontSize", _FONT)
        for row in _rows(part):
            x = self._at(part, "x", row) + look.get("dx", 0)
            y = self._at(part, "y", row) + look.get("dy", 0) + 0.35 * size
            color = _value(part, "color", row, look.get("color", _INK))
            text = str(row[part["encoding"]["text"]["field"]])
            weight = look.get("fontWeight", "")
            yield _text(x, y, text, anchor, color, size=size, weight=weight)

    def lines(self, part: Spec, look: Spec) -> Iterable[str]:
        """A line for every series, from left to right."""
        for rows in _series(part, self._place_x(part)):
            places = [(self._at(part, "x", row), self._at(part, "y", row)) for row in rows]
            color = _value(part, "color", rows[0], _INK)
            dash = _value(part, "strokeDash", rows[0], look.get("strokeDash"))
            paint = _attributes(fill="none", stroke=color)
            style = _style({**look, "strokeDash": dash})
            yield f'<path d="{_path(places, look.get("interpolate"))}"{paint}{style}/>'

    def areas(self, part: Spec, look: Spec) -> Iterable[str]:
        """An area for every series: between two ends, or down to zero."""
        channels = part["encoding"]
        for rows in _series(part, self._place_x(part)):
            xs = [self._at(part, "x", row) for row in rows]
            tops = [self._at(part, "y", row) for row in rows]
            ends = [
                self._at(part, "y2", row) if "y2" in channels else self.y.place(0) for row in rows
            ]
            way = look.get("interpolate")
            there = _path(list(zip(xs, tops, strict=True)), way)
            back = _path(list(zip(xs, ends, strict=True))[::-1], way)
            paint = _attributes(fill=_value(part, "color", rows[0], _INK))
            yield f'<path d="{there}L{back[1:]}Z"{paint}{_style(look)}/>'

    def _place_x(self, part: Spec) -> Callable[[Row], float]:
        return lambda row: self._at(part, "x", row)

    def bars(self, part: Spec, look: Spec) -> Iterable[str]:
        """A bar for every row: along y names, or upright."""
        channels = part["encoding"]
        for row in _rows(part):
            x, y = self._at(part, "x", row), self._at(part, "y", row)
            if isinstance(self.y, _Names):
                x2 = self._at(part, "x2", row) if "x2" in channels else self.x.place(0)
                thick, middle = self._thickness(part, row, y, look)
                box = (min(x, x2), middle - thick / 2, abs(x - x2), thick)
            else:
                zero, thick = self.y.place(0), float(look["width"])
                box = (x - thick / 2, min(y, zero), thick, abs(y - zero))
            yield _box(box, part, row, look)

    def _thickness(self, part: Spec, row: Row, y: float, look: Spec) -> tuple[float, float]:
        """How thick a bar is, and where its middle is."""
        band = self.y.band if isinstance(self.y, _Names) else 0.0
        if "yOffset" not in part["encoding"]:
            return float(look.get("height", band)), y
        offset = part["encoding"]["yOffset"]
        names = list(offset["sort"])
        thick = band / len(names)
        return thick, y - band / 2 + (names.index(row[offset["field"]]) + 0.5) * thick

    def cells(self, part: Spec, look: Spec) -> Iterable[str]:
        """A cell of a table for every row."""
        if not isinstance(self.x, _Names) or not isinstance(self.y, _Names):
            raise ValueError("cells need names on both axes")
        wide, high = self.x.step, self.y.step
        for row in _rows(part):
            x, y = self._at(part, "x", row), self._at(part, "y", row)
            yield _box((x - wide / 2, y - high / 2, wide, high), part, row, look)


_MARKS: dict[str, Callable[[_Panel, Spec, Spec], Iterable[str]]] = {
    "area": _Panel.areas,
    "bar": _Panel.bars,
    "line": _Panel.lines,
    "point": _Panel.points,
    "rect": _Panel.cells,
    "rule": _Panel.rules,
    "text": _Panel.texts,
}


def _rows(part: Spec) -> list[Row]:
    rows: list[Row] = part["data"]["values"]
    return rows


def _series(part: Spec, place: Callable[[Row], float]) -> list[list[Row]]:
    """The rows of each series, from left to right."""
    fields = [
        channel["field"]
        for name in ("color", "strokeDash")
        if "field" in (channel := part["encoding"].get(name, {}))
    ]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in _rows(part):
        groups.setdefault(tuple(row[name] for name in fields), []).append(row)
    return [sorted(rows, key=place) for rows in groups.values()]


def _value(part: Spec, name: str, row: Row, default: object) -> object:
    """The color, shape or dash that a channel gives a row."""
    channel: Spec | None = part["encoding"].get(name)
    if channel is None:
        return default
    condition = channel.get("condition")
    if condition is not None and _holds(condition["test"], row):
        return condition["value"]
    if "value" in channel:
        return channel["value"]
    scale, value = channel["scale"], row[channel["field"]]
    if scale.get("scheme") == "cividis":
        return _cividis(float(str(value)))
    return scale["range"][scale["domain"].index(value)]


def _holds(test: str, row: Row) -> bool:
    """Whether a row meets ``datum.NAME`` or ``datum.NAME > NUMBER``."""
    match = re.fullmatch(r"datum\.(\w+)(?: > ([\d.]+))?", test)
    if match is None:
        raise ValueError(f"a condition is not drawn: {test}")
    value = row.get(match[1])
    return bool(value) if match[2] is None else float(str(value)) > float(match[2])


def _cividis(share: float) -> str:
    place = min(max(share, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    first = min(int(place), len(_CIVIDIS) - 2)
    pairs = zip(_CIVIDIS[first], _CIVIDIS[first + 1], strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in pairs)


def _ticks(scale: _Numbers, axis: Spec) -> list[tuple[float, str]]:
    """The ticks of an axis with their texts."""
    digits = 0
    if "values" in axis:
        ticks = [tick for tick in axis["values"] if scale.low <= tick <= scale.high]
    elif scale.log:
        powers = range(floor(log10(scale.low)), ceil(log10(scale.high)) + 1)
        steps = (1, 2, 5) if scale.high / scale.low < 1000 else (1,)
        ticks = [step * 10.0**power for power in powers for step in steps]
        ticks = [float(f"{tick:.6g}") for tick in ticks if scale.low <= tick <= scale.high]
        return [(tick, f"{tick:,g}") for tick in ticks]
    else:
        numbers, digits = round_ticks(scale.low, scale.high, axis.get("tickCount", 5) + 2)
        ticks = [tick for tick in numbers if "tickMinStep" not in axis or tick == int(tick)]
    form: str = axis.get("format", "")
    signed = "labelExpr" in axis
    if signed and (match := re.search(r"format\(datum\.value, '([^']*)'\)", axis["labelExpr"])):
        form = match[1]
    form = form or ("~g" if "values" in axis else f",.{digits}f")
    return [(tick, "+" * (signed and tick > 0) + _write(tick, form)) for tick in ticks]


def _write(value: float, form: str) -> str:
    """A number in one of d3's forms."""
    if form == "~s":
        for power, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= power:
                return f"{value / power:g}{sign}"
        return f"{value:g}"
    text = format(round(value) if form.endswith("d") else value, form.replace("~", ""))
    if "~" in form and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\N{MINUS SIGN}")


def _apart(labels: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Every label, or every second, fourth, ... until none touches the next."""
    while len(labels) > 1 and any(
        b - a < (text_width(s) + text_width(t)) / 2 + 3 for (a, s), (b, t) in pairwise(labels)
    ):
        labels = labels[::2]
    return labels


def _cut(text: str, limit: float) -> str:
    """A text that is no wider than its limit."""
    if text_width(text) <= limit:
        return text
    while text and text_width(text) > limit - _FONT:
        text = text[:-1]
    return text + "…"


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str,
    color: object,
    *,
    size: float = _FONT,
    weight: str = "",
) -> str:
    paint = _attributes(fill=color, font_size=size, font_weight=weight, text_anchor=anchor)
    return f'<text x="{_n(x)}" y="{_n(y)}"{paint}>{escape(text)}</text>'


def _box(box: tuple[float, float, float, float], part: Spec, row: Row, look: Spec) -> str:
    x, y, wide, high = map(_n, box)
    paint = _attributes(
        fill=_value(part, "color", row, _INK),
        stroke=look.get("stroke"),
        rx=look.get("cornerRadiusEnd"),
    )
    size = f'x="{x}" y="{y}" width="{wide}" height="{high}"'
    return f"<rect {size}{paint}{_style(look)}{_tip(part, row)}/>"


def _tip(part: Spec, row: Row) -> str:
    channel = part["encoding"].get("description")
    return f' data-tip="{escape(str(row[channel["field"]]))}"' if channel else ""


def _style(look: Spec) -> str:
    dash = look.get("strokeDash") or ()
    return _attributes(
        opacity=look.get("opacity"),
        stroke_width=look.get("strokeWidth"),
        stroke_dasharray=",".join(map(_n, dash)) if any(dash[1:]) else "",
    )


def _attributes(**values: object) -> str:
    return "".join(
        f' {name.replace("_", "-")}="{value}"'
        for name, value in values.items()
        if value not in (None, "")
    )


def _path(places: list[tuple[float, float]], way: str | None) -> str:
    """A path through the places, straight or in steps."""
    if way == "step-after":
        steps = (((x, y), (x2, y)) for (x, y), (x2, _) in pairwise(places))
        corners = [*chain.from_iterable(steps), *places[-1:]]
    elif way == "step":
        middles = (((x + x2) / 2, y, y2) for (x, y), (x2, y2) in pairwise(places))
        steps = (((x, y), (x, y2)) for x, y, y2 in middles)
        corners = [*places[:1], *chain.from_iterable(steps), *places[-1:]]
    else:
        corners = places
    return "M" + "L".join(f"{_n(x)},{_n(y)}" for x, y in corners)


def _circle(size: float) -> str:
    r = sqrt(size) / 2
    return f"M{_n(r)},0A{_n(r)},{_n(r)},0,1,1,{_n(-r)},0A{_n(r)},{_n(r)},0,1,1,{_n(r)},0"


def _polygon(*corners: tuple[float, float]) -> Callable[[float], str]:
    """A shape of straight lines, as shares of a point's width."""

    def outline(size: float) -> str:
        r = sqrt(size) / 2
        return _path([(x * r, y * r) for x, y in corners], None) + "Z"

    return outline


_CROSS = ((-1, -0.4), (-0.4, -0.4), (-0.4, -1), (0.4, -1), (0.4, -0.4), (1, -0.4))
_SHAPES: dict[object, Callable[[float], str]] = {
    "circle": _circle,
    "square": _polygon((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle-up": _polygon((-1, 0.87), (0, -0.87), (1, 0.87)),
    "triangle-down": _polygon((-1, -0.87), (0, 0.87), (1, -0.87)),
    "diamond": _polygon((0, -1), (1, 0), (0, 1), (-1, 0)),
    "cross": _polygon(*_CROSS, *((-x, -y) for x, y in _CROSS)),
}


def _n(number: float) -> str:
    """A length in tenths of a pixel."""
    return f"{round(number, 1) + 0.0:g}"
