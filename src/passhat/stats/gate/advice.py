"""What should settle a rule that is not settled: more tasks, more attempts, or verdicts."""

from __future__ import annotations

import math

from passhat._display import counted
from passhat.errors import PasshatError
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.gate.rules import Rule
from passhat.stats.outcomes import Completion, Outcomes

__all__ = ["advise"]

_TOO_MANY = 100_000
_ON_THE_LIMIT = 0.002
"""A value this near to the limit would take a suite nobody has."""


def advise(
    rule: Rule,
    outcomes: Outcomes,
    value: float,
    value_if_passed: float | None,
    low: float,
    high: float,
) -> str:
    """How many more tasks or attempts should settle the rule, if the value stays what it is.

    The bound comes closer to the value with the square root of the number of tasks.
    """
    best = value if value_if_passed is None else value_if_passed
    if rule.sign.holds(value, rule.limit) != rule.sign.holds(best, rule.limit):
        missing = counted(outcomes.total_missing, "missing attempt")
        return (
            f"the {missing} decide: it reads {value:.3f} if they failed, {best:.3f} if they passed"
        )
    nearest = value if abs(value - rule.limit) < abs(best - rule.limit) else best
    gap = abs(nearest - rule.limit)
    if gap < _ON_THE_LIMIT:
        return "the value lies on the limit, so no affordable number of tasks will settle it"
    reach = nearest - low if nearest > rule.limit else high - nearest
    tasks = len(outcomes)
    needed = math.ceil(tasks * max(reach / gap, 1.0) ** 2)
    if needed > _TOO_MANY:
        return "the value lies so near to the limit that it would take over 100,000 tasks"
    more = max(needed - tasks, 1)
    per_task = outcomes.attempts_text()
    text = f"about {counted(more, 'more task')} x {per_task} should settle it"
    return f"{text}; {_attempts_text(rule, outcomes, (gap / reach) ** 2)}"


def _attempts_text(rule: Rule, outcomes: Outcomes, wanted: float) -> str:
    """Whether more attempts at the same tasks would do as well.

    ``wanted`` is the share of today's variance that may be left.
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
        if difficulty.components(metric, attempts).total <= wanted * today.total:
            return f"so should {attempts} attempts at each of the same tasks"
    return none
