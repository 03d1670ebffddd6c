"""The Figure class, the look that all charts share, and drawing for pages and for papers.

Colors are the page's CSS variables, so that one chart serves light and dark; for a paper they are
replaced by Okabe and Ito's palette. Series differ in color, in dash and in the shape of their
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from passhat._display import number
from passhat.errors import MissingExtra
from passhat.reporting.figures.drawing import draw
from passhat.reporting.figures.vega_lite import Spec, field
from passhat.reporting.view import RunReport, run_labels
from passhat.stats.estimate import Estimate

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


def estimate_tip(estimate: Estimate, label: str = "") -> str:
    """A point as text, with the digits that every form of the report uses."""
    text = f"{estimate.metric} = {number(estimate.value)} {estimate.interval_text()}"
    return f"{label}: {text}" if label else text


def paired_row(label: str, one: Estimate, other: Estimate) -> tuple[str, ...]:
    """Two estimates at the same k as cells of a table."""
    cells = (cell for each in (one, other) for cell in (number(each.value), each.interval_text()))
    return (label, str(one.metric.k), *cells)


def figure_bytes(figure: Figure, form: str) -> bytes:
    """The figure as a file for a paper, on white: ``svg``, ``png`` or ``pdf``."""
    drawn, width, height = draw(figure.chart, figure.name)
    for variable, color in _ON_PAPER.items():
        drawn = drawn.replace(variable, color)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" role="img">'
        f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
        f'<rect width="100%" height="100%" fill="white"/>{drawn}</svg>'
    )
    if form == "svg":
        return svg.encode()
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra(f"a figure as {form.upper()} (not as SVG)", extra="figures") from None
    if form == "png":
        return vl_convert.svg_to_png(svg, scale=_PIXELS_PER_POINT)
    return vl_convert.svg_to_pdf(svg)


def page_svg(figure: Figure) -> str:
    """The figure as an SVG element, with a description and hover values in ``data-tip``."""
    drawn, width, height = draw(figure.chart, figure.name)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="--width:{width:.0f}px" role="img" '
        f'aria-labelledby="{figure.name}-title {figure.name}-desc">'
        f'<title id="{figure.name}-title">{escape(figure.title)}</title>'
        f'<desc id="{figure.name}-desc">{escape(figure.description)}</desc>{drawn}</svg>'
    )
