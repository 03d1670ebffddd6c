"""Rules on single tasks: one task attempted many times, or each task of a suite for itself.

With one task nothing can be claimed about new tasks. What can be bounded is how often *this* task
succeeds: its success rate p lies between the Clopper-Pearson bounds from c passes in n attempts,
and pass^k = p^k (pass@k = 1 - (1 - p)^k, and so on) between their images, since every metric of
counts rises with p. The attempts are taken to be independent.

This asks for many attempts. 8 passes in 8 show pass^4 >= 0.22 at 95%, and no more; pass^4 >= 0.9
takes 114 passes in 114.

``each pass^1 >= 0.8`` asks that of every task. All tasks are shown when each is, each with the full
error: to be wrong, the worst task itself would have to be shown falsely. Single tasks are refuted
with Holm's correction over tasks, since the worst of many looks bad by chance alone.

Where further attempts may follow (``anytime``), looking must cost nothing, and the exact bounds
do not allow that. Then a rate p is rejected once the likelihood of the attempts, averaged over the
rates on the other side of p, is 1 / alpha times that at p. The average is a martingale at p, so by
Ville's inequality this happens with a chance of at most alpha, however often one looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passhat._display import counted, number, some
from passhat.errors import InvalidValue, RuleError, shorten
from passhat.stats.arrays import FloatArray, IntArray, special
from passhat.stats.compare.significance import holm
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.gate.cases import Case, Losses
from passhat.stats.gate.gate_result import (
    Advice,
    GateResult,
    GateVerdict,
    Rule,
    RuleResult,
    TaskVerdict,
)
from passhat.stats.gate.metric_rules import MetricRule
from passhat.stats.gate.power import RulePower
from passhat.stats.gate.rules import (
    LimitRule,
    RuleText,
    Sign,
    find_metric,
    parse_rule,
    register_rule,
    verdict_of,
)
from passhat.stats.outcomes import Outcomes
from passhat.stats.terms import Population, Terms

_MOST = 100_000
_EACH = "each "


@register_rule
@dataclass(frozen=True, slots=True)
class EachTaskRule(LimitRule):
    """A limit that each task must meet by itself, as in ``each pass^1 >= 0.8``."""

    subject: CountMetric = field()  # without it, the base class's property would be its default
    sign: Sign
    limit: float

    @classmethod
    def parse(cls, text: str) -> Rule | None:
        is_each = text.strip().lower().startswith(_EACH)
        return cls.from_text(RuleText.split(text)) if is_each else None

    @classmethod
    def from_text(cls, parts: RuleText) -> EachTaskRule | None:
        metric = find_metric(parts.subject.removeprefix(_EACH).strip())
        if metric is None:
            return None
        if parts.relative or not isinstance(metric, CountMetric):
            raise RuleError(
                f"{shorten(parts.text)}: each task is held against a number by pass^k, pass@k or "
                "gpass@k.",
                hint="For example 'each pass^1 >= 0.8'.",
            )
        parts.check_range(metric, metric.lowest, metric.highest)
        return cls(metric, parts.sign, parts.limit)

    def population(self, terms: Terms) -> Population:  # noqa: ARG002
        return Population.THESE_TASKS

    def judge(self, case: Case) -> RuleResult:
        """Judge every task: shown if all are, refuted if any is, corrected for their number."""
        outcomes, level = case.absent.outcomes, case.options.terms.level
        tasks = judge_tasks(self, outcomes, level, anytime=case.options.anytime)
        verdicts = {task.verdict for task in tasks}
        verdict = GateVerdict.NOT_SETTLED
        if GateVerdict.REFUTED in verdicts:
            verdict = GateVerdict.REFUTED
        elif verdicts == {GateVerdict.SHOWN}:
            verdict = GateVerdict.SHOWN
        n = outcomes.n + outcomes.missing
        worst = min(tasks, key=lambda task: task.passed / max(task.attempts, 1))
        advice = None
        if verdict is GateVerdict.NOT_SETTLED:
            advice = self._advise(int(n.min()), level)
        return RuleResult(
            rule=self,
            verdict=verdict,
            value=_value(self.subject, worst.attempts, worst.passed),
            low=min(task.low for task in tasks),
            high=min(task.high for task in tasks) if self.sign.wants_more else 1.0,
            level=level,
            about="each of these tasks",
            tasks=len(tasks),
            attempts=int(n.sum()),
            advice=advice,
            by_task=tasks,
        )

    def _advise(self, n: int, level: float) -> Advice:
        attempts = attempts_that_could_show(self, self.subject, level)
        passes = n if self.sign.wants_more else 0
        bound = _bounds(self.subject, passes, n, level)[0 if self.sign.wants_more else 1]
        if attempts is None:
            return Advice("none", "no number of attempts could show it for a single task")
        way = "passed" if self.sign.wants_more else "failed"
        now = (
            f"{n} of {n} show only {number(bound)}" if passes else f"0 of {n} show {number(bound)}"
        )
        return Advice(
            "attempts",
            f"it takes at least {counted(attempts, 'attempt')} at a task, all {way}, to show it "
            f"there ({now})",
        )

    def evidence(self, result: RuleResult) -> str:
        """How many tasks are shown, refuted and undecided, and which are refuted."""
        parts = []
        for verdict, word in (
            (GateVerdict.SHOWN, "shown"),
            (GateVerdict.REFUTED, "below" if self.sign.wants_more else "above"),
            (GateVerdict.NOT_SETTLED, "undecided"),
        ):
            tasks = [task for task in result.by_task if task.verdict is verdict]
            if tasks:
                names = f" ({some(list(map(str, tasks)), 5)})" if word != "shown" else ""
                parts.append(f"{len(tasks):,} {word}{names}")
        return f"of {counted(result.tasks, 'task')}: {', '.join(parts)}"

    def extra_entries(self, result: RuleResult) -> dict[str, Any]:
        return {"by_task": result.by_task}

    def __str__(self) -> str:
        return f"{_EACH}{self.subject} {self.sign} {self.limit_text()}"


def refuting_chances(
    rule: EachTaskRule, outcomes: Outcomes, level: float, *, anytime: bool = False
) -> Iterator[RulePower]:
    """How often a single task is refuted that lies 10 or 40 points beyond the limit.

    Exact, for a task with the median number of attempts, and with the correction that the first of
    all tasks meets. The second one only where the first is rarely refuted.
    """
    metric, wants_more = rule.subject, rule.sign.wants_more
    n = int(np.median(outcomes.n + outcomes.missing))
    c = np.arange(n + 1)
    p_values = _anytime_p_values if anytime else _refuting_p_values
    is_refuted = p_values(rule, metric, np.full(n + 1, n), c, c) * len(outcomes) <= 1 - level
    for drop in (0.1, 0.4):
        goal = rule.limit - drop if wants_more else rule.limit + drop
        if not metric.lowest <= goal <= metric.highest:
            return
        below = np.concatenate([[0.0], special.bdtr(c, n, rate_at(metric, goal))])
        chance = float(np.diff(below)[is_refuted].sum())
        side = "below" if wants_more else "above"
        power = RulePower(str(rule), drop, round(1_000 * chance), 1_000, "a task", side)
        yield power
        if power.is_likely:
            return


def judge_tasks(
    rule: LimitRule, outcomes: Outcomes, level: float, *, anytime: bool = False
) -> tuple[TaskVerdict, ...]:
    """The verdict of each task; missing attempts count against either verdict."""
    metric = rule.subject
    assert isinstance(metric, CountMetric)
    c, missing = outcomes.c, outcomes.missing
    attempts = outcomes.n + missing
    p_values = _anytime_p_values if anytime else _refuting_p_values
    bounds = _anytime_bounds if anytime else _bounds
    refuting = holm(p_values(rule, metric, attempts, c, c + missing))
    verdicts = []
    for i, task in enumerate(outcomes.tasks):
        missing_count = int(missing[i])
        low = bounds(metric, int(c[i]), int(attempts[i]), level)[0]
        high = bounds(metric, int(c[i]) + missing_count, int(attempts[i]), level)[1]
        verdict = verdict_of(rule, low, high)
        if verdict is GateVerdict.REFUTED and refuting[i] > 1 - level:
            verdict = GateVerdict.NOT_SETTLED
        verdicts.append(
            TaskVerdict(task, int(c[i]), int(attempts[i]), missing_count, low, high, verdict)
        )
    return tuple(verdicts)


def _refuting_p_values(
    rule: LimitRule, metric: CountMetric, n: IntArray, lowest: IntArray, highest: IntArray
) -> FloatArray:
    """The chance of so few (or so many) passes at the rate that just meets the limit."""
    rate = rate_at(metric, rule.limit)
    if rule.sign.wants_more:
        return np.asarray(special.bdtr(highest, n, rate), np.float64)
    at_least = np.where(lowest > 0, special.bdtrc(np.maximum(lowest - 1, 0), n, rate), 1.0)
    return np.asarray(at_least, np.float64)


def _anytime_p_values(
    rule: LimitRule, metric: CountMetric, n: IntArray, lowest: IntArray, highest: IntArray
) -> FloatArray:
    """One over the evidence against the rate that just meets the limit."""
    rate = rate_at(metric, rule.limit)
    passes = highest if rule.sign.wants_more else lowest
    evidence = [
        _log_evidence(c, total, rate, above=not rule.sign.wants_more)
        for c, total in zip(passes.tolist(), n.tolist(), strict=True)
    ]
    return np.exp(-np.maximum(evidence, 0.0))


def _log_evidence(c: int, n: int, rate: float, *, above: bool) -> float:
    """The log of the likelihood averaged over rates above (or below) ``rate``, over that at it."""
    if not above:
        return _log_evidence(n - c, n, 1 - rate, above=True)
    if rate <= 0:
        return math.inf if c else 0.0
    if rate >= 1:
        return 0.0
    share = float(special.betainc(n - c + 1, c + 1, 1 - rate))
    if share <= 0:
        return -math.inf
    averaged = float(special.betaln(c + 1, n - c + 1)) + math.log(share) - math.log1p(-rate)
    return averaged - float(special.xlogy(c, rate) + special.xlog1py(n - c, -rate))


def _anytime_bounds(metric: CountMetric, c: int, n: int, level: float) -> tuple[float, float]:
    """Bounds of a task's metric that hold at all looks at once, at a one-sided level each."""
    enough = -math.log(1 - level)

    def lowest_rate(passes: int) -> float:
        low, high = 0.0, passes / n if n else 0.0
        for _ in range(50):
            middle = (low + high) / 2
            rejected = _log_evidence(passes, n, middle, above=True) >= enough
            low, high = (middle, high) if rejected else (low, middle)
        return low

    return _value_at_rate(metric, lowest_rate(c)), _value_at_rate(metric, 1 - lowest_rate(n - c))


