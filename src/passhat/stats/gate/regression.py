"""The gate without a rule: is the run worse than its baseline on these tasks?

Three outcomes. *Regression*: the interval of the mean's lift lies below zero, or single tasks are
shown to be broken, each by an exact test with Holm's correction; the error is shared half and half
between the two, so a run of an unchanged agent is called a regression with chance at most 1 -
level. *No regression beyond the margin*: the lower bound of the lift lies above minus the margin.
*Unsettled*: neither.

The margin is what the data can resolve unless one is given: the drop that a comparison of this size
would have called a regression with a chance of about 90%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from passhat._display import counted, some
from passhat.errors import InvalidValue
from passhat.stats.compare.claims import points
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.task_changes import TaskChange, changed_tasks
from passhat.stats.compare.these_tasks import paired_lift
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.gate_result import Advice, GateVerdict, RuleResult
from passhat.stats.gate.rule_results import Absent, missing_notes, paired_with_base
from passhat.stats.outcomes import Completion, Run
from passhat.stats.terms import Population, Terms

__all__ = ["NoRegression", "regression_result"]

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
    value = float(plain.pairing.differences(metric, terms.missing).values.mean())
    broken = changed_tasks(paired.pairing, terms.missing, (1 - MEAN_SHARE) * alpha, "less")
    margin = rule.margin
    if margin is None:
        margin = _resolution(high - value, value - low)
    if high < 0 or broken:
        verdict = GateVerdict.REFUTED
    else:
        verdict = GateVerdict.SHOWN if low >= -margin else GateVerdict.NOT_SETTLED
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
        _advice(verdict, absent, margin, value - low, value) if not broken else None,
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
    verdict: GateVerdict, absent: Absent, margin: float, reach: float, value: float
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
