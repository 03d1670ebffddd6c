"""From metrics on completed outcomes to their intervals: the method for each metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from passhat._display import counted
from passhat.stats.arrays import STEP, LazyModule, round_outward
from passhat.stats.estimate.intervals.new_tasks import Intervals, gaffke, gaffke_clusters
from passhat.stats.estimate.intervals.new_tasks_delta import (
    SEED,
    bound_delta,
    gaffke_delta,
    gaffke_delta_clusters,
)
from passhat.stats.estimate.metrics import (
    CountMetric,
    Delta,
    Metric,
    OrderedMetric,
    PassHat,
    ScoreMetric,
)
from passhat.stats.estimate.task_values import FilledOutcomes
from passhat.stats.outcomes import Completion
from passhat.stats.terms import Population, Terms

if TYPE_CHECKING:
    from passhat.stats.estimate.intervals import score_levels, these_tasks
else:  # with the solver of frontiers
    score_levels = LazyModule("passhat.stats.estimate.intervals.score_levels")
    these_tasks = LazyModule("passhat.stats.estimate.intervals.these_tasks")


@dataclass(frozen=True, slots=True)
class IntervalTerms:
    """The terms of an interval; ``rng`` replaces the fixed seed where draws are needed."""

    terms: Terms = field(default_factory=Terms)
    rng: np.random.Generator | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends and their method."""

    low: float
    high: float
    method: str


def intervals_of(
    view: FilledOutcomes, points: Mapping[Metric, float], asked: IntervalTerms
) -> dict[Metric, Interval]:
    """Intervals of all metrics in one pass; a metric without an interval is omitted.

    ``points`` are the values that the caller reports. Every interval is made to hold exactly that
    number: computed a second time, it may differ in the last bit.
    """
    if asked.terms.about() is Population.THESE_TASKS:
        raw = _for_these_tasks(view, points, asked)
    elif asked.terms.cluster is not None:
        raw = _for_clusters(view, list(points), asked)
    else:
        raw = _for_new_tasks(view, list(points), asked)
    return {metric: _holding(metric, points[metric], interval) for metric, interval in raw}


def intervals_between(
    view: FilledOutcomes, metrics: Sequence[Metric], asked: IntervalTerms
) -> Iterator[tuple[Metric, Interval]]:
    """Further intervals for missing attempts of which some passed and some failed.

    About new tasks they matter to delta^k alone: the ends of means are monotone in the passes.
    """
    outcomes = view.outcomes
    if asked.terms.about() is Population.THESE_TASKS:
        n = int(view.histogram.n.max())
        twins = {
            metric: metric if isinstance(metric, Delta) else metric.as_count_metric(n)
            for metric in metrics
            if metric.k > 1 and not isinstance(metric, ScoreMetric)
        }
        for cells in outcomes.histograms_between() if twins else ():
            tasks = these_tasks.TheseTasks(cells, asked.terms)
            for metric, twin in twins.items():
                ends = None if twin is None else tasks.interval(twin)
                if ends is not None:
                    ends = round_outward(*ends, metric.lowest, metric.highest)
                    yield metric, Interval(*ends, tasks.method(metric))
        return
    n_and_c = outcomes.counts(Completion.AS_FAILED)
    for metric in metrics:
        if isinstance(metric, Delta) and metric.k > 1 and len(outcomes) > 1:
            clusters = None
            if asked.terms.cluster is not None:
                clusters = np.array(outcomes.label(asked.terms.cluster))
            ends = bound_delta(
                np.stack([*n_and_c, outcomes.missing]),
                metric.k,
                clusters=clusters,
                level=asked.terms.level,
                seed=SEED if asked.rng is None else asked.rng,
            )
            yield metric, Interval(*round_outward(*ends, 0.0, metric.highest), _JOINT)


_MATERIAL = 1e-3  # an end moved by less than this share of the width is not worth a note
_SOLVED = 1e-4  # the frontier's ends are certified to about 3e-5
_HISTOGRAM = "Gaffke's bound on the histogram of task values"
_EXTENDED = ", extended to the point"
_JOINT = "Gaffke's bound on joint draws of both means"
_Named = Iterator[tuple[Metric, Interval]]


def _holding(metric: Metric, point: float, interval: Interval) -> Interval:
    """The interval within the metric's range, holding its point, and never of zero width."""
    low, high = max(interval.low, metric.lowest), min(interval.high, metric.highest)
    excess = max(low - point, point - high)
    is_extended = excess > max(_MATERIAL * (high - low), _SOLVED)
    low, high = round_outward(low, high, metric.lowest, metric.highest)
    low, high = min(low, point), max(high, point)
    if high == low:
        low, high = max(low - STEP, metric.lowest), min(high + STEP, metric.highest)
    return Interval(low, high, interval.method + (_EXTENDED if is_extended else ""))


