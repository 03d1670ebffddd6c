"""Scores of a run: worst and best of k attempts, and what depends on the threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from passhat._display import percent
from passhat._serialize import Plain
from passhat.stats.estimate import Estimate, estimate_all
from passhat.stats.estimate.metrics import BestOf, PassHat, WorstOf
from passhat.stats.estimate.task_values import FilledOutcomes
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run
from passhat.stats.terms import Terms

_MOST_CUTS = 21
_MOST_KS = 12
_DIGITS = 6


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
