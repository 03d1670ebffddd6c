"""Scores as verdicts at many thresholds: the intervals of best@k and worst@k about these tasks.

E[min of k] is the integral over t of P(S >= t)^k, so worst@k is pass^k averaged over the thresholds
t, and best@k is pass@k averaged over them. Between two levels of the score nothing changes: a
threshold for each level is exact. Of more than 16 levels the integral is taken over 16 parts, half
of them even in t and half even in the number of attempts.

The interval is the average of the ends at the thresholds. That is no narrower than it has to be:
the ends are all missed together only where the attempts at all thresholds mislead at once
(``benchmarks/graded.py`` measures it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.intervals.these_tasks import Ends, TheseTasks
from passhat.stats.estimate.metrics import ScoreMetric
from passhat.stats.estimate.task_values import TaskValues
from passhat.stats.outcomes import Histogram
from passhat.stats.outcomes.cells import cells_of
from passhat.stats.outcomes.order import Scores
from passhat.stats.terms import Terms

METHOD = "saddlepoint frontier over the likelihood region, averaged over {} of the score"

_MOST_LEVELS = 16
_DIGITS = 9  # 0.1 + 0.2 and 0.3 are one level


@dataclass(frozen=True, slots=True)
class Threshold:
    """A score from which attempts count as passed, and the length of scores it stands for."""

    cut: float
    weight: float


def choose_thresholds(*sides: Scores) -> list[Threshold]:
    """The thresholds that stand for all scores from 0 to 1; their weights add up to 1."""
    pooled = np.round(np.concatenate([side.values for side in sides]), _DIGITS)
    levels = np.unique(np.append(pooled[pooled > 0], 1.0))
    if len(levels) <= _MOST_LEVELS:
        return _as_thresholds(levels, np.diff(levels, prepend=0.0))
    half = _MOST_LEVELS // 2
    by_count = np.quantile(pooled, np.linspace(0, 1, half), method="nearest")
    edges = np.unique(np.concatenate([np.linspace(0, 1, half + 1), by_count]))
    return _as_thresholds((edges[1:] + edges[:-1]) / 2, np.diff(edges))


def _as_thresholds(cuts: FloatArray, weights: FloatArray) -> list[Threshold]:
    return [Threshold(*pair) for pair in zip(cuts.tolist(), weights.tolist(), strict=True)]


def cells_at(scores: Scores, threshold: Threshold) -> Histogram:
    """How many tasks have each number of attempts at or above a threshold."""
    lengths: IntArray = np.diff(scores.starts)
    task = np.repeat(np.arange(len(lengths)), lengths)
    is_above = np.round(scores.values, _DIGITS) >= threshold.cut
    return cells_of(lengths, np.bincount(task[is_above], minlength=len(lengths)))


@dataclass(slots=True)
class ScoreLevels:
    """The intervals of several metrics of the same scores; shared parts are computed once."""

    scores: Scores
    terms: Terms
    _levels: list[tuple[Threshold, TheseTasks]] = field(default_factory=list)

    @property
    def levels(self) -> list[tuple[Threshold, TheseTasks]]:
        if not self._levels:
            self._levels = list(self._build())
        return self._levels

    def _build(self) -> Iterator[tuple[Threshold, TheseTasks]]:
        for threshold in choose_thresholds(self.scores):
            yield threshold, TheseTasks(cells_at(self.scores, threshold), self.terms)

    def interval(self, metric: ScoreMetric, point: float) -> Ends:
        """Both ends: the point, and how far the ends at the thresholds lie from their values."""
        verdict_metric = metric.verdict_metric
        low = high = point
        for threshold, tasks in self.levels:
            ends = tasks.interval(verdict_metric)
            if ends is None:  # pragma: no cover - only delta^k has none
                continue
            cells = tasks.cells
            value = TaskValues(verdict_metric.values(cells.n, cells.c), cells.tasks).mean
            low += threshold.weight * min(ends[0] - value, 0.0)
            high += threshold.weight * max(ends[1] - value, 0.0)
        return low, high

    @property
    def method(self) -> str:
        """The method in a few words for a report."""
        count = len(self.levels)
        return METHOD.format("1 level" if count == 1 else f"{count} levels")
