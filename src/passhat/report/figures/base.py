"""What every figure is made of: words, a chart, and the numbers that it shows.

Colours are the page's variables, so that one chart serves light and dark; for a paper they are
replaced by Okabe and Ito's. Series differ in colour, in dash and in the shape of their points.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from passhat.report.figures.vega_lite import Spec, field
from passhat.report.view import RunReport

__all__ = [
    "COLOURS",
    "DASHES",
    "HEIGHT",
    "MOST_RUNS",
    "SHAPES",
    "WIDTH",
    "Figure",
    "coloured",
    "labels_of",
    "page_svg",
    "specification",
]

WIDTH, HEIGHT = 350, 230
MOST_RUNS = 6
"""Lines beyond that cannot be told apart."""
COLOURS = tuple(f"var(--c{number})" for number in range(1, MOST_RUNS + 1))
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
_LONGEST_LABEL = 26


@dataclass(frozen=True, slots=True)
class Figure:
    """A sentence, a chart, words for those who do not see it, and its numbers as a table."""

    name: str
    title: str
    sentence: str
    description: str
    chart: Spec
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def coloured(series: Sequence[str]) -> Spec:
    """The colour channel over named series; labels stand in the chart, so there is no legend."""
    scale = {"domain": list(series), "range": list(COLOURS[: len(series)])}
    return field("series:N", scale=scale, legend=None)


def labels_of(runs: Sequence[RunReport]) -> list[str]:
    """Short names that tell the runs apart: the agent's where that is enough."""
    agents = [run.run.agent or run.name for run in runs]
    names = agents if len(set(agents)) == len(agents) else [run.name for run in runs]
    short = [_shortened(name) for name in names]
    return short if len(set(short)) == len(short) else [f"{i} {s}" for i, s in enumerate(short, 1)]


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"


def specification(figure: Figure, *, paper: bool = False) -> Spec:
    """The chart as Vega-Lite, with the look that all charts share."""
    import json

    found = {**figure.chart, "config": _look()}
    if not paper:
        return found
    text = json.dumps(found)
    for variable, colour in _ON_PAPER.items():
        text = text.replace(variable, colour)
    on_paper: Spec = json.loads(text)
    return on_paper


def page_svg(figure: Figure) -> str:
    """An SVG element for a page: named for screen readers, values on hover in ``data-tip``."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(specification(figure))
    drawn = _EMPTY.sub("", drawn)
    drawn = _UNNEEDED.sub("", drawn)
    drawn = re.sub(r'(<g[^>]*) aria-label="[^"]*"', r"\1", drawn)
    drawn = drawn.replace(" aria-label=", " data-tip=")
    drawn = _GEOMETRY.sub(lambda found: _LONG.sub(_rounded, found[0]), drawn)
    drawn = _own_ids(drawn, figure.name)
    head = (
        f'<title id="{figure.name}-title">{escape(figure.title)}</title>'
        f'<desc id="{figure.name}-desc">{escape(figure.description)}</desc>'
    )
    opening = re.compile(r"<svg [^>]*width=\"([\d.]+)\" height=\"([\d.]+)\"[^>]*>")
    size = opening.match(drawn)
    if size is None:  # pragma: no cover - vl-convert always writes both
        return drawn
    width, height = size.groups()
    return (
        f'<svg viewBox="0 0 {width} {height}" style="--width:{width}px" role="img" '
        f'aria-labelledby="{figure.name}-title {figure.name}-desc">{head}{drawn[size.end() :]}'
    )


_EMPTY = re.compile(r'<path class="(?:background|foreground)"[^>]*d="(?:M0,0h0v0h0Z)?"[^>]*/>')
_UNNEEDED = re.compile(
    r' (?:aria-hidden|role|aria-roledescription|pointer-events|class|font-family)="[^"]*"'
    r'| opacity="1"'
)
_GEOMETRY = re.compile(r' (?:d|transform|x2|y2|x|y|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{2,}")


def _own_ids(drawn: str, name: str) -> str:
    """Clip paths under names of the figure's own: a page holds many, and ids must differ."""
    known: dict[str, str] = {}
    for old in re.findall(r'id="(clip\d+)"', drawn):
        known.setdefault(old, f"{name}-clip-{len(known) + 1}")
    return re.sub(r"\bclip\d+\b", lambda found: known.get(found[0], found[0]), drawn)


def _rounded(match: re.Match[str]) -> str:
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
