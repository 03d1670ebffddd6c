"""Blocks of a document as HTML, for the report page and for the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from markupsafe import Markup, escape

from passhat.reporting.document import (
    Block,
    Facts,
    Finding,
    Heading,
    Listing,
    NextStep,
    Note,
    Properties,
    Section,
    Sentence,
    Table,
)

__all__ = ["render_blocks", "render_sections"]

_MOST_ITEMS = 20
_CLASSES = {"lead": "claim", "plain": "more", "warning": "more warning"}


def render_blocks(blocks: Iterable[Block], table_class: str = "") -> Markup:
    """Lay out blocks one below the other; figures are drawn by the pages themselves."""
    return Markup("\n").join(_render(block, table_class) for block in blocks)


def render_sections(sections: Iterable[Section]) -> Markup:
    """Lay out sections, those about the same run together under its name."""
    parts = []
    for subject, group in groupby(sections, lambda section: section.subject):
        title = Markup("<h3>{}</h3>").format(subject) if subject else ""
        body = render_blocks(block for section in group for block in section.blocks)
        parts.append(Markup('<div class="run">{}\n{}</div>').format(title, body))
    return Markup("\n").join(parts)


def _render(block: Block, table_class: str) -> Markup:
    if isinstance(block, Heading):
        detail = Markup(' <span class="small">{}</span>').format(block.detail)
        return Markup("<h3>{}{}</h3>").format(block.text, detail if block.detail else "")
    if isinstance(block, Sentence):
        kind = _CLASSES[block.tone]
        return Markup('<p class="{}">{}{}</p>').format(kind, block.text, block.ending)
    if isinstance(block, Note):
        return Markup('<p class="hint">{}</p>').format(block.text)
    if isinstance(block, NextStep):
        return Markup('<p class="more next">Next: {}</p>').format(block.text)
    if isinstance(block, Listing):
        rest = len(block.items) - _MOST_ITEMS
        more = f" and {rest:,} more" if rest > 0 else ""
        items = ", ".join(block.items[:_MOST_ITEMS])
        return Markup('<p class="more"><b>{}</b> {}{}</p>').format(block.title, items, more)
    if isinstance(block, Table):
        return _render_table(block, table_class)
    if isinstance(block, Facts):
        groups = groupby(block.entries, lambda entry: entry[0])
        return _definitions((title, [text for _, text in group]) for title, group in groups)
    if isinstance(block, Properties):
        return _definitions((name, [value]) for name, value in block.entries)
    if isinstance(block, Finding):
        lines = Markup("").join(Markup("<li>{}</li>").format(line) for line in block.details)
        return Markup('<div class="finding"><p><b>{} {}</b> {}</p><ul>{}</ul></div>').format(
            block.sign, block.verdict, block.text, lines
        )
    return Markup("")


def _definitions(groups: Iterable[tuple[str, list[str]]]) -> Markup:
    rows = Markup("").join(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(
            title, Markup("<br>").join(map(escape, lines))
        )
        for title, lines in groups
    )
    return Markup("<dl>{}</dl>").format(rows)


def _render_table(block: Table, table_class: str) -> Markup:
    sides = [" class=t" if index in block.left else "" for index in range(len(block.header))]
    head = Markup("").join(
        Markup("<th scope=col{}>{}</th>").format(Markup(side), name)
        for side, name in zip(sides, block.header, strict=True)
    )
    rows = []
    for row in block.rows:
        first = Markup("<th scope=row{}>{}</th>").format(Markup(sides[0]), row[0])
        cells = Markup("").join(
            Markup('<td{} data-label="{}">{}</td>').format(Markup(side), name, cell)
            for side, name, cell in zip(sides[1:], block.header[1:], row[1:], strict=True)
        )
        rows.append(Markup("<tr>{}{}</tr>").format(first, cells))
    caption = Markup("<caption>{}</caption>").format(block.caption) if block.caption else ""
    return Markup(
        '<div class="scroll"><table class="{}">{}<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>'
        "</table></div>"
    ).format(table_class, caption, head, Markup("\n").join(rows))
