"""A rule on a single task, attempted many times.

With one task nothing can be claimed about new tasks. What can be bounded is how often *this* task
succeeds: its success rate p lies between the Clopper-Pearson bounds from c passes in n attempts,
and pass^k = p^k (pass@k = 1 - (1 - p)^k, and so on) between their images, since every metric of
counts rises with p. The attempts are taken to be independent.

This asks for many attempts. 8 passes in 8 show pass^4 >= 0.22 at 95%, and no more; pass^4 >= 0.9
takes 114 passes in 114.
"""

from __future__ import annotations

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.gate.gate_result import (
    Advice,
    GateResult,
    GateVerdict,
    RuleResult,
    verdict_of,
)
from passhat.stats.gate.rules import Rule, parse_rule

__all__ = ["attempts_that_could_show", "check_one_task_rule", "judge_one_task"]

_MOST = 100_000


def check_one_task_rule(text: str | Rule, attempts: int) -> tuple[Rule, CountMetric]:
    """Read a rule, and refuse it if a single task cannot answer it."""
    rule = parse_rule(text)
    metric = rule.subject
    if rule.relative or not isinstance(metric, CountMetric):
        raise InvalidValue(
            f"'{rule}' cannot be evaluated on one task.",
            hint="Ask for pass^k, pass@k or gpass@k with a number as the limit.",
        )
    if metric.k > attempts:
        raise InvalidValue(
            f"'{rule}' needs at least {metric.k} attempts; {attempts} are planned.",
            hint=f"Say attempts={metric.k} or more.",
        )
    return rule, metric


def judge_one_task(
    name: str, rule: str | Rule, *, n: int, c: int, missing: int = 0, level: float = 0.95
) -> GateResult:
    """Judge a rule on c passes in n attempts at one task, and some without a verdict.

    Missing attempts count against the rule: as failed for the lower bound, as passed for the upper.
    """
    if not 0.5 < level < 1:
        raise InvalidValue(f"level is one-sided and lies between 0.5 and 1, not {level:g}.")
    made = n + missing
    parsed_rule, metric = check_one_task_rule(rule, made)
    low = _at(metric, _lower(c, made, level))
    high = _at(metric, _upper(c + missing, made, level))
    verdict = verdict_of(parsed_rule, low, high)
    lost = f", {missing} missing" if missing else ""
    result = RuleResult(
        rule=parsed_rule,
        verdict=verdict,
        value=_value(metric, made, c),
        low=low,
        high=high,
        level=level,
        about="this one task",
        tasks=1,
        attempts=made,
        advice=_advice(parsed_rule, metric, level) if verdict is GateVerdict.NOT_SETTLED else None,
        notes=(f"{c} of {counted(made, 'attempt')} passed{lost}; Clopper-Pearson bounds",),
    )
    return GateResult(name, None, (result,), "bound")


def attempts_that_could_show(rule: Rule, metric: CountMetric, level: float) -> int | None:
    """The fewest attempts that could show the rule, if all went the right way."""

    def shows(n: int) -> bool:
        passes = n if rule.sign.wants_more else 0
        low, high = _at(metric, _lower(passes, n, level)), _at(metric, _upper(passes, n, level))
        return verdict_of(rule, low, high) is GateVerdict.SHOWN

    if not shows(_MOST):
        return None
    low, high = 1, _MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle + 1, high)
    return max(high, metric.k)


def _advice(rule: Rule, metric: CountMetric, level: float) -> Advice:
    needed = attempts_that_could_show(rule, metric, level)
    if needed is None:
        return Advice("none", "no number of attempts at one task could show it")
    way = "passed" if rule.sign.wants_more else "failed"
    return Advice(
        "attempts",
        f"it takes at least {counted(needed, 'attempt')}, all {way}, to show it on one task; or "
        "judge several tests together with suite=",
        attempts=needed,
    )


def _at(metric: CountMetric, rate: float) -> float:
    return float(metric.value_at_rate(np.array([rate]))[0])


def _value(metric: CountMetric, n: int, c: int) -> float:
    return float(metric.values(np.array([n]), np.array([c]))[0])


def _lower(c: int, n: int, level: float) -> float:
    from scipy.special import betaincinv

    return 0.0 if c == 0 else float(betaincinv(c, n - c + 1, 1 - level))


def _upper(c: int, n: int, level: float) -> float:
    from scipy.special import betaincinv

    return 1.0 if c == n else float(betaincinv(c + 1, n - c, level))
