"""plan(): from a pilot, or from stated assumptions, to tasks x attempts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, Outcomes, Run
from passhat.stats.plan.difficulty import Components, Difficulty
from passhat.stats.plan.goals import Detect, Goal, HalfWidth
from passhat.stats.plan.plan_result import Plan, PlanRow

__all__ = ["plan"]

_STEPS = (1, 1.5, 2, 3, 4, 8, 16)
"""Attempts per task that a plan lists, in multiples of k."""

_SAVES_LITTLE = 1.1
_MOST_ATTEMPTS = 1024

_Variance = Callable[[int], Components]
"""The variance of one task's value (or difference) as a function of attempts per task."""


def plan(
    pilot: Run | Outcomes | None = None,
    *,
    metric: str | Metric = "pass^1",
    detect: float | None = None,
    half_width: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    against: Run | Outcomes | None = None,
    mean: float | None = None,
    icc: float | None = None,
    correlation: float = 0.75,
    attempts: int | None = None,
) -> Plan:
    """Tasks and attempts needed to see a lift, or to know a value precisely.

    Parameters
    ----------
    pilot : Run or Outcomes, optional
        A run with two or more attempts per task. Without it, state ``mean`` and ``icc``.
    metric : str
        A metric of counts, such as ``pass^4``.
    detect : float
        The lift to be seen between two agents that attempt the same tasks.
    half_width : float
        Instead of ``detect``: half the width of the interval of one agent's value.
    power : float
        The chance to see a lift of that size.
    level : float
        Confidence of the (two-sided) interval.
    against : Run or Outcomes, optional
        A pilot of the second agent on the same tasks; how far the lift differs from task to task
        is then measured, not assumed.
    mean, icc : float, optional
        Without a pilot: the share of attempts that pass, and ICC(1), the share of the variance
        between attempts that is the task's.
    correlation : float
        How alike two agents find the same tasks, from 0 to 1; used without ``against``.
    attempts : int, optional
        A number of attempts per task that the plan must list.

    Examples
    --------
    >>> plan(metric="pass^4", half_width=0.05, mean=0.7, icc=0.4).cheapest
    PlanRow(attempts=4, tasks=383, total_attempts=1532, cost=None, seconds=None)
    """
    chosen = _count_metric(metric)
    goal = _goal(detect, half_width, power, level)
    if attempts is not None and attempts < chosen.k:
        raise InvalidValue(f"{chosen} needs at least {chosen.k} attempts per task, not {attempts}.")
    difficulty, basis = _difficulty(pilot, mean, icc)
    variance = _variance(difficulty, chosen, goal, pilot, against, correlation)
    agents = 2 if goal.kind == "detect" else 1
    price = _per_attempt(pilot)
    listed = _listed_attempts(chosen.k, pilot, attempts)
    rows = tuple(_row(goal, variance(n).total, n, agents, price) for n in listed)
    first = variance(listed[0])
    return Plan(
        metric=chosen.name,
        goal=goal.kind,
        target=goal.target,
        level=level,
        power=goal.power,
        value=difficulty.mean(chosen),
        between=first.between,
        within=first.within,
        rows=rows,
        fewest_tasks=goal.tasks(first.between, _MOST_ATTEMPTS),
        enough_attempts=_enough_attempts(variance, listed[0]),
        pilot_reaches=_pilot_reaches(goal, variance, chosen, pilot),
        assumptions=(
            basis,
            *_pairing_text(goal, pilot, against, correlation),
            goal.approximation,
            *_price_notes(price, agents),
        ),
    )


def _count_metric(word: str | Metric) -> CountMetric:
    chosen = parse(word)
    if not isinstance(chosen, CountMetric):
        raise InvalidValue(
            f"{chosen} cannot be planned for: its value depends on more than n and c of each task.",
            hint=f"Plan for pass^{chosen.k} or pass@{chosen.k}.",
        )
    return chosen


def _goal(detect: float | None, half_width: float | None, power: float, level: float) -> Goal:
    if (detect is None) == (half_width is None):
        raise InvalidValue(
            "a plan needs one goal: a lift to detect, or a half-width.",
            hint="For example --detect 0.03, or --half-width 0.05.",
        )
    for name, value in (("detect", detect), ("half_width", half_width)):
        if value is not None and not 0 < value < 1:
            raise InvalidValue(f"{name} must lie between 0 and 1, not {value:g}.")
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level:g}.")
    if detect is None:
        assert half_width is not None
        return HalfWidth(half_width, level)
    if not 0.5 <= power < 1:
        raise InvalidValue(f"power must lie from 0.5 to below 1, not {power:g}.")
    return Detect(detect, level, power)


def _outcomes(source: Run | Outcomes) -> Outcomes:
    return source.outcomes if isinstance(source, Run) else source


def _difficulty(
    pilot: Run | Outcomes | None, mean: float | None, icc: float | None
) -> tuple[Difficulty, str]:
    if pilot is not None:
        if mean is not None or icc is not None:
            raise InvalidValue(
                "mean and icc are assumptions for when there is no pilot; here there is one."
            )
        outcomes = _outcomes(pilot)
        return (
            Difficulty.from_outcomes(outcomes),
            f"difficulty as in the pilot ({outcomes}), plus one imaginary task of unknown "
            "difficulty",
        )
    if mean is None or icc is None:
        raise InvalidValue(
            "without a pilot the plan needs the mean and the ICC you expect.",
            hint="For example --mean 0.7 --icc 0.4: 70% of attempts pass, and 40% of the variance "
            "between attempts is the task's.",
        )
    return (
        Difficulty.from_mean(mean, icc),
        f"no pilot: {mean:.0%} of attempts pass, ICC {icc:g}, success rates follow a Beta",
    )


