"""Every kind of rule and how it is judged: bounds, verdict, and advice.

A rule on a metric is judged at a one-sided level: shown when the lower bound meets the limit,
refuted when the upper bound does not. A one-sided 95% bound is the end of the two-sided 90%
interval. An absolute rule is about new tasks, a rule against a baseline about these tasks, unless
another population is requested.

Cost, seconds, steps, tokens and missing attempts are counted, not estimated: the verdict is about
this run as it was, and is never open. A measure that was not recorded is not zero, and a rule on it
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from passhat._display import counted, figure
from passhat.errors import InvalidValue, PasshatError
from passhat.stats.clusters import TaskClusters
from passhat.stats.compare.guard import agree
from passhat.stats.compare.lift import Interval, LiftSample, hull
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.these_tasks import paired_lift
from passhat.stats.estimate import Estimate
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.gate.gate_result import Advice, GateVerdict, RuleResult, verdict_of
from passhat.stats.gate.rules import Measure, Rule
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run
from passhat.stats.terms import Population, Terms

__all__ = [
    "Absent",
    "Baseline",
    "lift_result",
    "measure_result",
    "metric_result",
    "missing_notes",
    "missing_result",
    "paired_with_base",
]

Estimator = Callable[..., Estimate]

_TOO_MANY = 100_000
_ON_THE_LIMIT = 0.002
"""A value this near to the limit would take more tasks than any suite has."""
_ROUNDING = 1e-9
"""Three attempts of 0.1 add up to 0.30000000000000004; that must not break a limit of 0.1."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Planned attempts that are not in the run, and the outcomes with them counted as missing."""

    outcomes: Outcomes
    attempts: int = 0
    tasks: int = 0

    def __bool__(self) -> bool:
        return self.attempts > 0


def metric_result(
    rule: Rule, metric: Metric, run: Run, absent: Absent, terms: Terms, estimate: Estimator
) -> RuleResult:
    """An absolute rule on a metric.

    The value is that of the attempts that were made, as a report gives it. The bounds count absent
    attempts as missing: an attempt that was not run is as unknown as one without a verdict.
    """
    made = estimate(run.outcomes, metric, terms) if _supports(run, metric, terms) else None
    bounds = estimate(absent.outcomes, metric, terms) if absent or made is None else made
    value = bounds if made is None else made
    low, high, advice = bounds.low, bounds.high, None
    if low is None or high is None:
        verdict = GateVerdict.NOT_SETTLED
        advice = Advice("none", f"no interval is available for {metric}")
    else:
        verdict = verdict_of(rule, low, high)
        if verdict is GateVerdict.NOT_SETTLED:
            advice = advise(
                rule, absent, value.value, bounds.value_if_passed, (low, high), terms.about()
            )
    return RuleResult(
        rule,
        verdict,
        value.value,
        # With short tasks left out, the value is about fewer tasks than the bounds.
        None if low is None else min(low, value.value),
        None if high is None else max(high, value.value),
        (1 + terms.level) / 2,
        value.population,
        value.tasks,
        value.attempts,
        advice,
        (
            *value.notes,
            *missing_notes(run.outcomes, terms.missing),
        ),
    )


def _supports(run: Run, metric: Metric, terms: Terms) -> bool:
    """Whether the attempts that were made are enough for the metric, apart from absent ones."""
    made = run.outcomes.counts(terms.missing.completion)[0]
    return terms.drop_short or int(made.min()) >= metric.k


def missing_notes(outcomes: Outcomes, policy: MissingPolicy) -> tuple[str, ...]:
    """How attempts without a verdict are counted."""
    total = outcomes.total_missing
    if total == 0:
        return ()
    ways = {
        MissingPolicy.BOUND: "the bounds reach from all of them failed to all of them passed",
        MissingPolicy.FAIL: "they count as failed",
        MissingPolicy.EXCLUDE: "they are left out",
    }
    return (f"{counted(total, 'attempt')} missing: {ways[policy]}",)


# -- against a baseline ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Baseline:
    """A run paired with its baseline, and notes on the pairing."""

    pairing: Pairing
    notes: tuple[str, ...]

    @property
    def attempts(self) -> int:
        return self.pairing.a.attempts + self.pairing.b.attempts


def paired_with_base(run: Run, base: Run, metric: Metric, terms: Terms) -> Baseline:
    """Pair a run with its baseline; protocols that differ are refused unless that is allowed."""
    whole = pair(base.outcomes, run.outcomes, (base.name, run.name))
    agreement = agree(base.protocol, run.protocol, whole, [metric], allow=terms.allow)
    pairing = whole.supporting([metric], terms.missing, drop_short=terms.drop_short)
    notes = []
    if agreement.differences:
        listed = "; ".join(map(str, agreement.differences))
        notes.append(f"compared although they differ: {listed}")
    if agreement.attempts_text is not None:
        notes.append(agreement.attempts_text)
    if whole.only_a or whole.only_b:
        notes.append(
            f"{counted(len(whole), 'task')} in both runs; left out: {len(whole.only_b):,} only in "
            f"the run, {len(whole.only_a):,} only in base"
        )
    return Baseline(pairing.clustered_by(terms.cluster), tuple(notes))


