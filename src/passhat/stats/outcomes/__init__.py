"""Run, attempt, and the table of n, c, missing and order: all that statistics accept."""

from passhat.stats.outcomes.attempts import Attempt, Attempts
from passhat.stats.outcomes.histogram import Histogram
from passhat.stats.outcomes.order import Order
from passhat.stats.outcomes.run import Run
from passhat.stats.outcomes.sums import MeasureSum, Sums, Taken
from passhat.stats.outcomes.table import Outcomes
from passhat.stats.outcomes.tally import Loss, Tally
from passhat.stats.outcomes.vocabulary import (
    Completion,
    FailureCategory,
    MissingPolicy,
    MissingReason,
    Verdict,
)

__all__ = [
    "Attempt",
    "Attempts",
    "Completion",
    "FailureCategory",
    "Histogram",
    "Loss",
    "MeasureSum",
    "MissingPolicy",
    "MissingReason",
    "Order",
    "Outcomes",
    "Run",
    "Sums",
    "Taken",
    "Tally",
    "Verdict",
]
