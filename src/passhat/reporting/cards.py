"""Cards: the numbers that matter, each with its interval and counts, for pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from passhat._display import counted, figure
from passhat.reporting.figures.agents import headline_words
from passhat.reporting.measures import Measure
from passhat.reporting.view import RunReport, card_interval, card_value
from passhat.stats.estimate import Estimate, metric
from passhat.stats.estimate.metrics import PassAt, PassHat

__all__ = ["Card", "CardRow", "build_cards"]


@dataclass(frozen=True, slots=True)
class CardRow:
    """A run's number on a card; ``value`` and the ends as shares, where there is an interval."""

    label: str
    text: str
    interval: str
    counts: str = ""
    level: str = ""
    low: float | None = None
    high: float | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A number with its interval and counts, for every run; ``place`` is its color."""

    name: str
    asks: str
    rows: tuple[CardRow, ...]
    place: int = 1


def build_cards(
    runs: Sequence[RunReport],
    labels: Sequence[str],
    measures: Sequence[Mapping[str, Measure]],
) -> Iterator[Card]:
    """Yield cards of pass^1, pass^k and pass@k, and of the cost per solved task."""
    for word in headline_words(runs):
        rows = tuple(
            _estimate_row(label, estimate)
            for label, run in zip(labels, runs, strict=True)
            if (estimate := run.find(word)) is not None
        )
        yield Card(str(word), _asks(word), rows, 2 if isinstance(metric(word), PassAt) else 1)
    name = _currency(measures)
    if name:
        rows = tuple(
            _measure_row(label, by_name.get(name))
            for label, by_name in zip(labels, measures, strict=True)
        )
        yield Card(f"{name} per solved task", "failed attempts are paid for too", rows)


def _currency(measures: Sequence[Mapping[str, Measure]]) -> str:
    """Cost where it is recorded, else tokens, steps or seconds."""
    recorded = {name for by_name in measures for name, each in by_name.items() if each.mean}
    return next((word for word in ("cost", "tokens", "steps", "seconds") if word in recorded), "")


def _asks(word: str) -> str:
    chosen = metric(word)
    if chosen.k == 1:
        return "one attempt passes"
    if type(chosen) is PassHat:
        return f"all of {chosen.k} attempts pass"
    return f"at least one of {chosen.k} passes" if isinstance(chosen, PassAt) else chosen.asks


def _estimate_row(label: str, estimate: Estimate) -> CardRow:
    counts = f"{counted(estimate.tasks, 'task')}, {counted(estimate.attempts, 'attempt')}"
    if estimate.low is None or estimate.high is None or estimate.level is None:
        return CardRow(label, card_value(estimate), "no interval", counts)
    level = f"{100 * estimate.level:g}% for {estimate.about}"
    ends = (estimate.low, estimate.high, estimate.value)
    return CardRow(label, card_value(estimate), card_interval(estimate), counts, level, *ends)


def _measure_row(label: str, measure: Measure | None) -> CardRow:
    if measure is None:
        return CardRow(label, "–", "not recorded")
    if measure.low is None or measure.high is None:
        interval, level = "no interval: too few solved tasks", ""
    else:
        interval = f"{figure(measure.low)} to {figure(measure.high)}"
        level = f"{100 * measure.level:g}%"
    return CardRow(label, figure(measure.per_solved), interval, measure.counts_text(), level)
