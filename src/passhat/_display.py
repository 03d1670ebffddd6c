"""Small helpers that let domain objects show themselves in a terminal and in a notebook.

Strings and small charts are made here; nothing is printed, and nothing outside the standard library
is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor
from typing import Any

# C0 and C1 controls, line separators, and the marks that reverse the direction of text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# What a spreadsheet takes for a formula, or the same after apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def shown(value: object) -> str:
    """Show a protocol value; ``None`` is "not recorded"."""
    return "not recorded" if value is None else str(value)


def visible(text: str) -> str:
    """The text with control characters written out, as in ``\\x1b``.

    A name that a log chose must not move the cursor or recolor the terminal. Writing the character
    out, rather than dropping it, keeps names that differ apart.
    """
    if text.isprintable():
        return text
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def csv_cell(value: object) -> object:
    """A cell of a CSV file that a spreadsheet does not take for a formula.

    Text that starts with = + - @ is quoted with an apostrophe, as spreadsheets do; control
    characters other than line ends and tabs are written out. Apostrophes before such a sign get
    one more, so that removing one restores every text.
    """
    if not isinstance(value, str):
        return value
    text = value if value.isprintable() else "".join(_csv_text(c) for c in value)
    return f"'{text}" if _FORMULA.match(text) else text


def csv_text(cell: str) -> str:
    """The text that `csv_cell` made a cell from, without its apostrophe.

    Examples
    --------
    >>> csv_text(str(csv_cell("=1+1")))
    '=1+1'
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _csv_text(character: str) -> str:
    return character if character in "\n\t\r" else visible(character)


def number(value: float | None, digits: int = 3) -> str:
    """Show an estimate with the digits every form of a report uses; ``None`` is a dash."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def figure(value: float | None, digits: int = 3) -> str:
    """An amount with a few digits, never in powers of ten: ``0.0123``, ``12,346``."""
    if value is None:
        return "–"
    large = abs(value) >= 10**digits - 0.5
    return f"{value:,.0f}" if large else f"{value:,.{digits}g}"


def percent(share: float | None, digits: int = 1) -> str:
    """``percent(0.287)`` is ``28.7%``; reads as 0 or 100 only for exactly none or all."""
    if share is None:
        return "–"
    text = _percent_number(share, digits)
    return text if text.endswith("%") else f"{text}%"


def percent_range(low: float | None, high: float | None, digits: int = 1, unit: str = "%") -> str:
    """``percent_range(0.253, 0.323)`` is ``25.3 to 32.3%``; a dash where an end is ``None``."""
    if low is None or high is None:
        return "–"
    ends = [_percent_number(end, digits) for end in (low, high)]
    if ends[0] == ends[1]:
        return f"{ends[0]}{unit}" if not ends[0].endswith("%") else ends[0]
    if any(end.endswith("%") for end in ends):
        return f"{percent(low, digits)} to {percent(high, digits)}"
    return f"{ends[0]} to {ends[1]}{unit}"


def percent_interval(low: float | None, high: float | None, unit: str = "%") -> str:
    """``49 to 77%``; narrow intervals get the digits that tell their ends apart."""
    return percent_range(low, high, percent_digits(low, high), unit)


def percent_digits(low: float | None, high: float | None) -> int:
    """Digits after the point that an interval this wide deserves."""
    if low is None or high is None:
        return 1
    width = high - low
    return 0 if width >= 0.05 or width == 0 else 1 if width >= 0.005 else 2


def _percent_number(share: float, digits: int) -> str:
    value = 100 * share
    text = f"{value:.{digits}f}"
    while digits < 2 and share not in (0, 1) and float(text) in (0, 100):
        digits += 1
        text = f"{value:.{digits}f}"
    if share not in (0, 1) and float(text) in (0, 100):
        return "under 0.01%" if value < 50 else "over 99.99%"
    return text


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``counted(1, "task")`` is ``1 task``, ``counted(1200, "task")`` is ``1,200 tasks``."""
    word = noun if count == 1 else (plural or f"{noun}s")
    return f"{count:,} {word}"


