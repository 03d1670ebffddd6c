"""A comparison as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from passhat.report import comparison_view as view
from passhat.report.tables import captured, facts, plain, plain_table
from passhat.stats.compare import Comparison, Comparisons

__all__ = ["render_comparison"]

_MOST_CURVE_ROWS = 8


def render_comparison(found: Comparison | Comparisons, console: Console) -> str:
    """Two runs: the sentence first, then the numbers, then what was used up. More: the ranks."""
    return captured(
        console, lambda: _parts(found) if isinstance(found, Comparison) else _ranking(found)
    )


def _ranking(comparisons: Comparisons) -> Iterator[RenderableType]:
    runs = f"{len(comparisons.names)} runs, {len(comparisons.pairs)} pairs"
    yield Text(runs, style="bold")
    yield plain(comparisons.pairing_text)
    yield Text("")
    yield plain_table(view.RANK_HEADER, view.rank_rows(comparisons))
    yield plain_table(view.PAIR_HEADER, view.pair_rows(comparisons))
    yield Text(view.ranking_note(comparisons), style="italic")
    yield facts([("Protocol", line) for line in view.ranking_lines(comparisons)])


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text.assemble("A ", plain(comparison.a, "bold"), "   B ", plain(comparison.b, "bold"))
    yield plain(comparison.pairing_text)
    yield Text("")
    for found in comparison.results:
        yield plain(found.sentence, "italic")
    yield Text("")
    yield plain_table(view.RESULT_HEADER, view.result_rows(comparison.results))
    yield Text("Lifts are B minus A, in points.", style="grey50")
    if comparison.slices:
        yield plain_table(view.SLICE_HEADER, view.slice_rows(comparison))
    for curve in comparison.curves:
        if len(curve.points) <= _MOST_CURVE_ROWS or curve.flips:
            yield Text(f"{curve.family}: lift over k, all k at once", style="bold")
            yield plain_table(view.CURVE_HEADER, view.curve_rows(curve))
    entries = [("Flips", str(flip)) for flip in comparison.flips]
    entries += [("Evidence", found.method) for found in comparison.results[:1]]
    entries += [("Deployment", comparison.deployment_text)]
    entries += [("Protocol", line) for line in view.protocol_lines(comparison)]
    entries += [("Note", note) for note in comparison.notes]
    yield facts(entries)
