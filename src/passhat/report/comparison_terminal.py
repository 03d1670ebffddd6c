"""A comparison as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from passhat.comparison import Comparison, Comparisons
from passhat.report import comparison_view as view
from passhat.report.tables import plain_table

__all__ = ["print_comparison"]

_MOST_CURVE_ROWS = 8


def print_comparison(found: Comparison | Comparisons, console: Console) -> None:
    """Two runs: the sentence first, then the numbers, then what was used up. More: the ranks."""
    console.print(Group(*(_parts(found) if isinstance(found, Comparison) else _ranking(found))))


def _ranking(comparisons: Comparisons) -> Iterator[RenderableType]:
    runs = f"{len(comparisons.names)} runs, {len(comparisons.pairs)} pairs"
    yield Text(runs, style="bold")
    yield Text(comparisons.pairing_text)
    yield Text("")
    yield plain_table(view.RANK_HEADER, view.rank_rows(comparisons))
    yield plain_table(view.PAIR_HEADER, view.pair_rows(comparisons))
    yield Text(view.ranking_note(comparisons), style="italic")
    yield from _facts([("Protocol", line) for line in view.ranking_lines(comparisons)])


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text.assemble("A ", (comparison.a, "bold"), "   B ", (comparison.b, "bold"))
    yield Text(comparison.pairing_text)
    yield Text("")
    for found in comparison.results:
        yield Text(found.sentence, style="italic")
    yield Text("")
    yield plain_table(view.RESULT_HEADER, view.result_rows(comparison.results))
    yield Text("Lifts are B minus A, in points.", style="grey50")
    if comparison.slices:
        yield plain_table(view.SLICE_HEADER, view.slice_rows(comparison))
    for curve in comparison.curves:
        if len(curve.points) <= _MOST_CURVE_ROWS or curve.flips:
            yield Text(f"{curve.family}: lift over k, all k at once", style="bold")
            yield plain_table(view.CURVE_HEADER, view.curve_rows(curve))
    facts = [("Flips", str(flip)) for flip in comparison.flips]
    facts += [("Evidence", found.method) for found in comparison.results[:1]]
    facts += [("Deployment", comparison.deployment_text)]
    facts += [("Protocol", line) for line in view.protocol_lines(comparison)]
    facts += [("Note", note) for note in comparison.notes]
    yield from _facts(facts)


def _facts(facts: Sequence[tuple[str, str]]) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for title, line in facts:
        grid.add_row("" if title == last else title, Text(line))
        last = title
    yield grid
