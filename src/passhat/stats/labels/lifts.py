"""The lift of one run over another, corrected by labels of both.

By whole tasks the differences of the two sides are corrected at once where the same tasks are
labeled whole on both sides, else each side by itself. By error rates one judge of both sides has
one pair of rates, from all labels together; two judges have a pair each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted
from passhat._serialize import Plain
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import FloatArray, round_outward
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.estimate.task_values import FilledOutcomes
from passhat.stats.labels.correction import (
    Correction,
    by_task,
    check_alike,
    correct,
    gaffke_ends,
    value_range,
)
from passhat.stats.labels.error_rates import (
    ErrorPair,
    ErrorRates,
    corrected_values,
    estimate_errors,
    join_ends,
    refuse_poor_judge,
    refuse_unsupported,
)
from passhat.stats.labels.judge_error import Strata, alikeness
from passhat.stats.labels.task_choice import FEWEST_TASKS, label_tasks, refuse_choice
from passhat.stats.labels.whole_tasks import WholeTasks
from passhat.stats.outcomes import Completion, LabelCounts, MissingPolicy, Outcomes, Run
from passhat.stats.terms import Population, Terms


@dataclass(frozen=True, slots=True)
class LabeledSide:
    """A run in a corrected comparison; sides with the same ``judge`` share its error rates."""

    outcomes: Outcomes
    labels: LabelCounts
    judge: str = ""

    @classmethod
    def of(cls, run: Run, outcomes: Outcomes | None = None) -> LabeledSide:
        """A run with its labels; its judge is known by its name and its tests."""
        judge = "/".join(filter(None, (run.protocol.judge, run.protocol.tests_fingerprint)))
        return cls(run.outcomes if outcomes is None else outcomes, require_labels(run), judge)


@dataclass(frozen=True, slots=True)
class CorrectedLift(Plain):
    """B minus A, corrected by labels."""

    WRITTEN = (
        *("metric", "lift", "low", "high", "judged", "level", ("about", "population")),
        *("correction", "tasks", "basis", "notes"),
    )

    metric: Metric
    lift: float
    low: float
    high: float
    """``lift``, ``low``, ``high``: the corrected lift and its interval."""
    judged: float
    """The lift by the judge's verdicts alone, on the same tasks."""
    level: float
    """The confidence of the interval."""
    population: Population
    """The tasks it is about."""
    correction: Correction
    """Whole tasks, or error rates."""
    tasks: int
    """Paired tasks."""
    basis: str
    """The labels it rests on, in words."""
    notes: tuple[str, ...] = ()
    """Further remarks."""


def require_labels(run: Run) -> LabelCounts:
    """The labels of a run; refuses one that has none."""
    if run.labels is not None and run.labels.attempts:
        return run.labels
    if run.labels is not None and run.labels.skipped_attempts:
        raise InvalidValue(
            f"{counted(run.labels.skipped_attempts, 'attempt')} of {run.name} "
            f"{'was' if run.labels.skipped_attempts == 1 else 'were'} looked at, and none has a "
            "label: it was skipped, or as many people call it right as wrong.",
            hint="Where people disagree, let one more person label.",
        )
    raise InvalidValue(
        f"{run.name} has no labels, so nothing can be corrected.",
        hint=Hint("Label attempts first: {draw_whole_tasks}", draw_whole_tasks=None),
    )


