"""A gate's verdicts as Markdown, for a pull request or a job summary."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.stats.gate import GateResult

__all__ = ["gate_as_markdown"]

_SPECIAL = "\\`*_[]<|#~"


def gate_as_markdown(result: GateResult) -> str:
    """The gate as one Markdown section."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: GateResult) -> Iterator[str]:
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    yield f"## passhat gate: {_escape(name)}"
    yield ""
    yield f"**{_escape(result.headline)}**"
    yield ""
    yield "| verdict | rule | evidence | what next |"
    yield "| --- | --- | --- | --- |"
    for found in result.results:
        cells = (
            f"{found.verdict.sign} {found.verdict}",
            str(found.rule),
            found.evidence,
            found.advice or "",
        )
        yield "| " + " | ".join(map(_escape, cells)) + " |"
    yield ""
    notes = dict.fromkeys(
        [*(note for found in result.results for note in found.notes), *result.notes]
    )
    yield from (f"- {_escape(note)}" for note in notes)
    if notes:
        yield ""


def _escape(text: str) -> str:
    """Keep a rule or a model name from being read as Markdown or HTML."""
    for sign in _SPECIAL:
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")
