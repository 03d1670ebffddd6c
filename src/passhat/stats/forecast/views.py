"""The admissible distributions under every way to fill in what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat.errors import InvalidValue
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import CountMetric, Delta, FirstAny, Metric
from passhat.stats.forecast.band import Admissible, cutoff_for
from passhat.stats.outcomes import Completion, Histogram, MissingPolicy, Outcomes, Run

__all__ = ["MOST_K", "Views", "asked_of", "cells_for", "countable"]

MOST_K = 1_000_000_000
"""Beyond, success rates that a double cannot tell from 1 would matter."""


def asked_of(source: Outcomes | Run) -> Outcomes:
    """The outcomes, of a run too."""
    return source.outcomes if isinstance(source, Run) else source


def countable(word: str | Metric) -> CountMetric:
    """The metric a word names, if it is a function of a task's success rate."""
    chosen = parse(word)
    if not isinstance(chosen, CountMetric):
        twin = f"pass@{chosen.k}" if isinstance(chosen, FirstAny) else f"pass^{chosen.k}"
        why = (
            "it is made of two averages"
            if isinstance(chosen, Delta)
            else "it depends on the order of attempts"
        )
        raise InvalidValue(f"{chosen} cannot be forecast: {why}.", hint=f"Forecast {twin} instead.")
    if chosen.k > MOST_K:
        raise InvalidValue(f"{chosen}: k may be at most {MOST_K:,} in a forecast.")
    return chosen


def cells_for(outcomes: Outcomes, missing: str) -> list[Histogram]:
    """The histograms that a missing policy asks to look at, the one with failures first."""
    policy = MissingPolicy.of(missing)
    completions = [policy.completion]
    if policy is MissingPolicy.BOUND and outcomes.m is not None:
        completions.append(Completion.AS_PASSED)
    return [_attempted(outcomes.histogram(completion)) for completion in completions]


def _attempted(cells: Histogram) -> Histogram:
    """Tasks without a scored attempt say nothing about difficulty."""
    kept = cells.n > 0
    if not kept.any():
        raise InvalidValue(
            "no attempt has a verdict, so there is nothing to forecast from.",
            hint="With --missing bound or fail, missing attempts are filled in.",
        )
    return cells if kept.all() else Histogram(cells.n[kept], cells.c[kept], cells.tasks[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """One set of admissible distributions per way to fill in; a band reaches over all of them."""

    sets: tuple[Admissible, ...]

    @classmethod
    def of(
        cls, histograms: Sequence[Histogram], metrics: Sequence[CountMetric], level: float
    ) -> Views:
        cutoff = cutoff_for(level)
        return cls(tuple(Admissible.of(cells, metrics, cutoff=cutoff) for cells in histograms))

    def low(self, metric: CountMetric) -> float:
        return max(0.0, min(one.low(metric) for one in self.sets))

    def high(self, metric: CountMetric) -> float:
        return min(1.0, max(one.high(metric) for one in self.sets))
