"""A comparison as Markdown, for a pull request or a page."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.report import comparison_view as view
from passhat.report.markdown_text import escape, table
from passhat.stats.compare import Comparison, Comparisons

__all__ = ["comparison_markdown"]


def comparison_markdown(found: Comparison | Comparisons) -> str:
    """Two runs, or three and more."""
    lines = _section(found) if isinstance(found, Comparison) else _ranking(found)
    return "\n".join(lines) + "\n"


def _section(comparison: Comparison) -> Iterator[str]:
    yield f"## {escape(comparison.b)} (B) against {escape(comparison.a)} (A)"
    yield ""
    yield escape(comparison.pairing_text)
    yield ""
    for found in comparison.results:
        yield f"**{escape(found.sentence)}**"
        yield ""
    yield from table(view.RESULT_HEADER, view.result_rows(comparison.results))
    yield "Lifts are B minus A, in points."
    yield ""
    if comparison.slices:
        yield from table(view.SLICE_HEADER, view.slice_rows(comparison))
    for curve in comparison.curves:
        yield f"### {escape(curve.family)}: lift over k, all k at once"
        yield ""
        yield from table(view.CURVE_HEADER, view.curve_rows(curve))
    yield from (f"- **flips**: {escape(str(flip))}" for flip in comparison.flips)
    yield from (f"- **evidence**: {escape(found.method)}" for found in comparison.results[:1])
    yield f"- **deployment value**: {escape(comparison.deployment_text)}"
    yield from (f"- **protocol**: {escape(line)}" for line in view.protocol_lines(comparison))
    yield from (f"- {escape(note)}" for note in comparison.notes)


def _ranking(comparisons: Comparisons) -> Iterator[str]:
    yield f"## {len(comparisons.names)} runs compared"
    yield ""
    yield escape(comparisons.pairing_text)
    yield ""
    yield from table(view.RANK_HEADER, view.rank_rows(comparisons))
    yield from table(view.PAIR_HEADER, view.pair_rows(comparisons))
    yield view.ranking_note(comparisons)
    yield ""
    yield from (f"- **protocol**: {escape(line)}" for line in view.ranking_lines(comparisons))
