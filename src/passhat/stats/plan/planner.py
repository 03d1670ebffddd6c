"""Three plans: tasks for a claim about new tasks, attempts at these tasks, attempts by task.

:func:`plan_tasks` needs a pilot or stated assumptions, :func:`plan_attempts` and :func:`allocate`
an earlier run of the same tasks.

A pilot of 30 tasks gives its own variance only roughly, and a plan that trusts it
promises 80% power and gives 66%. So the variance is redrawn with the pilot's tasks (or clusters of
tasks), and the plan is made for a large one among the redraws: the promised power is then reached
by four pilots in five.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from passhat._display import counted
from passhat.errors import Hint, InvalidValue, NotComparable
from passhat.stats.arrays import IntArray
from passhat.stats.clusters import task_clusters
from passhat.stats.compare.guard import find_score_difference
from passhat.stats.estimate.grammar import metric as parse_metric
from passhat.stats.estimate.metrics import CountMetric, Metric, ScoreMetric
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.outcomes.coercion import Data, as_outcomes, as_run_or_outcomes
from passhat.stats.plan.allocation import Allocation, Allocator
from passhat.stats.plan.difficulty import (
    Components,
    Difficulty,
    PilotVariance,
    PlannedMetric,
    TaskSpread,
    VarianceByAttempts,
    find_spread,
    median_attempts,
    pilot_basis,
)
from passhat.stats.plan.plan_result import Detect, Goal, HalfWidth, Plan, PlanRow
from passhat.stats.terms import Population

_STEPS = (1, 1.5, 2, 3, 4, 8, 16)
"""Attempts per task that a plan lists, in multiples of k."""
_SAVES_LITTLE = 1.1
_MOST_ATTEMPTS = 1024
_CAUTION = 0.8
"""The quantile of the redrawn variance that is planned for."""
_LIMITS_COST = 1.3
"""The interval on these tasks is 1.22 times as wide as normal theory has it, measured through the
gate (docs/benchmarks/gate.md); the rest is for the luck of a pilot of 30 tasks."""
_ROUNDS = 6
"""Corrections of the total until a design reaches its goal."""


def plan_tasks(
    pilot: Data | None = None,
    *,
    metric: str | Metric = "pass^1",
    detect: float | None = None,
    half_width: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    cluster: str | None = None,
    against: Data | None = None,
    mean: float | None = None,
    icc: float | None = None,
    correlation: float = 0.75,
    attempts: int | None = None,
) -> Plan:
    """Plan how many tasks like these show a lift, or give a value precisely.

    Parameters
    ----------
    pilot : Run, Outcomes, matrix or data frame, optional
        A run with two or more attempts per task. Without it, state ``mean`` and ``icc``.
    metric : str
        A metric of counts or scores, such as ``pass^4`` or ``mean``.
    detect : float
        The lift to be seen between two agents that attempt the same tasks.
    half_width : float
        Instead of ``detect``: half the width of the interval of one agent's value.
    power : float
        The chance to see a lift of that size.
    level : float
        Confidence of the (two-sided) interval.
    cluster : str, optional
        A label of the pilot's tasks; those that share its value are not independent.
    against : Run, Outcomes, matrix or data frame, optional
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
    >>> plan_tasks(metric="pass^4", half_width=0.05, mean=0.7, icc=0.4).cheapest
    PlanRow(attempts=4, tasks=383, total_attempts=1532, cost=None, seconds=None)
    """
    planned_metric = _planned_metric(metric)
    goal = _goal(detect, half_width, power, level)
    _check_attempts(planned_metric, attempts)
    source = None if pilot is None else as_run_or_outcomes(pilot)
    outcomes = None if source is None else as_outcomes(source)
    other = None if against is None else as_outcomes(against)
    if outcomes is None and cluster is not None:
        raise InvalidValue("clusters are a label of a pilot's tasks; there is no pilot.")
    difficulty, basis = find_spread(outcomes, planned_metric, mean, icc)
    variance = _variance(difficulty, planned_metric, goal, outcomes, other, correlation)
    other_side = other if goal.agents == 2 else None
    spread = PilotVariance.redraw(variance, outcomes, other_side, planned_metric, cluster)
    price = _price_per_attempt(source)
    sizes = {math.ceil(planned_metric.k * step) for step in _STEPS}
    sizes |= set() if outcomes is None else {median_attempts(outcomes)}
    sizes |= set() if attempts is None else {attempts}
    attempt_counts = sorted(n for n in sizes if n >= planned_metric.k)
    caution = None if pilot is None else _CAUTION
    rows = tuple(
        _row(goal.tasks(spread.total(n, caution)), n, goal.agents, price) for n in attempt_counts
    )
    first = variance(attempt_counts[0])
    plan = Plan(
        **_goal_fields(goal),
        metric=planned_metric.name,
        value=difficulty.mean(planned_metric),
        between=first.between,
        within=first.within,
        rows=rows,
        fewest_tasks=goal.tasks(spread.design * first.between),
        enough_attempts=_sufficient_attempts(variance, attempt_counts[0]),
        assumptions=(
            *basis,
            *_pairing_notes(goal, other, correlation),
            *_uncertainty_notes(outcomes, cluster, spread),
            goal.approximation,
            *_price_notes(price, goal),
        ),
    )
    if outcomes is not None and median_attempts(outcomes) >= planned_metric.k:
        variance_now = spread.total(median_attempts(outcomes), _CAUTION)
        plan = replace(plan, pilot_reaches=goal.reach(variance_now, len(outcomes)))
    if not spread.has_redraws:
        return plan
    row = plan.cheapest
    low, high = (spread.total(row.attempts, quantile) for quantile in (0.1, 0.9))
    return replace(
        plan,
        tasks_range=(goal.tasks(low), goal.tasks(high)),
        power_range=(goal.power_at(high, row.tasks), goal.power_at(low, row.tasks))
        if isinstance(goal, Detect)
        else None,
    )


def plan_attempts(
    pilot: Data,
    *,
    metric: str | Metric = "pass^1",
    detect: float | None = None,
    half_width: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    attempts: int | None = None,
    gate: bool = False,
) -> Plan:
    """Plan how many attempts at each of the pilot's tasks reach a goal about these tasks.

    Parameters
    ----------
    pilot : Run, Outcomes, matrix or data frame
        A run of the same tasks with two or more attempts each.
    metric, detect, half_width, power, level
        As in :func:`plan_tasks`.
    attempts : int, optional
        A number of attempts per task that the plan must list.
    gate : bool
        Plan for a gate against a baseline: attempts per task at which a drop of ``detect`` (by
        default the drop that a run of the pilot's size shows) is called a regression; the same at
        every task or allocated, whichever needs fewer.
    """
    source = as_run_or_outcomes(pilot)
    planned_metric = _planned_metric(metric)
    if gate and detect is None and half_width is None:
        detect = _detectable_drop(as_outcomes(source), planned_metric, level, power)
    goal = _goal(detect, half_width, power, level)
    _check_attempts(planned_metric, attempts)
    if gate and isinstance(goal, HalfWidth):
        raise InvalidValue(
            "a gate is planned for a drop.",
            hint=Hint("For example {gate} {detect}.", gate=True, detect=0.05),
        )
    plan = _equal_attempts(source, planned_metric, goal, attempts, gate=gate)
    if not gate or isinstance(planned_metric, ScoreMetric):
        return plan
    allocator = Allocator(source, planned_metric, level)
    total = plan.cheapest.attempts * plan.cheapest.tasks
    allocation = _allocate_for_goal(allocator, goal, total, gate=True)
    return plan if allocation.total >= total else replace(plan, allocation=allocation)


def allocate(
    pilot: Data,
    *,
    metric: str | Metric = "pass^1",
    budget: int | None = None,
    detect: float | None = None,
    half_width: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    most: int | None = None,
    gate: bool = False,
) -> Plan:
    """Give attempts to the tasks where they decide, by an earlier run of the same tasks.

    The plan's ``allocation`` has a number for each task; ``passhat.run(n=plan)`` takes it. It makes
    a number about these tasks more certain; about new tasks only more tasks do.

    Parameters
    ----------
    pilot : Run, Outcomes, matrix or data frame
        The earlier run; 4 or more attempts per task tell tasks apart.
    metric, detect, half_width, power, level, gate
        As in :func:`plan_attempts`.
    budget : int, optional
        Instead of ``detect`` and ``half_width``: attempts over all tasks; as many as the pilot has
        by default.
    most : int, optional
        The most attempts at one task.
    """
    source = as_run_or_outcomes(pilot)
    outcomes = as_outcomes(source)
    count_metric = _count_metric(metric)
    for name, value in (("budget", budget), ("most", most)):
        if value is not None and (isinstance(value, bool) or value < 1):
            raise InvalidValue(f"{name} must be a whole number of at least 1, not {value!r}.")
    if detect is None and half_width is None and gate:
        detect = _detectable_drop(outcomes, count_metric, level, power)
    if detect is not None or half_width is not None:
        if budget is not None:
            raise InvalidValue("a plan needs one goal: budget, or detect or half_width, not both.")
        goal = _goal(detect, half_width, power, level)
        plan = _equal_attempts(source, count_metric, goal, None, gate=gate)
        allocator = Allocator(source, count_metric, level, most)
        total = plan.cheapest.attempts * plan.cheapest.tasks
        if isinstance(goal, HalfWidth):
            # The interval itself decides, for equal n as for the design that is compared with it.
            total = _even_total(allocator, goal.target, total)
            row = _row(len(outcomes), round(total / len(outcomes)), 1, _price_per_attempt(source))
            plan = replace(plan, rows=(row,))
        return replace(plan, allocation=_allocate_for_goal(allocator, goal, total, gate=gate))
    difficulty = Difficulty.from_outcomes(outcomes)
    allocator = Allocator(source, count_metric, level, most, difficulty)
    total = budget if budget is not None else int(outcomes.attempts)
    price = _price_per_attempt(source)
    row = _row(len(outcomes), max(round(total / len(outcomes)), count_metric.k), 1, price)
    return Plan(
        **_these_tasks_fields(difficulty, count_metric, row.attempts),
        goal="budget",
        target=float(total),
        level=level,
        power=None,
        rows=(row,),
        fewest_tasks=len(outcomes),
        assumptions=(*pilot_basis(outcomes, count_metric), *_price_notes(price, None)),
        allocation=allocator.allocation(total),
    )


def half_widths(
    pilot: Run | Outcomes, metric: CountMetric, sizes: Iterable[tuple[int, int]], level: float
) -> list[float]:
    """Half the width to expect of runs of other sizes, (tasks, attempts per task).

    For the same cautious variance as a plan: its "a run of the pilot's size gives" is one of them.
    """
    goal = HalfWidth(0.5, level)
    outcomes = as_outcomes(pilot)
    difficulty = Difficulty.from_outcomes(outcomes)
    variance = _variance(difficulty, metric, goal, outcomes, None, 0.0)
    spread = PilotVariance.redraw(variance, outcomes, None, metric, None)
    return [goal.reach(spread.total(n, _CAUTION), tasks) for tasks, n in sizes]


# -- arguments and their parts -----------------------------------------------------------------


def _planned_metric(word: str | Metric) -> PlannedMetric:
    metric = parse_metric(word)
    if not isinstance(metric, CountMetric | ScoreMetric):
        raise InvalidValue(
            f"{metric} cannot be planned for: its value depends on more than n and c of each task.",
            hint=f"Plan for pass^{metric.k} or pass@{metric.k}.",
        )
    return metric


def _count_metric(word: str | Metric) -> CountMetric:
    metric = _planned_metric(word)
    if isinstance(metric, ScoreMetric):
        raise InvalidValue(
            f"attempts are not allocated by {metric}, which looks at scores.",
            hint=f"Allocate them by {metric.verdict_metric}.",
        )
    return metric


def _check_attempts(metric: PlannedMetric, attempts: int | None) -> None:
    if attempts is not None and attempts < metric.k:
        raise InvalidValue(
            f"{metric} needs at least {counted(metric.k, 'attempt')} per task, not {attempts}."
        )


def _goal(detect: float | None, half_width: float | None, power: float, level: float) -> Goal:
    if (detect is None) == (half_width is None):
        raise InvalidValue(
            "a plan needs one goal: a lift to detect, or a half-width.",
            hint=Hint("For example {detect}, or {half_width}.", detect=0.03, half_width=0.05),
        )
    for name, value in (("detect", detect), ("half_width", half_width), ("level", level)):
        if value is not None and not 0 < value < 1:
            raise InvalidValue(
                f"{name} must lie between 0 and 1, not {value:g}.",
                hint=f"{value:g}% is {value / 100:g}." if 1 < value < 100 else None,
            )
    if detect is None:
        assert half_width is not None
        return HalfWidth(half_width, level)
    if not 0.5 <= power < 1:
        raise InvalidValue(f"power must lie from 0.5 to below 1, not {power:g}.")
    return Detect(detect, level, power)


def _variance(
    difficulty: TaskSpread,
    metric: PlannedMetric,
    goal: Goal,
    pilot: Outcomes | None,
    against: Outcomes | None,
    correlation: float,
) -> VarianceByAttempts:
    """Of one task's value; for a comparison of the difference of two agents' values on it."""
    if isinstance(goal, HalfWidth):
        return lambda n: difficulty.components(metric, n)
    if not 0 <= correlation <= 1:
        raise InvalidValue(f"correlation must lie from 0 to 1, not {correlation:g}.")
    if against is None:

        def share_correlation(n: int) -> Components:
            alone = difficulty.components(metric, n)
            return Components(2 * alone.between * (1 - correlation), 2 * alone.within)

        return share_correlation
    if pilot is None:
        raise InvalidValue("against needs a pilot to be paired with.")
    for difference in find_score_difference(pilot, against, [metric]):
        raise NotComparable(
            f"the {metric} of the two pilots are different measures: {difference}.",
            differences=[difference.field],
            hint="Plan with two pilots that were graded alike, or for pass^k.",
        )
    other, _ = find_spread(against, metric)
    between = difficulty.lift_variance(pilot, other, against, metric)

    def measure_difference(n: int) -> Components:
        within = difficulty.components(metric, n).within + other.components(metric, n).within
        return Components(between, within)

    return measure_difference


def _price_per_attempt(pilot: Run | Outcomes | None) -> dict[str, float]:
    """Average cost and seconds of an attempt; without measures that were not recorded."""
    if not isinstance(pilot, Run):
        return {}
    sums = {name: pilot.measured(name) for name in ("cost", "seconds")}
    return {name: part.total / part.recorded for name, part in sums.items() if part is not None}


def _row(tasks: int, n: int, agents: int, price: dict[str, float]) -> PlanRow:
    total = tasks * n * agents
    cost, seconds = (
        None if name not in price else price[name] * total for name in ("cost", "seconds")
    )
    return PlanRow(n, tasks, total, cost, seconds)


def _goal_fields(goal: Goal) -> dict[str, Any]:
    return {"goal": goal.kind, "target": goal.target, "level": goal.level, "power": goal.power}


def _these_tasks_fields(difficulty: TaskSpread, metric: PlannedMetric, n: int) -> dict[str, Any]:
    parts = difficulty.components(metric, n)
    return {
        "metric": metric.name,
        "about": str(Population.THESE_TASKS),
        "value": difficulty.mean(metric),
        "between": parts.between,
        "within": parts.within,
    }


def _sufficient_attempts(variance: VarianceByAttempts, fewest: int) -> int | None:
    """The fewest attempts at which within-task variance is a tenth of that between tasks."""

    def suffices(n: int) -> bool:
        parts = variance(n)
        return parts.total <= _SAVES_LITTLE * parts.between

    high = fewest
    while not suffices(high):
        high *= 2
        if high > _MOST_ATTEMPTS:
            return None
    low = max(fewest, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return high


# -- assumptions in words ----------------------------------------------------------------------


def _pairing_notes(goal: Goal, against: Outcomes | None, correlation: float) -> Iterator[str]:
    if goal.agents == 1:
        return
    yield "both agents attempt the same tasks, and the lift is judged task by task"
    if against is not None:
        yield "how far the lift differs from task to task is measured on the two pilots"
    else:
        yield (
            f"assumed: the two agents' success on tasks correlates {correlation:g}; a pilot of the "
            "second agent measures it"
        )


def _uncertainty_notes(
    outcomes: Outcomes | None, cluster: str | None, spread: PilotVariance
) -> Iterator[str]:
    if outcomes is None:
        return
    clusters = task_clusters(outcomes, cluster)
    units = counted(len(outcomes), "task")
    if clusters is not None:
        units = f"{counted(clusters.count, 'cluster')} of {cluster}"
        yield from clusters.warnings()
    if spread.has_redraws:
        yield (
            f"planned for the variance that {_CAUTION:.0%} of the redraws of the pilot's {units} "
            "stay below"
        )
    else:
        yield f"the pilot's variance is taken as it is: {units} cannot say how uncertain it is"


def _price_notes(price: dict[str, float], goal: Goal | None) -> Iterator[str]:
    if price:
        both = "; the second agent is taken to cost the same" if goal and goal.agents == 2 else ""
        yield f"{' and '.join(price)} as the pilot's attempts had on average{both}"


# -- these tasks -------------------------------------------------------------------------------


def _tail(goal: Goal, *, gate: bool) -> float:
    """The error beyond an end: a gate has one end, a claim shares its error with single tasks."""
    return (1 - goal.level) / (2 if gate or goal.agents == 1 else 4)


def _equal_attempts(
    pilot: Run | Outcomes, metric: PlannedMetric, goal: Goal, attempts: int | None, *, gate: bool
) -> Plan:
    """Attempts per task, the same at each, at which the goal is reached on the pilot's tasks."""
    outcomes = as_outcomes(pilot)
    tasks = len(outcomes)
    difficulty, basis = find_spread(outcomes, metric)
    price = _price_per_attempt(pilot)

    def reach(n: int) -> float:
        noise = math.sqrt(goal.agents * difficulty.components(metric, n).within / tasks)
        return goal.reach_with_noise(noise, _tail(goal, gate=gate), _LIMITS_COST)

    fewest = next((n for n in _attempt_counts(metric.k) if reach(n) <= goal.target), None)
    if fewest is None:
        raise InvalidValue(
            f"no number of attempts up to {_MOST_ATTEMPTS:,} reaches {goal.target:g} on these "
            f"{tasks:,} tasks.",
            hint="Ask for a larger target, or add tasks.",
        )
    sizes = sorted({fewest, *([attempts] if attempts else [])})
    pilot_attempts = median_attempts(outcomes)
    return Plan(
        **_goal_fields(goal),
        **_these_tasks_fields(difficulty, metric, fewest),
        rows=tuple(_row(tasks, n, goal.agents, price) for n in sizes),
        fewest_tasks=tasks,
        enough_attempts=fewest,
        pilot_reaches=reach(pilot_attempts) if pilot_attempts >= metric.k else None,
        assumptions=(*basis, *_price_notes(price, goal)),
        gate=gate,
    )


def _attempt_counts(k: int) -> Iterator[int]:
    n = k
    while n <= _MOST_ATTEMPTS:
        yield n
        n += max(1, n // 50)


def _detectable_drop(
    outcomes: Outcomes, metric: PlannedMetric, level: float, power: float
) -> float | None:
    """The drop that a run of the pilot's size shows with the wanted power."""
    n = median_attempts(outcomes)
    if n < metric.k:
        return None
    goal = Detect(0.5, level, power)
    within = find_spread(outcomes, metric)[0].components(metric, n).within
    noise = math.sqrt(2 * within / len(outcomes))
    drop = goal.reach_with_noise(noise, _tail(goal, gate=True), _LIMITS_COST)
    return min(math.ceil(drop * 1000) / 1000, 0.999)


def _even_total(allocator: Allocator, half_width: float, guess: int) -> int:
    """Attempts at which equal n is expected to give the half-width."""
    tasks = allocator.count
    low, high, n = allocator.least - 1, _MOST_ATTEMPTS, max(round(guess / tasks), allocator.least)
    for _ in range(_ROUNDS):
        width = allocator.half_width(allocator.uniform(n * tasks))
        low, high = (low, n) if width <= half_width else (n, high)
        if high - low <= 1:
            break
        next_n = math.ceil(n * (width / half_width) ** 2)
        n = next_n if low < next_n < high else (low + high + 1) // 2
    return high * tasks


def _allocate_for_goal(
    allocator: Allocator, goal: Goal, even_total: int, *, gate: bool
) -> Allocation:
    """The fewest attempts whose standard error gives the goal, or ``even_total`` at equal n.

    Half-widths are those of the interval itself, on runs drawn from the posterior. For a lift, the
    interval costs more than normal theory by a factor that is known for equal n
    (``_LIMITS_COST``); how much more it costs for a design is measured in the same way.
    """
    tail = _tail(goal, gate=gate)
    even = allocator.uniform(even_total)
    if not allocator.noise(even):
        return allocator.summarize(even, even_total)

    def width(design: IntArray) -> float:
        if isinstance(goal, HalfWidth):
            return allocator.half_width(design)
        return allocator.lift_half_width(design, tail)

    even_ratio = width(even) / allocator.noise(even)

    def reach(design: IntArray) -> float:
        if isinstance(goal, HalfWidth):
            return width(design)
        noise = allocator.noise(design)
        cost = max(width(design) / noise / even_ratio, 1.0) if noise else 1.0
        return goal.reach_with_noise(math.sqrt(2) * noise, tail, _LIMITS_COST * cost)

    designs = [even]
    for floor in allocator.floors(even_total):
        low, high = floor * allocator.count - 1, even_total
        total = even_total
        for _ in range(_ROUNDS):
            design = allocator.allocate(total, floor)
            target_reached = reach(design)
            if target_reached <= goal.target:
                high = total
                designs.append(design)
            else:
                low = total
            if high - low <= max(0.02 * high, 1):
                break
            # Three digits: the last ones of an interval differ by machine.
            guess = math.ceil(total * (float(f"{target_reached:.3g}") / goal.target) ** 2)
            total = guess if low < guess < high else (low + high + 1) // 2
    best = min(designs, key=lambda design: int(design.sum()))
    return allocator.summarize(best, even_total)