def _variance(
    difficulty: Difficulty,
    metric: CountMetric,
    goal: Goal,
    pilot: Run | Outcomes | None,
    against: Run | Outcomes | None,
    correlation: float,
) -> _Variance:
    """Of one task's value; for a comparison of the difference of two agents' values on it."""
    if goal.kind == "half-width":
        return lambda n: difficulty.components(metric, n)
    if not 0 <= correlation <= 1:
        raise InvalidValue(f"correlation must lie from 0 to 1, not {correlation:g}.")
    if against is None:

        def assumed(n: int) -> Components:
            one = difficulty.components(metric, n)
            return Components(2 * one.between * (1 - correlation), 2 * one.within)

        return assumed
    if pilot is None:
        raise InvalidValue("against needs a pilot to be paired with.")
    other = Difficulty.from_outcomes(_outcomes(against))
    between = _measured_between(_outcomes(pilot), _outcomes(against), metric, difficulty, other)

    def measured(n: int) -> Components:
        within = difficulty.components(metric, n).within + other.components(metric, n).within
        return Components(between, within)

    return measured


def _measured_between(
    a: Outcomes, b: Outcomes, metric: CountMetric, of_a: Difficulty, of_b: Difficulty
) -> float:
    """How far the lift truly differs from task to task.

    The attempts of the two agents are independent, so their noise does not enter the covariance of
    their values: Var(a) + Var(b) - 2 Cov(a, b) of the true values.
    """
    where = {task: i for i, task in enumerate(b.tasks)}
    pairs = [(i, where[task]) for i, task in enumerate(a.tasks) if task in where]
    if len(pairs) < 3:
        raise InvalidValue(
            f"the two pilots share {counted(len(pairs), 'task')}; at least 3 are needed."
        )
    mine, theirs = (np.array(side) for side in zip(*pairs, strict=True))
    x = values_by_task(a.take(mine), metric, Completion.AS_FAILED)
    y = values_by_task(b.take(theirs), metric, Completion.AS_FAILED)
    covariance = float(np.cov(x, y)[0, 1])
    spread = of_a.components(metric, metric.k).between + of_b.components(metric, metric.k).between
    return max(spread - 2 * covariance, 0.0)


def _pairing_text(
    goal: Goal,
    pilot: Run | Outcomes | None,
    against: Run | Outcomes | None,
    correlation: float,
) -> Iterator[str]:
    if goal.kind != "detect":
        return
    yield "both agents attempt the same tasks, and the lift is judged task by task"
    if against is not None and pilot is not None:
        yield "how far the lift differs from task to task is measured on the two pilots"
    else:
        yield (
            f"assumed: the two agents' success on tasks correlates {correlation:g}; a pilot of the "
            "second agent (--against) measures it, --correlation states another"
        )


def _per_attempt(pilot: Run | Outcomes | None) -> dict[str, float]:
    """Average cost and seconds of an attempt, where recorded; nobody's zero is invented."""
    if not isinstance(pilot, Run):
        return {}
    found = {name: pilot.measured(name) for name in ("cost", "seconds")}
    return {name: one.total / one.recorded for name, one in found.items() if one is not None}


def _price_notes(price: dict[str, float], agents: int) -> Iterator[str]:
    if price:
        both = "; the second agent is taken to cost the same" if agents == 2 else ""
        yield f"{' and '.join(price)} as the pilot's attempts had on average{both}"


def _listed_attempts(k: int, pilot: Run | Outcomes | None, attempts: int | None) -> list[int]:
    listed = {math.ceil(k * step) for step in _STEPS}
    if pilot is not None:
        listed.add(int(np.median(_outcomes(pilot).n)))
    if attempts is not None:
        listed.add(attempts)
    return sorted(n for n in listed if n >= k)


def _row(
    goal: Goal, variance: float, attempts: int, agents: int, price: dict[str, float]
) -> PlanRow:
    tasks = goal.tasks(variance, attempts)
    total = tasks * attempts * agents
    cost, seconds = price.get("cost"), price.get("seconds")
    return PlanRow(
        attempts,
        tasks,
        total,
        None if cost is None else cost * total,
        None if seconds is None else seconds * total,
    )


def _enough_attempts(variance: _Variance, smallest: int) -> int | None:
    """The fewest attempts at which within-task variance is a tenth of that between tasks."""

    def little(n: int) -> bool:
        parts = variance(n)
        return parts.total <= _SAVES_LITTLE * parts.between

    high = smallest
    while not little(high):
        high *= 2
        if high > _MOST_ATTEMPTS:
            return None
    low = max(smallest, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if little(middle) else (middle + 1, high)
    return high


def _pilot_reaches(
    goal: Goal, variance: _Variance, metric: CountMetric, pilot: Run | Outcomes | None
) -> float | None:
    if pilot is None:
        return None
    outcomes = _outcomes(pilot)
    n = int(np.median(outcomes.n))
    return goal.reached(variance(n).total, len(outcomes), n) if n >= metric.k else None
