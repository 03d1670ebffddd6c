"""Charts for pages: static SVG that follows the page's colours, in light and in dark.

Lines are told apart by colour (Okabe and Ito's palette), by dash and by the shape of their points.
Every chart has a title and a description for people who do not see it. Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any

from passhat.report.figures.vega_lite import Row, Spec, constant, field, layered, marks

__all__ = ["Axis", "Figure", "line_chart", "page", "svg"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (1, 3))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
WIDTH, HEIGHT = 400, 270
_MARGIN = 1.25


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of the rows, what it is called, and how it is scaled."""

    field: str
    title: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A sentence, a chart, and words for those who do not see it."""

    title: str
    sentence: str
    description: str
    chart: Spec


def line_chart(
    rows: Sequence[Row],
    x: Axis,
    y: Axis,
    series: str,
    *,
    order: Sequence[str],
    filled: str | None = None,
    points: bool = True,
    rules: Sequence[Row] = (),
) -> Spec:
    """Lines over x, one for each value of ``series``.

    Parameters
    ----------
    order : sequence of str
        The values of ``series``, in the order of the legend; at most six.
    filled : str, optional
        A column of true and false: points where it is false are hollow.
    points : bool
        Whether points are drawn on the lines.
    rules : sequence of rows
        Vertical lines, each with an x and a value of ``series``.
    """

    def told_apart(values: Sequence[Any], **more: object) -> Spec:
        scale = {"domain": list(order), "range": list(values)[: len(order)]}
        return field(f"{series}:N", scale=scale, **more)

    where = {"x": _channel(x, rows), "y": _channel(y, rows)}
    legend = {"title": series, "symbolSize": 90, "symbolStrokeWidth": 1.8}
    colour = told_apart(COLOURS, legend=legend)
    dash = told_apart(DASHES, legend=legend)
    line = {"strokeWidth": 1.8, "clip": True}
    layers = [marks(rows, "line", line, **where, color=colour, strokeDash=dash)]
    if points:
        test = {"test": f"datum['{filled}']", **told_apart(COLOURS)}
        fill = colour if filled is None else {"condition": test, **constant("none")}
        channels = {
            **where,
            "stroke": told_apart(COLOURS, legend=None),
            "fill": fill,
            "shape": told_apart(SHAPES, legend=legend),
        }
        point = {"size": 34, "strokeWidth": 1.3, "clip": True}
        layers.append(marks(rows, "point", point, **channels))
    if rules:
        dotted = {"strokeDash": [2, 3], "opacity": 0.7}
        layers.append(marks(rules, "rule", dotted, x=where["x"], color=colour))
    return layered(layers, width=WIDTH, height=HEIGHT)


def _channel(axis: Axis, rows: Sequence[Row]) -> Spec:
    scale: Spec = {"zero": False, "nice": True}
    ticks: Spec = {"tickCount": 6, "labelOverlap": True}
    if axis.log:
        scale, more = _decades([float(str(row[axis.field])) for row in rows])
        ticks |= more
    if axis.low is not None and axis.high is not None:
        scale |= {"domain": [axis.low, axis.high], "nice": False}
    return field(f"{axis.field}:Q", title=axis.title, scale=scale, axis=ticks)


def _decades(numbers: Sequence[float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A logarithmic scale just around the numbers, ruled at powers of ten where two are inside."""
    low, high = min(numbers) / _MARGIN, max(numbers) * _MARGIN
    inside = range(ceil(log10(low)), floor(log10(high)) + 1)
    ticks: dict[str, Any] = {
        "labelExpr": "datum.value < 1000 ? format(datum.value, '~g') : format(datum.value, '~s')"
    }
    if len(inside) > 1:
        ticks["values"] = [10.0**power for power in inside]
    return {"type": "log", "domain": [low, high], "nice": False}, ticks


def svg(chart: Spec, *, title: str, description: str, name: str) -> str:
    """The chart as an SVG element whose colours are the page's variables."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg({**chart, "config": _look()})
    head = (
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
    )
    opening = re.compile(r"<svg ([^>]*?)width=\"([\d.]+)\" height=\"([\d.]+)\"([^>]*)>")
    return opening.sub(
        rf'<svg \1\4 style="max-width:\2px" role="img" '
        rf'aria-labelledby="{name}-title {name}-desc">{_as_replacement(head)}',
        drawn,
        count=1,
    )


def _as_replacement(text: str) -> str:
    return text.replace("\\", r"\\")


def _look() -> dict[str, Any]:
    """The same look for all charts; the colours are those of the page around them."""
    text = {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "titleFontWeight": "normal"}
    return {
        "aria": False,
        "background": "transparent",
        "font": "sans-serif",
        "view": {"stroke": "var(--line)"},
        "axis": {
            **text,
            "gridColor": "var(--line)",
            "domainColor": "var(--faint)",
            "tickColor": "var(--faint)",
            "labelFontSize": 11,
            "titleFontSize": 12,
        },
        "legend": {**text, "labelFontSize": 11, "titleFontSize": 12, "labelLimit": 220},
    }


_STYLE = """
:root { --paper: #ffffff; --ink: #1b1f24; --faint: #6a737d; --line: #d9dee3;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e6e8ea; --faint: #9aa4ad; --line: #363c42; }
}
@media print { :root { --paper: #ffffff; --ink: #000000; --faint: #444444; --line: #cccccc; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 75rem; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
h2 { font-size: 1.05rem; margin: 0 0 .25rem; }
.figures { display: grid; gap: 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figure p { margin: 0 0 .5rem; }
figure svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; }
caption, td, th { text-align: left; padding: .1rem .9rem .1rem 0; }
footer { color: var(--faint); margin-top: 2rem; }
""".strip()


def page(title: str, lead: Sequence[str], figures: Sequence[Figure], foot: str) -> str:
    """One HTML file that needs nothing from elsewhere."""
    shown = [
        f"<figure>\n<h2>{escape(figure.title)}</h2>\n<p>{escape(figure.sentence)}</p>\n"
        + svg(
            figure.chart,
            title=figure.title,
            description=figure.description,
            name=f"figure-{number}",
        )
        + "\n</figure>"
        for number, figure in enumerate(figures, 1)
    ]
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{_STYLE}\n</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in lead),
        '<div class="figures">',
        *shown,
        "</div>",
        "</main>",
        f"<footer>{escape(foot)}</footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"
