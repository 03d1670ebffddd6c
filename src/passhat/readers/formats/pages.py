"""Tables of pages, LaTeX and notebooks, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser

from passhat.readers.zip_members import join_headers, name_without_header


class HtmlTables(HTMLParser):
    """Writes a page as Markdown: its tables, its headings, and the other lines as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._rows: list[list[str]] = []
        self._has_header = self._is_foot = False
        self._width = 1
        self._below: dict[int, tuple[str, int]] = {}
        """Cells over several rows: the text at a place, and the number of rows that follow."""
        self.is_nameless = False
        self._heading = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._close_table()
            self._has_header = False
        elif tag in ("tr", "tfoot", "tbody"):
            self._row = [] if tag == "tr" else None
            self._is_foot = tag == "tfoot" or (tag == "tr" and self._is_foot)
        elif tag in ("td", "th") and self._row is not None:
            self._close_cell()
            self._fill_row(self._row)
            self._cell = []
            self._has_header = self._has_header or tag == "th"
            spans = {name: int(n) for name, n in attrs if n and n.isdigit() and len(n) < 4}
            self._width = spans.get("colspan", 1)
            if spans.get("rowspan", 1) > 1:
                self._below[len(self._row)] = ("", spans["rowspan"])
        elif self._cell is not None and tag in ("br", "img"):
            self._cell.append(f" {dict(attrs).get('alt') or ''} ")
        elif re.fullmatch("h[1-6]", tag):
            self._heading = "#" * int(tag[1]) + " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._close_cell()
        elif tag in ("tr", "table") and self._row is not None:
            self._close_cell()
            row, self._row = self._row, None
            self._fill_row(row)
            if row and not (self._is_foot and self._rows):  # totals
                self._rows.append(row)
        if tag == "table":
            self._close_table()

    def close(self) -> None:
        super().close()
        self._close_table()

    def _fill_row(self, row: list[str]) -> None:
        """Repeat the cells of rows above that reach down to this one."""
        while (place := len(row)) in self._below and self._below[place][0]:
            text, count = self._below.pop(place)
            row.append(text.removesuffix("\0"))
            if count > 1:
                self._below[place] = (text, count - 1)

    def _close_table(self) -> None:
        rows, self._rows, self._below, self._is_foot = self._rows, [], {}, False
        if not rows:
            return
        names = None if self._has_header else name_without_header(rows)
        self.is_nameless = self.is_nameless or names is not None
        self.lines += write_table(rows if names is None else [names, *rows])

    def _close_cell(self) -> None:
        if self._cell is not None and self._row is not None:
            text = " ".join("".join(self._cell).split())
            if (place := len(self._row)) in self._below:
                self._below[place] = (f"{text}\0", self._below[place][1] - 1)
            # A heading over several columns is that of each; a title over a row has one cell.
            others = text if not self._rows else ""
            self._row += [text, *[others] * (self._width - 1)]
        self._cell, self._width = None, 1

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        elif self._row is None and data.strip():
            self.lines += [f"{self._heading}{line}" for line in data.splitlines()]
            self._heading = ""


def write_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, the first row as its header, between empty lines."""
    bars = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return ["", bars[0], f"|{' --- |' * len(rows[0])}", *bars[1:], ""]


_TABULAR = re.compile(r"\\begin\{(tabular[xy]?\*?|longtable|tblr)\}(.*?)\\end\{\1\}", re.DOTALL)
_CAPTION = re.compile(r"\\caption(?:\[[^\]]*\])?\{((?:[^{}]|\{[^{}]*\})*)\}")
_ROW_END = re.compile(r"\\\\(?:\[[^\]]*\])?|\\tabularnewline\b")
_MARKS = re.compile(
    r"\$?\\(?:(?P<good>[cC]mark|checkmark|Checkmark|ding\{5[12]\}|yes)|"
    r"(?P<bad>[xX]mark|times|ding\{5[56]\}|no))\b\$?(?:\{\})?"
)
_MACRO = re.compile(
    r"\\(?:text(?:bf|it|tt|sc|rm|sf)?|emph|underline|math(?:bf|rm|it)|mbox|makecell|multirow(?:\[\w\])?"
    r"\{[^{}]*\}\{[^{}]*\}|(?:text|cell)?color(?:box)?\{[^{}]*\}|[td]?frac\{(\d+)\})\{([^{}]*)\}"
)
_CELL_COLOR = re.compile(r"\\(?:cell|row)color(?:\[\w+\])?\{[^{}]*\}")
_SPAN = re.compile(r"\\multicolumn\{(\d{1,2})\}\{[^{}]*\}\{([^{}]*)\}")
_LINE_MACRO = re.compile(
    r"\\(?:(?:top|mid|bottom|c?mid)?rule|[hc]line)\b(?:\[[^\]]*\])?(?:\(\w*\))?(?:\{[\d-]+\})?"
    r"|\\(?:centering|small)\b"
)


def parse_latex(text: str) -> list[str]:
    """The tables of a LaTeX text as Markdown, each below its caption."""
    text = re.sub(r"(?<!\\)%[^\n]*", "", text)
    lines: list[str] = []
    for match in _TABULAR.finditer(text):
        begin = text.rfind(r"\begin{table", 0, match.start())
        caption = _CAPTION.search(text, begin, match.start()) if begin >= 0 else None
        end = text.find(r"\end{table", match.end())
        caption = caption or (_CAPTION.search(text, match.end(), end) if end >= 0 else None)
        rows = _latex_rows(match[2])
        if len(rows) > 1:
            lines += [f"# {_plain_latex(caption[1])}"] if caption else []
            lines += write_table(rows)
    return lines


def _plain_latex(text: str) -> str:
    """The text without macros for its looks."""
    text = _MARKS.sub(lambda mark: "✓" if mark["good"] else "✗", _CELL_COLOR.sub("", text))
    for _ in range(3):
        text = _MACRO.sub(lambda macro: f"{macro[1]}/{macro[2]}" if macro[1] else macro[2], text)
    text = text.replace(r"\%", "%").replace(r"\_", "_").replace("$", "").replace("~", " ")
    return " ".join(text.split())


def _latex_rows(body: str) -> list[list[str]]:
    body = re.sub(r"^(?:\s*(?:\[\w*\]|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}))+", "", body)
    body = _plain_latex(_LINE_MACRO.sub("", body))
    rows: list[list[str]] = []
    for row in _ROW_END.split(body):
        # A heading over several columns is that of each; a title over a row has one cell.
        part = r"\2" if not rows else ""
        text = _SPAN.sub(lambda m, part=part: m[2] + f" & {m.expand(part)}" * (int(m[1]) - 1), row)
        cells = re.split(r"(?<!\\)&", text)
        if len(cells) > 1:
            rows.append([" ".join(cell.replace(r"\&", "&").split()) for cell in cells])
    joined = join_headers(rows) if len(rows) > 2 and len({*map(len, rows)}) == 1 else None
    return rows if joined is None else [joined[1], *rows[joined[0] :]]
