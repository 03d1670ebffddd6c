"""Corrected estimates of a metric: the judge's number and the number that labels leave of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Unpack

import numpy as np

from passhat._display import counted, percent
from passhat._serialize import Plain
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import FloatArray, IntArray, on_one_thread, round_outward
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.intervals.frontier import Calibration, frontier
from passhat.stats.estimate.intervals.new_tasks import UNSEEN, gaffke, gaffke_clusters
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric, Delta, Metric, PassHat
from passhat.stats.estimate.task_values import FilledOutcomes
from passhat.stats.labels.error_rates import (
    ErrorPair,
    ErrorRates,
    corrected_values,
    estimate_errors,
    join_ends,
    refuse_poor_judge,
    refuse_unsupported,
    target_of,
)
from passhat.stats.labels.judge_error import Alikeness, Strata, alikeness
from passhat.stats.labels.task_choice import (
    label_tasks,
    refuse_choice,
    refuse_few_tasks,
    unfair_notes,
)
from passhat.stats.labels.whole_tasks import WholeTasks
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes
from passhat.stats.outcomes.cells import cells_of
from passhat.stats.outcomes.labels import LabelCounts
from passhat.stats.terms import Population, TermOptions, Terms

Ends = tuple[float, float]


class Correction(StrEnum):
    """How labels correct a number."""

    WHOLE_TASKS = "whole tasks"
    ERRORS = "errors"

    @classmethod
    def of(cls, word: str) -> Correction:
        text = word.strip().lower().replace("-", " ")
        if text not in list(cls):
            raise InvalidValue(f"a correction is 'whole tasks' or 'errors', not {word!r}.")
        return cls(text)


@dataclass(frozen=True, slots=True)
class Corrected(Plain):
    """A corrected estimate beside the judge's."""

    estimate: Estimate
    """The corrected one."""
    judged: Estimate
    """The same metric by the judge's verdicts alone."""
    correction: Correction
    """Whole tasks, or error rates."""
    labeled_tasks: int
    labels: int
    """``labeled_tasks``, ``labels``: tasks that are labeled whole, and labeled attempts, that it
    rests on.
    """
    weight: float | None = None
    """The weight on the judge's verdicts (whole tasks): 0 where they say nothing."""
    errors: ErrorRates | None = None
    """The judge's error rates that were used (errors)."""
    skipped: int = 0
    """Attempts of the whole tasks that were looked at and have no label (whole tasks)."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes of the estimate that put it in doubt."""
        return self.estimate.notes

    def _as_dict(self) -> dict[str, object]:
        best = None if self.errors is None else self.errors.best
        return {
            **self.estimate.to_dict(),
            "correction": str(self.correction),
            "labeled_tasks": self.labeled_tasks,
            "labels": self.labels,
            "skipped": self.skipped,
            "weight": self.weight,
            "false_passes": None if best is None else best.a,
            "false_failures": None if best is None else best.b,
            "judged": self.judged,
        }


def correct(
    outcomes: Outcomes,
    labels: LabelCounts,
    metric: str | Metric,
    terms: Terms | None = None,
    *,
    correction: str = "whole tasks",
    **options: Unpack[TermOptions],
) -> Corrected:
    """Estimate a metric as labels would have it, from a judge's verdicts and some labels.

    The labels must be of attempts drawn at random. ``whole tasks`` corrects by tasks whose attempts
    are all labeled, with no assumption about the errors; ``errors`` by the judge's error rates from
    any labeled attempts, if errors strike all tasks alike. Refuses too few labels, a judge too poor
    to be corrected, and errors that depend on the task.
    """
    terms = Terms.from_options(
        options, terms, takes=("missing", "level", "drop_short", "cluster", "about")
    ).for_tasks(len(outcomes))
    parsed, kind = parse(metric), Correction.of(correction)
    if not isinstance(parsed, CountMetric | Delta):
        raise InvalidValue(
            f"{parsed} is not a number of passes, and labels cannot correct it.",
            hint="Ask for pass^k, pass@k, rate or delta^k.",
        )
    labels.check(outcomes)
    judged = estimate(outcomes, parsed, terms)
    readings = [_Reading(outcomes, labels, terms, parsed, terms.missing.completion, False)]
    unsure = outcomes.m is not None and terms.missing is MissingPolicy.BOUND
    if unsure or (kind is Correction.WHOLE_TASKS and labels.skipped.any()):
        completion = Completion.AS_PASSED if unsure else terms.missing.completion
        readings.append(_Reading(outcomes, labels, terms, parsed, completion, True))
    by = _by_whole_tasks if kind is Correction.WHOLE_TASKS else _by_errors
    parts = [by(reading) for reading in readings]
    first = parts[0]
    is_range = len(parts) > 1 or judged.value_if_passed is not None
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    least, largest = min(part.value for part in parts), max(part.value for part in parts)
    if isinstance(parsed, Delta) and len(parts) > 1 and parsed.k > 1:
        (least, largest), (low, high) = _bound_delta(outcomes, labels, parsed, terms, kind)
        least, largest = min(least, first.value), max(largest, first.value)
    low, high = round_outward(low, high, parsed.lowest, parsed.highest)
    return Corrected(
        replace(
            judged,
            value=first.value,
            value_if_passed=parts[-1].value if is_range else None,
            value_range=(least, largest) if least < largest else None,
            low=min(low, least),
            high=max(high, largest),
            level=terms.level,
            estimator=first.estimator,
            interval_method=first.method,
            bounds=None,
            notes=(*judged.notes, *first.notes),
        ),
        judged,
        kind,
        first.tasks,
        first.labels,
        first.weight,
        first.errors,
        first.skipped,
    )


