"""A gate: its headline, then each rule with its evidence and its next step."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.reporting.document import Block, Document, Finding, Heading, Note, Sentence
from passhat.stats.gate import GateResult

__all__ = ["gate_document"]


def gate_document(result: GateResult) -> Document:
    """Build the document of a gate."""
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    return Document.of(name, _blocks(result, name))


def _blocks(result: GateResult, name: str) -> Iterator[Block]:
    yield Heading(f"passhat gate: {name}")
    yield Sentence(result.headline, "lead")
    for rule in result.results:
        advice = () if rule.advice is None else (str(rule.advice),)
        details = (rule.evidence, *advice, *rule.notes)
        yield Finding(rule.verdict.sign, rule.outcome, str(rule.rule), details)
    yield from (Note(note) for note in result.notes)
