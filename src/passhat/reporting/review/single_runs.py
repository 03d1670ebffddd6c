"""Scores of single runs of a benchmark: every task attempted once, again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from passhat.stats.arrays import FloatArray
from passhat.stats.outcomes import Completion, Outcomes

__all__ = ["RunScore", "run_scores"]

_KINDS: MappingProxyType[str, Callable[[FloatArray], float]] = MappingProxyType(
    {
        "best": lambda scores: float(scores.max()),
        "worst": lambda scores: float(scores.min()),
        "median": lambda scores: float(np.median(scores)),
        "first": lambda scores: float(scores[0]),
        "deviation": lambda scores: float(scores.std(ddof=min(1, len(scores) - 1))),
        "spread": lambda scores: float(scores.max() - scores.min()),
    }
)


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run among the runs of a benchmark, read as an estimate is read.

    Where the order of attempts is not known, ``value_ends`` are the bounds of any order.
    """

    metric: str
    value: float
    value_ends: tuple[float, float]
    is_known: bool = True
    low: None = None
    high: None = None
    population: str = "this run"

    def interval_text(self) -> str:
        return "without an interval"


def run_scores(outcomes: Outcomes, kind: str, runs: int | None = None) -> list[RunScore]:
    """The best, worst, median or first of the runs, their spread, or every one of them ("any").

    ``runs`` is the number of runs that the text gives; another number than that of the data has no
    answer.
    """
    n = outcomes.n
    if not len(n) or n.min() < 1 or (runs or n.min()) != n.min():
        return []
    name = f"{kind} run"
    if outcomes.order is not None and n.min() == n.max() and not outcomes.missing.any():
        matrix = outcomes.order.completed(Completion.AS_FAILED).matrix()
        scores: FloatArray = matrix.mean(axis=0)
        values = list(map(float, scores)) if kind == "any" else [_KINDS[kind](scores)]
        return [RunScore(name, value, (value, value)) for value in values]
    if kind == "first":  # that of single attempts is meant
        return []
    mean = float((outcomes.c / n).mean())
    none, every = float((outcomes.c == n).mean()), float((outcomes.c > 0).mean())
    low = {"best": mean, "spread": 0.0, "deviation": 0.0}.get(kind, none)
    high = {"worst": mean, "spread": every - none, "deviation": 1.0}.get(kind, every)
    return [RunScore(name, mean, (low, high), is_known=False)]
