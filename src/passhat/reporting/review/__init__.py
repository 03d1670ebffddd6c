"""Omissions in a claim about pass rates, and the sentence that the data would support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from passhat._serialize import Plain
from passhat.errors import PasshatError
from passhat.reporting.review.claim_text import Passage, passages
from passhat.reporting.review.rules import RULES, Finding, findings_of
from passhat.reporting.review.sources import Check, Support, check_statements
from passhat.stats.compare import compare, compare_all
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import Run

__all__ = [
    "RULES",
    "SCHEMA",
    "Check",
    "Finding",
    "Offer",
    "Review",
    "Reviewed",
    "Support",
    "offers_for",
    "review",
]


SCHEMA = "passhat.review/1"
_MOST_METRICS = 4


@dataclass(frozen=True, slots=True)
class Offer:
    """A sentence that the data support, or why there is none for this metric."""

    metric: str
    sentence: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A claim of the text, its line, and the findings about it."""

    text: str
    line: int
    findings: tuple[Finding, ...]
    offers: tuple[Offer, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Review(Plain):
    """All claims of a text."""

    SCHEMA = SCHEMA
    WRITTEN = (..., "findings")

    claims: tuple[Reviewed, ...]

    @property
    def findings(self) -> int:
        return sum(len(claim.findings) for claim in self.claims)


def review(
    text: str, runs: Sequence[Run] = (), *, missing: str = "bound", level: float = 0.95
) -> Review:
    """Review every claim in a text by rule; with runs, offer the sentence they would support.

    Examples
    --------
    >>> result = review("Model B is better: its pass@5 is 64%, while Model A's pass@1 is 58%.")
    >>> [finding.rule for finding in result.claims[0].findings][:2]
    ['mismatched-k', 'extra-budget']
    """
    claims = []
    names = [*dict.fromkeys(word for run in runs for word in (run.name, run.agent) if word)]
    for passage in passages(text, [*names, *["B"] * (len(runs) == 2)]):
        claim = Reviewed(passage.text, passage.line, tuple(findings_of(passage)))
        if runs:
            offers = tuple(offers_for(passage, runs, missing=missing, level=level))
            checks = check_statements(passage, runs, missing=missing, level=level)
            findings = (*claim.findings, *_findings(checks))
            claim = replace(claim, offers=offers, checks=checks, findings=findings)
        claims.append(claim)
    return Review(tuple(claims))


def offers_for(
    passage: Passage, runs: Sequence[Run], *, missing: str = "bound", level: float = 0.95
) -> Iterator[Offer]:
    """Sentences that the runs support, for every metric that the claim names."""
    words = dict.fromkeys(m.word for m in passage.metrics if m.k is not None)
    for word in list(words or {"pass^1": None})[:_MOST_METRICS]:
        try:
            if len(runs) == 1:
                result = estimate(runs[0].outcomes, word, missing=missing, level=level)
                protocol = runs[0].protocol.digest
                yield Offer(word, f"{runs[0].name}: {result}, protocol {protocol}.", True)
            elif len(runs) == 2:
                pair = compare(runs[0], runs[1], word, missing=missing, level=level)
                yield Offer(word, pair.results[0].sentence, True)
            else:
                ranking = compare_all(runs, word, missing=missing, level=level)
                ranks = ", ".join(f"{entry.name} {entry}" for entry in ranking.ranks)
                sentence = f"Possible ranks by {word}: {ranks} ({ranking.pairing_text})."
                yield Offer(word, sentence, True)
        except PasshatError as error:
            yield Offer(word, " ".join(filter(None, (error.message, error.hint))), False)


def _findings(checks: Sequence[Check]) -> Iterator[Finding]:
    """The statements that the runs do not bear out."""
    for check in checks:
        if check.support is Support.CONTRADICTED:
            message = f"{check.statement} is not what the sources show"
            yield Finding("not-in-data", message, f"{check.detail[:1].upper()}{check.detail[1:]}.")
        elif check.support is Support.NOT_SHOWN:
            yield Finding("not-shown", f"{check.statement} is not shown", check.detail)
