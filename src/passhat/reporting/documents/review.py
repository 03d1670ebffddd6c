"""A review of claims: what is missing in each, and what the data would support."""

from __future__ import annotations

from collections.abc import Iterator

from passhat._display import counted
from passhat.reporting.document import Block, Document, Facts, Sentence
from passhat.reporting.review import Review, Support

__all__ = ["review_document"]


def review_document(review: Review) -> Document:
    """Build the document of a review."""
    return Document.of("Review", _blocks(review))


def _blocks(review: Review) -> Iterator[Block]:
    if not review.claims:
        yield Sentence("No claim about pass rates was found: no metric, share or comparison.")
        return
    for claim in review.claims:
        yield Sentence(f"line {claim.line}: {claim.text}", "lead")
        entries = [
            (finding.rule, f"{finding.message}. {finding.fix}") for finding in claim.findings
        ]
        entries += [
            (str(check.support), f"{check.statement}: {check.detail}")
            for check in claim.checks
            if check.support in (Support.SUPPORTED, Support.NOT_CHECKABLE)
        ]
        entries += [
            ("the data say" if offer.supported else "no answer", offer.sentence)
            for offer in claim.offers
        ]
        yield Facts(tuple(entries) or (("clean", "nothing found"),))
    claims = counted(len(review.claims), "claim")
    yield Sentence(f"{claims}, {counted(review.findings, 'finding')}")
