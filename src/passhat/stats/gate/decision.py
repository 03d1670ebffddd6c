"""gate(): from runs and rules to verdicts.

Attempts without a verdict count against a rule: under the policy ``bound`` the interval reaches
from "all of them failed" to "all of them passed", so what is shown holds at the unfavorable end.
Without a rule, a run is held against its baseline (:mod:`passhat.stats.gate.decision`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np

from passhat._display import counted, some
from passhat.errors import InvalidValue
from passhat.stats.compare.claims import points
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.task_changes import TaskChange, changed_tasks
from passhat.stats.compare.these_tasks import paired_lift
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.estimate import metric as parse_metric
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.gate_result import Advice, GateResult, GateVerdict, RuleResult, Unsettled
from passhat.stats.gate.rule_results import (
    Absent,
    lift_result,
    measure_result,
    metric_result,
    missing_notes,
    missing_result,
    paired_with_base,
)
from passhat.stats.gate.rules import Measure, Missing, Rule, parse_rule
from passhat.stats.outcomes import Completion, Outcomes, Run
from passhat.stats.terms import OptionName, Population, TermOptions, Terms

__all__ = ["GateOptions", "NoRegression", "Tools", "gate", "judge", "regression_result"]


_COARSEST = 0.5
"""Data that resolve no drop smaller than this show nothing that is worth being called a pass."""

_RESOLVED = 1 + 1.2816 / 1.96
"""A drop of this many half-widths of the interval is called a regression with a chance of 90%."""


@dataclass(frozen=True, slots=True)
class NoRegression:
    """The question of the gate without a rule.

    ``margin`` is a share (0.05 for 5 points); ``None`` takes what the data can resolve.
    """

    subject: Metric
    margin: float | None = None
    relative: bool = True

    def __post_init__(self) -> None:
        if self.margin is not None and not 0 < self.margin < 1:
            raise InvalidValue(
                f"the margin lies between 0 and 100 points, not {100 * self.margin:g}.",
                hint="For example --margin 5: a drop of up to 5 points is accepted.",
            )

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" beyond {100 * self.margin:g} points"
        return f"no regression of {self.subject}{margin}"


def regression_result(
    rule: NoRegression, run: Run, base: Run, absent: Absent, terms: Terms
) -> RuleResult:
    """Judge a run against its baseline on the tasks of both, at a one-sided level."""
    metric = rule.subject
    alpha = 1 - terms.level
    terms = replace(terms, alternative="two-sided", cluster=None)
    filled = replace(run, outcomes=absent.outcomes) if absent else run
    paired = paired_with_base(filled, base, metric, terms)
    # Mean and tasks share the error of a false alarm. "No regression" is another claim: only one
    # of the two can be false, so its bound has the whole error to itself.
    mean_tail = MEAN_SHARE * alpha
    below = replace(terms, alternative="less")
    high = paired_lift(paired.pairing, metric, below, mean_tail).high
    low = paired_lift(paired.pairing, metric, replace(terms, alternative="greater"), alpha).low
    plain = paired if not absent else paired_with_base(run, base, metric, terms)
    value = plain.pairing.differences(metric, terms.missing).lift
    broken = changed_tasks(paired.pairing, terms.missing, (1 - MEAN_SHARE) * alpha, "less")
    margin = rule.margin
    if margin is None:
        margin = _resolution(high - value, value - low)
    too_coarse = rule.margin is None and margin > _COARSEST
    reach = max(high - value, value - low) if too_coarse else value - low
    if high < 0 or broken:
        verdict = GateVerdict.REFUTED
    elif too_coarse or low < -margin:
        verdict = GateVerdict.NOT_SETTLED
    else:
        verdict = GateVerdict.SHOWN
    return RuleResult(
        rule,
        verdict,
        value,
        min(low, value),
        max(high, value),
        terms.level,
        str(Population.THESE_TASKS),
        len(paired.pairing),
        paired.attempts,
        _advice(verdict, absent, margin, reach, value, too_coarse=too_coarse)
        if not broken
        else None,
        (*_notes(rule, margin, broken), *paired.notes, *missing_notes(run.outcomes, terms.missing)),
        margin=margin,
        broken=broken,
    )


def _resolution(above: float, below: float) -> float:
    """The drop that these data would have shown with a chance of about 90%."""
    return min(1.0, max(_RESOLVED * max(above, below), 0.001))


def _notes(rule: NoRegression, margin: float, broken: tuple[TaskChange, ...]) -> tuple[str, ...]:
    notes = []
    if broken:
        listed = some([str(change) for change in broken])
        notes.append(f"{counted(len(broken), 'task')} broke: {listed}")
    if rule.margin is None:
        notes.append(
            f"margin {points(margin, signed=False)} points: the smallest drop that these data "
            "resolve (--margin states another)"
        )
    return tuple(notes)


def _advice(
    verdict: GateVerdict,
    absent: Absent,
    margin: float,
    reach: float,
    value: float,
    *,
    too_coarse: bool,
) -> Advice | None:
    if verdict is not GateVerdict.NOT_SETTLED:
        return None
    if absent:
        return Advice(
            "finish",
            f"finish the run first: {counted(absent.attempts, 'planned attempt')} "
            f"{'is' if absent.attempts == 1 else 'are'} absent",
        )
    room = value + margin
    n = int(absent.outcomes.counts(Completion.AS_FAILED)[0].min())
    if too_coarse:
        needed = max(math.ceil(n * (_RESOLVED * reach / _COARSEST) ** 2), n + 1)
        return Advice(
            "attempts",
            f"these data resolve only drops of {points(margin, signed=False)} points or more: "
            f"about {needed:,} attempts per task in both runs ({n} now), or more tasks, would "
            f"resolve {points(_COARSEST, signed=False)}",
            attempts=needed,
        )
    if room <= 0.002:
        return Advice(
            "limit",
            f"the lift of {points(value)} points is at the margin itself: look at the tasks that "
            "changed, or state a wider margin",
        )
    needed = max(math.ceil(n * (reach / room) ** 2), n + 1)
    return Advice(
        "attempts",
        f"about {needed:,} attempts per task in both runs should settle it ({n} now)",
        attempts=needed,
    )


Estimator = Callable[..., Estimate]

_TAKES: tuple[OptionName, ...] = ("level", "missing", "drop_short", "allow", "about", "cluster")


@dataclass(frozen=True, slots=True)
class Tools:
    """The functions that compute bounds; tests replace them."""

    estimate: Estimator = estimate


@dataclass(frozen=True, slots=True)
class GateOptions:
    """How a gate judges.

    The level of ``terms`` is one-sided. ``tasks`` and ``attempts`` (per task) are what was planned;
    fewer than that are reported as absent. ``metric`` and ``margin`` belong to the gate without a
    rule, ``unsettled`` is how a gate ends that is not settled.
    """

    terms: Terms = field(default_factory=Terms)
    tasks: int | None = None
    attempts: int | None = None
    metric: str | Metric = "pass^1"
    margin: float | None = None
    unsettled: Unsettled | None = None
    tools: Tools = field(default_factory=Tools)

    def __post_init__(self) -> None:
        if not 0.5 < self.terms.level < 1:
            raise InvalidValue(
                f"a gate's level is one-sided and lies between 0.5 and 1, not {self.terms.level:g}."
            )

    @property
    def two_sided(self) -> Terms:
        """Terms of the two-sided interval that has the one-sided bounds as its ends."""
        return replace(self.terms, level=2 * self.terms.level - 1, equal_tails=True)


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
    **options: Unpack[TermOptions],
) -> GateResult:
    """Judge a run by rules, or, without a rule, against its baseline.

    Parameters
    ----------
    run : Run or Outcomes
        The run to judge. Rules on cost, seconds, steps and tokens need a run.
    rules : str or several
        Such as ``pass^4 >= 0.6``, ``pass^4 >= base - 0.03``, ``cost <= 0.5``, ``missing <= 2%``.
    against : Run or Outcomes, optional
        The run that ``base`` stands for. Without a rule the gate asks whether ``run`` is worse
        than it on the tasks of both.
    terms : Terms, optional
        All options in one object; keywords change single ones.
    level : float
        One-sided confidence of a rule on a metric.
    missing : {"bound", "fail", "exclude"}
        How attempts without a verdict are counted.
    tasks, attempts : int, optional
        Tasks, and attempts per task, that were planned.
    drop_short : bool
        Leave out tasks with fewer than k attempts rather than refuse.
    about : {"new tasks", "these tasks"}, optional
        The tasks that verdicts are about; by default new tasks, and these tasks against a baseline.
    cluster : str, optional
        A label of the tasks; those that share its value are not independent of each other.
    metric, margin : optional
        Of the gate without a rule: the compared metric, and the accepted drop, as a share; by
        default the smallest drop that the data resolve.
    unsettled : {"pass", "warn", "fail"}, optional
        How a gate ends that is not settled: 0, 0 with a warning, or 3. Rules end with 3 and the
        gate without a rule warns unless it is given.
    allow : bool
        Compare with ``against`` although the protocols differ; the differences are listed.

    Raises
    ------
    PasshatError
        When a rule cannot be evaluated: k larger than the attempts made, a measure that was not
        recorded, ``base`` without a second run.
    """
    terms = Terms.from_options(options, terms, takes=_TAKES)
    return judge(
        run, rules, against, GateOptions(terms, tasks, attempts, metric, margin, unsettled)
    )


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
    judged = _as_run(run, "outcomes")
    base = None if against is None else _as_run(against, "base")
    _refuse_useless(parsed_rules, base, options)
    absent, notes = _with_absent(judged, options)
    results: tuple[RuleResult, ...]
    if parsed_rules:
        results = tuple(_result(rule, judged, absent, base, options) for rule in parsed_rules)
    else:
        assert base is not None
        rule = NoRegression(parse_metric(options.metric), options.margin)
        results = (regression_result(rule, judged, base, absent, options.terms),)
    same = base is not None and base.name == judged.name
    return GateResult(
        name=f"{judged.name} (new)" if same else judged.name,
        base=None if base is None else f"{base.name} (baseline)" if same else base.name,
        results=results,
        missing_policy=options.terms.missing,
        absent=absent.attempts,
        notes=notes,
        unsettled=options.unsettled or (None if parsed_rules else "warn"),
    )


def _as_run(source: Run | Outcomes, name: str) -> Run:
    return source if isinstance(source, Run) else Run(name, name, source)


def _refuse_useless(rules: list[Rule], base: Run | None, options: GateOptions) -> None:
    """Refuse options that would change nothing, and a gate without a question."""
    if not rules and base is None:
        raise InvalidValue(
            "a gate needs a rule, or a baseline to compare with.",
            hint="For example 'pass^4 >= 0.6', or --against BASELINE.",
        )
    if rules and options.margin is not None:
        raise InvalidValue(
            "a margin belongs to the gate without a rule.",
            hint="Put it into the rule: 'pass^1 >= base - 0.05'.",
        )
    population = options.terms.population
    if not rules and population is Population.NEW_TASKS:
        raise InvalidValue(
            "the gate without a rule is about these tasks.",
            hint="About new tasks, state a rule: 'pass^1 >= base - 0.05' --about new-tasks.",
        )
    metrics = [rule for rule in rules if isinstance(rule.subject, Metric)]
    if rules and not metrics and population is not None:
        raise InvalidValue(
            "about changes nothing here: what is counted is about this run as it was.",
            hint="Leave it out, or add a rule on a metric.",
        )
    new = [
        rule
        for rule in metrics
        if options.terms.about(Population.THESE_TASKS if rule.relative else Population.NEW_TASKS)
        is Population.NEW_TASKS
    ]
    if options.terms.cluster is not None and not new:
        raise InvalidValue(
            "clusters matter for new tasks only, and nothing here is about new tasks.",
            hint="Leave out --cluster, or ask --about new-tasks.",
        )


def _with_absent(run: Run, options: GateOptions) -> tuple[Absent, tuple[str, ...]]:
    """Count planned attempts that are absent, and fill them in as missing.

    An attempt that was planned and left no trace is as unknown as one without a verdict. Whole
    tasks that are absent are counted; nothing can be filled in for them.
    """
    outcomes = run.outcomes
    planned = options.attempts or run.protocol.attempts
    made, _ = outcomes.counts(Completion.AS_FAILED)
    lacking = np.zeros(len(outcomes), np.int64)
    notes: tuple[str, ...] = ()
    if planned is not None:
        lacking = np.maximum(planned - made, 0)
    elif run.planned is not None:
        lacking = np.maximum(run.planned - made, 0)
    absent = int(lacking.sum())
    if absent:
        short = np.flatnonzero(lacking)
        named = some([outcomes.tasks[i] for i in short[:6].tolist()], 5)
        notes += (
            f"{counted(absent, 'attempt')} of the {planned or 'attempts'} planned per task "
            f"{'is' if absent == 1 else 'are'} absent on {counted(len(short), 'task')} ({named}) "
            f"and {'counts' if absent == 1 else 'count'} as missing",
        )
        outcomes = replace(
            outcomes,
            m=outcomes.missing + lacking,
            order=None
            if outcomes.order is None
            else outcomes.order.filled(planned or made + lacking),
        )
    lost = max((options.tasks or 0) - len(outcomes), 0)
    if lost:
        absent += lost * (planned or int(made.max()))
        verb = "is" if lost == 1 else "are"
        notes += (f"{counted(lost, 'task')} of the {options.tasks:,} planned {verb} absent",)
    return Absent(outcomes, absent, lost), notes


def _result(
    rule: Rule, run: Run, absent: Absent, base: Run | None, options: GateOptions
) -> RuleResult:
    if rule.relative and base is None:
        raise InvalidValue(
            f"'{rule}' compares with base, and there is none.",
            hint="Name the run to compare with: --against SOURCE, or against=run.",
        )
    if isinstance(rule.subject, Missing):
        return missing_result(rule, absent.outcomes)
    if isinstance(rule.subject, Measure):
        return measure_result(rule, rule.subject, run, base)
    if rule.relative:
        assert base is not None
        return lift_result(rule, rule.subject, run, base, absent, options.two_sided)
    terms = options.two_sided
    if terms.about() is Population.THESE_TASKS:
        terms = replace(terms, cluster=None)
    return metric_result(rule, rule.subject, run, absent, terms, options.tools.estimate)
