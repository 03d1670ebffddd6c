"""Run, attempt, and the table of n, c, missing and order: all that statistics accept."""

from passhat.stats.outcomes.attempts import (
    Aggregates,
    Attempt,
    Attempts,
    MeasureColumns,
    MeasureSum,
)
from passhat.stats.outcomes.causes import (
    FailureGroup,
    FailureKind,
    Failures,
    judge_error_message,
    no_answer_text,
    summarize_failures,
    summarize_task_failures,
)
from passhat.stats.outcomes.cells import Histogram
from passhat.stats.outcomes.labels import LabelCounts
from passhat.stats.outcomes.order import Order, Scores
from passhat.stats.outcomes.rewards import ScoreRange
from passhat.stats.outcomes.run import Loss, Run, Tally, served_change
from passhat.stats.outcomes.table import Outcomes
from passhat.stats.outcomes.vocabulary import (
    Completion,
    FailureCategory,
    MissingPolicy,
    MissingReason,
    Verdict,
)

__all__ = [
    "Aggregates",
    "Attempt",
    "Attempts",
    "Completion",
    "FailureCategory",
    "FailureGroup",
    "FailureKind",
    "Failures",
    "Histogram",
    "LabelCounts",
    "Loss",
    "MeasureColumns",
    "MeasureSum",
    "MissingPolicy",
    "MissingReason",
    "Order",
    "Outcomes",
    "Run",
    "ScoreRange",
    "Scores",
    "Tally",
    "Verdict",
    "judge_error_message",
    "no_answer_text",
    "served_change",
    "summarize_failures",
    "summarize_task_failures",
]
