"""gate(): from runs and rules to verdicts.

A rule on a metric is about new tasks and asked at a one-sided level: shown when the lower bound
meets the limit, refuted when the upper bound does not. A one-sided 95% bound is the end of the
two-sided 90% interval. Attempts without a verdict count against the rule: under the policy
``bound`` the interval reaches from "all of them failed" to "all of them passed", so what is shown
holds at the unfavourable end.

Cost, seconds, steps, tokens and missing attempts are counted, not estimated: the verdict is about
this run as it was, and is never open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np

from passhat._display import counted, some
from passhat.errors import InvalidValue
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.advice import advise
from passhat.stats.gate.baseline_rule import lift_over_base
from passhat.stats.gate.counted import measure_result, missing_result
from passhat.stats.gate.gate_result import GateResult, GateVerdict, RuleResult, verdict_of
from passhat.stats.gate.rules import Measure, Missing, Rule, parse_rule
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run
from passhat.stats.terms import OptionName, TermOptions, Terms

__all__ = ["GateOptions", "Tools", "gate", "judge"]

Estimator = Callable[..., Estimate]

_TAKES: tuple[OptionName, ...] = ("level", "missing", "drop_short", "allow")


@dataclass(frozen=True, slots=True)
class Tools:
    """Where bounds come from; tests put their own in."""

    estimate: Estimator = estimate


@dataclass(frozen=True, slots=True)
class GateOptions:
    """How a gate judges.

    The level of ``terms`` is one-sided. ``tasks`` and ``attempts`` (per task) are what was planned;
    fewer than that are reported as absent.
    """

    terms: Terms = field(default_factory=Terms)
    tasks: int | None = None
    attempts: int | None = None
    tools: Tools = field(default_factory=Tools)

    def __post_init__(self) -> None:
        if not 0.5 < self.terms.level < 1:
            raise InvalidValue(
                f"a gate's level is one-sided and lies between 0.5 and 1, not {self.terms.level:g}."
            )

    @property
    def two_sided(self) -> Terms:
        """Terms of the two-sided interval whose ends are the one-sided bounds."""
        return replace(self.terms, level=2 * self.terms.level - 1, equal_tails=True)


def gate(
    run: Run | Outcomes,
    rules: str | Rule | Iterable[str | Rule],
    against: Run | Outcomes | None = None,
    terms: Terms | None = None,
    *,
    tasks: int | None = None,
    attempts: int | None = None,
    **options: Unpack[TermOptions],
) -> GateResult:
    """Judge a run by rules.

    Parameters
    ----------
    run : Run or Outcomes
        What is judged. Rules on cost, seconds, steps and tokens need a run.
    rules : str or several
        Such as ``pass^4 >= 0.6``, ``pass^4 >= base - 0.03``, ``cost <= 0.5``, ``missing <= 2%``.
    against : Run or Outcomes, optional
        The run that ``base`` stands for.
    terms : Terms, optional
        All options in one object; keywords change single ones.
    level : float
        One-sided confidence of a rule on a metric.
    missing : {"bound", "fail", "exclude"}
        What attempts without a verdict count as.
    tasks, attempts : int, optional
        Tasks, and attempts per task, that were planned.
    drop_short : bool
        Leave out tasks with fewer than k attempts rather than refuse.
    allow : bool
        Compare with ``against`` although the protocols differ; the differences are listed.

    Raises
    ------
    PasshatError
        When a rule cannot be asked: k larger than the attempts made, a measure nobody recorded,
        ``base`` without a second run.
    """
    terms = Terms.from_options(options, terms, takes=_TAKES)
    return judge(run, rules, against, GateOptions(terms, tasks, attempts))


def judge(
    run: Run | Outcomes,
    rules: str | Rule | Iterable[str | Rule],
    against: Run | Outcomes | None,
    options: GateOptions,
) -> GateResult:
    """As :func:`gate`, with the options in one object."""
    asked = [parse_rule(rule) for rule in ([rules] if isinstance(rules, str | Rule) else rules)]
    if not asked:
        raise InvalidValue("a gate needs a rule.", hint="For example 'pass^4 >= 0.6'.")
    mine = _as_run(run, "outcomes")
    base = None if against is None else _as_run(against, "base")
    outcomes, absent, notes = _with_absent(mine, options)
    results = tuple(_result(rule, mine, outcomes, base, options) for rule in asked)
    return GateResult(
        name=mine.name,
        base=None if base is None else base.name,
        results=results,
        missing_policy=options.terms.missing,
        absent=absent,
        notes=notes,
    )


def _as_run(source: Run | Outcomes, name: str) -> Run:
    return source if isinstance(source, Run) else Run(name, name, source)


def _with_absent(run: Run, options: GateOptions) -> tuple[Outcomes, int, tuple[str, ...]]:
    """Count planned attempts that are not there, and treat them as missing ones.

    An attempt that was planned and left no trace is as unknown as one without a verdict. Whole
    tasks that are absent are counted; nothing can be filled in for them.
    """
    outcomes = run.outcomes
    planned = options.attempts or run.protocol.attempts
    there, _ = outcomes.counts(Completion.AS_FAILED)
    lacking = np.zeros(len(outcomes), np.int64)
    notes: tuple[str, ...] = ()
    if planned is not None:
        lacking = np.maximum(planned - there, 0)
    absent = int(lacking.sum())
    if absent:
        short = np.flatnonzero(lacking)
        named = some([outcomes.tasks[i] for i in short[:6].tolist()], 5)
        notes += (
            f"{counted(absent, 'attempt')} of the {planned} planned per task are absent on "
            f"{counted(len(short), 'task')} ({named}) and count as missing",
        )
        outcomes = replace(
            outcomes,
            m=outcomes.missing + lacking,
            order=None if outcomes.order is None else outcomes.order.filled(planned or 0),
        )
    if options.tasks is not None and options.tasks > len(outcomes):
        lost = options.tasks - len(outcomes)
        absent += lost * (planned or int(there.max()))
        notes += (f"{counted(lost, 'task')} of the {options.tasks:,} planned are absent",)
    return outcomes, absent, notes


def _result(
    rule: Rule, run: Run, outcomes: Outcomes, base: Run | None, options: GateOptions
) -> RuleResult:
    if rule.relative and base is None:
        raise InvalidValue(
            f"'{rule}' compares with base, and there is none.",
            hint="Name the run to compare with: --against SOURCE, or against=run.",
        )
    if isinstance(rule.subject, Missing):
        return missing_result(rule, outcomes)
    if isinstance(rule.subject, Measure):
        return measure_result(rule, rule.subject, run, base)
    if rule.relative:
        assert base is not None
        return _lift_result(rule, rule.subject, replace(run, outcomes=outcomes), base, options)
    return _metric_result(rule, rule.subject, outcomes, options)


def _metric_result(
    rule: Rule, metric: Metric, outcomes: Outcomes, options: GateOptions
) -> RuleResult:
    found = options.tools.estimate(outcomes, metric, options.two_sided)
    low, high, advice = found.low, found.high, None
    if low is None or high is None:
        verdict = GateVerdict.NOT_SETTLED
        advice = f"no interval is available for {metric}"
    else:
        verdict = verdict_of(rule, low, high)
        if verdict is GateVerdict.NOT_SETTLED:
            advice = advise(rule, outcomes, found.value, found.value_if_passed, low, high)
    return RuleResult(
        rule,
        verdict,
        found.value,
        low,
        high,
        options.terms.level,
        found.about,
        found.tasks,
        found.attempts,
        advice,
        (*found.notes, *_missing_notes(outcomes, options.terms.missing)),
    )


def _missing_notes(outcomes: Outcomes, policy: MissingPolicy) -> tuple[str, ...]:
    total = outcomes.total_missing
    if total == 0:
        return ()
    ways = {
        MissingPolicy.BOUND: "the bounds reach from all of them failed to all of them passed",
        MissingPolicy.FAIL: "they count as failed",
        MissingPolicy.EXCLUDE: "they are left out",
    }
    return (f"{counted(total, 'attempt')} missing: {ways[policy]}",)


def _lift_result(
    rule: Rule, metric: Metric, run: Run, base: Run, options: GateOptions
) -> RuleResult:
    """A rule against base: decided by the paired lift, never by two separate intervals."""
    lift = lift_over_base(run, base, metric, options.terms)
    verdict = verdict_of(rule, lift.low, lift.high)
    advice = None
    if verdict is GateVerdict.NOT_SETTLED:
        advice = advise(rule, run.outcomes, lift.value, None, lift.low, lift.high)
    return RuleResult(
        rule,
        verdict,
        lift.value,
        lift.low,
        lift.high,
        options.terms.level,
        "new tasks",
        lift.tasks,
        lift.attempts,
        advice,
        (*lift.notes, *_missing_notes(run.outcomes, options.terms.missing)),
    )
