"""A document as Markdown, for a pull request, a job summary or a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from passhat.reporting.document import (
    Bar,
    Block,
    Document,
    Facts,
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

_BACKTICKS = re.compile("`+")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_LINE_END = re.compile("[\r\n\x0b\x0c\x85\u2028\u2029]+")
_MOST_ITEMS = 20


def render_markdown(document: Document) -> str:
    """The full form of a document as Markdown."""
    return "\n".join(_layout(document.blocks(Level.FULL))).rstrip("\n") + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, line by line, with every cell escaped; ends with an empty line."""
    yield "| " + " | ".join(map(escape, header)) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(escape, row)) + " |"
    yield ""


def escape(text: str) -> str:
    """Keep a task id or a model name from being read as Markdown or HTML."""
    for sign in "\\`*_[]<|#~":
        text = text.replace(sign, f"\\{sign}")
    text = _ENTITY.sub(r"\\&", _LINE_END.sub(" ", text))
    return f"\\{text}" if text.startswith(">") else text  # elsewhere > is a sign like any other


def code(text: str) -> str:
    """Text as a code span, whatever backticks it has; nothing in it is read as Markdown."""
    flat = _LINE_END.sub(" ", text)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(flat)), default=0))
    # A space next to the fence keeps it apart from a backtick; a renderer removes it.
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _layout(blocks: Iterable[Block]) -> Iterator[str]:
    """The blocks one below the other; neighbors that are list items make one list."""
    items = (Facts, Properties, Finding)
    for is_list, group in groupby(blocks, lambda block: isinstance(block, items)):
        for block in group:
            yield from _render_items(block) if is_list else _render(block)
        if is_list:
            yield ""


def _render(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield from (f"{'#' * block.rank} {escape(block.text)}", "")
        if block.detail:
            yield from (escape(block.detail), "")
    elif isinstance(block, Sentence):
        # An ending by itself is a command.
        text = escape(f"{block.text}{block.ending}") if block.text else code(block.ending)
        yield from (text if block.tone == "plain" else f"**{text}**", "")
    elif isinstance(block, Note):
        yield from (escape(block.text), "")
    elif isinstance(block, NextStep):
        line = escape(block.line)
        yield from (line.replace("Next:", "**Next:**", 1) if block.has_command else line, "")
    elif isinstance(block, Listing):
        items = ", ".join(map(escape, block.items[:_MOST_ITEMS]))
        rest = len(block.items) - _MOST_ITEMS
        rest_text = f" and {rest:,} more" if rest > 0 else ""
        yield from (f"**{escape(block.title)}** {items}{rest_text}", "")
    elif isinstance(block, Table):
        if block.caption:
            yield from (f"**{escape(block.caption)}**", "")
        yield from table(block.header, block.rows)
    else:
        yield from _render_drawing(block)


def _render_drawing(block: Block) -> Iterator[str]:
    if isinstance(block, Bar):
        yield from (code(block.line), "", escape(block.text), "")
    elif isinstance(block, Trend):
        yield from ("```text", *block.lines, "```", "", escape(block.text), "")
    elif isinstance(block, Outline):
        yield from (*_outline_lines(block.items), "")


def _outline_lines(items: Iterable[OutlineItem], depth: int = 0) -> Iterator[str]:
    for item in items:
        text = f"**{escape(item.text)}**" if item.strong else escape(item.text)
        numbers = " ".join(f"#{mark.number}" for mark in item.marks)
        yield f"{'  ' * depth}- {text}: {escape(item.detail)} {escape(f'({numbers})')}"
        yield from _outline_lines(item.items, depth + 1)


def _render_items(block: Block) -> Iterator[str]:
    if isinstance(block, Facts):
        for title, group in groupby(block.entries, lambda entry: entry[0]):
            first, *others = [escape(text) for _, text in group]
            yield f"- **{escape(title)}**" + ("" if others else f": {first}")
            yield from (f"  - {line}" for line in ((first, *others) if others else ()))
    elif isinstance(block, Properties):
        yield f"- **{escape(block.title)}**"
        yield from (f"  - {escape(name)}: {escape(value)}" for name, value in block.entries)
    elif isinstance(block, Finding):
        yield f"- **{escape(f'{block.sign} {block.verdict}')}** {escape(block.text)}"
        yield from (f"  - {escape(line)}" for line in block.details)
