"""A gate's verdicts as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from passhat.report.tables import captured, plain
from passhat.stats.gate import GateResult, GateVerdict, RuleResult

__all__ = ["render_gate"]

# Okabe and Ito's palette, with a shape beside each colour.
_COLOURS = {
    GateVerdict.SHOWN: "#009E73",
    GateVerdict.REFUTED: "#D55E00",
    GateVerdict.NOT_SETTLED: "#E69F00",
}
_GREY = "grey50"


def render_gate(result: GateResult, console: Console) -> str:
    """The headline, then each rule with its evidence and what to do next."""
    return captured(console, lambda: _parts(result))


def _parts(result: GateResult) -> Iterator[RenderableType]:
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    yield Text.assemble(plain(name, "bold"), "  ", plain(result.headline, "italic"))
    for found in result.results:
        yield from _rule(found)
    for note in result.notes:
        yield _indented(plain(f"· {note}", _GREY), 2)


def _rule(found: RuleResult) -> Iterator[RenderableType]:
    verdict = (f"{found.verdict.sign} {found.verdict}", f"bold {_COLOURS[found.verdict]}")
    yield _indented(Text.assemble(verdict, "  ", plain(str(found.rule), "bold")), 2)
    for line in (found.evidence, *([found.advice] if found.advice else []), *found.notes):
        yield _indented(plain(line), 6)


def _indented(text: Text, spaces: int) -> Padding:
    return Padding(text, (0, 0, 0, spaces), expand=False)
