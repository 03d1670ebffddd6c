"""gate(): from runs and rules to verdicts.

Attempts without a verdict count against a rule: under the policy ``bound`` the interval reaches
from "all of them failed" to "all of them passed", so what is shown holds at the unfavorable end.
Without a rule, a run is held against its baseline (:mod:`passhat.stats.gate.regression`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

from passhat._display import counted
from passhat.errors import Hint, InvalidValue
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.prospects import Reach
from passhat.stats.estimate import metric as parse_metric
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.cases import (
    MAX_MISSING,
    Case,
    GateOptions,
    Losses,
    Unsettled,
    copy_text,
    find_losses,
    pair_names,
)
from passhat.stats.gate.confirm import MOST_SUSPECTS, Suspects, choose_suspects
from passhat.stats.gate.each_task import EachTaskRule, refuting_chances
from passhat.stats.gate.gate_result import (
    Advice,
    DroppedTask,
    GateResult,
    GateVerdict,
    Rule,
    RuleResult,
    RunSide,
)
from passhat.stats.gate.metric_rules import LiftRule, MetricRule, judge_corrected, lift_bounds
from passhat.stats.gate.power import Ends, PowerCurve, RulePower, simulate_curve, simulate_rule
from passhat.stats.gate.regression import NoRegression
from passhat.stats.gate.rules import parse_rule
from passhat.stats.outcomes import (
    Completion,
    Outcomes,
    Run,
    no_answer_text,
    served_change,
    summarize_failures,
)
from passhat.stats.terms import OptionName, Population, TermOptions, Terms

_MOST_DROPPED = 10
"""Tasks that are listed with their causes."""

_TAKES: tuple[OptionName, ...] = ("level", "missing", "drop_short", "allow", "about", "cluster")


def gate(
    run: Run | Outcomes,
    rules: str | Rule | Iterable[str | Rule] = (),
    against: Run | Outcomes | None = None,
    terms: Terms | None = None,
    *,
    tasks: int | None = None,
    attempts: int | None = None,
    metric: str | Metric = "pass^1",
    margin: float | None = None,
    unsettled: Unsettled | None = None,
    max_missing: float = MAX_MISSING,
    details: bool = True,
    corrected: str | None = None,
    **options: Unpack[TermOptions],
) -> GateResult:
    """Judge a run by rules, or, without a rule, against its baseline.

    Options as in :func:`passhat.gate`. ``details`` simulates how often a drop would have been
    caught, and estimates each run by itself, which takes some tenths of a second. ``corrected``
    judges rules on a metric by numbers that the labels of the runs correct, by ``whole tasks`` or
    by ``errors``.

    A rule that cannot be evaluated is refused: k larger than the attempts made, a measure that was
    not recorded, ``base`` without a second run.
    """
    terms = Terms.from_options(options, terms, takes=_TAKES)
    how = GateOptions(
        terms,
        tasks,
        attempts,
        metric,
        margin,
        unsettled,
        max_missing=max_missing,
        details=details,
        corrected=corrected,
    )
    return judge(run, rules, against, how)


def judge(
    run: Run | Outcomes,
    rules: str | Rule | Iterable[str | Rule],
    against: Run | Outcomes | None,
    options: GateOptions,
) -> GateResult:
    """As :func:`gate`, with the options in one object."""
    parsed_rules = [
        parse_rule(rule) for rule in ([rules] if isinstance(rules, str | Rule) else rules)
    ]
    named_run = _as_run(run, "outcomes")
    base = None if against is None else _as_run(against, "base")
    _refuse_useless(parsed_rules, base, options)
    absent, losses, notes = find_losses(named_run, base, options)
    options = replace(options, terms=options.terms.for_tasks(len(absent.outcomes)))
    if any(rule.marks_incomplete for rule in parsed_rules):
        losses = replace(losses, limit=1.0)
    case = Case(named_run, base, absent, options)
    questions = parsed_rules or [NoRegression(parse_metric(options.metric), options.margin)]
    failures = summarize_failures(named_run)
    copy = copy_text(named_run, base, options.terms)
    results = tuple(_withhold(_judge_rule(rule, case), losses, copy) for rule in questions)
    is_detailed = options.details and not losses.is_beyond_limit
    base_name, name = (None, named_run.name) if base is None else pair_names(named_run, base)
    return GateResult(
        name=name,
        base=base_name,
        results=results,
        missing_policy=options.terms.missing,
        absent=losses.absent,
        notes=(*notes, *_reading_notes(named_run, base)),
        unsettled=options.unsettled or (None if parsed_rules else "warn"),
        losses=losses,
        confirmation=options.confirmation,
        failures=failures if failures.groups else None,
        power=_simulate(case) if is_detailed and not parsed_rules else None,
        rule_powers=_simulate_rules(case, results)
        if is_detailed and options.corrected is None
        else (),
        sides=() if parsed_rules or not options.details else _estimate_sides(case),
        no_answer=no_answer_text(named_run),
        dropped=() if parsed_rules else _find_dropped(case, results[0]),
    )


def _find_dropped(case: Case, result: RuleResult) -> tuple[DroppedTask, ...]:
    """Broken tasks first, then those that look worst, where something dropped.

    Counts and failures are those of the run, also where fresh attempts were made.
    """
    confirmation = case.options.confirmation
    broken = {change.task for change in result.broken}
    if confirmation is None and result.verdict is not GateVerdict.REFUTED:
        return ()
    terms, pairing = case.options.terms, _pair(case)
    drops = choose_suspects(pairing, terms.missing, terms.level, len(pairing)).tasks
    suspects = drops[:MOST_SUSPECTS]
    changes = [
        *(change for change in drops if change.task in broken),
        *(change for change in suspects if change.task not in broken),
    ]
    return tuple(
        DroppedTask(
            change,
            "broken" if change.task in broken else "suspected",
            case.options.tools.task_failures(case.run, change.task),
            "first attempts" if confirmation is not None else "",
        )
        for change in changes[:_MOST_DROPPED]
    )


def _withhold(result: RuleResult, losses: Losses, copy: str) -> RuleResult:
    """Take back what is shown of a run that is not whole, or that may be its own baseline."""
    if result.verdict is not GateVerdict.SHOWN:
        return result
    if losses.is_beyond_limit:
        which = "baseline" if losses.is_base_too_short else "run"
        advice = Advice("finish", f"complete the {which} first, then judge the run")
    elif copy and result.rule.relative:
        advice = Advice("baseline", copy)
    else:
        return result
    return replace(result, verdict=GateVerdict.NOT_SETTLED, advice=advice)


def _reading_notes(run: Run, base: Run | None) -> Iterator[str]:
    """How the readers of both sides counted, and a model that is not what it was."""
    for side in (run,) if base is None else (base, run):
        which = "" if base is None else "baseline: " if side is base else "run: "
        yield from (f"{which}{text}" for text in side.decisions)
        for why, count in ({} if side.tally is None else side.tally.skipped).items():
            yield f"{which}{counted(count, 'row')} skipped: {why}"
    if base is not None and (change := served_change(base, run)):
        yield change


def _judge_rule(rule: Rule, case: Case) -> RuleResult:
    """Judge a rule; where no attempt was judged or none gave an answer, without a number."""
    if case.options.corrected is not None and isinstance(rule, MetricRule | LiftRule):
        result = judge_corrected(rule, case)
    else:
        result = rule.judge(case)
    if rule.metric is None:
        return result
    runs = [case.run, case.baseline(rule)] if rule.relative else [case.run]
    unjudged = [run.name for run in runs if not run.outcomes.scored]
    if unjudged:
        reason = f"nothing judged, no attempt of {' and '.join(unjudged)} has a verdict"
        advice = Advice("verdicts", "judge or repeat the missing attempts")
    elif reason := no_answer_text(case.run):
        advice = Advice("none", "fix what the agent raises, then run it again")
    else:
        return result
    if not unjudged and not rule.relative:  # without an answer neither limit is shown or refuted
        result = replace(result, verdict=GateVerdict.NOT_SETTLED)
    is_open = result.verdict is GateVerdict.NOT_SETTLED
    return replace(result, unmeasured=reason, advice=advice if is_open else result.advice)


def find_suspects(run: Run, against: Run, options: GateOptions) -> Suspects:
    """The tasks that the gate without a rule finds most suspicious."""
    absent, _, _ = find_losses(run, against, options)
    pairing = _pair(Case(run, against, absent, options))
    return choose_suspects(pairing, options.terms.missing, options.terms.level)


def _pair(case: Case) -> Pairing:
    terms, metric = replace(case.options.terms, cluster=None), parse_metric(case.options.metric)
    return case.pair(case.completed_run, case.baseline("the gate"), metric, terms).pairing


def _estimate_sides(case: Case) -> tuple[RunSide, ...]:
    """Both runs on the tasks of both, with intervals about these tasks."""
    pairing, metric = _pair(case), parse_metric(case.options.metric)
    terms = replace(case.options.terms, population=Population.THESE_TASKS, cluster=None)
    sides = []
    runs = (case.baseline("the gate"), case.run)
    for run, outcomes, name in zip(runs, (pairing.a, pairing.b), pairing.names, strict=True):
        if outcomes.total_missing == outcomes.attempts:
            continue  # nothing judged is no number
        estimate = case.options.tools.estimate(outcomes, metric, terms)
        counts = outcomes.attempts, outcomes.total_missing
        sums = (run.measured(name) for name in ("cost", "seconds"))
        totals = (None if each is None else each.total for each in sums)
        sides.append(RunSide(name, estimate.value, estimate.low, estimate.high, *counts, *totals))
    return tuple(sides)


def _simulate(case: Case) -> PowerCurve:
    pairing = _pair(case)
    attempts, _ = pairing.b.counts(Completion.AS_FAILED)
    metric = parse_metric(case.options.metric)
    terms, confirmation = case.options.terms, case.options.confirmation
    return simulate_curve(
        *(pairing.a, attempts, metric, terms.level, confirmation),
        missing=pairing.b.missing,
        policy=terms.missing,
    )


def _simulate_rules(case: Case, results: Sequence[RuleResult]) -> tuple[RulePower, ...]:
    """The power of rules that bound a metric: alone, against the baseline, or at each task."""
    powers: list[RulePower] = []
    level, anytime = case.options.terms.level, case.options.anytime
    for result in results:
        rule, population = result.rule, result.rule.population(case.options.terms)
        if isinstance(rule, EachTaskRule):
            powers += refuting_chances(rule, case.run.outcomes, level, anytime=anytime)
            continue
        if not isinstance(rule, MetricRule | LiftRule) or population is None or result.unmeasured:
            continue
        if result.low is None or result.high is None:
            continue
        run = case.completed_run  # as the bounds count it: absent attempts are missing
        sides: tuple[Outcomes, ...] = (run.outcomes,)
        if rule.relative:
            terms = replace(case.options.terms, cluster=None)
            pairing = case.pair(run, case.baseline(rule), rule.subject, terms).pairing
            sides = (pairing.a, pairing.b)
        reach = Reach(result.value - result.low, result.high - result.value)
        power = simulate_rule(
            str(rule),
            sides,
            rule.subject,
            rule.limit,
            reach,
            population,
            partial(_bound, rule, case.options, population),
            wants_more=rule.sign.wants_more,
        )
        powers += [] if power is None else [power]
    return tuple(powers)


def _bound(
    rule: MetricRule | LiftRule,
    options: GateOptions,
    population: Population,
    sides: Sequence[Outcomes],
) -> Ends:
    """The bounds by which a rule judges these outcomes of the run, or of baseline and run."""
    terms = replace(options.two_sided, cluster=None)
    if len(sides) == 1:
        estimate = options.tools.estimate(sides[0], rule.subject, terms)
        return _or(estimate.low, -math.inf), _or(estimate.high, math.inf)
    pairing = pair(sides[0], sides[1]).supporting(
        [rule.subject], terms.missing, drop_short=terms.drop_short
    )
    ends = lift_bounds(pairing, rule.subject, terms, population, 1 - options.terms.level)
    return ends.low, ends.high


def _or(end: float | None, otherwise: float) -> float:
    return otherwise if end is None else end


def _as_run(source: Run | Outcomes, name: str) -> Run:
    return source if isinstance(source, Run) else Run(name, name, source)


def _refuse_useless(rules: list[Rule], base: Run | None, options: GateOptions) -> None:
    """Refuse options that would change nothing, and a gate without a question."""
    terms = options.terms
    if not rules and base is None:
        raise InvalidValue(
            "a gate needs a rule, or a baseline to compare with.",
            hint=Hint("For example 'pass^4 >= 0.6', or {against}.", against="BASELINE"),
        )
    if options.corrected is not None and not any(
        isinstance(rule, MetricRule | LiftRule) for rule in rules
    ):
        raise InvalidValue(
            "labels correct a metric of the whole suite, and no rule here is about one.",
            hint="State a rule such as 'pass^4 >= 0.6' or 'pass^4 >= base - 0.05'.",
        )
    if options.corrected is not None and any(isinstance(rule, EachTaskRule) for rule in rules):
        raise InvalidValue(
            "a rule on each task cannot be corrected by labels.",
            hint="Judge it in a gate of its own, without a correction.",
        )
    if rules and options.margin is not None:
        raise InvalidValue(
            "a margin belongs to the gate without a rule.",
            hint="Put it into the rule: 'pass^1 >= base - 0.05'.",
        )
    if not rules and terms.population is Population.NEW_TASKS:
        raise InvalidValue(
            "the gate without a rule is about these tasks.",
            hint=Hint(
                "About new tasks, state a rule: 'pass^1 >= base - 0.05' and {about}.",
                about="new tasks",
            ),
        )
    populations = [rule.population(terms) for rule in rules]
    if rules and not any(populations) and terms.population is not None:
        raise InvalidValue(
            "about changes nothing here: what is counted is about this run as it was.",
            hint="Leave it out, or add a rule on a metric.",
        )
    if terms.cluster is not None and Population.NEW_TASKS not in populations:
        raise InvalidValue(
            "clusters matter for new tasks only, and nothing here is about new tasks.",
            hint=Hint("Leave out {cluster}, or ask {about}.", cluster=None, about="new tasks"),
        )
