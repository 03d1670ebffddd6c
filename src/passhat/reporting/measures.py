"""Measures of attempts: the spread of seconds, steps, tokens and cost, and the cost per success."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from passhat._display import counted
from passhat._serialize import Plain
from passhat.stats.arrays import BoolArray, FloatArray, special
from passhat.stats.outcomes import Attempts, MeasureColumns, Verdict

RATIO_METHOD = (
    "all that was used, failed attempts included, divided by the attempts that passed; interval by "
    "the delta method over tasks on the log scale"
)
_ORDER = ("cost", "seconds", "steps", "tokens")
_FARTHEST = 500.0
"""On the log scale; e to the power of 709 is the largest number there is. Two tasks at a level of
99.9% get there, and an interval that holds every number says nothing.
"""
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The spread of a measure over the attempts with one verdict."""

    verdict: str
    attempts: int
    p5: float
    p25: float
    median: float
    p75: float
    p95: float


@dataclass(frozen=True, slots=True)
class Measure(Plain):
    """A measure of a run."""

    WRITTEN = (
        *("attempts", "passed", "mean", "per_solved", "low", "high", "level", "method"),
        "spread",
    )
    method: ClassVar[str] = RATIO_METHOD

    name: str
    attempts: int
    """How many attempts recorded it."""
    passed: int
    mean: float
    """Per attempt."""
    per_solved: float | None
    """Per attempt that passed, with failed attempts paid for too; ``None`` when none passed."""
    low: float | None
    high: float | None
    """``low``, ``high``: the interval of ``per_solved``."""
    level: float
    spread: tuple[Quantiles, ...]
    """Of attempts that passed, and of those that failed."""

    def counts_text(self) -> str:
        return (
            f"{counted(self.passed, 'success', 'successes')} in {counted(self.attempts, 'attempt')}"
        )


def measures_of(attempts: Attempts | MeasureColumns | None, level: float) -> tuple[Measure, ...]:
    """Every measure that was recorded, cost first."""
    if attempts is None:
        return ()
    columns = ((name, attempts.measures.get(name)) for name in _ORDER)
    return tuple(
        _measure(name, column, attempts, level)
        for name, column in columns
        if column is not None and not np.isnan(column).all()
    )


def _measure(
    name: str, column: FloatArray, attempts: Attempts | MeasureColumns, level: float
) -> Measure:
    known = ~np.isnan(column)
    passed = known & (attempts.verdicts == Verdict.PASSED)
    total, passes = float(column[known].sum()), int(passed.sum())
    low, high = _ratio_interval(column, known, passed, attempts, level)
    failed = known & (attempts.verdicts == Verdict.FAILED)
    return Measure(
        name,
        int(known.sum()),
        passes,
        total / int(known.sum()),
        total / passes if passes else None,
        low,
        high,
        level,
        tuple(
            Quantiles(word, int(rows.sum()), *map(float, np.quantile(column[rows], _SHARES)))
            for word, rows in (("passed", passed), ("failed", failed))
            if rows.any()
        ),
    )


def _ratio_interval(
    column: FloatArray,
    known: BoolArray,
    passed: BoolArray,
    attempts: Attempts | MeasureColumns,
    level: float,
) -> tuple[float | None, float | None]:
    """Interval of the ratio of two sums over tasks; tasks, not attempts, are independent."""
    size = len(attempts.starts) - 1
    task = np.repeat(np.arange(size), np.diff(attempts.starts))
    totals = np.bincount(task[known], column[known], size)
    passes = np.bincount(task[passed], minlength=size).astype(np.float64)
    if size < 2 or passes.sum() == 0 or totals.sum() <= 0:
        return None, None
    ratio = totals.sum() / passes.sum()
    rest = totals - ratio * passes
    error = math.sqrt(float(rest @ rest) / (size * (size - 1))) / float(passes.mean())
    reach = float(special.stdtrit(size - 1, (1 + level) / 2)) * error / ratio
    if reach > _FARTHEST:
        return None, None
    return float(ratio * math.exp(-reach)), float(ratio * math.exp(reach))
