"""Measures and scores of attempts: spreads, the cost per success, and pass rates by threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from passhat._display import counted, percent
from passhat._serialize import Plain
from passhat.stats.arrays import BoolArray, FloatArray, special
from passhat.stats.estimate import Estimate, estimate_all
from passhat.stats.estimate.metrics import BestOf, PassHat, WorstOf
from passhat.stats.estimate.task_values import FilledOutcomes
from passhat.stats.outcomes import (
    Attempts,
    Completion,
    MeasureColumns,
    MissingPolicy,
    Outcomes,
    Run,
    Verdict,
)
from passhat.stats.terms import Terms

RATIO_METHOD = (
    "all that was used, failed attempts included, divided by the attempts that passed; interval by "
    "the delta method over tasks on the log scale"
)
_ORDER = ("cost", "seconds", "steps", "tokens")
_FARTHEST = 500.0
"""On the log scale; e to the power of 709 is the largest number there is. Two tasks at a level of
99.9% get there, and an interval that holds every number says nothing.
"""
_MOST_CUTS = 21
_MOST_KS = 12
_DIGITS = 6
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


@dataclass(frozen=True, slots=True)
class Cut(Plain):
    """pass^1 and pass^k if a score of ``threshold`` or more passed."""

    threshold: float
    pass_one: float
    pass_all: float


@dataclass(frozen=True, slots=True)
class ScoreFacts(Plain):
    """The scores of a run, beside its verdicts."""

    k: int
    """The largest number of attempts that every task has."""
    cuts: tuple[Cut, ...]
    """The verdict metrics over the threshold, the highest threshold first."""
    judged: Cut
    """The same by the verdicts; its threshold is that of the protocol."""
    worst: tuple[Estimate, ...]
    best: tuple[Estimate, ...]
    """``worst``, ``best``: worst@k and best@k over k, about the population of the screen."""
    missing_text: str = ""
    """How the cuts treat missing attempts; empty where there are none."""

    @property
    def sensitivity(self) -> str:
        """pass^1 at a few thresholds, in words."""
        places = np.unique(np.linspace(0, len(self.cuts) - 1, 4).round().astype(int)).tolist()
        cuts = [self.cuts[place] for place in places]
        shares = ", ".join(f"{percent(cut.pass_one, 0)} at {cut.threshold:g}" for cut in cuts)
        missing = self.missing_text and f" ({self.missing_text})"
        return f"if a score passes from a threshold, pass^1 is {shares}{missing}"


def summarize_scores(run: Run, terms: Terms | None = None) -> ScoreFacts | None:
    """The scores of a run; ``None`` where its attempts have none, or a task no verdict at all."""
    outcomes, terms = run.outcomes, terms or Terms()
    way = terms.missing.completion
    k = int(outcomes.counts(way)[0].min())
    if outcomes.scores is None or not outcomes.scored or k < 1:
        return None
    places = np.linspace(1, k, min(k, _MOST_KS))
    ks = [] if k < 2 else np.unique(places.round().astype(int)).tolist()
    metrics = [kind(size) for kind in (WorstOf, BestOf) for size in ks]
    estimates = estimate_all(outcomes, metrics, replace(terms, population=None))
    is_excluded = terms.missing is MissingPolicy.EXCLUDE
    missing_text = f"missing attempts {'left out' if is_excluded else 'as failed'}"
    return ScoreFacts(
        k,
        tuple(_cut(outcomes, threshold, k, way) for threshold in _thresholds(outcomes)),
        _values(outcomes, run.protocol.pass_at, k, way),
        estimates[: len(ks)],
        estimates[len(ks) :],
        missing_text if outcomes.total_missing else "",
    )


def _thresholds(outcomes: Outcomes) -> list[float]:
    """The levels of the score from the highest on; of many, even steps."""
    values = outcomes.graded(Completion.DROPPED).values
    levels = np.unique(np.round(values[values > 0], _DIGITS))
    if len(levels) > _MOST_CUTS or not len(levels):
        levels = np.linspace(0.05, 1, 20).round(2)
    return [float(level) for level in levels[::-1]]


def _cut(outcomes: Outcomes, threshold: float, k: int, way: Completion) -> Cut:
    scores = outcomes.graded(way)
    lengths = np.diff(scores.starts)
    task = np.repeat(np.arange(len(lengths)), lengths)
    is_above = np.round(scores.values, _DIGITS) >= threshold
    passed = np.bincount(task[is_above], minlength=len(lengths))
    return _values(Outcomes.from_counts(lengths, passed), threshold, k, way)


def _values(outcomes: Outcomes, threshold: float, k: int, way: Completion) -> Cut:
    view = FilledOutcomes(outcomes, way)
    return Cut(threshold, view.of(PassHat(1)).mean, view.of(PassHat(k)).mean)