def lift_result(
    rule: Rule, metric: Metric, run: Run, base: Run, absent: Absent, terms: Terms
) -> RuleResult:
    """A rule against base: decided by the paired lift, never by two separate intervals.

    The level of ``terms`` is that of the two-sided interval whose ends are the one-sided bounds.
    """
    population = terms.about(Population.THESE_TASKS)
    if population is Population.THESE_TASKS:
        terms = replace(terms, cluster=None)
    paired = paired_with_base(run, base, metric, terms)
    filled = paired
    if absent:
        filled = paired_with_base(replace(run, outcomes=absent.outcomes), base, metric, terms)
    tail = (1 - terms.level) / 2
    ends = _lift_bounds(filled.pairing, metric, terms, population, tail)
    value = paired.pairing.differences(metric, terms.missing).lift
    verdict = verdict_of(rule, ends.low, ends.high)
    advice = None
    if verdict is GateVerdict.NOT_SETTLED:
        advice = advise(rule, absent, value, None, (ends.low, ends.high), population)
    labels = paired.pairing.clusters
    return RuleResult(
        rule,
        verdict,
        value,
        min(ends.low, value),
        max(ends.high, value),
        (1 + terms.level) / 2,
        str(population),
        len(paired.pairing),
        paired.attempts,
        advice,
        (
            *paired.notes,
            *missing_notes(run.outcomes, terms.missing),
            *(() if labels is None else TaskClusters(terms.cluster or "", labels).warnings()),
        ),
    )


def _lift_bounds(
    pairing: Pairing, metric: Metric, terms: Terms, population: Population, tail: float
) -> Interval:
    if population is Population.THESE_TASKS:
        return paired_lift(pairing, metric, terms, tail)
    differences = pairing.differences(metric, terms.missing)
    return hull(LiftSample.of(d, differences.clusters).interval(tail) for d in differences.fills)


# -- counted values ----------------------------------------------------------------------------


def missing_result(rule: Rule, outcomes: Outcomes) -> RuleResult:
    share = outcomes.total_missing / outcomes.attempts
    return _counted_result(rule, share, len(outcomes), outcomes.attempts)


def _counted_result(
    rule: Rule, value: float, tasks: int, attempts: int, notes: Sequence[str] = ()
) -> RuleResult:
    """A verdict on a counted value: it holds or it does not."""
    return RuleResult(
        rule,
        verdict_of(rule, value, value),
        value,
        None,
        None,
        None,
        "this run as it was",
        tasks,
        attempts,
        None,
        tuple(notes),
    )


def measure_result(rule: Rule, measure: Measure, run: Run, base: Run | None) -> RuleResult:
    value, notes = _measured(rule, measure, run)
    size = abs(value)
    if rule.relative:
        assert base is not None
        other, more = _measured(rule, measure, base)
        notes = (*notes, *(f"base: {note}" for note in more), f"base has {figure(other, 4)}")
        size = max(size, abs(other))
        value -= other
    if abs(value - rule.limit) <= _ROUNDING * size:
        value = rule.limit
    return _counted_result(rule, value, len(run.outcomes), run.outcomes.attempts, notes)


def _measured(rule: Rule, measure: Measure, run: Run) -> tuple[float, tuple[str, ...]]:
    """Over the attempts that recorded it: per attempt, or all of it per attempt that passed."""
    measured = run.measured(measure.name)
    if measured is None:
        raise InvalidValue(
            f"'{rule}' cannot be evaluated for {run.name}: {measure.name} was not recorded, "
            "and not recorded is not zero.",
            hint=f"Record it in a column '{measure.name}', or leave the rule out.",
        )
    notes: tuple[str, ...] = ()
    made = run.outcomes.attempts
    if measured.recorded < made:
        notes = (
            f"{measure.name} is recorded on {measured.recorded:,} of {made:,} attempts, "
            "and only those are counted",
        )
    if not measure.per_solved:
        return measured.total / measured.recorded, notes
    if measured.passed == 0:
        raise InvalidValue(
            f"'{rule}' cannot be evaluated for {run.name}: no attempt passed, "
            "so nothing was solved.",
            hint=f"Ask for {measure.name} per attempt: '{measure.name} {rule.sign} ...'.",
        )
    return measured.total / measured.passed, (
        *notes,
        f"all of {counted(measured.recorded, 'attempt')} together, per attempt that passed "
        f"({measured.passed:,})",
    )


# -- advice ------------------------------------------------------------------------------------


def advise(
    rule: Rule,
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
        lost = f" and {counted(absent.tasks, 'task')}" if absent.tasks else ""
        return Advice(
            "finish",
            f"finish the run first: {counted(absent.attempts, 'planned attempt')}{lost} "
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
    more = max(reach / gap, 1.0) ** 2
    if population is Population.THESE_TASKS:
        n = int(outcomes.counts(Completion.AS_FAILED)[0].min())
        needed = max(math.ceil(n * more), n + 1)
        runs = " in both runs" if rule.relative else ""
        return Advice(
            "attempts",
            f"about {needed:,} attempts per task{runs} should settle it ({n} now)",
            attempts=needed,
        )
    tasks = len(outcomes)
    needed = math.ceil(tasks * more)
    if needed > _TOO_MANY:
        return Advice(
            "limit", "the value lies so near to the limit that it would take over 100,000 tasks"
        )
    extra = max(needed - tasks, 1)
    return Advice(
        "tasks",
        f"about {counted(extra, 'more task')} x {outcomes.attempts_text()} should settle it; "
        f"{_attempts_text(rule, outcomes, (gap / reach) ** 2)}",
        tasks=extra,
    )


def _attempts_text(rule: Rule, outcomes: Outcomes, needed: float) -> str:
    """Whether more attempts at the same tasks would do as well.

    ``needed`` is the share of today's variance that may be left.
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
        if difficulty.components(metric, attempts).total <= needed * today.total:
            return f"so should {attempts} attempts at each of the same tasks"
    return none
