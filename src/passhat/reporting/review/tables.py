"""Tables in a text: their rows, in Markdown, LaTeX, HTML, CSV or aligned, and what they state."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from passhat.reporting.review.clauses import parse_sentences
from passhat.reporting.review.grammar import name_pattern
from passhat.reporting.review.marks import Cue, MarkedSentence
from passhat.reporting.review.nearest import FAIL
from passhat.reporting.review.statements import (
    BENCHMARK,
    OTHER,
    Difference,
    Share,
    Size,
    Statement,
    Unread,
)

__all__ = ["cells_of", "is_rule", "parse_table", "table_text", "text_lines", "without_marks"]

_RULE = re.compile(
    r"^\|?\s*:?-{2,}:?\s*(?:\|\s*:?-*:?\s*)*\|?$|^\\(?:hline|toprule|midrule|bottomrule|cline\S*)$"
)
_METRIC = re.compile(r"(?:g-?pass|pass|maj|cons|avg|mean|best|worst)\s?[@^]", re.IGNORECASE)
_MEASURED = re.compile(
    rf"{_METRIC.pattern}|accuracy|success|\bmean\b|\bavg\b|\baverage\b|resolved?|pass rate|score|"
    rf"solved|share|%|rate\b|k ?= ?\d|{BENCHMARK}",
    re.IGNORECASE,
)
_ROLES = (
    ("interval", r"\bCIs?\b|interval|confidence|bounds"),
    ("error", r"^(?:SE|SEM|s\.e\.|std\.? ?err\w*|standard errors?|±)$"),
    ("difference", r"Δ|delta|diff|gain\b|lift|improvement|change|\bgap\b|vs\.? "),
    ("rank", r"^(?:rank|place|position|#)$"),
    (
        "tasks",
        r"^(?:#\s?|n(?:umber)? (?:of )?|no\.? of )?(?:tasks|problems|questions|issues|instances|"
        r"examples)$|^n$|^(?:total|out of)$",
    ),
    (
        "attempts",
        r"^(?:#\s?|n(?:umber)? (?:of )?)?(?:attempts|runs|trials|samples|seeds|"
        r"tries)(?: (?:per task|each))?$|^k$",
    ),
)
_TOTAL = re.compile(r"^\W*(?:total|all|overall|sum|tasks|number)\b|^\W*$", re.IGNORECASE)
_LATEX_ROW = re.compile(r"\\\\(?:\[[^\]]*\])?")


def without_marks(text: str) -> str:
    """The text without the marks of Markdown around words."""
    text = re.sub(r"[*`]{1,2}(?=\S)|(?<=\S)[*`]{1,2}", "", text)
    return re.sub(r"(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w)", "", text)  # but not in a_name


def text_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers; every row of a table as ``| cell | cell |``."""
    lines = [(n, _plain_metrics(line.strip())) for n, line in enumerate(text.splitlines(), 1)]
    at = 0
    while at < len(lines):
        for read_block in (
            _html_block, _latex_block, _open_block, _delimited_block, _listed_block,
        ):  # fmt: skip
            rows, used = read_block(lines[at:])
            if used:
                yield from rows
                at += used
                break
        else:
            yield lines[at]
            at += 1


_Lines = list[tuple[int, str]]


def _row(number: int, cells: Sequence[str]) -> tuple[int, str]:
    return number, f"| {' | '.join(cell.strip().replace('|', '/') for cell in cells)} |"


def _html_block(lines: _Lines) -> tuple[_Lines, int]:
    if "<table" not in lines[0][1].lower():
        return [], 0
    used = next((at for at, (_, line) in enumerate(lines, 1) if "</table" in line.lower()), 0)
    body = " ".join(line for _, line in lines[:used])
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.IGNORECASE)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.IGNORECASE) for row in rows]
    number = lines[0][0]
    return [
        _row(number, [re.sub(r"<[^>]+>", "", cell) for cell in row]) for row in cells if row
    ], used


