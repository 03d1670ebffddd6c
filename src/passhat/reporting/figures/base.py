"""The Figure class, the look that all charts share, and drawing for pages and for papers.

Colors are the page's CSS variables, so that one chart serves light and dark; for a paper they are
replaced by Okabe and Ito's palette. Series differ in color, in dash and in the shape of their
points.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

from passhat.reporting.figures.vega_lite import Spec, field
from passhat.reporting.view import RunReport, run_labels

__all__ = [
    "COLORS",
    "DASHES",
    "FORMS",
    "HEIGHT",
    "LONGEST_LABEL",
    "MOST_RUNS",
    "SHAPES",
    "WIDTH",
    "Figure",
    "color_channel",
    "figure_bytes",
    "labels_of",
    "page_svg",
    "specification",
]

WIDTH, HEIGHT = 350, 230
MOST_RUNS = 6
"""Series drawn at most: more cannot be distinguished."""
COLORS = tuple(f"var(--c{number})" for number in range(1, MOST_RUNS + 1))
DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3), (4, 2), (1, 3))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_ON_PAPER = {
    "var(--c1)": "#0072B2",
    "var(--c2)": "#D55E00",
    "var(--c3)": "#009E73",
    "var(--c4)": "#CC79A7",
    "var(--c5)": "#E69F00",
    "var(--c6)": "#56B4E9",
    "var(--ink)": "#1b1f24",
    "var(--faint)": "#59636e",
    "var(--line)": "#dde2e7",
    "var(--paper)": "#ffffff",
}
LONGEST_LABEL = 26
FORMS = MappingProxyType({".svg": "svg", ".png": "png", ".pdf": "pdf"})
"""File endings that a figure can be written as."""
_PIXELS_PER_POINT = 3.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its title, a sentence, a description for screen readers, and its numbers."""

    name: str
    title: str
    sentence: str
    description: str
    chart: Spec
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def color_channel(series: Sequence[str]) -> Spec:
    """The color channel over named series; series are labeled in the chart, without a legend."""
    scale = {"domain": list(series), "range": list(COLORS[: len(series)])}
    return field("series:N", scale=scale, legend=None)


def labels_of(runs: Sequence[RunReport]) -> list[str]:
    """Short distinct labels for runs, cut to fit a legend."""
    short = [_shorten(name) for name in run_labels([run.run for run in runs])]
    return short if len(set(short)) == len(short) else [f"{i} {s}" for i, s in enumerate(short, 1)]


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"


def specification(figure: Figure, *, paper: bool = False) -> Spec:
    """The chart as Vega-Lite, with the look that all charts share."""
    import json

    chart = {**figure.chart, "config": _look()}
    if not paper:
        return chart
    text = json.dumps(chart)
    for variable, color in _ON_PAPER.items():
        text = text.replace(variable, color)
    on_paper: Spec = json.loads(text)
    return on_paper


def figure_bytes(figure: Figure, form: str) -> bytes:
    """The figure as a file for a paper, on white: ``svg``, ``png`` or ``pdf``."""
    import vl_convert

    chart = specification(figure, paper=True)
    chart["config"]["background"] = "white"
    chart["description"] = f"{figure.title}. {figure.description}"
    if form == "png":
        return vl_convert.vegalite_to_png(chart, scale=_PIXELS_PER_POINT)
    if form == "pdf":
        return vl_convert.vegalite_to_pdf(chart)
    return vl_convert.vegalite_to_svg(chart).encode()


def page_svg(figure: Figure) -> str:
    """The figure as an SVG element, with a description and hover values in ``data-tip``."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(specification(figure))
    svg = _EMPTY.sub("", svg)
    svg = _UNNEEDED.sub("", svg)
    svg = re.sub(r'(<g[^>]*) aria-label="[^"]*"', r"\1", svg)
    svg = svg.replace(" aria-label=", " data-tip=")
    svg = _GEOMETRY.sub(lambda match: _LONG.sub(_round_match, match[0]), svg)
    svg = _rename_ids(svg, figure.name)
    head = (
        f'<title id="{figure.name}-title">{escape(figure.title)}</title>'
        f'<desc id="{figure.name}-desc">{escape(figure.description)}</desc>'
    )
    opening = re.compile(r"<svg [^>]*width=\"([\d.]+)\" height=\"([\d.]+)\"[^>]*>")
    size = opening.match(svg)
    if size is None:  # pragma: no cover - vl-convert always writes both
        return svg
    width, height = size.groups()
    return (
        f'<svg viewBox="0 0 {width} {height}" style="--width:{width}px" role="img" '
        f'aria-labelledby="{figure.name}-title {figure.name}-desc">{head}{svg[size.end() :]}'
    )


_EMPTY = re.compile(r'<path class="(?:background|foreground)"[^>]*d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_UNNEEDED = re.compile(
    r' (?:aria-hidden|role|aria-roledescription|pointer-events|class|font-family)="[^"]*"'
    r'| opacity="1"'
)
_GEOMETRY = re.compile(r' (?:d|transform|x2|y2|x|y|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{2,}")


def _rename_ids(drawn: str, name: str) -> str:
    """Rename clip paths after the figure: a page has many figures, and ids must differ."""
    new_ids: dict[str, str] = {}
    for old in re.findall(r'id="(clip\d+)"', drawn):
        new_ids.setdefault(old, f"{name}-clip-{len(new_ids) + 1}")
    return re.sub(r"\bclip\d+\b", lambda match: new_ids.get(match[0], match[0]), drawn)


def _round_match(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _look() -> dict[str, Any]:
    text = {"labelColor": "var(--faint)", "titleColor": "var(--ink)", "titleFontWeight": "normal"}
    return {
        "background": "transparent",
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {
            **text,
            "gridColor": "var(--line)",
            "domainColor": "var(--faint)",
            "tickColor": "var(--faint)",
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titlePadding": 8,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
        },
        "title": {
            "color": "var(--ink)",
            "fontSize": 13,
            "fontWeight": "normal",
            "anchor": "start",
            "offset": 10,
        },
        "text": {"fontSize": 12},
        "concat": {"spacing": 26},
    }