def _for_new_tasks(view: FilledOutcomes, metrics: Sequence[Metric], asked: IntervalTerms) -> _Named:
    cells = view.histogram
    averages = [metric for metric in metrics if not isinstance(metric, Delta)]
    for metric in averages:
        if isinstance(metric, ScoreMetric):
            task_values = view.of(metric)
            ends = gaffke(task_values.values, task_values.tasks, level=asked.terms.level)
            yield from _label_intervals([metric], ends, _HISTOGRAM)
    counts = [metric for metric in averages if isinstance(metric, CountMetric)]
    if counts:
        rows = np.stack([metric.values(cells.n, cells.c) for metric in counts])
        yield from _label_intervals(
            counts, gaffke(rows, cells.tasks, level=asked.terms.level), _HISTOGRAM
        )
    for metric in averages:
        if isinstance(metric, OrderedMetric):
            observed_values = view.of(metric)
            ends = gaffke(observed_values.values, observed_values.tasks, level=asked.terms.level)
            yield from _label_intervals([metric], ends, _HISTOGRAM)
    gains = [metric for metric in metrics if isinstance(metric, Delta) and metric.k > 1]
    if gains:
        ends = gaffke_delta(
            np.stack([metric.parts[0].values(cells.n, cells.c) for metric in gains]),
            cells.c / cells.n,
            cells.tasks,
            [metric.k for metric in gains],
            level=asked.terms.level,
            seed=SEED if asked.rng is None else asked.rng,
        )
        yield from _label_intervals(gains, ends, f"{_JOINT}, {_seed_text(asked)}")


def _for_clusters(view: FilledOutcomes, metrics: Sequence[Metric], asked: IntervalTerms) -> _Named:
    labels = view.outcomes.label(asked.terms.cluster or "")
    count = counted(len(set(labels)), "cluster")
    weights_text = f"weights per {asked.terms.cluster} ({count}; sizes not seen are not covered)"
    averages = [metric for metric in metrics if not isinstance(metric, Delta)]
    if averages:
        rows = np.stack([view.per_task(metric) for metric in averages])
        ends = gaffke_clusters(rows, np.array(labels), level=asked.terms.level)
        yield from _label_intervals(averages, ends, f"Gaffke's bound, {weights_text}")
    gains = [metric for metric in metrics if isinstance(metric, Delta) and metric.k > 1]
    if gains:
        ends = gaffke_delta_clusters(
            np.stack([view.per_task(metric.parts[0]) for metric in gains]),
            view.per_task(PassHat(1)),
            np.array(labels),
            [metric.k for metric in gains],
            level=asked.terms.level,
            seed=SEED if asked.rng is None else asked.rng,
        )
        yield from _label_intervals(gains, ends, f"{_JOINT}, {weights_text}, {_seed_text(asked)}")


def _seed_text(asked: IntervalTerms) -> str:
    """Where the draws come from."""
    return f"seed {SEED}" if asked.rng is None else "the caller's generator"


def _label_intervals(metrics: Sequence[Metric], ends: Intervals, method: str) -> _Named:
    rows = zip(metrics, ends.lows.tolist(), ends.highs.tolist(), ends.extended, strict=True)
    for metric, low, high, is_extended in rows:
        yield metric, Interval(low, high, method + (_EXTENDED if is_extended else ""))


def _for_these_tasks(
    view: FilledOutcomes, points: Mapping[Metric, float], asked: IntervalTerms
) -> _Named:
    """A frontier per metric; metrics with the same values share it, so pass^1 = pass@1."""
    tasks = these_tasks.TheseTasks(view.histogram, asked.terms)
    levels: score_levels.ScoreLevels | None = None
    n = int(view.histogram.n.max())
    for metric, point in points.items():
        if isinstance(metric, ScoreMetric):
            levels = levels or score_levels.ScoreLevels(view.scores, asked.terms)
            yield metric, Interval(*levels.interval(metric, point), levels.method)
            continue
        count_metric = metric if isinstance(metric, Delta) else metric.as_count_metric(n)
        ends = None if count_metric is None else tasks.interval(count_metric)
        if ends is not None:
            yield metric, Interval(*ends, tasks.method(metric) + _twin(metric, count_metric))


def _twin(metric: Metric, chosen: Metric | None) -> str:
    """Which metric the interval of an ordered one was computed for."""
    return "" if chosen is metric else f" of {chosen}, its unordered twin"