def _latex_block(lines: _Lines) -> tuple[_Lines, int]:
    if r"\begin{tabular" not in lines[0][1]:
        return [], 0
    used = next((at for at, (_, line) in enumerate(lines, 1) if r"\end{tabular" in line), 0)
    rows = []
    for number, line in lines[:used]:
        body = re.sub(
            r"\\begin\{tabular[^}]*\}(?:\{[^}]*\})?(?:\{[^}]*\})?|\\end\{tabular[^}]*\}.*", "", line
        )
        body = re.sub(
            r"\\(?:hline|toprule|midrule|bottomrule|c(?:mid)?rule\S*|centering)\s?", "", body
        )
        rows += [
            _row(number, re.split(r"(?<!\\)&", row))
            for row in _LATEX_ROW.split(body)
            if re.search(r"(?<!\\)&", row)
        ]
    return rows, used


def _open_block(lines: _Lines) -> tuple[_Lines, int]:
    """A table of GitHub's Markdown without the outer bars."""
    if (
        len(lines) < 2
        or "|" not in lines[0][1]
        or not _RULE.match(lines[1][1])
        or "|" not in lines[1][1]
    ):
        return [], 0
    if lines[0][1].startswith("|"):
        return [], 0
    used = next((at for at, (_, line) in enumerate(lines) if "|" not in line), len(lines))
    return [
        _row(number, line.strip("|").split("|"))
        for number, line in lines[:used]
        if not _RULE.match(line)
    ], used


def _delimited_block(lines: _Lines) -> tuple[_Lines, int]:
    """CSV or aligned columns: as many cells in every line, a header of words, numbers below it."""
    for delimiter in (r"\s*\|\s*", r"\t", r"\s*;\s*", r"\s*,\s*", r"\s{2,}"):
        rows: list[tuple[int, list[str]]] = []
        for number, line in lines:
            cells = re.split(delimiter, line)
            if (
                len(cells) < 2
                or (rows and len(cells) != len(rows[0][1]))
                or line.startswith(("|", "-", "*", "\\"))
            ):
                break
            rows.append((number, cells))
        if len(rows) < 2 or not all(
            re.search(r"^\W*\.?\d[^a-z]*$", row[1][-1]) for row in rows[1:]
        ):
            continue
        header = rows[0][1]
        is_short = all(len(cell.split()) <= 4 for _, row in rows for cell in row)
        is_measured = any(
            _MEASURED.search(cell) for cell in (*header, *(row[0] for _, row in rows))
        )
        if is_short and is_measured and not re.fullmatch(r"[\d.%\s]+", header[-1]):
            return [_row(number, cells) for number, cells in rows], len(rows)
    return [], 0


def _plain_metrics(line: str) -> str:
    """The line with every metric by its full name: p@1 and pass@{1,2} as pass@1, pass@2."""
    line = re.sub(r"\b[pP]([@^])(?=\{?\d)", r"pass\1", line)
    line = re.sub(
        r"\b(pass[@^])\{(\d+(?:\s*,\s*\d+)+)\}",
        lambda match: ", ".join(f"{match[1]}{k}" for k in re.findall(r"\d+", match[2])),
        line,
        flags=re.IGNORECASE,
    )
    return _LISTED.sub(_beside, line)


_VALUE = r"(?<![\w.@^])\d*\.?\d+ ?\\?%?(?![\w@^])"
_METRICS = rf"{_METRIC.pattern}\d+"
_LISTED = re.compile(
    rf"(?P<values>{_VALUE}(?:\s?(?:,|/|;|\band\b|,\s?and\b)\s?{_VALUE})+)\s*[(\[]\s*"
    rf"(?P<metrics>{_METRICS}(?:\s?(?:,|/|;|\band\b|,\s?and\b)\s?{_METRICS})+)\s*[)\]]",
    re.IGNORECASE,
)


def _beside(match: re.Match[str]) -> str:
    """Numbers with the metrics listed behind them, each beside its own."""
    values = re.findall(_VALUE, match["values"])
    metrics = re.findall(_METRICS, match["metrics"], re.IGNORECASE)
    if len(values) != len(metrics):
        return match[0]
    return ", ".join(f"{a} = {b.strip()}" for a, b in zip(metrics, values, strict=True))


