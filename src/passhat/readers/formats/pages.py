"""Tables in Markdown; those of pages, LaTeX and notebooks, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

from passhat._display import counted
from passhat.errors import ReadError
from passhat.readers.json_records import LossLog
from passhat.readers.parsing import is_verdict_list
from passhat.readers.rows import LONGEST_LINE, Losses
from passhat.readers.sources import Source
from passhat.readers.wide_tables import FRACTION, is_model_name, reward_or_none
from passhat.readers.zip_members import join_headers, name_first_column, name_without_header
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords


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


# -- Markdown ------------------------------------------------------------------------------


class MarkdownRows:
    """The table of attempts in a Markdown text, and others with its header."""

    kind = "Markdown"
    place = "line"

    def __init__(self, source: Source, losing: LossLog | None = None) -> None:
        self._source = source
        self._losing = losing or Losses()
        self.lines: Sequence[int] = ()
        self.decisions: tuple[str, ...] = ()

    def chunks(self) -> Iterator[Chunk]:
        with self._source.open() as stream:
            text = stream.read(LONGEST_LINE).decode("utf-8", "replace")
        texts = text.translate(_BOX_SIGNS).splitlines()
        tables = list(_find_tables(texts))
        best = max(tables, key=lambda table: table.rank)
        alike = [table for table in tables if table.header == best.header]
        word, names = _name_tables(alike)
        alike = alike if word else [best]
        if len(tables) > 1:
            which = "the first" if best is tables[0] else f"that of line {best.start}"
            which = "the first with tasks" if best.rank[1] and best is not tables[0] else which
            which += " is read"
            if word:
                kind = _KINDS_OF_TABLES[word]
                which = f"{len(alike)} are read, each as the {kind} in the heading above it"
            self.decisions = (f"of {len(tables)} tables in the text {which}",)
        header = [*best.header, word] if word else best.header
        rows, lines = [], []
        for table, name in zip(alike, names or [""], strict=True):
            for line, cells in table.rows:
                if len(cells) != len(table.header):
                    what = f"{counted(len(cells), 'cell')} where the header has {len(best.header)}"
                    self._losing.lose(f"line {line}", what)
                    continue
                if len(cells) > 1 and set(cells) <= {"...", "…", "⋮"}:
                    raise ReadError(
                        "is a table without some of its rows: they are left out here.",
                        source=self._source.name,
                        line=line,
                        hint="Save the whole table as CSV, as df.to_csv does.",
                    )
                rows.append([*cells, name] if word else cells)
                lines.append(line)
        header = name_first_column(header, (row[0] for row in rows))
        self.lines = lines
        if rows:
            columns = map(list, zip(*rows, strict=True))
            yield dict(zip(header, columns, strict=True))

    def line_of(self, row: int) -> int:
        return self.lines[row]


_KINDS_OF_TABLES = {"model": "model", "trial": "attempt", "suite": "suite"}


class _Table(NamedTuple):
    start: int
    """The number of the line with the header."""
    header: list[str]
    rows: list[tuple[int, list[str]]]
    """The cells of each row, and the number of its line."""
    headings: list[str]
    """The headings above it, the outermost first, and those that name a model alone."""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """How likely it holds attempts or counts: by verdicts, by its header, by its size."""
        columns, words = ColumnMap.resolve(self.header), RewardWords()
        has_results = columns.holds_attempts or columns.holds_counts
        rows = [cells for _, cells in self.rows if len(cells) == len(self.header)]
        count = 0
        for cells in zip(*rows, strict=True):
            rewards = {reward_or_none(words, cell) for cell in set(cells)}
            is_verdict = {0.0, 1.0} >= {r for r in rewards if r == r} != set()
            is_several = all(FRACTION.fullmatch(c) or is_verdict_list(c) for c in cells)
            count += len(cells) * (is_verdict or is_several)
        return has_results or count > 1, has_results + ("task" in columns.meaning), count


def _find_tables(texts: list[str]) -> Iterator[_Table]:
    """The tables of a text with the headings above each."""
    headings: list[tuple[int, str]] = []
    end = 0
    for number in range(1, len(texts)):
        above = texts[number - 1]
        heading = _HEADING.fullmatch(above)
        if heading is not None:
            depth = len(heading[1] or "") or _BOLD_DEPTH
            headings = [each for each in headings if each[0] < depth]
            headings.append((depth, (heading[2] or heading[3]).strip("*`: ")))
        if number < end or not (_MARKDOWN_RULE.fullmatch(texts[number]) and "|" in above):
            continue
        header, rows, end = _markdown_cells(above), [], number + 1
        while end < len(texts) and ("|" in texts[end] or _GRID_RULE.fullmatch(texts[end])):
            if not _GRID_RULE.fullmatch(texts[end]):
                rows.append((end + 1, _row_cells(texts[end], above, len(header))))
            end += 1
        yield _Table(number, header, rows, [text for _, text in headings])


def _name_tables(tables: list[_Table]) -> tuple[str, list[str]]:
    """The kind of the headings above tables with one header, and that of each table.

    Nothing for a single table, for one with a column for it, and without such headings.
    """
    models = [_heading_model(table.headings) for table in tables]
    depth = min(len(table.headings) for table in tables)
    levels = [[table.headings[-n] for table in tables] for n in range(1, depth + 1)]
    names = next((each for each in [models, *levels] if len(set(each)) == len(each) > 1), [])
    if all(models) and names != models and len(set(models)) > 1:
        # Several tables of a model: parts of its tasks.
        rows = [
            (model, cells[0])
            for model, table in zip(models, tables, strict=True)
            for _, cells in table.rows
        ]
        names = models if len(set(rows)) == len(rows) else names
    if not names or not all(names):
        return "", []
    word = "trial" if all(map(_TRIAL_HEADING.fullmatch, names)) else "model"
    tasks = [{cells[0] for _, cells in table.rows} for table in tables]
    if word == "model" and not all(map(is_model_name, names)) and names != models:
        word = "model" if any(tasks[0] & each for each in tasks[1:]) else "suite"
    is_taken = word in ColumnMap.resolve(tables[0].header).meaning
    return ("", []) if is_taken else (word, names)


def _heading_model(headings: list[str]) -> str:
    """The model that a heading above a table names, as in ``## Model: gpt-5``; empty for none."""
    found = (_MODEL_HEADING.fullmatch(heading) for heading in reversed(headings))
    return next((match[1] for match in found if match), "")


