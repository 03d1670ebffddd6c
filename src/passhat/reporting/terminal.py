"""A document as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from passhat.reporting.document import (
    Bar,
    Block,
    Document,
    Facts,
    Figure,
    Finding,
    Heading,
    Level,
    Listing,
    NextStep,
    Note,
    Outline,
    OutlineItem,
    Properties,
    Sentence,
    Table,
    Trend,
)

# Okabe and Ito's palette: distinguishable with any kind of color vision, and next to a shape each.
_HAT_COLOR, _AT_COLOR, _GREY = "#0072B2", "#E69F00", "grey50"
_SIGN_COLORS = {"✓": "#009E73", "✗": "#D55E00", "?": "#E69F00"}
_TONES = {"lead": "italic", "warning": "bold", "plain": ""}
_LONGEST_LINE = 79
_LONGEST_HEADING = 240
_MOST_ITEMS = 20
"""Items of a listing in the full form."""


def render_terminal(document: Document, console: Console, level: Level = Level.FULL) -> str:
    """Lay out the blocks of a level for this console, with its colors and its width."""
    return capture(console, lambda: _layout(list(document.blocks(level)), level))


def plain(text: str, style: str = "") -> Text:
    """Text without markup; terminal escapes are replaced.

    Names and ids come from other people's files: a control character in them never reaches the
    terminal.
    """
    visible = "".join(
        ch if ch.isprintable() or ch == "\n" else "\N{REPLACEMENT CHARACTER}" for ch in text
    )
    return Text(visible, style=style)


def _line(text: str, style: str = "") -> Text:
    """As :func:`plain`, on one line before wrapping: an id may hold a line break."""
    return plain("↵".join(text.splitlines()), style)


def plain_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[int] = (0,),
    whole: Sequence[int] = (),
) -> Grid:
    """A table without frames.

    ``left`` names the columns that hold text rather than numbers, ``whole`` those that are never
    broken over two lines.
    """
    table = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(header):
        table.add_column(
            plain(name),
            justify="left" if index in left else "right",
            overflow="fold",
            no_wrap=index in whole,
        )
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def facts(entries: Iterable[tuple[str, str]]) -> Grid:
    """Titles next to their text; a repeated title is shown once."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for title, text in entries:
        grid.add_row("" if title == last else title, plain(text))
        last = title
    return grid


def capture(console: Console, parts: Callable[[], Iterable[RenderableType]]) -> str:
    """The text that the console would show, with its colors and its width."""
    with console.capture() as caught:
        console.print(Group(*parts()), crop=False)
    return caught.get()


def _layout(blocks: Sequence[Block], level: Level) -> Iterator[RenderableType]:
    """The blocks one below the other; the full form has empty lines between those of a kind."""
    before: Block | None = None
    for kind, group in groupby(blocks, lambda block: isinstance(block, Facts | Properties)):
        for block in [list(group)] if kind else group:
            first = block[0] if isinstance(block, list) else block
            if level is Level.FULL and before is not None and _is_apart(before, first):
                yield Text("")
            if isinstance(block, list):
                yield facts(_fact_lines(block))
            else:
                yield from _render(block, level)
            before = first
    if level is Level.FULL and isinstance(before, Facts | Properties):
        yield Text("")


def _is_apart(before: Block, block: Block) -> bool:
    """Whether an empty line separates two blocks."""
    if isinstance(block, Heading):
        return True
    together = (Sentence, Note, Finding, NextStep, Listing)
    if isinstance(before, Heading) or isinstance(block, Note):
        return False
    return not (isinstance(before, together) and isinstance(block, together))