_ROW = re.compile(r"^(?P<row>[^&|]*[A-Za-z][^&|]*(?:[&|][^&|%#]*\d[^&|#]*?)+)\s*$")
_NOTED_ROW = re.compile(r"^(?P<row>[^&|]*[&|].*?\d.*?)\s*(?:\\\\|\s)\s*(?:%|#|//)\s*(?P<note>.*)$")
_NAMED = re.compile(rf"{_METRIC.pattern}\d+", re.IGNORECASE)
_NOTE = re.compile(
    rf"(?:{_NAMED.pattern}|\b(?:columns?|cols?|metrics?|order|model|agent|in|the|and|of|left|to|"
    r"right|are|is)\b|[\s%#/,:;&|()\\.-])+",
    re.IGNORECASE,
)


def _listed_block(lines: _Lines) -> tuple[_Lines, int]:
    """Rows whose metrics are listed beside, above or below them: A & 67 & 95 % pass@1, pass@5."""
    number, line = lines[0]
    noted = _NOTED_ROW.match(line)
    if noted and _is_list(noted["note"]):
        return _listed_rows([(number, noted["row"])], noted["note"]), 1
    at = next((at for at, (_, one) in enumerate(lines) if not _cells_of_row(one)), len(lines))
    if at == 0 and _is_list(line):
        rest = (at for at, (_, one) in enumerate(lines) if at and not _cells_of_row(one))
        end = next(rest, len(lines))
        return (_listed_rows(lines[1:end], line), end) if end > 1 else ([], 0)
    if 0 < at < len(lines) and _is_list(lines[at][1]):
        return _listed_rows(lines[:at], lines[at][1]), at + 1
    return [], 0


def _is_list(note: str) -> bool:
    return len(_NAMED.findall(note)) > 1 and _NOTE.fullmatch(note) is not None


def _cells_of_row(line: str) -> list[str]:
    line = line.removesuffix("\\\\").rstrip()
    is_row = _ROW.match(line) and not line.startswith("|") and not _METRIC.search(line)
    return re.split(r"(?<!\\)[&|]", line) if is_row else []


def _listed_rows(rows: _Lines, note: str) -> _Lines:
    """Rows below a header of the listed metrics; where they do not fit, no column has a metric."""
    metrics = _NAMED.findall(note)
    found: _Lines = [(rows[0][0], "")]
    for number, line in rows:
        cells = re.split(r"(?<!\\)[&|]", line.removesuffix("\\\\"))
        fits = len(cells) == len(metrics) + 1
        header = ["", *(metrics if fits else "?" * (len(cells) - 1))]
        found += [_row(number, header), _row(number, cells), (number, "")]
    return found


def cells_of(content: str) -> list[str]:
    """The cells of a row of a table, where the line is one; empty for other lines."""
    if content.startswith("|") and content.endswith("|") and not _RULE.match(content):
        cells = content[1:-1].split("|")
    elif "&" in content and content.endswith("\\\\"):
        cells = content[:-2].split("&")
    else:
        return []
    return [without_marks(cell.strip()) for cell in cells]


def is_rule(content: str) -> bool:
    """Whether a line only separates the header of a table from its body."""
    return bool(_RULE.match(content)) or (
        bool(content) and not content.strip("|:- ") and "-" in content
    )


def _role(column: str) -> str:
    """The role of a column (or of a row, where the runs are the columns)."""
    for role, pattern in _ROLES:
        if re.search(pattern, column.strip(), re.IGNORECASE):
            # "pass@1 [95% CI]" has the number and its interval in one cell.
            is_both = role in ("interval", "error") and _METRIC.search(column)
            return "measure" if is_both else role
    return "measure" if _MEASURED.search(column) else "other"


