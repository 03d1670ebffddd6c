"""The content of the page, in order; the template only lays it out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from passhat._display import counted, figure, percent, percent_interval
from passhat.reporting.comparison_view import headline, headline_result
from passhat.reporting.figures.agents import headline_words
from passhat.reporting.figures.base import labels_of
from passhat.reporting.measures import RATIO_METHOD, Measure
from passhat.reporting.view import Report, RunReport, card_interval, card_value
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.compare.claims import Claim, points
from passhat.stats.estimate import Estimate, metric

__all__ = [
    "MOST_ON_CARDS",
    "Card",
    "CardRow",
    "Lead",
    "Table",
    "cards",
    "formulas",
    "lead",
    "settling",
]


MOST_ON_CARDS = 3
"""Runs on one card; more become a table."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The top of the page: its subject, a mark for the claim, and the sentence."""

    title: str
    badge: str
    sentences: tuple[str, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CardRow:
    """A run's number on a card; ends and point in percent of the bar, where there is a bar."""

    label: str
    value: str
    interval: str
    counts: str
    bar: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A number with its interval and counts, for every run."""

    metric: str
    asks: str
    rows: tuple[CardRow, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption; columns in ``text`` hold text, the others numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: tuple[int, ...] = (0,)


def lead(report: Report, comparison: Comparison | Comparisons | None) -> Lead:
    """The claim if there is a comparison, the headline of the run if there is one run."""
    labels = labels_of(report.runs)
    facts = tuple(dict.fromkeys(str(run.run.outcomes) for run in report.runs))
    if isinstance(comparison, Comparison):
        first = comparison.results[0]
        return Lead(
            f"{labels[1]} against {labels[0]}",
            str(headline_result(comparison).claim),
            tuple(
                filter(
                    None,
                    (
                        *_named_warnings(labels, report.runs),
                        headline(comparison, *labels),
                        first.claim_sentence,
                        " ".join(first.remarks),
                        *(
                            result.sentence
                            for result in (*comparison.results[1:], *comparison.differing)
                        ),
                    ),
                )
            ),
            (comparison.pairing_text, *facts),
        )
    if isinstance(comparison, Comparisons):
        word = comparison.ranks[0].metric
        ranked = [f"{entry.name} ({entry})" for entry in comparison.ranks if entry.metric == word]
        sentence = f"Possible ranks by {word}: {', '.join(ranked)}."
        return Lead(
            f"{len(comparison.names)} runs compared",
            "",
            (sentence,),
            (comparison.pairing_text, *facts),
        )
    if len(report.runs) == 1:
        only = report.runs[0]
        return Lead(only.run.agent or only.name, "", (*_warnings(only), only.headline), facts)
    # The best of many would be praised for its luck; all of them are in the table below.
    sentences = [
        f"{label}: {run.headline[0].lower()}{run.headline[1:]}"
        for label, run in zip(labels, report.runs, strict=True)
    ]
    if len(sentences) > MOST_ON_CARDS:
        tasks = sorted({len(run.run.outcomes) for run in report.runs})
        many = f"{tasks[0]:,}" if len(tasks) == 1 else f"{tasks[0]:,} to {tasks[-1]:,}"
        sentences = [f"{len(labels)} runs on {many} tasks each, side by side."]
    return Lead(f"{len(report.runs)} runs", "", tuple(sentences), facts[:MOST_ON_CARDS])


def _named_warnings(labels: Sequence[str], runs: Sequence[RunReport]) -> Iterator[str]:
    """The warnings of all runs, each with the run it is about."""
    for label, run in zip(labels, runs, strict=True):
        yield from (f"{label}: {warning}" for warning in _warnings(run))


def cards(report: Report) -> Iterator[Card]:
    """Cards of pass^1, pass^k and pass@k, and of the cost per success."""
    labels = labels_of(report.runs)
    several = len(labels) > 1
    for word in headline_words(report.runs):
        rows = tuple(
            _estimate_row(label if several else "", estimate)
            for label, run in zip(labels, report.runs, strict=True)
            if (estimate := run.find(word)) is not None
        )
        yield Card(word, _asks(word), rows)
    name = _paid_in(report.runs)
    if name:
        rows = tuple(
            _measure_row(label if several else "", run.details.measure(name))
            for label, run in zip(labels, report.runs, strict=True)
            if run.details is not None
        )
        asks = "failed attempts are paid for too"
        yield Card(f"{name} per solved task", asks, rows)


def _paid_in(runs: Sequence[RunReport]) -> str:
    """Cost where it is recorded, else tokens, steps or seconds."""
    recorded = {
        measure.name
        for run in runs
        if run.details is not None
        for measure in run.details.measures
        if measure.mean
    }
    return next((word for word in ("cost", "tokens", "steps", "seconds") if word in recorded), "")


def _asks(word: str) -> str:
    k = metric(word).k
    if word in ("pass^1", "pass@1"):
        return "one attempt passes"
    if word.startswith("pass^"):
        return f"all of {k} attempts pass"
    return f"at least one of {k} passes" if word.startswith("pass@") else metric(word).asks


def _estimate_row(label: str, estimate: Estimate) -> CardRow:
    value = card_value(estimate)
    counts = f"{counted(estimate.tasks, 'task')}, {counted(estimate.attempts, 'attempt')}"
    if estimate.low is None or estimate.high is None or estimate.level is None:
        return CardRow(label, value, "no interval", counts)
    return CardRow(
        label,
        value,
        card_interval(estimate),
        counts,
        (100 * estimate.low, 100 * estimate.high, 100 * estimate.value),
    )


def _measure_row(label: str, measure: Measure | None) -> CardRow:
    if measure is None:
        return CardRow(label, "–", "not recorded", "")
    interval = (
        "no interval" if measure.low is None else f"{figure(measure.low)} to {figure(measure.high)}"
    )
    return CardRow(label, figure(measure.per_solved), interval, measure.counts_text())


def settling(report: Report, comparison: Comparison | Comparisons | None) -> Iterator[str]:
    """Ways to settle an open question: more tasks, more attempts, or judging missing attempts."""
    if isinstance(comparison, Comparison):
        for result in comparison.results:
            if result.tasks_needed is not None:
                yield (
                    f"{result.metric}: if the lift stays at {points(result.lift)} points, about "
                    f"{result.tasks_needed:,} paired tasks like these would settle it "
                    f"({result.tasks:,} now)."
                )
            elif result.claim is Claim.INCONCLUSIVE:
                yield f"{result.metric}: {result.remarks[-1]}"
            else:
                interval = result.interval_text()
                yield f"{result.metric} is settled: {result.claim}, {interval} points."
    labels = labels_of(report.runs)
    if len(labels) > MOST_ON_CARDS:
        return
    for label, run in zip(labels, report.runs, strict=True):
        plan = run.details.plan if run.details is not None else None
        if plan is None:
            continue
        who = (
            f"{label}: {plan.sentence[0].lower()}{plan.sentence[1:]}"
            if len(labels) > 1
            else plan.sentence
        )
        now = (
            ""
            if plan.pilot_reaches is None
            else f" A run of this size gives {100 * plan.pilot_reaches:.1f} points either way."
        )
        yield f"{who}{now} {plan.attempts_text[0].upper()}{plan.attempts_text[1:]}."


def formulas(report: Report) -> Table:
    """Every kind of number with its question and its formula."""
    words: dict[str, str] = {}
    for run in report.runs:
        for estimate in run.estimates:
            words[re.sub(r"\d+", "k", estimate.metric, count=1)] = estimate.metric
    rows = [(family, metric(word).asks, metric(word).formula) for family, word in words.items()]
    if any(run.details is not None and run.details.measures for run in report.runs):
        rows.append(("per solved task", "what a success takes", RATIO_METHOD))
    return Table(
        "What each number asks, and its formula",
        ("metric", "asks", "formula"),
        tuple(rows),
        (0, 1, 2),
    )


def value_text(estimate: Estimate) -> str:
    """A value with its interval, and the other extreme where attempts are missing."""
    moved = estimate.value_if_passed not in (None, estimate.value)
    upper = f" to {percent(estimate.value_if_passed, 1)}" if moved else ""
    interval = "" if estimate.low is None else f" ({percent_interval(estimate.low, estimate.high)})"
    return f"{percent(estimate.value, 1)}{upper}{interval}"


def _warnings(run: RunReport) -> tuple[str, ...]:
    return tuple(f"Warning: {warning}." for warning in run.warnings)
