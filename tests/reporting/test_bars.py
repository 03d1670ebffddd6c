"""A change drawn as a bar: the same block in text, Markdown and HTML."""

from __future__ import annotations

import pytest
from rich.console import Console

from passhat import Outcomes, compare, gate
from passhat.reporting.document import Bar, Document, Level
from passhat.reporting.documents.verdicts import comparison_document, gate_document
from passhat.reporting.html.blocks import render_blocks
from passhat.reporting.markdown import render_markdown
from passhat.reporting.terminal import render_terminal

BASE = Outcomes.from_counts(8, [8, 7, 6, 8, 5, 8] * 5)
WORSE = Outcomes.from_counts(8, [6, 5, 4, 7, 2, 6] * 5)


def find_bar(document: Document, level: Level = Level.FULL) -> Bar:
    return next(block for block in document.blocks(level) if isinstance(block, Bar))


@pytest.mark.parametrize(
    ("low", "value", "high", "drop"),
    [(-14, -9, -4, 10), (2, 3, 4, None), (-100, -50, 0, 40), (-0.2, 0, 0.2, None), (0, 0, 0, 0.5)],
)
def test_everything_lies_on_the_axis(
    low: float, value: float, high: float, drop: float | None
) -> None:
    bar = Bar("", low, value, high, drop)
    left, right = bar.ends
    assert left <= min(low, 0) <= max(high, 0) <= right
    assert left < right
    line = bar.line
    assert len(line.splitlines()) == 1
    assert line.count("●") == 1
    assert ("▼" in line) is (drop is not None)


def test_the_value_lies_inside_and_a_drop_at_the_same_place_is_seen() -> None:
    line = Bar("", -14, -10, -4, 10).line
    assert line.index("├") < line.index("▼") < line.index("●") < line.index("┤") < line.index("│")


def test_a_gate_draws_its_change_in_every_form() -> None:
    result = gate(WORSE, (), BASE)
    document = gate_document(result)
    bar = find_bar(document, Level.SHORT)
    line = bar.line
    assert line in render_terminal(document, Console(width=200), Level.SHORT)
    markdown = render_markdown(document)
    assert f"`{line}`" in markdown
    html = str(render_blocks(document.blocks(Level.FULL)))
    assert "<svg" in html
    assert bar.text in html
    assert result.power is not None
    assert result.power.detectable is not None
    assert bar.detectable == pytest.approx(100 * result.power.detectable)
    assert "▼ caught in 8 of 10 runs" in bar.text


def test_a_comparison_draws_it_too_and_nothing_judged_is_not_drawn() -> None:
    document = comparison_document(compare(BASE, WORSE))
    bar = find_bar(document)
    assert (bar.low < bar.value < bar.high < 0, bar.detectable) == (True, None)
    nothing = Outcomes.from_counts(0, [0] * 30, missing=8)
    result = gate(nothing, (), BASE)
    blocks = gate_document(result).blocks(Level.FULL)
    assert not any(isinstance(block, Bar) for block in blocks)