def _role_beside(
    label: str, column: str, header: Sequence[str], names: Sequence[Sequence[str]]
) -> tuple[str, str]:
    """The role of a cell, and the words for what it counts: those of its row below "tasks"."""
    role = _role(column)
    if column.strip(" $") == "k" and any(re.search(r"[@^]\s?k\b", one) for one in header):
        return "k", ""
    if role == "tasks" and not _TOTAL.search(label) and _run_of(label, names) is None:
        return "other", label
    return role, column


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """A table as sentences; only columns whose heading names something measured are numbers."""
    header, *body = rows
    is_across = not any(_MEASURED.search(cell) for cell in header[1:])
    sentences = []
    for row in body:
        claims = []
        for column, cell in zip(header[1:], row[1:], strict=False):
            role = _role(row[0] if is_across else column)
            if not re.search(r"\d", cell) or role in ("rank", "other", "error"):
                continue
            if role in ("tasks", "attempts"):
                claims.append(f"{cell} {role}")
            elif role == "interval":
                claims.append(f"95% interval {cell}")
            elif role == "difference":
                claims.append(f"{cell} points")
            elif is_across and len(header) > 2:
                claims.append(f"{column} {row[0]} = {cell}")
            else:
                claims.append(f"{row[0] if is_across else column} = {cell}")
        if claims:
            sentences.append(", ".join(claims) if is_across else f"{row[0]}: {', '.join(claims)}")
    return "; ".join(sentences)


@dataclass(frozen=True, slots=True)
class _Grid:
    """A table with a run per row; a run per column is turned round first."""

    header: list[str]
    rows: list[list[str]]
    runs: list[int | None]
    is_turned: bool


def parse_table(
    rows: Sequence[Sequence[str]], names: Sequence[Sequence[str]]
) -> Iterator[tuple[Statement, ...]]:
    """The statements of a table, a row each; runs may be its rows or its columns."""
    grid = _orient(rows, names)
    if grid is None and len(names) == 1:  # all of it is about the only run
        grid = _Grid(
            list(rows[0]), [list(row) for row in rows[1:]], [0] * len(rows[1:]), is_turned=False
        )
    if grid is None:
        if all(len(row) == 2 for row in rows) and all(_MEASURED.search(row[0]) for row in rows[1:]):
            for label, cell in rows[1:]:
                for _, statements in parse_sentences(f"{label} = {cell}", names):
                    yield statements
        else:
            yield (Unread("the table", "it names no run of the sources"),)
        return
    ranks: list[tuple[int, int]] = []
    metric = ""
    for run, row in zip(grid.runs, grid.rows, strict=True):
        if run is None:
            if not grid.is_turned or not any(_role(cell) == "difference" for cell in row[:1]):
                yield (Unread(row[0], "no source has a run of that name"),)
                continue
            yield tuple(_differences_of(grid, row))
            continue
        statements = tuple(_row_statements(grid, run, row, names))
        yield statements
        metric = metric or next((one.metric for one in statements if isinstance(one, Share)), "")
        ranks += [
            (int(re.sub(r"\D", "", cell)), run)
            for column, cell in zip(grid.header, row, strict=False)
            if _role(column) == "rank" and re.search(r"\d", cell)
        ]
    ranks.sort()
    for (_, better), (_, worse) in itertools.pairwise(ranks):
        yield (Difference("above", better, worse, 1, kind="ranked", metric=metric),)


def _run_of(cell: str, names: Sequence[Sequence[str]]) -> int | None:
    match = name_pattern(names).search(cell)
    if match:
        return next(
            at for at, words in enumerate(names) if match[1].lower() in map(str.lower, words)
        )
    if len(names) == 2 and cell.strip() in ("A", "B"):
        return "AB".index(cell.strip())
    return None


def _orient(rows: Sequence[Sequence[str]], names: Sequence[Sequence[str]]) -> _Grid | None:
    header, body = list(rows[0]), [list(row) for row in rows[1:]]
    down = [
        next((run for cell in row[:2] if (run := _run_of(cell, names)) is not None), None)
        for row in body
    ]
    across = [_run_of(cell, names) for cell in header[1:]]
    if sum(run is not None for run in across) > sum(run is not None for run in down):
        width = len(header)
        columns = [
            [row[at] if at < len(row) else "" for row in [header, *body]] for at in range(width)
        ]
        return _Grid([header[0], *(row[0] for row in body)], columns[1:], across, is_turned=True)
    return None if all(run is None for run in down) else _Grid(header, body, down, is_turned=False)