def correct_lift(
    a: LabeledSide,
    b: LabeledSide,
    metric: str | Metric,
    terms: Terms | None = None,
    correction: str = "whole tasks",
) -> CorrectedLift:
    """Correct the lift of B over A on the tasks they share.

    Under the policy ``bound`` the interval reaches from the worst to the best way for missing
    attempts and skipped labels to have gone.

    Refuses too few labels, a judge that is too poor, errors that depend on the task, and metrics
    that are no average over tasks.
    """
    terms, parsed, kind = terms or Terms(), parse(metric), Correction.of(correction)
    if not isinstance(parsed, CountMetric):
        raise InvalidValue(
            f"a lift of {parsed} cannot be corrected.", hint="Ask for pass^k, pass@k or rate."
        )
    pair = _Pair.of(a, b, parsed, terms)
    terms = terms.for_tasks(len(pair.a.outcomes))
    by = _by_whole_tasks if kind is Correction.WHOLE_TASKS else _by_errors
    ways = pair.ways()
    parts = [by(way) for way in ways]
    low = min(part.low for part in parts)
    high = max(part.high for part in parts)
    low, high = round_outward(low, high, -1.0, 1.0)
    first = parts[0]
    return CorrectedLift(
        parsed,
        round(first.value, 12),
        min(low, first.value),
        max(high, first.value),
        round(float((ways[0].values(1) - ways[0].values(0)).mean()), 12),
        terms.level,
        terms.about(),
        kind,
        len(pair.a.outcomes),
        first.basis,
        first.notes,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    value: float
    low: float
    high: float
    basis: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sides on the tasks they share, with missing attempts of each filled in one way."""

    a: LabeledSide
    b: LabeledSide
    metric: CountMetric
    terms: Terms
    completions: tuple[Completion, Completion]
    skipped_right: tuple[bool, bool] = (False, False)

    @classmethod
    def of(cls, a: LabeledSide, b: LabeledSide, metric: CountMetric, terms: Terms) -> _Pair:
        for side in (a, b):
            side.labels.check(side.outcomes)
        places = {task: place for place, task in enumerate(b.outcomes.tasks)}
        keep = [i for i, task in enumerate(a.outcomes.tasks) if task in places]
        if not keep:
            raise InvalidValue("the two runs have no task in common.")
        rows_a, rows_b = np.array(keep), np.array([places[a.outcomes.tasks[i]] for i in keep])
        plain = terms.missing.completion
        sides = [a.outcomes.take(rows_a), b.outcomes.take(rows_b)]
        if terms.drop_short:
            counts = [side.counts(plain)[0] for side in sides]
            enough = (counts[0] >= metric.k) & (counts[1] >= metric.k)
            sides = [side.take(enough) for side in sides]
        for outcomes in sides:
            FilledOutcomes(outcomes, plain).supporting(metric, drop_short=False)
        return cls(
            replace(a, outcomes=sides[0]),
            replace(b, outcomes=sides[1]),
            metric,
            terms,
            (plain,) * 2,
        )

    def ways(self) -> list[_Pair]:
        """As it is; and, where something is unknown, at its worst and at its best for B."""
        unsure = self.terms.missing is MissingPolicy.BOUND and any(
            side.outcomes.m is not None for side in (self.a, self.b)
        )
        if not unsure and not any(side.labels.skipped.any() for side in (self.a, self.b)):
            return [self]
        plain = self.terms.missing.completion
        good = Completion.AS_PASSED if unsure else plain
        worst = replace(self, completions=(good, plain), skipped_right=(True, False))
        best = replace(self, completions=(plain, good), skipped_right=(False, True))
        return [self, worst, best]

    def side(self, place: int) -> LabeledSide:
        return (self.a, self.b)[place]

    def values(self, place: int) -> FloatArray:
        """The metric by the judge at each task of a side."""
        outcomes = self.side(place).outcomes
        return FilledOutcomes(outcomes, self.completions[place]).per_task(self.metric)


def _by_whole_tasks(pair: _Pair) -> _Part:
    found = []
    for place in (0, 1):
        side = pair.side(place)
        places, right = label_tasks(
            side.outcomes, side.labels, skipped_right=pair.skipped_right[place]
        )
        refuse_choice(side.outcomes, side.labels, places)
        n, _ = side.outcomes.counts(pair.completions[place])
        if pair.completions[place] is Completion.AS_PASSED and side.outcomes.m is not None:
            right = right + side.outcomes.m[places]
        found.append((places, by_task(pair.metric.values, n[places], right)))
    both = np.intersect1d(found[0][0], found[1][0])
    if len(both) < FEWEST_TASKS:
        return _each_by_itself(pair)
    true = [values[np.searchsorted(places, both)] for places, values in found]
    judged = pair.values(1) - pair.values(0)
    others = np.setdiff1d(np.arange(len(judged)), both)
    clusters = None
    if pair.terms.cluster is not None:
        names = np.array(pair.a.outcomes.label(pair.terms.cluster))
        clusters = names[both].tolist(), names[others].tolist()
    sample = WholeTasks(
        (true[1] - true[0])[None], judged[None, both], judged[None, others], clusters, -1.0, 1.0
    )
    ((low, high),) = sample.interval(pair.terms.level, equal_tails=pair.terms.equal_tails)
    value = float(sample.points[0])
    basis = f"{counted(len(both), 'task')} of {len(judged):,} labeled whole on both sides"
    return _Part(value, min(low, value), max(high, value), basis)


def _each_by_itself(pair: _Pair) -> _Part:
    """Each side corrected by whole tasks of its own, joined as if they were independent."""
    a, b = (
        correct(
            side.outcomes, side.labels, pair.metric, replace(pair.terms, alternative="two-sided")
        )
        for side in (pair.a, pair.b)
    )
    ends = []
    for found in (a, b):
        estimate = found.estimate
        assert estimate.low is not None
        assert estimate.high is not None
        ends.append((estimate.value, estimate.low, estimate.high))
    value = ends[1][0] - ends[0][0]
    low, high = join_ends(
        value,
        (
            (value + ends[1][1] - ends[1][0], value + ends[1][2] - ends[1][0]),
            (value + ends[0][0] - ends[0][2], value + ends[0][0] - ends[0][1]),
        ),
    )
    basis = f"{a.labeled_tasks} and {b.labeled_tasks} tasks labeled whole, not the same ones"
    return _Part(value, max(low, -1.0), min(high, 1.0), basis)


def _by_errors(pair: _Pair) -> _Part:
    refuse_unsupported(pair.metric)
    one_judge = bool(pair.a.judge) and pair.a.judge == pair.b.judge
    rates, notes = _rates(pair, one_judge=one_judge)
    best = tuple(rate.best for rate in rates)
    value = _lift_at(pair, best)
    parts = [_attempts_part(pair, best)]
    changes = [(0, 1)] if one_judge else [(0,), (1,)]
    for sides in changes:
        rate = rates[sides[0]]
        for ends in (
            [ErrorPair(end.a, rate.best.b) for end in (rate.low, rate.high)],
            [ErrorPair(rate.best.a, end.b) for end in (rate.low, rate.high)],
        ):
            moved = [
                _lift_at(pair, tuple(end if i in sides else best[i] for i in (0, 1)))
                for end in ends
            ]
            parts.append((min(moved), max(moved)))
    low, high = join_ends(value, parts)
    value = min(max(value, -1.0), 1.0)
    count = pair.a.labels.attempts + pair.b.labels.attempts
    judges = "one judge" if one_judge else "two judges"
    if not (pair.a.judge and pair.b.judge):
        judges = "each run by itself, as no judge is recorded"
    basis = f"{counted(count, 'label')}, error rates of {judges}"
    notes = ("assumes that the judge's errors strike attempts of all tasks alike", *notes)
    return _Part(value, max(min(low, value), -1.0), min(max(high, value), 1.0), basis, notes)


def _rates(
    pair: _Pair, *, one_judge: bool
) -> tuple[tuple[ErrorRates, ErrorRates], tuple[str, ...]]:
    """The error rates of both sides; notes of the tests of alikeness."""
    sides = (pair.a, pair.b)
    strata = [Strata.of(side.outcomes, side.labels) for side in sides]
    groups = [([0, 1], LabelCounts.join([side.labels for side in sides]))]
    if not one_judge:
        groups = [([place], sides[place].labels) for place in (0, 1)]
    rates: list[ErrorRates] = []
    notes: dict[str, None] = {}
    for places, labels in groups:
        joined = Strata(
            *(
                sum(getattr(strata[place], name) for place in places)
                for name in ("passed", "failed", "labeled_passed", "labeled_failed")
            )
        )
        found = estimate_errors(joined, labels, pair.terms.level)
        notes |= dict.fromkeys(check_alike(alikeness(labels)))
        refuse_poor_judge(found, labels)
        rates += [found] * len(places)
    return (rates[0], rates[1]), tuple(notes)


def _corrected(pair: _Pair, place: int, errors: ErrorPair) -> FloatArray:
    n, c = pair.side(place).outcomes.counts(pair.completions[place])
    return by_task(lambda n, c: corrected_values(pair.metric, n, c, errors), n, c)


def _lift_at(pair: _Pair, errors: tuple[ErrorPair, ...]) -> float:
    """The corrected lift at given error rates of both sides."""
    return float((_corrected(pair, 1, errors[1]) - _corrected(pair, 0, errors[0])).mean())


def _attempts_part(pair: _Pair, errors: tuple[ErrorPair, ...]) -> tuple[float, float]:
    """Gaffke's bound on the differences at the estimated error rates."""
    ranges = [
        value_range(pair.metric, pair.side(i).outcomes.counts(pair.completions[i])[0], errors[i])
        for i in (0, 1)
    ]
    limits = ranges[1][0] - ranges[0][1], ranges[1][1] - ranges[0][0]
    lifts = _corrected(pair, 1, errors[1]) - _corrected(pair, 0, errors[0])
    values = np.clip(np.round(lifts, 12), *limits)
    if pair.terms.cluster is not None:
        return gaffke_ends(values, pair.a.outcomes.label(pair.terms.cluster), limits, pair.terms)
    return gaffke_ends(*np.unique(values, return_counts=True), limits, pair.terms)