def some(names: Sequence[str], most: int = 5) -> str:
    """Name a few and count the rest: ``a, b, c and 12 more``."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most:,} more"


def duration(seconds: float) -> str:
    """``4.2 s``, ``1 min 05 s``, ``2 h 10 min``."""
    if seconds < 9.95:  # from there on one digit would read 10.0
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def duration_range(low: float, high: float) -> str:
    """``10 s to 1 min 05 s``; one value when both read the same."""
    return _range(duration(low), duration(high))


def money(value: float) -> str:
    """US dollars; small sums keep their digits."""
    if value == 0:
        return "$0"
    if value < 0.0001:
        return "under $0.0001"
    # Two digits of 0.996 are 1, which is an amount with cents.
    return f"${value:,.2f}" if value >= 0.995 else f"${value:.2g}"


def money_range(low: float, high: float) -> str:
    """``$1.00 to $2.00``; one value when both read the same."""
    return _range(money(low), money(high))


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], note: str = ""
) -> str:
    """A plain HTML table with everything escaped, for ``_repr_html_``."""
    head = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    foot = f"<p>{escape(note)}</p>" if note else ""
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"
    )


def html_text(text: str, *, wrap: bool = False) -> str:
    """Text in the font of its columns, for ``_repr_html_``: a bare pre takes the notebook's."""
    space = "pre-wrap" if wrap else "pre"
    return f'<pre style="font-family: monospace; white-space: {space}">{escape(text)}</pre>'


@dataclass(frozen=True, slots=True, repr=False)
class SvgPlot:
    """A small chart that a notebook shows; ``save`` writes it as a file."""

    svg: str

    def __repr__(self) -> str:
        return f"<SvgPlot of {len(self.svg):,} characters; .save('plot.svg') writes it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Write the chart to an .svg file."""
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - this module is without files
            file.write(self.svg)


Interval = tuple[str, float, float | None, float | None]
"""A label, a value, and the ends of its interval where it has one."""


def interval_plot(
    title: str, axis: str, rows: Sequence[Interval], zero: float | None = None
) -> Any:
    """Values with their intervals, a row each: an Altair chart where Altair is installed.

    ``zero`` draws a line to compare with, as at a lift of 0.
    """
    try:
        import altair
    except ImportError:
        return SvgPlot(_interval_svg(title, axis, rows, zero))
    values = [
        {"label": label, "value": value, "low": low, "high": high}
        for label, value, low, high in rows
    ]
    y = {"field": "label", "type": "nominal", "sort": None, "title": None}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "y": y,
                "x": {"field": "low", "type": "quantitative", "title": axis},
                "x2": {"field": "high"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"y": y, "x": {"field": "value", "type": "quantitative", "title": axis}},
        },
    ]
    if zero is not None:
        mark = {"type": "rule", "strokeDash": [4, 3], "color": "#59636e"}
        layers.append({"mark": mark, "encoding": {"x": {"datum": zero}}})
    chart = {"data": {"values": values}, "title": title, "width": 350, "layer": layers}
    return altair.Chart.from_dict(chart)


def _interval_svg(title: str, axis: str, rows: Sequence[Interval], zero: float | None) -> str:
    ends = [x for _, *numbers in rows for x in numbers if x is not None]
    ends += [] if zero is None else [zero]
    low, high = min(ends), max(ends)
    if zero is None:
        low, high = min(low, 0.0), max(high, 1.0)
    margin = 0.04 * (high - low) or 0.1
    low, high = low - margin, high + margin
    left, width, top, step = 150, 350, 34, 26
    bottom = top + step * len(rows)

    def x_of(value: float) -> float:
        return round(left + width * (value - low) / (high - low), 1)

    span = high - low
    gap = next((gap for gap in (0.01, 0.02, 0.05, 0.1, 0.2) if span / gap <= 7), 0.5)
    ticks = [gap * count for count in range(ceil(low / gap), floor(high / gap) + 1)]
    parts = [f'<text x="{left}" y="18" font-weight="bold">{escape(title)}</text>']
    for tick in ticks:
        x = x_of(tick)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" stroke="#dde2e7"/>')
        parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{tick:.2g}</text>')
    if zero is not None:
        x = x_of(zero)
        style = 'stroke="#59636e" stroke-dasharray="4 3"'
        parts.append(f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" {style}/>')
    for position, (label, value, below, above) in enumerate(rows):
        y = top + step * position + step // 2
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        if below is not None and above is not None:
            places = f'x1="{x_of(below)}" x2="{x_of(above)}" y1="{y}" y2="{y}"'
            parts.append(f'<line {places} stroke="#0072B2" stroke-width="2"/>')
        parts.append(f'<circle cx="{x_of(value)}" cy="{y}" r="4" fill="#0072B2"/>')
    parts.append(f'<text x="{left}" y="{bottom + 32}">{escape(axis)}</text>')
    size = f'width="{left + width + 20}" height="{bottom + 40}"'
    style = 'font-family="sans-serif" font-size="12" fill="#1b1f24"'
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img" '
        f'aria-label="{escape(title)}">{body}</svg>'
    )