def _metric_name(column: str, row: Sequence[str], header: Sequence[str]) -> str:
    """The metric of a column as words; ``k=3`` takes its family from the row or the first cell."""
    if header[0].strip(" $") == "k" and re.fullmatch(r".*[@^]\s?k\b.*", column):
        return re.sub(r"(?<=[@^])\s?k\b", row[0].strip(" $"), column)
    k = re.fullmatch(r"\W*(?:k\s?=\s?)?(\d+)\W*", column)
    if k:
        label = " ".join((row[0], *header))
        family = re.search(r"(g?pass|maj|cons)\s?([@^])\s?k\b", label, re.IGNORECASE)
        return f"{family[1]}{family[2]}{k[1]}" if family else ""
    return column


def _row_statements(
    grid: _Grid, run: int, row: Sequence[str], names: Sequence[Sequence[str]]
) -> Iterator[Statement]:
    name = next(word for word in names[run] if word)
    shares: list[Statement] = []
    for column, cell in zip(grid.header, row, strict=False):
        if not re.search(r"\d", cell) or _run_of(cell, names) is not None:
            continue
        role, column = _role_beside(row[0], column, grid.header, names)
        number = re.search(r"[-+−]?\d[\d,]*\.?\d*", cell)
        if role in ("tasks", "attempts") and number:
            count = int(float(number[0].replace(",", "")))
            both = column.strip().lower() in ("n", "total", "out of")
            yield Size(
                f"{count:,} {role}",
                count,
                role == "tasks",
                role == "attempts" or both,
                per_task=False,
            )
        elif role == "interval":
            ends = re.findall(r"\d*\.?\d+", cell.replace("%", ""))
            if len(ends) != 2 or not shares or not isinstance(shares[-1], Share):
                shares.append(Unread(cell, "the number of this interval was not found", True))
            else:
                scale = 1.0 if max(map(float, ends)) <= 1 else 0.01
                shares[-1] = replace(
                    shares[-1], ends=(float(ends[0]) * scale, float(ends[1]) * scale)
                )
        elif role == "error" and number and shares and isinstance(shares[-1], Share):
            scale = 1.0 if shares[-1].text.startswith((".", "0.")) else 0.01
            shares[-1] = replace(shares[-1], error=float(number[0]) * scale, spread="se")
        elif role == "difference" and number:
            shares.append(
                _difference(
                    run, 1 - run if len(names) == 2 else None, cell, number[0], shares, signed=True
                )
            )
        elif counted := _counted_cell(run, column, cell) or _solved_cell(
            grid, run, row, column, cell
        ):
            shares.append(counted)
        elif role in ("measure", "other"):
            shares += _cell_statements(
                name, _metric_name(column, row, grid.header), cell, role, names
            )
    yield from shares


@cache
def _column_cue(column: str) -> Cue | None:
    """The only words of a heading that say what is counted."""
    cues = [cue for cue in MarkedSentence(column, ()).cues if cue.metric.startswith("tasks")]
    return cues[0] if len(cues) == 1 else None


def _counted_cell(run: int, column: str, cell: str) -> Share | None:
    """A cell whose heading says in words what it counts: solved at least once, never solved."""
    cue = _column_cue(column)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s?(%)?(?:\s*/\s*(\d+))?", cell.strip())
    if cue is None or found is None:
        return None
    failing = re.search(FAIL, column, re.IGNORECASE) is not None
    failing = failing if cue.failing is None else cue.failing
    value = float(found[1])
    share = Share(cell, value, value, 1.0, "=", (run,), metric=cue.metric, failing=failing)
    if found[3]:
        part = value / max(int(found[3]), 1)
        return replace(share, low=part, high=part, step=1 / max(int(found[3]), 1), counted="task")
    if found[2] or "%" in column or "." in found[1]:
        step = 10.0 ** -len(found[1].partition(".")[2]) / 100
        return replace(share, low=value / 100, high=value / 100, step=step)
    return replace(share, counted="task", count=int(value))