def _fact_lines(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    for block in blocks:
        if isinstance(block, Properties):
            yield block.title, " · ".join(f"{name} {value}" for name, value in block.entries)
        elif isinstance(block, Facts):
            for title, group in groupby(block.entries, lambda entry: entry[0]):
                lines = [text for _, text in group]
                mark = "· " if len(lines) > 1 else ""
                yield from ((title, f"{mark}{line}") for line in lines)


def _render(block: Block, level: Level) -> Iterator[RenderableType]:
    if isinstance(block, Heading):
        detail = _line(f"  {block.detail}") if block.detail else Text("")
        text = block.text
        if level is Level.SHORT and len(text) > _LONGEST_HEADING:  # an agent may have any name
            text = f"{text[: _LONGEST_HEADING - 1]}…"
        yield Text.assemble(_line(text, "bold"), detail)
    elif isinstance(block, Sentence):
        whole = _line(f"{block.text}{block.ending}", _TONES[block.tone])
        # A command to paste: the terminal breaks the line, not we.
        whole.no_wrap, whole.overflow = (True, "ignore") if block.ending else (None, None)
        yield whole
    elif isinstance(block, Note):
        yield _line(block.text, _GREY)
    elif isinstance(block, NextStep):
        step = plain(block.line)
        if block.has_command:  # what is copied stays on one line
            step.no_wrap, step.overflow = True, "ignore"
        yield step
    elif isinstance(block, Listing):
        yield _line(_fit(block.title, block.items, level))
    elif isinstance(block, Table):
        yield from _render_table(block)
    else:
        yield from _render_drawing(block)


def _render_drawing(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Finding):
        yield from _render_finding(block)
    elif isinstance(block, Figure):
        yield from _render_figure(block)
    elif isinstance(block, Bar):
        yield _indent(plain(block.line), 6)
        yield _indent(plain(block.text, _GREY), 6)
    elif isinstance(block, Trend):
        yield plain("\n".join(block.lines))
        yield plain(block.text, _GREY)
    elif isinstance(block, Outline):
        yield from _render_outline(block.items)


def _render_table(block: Table) -> Iterator[RenderableType]:
    if block.caption:
        yield plain(block.caption, "bold")
    yield plain_table(block.header, block.rows[: block.most], left=block.left)
    if block.most is not None and len(block.rows) > block.most:
        yield plain(f"and {len(block.rows) - block.most:,} more{block.more}", _GREY)


def _render_finding(block: Finding) -> Iterator[RenderableType]:
    verdict = plain(f"{block.sign} {block.verdict}", f"bold {_SIGN_COLORS.get(block.sign, '')}")
    yield _indent(Text.assemble(verdict, "  ", plain(block.text, "bold")), 2)
    yield from (_indent(_line(line), 6) for line in block.details)


_MOST_NUMBERS = 8


def _render_outline(items: Sequence[OutlineItem], before: str = "") -> Iterator[RenderableType]:
    for place, item in enumerate(items):
        is_last = place == len(items) - 1
        numbers = [f"#{mark.number}" for mark in item.marks[:_MOST_NUMBERS]]
        numbers += ["…"] if len(item.marks) > _MOST_NUMBERS else []
        # Without a hanging indent a long line would break the drawing of the branches.
        line = Grid.grid(padding=(0, 0))
        line.add_column(no_wrap=True)
        line.add_column(overflow="fold")
        line.add_row(
            plain(f"{before}{'└' if is_last else '├'}─ "),
            Text.assemble(
                plain(item.text, "bold" if item.strong else ""),
                plain(f"  {item.detail}  {' '.join(numbers)}", _GREY),
            ),
        )
        yield line
        yield from _render_outline(item.items, f"{before}{' ' if is_last else '│'}  ")


def _indent(text: Text, spaces: int) -> Padding:
    return Padding(text, (0, 0, 0, spaces), expand=False)


def _fit(title: str, items: Sequence[str], level: Level) -> str:
    """As many items as fit on a line, or twenty in the full form, and how many more there are."""
    line = title
    for place, item in enumerate(items):
        rest = len(items) - place - 1
        rest_text = f" and {rest:,} more" if rest else ""
        longer = f"{line}{',' if place else ''} {item}"
        full = (
            place == _MOST_ITEMS if level is Level.FULL else len(longer + rest_text) > _LONGEST_LINE
        )
        if place and full:
            return f"{line} and {rest + 1:,} more"
        line = longer
    return line


_HAT, _AT, _BOTH = "●", "○", "◉"
_CURVE_ROWS = 9
_CURVE_COLUMNS = 16
"""Columns drawn at most; between them ks are thinned evenly."""


def _render_figure(block: Figure) -> Iterator[RenderableType]:
    lines = Text("\n".join(draw_curve(block.points)))
    lines.highlight_regex(_HAT, _HAT_COLOR)
    lines.highlight_regex(_AT, _AT_COLOR)
    legend = Text.assemble(
        (_HAT, _HAT_COLOR), " pass^k, all of k pass   ", (_AT, _AT_COLOR), " pass@k, any of k"
    )
    yield Padding(Group(lines, legend), (0, 0, 0, 1))


def draw_curve(points: Sequence[tuple[int, float, float]]) -> list[str]:
    """Draw (k, pass^k, pass@k) as lines of text: k to the right, the metric upwards from 0 to 1."""
    columns = _thin(points)
    width = max(len(str(k)) for k, _, _ in columns) + 2
    grid = [[" " * width for _ in columns] for _ in range(_CURVE_ROWS)]
    for column, (_, pass_hat, pass_at) in enumerate(columns):
        hat, at = _curve_row(pass_hat), _curve_row(pass_at)
        grid[at][column] = _AT.center(width)
        grid[hat][column] = (_BOTH if hat == at else _HAT).center(width)
    labels = {0: "1.0", _CURVE_ROWS // 2: "0.5", _CURVE_ROWS - 1: "0.0"}
    lines = [
        f"{labels.get(row, ''):>4} {'┤' if row in labels else '│'}{''.join(cells)}"
        for row, cells in enumerate(grid)
    ]
    axis = "".join(str(k).center(width) for k, _, _ in columns)
    return [*lines, f"{'':>4}  {axis}  k"]


def _curve_row(value: float) -> int:
    return round((1 - min(1.0, max(0.0, value))) * (_CURVE_ROWS - 1))


def _thin(points: Sequence[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    if len(points) <= _CURVE_COLUMNS:
        return list(points)
    last = len(points) - 1
    places = sorted({round(i * last / (_CURVE_COLUMNS - 1)) for i in range(_CURVE_COLUMNS)})
    return [points[i] for i in places]
