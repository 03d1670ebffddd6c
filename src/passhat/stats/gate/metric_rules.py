"""Rules on a metric: a number of its own (new tasks), or against a baseline (these tasks).

A rule is judged at a one-sided level: shown when the lower bound meets the limit, refuted when the
upper bound does not. A one-sided 95% bound is the end of the two-sided 90% interval. An absolute
rule is about new tasks, a rule against a baseline about these tasks, unless another population is
requested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from passhat._display import counted
from passhat.errors import PasshatError
from passhat.stats.clusters import TaskClusters
from passhat.stats.compare.lift import Interval, LiftSample, hull
from passhat.stats.compare.pairing import Pairing
from passhat.stats.compare.these_tasks import bound_lift
from passhat.stats.estimate.metrics import CountMetric, Metric
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
from passhat.stats.outcomes import Completion, Outcomes, Run
from passhat.stats.terms import Population, Terms

__all__ = ["LiftRule", "MetricRule", "advise"]

_TOO_MANY = 100_000
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
                ends = (low, high)
                advice = advise(
                    self, case.absent, value.value, bounds.value_if_passed, ends, terms.about()
                )
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
            notes=(*value.notes, *missing_notes(run.outcomes, terms.missing)),
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
        value = comparison.pairing.differences(metric, terms.missing).lift
        verdict = verdict_of(self, ends.low, ends.high)
        advice = None
        if verdict is GateVerdict.NOT_SETTLED:
            advice = advise(self, case.absent, value, None, (ends.low, ends.high), population)
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
                *missing_notes(case.run.outcomes, terms.missing),
                *(() if labels is None else TaskClusters(terms.cluster or "", labels).warnings()),
            ),
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


def advise(
    rule: LimitRule,
    absent: Absent,
    value: float,
    value_if_passed: float | None,
    bounds: tuple[float, float],
    population: Population = Population.NEW_TASKS,
) -> Advice:
    """The cheapest step that should settle the rule, if the value stays the same.

    A run that was not finished is finished first. The bound comes closer to the value with the
    square root of the number of tasks; about these tasks, of attempts.
    """
    if absent:
        tasks_text = f" and {counted(absent.tasks, 'task')}" if absent.tasks else ""
        return Advice(
            "finish",
            f"finish the run first: {counted(absent.attempts, 'planned attempt')}{tasks_text} "
            f"{'is' if absent.attempts == 1 else 'are'} absent, and the bounds count them both "
            "ways",
        )
    outcomes = absent.outcomes
    low, high = bounds
    best = value if value_if_passed is None else value_if_passed
    if rule.sign.holds(value, rule.limit) != rule.sign.holds(best, rule.limit):
        missing = counted(outcomes.total_missing, "missing attempt")
        return Advice(
            "verdicts",
            f"the {missing} decide: it reads {value:.3f} if they failed, {best:.3f} if they passed",
        )
    nearest = value if abs(value - rule.limit) < abs(best - rule.limit) else best
    gap = abs(nearest - rule.limit)
    if gap < _ON_THE_LIMIT:
        return Advice(
            "limit", "the value lies on the limit, so no affordable number of tasks will settle it"
        )
    reach = nearest - low if nearest > rule.limit else high - nearest
    growth = max(reach / gap, 1.0) ** 2
    if population is Population.THESE_TASKS:
        n = int(outcomes.counts(Completion.AS_FAILED)[0].min())
        attempts = max(math.ceil(n * growth), n + 1)
        runs = " in both runs" if rule.relative else ""
        return Advice(
            "attempts",
            f"about {attempts:,} attempts per task{runs} should settle it ({n} now)",
            attempts=attempts,
        )
    tasks = len(outcomes)
    total = math.ceil(tasks * growth)
    if total > _TOO_MANY:
        return Advice(
            "limit", "the value lies so near to the limit that it would take over 100,000 tasks"
        )
    extra = max(total - tasks, 1)
    return Advice(
        "tasks",
        f"about {counted(extra, 'more task')} x {outcomes.attempts_text()} should settle it; "
        f"{_attempts_text(rule, outcomes, (gap / reach) ** 2)}",
        tasks=extra,
    )


def _attempts_text(rule: LimitRule, outcomes: Outcomes, share: float) -> str:
    """Whether more attempts at the same tasks would do as well.

    ``share`` is the part of today's variance that may be left.
    """
    from passhat.stats.plan import Difficulty

    none = "more attempts at the same tasks would not"
    metric = rule.subject
    n = int(outcomes.counts(Completion.AS_FAILED)[0].min())
    if not isinstance(metric, CountMetric) or n < 2 or rule.relative:
        return "more attempts at the same tasks help less than more tasks"
    try:
        difficulty = Difficulty.from_outcomes(outcomes)
    except PasshatError:
        return none
    today = difficulty.components(metric, n)
    for attempts in (n + 1, *(math.ceil(n * step) for step in (1.5, 2, 3, 4, 8))):
        if difficulty.components(metric, attempts).total <= share * today.total:
            return f"so should {attempts} attempts at each of the same tasks"
    return none