_FEWEST_ATTEMPTS = 20
"""A smaller number in a column of attempts is that of each task."""
_SOLVED = re.compile(
    r"^(?:#\s?|n(?:umber)? (?:of )?|tasks )?(?:(?P<pass>solved|passed|resolved|completed|correct|"
    r"successes|passes|passing|wins)|failed|failures|unsolved|fails)(?: tasks)?(?: \(?[n#]\)?)?$",
    re.IGNORECASE,
)


def _solved_cell(grid: _Grid, run: int, row: Sequence[str], column: str, cell: str) -> Share | None:
    """A number below "Solved" or "Failed": of the tasks or attempts whose total the row gives."""
    named = _SOLVED.match(column.strip())
    if named is None or not re.fullmatch(r"\d[\d,]*", cell.strip()):
        return None
    count = int(re.sub(r"\D", "", cell))
    tasks, attempts = (
        next(
            (
                int(re.sub(r"\D", "", other))
                for head, other in zip(grid.header, row, strict=False)
                if _role(head) == role and re.fullmatch(r"\d[\d,]*", other.strip())
            ),
            0,
        )
        for role in ("tasks", "attempts")
    )
    total = tasks if count <= tasks else attempts if attempts > tasks else tasks * attempts
    if not total or count > total or (not tasks and total < _FEWEST_ATTEMPTS):
        return None
    # Where tasks are counted, one that is solved in some attempts or in all may be meant.
    words = ("tasks@n", "tasks^n", "tasks:majority") if total == tasks else ()
    others = tuple(((run,), word) for word in words)
    return Share(
        cell, count / total, count / total, 1 / total, "=", (run,), metric="pass^1",
        failing=not named["pass"], others=others,
    )  # fmt: skip


def _cell_statements(
    name: str, metric: str, cell: str, role: str, names: Sequence[Sequence[str]]
) -> Iterator[Statement]:
    if role == "other" and not re.search(r"[@^]\d", metric):
        if not OTHER.search(metric) and re.fullmatch(r"[-+]?\d*\.?\d+\s?%?", cell):
            yield Unread(
                f"{metric or 'a column'} = {cell}", "what the column counts was not understood"
            )
        return
    added = re.search(r"\(\s*([-+−]\d+(?:\.\d+)?)\s*(?:points|pp|pts)?\s*\)", cell)
    if added:
        cell = cell.replace(added[0], f", {added[1]} points")
    metric = re.sub(r"\(\s*(?:%|±.*?|\\%)\s*\)|[\[(]?\s*95% (?:CI|interval)\s*[\])]?", "", metric)
    for _, statements in parse_sentences(f"{name} {metric} = {cell.strip()}", names):
        yield from statements


def _difference(
    subject: int | None,
    other: int | None,
    cell: str,
    number: str,
    shares: Sequence[Statement],
    *,
    signed: bool,
) -> Difference:
    size = float(number.replace("−", "-").replace(",", ""))
    step = 10.0 ** -len(number.partition(".")[2])
    metric = next((one.metric for one in reversed(shares) if isinstance(one, Share)), "")
    sign = 0 if not signed else 1 if size >= 0 else -1
    if "%" in cell and "%-p" not in cell:
        return Difference(cell, subject, other, sign, percent=abs(size), step=step, metric=metric)
    return Difference(
        f"{cell} points", subject, other, sign, points=abs(size), step=step, metric=metric
    )


def _differences_of(grid: _Grid, row: Sequence[str]) -> Iterator[Statement]:
    """A column of differences where the runs are the columns: its direction is not said."""
    runs = [run for run in grid.runs if run is not None]
    for column, cell in zip(grid.header[1:], row[1:], strict=False):
        number = re.search(r"[-+−]?\d[\d,]*\.?\d*", cell)
        if number and _MEASURED.search(column):
            named = re.search(rf"{_METRIC.pattern}\s?\d+", column, re.IGNORECASE)
            metric = named[0].lower().replace(" ", "") if named else "pass^1"
            made = _difference(runs[-1], runs[0], cell, number[0], (), signed=False)
            yield replace(made, metric=metric)