def _markdown_cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    plain = (_EMPHASIS.sub(r"\2", cell.strip()) for cell in cells)
    return [cell.strip().replace("\\|", "|") for cell in plain]


def _row_cells(line: str, header: str, width: int) -> list[str]:
    """The cells of a row; below a header without outer bars, one behind the last bar is empty."""
    cells = _markdown_cells(line)
    is_open = len(cells) == width - 1 and not header.strip().endswith("|")
    return [*cells, ""] if is_open else cells


def is_markdown(head: bytes) -> bool:
    """Whether a text holds a Markdown table: a line with bars above a line of dashes."""
    return _MARKDOWN_TABLE.search(head.decode("utf-8", "replace").translate(_BOX_SIGNS)) is not None


_HEADING = re.compile(r"\s*(?:(#+)\s+(.+?)\s*#*|(\*\*[^|*]{1,80}\*\*:?|[^|:]{1,60}:))\s*")
_BOLD_DEPTH = 7
_MODEL_HEADING = re.compile(r"(?:model|agent)\s*:\s*[`*]*([^`*]+?)[`*]*\s*", re.IGNORECASE)
_TRIAL_HEADING = re.compile(
    r"(?:run|trial|attempt|seed|rep(?:eat|etition)?|try|round|pass|epoch|iteration)\W*\d+\b.*",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"^(\*\*|\*|`)(.+)\1$")
"""Not the underscore: names of tasks begin and end with it."""
# Org tables have + between the dashes, and grids around them, too.
_MARKDOWN_RULE = re.compile(r"\s*[|+]?\s*:?[-=]+:?\s*([|+]\s*:?[-=]+:?\s*)*[|+]?\s*")
_MARKDOWN_TABLE = re.compile(r"(?m)^[^\n]*\|[^\n]*\n\s*[|+]?\s*:?[-=]+:?\s*[|+][\s:|+=-]*$")
_GRID_RULE = re.compile(r"\s*\+[-=]+(\+[-=]+)*\+\s*")
_BOX_SIGNS = str.maketrans(
    dict.fromkeys(map(chr, range(0x2500, 0x2580)), "+")
    | {**dict.fromkeys("│┃║╎╏┆┇┊┋", "|"), **dict.fromkeys("─━═╌╍┄┅┈┉", "-")}
)
