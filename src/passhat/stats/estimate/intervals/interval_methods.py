"""From metrics on completed outcomes to their intervals: which method serves which metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from passhat._display import counted
from passhat.stats.estimate.intervals.new_tasks import gaffke, gaffke_clusters
from passhat.stats.estimate.intervals.new_tasks_delta import (
    SEED,
    gaffke_delta,
    gaffke_delta_clusters,
)
from passhat.stats.estimate.intervals.ordered_metrics import MOST_ATTEMPTS, InARow
from passhat.stats.estimate.intervals.shared import Intervals
from passhat.stats.estimate.intervals.these_tasks import AtLeast, Form, Gain, rerun_intervals
from passhat.stats.estimate.metrics import (
    CountMetric,
    Delta,
    FirstAll,
    FirstAny,
    GPass,
    Metric,
    OrderedMetric,
    PassAt,
    PassHat,
    Window,
)
from passhat.stats.estimate.task_values import Completed
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Population, Terms

__all__ = ["Asked", "Interval", "intervals_of"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The terms of an interval; ``rng`` replaces the fixed seed where draws are needed."""

    terms: Terms = field(default_factory=Terms)
    rng: np.random.Generator | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends and how they were found."""

    low: float
    high: float
    method: str


def intervals_of(
    view: Completed, points: Mapping[Metric, float], asked: Asked
) -> dict[Metric, Interval]:
    """Intervals of all metrics in one pass; a metric for which there is none is left out."""
    if asked.terms.about() is Population.THESE_TASKS:
        return dict(_for_these_tasks(view, points, asked))
    if asked.terms.cluster is not None:
        return dict(_for_clusters(view, list(points), asked))
    return dict(_for_new_tasks(view, list(points), asked))


_DIGITS = 12
_JOINT = "Gaffke's bound on joint draws of both means"
_Found = Iterator[tuple[Metric, Interval]]


def _for_new_tasks(view: Completed, metrics: Sequence[Metric], asked: Asked) -> _Found:
    cells = view.histogram
    counted_ones = [metric for metric in metrics if isinstance(metric, CountMetric)]
    if counted_ones:
        rows = np.stack([metric.values(cells.n, cells.c) for metric in counted_ones])
        found = gaffke(rows, cells.tasks, level=asked.terms.level)
        yield from _named(counted_ones, found, "Gaffke's bound on the histogram of task values")
    for metric in metrics:
        if isinstance(metric, OrderedMetric):
            seen = view.of(metric)
            found = gaffke(seen.values, seen.tasks, level=asked.terms.level)
            yield from _named([metric], found, "Gaffke's bound on the histogram of task values")
    gains = [metric for metric in metrics if isinstance(metric, Delta) and metric.k > 1]
    if gains:
        found = gaffke_delta(
            np.stack([metric.parts[0].values(cells.n, cells.c) for metric in gains]),
            cells.c / cells.n,
            cells.tasks,
            [metric.k for metric in gains],
            level=asked.terms.level,
            seed=SEED if asked.rng is None else asked.rng,
        )
        yield from _named(gains, found, f"{_JOINT}, {_seeded(asked)}")


def _for_clusters(view: Completed, metrics: Sequence[Metric], asked: Asked) -> _Found:
    labels = view.outcomes.label(asked.terms.cluster or "")
    weighed = f"weights per {asked.terms.cluster} ({counted(len(set(labels)), 'cluster')})"
    averages = [metric for metric in metrics if not isinstance(metric, Delta)]
    if averages:
        rows = np.stack([view.per_task(metric) for metric in averages])
        found = gaffke_clusters(rows, np.array(labels), level=asked.terms.level)
        yield from _named(averages, found, f"Gaffke's bound, {weighed}")
    gains = [metric for metric in metrics if isinstance(metric, Delta) and metric.k > 1]
    if gains:
        found = gaffke_delta_clusters(
            np.stack([view.per_task(metric.parts[0]) for metric in gains]),
            view.per_task(PassHat(1)),
            np.array(labels),
            [metric.k for metric in gains],
            level=asked.terms.level,
            seed=SEED if asked.rng is None else asked.rng,
        )
        yield from _named(gains, found, f"{_JOINT}, {weighed}, {_seeded(asked)}")


def _seeded(asked: Asked) -> str:
    """Where the draws come from."""
    return f"seed {SEED}" if asked.rng is None else "the caller's generator"


def _for_these_tasks(view: Completed, points: Mapping[Metric, float], asked: Asked) -> _Found:
    alone = len(view.outcomes) == 1
    forms: dict[Metric, Form] = {
        metric: form
        for metric in points
        if (form := _form(metric, view.histogram)) is not None
        and not (alone and isinstance(form, Gain))
    }
    if not forms:
        return
    values = np.array([points[metric] for metric in forms])
    found = rerun_intervals(view.histogram, values, list(forms.values()), level=asked.terms.level)
    for metric, interval in _named(list(forms), found, "hierarchical beta-binomial posterior"):
        yield metric, Interval(interval.low, interval.high, interval.method + _told(metric))


def _form(metric: Metric, cells: Histogram) -> Form | None:
    """The metric as a function of a task's success rate, where it is one."""
    if isinstance(metric, PassAt | FirstAny):
        return AtLeast(1, metric.k)
    if isinstance(metric, PassHat | FirstAll):
        return AtLeast(metric.k, metric.k)
    if isinstance(metric, GPass):
        return AtLeast(metric.needed, metric.k)
    if isinstance(metric, Window):
        n = int(cells.n[0])  # the same on every task, or there would be no value
        return InARow(metric.k, n) if n <= MOST_ATTEMPTS else None
    return Gain(metric.k) if isinstance(metric, Delta) and metric.k > 1 else None


def _told(metric: Metric) -> str:
    """What else is to be known of such an interval."""
    if isinstance(metric, Delta):
        return ", from 0 where the tasks may be all alike"
    if isinstance(metric, Window):
        return ", for as many attempts, independent given the task"
    if not isinstance(metric, OrderedMetric):
        return ""
    twin = PassAt(metric.k) if isinstance(metric, FirstAny) else PassHat(metric.k)
    return f" of {twin}, its unordered twin"


def _named(metrics: Sequence[Metric], found: Intervals, how: str) -> _Found:
    for i, metric in enumerate(metrics):
        extended = ", extended to the point" if found.extended[i] else ""
        point = float(found.points[i])
        # The last bits depend on which metrics were computed together; nobody needs them.
        low, high = round(float(found.lows[i]), _DIGITS), round(float(found.highs[i]), _DIGITS)
        yield metric, Interval(min(low, point), max(high, point), how + extended)