def rate_at(metric: CountMetric, value: float) -> float:
    """The success rate at which the metric has a value, by halving: it rises with the rate."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _value_at_rate(metric, middle) < value else (low, middle)
    return high


def check_one_task_rule(text: str | Rule, attempts: int) -> tuple[MetricRule, CountMetric]:
    """Read a rule, and refuse it if a single task cannot answer it."""
    rule = parse_rule(text)
    if not isinstance(rule, MetricRule) or not isinstance(rule.subject, CountMetric):
        raise InvalidValue(
            f"'{rule}' cannot be evaluated on one task.",
            hint="Ask for pass^k, pass@k or gpass@k with a number as the limit.",
        )
    if rule.subject.k > attempts:
        raise InvalidValue(
            f"'{rule}' needs at least {rule.subject.k} attempts; {attempts} are planned.",
            hint=f"Say attempts={rule.subject.k} or more.",
        )
    return rule, rule.subject


def judge_one_task(
    name: str, rule: str | Rule, *, n: int, c: int, missing: int = 0, level: float = 0.95
) -> GateResult:
    """Judge a rule on c passes in n attempts at one task, and some without a verdict.

    Missing attempts count against the rule: as failed for the lower bound, as passed for the upper.
    """
    if not 0.5 < level < 1:
        raise InvalidValue(f"level is one-sided and lies between 0.5 and 1, not {level:g}.")
    attempts = n + missing
    parsed_rule, metric = check_one_task_rule(rule, attempts)
    low = _bounds(metric, c, attempts, level)[0]
    high = _bounds(metric, c + missing, attempts, level)[1]
    verdict = verdict_of(parsed_rule, low, high)
    missing_text = f", {missing} missing" if missing else ""
    result = RuleResult(
        rule=parsed_rule,
        verdict=verdict,
        value=_value(metric, attempts, c),
        low=low,
        high=high,
        level=level,
        about="this one task",
        tasks=1,
        attempts=attempts,
        advice=_advise_one_task(parsed_rule, metric, level)
        if verdict is GateVerdict.NOT_SETTLED
        else None,
        notes=(
            f"{c} of {counted(attempts, 'attempt')} passed{missing_text}; Clopper-Pearson bounds",
        ),
    )
    # Missing attempts are in the bounds; only a task without a verdict is no result at all.
    losses = Losses(missing=missing, planned=attempts, limit=1.0)
    return GateResult(name, None, (result,), "bound", losses=losses)


def attempts_that_could_show(rule: LimitRule, metric: CountMetric, level: float) -> int | None:
    """The fewest attempts that could show the rule, if all went the right way."""

    def shows(n: int) -> bool:
        low, high = _bounds(metric, n if rule.sign.wants_more else 0, n, level)
        return verdict_of(rule, low, high) is GateVerdict.SHOWN

    if not shows(_MOST):
        return None
    low, high = 1, _MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle + 1, high)
    return max(high, metric.k)


def _advise_one_task(rule: MetricRule, metric: CountMetric, level: float) -> Advice:
    attempts = attempts_that_could_show(rule, metric, level)
    if attempts is None:
        return Advice("none", "no number of attempts at one task could show it")
    way = "passed" if rule.sign.wants_more else "failed"
    return Advice(
        "attempts",
        f"it takes at least {counted(attempts, 'attempt')}, all {way}, to show it on one task; or "
        "judge several tests together with suite=",
    )


def _bounds(metric: CountMetric, c: int, n: int, level: float) -> tuple[float, float]:
    """One-sided Clopper-Pearson bounds of a task's metric, from c passes in n attempts."""
    low = 0.0 if c == 0 else float(special.betaincinv(c, n - c + 1, 1 - level))
    high = 1.0 if c == n else float(special.betaincinv(c + 1, n - c, level))
    return _value_at_rate(metric, low), _value_at_rate(metric, high)


def _value_at_rate(metric: CountMetric, rate: float) -> float:
    return float(metric.value_at_rate(np.array([rate]))[0])


def _value(metric: CountMetric, n: int, c: int) -> float:
    """The estimate from c of n; with fewer than k attempts the metric at the observed rate."""
    if n < metric.k:
        return _value_at_rate(metric, c / max(n, 1))
    return float(metric.values(np.array([n]), np.array([c]))[0])
