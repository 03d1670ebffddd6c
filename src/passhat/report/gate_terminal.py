"""A gate's verdicts as a person reads them in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from passhat.gates import GateResult, GateVerdict, RuleResult

__all__ = ["print_gate"]

# Okabe and Ito's palette, with a shape beside each colour.
_COLOURS = {
    GateVerdict.SHOWN: "#009E73",
    GateVerdict.REFUTED: "#D55E00",
    GateVerdict.NOT_SETTLED: "#E69F00",
}
_GREY = "grey50"


def print_gate(result: GateResult, console: Console) -> None:
    """Print the headline, then each rule with its evidence and what to do next."""
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    console.print(Text.assemble((name, "bold"), "  ", (result.headline, "italic")))
    for found in result.results:
        _print_rule(found, console)
    for note in result.notes:
        console.print(Padding(Text(f"· {note}", style=_GREY), (0, 0, 0, 2), expand=False))


def _print_rule(found: RuleResult, console: Console) -> None:
    colour = _COLOURS[found.verdict]
    heading = Text.assemble(
        (f"{found.verdict.sign} {found.verdict}", f"bold {colour}"), "  ", (str(found.rule), "bold")
    )
    console.print(Padding(heading, (0, 0, 0, 2), expand=False))
    lines = [found.evidence, *([found.advice] if found.advice else []), *found.notes]
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 6), expand=False))
