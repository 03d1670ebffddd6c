"""Markdown tables and text that cannot be taken for markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["escape", "table"]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, line by line, with every cell escaped; ends with an empty line."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(escape, row)) + " |"
    yield ""


def escape(text: str) -> str:
    """Keep a task id or a model name from being read as Markdown or HTML."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")
