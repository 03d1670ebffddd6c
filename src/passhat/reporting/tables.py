"""Building blocks of terminal pages: plain text, plain tables, and facts with a title each.

Names and ids come from other people's files. They are shown as they are, never as markup, and a
control character in them never reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["captured", "facts", "plain", "plain_table"]


def plain(text: str, style: str = "") -> Text:
    """Text without markup; terminal escapes are replaced."""
    shown = "".join(
        ch if ch.isprintable() or ch == "\n" else "\N{REPLACEMENT CHARACTER}" for ch in text
    )
    return Text(shown, style=style)


def plain_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[int] = (0,),
    whole: Sequence[int] = (),
) -> Table:
    """A table without frames.

    ``left`` names the columns that hold text rather than numbers, ``whole`` those that are never
    broken over two lines.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(header):
        table.add_column(
            name,
            justify="left" if index in left else "right",
            overflow="fold",
            no_wrap=index in whole,
        )
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def facts(entries: Iterable[tuple[str, str]]) -> Table:
    """Titles next to their text; a repeated title is shown once."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for title, text in entries:
        grid.add_row("" if title == last else title, plain(text))
        last = title
    return grid


def captured(console: Console, parts: Callable[[], Iterable[RenderableType]]) -> str:
    """The text that the console would show, with its colours and its width."""
    with console.capture() as caught:
        console.print(Group(*parts()))
    return caught.get()