def _bound_delta(
    outcomes: Outcomes, labels: LabelCounts, metric: Delta, terms: Terms, kind: Correction
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The range of delta^k and its ends, for every way to read what is missing.

    From those of pass^k and pass^1, each with half of the error: with some missing attempts passed
    and some failed delta^k may be outside of what all of them give.
    """
    halved = replace(terms, level=(1 + terms.level) / 2)
    power, mean = (
        correct(outcomes, labels, part, halved, correction=kind).estimate for part in metric.parts
    )
    ends = [
        ((power.low or 0.0, power.high or 1.0), (mean.low or 0.0, mean.high or 1.0)),
        (power.value_ends, mean.value_ends),
    ]
    interval, values = (
        (
            max(low - high_mean**metric.k, 0.0),
            # pass^k is at most the mean, and delta^k at the mean with the largest such gap.
            max(metric.largest(low_mean, max(min(high_mean, high), low_mean)), 0.0)
            if high >= low_mean
            else max(high - low_mean**metric.k, 0.0),
        )
        for (low, high), (low_mean, high_mean) in ends
    )
    return values, interval


@dataclass(frozen=True, slots=True)
class _Part:
    """A corrected value with its ends, for one reading of what is not known."""

    value: float
    low: float
    high: float
    estimator: str
    method: str
    tasks: int
    labels: int
    weight: float | None = None
    errors: ErrorRates | None = None
    skipped: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """Outcomes and labels, with missing attempts and skipped labels read in one way."""

    outcomes: Outcomes
    labels: LabelCounts
    terms: Terms
    metric: Metric
    completion: Completion
    skipped_right: bool

    @property
    def view(self) -> FilledOutcomes:
        """The tasks that support the metric, by the judge."""
        view = FilledOutcomes(self.outcomes, self.completion)
        return view.supporting(self.metric, drop_short=self.terms.drop_short)

    @property
    def parts(self) -> tuple[CountMetric, ...]:
        """The averages over tasks that the metric is made of."""
        if isinstance(self.metric, Delta):
            return self.metric.parts
        assert isinstance(self.metric, CountMetric)
        return (self.metric,)


def whole_values(reading: _Reading) -> tuple[WholeTasks, IntArray, IntArray]:
    """The values by labels and by the judge; n and true passes of the whole tasks."""
    view = reading.view
    n, _ = view.outcomes.counts(reading.completion)
    places, right = label_tasks(view.outcomes, reading.labels, skipped_right=reading.skipped_right)
    refuse_few_tasks(len(places), view.outcomes, reading.labels)
    refuse_choice(view.outcomes, reading.labels, places)
    if reading.completion is Completion.AS_PASSED and view.outcomes.m is not None:
        right = right + view.outcomes.m[places]
    others = np.setdiff1d(np.arange(len(n)), places)
    judged = np.stack([view.per_task(part) for part in reading.parts])
    true = np.stack([by_task(part.values, n[places], right) for part in reading.parts])
    clusters = None
    if reading.terms.cluster is not None:
        names = np.array(view.outcomes.label(reading.terms.cluster))
        clusters = names[places].tolist(), names[others].tolist()
    return WholeTasks(true, judged[:, places], judged[:, others], clusters), n[places], right


def whole_sample(
    outcomes: Outcomes, labels: LabelCounts, metric: Metric, terms: Terms
) -> WholeTasks:
    """The values of whole tasks and of the others, with missing attempts as failed."""
    completion = terms.missing.completion
    return whole_values(_Reading(outcomes, labels, terms, metric, completion, False))[0]


def by_task(
    formula: Callable[[IntArray, IntArray], FloatArray], n: IntArray, c: IntArray
) -> FloatArray:
    """A formula's value at each task, in any order; the formula wants n in order."""
    order = np.lexsort((c, n))
    values = np.empty(len(n))
    values[order] = formula(n[order], c[order])
    return values


_WHOLE = "labels of whole tasks, the judge's verdicts elsewhere at weight {weight:.2f}"
_WHOLE_METHOD = "Gaffke's bound on differences, prediction-powered"


def _by_whole_tasks(reading: _Reading) -> _Part:
    sample, n, right = whole_values(reading)
    labels, outcomes = reading.labels, reading.view.outcomes
    counted_in = np.isin(labels.places_in(outcomes), label_tasks(outcomes, labels)[0])
    terms, metric = reading.terms, reading.metric
    level, points = terms.level, sample.points
    value = float(points[0])
    method = _WHOLE_METHOD
    these = terms.about() is Population.THESE_TASKS
    all_labeled = sample.others.shape[1] == 0
    if isinstance(metric, Delta):
        value = metric.combine(float(points[0]), float(points[1]))
        low, high = sample.delta_interval(metric.k, level, equal_tails=terms.equal_tails)
    else:
        ((low, high),) = sample.interval(level, equal_tails=terms.equal_tails)
    if these and all_labeled:
        true_cells = cells_of(n, right)
        tasks = TheseTasks(true_cells, terms)
        assert isinstance(metric, CountMetric | Delta)
        low, high = tasks.interval(metric) or (low, high)
        method = tasks.method(metric)
    elif these:
        # Which tasks were labeled varies no less than which tasks there are.
        method += ", as for new tasks"
    value = round(value, 12)
    return _Part(
        value,
        min(low, value),
        max(high, value),
        _WHOLE.format(weight=float(sample.weights[0])),
        method,
        len(n),
        int((labels.right + labels.wrong)[counted_in].sum()),
        float(sample.weights[0]),
        skipped=int(labels.skipped[counted_in].sum()),
        notes=(*_label_notes(labels), *unfair_notes(outcomes, labels, len(n))),
    )


_ERRORS = "task mean of the judge's values, corrected by its error rates"


def _by_errors(reading: _Reading) -> _Part:
    strata = Strata.of(reading.outcomes, reading.labels)
    rates = estimate_errors(strata, reading.labels, reading.terms.level)
    notes = check_alike(alikeness(reading.labels))
    refuse_poor_judge(rates, reading.labels)
    view, terms = reading.view, reading.terms
    if isinstance(reading.metric, Delta):
        value, ends = _delta_by_errors(view, reading.metric, rates, terms)
    else:
        metric = reading.parts[0]
        refuse_unsupported(metric)
        value, ends = bound_by_errors(view, metric, rates, terms)
    low, high = (min(max(end, reading.metric.lowest), reading.metric.highest) for end in ends)
    value = round(min(max(value, reading.metric.lowest), reading.metric.highest), 12)
    return _Part(
        value,
        min(low, value),
        max(high, value),
        _ERRORS,
        "attempts, false passes and false failures joined by their squares",
        0,
        reading.labels.attempts,
        errors=rates,
        notes=(
            "assumes that the judge's errors strike attempts of all tasks alike",
            *notes,
            *_label_notes(reading.labels),
        ),
    )


def check_alike(test: Alikeness) -> tuple[str, ...]:
    """A note where errors seem to depend on the task; refuses where they do."""
    if test.is_rejected:
        raise InvalidValue(
            "the judge's errors depend on the task: "
            f"{counted(test.pairs, 'pair')} of errors at the same task, "
            f"{test.expected_pairs:.1f} expected at random (p = {test.p_value:.3g}). A correction "
            "by error rates would be wrong.",
            hint=Hint(
                "Label whole tasks, which assumes nothing about the errors: {draw_whole_tasks}",
                draw_whole_tasks=None,
            ),
        )
    if test.is_doubtful:
        return (
            f"warning: errors may depend on the task ({counted(test.pairs, 'pair')} at the same "
            f"task, {test.expected_pairs:.1f} expected, p = {test.p_value:.2f}); then this "
            "correction is wrong",
        )
    if test.p_value is None:
        return ("too few errors are labeled to test whether they depend on the task",)
    return ()


def bound_by_errors(
    view: FilledOutcomes, metric: CountMetric, rates: ErrorRates, terms: Terms
) -> tuple[float, tuple[float, float]]:
    """The corrected mean, with ends that join the attempts' and the error rates' part."""
    value, *parts = error_parts(view, metric, rates, terms)
    return value, join_ends(value, parts)


@on_one_thread
def error_parts(
    view: FilledOutcomes, metric: CountMetric, rates: ErrorRates, terms: Terms
) -> tuple[float, Ends, Ends, Ends]:
    """The corrected mean, and what attempts, false passes and false failures each move it to."""
    cells = view.histogram
    shares = cells.tasks / cells.size

    def value_at(pair: ErrorPair) -> float:
        return float((corrected_values(metric, cells.n, cells.c, pair) * shares).sum())

    best = rates.best
    value = value_at(best)
    if terms.about() is Population.THESE_TASKS and cells.size > 1:

        def values(n: int, c: IntArray) -> FloatArray:
            return corrected_values(metric, np.full(len(c), n, np.int64), c, best)

        statistics = TheseTasks(cells, terms).statistics(values, target_of(metric, best), metric.k)
        attempts = frontier(statistics, Calibration.at(terms.level, cells.size))
    else:
        attempts = _gaffke_ends(view, metric, best, terms)
    by_a = [value_at(ErrorPair(a, best.b)) for a in (rates.low.a, rates.high.a)]
    by_b = [value_at(ErrorPair(best.a, b)) for b in (rates.low.b, rates.high.b)]
    return value, attempts, (min(by_a), max(by_a)), (min(by_b), max(by_b))


def _gaffke_ends(
    view: FilledOutcomes, metric: CountMetric, pair: ErrorPair, terms: Terms
) -> tuple[float, float]:
    """Gaffke's bound at given error rates; the range is that of every number of passes."""
    cells = view.histogram
    limits = value_range(metric, cells.n, pair)
    if terms.cluster is None:
        values = corrected_values(metric, cells.n, cells.c, pair)
        return gaffke_ends(values, cells.tasks, limits, terms)
    n, c = view.outcomes.counts(view.completion)
    values = by_task(lambda n, c: corrected_values(metric, n, c, pair), n, c)
    return gaffke_ends(values, view.outcomes.label(terms.cluster), limits, terms)


def gaffke_ends(
    values: FloatArray, weights: IntArray | Sequence[str], limits: Ends, terms: Terms
) -> Ends:
    """Gaffke's bound on the mean of values within limits.

    ``weights`` are the numbers of tasks with each value, or, with clusters, the cluster of each.
    """
    lowest, highest = limits
    bound = gaffke if terms.cluster is None else gaffke_clusters
    ends = bound(
        np.clip(values, lowest, highest),
        np.asarray(weights),
        level=terms.level,
        lowest=lowest,
        highest=highest,
        # Ends that have to hold together only: near the mid-p form, as for whole tasks.
        unseen=UNSEEN if terms.equal_tails else UNSEEN / 2,
    )
    return float(ends.lows[0]), float(ends.highs[0])


_MOST_COUNTS = 500


def value_range(metric: CountMetric, n: IntArray, pair: ErrorPair) -> tuple[float, float]:
    """The smallest and largest corrected value at any number of passes."""
    lows, highs = [], []
    for size in np.unique(n).tolist():
        c = np.unique(np.linspace(0, size, min(size, _MOST_COUNTS) + 1).round().astype(np.int64))
        values = corrected_values(metric, np.full(len(c), size, np.int64), c, pair)
        lows.append(float(values.min()))
        highs.append(float(values.max()))
    return min(lows), max(highs)


def _delta_by_errors(
    view: FilledOutcomes, metric: Delta, rates: ErrorRates, terms: Terms
) -> tuple[float, tuple[float, float]]:
    """delta^k from both corrected means; their parts are joined as if independent."""
    power, mean = metric.parts
    power_value, power_ends = bound_by_errors(view, power, rates, terms)
    rate_value, rate_ends = bound_by_errors(view, PassHat(1) if mean.k == 1 else mean, rates, terms)
    clipped = min(max(rate_value, 0.0), 1.0)
    low_rate, high_rate = (min(max(end, 0.0), 1.0) for end in rate_ends)
    value = metric.combine(min(max(power_value, 0.0), 1.0), clipped)
    gap = power_value - clipped**metric.k
    ends = join_ends(
        gap,
        (
            (gap + power_ends[0] - power_value, gap + power_ends[1] - power_value),
            (power_value - high_rate**metric.k, power_value - low_rate**metric.k),
        ),
    )
    top = (metric.k - 1) * metric.k ** (-metric.k / (metric.k - 1)) if metric.k > 1 else 0.0
    return value, (max(ends[0], 0.0), min(max(ends[1], 0.0), top))


def _label_notes(labels: LabelCounts) -> tuple[str, ...]:
    notes = []
    if not labels.draws:
        notes.append(
            "the labeled attempts were not drawn by passhat, and are taken to be a random choice"
        )
    if labels.skipped_attempts:
        looked_at = labels.attempts + labels.skipped_attempts
        notes.append(
            f"{counted(labels.skipped_attempts, 'attempt')} of {looked_at:,} looked at without a "
            f"label ({percent(labels.skipped_attempts / looked_at, 0)})"
        )
    return tuple(notes)
