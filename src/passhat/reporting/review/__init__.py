"""Omissions in a claim about pass rates, and the sentence that the data would support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from passhat._display import number
from passhat._serialize import Plain
from passhat.errors import PasshatError
from passhat.reporting.review.claim_text import Passage, passages
from passhat.reporting.review.rules import RULES, Finding, findings_of
from passhat.stats.compare import compare, compare_all
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import Run

__all__ = ["RULES", "SCHEMA", "Finding", "Offer", "Review", "Reviewed", "offers_for", "review"]


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
    for passage in passages(text):
        claim = Reviewed(passage.text, passage.line, tuple(findings_of(passage)))
        if runs:
            offers = tuple(offers_for(passage, runs, missing=missing, level=level))
            wrong = tuple(_not_in_data(passage, runs, missing))
            claim = replace(claim, offers=offers, findings=(*claim.findings, *wrong))
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


def _not_in_data(passage: Passage, runs: Sequence[Run], missing: str) -> Iterator[Finding]:
    """Numbers next to a metric that no run shows."""
    for value in passage.values:
        if value.in_range:
            continue
        nearest = _nearest(passage, value.start)
        if nearest is None:
            continue
        values = []
        for run in runs:
            try:
                result = estimate(run.outcomes, nearest, missing=missing, level=None)
            except PasshatError:  # the run does not support that k, and the offer says so
                continue
            if abs(result.value - value.share) <= 0.5001 * value.step:
                break
            values.append(f"{run.name} {number(result.value)}")
        else:
            if values:
                yield Finding(
                    "not-in-data",
                    f"{nearest} = {value.text} is not what the sources show",
                    f"They show {', '.join(values)}.",
                )


def _nearest(passage: Passage, start: int) -> str | None:
    """The metric that a number belongs to: the last one before it in the same clause, or next."""
    before = [m for m in passage.metrics if m.start < start and m.k is not None]
    after = [m for m in passage.metrics if m.start > start and m.k is not None]
    if before and not any(sign in passage.text[before[-1].start : start] for sign in ";."):
        return before[-1].word
    return after[0].word if after else before[-1].word if before else None
