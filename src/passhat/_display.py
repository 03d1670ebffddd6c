"""Small helpers that let domain objects show themselves in a terminal and in a notebook.

Only strings are made here; nothing is printed, and nothing outside the standard library is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

__all__ = [
    "counted",
    "csv_cell",
    "csv_text",
    "duration",
    "duration_range",
    "figure",
    "html_table",
    "money",
    "money_range",
    "number",
    "percent",
    "percent_digits",
    "percent_interval",
    "percent_range",
    "shown",
    "some",
    "visible",
]

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
