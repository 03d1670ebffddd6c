"""What a claim about pass rates leaves out, and the sentence that the data would support."""

from passhat.report.review.reviewer import SCHEMA, Offer, Review, Reviewed, offers_for, review
from passhat.report.review.rules import RULES, Finding

__all__ = ["RULES", "SCHEMA", "Finding", "Offer", "Review", "Reviewed", "offers_for", "review"]
