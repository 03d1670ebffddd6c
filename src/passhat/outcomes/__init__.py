"""Run, attempt, and the table of n, c, missing and order: all that statistics accept."""

from passhat.outcomes.attempts import Attempt, Attempts
from passhat.outcomes.histogram import Histogram
from passhat.outcomes.order import Order
from passhat.outcomes.run import Run
from passhat.outcomes.sums import MeasureSum, Sums, Taken
from passhat.outcomes.table import Outcomes
from passhat.outcomes.tally import Loss, Tally
from passhat.outcomes.words import (
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
