"""The admissible distributions under every way to fill in missing attempts, and with clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import round_outward, special
from passhat.stats.clusters import task_clusters
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import (
    BestOf,
    CountMetric,
    Delta,
    FirstAny,
    Metric,
    PassAt,
    PassHat,
    ScoreMetric,
)
from passhat.stats.forecast.band import Admissible, cutoff_for, rare_tasks
from passhat.stats.outcomes import Completion, Histogram, MissingPolicy, Outcomes, Run
from passhat.stats.terms import OptionName, Terms

TAKES: tuple[OptionName, ...] = ("level", "missing", "cluster")
"""The options that forecasts use."""
MOST_K = 1_000_000_000
"""Beyond, success rates that a double cannot tell from 1 would matter."""


def outcomes_of(source: Outcomes | Run) -> Outcomes:
    """The outcomes, of a run too."""
    return source.outcomes if isinstance(source, Run) else source


def countable(word: str | Metric) -> CountMetric:
    """The metric of a word, if it is a function of a task's success rate."""
    count_metric = parse(word)
    if not isinstance(count_metric, CountMetric):
        looks_for_any = isinstance(count_metric, FirstAny | BestOf)
        twin = PassAt(count_metric.k) if looks_for_any else PassHat(count_metric.k)
        why = "it depends on the order of attempts"
        if isinstance(count_metric, Delta):
            why = "it is made of two averages"
        elif isinstance(count_metric, ScoreMetric):
            why = "it depends on the scores of attempts"
        raise InvalidValue(
            f"{count_metric} cannot be forecast: {why}.", hint=f"Forecast {twin} instead."
        )
    if count_metric.k > MOST_K:
        raise InvalidValue(f"{count_metric}: k may be at most {MOST_K:,} in a forecast.")
    return count_metric


def cells_for(outcomes: Outcomes, policy: MissingPolicy) -> list[Histogram]:
    """The histograms that a missing policy needs: with failures first, then with passes."""
    histograms = [outcomes.histogram(policy.completion)]
    if policy is MissingPolicy.BOUND and outcomes.m is not None:
        histograms += [outcomes.histogram(Completion.AS_PASSED), *outcomes.histograms_between()]
    return [_drop_empty(cells) for cells in histograms]


def _drop_empty(cells: Histogram) -> Histogram:
    """The histogram without tasks that have no scored attempt."""
    has_attempts = cells.n > 0
    if not has_attempts.any():
        raise InvalidValue(
            "no attempt has a verdict, so there is nothing to forecast from.",
            hint=Hint("With {missing}, missing attempts are filled in.", missing="bound"),
        )
    return (
        cells
        if has_attempts.all()
        else Histogram(cells.n[has_attempts], cells.c[has_attempts], cells.tasks[has_attempts])
    )


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """Admissible distributions per way to fill in missing attempts; a band covers all of them."""

    sets: tuple[Admissible, ...]
    level: float
    design_effect: float

    @classmethod
    def of(
        cls,
        outcomes: Outcomes,
        histograms: Sequence[Histogram],
        metrics: Sequence[CountMetric],
        terms: Terms,
    ) -> Views:
        sets = tuple(Admissible.of(cells, metrics) for cells in histograms)
        return cls(sets, terms.level, design_effect(outcomes, terms))

    def cutoff(self, metric: CountMetric) -> float:
        """The largest cutoff over the ways to fill in.

        Dividing the log-likelihood by the design effect is the same as multiplying the cutoff.
        """
        rare = min(rare_tasks(view.support.cells, metric) for view in self.sets)
        return cutoff_for(self.level, rare / self.design_effect) * self.design_effect

    def low(self, metric: CountMetric) -> float:
        cutoff = self.cutoff(metric)
        return round_outward(min(view.low(metric, cutoff) for view in self.sets), 1.0)[0]

    def high(self, metric: CountMetric) -> float:
        cutoff = self.cutoff(metric)
        return round_outward(0.0, max(view.high(metric, cutoff) for view in self.sets))[1]


def design_effect(outcomes: Outcomes, terms: Terms) -> float:
    """By how much clusters inflate the variance of a mean over tasks; 1 without clusters.

    The largest of the ratios for pass^1, and for pass@k and pass^k at the largest k that every
    task has, each of the variance between clusters, sizes drawn with them, to that between tasks.
    With G clusters it is widened as Student's t with G - 1 degrees of freedom is over the normal.
    """
    clusters = task_clusters(outcomes, terms.cluster)
    if clusters is None:
        return 1.0
    n, c = outcomes.counts(terms.missing.completion)
    has_attempts = n > 0
    _, group = np.unique(np.array(clusters.labels)[has_attempts], return_inverse=True)
    sizes = np.bincount(group)
    if len(sizes) < 2:
        raise InvalidValue(
            f"all tasks share one {clusters.column}, so nothing is known about others.",
            hint=Hint(
                "Leave out {cluster} to speak about tasks of this one cluster.", cluster=None
            ),
        )
    tasks, count = int(has_attempts.sum()), len(sizes)
    k = int(n[has_attempts].min())
    ratios = []
    for metric in (PassAt(1), PassAt(k), PassHat(k)):
        values = metric.values(n[has_attempts], c[has_attempts])
        if np.ptp(values) > 0:
            deviations = values - values.mean()
            between = np.bincount(group, deviations)
            spread = float(deviations @ deviations) / (tasks - 1)
            ratios.append(float(between @ between) / (count - 1) * count / tasks / spread)
    if not ratios:
        # All tasks came out alike, so nothing is known of their likeness: take them for copies.
        ratios = [float(sizes @ sizes) / tasks]
    upper = (1 + terms.level) / 2
    wider = float(special.stdtrit(count - 1, upper) / special.ndtri(upper)) ** 2
    return max(1.0, *ratios) * wider
