"""Rules on a metric: a number of its own (new tasks), or against a baseline (these tasks).

A rule is judged at a one-sided level: shown when the lower bound meets the limit, refuted when the
upper bound does not. A one-sided 95% bound is the end of the two-sided 90% interval. An absolute
rule is about new tasks, a rule against a baseline about these tasks, unless another population is
requested.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from passhat._display import counted, number
from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.clusters import TaskClusters
from passhat.stats.compare.lift import Interval, LiftSample, hull
from passhat.stats.compare.pairing import Pairing, mean_lift
from passhat.stats.compare.prospects import Reach, foresee_attempts, foresee_tasks
from passhat.stats.compare.these_tasks import bound_lift
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.cases import Absent, Case, missing_notes
from passhat.stats.gate.gate_result import Advice, GateVerdict, RuleResult
from passhat.stats.gate.rules import (
    LimitRule,
    RuleText,
    Sign,
    find_metric,
    register_rule,
    verdict_of,
)
from passhat.stats.labels.correction import Correction, correct
from passhat.stats.labels.lifts import LabeledSide, correct_lift, require_labels
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import Population, Terms

_ON_THE_LIMIT = 0.002
"""A value this near to the limit would take more tasks than any suite has."""


@register_rule
@dataclass(frozen=True, slots=True)
class MetricRule(LimitRule):
    """A limit on a metric, as in ``pass^4 >= 0.6``."""

    subject: Metric = field()  # without it, the base class's property would be its default
    sign: Sign
    limit: float

    @classmethod
    def from_text(cls, parts: RuleText) -> MetricRule | None:
        metric = None if parts.relative else find_metric(parts.subject)
        if metric is None:
            return None
        parts.check_range(metric, metric.lowest, metric.highest)
        return cls(metric, parts.sign, parts.limit)

    def judge(self, case: Case) -> RuleResult:
        """Judge by the estimate's bounds.

        The value is that of the attempts that were made, as a report gives it. The bounds count
        absent attempts as missing: an attempt that was not run is as unknown as one without a
        verdict.
        """
        terms, estimate = case.options.two_sided, case.options.tools.estimate
        if terms.about() is Population.THESE_TASKS:
            terms = replace(terms, cluster=None)
        run, metric = case.run, self.subject
        value = estimate(run.outcomes, metric, terms) if _supports(run, metric, terms) else None
        bounds = value
        if case.absent or bounds is None:
            bounds = estimate(case.absent.outcomes, metric, terms)
        value = value or bounds
        low, high, advice = bounds.low, bounds.high, None
        if low is None or high is None:
            verdict = GateVerdict.NOT_SETTLED
            advice = Advice("none", f"no interval is available for {metric}")
        else:
            verdict = verdict_of(self, low, high)
            if verdict is GateVerdict.NOT_SETTLED:
                sides = Sides((run.outcomes,))
                values, ends = bounds.value_ends, (low, high)
                advice = advise(self, case.absent, sides, values, ends, terms.about())
        return RuleResult(
            rule=self,
            verdict=verdict,
            value=value.value,
            # With short tasks left out, the value is about fewer tasks than the bounds.
            low=None if low is None else min(low, value.value),
            high=None if high is None else max(high, value.value),
            level=case.options.terms.level,
            about=str(value.population),
            tasks=value.tasks,
            attempts=value.attempts,
            advice=advice,
            notes=(*value.notes, *missing_notes(run, terms.missing)),
            value_range=value.value_range,
        )


def _supports(run: Run, metric: Metric, terms: Terms) -> bool:
    """Whether the attempts that were made are enough for the metric, apart from absent ones."""
    attempts = run.outcomes.counts(terms.missing.completion)[0]
    return terms.drop_short or int(attempts.min()) >= metric.k


@register_rule
@dataclass(frozen=True, slots=True)
class LiftRule(LimitRule):
    """A limit on a metric measured from the baseline, as in ``pass^4 >= base - 0.03``."""

    subject: Metric = field()  # without it, the base class's property would be its default
    sign: Sign
    limit: float
    relative: bool = True

    @classmethod
    def from_text(cls, parts: RuleText) -> LiftRule | None:
        metric = find_metric(parts.subject) if parts.relative else None
        if metric is None:
            return None
        parts.check_range(metric, metric.lowest, metric.highest)
        return cls(metric, parts.sign, parts.limit)

    def judge(self, case: Case) -> RuleResult:
        """Judge by the paired lift, never by two separate intervals."""
        terms, metric, base = case.options.two_sided, self.subject, case.baseline(self)
        population = terms.about(Population.THESE_TASKS)
        if population is Population.THESE_TASKS:
            terms = replace(terms, cluster=None)
        comparison = case.pair(case.run, base, metric, terms)
        with_absent = comparison
        if case.absent:
            with_absent = case.pair(case.completed_run, base, metric, terms)
        tail = 1 - case.options.terms.level
        ends = lift_bounds(with_absent.pairing, metric, terms, population, tail)
        differences = comparison.pairing.differences(metric, terms.missing)
        value, value_range = differences.lift, None
        if differences.open:
            value_range = mean_lift(differences.lowest), mean_lift(differences.highest)
        verdict = verdict_of(self, ends.low, ends.high)
        advice = None
        if verdict is GateVerdict.NOT_SETTLED:
            pairing = comparison.pairing
            sides = Sides((pairing.a, pairing.b), pairing.clusters)
            bounds = ends.low, ends.high
            values = value_range or (value, value)
            advice = advise(self, case.absent, sides, values, bounds, population)
        labels = comparison.pairing.clusters
        return RuleResult(
            rule=self,
            verdict=verdict,
            value=value,
            low=min(ends.low, value),
            high=max(ends.high, value),
            level=case.options.terms.level,
            about=str(population),
            tasks=len(comparison.pairing),
            attempts=comparison.attempts,
            advice=advice,
            notes=(
                *comparison.notes,
                *missing_notes(case.run, terms.missing, case.baseline(self)),
                *(() if labels is None else TaskClusters(terms.cluster or "", labels).warnings()),
            ),
            value_range=value_range,
        )


def lift_bounds(
    pairing: Pairing, metric: Metric, terms: Terms, population: Population, tail: float
) -> Interval:
    """The interval of the paired lift with ``tail`` beyond each end, on either population."""
    if population is Population.THESE_TASKS:
        return bound_lift(pairing, metric, terms, tail)
    differences = pairing.differences(metric, terms.missing)
    return hull(LiftSample.of(d, differences.clusters).interval(tail) for d in differences.fills)


# -- advice ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sides:
    """The run, or the baseline and the run, and the clusters of their tasks."""

    outcomes: tuple[Outcomes, ...]
    clusters: tuple[str, ...] | None = None


def advise(
    rule: LimitRule,
    absent: Absent,
    sides: Sides,
    values: tuple[float, float],
    bounds: tuple[float, float],
    population: Population = Population.NEW_TASKS,
) -> Advice | None:
    """The step that may settle the rule: finish the run, judge it, or a larger one.

    ``values`` are the least and the largest that missing attempts leave possible.
    """
    least, largest = values
    if absent:
        tasks_text = f" and {counted(absent.tasks, 'task')}" if absent.tasks else ""
        return Advice(
            "finish",
            f"finish the run first: {counted(absent.attempts, 'planned attempt')}{tasks_text} "
            f"{'is' if absent.attempts == 1 else 'are'} absent, and the bounds count them both "
            "ways",
        )
    low, high = bounds
    nearest = min(values, key=lambda value: abs(value - rule.limit))
    is_on_limit = abs(nearest - rule.limit) < _ON_THE_LIMIT
    if least < largest and (
        is_on_limit or rule.sign.holds(least, rule.limit) != rule.sign.holds(largest, rule.limit)
    ):
        total = sum(outcomes.total_missing for outcomes in sides.outcomes)
        return Advice(
            "verdicts",
            f"the {counted(total, 'missing attempt')} decide: it reads between {least:.3f} and "
            f"{largest:.3f} as they come out",
        )
    if is_on_limit:
        return Advice(
            "limit", "the value lies on the limit, so no affordable number of tasks will settle it"
        )

    def settles(values: FloatArray, reach: Reach) -> BoolArray:
        ends = zip((values - reach.below).tolist(), (values + reach.above).tolist(), strict=True)
        return np.array([verdict_of(rule, *end) is not GateVerdict.NOT_SETTLED for end in ends])

    reach, metric = Reach(nearest - low, high - nearest), rule.metric
    if metric is None:
        return None
    if population is Population.THESE_TASKS:
        prospect = foresee_attempts(sides.outcomes, metric, reach, settles)
    else:
        prospect = foresee_tasks(sides.outcomes, metric, reach, settles, sides.clusters)
    return Advice.of(prospect, both_runs=rule.relative)


# -- corrected by labels -------------------------------------------------------------------------

_ADVICE = Advice("none", "label more tasks or make more attempts; the plan says which helps more")


def judge_corrected(rule: MetricRule | LiftRule, case: Case) -> RuleResult:
    """The verdict by the corrected number; the judge's own stands in the notes."""
    if isinstance(rule, LiftRule):
        return _judge_lift(rule, case)
    terms, run, metric = case.options.two_sided, case.run, rule.subject
    if terms.about() is Population.THESE_TASKS:
        terms = replace(terms, cluster=None)
    kind = case.options.corrected or str(Correction.WHOLE_TASKS)
    outcomes = case.absent.outcomes if case.absent else run.outcomes
    found = correct(outcomes, require_labels(run), metric, terms, correction=kind)
    value = found.estimate
    assert value.low is not None
    assert value.high is not None
    verdict = verdict_of(rule, value.low, value.high)
    basis = f"by {counted(found.labels, 'label')}"
    if found.correction is Correction.WHOLE_TASKS:
        basis = f"by labels of {found.labeled_tasks:,} whole tasks"
    return RuleResult(
        rule=rule,
        verdict=verdict,
        value=value.value,
        low=value.low,
        high=value.high,
        level=case.options.terms.level,
        about=f"{value.population}, corrected {basis}",
        tasks=value.tasks,
        attempts=value.attempts,
        advice=_ADVICE if verdict is GateVerdict.NOT_SETTLED else None,
        value_range=value.value_range,
        notes=(
            f"by the judge alone {metric} is {found.judged.value_text()}",
            *value.notes,
            *missing_notes(run, terms.missing),
        ),
    )


