"""An audit sample as Markdown for a person, or as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from passhat._display import counted
from passhat._serialize import as_json
from passhat.judging.audit import Agreement, Audited
from passhat.reporting.markdown import code, escape

__all__ = ["audit_as_json", "audit_as_markdown", "escape_program"]

SCHEMA = "passhat.audit/1"


def audit_as_json(
    sample: Sequence[Audited], judged: int, seed: int, agreed: Agreement | None
) -> str:
    """The sample under its schema."""
    data = {
        "schema": SCHEMA,
        "judged": judged,
        "seed": seed,
        "sample": sample,
        "agreement": agreed,
    }
    return as_json(data)


def audit_as_markdown(
    sample: Sequence[Audited], judged: int, seed: int, agreed: Agreement | None, answer: str
) -> str:
    """The sample as a page; ``answer`` is the command that stores a person's verdict."""
    lines = _lines(sample, judged, seed, agreed, answer)
    return "\n".join(lines) + "\n"


def _lines(
    sample: Sequence[Audited], judged: int, seed: int, agreed: Agreement | None, answer: str
) -> Iterator[str]:
    passed = sum(attempt.passed for attempt in sample)
    yield f"# Audit: {counted(len(sample), 'attempt')} of {judged:,} judged ones"
    yield ""
    sample_text = f"{passed} passed and {len(sample) - passed} failed, drawn by seed {seed}."
    yield f"{sample_text} {answer}".strip()
    yield ""
    for sentence in agreed.sentences() if agreed is not None else ():
        yield f"- {sentence}"
    if agreed is not None:
        yield ""
    for attempt in sample:
        why = ": ".join(part for part in (attempt.why, attempt.detail) if part)
        yield f"## {code(attempt.id)}"
        yield ""
        yield f"**{'passed' if attempt.passed else 'failed'}**" + (
            f", {escape(why)}" if why else ""
        )
        if attempt.human is not None:
            yield f"A person says: **{'passed' if attempt.human else 'failed'}**"
        yield ""
        fence = _fence(attempt.program)
        yield f"{fence}python"
        yield escape_program(attempt.program)
        yield fence
        yield ""


def escape_program(program: str) -> str:
    """A program with terminal escapes removed."""
    text = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in program)
    return text.rstrip("\n")


def _fence(text: str) -> str:
    """Longer than any fence in the text, which may be hostile or merely full of them."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)
