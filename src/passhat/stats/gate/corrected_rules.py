"""Rules on a metric, judged by numbers that labels correct for the judge's errors."""

from __future__ import annotations

from dataclasses import replace

from passhat._display import counted, number
from passhat.stats.gate.cases import Case, missing_notes
from passhat.stats.gate.gate_result import Advice, GateVerdict, RuleResult
from passhat.stats.gate.metric_rules import LiftRule, MetricRule
from passhat.stats.gate.rules import verdict_of
from passhat.stats.labels.correction import Correction, correct
from passhat.stats.labels.lifts import LabeledSide, correct_lift, require_labels
from passhat.stats.terms import Population

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