def _judge_lift(rule: LiftRule, case: Case) -> RuleResult:
    terms, metric, base = case.options.two_sided, rule.subject, case.baseline(rule)
    terms = replace(terms, population=terms.about(Population.THESE_TASKS))
    if terms.about() is Population.THESE_TASKS:
        terms = replace(terms, cluster=None)
    pair = case.pair(case.run, base, metric, terms)  # refuses runs that are not comparable
    outcomes = case.absent.outcomes if case.absent else case.run.outcomes
    lift = correct_lift(
        LabeledSide.of(base),
        LabeledSide.of(case.run, outcomes),
        metric,
        terms,
        case.options.corrected or str(Correction.WHOLE_TASKS),
    )
    verdict = verdict_of(rule, lift.low, lift.high)
    return RuleResult(
        rule=rule,
        verdict=verdict,
        value=lift.lift,
        low=lift.low,
        high=lift.high,
        level=case.options.terms.level,
        about=f"{lift.population}, corrected by labels",
        tasks=lift.tasks,
        attempts=pair.attempts,
        advice=_ADVICE if verdict is GateVerdict.NOT_SETTLED else None,
        notes=(
            f"by the judge alone the lift of {metric} is {_signed(lift.judged)}",
            f"corrected by {lift.basis}",
            *lift.notes,
            *pair.notes,
            *missing_notes(case.run, terms.missing, case.baseline(rule)),
        ),
    )


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"
