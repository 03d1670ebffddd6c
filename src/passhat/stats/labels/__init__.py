"""A judge's error from labels, and numbers that are corrected for it."""

from passhat.stats.labels.correction import Corrected, Correction, correct
from passhat.stats.labels.judge_error import (
    Alikeness,
    ErrorRate,
    JudgeError,
    alikeness,
    judge_error,
)
from passhat.stats.outcomes.labels import LabelCounts

__all__ = [
    "Alikeness",
    "Corrected",
    "Correction",
    "ErrorRate",
    "JudgeError",
    "LabelCounts",
    "alikeness",
    "correct",
    "judge_error",
]
