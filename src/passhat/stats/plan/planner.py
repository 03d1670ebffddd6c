"""plan(): from a pilot, or from stated assumptions, to tasks x attempts.

A pilot of 30 tasks gives its own variance only roughly, and a plan that trusts it
promises 80% power and gives 66%. So the variance is redrawn with the pilot's tasks (or clusters of
tasks), and the plan is made for a large one among the redraws: the promised power is then reached
by four pilots in five.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Unpack

import numpy as np

from passhat._display import counted, percent
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.clusters import task_clusters
from passhat.stats.compare.lift import expected_bound
from passhat.stats.compare.pairing import common_tasks, restricted
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import CountMetric, Metric, PassHat
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Completion, Outcomes, Run
from passhat.stats.plan.allocation import Allocation, Allocator
from passhat.stats.plan.difficulty import Components, Difficulty
from passhat.stats.plan.plan_result import Plan, PlanRow
from passhat.stats.terms import OptionName, Population, TermOptions, Terms

__all__ = ["Detect", "Goal", "HalfWidth", "plan"]


_MOST_TASKS = 10**9


@dataclass(frozen=True, slots=True)
class HalfWidth:
    """The goal to estimate an agent's value to within ``target``, by normal theory."""

    target: float
    level: float
    power: None = None

    kind: ClassVar[str] = "half-width"
    approximation: ClassVar[str] = (
        "normal approximation: near 0 and 1, and below about 20 tasks, the intervals passhat "
        "reports are wider"
    )

    @property
    def _quantile(self) -> float:
        from scipy.special import ndtri

        return float(ndtri((1 + self.level) / 2))

    def tasks(self, variance: float) -> int:
        """With Guenther's correction for a variance that is estimated."""
        outer = self._quantile
        return max(2, math.ceil(outer**2 * variance / self.target**2 + outer**2 / 2))

    def reached(self, variance: float, tasks: int) -> float:
        """The half-width that this many tasks give."""
        outer = self._quantile
        return outer * math.sqrt(variance / max(tasks - outer**2 / 2, 1.0))

    def reached_with_noise(self, noise: float, tail: float, cost: float) -> float:
        """The half-width of an interval whose point has this standard error."""
        return cost * _quantile(tail) * noise


@dataclass(frozen=True, slots=True)
class Detect:
    """The goal to detect a lift of ``target`` between two agents on the same tasks.

    Seen means what ``passhat compare`` calls an improvement: the interval of the lift on new tasks
    lies above zero. The mean of the differences is taken to be normal, their spread
    to be that of the pilot.
    """

    target: float
    level: float
    power: float

    kind: ClassVar[str] = "detect"
    approximation: ClassVar[str] = (
        "seen means that the interval of passhat compare lies above zero; the mean of the "
        "differences is taken to be normal"
    )

    def tasks(self, variance: float) -> int:
        """The fewest tasks with the wanted power."""
        return _smallest(lambda tasks: self._power(self.target, variance, tasks) >= self.power)

    def reached(self, variance: float, tasks: int) -> float:
        """The smallest lift that this many tasks would show with the wanted power."""
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            enough = self._power(middle, variance, tasks) >= self.power
            low, high = (low, middle) if enough else (middle, high)
        return high

    def reached_with_noise(self, noise: float, tail: float, cost: float) -> float:
        """The smallest lift that is seen with the wanted power, given its standard error."""
        return (cost * _quantile(tail) + _quantile(1 - self.power)) * noise

    def power_with(self, variance: float, tasks: int) -> float:
        """The chance to see the target with this many tasks."""
        return self._power(self.target, variance, tasks)

    def _power(self, lift: float, variance: float, tasks: int) -> float:
        from scipy.special import ndtr

        margin = expected_bound(tasks, lift, variance, (1 - self.level) / 2)
        noise = math.sqrt(variance * tasks) / (tasks + 1)
        return float(margin > 0) if noise == 0 else float(ndtr(margin / noise))


Goal = HalfWidth | Detect


def _quantile(tail: float) -> float:
    """The normal quantile that leaves ``tail`` above it."""
    from scipy.special import ndtri

    return -float(ndtri(tail))


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest number from 2 on that is enough, by doubling and halving."""
    low, high = 1, 2
    while not enough(high) and high < _MOST_TASKS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


_TAKES: tuple[OptionName, ...] = ("level", "about", "cluster")
_STEPS = (1, 1.5, 2, 3, 4, 8, 16)
"""Attempts per task that a plan lists, in multiples of k."""

_SAVES_LITTLE = 1.1
_MOST_ATTEMPTS = 1024
_REDRAWS = 400
_FEWEST_REDRAWN = 3
"""Tasks of a pilot that are redrawn; one or two say nothing about their spread."""
_CAUTION = 0.8
"""The quantile of the redrawn variance that is planned for."""
_SEED = 20240712

_Variance = Callable[[int], Components]
"""The variance of one task's value (or difference) as a function of attempts per task."""


@dataclass(frozen=True, slots=True)
class _Pilot:
    """The basis of a plan: the variance between tasks, and its uncertainty.

    ``redrawn`` are factors on the variance, one for each redraw of the pilot's tasks; ``design`` is
    the factor that clusters of tasks add to the variance of an average over tasks.
    """

    variance: _Variance
    redrawn: FloatArray
    design: float = 1.0

    @property
    def is_redrawn(self) -> bool:
        """Whether the pilot's tasks say how uncertain the variance is."""
        return len(self.redrawn) > 1

    def total(self, n: int, quantile: float | None = None) -> float:
        """The variance of one task's value from n attempts, at a quantile of the redraws."""
        factor = 1.0 if quantile is None else max(float(np.quantile(self.redrawn, quantile)), 0.0)
        return factor * self.design * self.variance(n).total


def plan(
    pilot: Run | Outcomes | None = None,
    terms: Terms | None = None,
    *,
    metric: str | Metric = "pass^1",
    detect: float | None = None,
    half_width: float | None = None,
    power: float = 0.8,
    against: Run | Outcomes | None = None,
    mean: float | None = None,
    icc: float | None = None,
    correlation: float = 0.75,
    attempts: int | None = None,
    gate: bool = False,
    allocate: bool = False,
    budget: int | None = None,
    most: int | None = None,
    **options: Unpack[TermOptions],
) -> Plan:
    """Tasks and attempts needed to detect a lift, or to estimate a value precisely.

    Parameters
    ----------
    pilot : Run or Outcomes, optional
        A run with two or more attempts per task. Without it, state ``mean`` and ``icc``.
    terms : Terms, optional
        All options in one object; keywords change single ones.
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
    about : {"new tasks", "these tasks"}, optional
        New tasks by default: how many tasks. These tasks: how many attempts at the pilot's tasks.
    cluster : str, optional
        A label of the pilot's tasks; those that share its value are not independent.
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
    gate : bool
        Plan for ``passhat gate NEW --against BASELINE``: attempts per task at which a drop of
        ``detect`` (by default the drop that a run of the pilot's size shows) is called a
        regression; the same at every task or allocated, whichever needs fewer.
    allocate : bool
        Give attempts to the tasks where they decide: a number for each of the pilot's tasks, in
        ``allocation`` of the result. About these tasks.
    budget : int, optional
        With ``allocate``, instead of ``detect`` and ``half_width``: attempts over all tasks; as
        many as the pilot has by default.
    most : int, optional
        With ``allocate``: the most attempts at one task.

    Examples
    --------
    >>> plan(metric="pass^4", half_width=0.05, mean=0.7, icc=0.4).cheapest
    PlanRow(attempts=4, tasks=383, total_attempts=1532, cost=None, seconds=None)
    """
    terms = Terms.from_options(options, terms, takes=_TAKES)
    chosen = _count_metric(metric)
    if gate and detect is None and half_width is None and pilot is not None:
        detect = _resolved_drop(_outcomes(pilot), chosen, terms.level, power)
    if allocate or budget is not None or most is not None:
        _refuse_unallocated(pilot, terms, against, attempts, budget, most, allocate=allocate)
        assert pilot is not None
        if detect is None and half_width is None:
            return _with_budget(pilot, chosen, terms.level, budget, most)
        if budget is not None:
            raise InvalidValue(
                "a plan needs one goal: --budget, or --detect or --half-width, not both."
            )
        terms = replace(terms, population=Population.THESE_TASKS)
    goal = _goal(detect, half_width, power, terms.level)
    if attempts is not None and attempts < chosen.k:
        raise InvalidValue(
            f"{chosen} needs at least {counted(chosen.k, 'attempt')} per task, not {attempts}."
        )
    _refuse_useless(goal, terms, pilot, gate=gate)
    if against is not None and (gate or terms.population is Population.THESE_TASKS):
        raise InvalidValue(
            "against measures how the lift differs between tasks, which plays no part on these "
            "tasks.",
            hint="Leave out --against here.",
        )
    difficulty, basis = _difficulty(pilot, mean, icc)
    variance = _variance(difficulty, chosen, goal, pilot, against, correlation)
    known = _known(variance, chosen, goal, pilot, against, terms.cluster)
    agents = 2 if goal.kind == "detect" else 1
    price = _per_attempt(pilot)
    if gate or terms.population is Population.THESE_TASKS:
        assert pilot is not None
        made = _on_these_tasks(
            difficulty, chosen, goal, _outcomes(pilot), price, attempts, basis, gate=gate
        )
        return _allocated(made, pilot, chosen, goal, most, gate=gate, asked=allocate)
    notes = (
        basis,
        *_pairing_text(goal, pilot, against, correlation),
        *_uncertainty_text(pilot, terms.cluster, known),
    )
    listed = _listed_attempts(chosen.k, pilot, attempts)
    caution = None if pilot is None else _CAUTION
    rows = tuple(_row(goal, known.total(n, caution), n, agents, price) for n in listed)
    first = variance(listed[0])
    cheapest = min(rows, key=lambda row: (row.total_attempts, row.tasks))
    return Plan(
        metric=chosen.name,
        goal=goal.kind,
        target=goal.target,
        level=terms.level,
        power=goal.power,
        value=difficulty.mean(chosen),
        between=first.between,
        within=first.within,
        rows=rows,
        fewest_tasks=goal.tasks(known.design * first.between),
        enough_attempts=_enough_attempts(variance, listed[0]),
        pilot_reaches=_pilot_reaches(goal, known, chosen, pilot),
        assumptions=(*notes, goal.approximation, *_price_notes(price, agents)),
        power_range=_power_range(goal, known, cheapest) if known.is_redrawn else None,
        tasks_range=None
        if not known.is_redrawn
        else (
            goal.tasks(known.total(cheapest.attempts, 0.1)),
            goal.tasks(known.total(cheapest.attempts, 0.9)),
        ),
    )


def half_widths(
    pilot: Run | Outcomes, metric: CountMetric, sizes: Iterable[tuple[int, int]], level: float
) -> list[float]:
    """Half the width to expect of runs of other sizes, (tasks, attempts per task).

    For the same cautious variance as a plan: its "a run of the pilot's size gives" is one of them.
    """
    goal = HalfWidth(0.5, level)
    difficulty, _ = _difficulty(pilot, None, None)
    variance = _variance(difficulty, metric, goal, pilot, None, 0.0)
    known = _known(variance, metric, goal, pilot, None, None)
    return [goal.reached(known.total(n, _CAUTION), tasks) for tasks, n in sizes]


def _refuse_useless(goal: Goal, terms: Terms, pilot: Run | Outcomes | None, *, gate: bool) -> None:
    these = gate or terms.population is Population.THESE_TASKS
    if gate and goal.kind != "detect":
        raise InvalidValue(
            "a gate is planned for a drop.", hint="For example --gate --detect 0.05."
        )
    if gate and terms.population is Population.NEW_TASKS:
        raise InvalidValue("the gate against a baseline is about these tasks.")
    if these and pilot is None:
        raise InvalidValue(
            "about these tasks a plan needs a pilot of them.",
            hint="Run each task twice or more, and give that run as SOURCE.",
        )
    if these and terms.cluster is not None:
        raise InvalidValue("clusters matter for new tasks only.", hint="Leave out --cluster here.")
    if terms.cluster is not None and pilot is None:
        raise InvalidValue("clusters are a label of a pilot's tasks; there is no pilot.")


def _power_range(goal: Goal, known: _Pilot, row: PlanRow) -> tuple[float, float] | None:
    """The power that the row gives if the variance is a large or a small one of the redraws."""
    if not isinstance(goal, Detect):
        return None
    low, high = (goal.power_with(known.total(row.attempts, q), row.tasks) for q in (0.9, 0.1))
    return low, high


# -- these tasks -------------------------------------------------------------------------------

_LIMITS_COST = 1.3
"""The interval on these tasks is 1.22 times as wide as normal theory has it, measured through the
gate (docs/benchmarks/gate.md); the rest is for the luck of a pilot of 30 tasks."""


def _on_these_tasks(
    difficulty: Difficulty,
    metric: CountMetric,
    goal: Goal,
    outcomes: Outcomes,
    price: dict[str, float],
    attempts: int | None,
    basis: str,
    *,
    gate: bool,
) -> Plan:
    """Attempts per task at which the goal is reached on exactly the pilot's tasks."""
    tasks = len(outcomes)
    agents = 2 if goal.kind == "detect" else 1
    tail = (1 - goal.level) / (2 if gate or agents == 1 else 4)

    def reaches(n: int) -> float:
        noise = math.sqrt(agents * difficulty.components(metric, n).within / tasks)
        return goal.reached_with_noise(noise, tail, _LIMITS_COST)

    needed = next((n for n in _attempt_counts(metric.k) if reaches(n) <= goal.target), None)
    if needed is None:
        raise InvalidValue(
            f"no number of attempts up to {_MOST_ATTEMPTS:,} reaches {goal.target:g} on these "
            f"{tasks:,} tasks.",
            hint="Ask for a larger target, or add tasks.",
        )
    listed = sorted({needed, *([attempts] if attempts else [])})
    rows = tuple(_fixed_row(tasks, n, agents, price) for n in listed)
    pilot_n = int(np.median(outcomes.n))
    parts = difficulty.components(metric, needed)
    return Plan(
        metric=metric.name,
        goal=goal.kind,
        target=goal.target,
        level=goal.level,
        power=goal.power,
        value=difficulty.mean(metric),
        between=parts.between,
        within=parts.within,
        rows=rows,
        fewest_tasks=tasks,
        enough_attempts=needed,
        pilot_reaches=reaches(pilot_n) if pilot_n >= metric.k else None,
        assumptions=(basis, *_price_notes(price, agents)),
        about=str(Population.THESE_TASKS),
        gate=gate,
    )


def _resolved_drop(
    outcomes: Outcomes, metric: CountMetric, level: float, power: float
) -> float | None:
    """The drop that a run of the pilot's size shows with the wanted power."""
    n = int(np.median(outcomes.n))
    if n < metric.k:
        return None
    goal = Detect(0.5, level, power)
    noise = math.sqrt(
        2 * Difficulty.from_outcomes(outcomes).components(metric, n).within / len(outcomes)
    )
    drop = goal.reached_with_noise(noise, (1 - level) / 2, _LIMITS_COST)
    return min(math.ceil(drop * 1000) / 1000, 0.999)


# -- n per task ----------------------------------------------------------------------------------

_ROUNDS = 6
"""Corrections of the total until a design reaches its goal."""


def _refuse_unallocated(
    pilot: Run | Outcomes | None,
    terms: Terms,
    against: Run | Outcomes | None,
    attempts: int | None,
    budget: int | None,
    most: int | None,
    *,
    allocate: bool,
) -> None:
    if not allocate:
        name = "budget" if budget is not None else "most"
        raise InvalidValue(
            f"{name} is for attempts that differ by task.", hint="Add --allocate (allocate=True)."
        )
    if pilot is None:
        raise InvalidValue(
            "attempts per task are allocated by an earlier run of the same tasks, and none is "
            "given.",
            hint="Run each task 4 times or more, and give that run as SOURCE.",
        )
    if terms.population is Population.NEW_TASKS:
        raise InvalidValue(
            "an allocation makes a number about these tasks more certain; about new tasks only "
            "more tasks do.",
            hint="Leave out --about new-tasks, or --allocate.",
        )
    if against is not None or attempts is not None or terms.cluster is not None:
        raise InvalidValue("--against, --attempts and --cluster play no part in an allocation.")
    for name, value in (("budget", budget), ("most", most)):
        if value is not None and (isinstance(value, bool) or value < 1):
            raise InvalidValue(f"{name} must be a whole number of at least 1, not {value!r}.")


def _with_budget(
    pilot: Run | Outcomes, metric: CountMetric, level: float, budget: int | None, most: int | None
) -> Plan:
    """The most that a number of attempts gives; by default as many as the pilot has."""
    outcomes = _outcomes(pilot)
    difficulty, basis = _difficulty(pilot, None, None)
    allocator = Allocator(pilot, metric, level, most, difficulty)
    total = budget if budget is not None else int(outcomes.attempts)
    made = allocator.allocation(total)
    each = max(round(total / len(outcomes)), metric.k)
    price = _per_attempt(pilot)
    parts = difficulty.components(metric, each)
    return Plan(
        metric=metric.name,
        goal="budget",
        target=float(total),
        level=level,
        power=None,
        value=difficulty.mean(metric),
        between=parts.between,
        within=parts.within,
        rows=(_fixed_row(len(outcomes), each, 1, price),),
        fewest_tasks=len(outcomes),
        enough_attempts=None,
        pilot_reaches=None,
        assumptions=(basis, *_price_notes(price, 1)),
        about=str(Population.THESE_TASKS),
        allocation=made,
    )


def _allocated(
    made: Plan,
    pilot: Run | Outcomes,
    metric: CountMetric,
    goal: Goal,
    most: int | None,
    *,
    gate: bool,
    asked: bool,
) -> Plan:
    """The plan with attempts per task, if requested, or if a gate then needs fewer of them."""
    if not asked and not gate:
        return made
    allocator = Allocator(pilot, metric, goal.level, most)
    needed = made.cheapest.attempts * made.cheapest.tasks
    if isinstance(goal, HalfWidth):
        # The interval itself decides, for equal n as for the design that is compared with it.
        needed = _even_total(allocator, goal.target, needed)
        each = round(needed / allocator.count)
        made = replace(made, rows=(_fixed_row(allocator.count, each, 1, _per_attempt(pilot)),))
    design = _for_goal(allocator, goal, needed, gate=gate)
    if design.total >= needed and not asked:
        return made
    return replace(made, allocation=design)


def _even_total(allocator: Allocator, half_width: float, guess: int) -> int:
    """Attempts at which equal n is expected to give the half-width."""
    tasks = allocator.count
    low, high, n = allocator.least - 1, _MOST_ATTEMPTS, max(round(guess / tasks), allocator.least)
    for _ in range(_ROUNDS):
        width = allocator.half_width(allocator.uniform(n * tasks))
        low, high = (low, n) if width <= half_width else (n, high)
        if high - low <= 1:
            break
        attempts_needed = math.ceil(n * (width / half_width) ** 2)
        n = attempts_needed if low < attempts_needed < high else (low + high + 1) // 2
    return high * tasks


def _for_goal(allocator: Allocator, goal: Goal, needed: int, *, gate: bool) -> Allocation:
    """The fewest attempts whose standard error gives the goal, or ``needed`` at equal n.

    Half-widths are those of the interval itself, on runs drawn from the posterior. For a lift, the
    interval costs more than normal theory by a factor that is known for equal n
    (``_LIMITS_COST``); how much more it costs for a design is measured in the same way.
    """
    agents = 2 if goal.kind == "detect" else 1
    tail = (1 - goal.level) / (2 if gate or agents == 1 else 4)
    even = allocator.uniform(needed)
    if not allocator.noise(even):
        return allocator.described(even, needed)

    def width(design: IntArray) -> float:
        if isinstance(goal, HalfWidth):
            return allocator.half_width(design)
        return allocator.lift_half_width(design, tail)

    plain = width(even) / allocator.noise(even)

    def reached(design: IntArray) -> float:
        if isinstance(goal, HalfWidth):
            return width(design)
        noise = allocator.noise(design)
        cost = max(width(design) / noise / plain, 1.0) if noise else 1.0
        return goal.reached_with_noise(math.sqrt(agents) * noise, tail, _LIMITS_COST * cost)

    designs = [even]
    for floor in allocator.floors(needed):
        low, high = floor * allocator.count - 1, needed
        total = needed
        for _ in range(_ROUNDS):
            design = allocator.allocated(total, floor)
            reach = reached(design)
            if reach <= goal.target:
                high = total
                designs.append(design)
            else:
                low = total
            if high - low <= max(0.02 * high, 1):
                break
            # Three digits: the last ones of an interval differ by machine.
            guess = math.ceil(total * (float(f"{reach:.3g}") / goal.target) ** 2)
            total = guess if low < guess < high else (low + high + 1) // 2
    best = min(designs, key=lambda design: int(design.sum()))
    return allocator.described(best, needed)


def _attempt_counts(k: int) -> Iterator[int]:
    n = k
    while n <= _MOST_ATTEMPTS:
        yield n
        n += max(1, n // 50)


def _fixed_row(tasks: int, n: int, agents: int, price: dict[str, float]) -> PlanRow:
    total = tasks * n * agents
    cost, seconds = price.get("cost"), price.get("seconds")
    return PlanRow(
        n,
        tasks,
        total,
        None if cost is None else cost * total,
        None if seconds is None else seconds * total,
    )


# -- the pilot's uncertainty -------------------------------------------------------------------


def _known(
    variance: _Variance,
    metric: CountMetric,
    goal: Goal,
    pilot: Run | Outcomes | None,
    against: Run | Outcomes | None,
    cluster: str | None,
) -> _Pilot:
    """The variance with its redraws: the pilot's tasks, or clusters of them, drawn again."""
    if pilot is None:
        return _Pilot(variance, np.ones(1))
    values, labels = _pilot_values(_outcomes(pilot), against, metric, goal, cluster)
    deviations = values - values.mean()
    member: IntArray = np.arange(len(values))
    if labels is not None:
        _, member = np.unique(np.asarray(labels), return_inverse=True)
        if int(member.max()) == 0:
            raise InvalidValue(
                f"all tasks share one {cluster}, so nothing is known about others.",
                hint="Leave --cluster out to plan for tasks of this one cluster.",
            )
    sums = np.bincount(member, weights=deviations)
    if np.ptp(values) > 0:
        design = max(1.0, float(sums @ sums) / float(deviations @ deviations))
    else:
        # Nothing is known of how alike the tasks of a cluster are: take them for copies.
        sizes = np.bincount(member)
        return _Pilot(variance, np.ones(1), float(sizes @ sizes) / len(values))
    if len(values) < _FEWEST_REDRAWN:
        return _Pilot(variance, np.ones(1), design)
    rng = np.random.default_rng(_SEED)
    weights = rng.dirichlet(np.ones(len(sums) + 1), _REDRAWS)
    # One unseen task (or cluster) as far from the mean as any that was seen, and T / (T - 1).
    squares = np.append(sums**2, float((sums**2).max()))
    mean_square = float((sums**2).mean())
    drawn = weights @ squares * len(sums) / max(len(sums) - 1, 1)
    redrawn = drawn / mean_square if mean_square > 0 else np.ones(1)  # clusters that are all alike
    return _Pilot(variance, np.asarray(redrawn, np.float64), design)


def _pilot_values(
    pilot: Outcomes,
    against: Run | Outcomes | None,
    metric: CountMetric,
    goal: Goal,
    cluster: str | None,
) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Values task by task, or differences of two pilots, and the clusters of these tasks.

    Of the tasks with k attempts; where they are too few, the pass rate represents the metric.
    """
    sides = [pilot]
    if goal.kind == "detect" and against is not None:
        shared = common_tasks((pilot, _outcomes(against)), ("the pilot", "the other pilot"))
        sides = [restricted(side, shared) for side in (pilot, _outcomes(against))]
    attempts = np.min([side.counts(Completion.AS_FAILED)[0] for side in sides], axis=0)
    if int((attempts >= metric.k).sum()) < _FEWEST_REDRAWN:
        metric = PassHat(1)
    sides = [side.take(attempts >= metric.k) for side in sides]
    clusters = task_clusters(sides[0], cluster)
    first, *second = (values_by_task(side, metric, Completion.AS_FAILED) for side in sides)
    return second[0] - first if second else first, None if clusters is None else clusters.labels


def _uncertainty_text(
    pilot: Run | Outcomes | None, cluster: str | None, known: _Pilot
) -> Iterator[str]:
    if pilot is None:
        return
    outcomes = _outcomes(pilot)
    clusters = task_clusters(outcomes, cluster)
    drawn = counted(len(outcomes), "task")
    if clusters is not None:
        drawn = f"{counted(clusters.count, 'cluster')} of {cluster}"
        yield from clusters.warnings()
    if not known.is_redrawn:
        yield f"the pilot's variance is taken as it is: {drawn} cannot say how uncertain it is"
        return
    yield (
        f"planned for the variance that {_CAUTION:.0%} of the redraws of the pilot's {drawn} stay "
        "below"
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
        f"no pilot: {percent(mean, 0)} of attempts pass, ICC {icc:g}, success rates follow a Beta",
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
            alone = difficulty.components(metric, n)
            return Components(2 * alone.between * (1 - correlation), 2 * alone.within)

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
    places_a, places_b = (np.array(side) for side in zip(*pairs, strict=True))
    x = values_by_task(a.take(places_a), metric, Completion.AS_FAILED)
    y = values_by_task(b.take(places_b), metric, Completion.AS_FAILED)
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
    """Average cost and seconds of an attempt; without measures that were not recorded."""
    if not isinstance(pilot, Run):
        return {}
    sums = {name: pilot.measured(name) for name in ("cost", "seconds")}
    return {name: part.total / part.recorded for name, part in sums.items() if part is not None}


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
    return _fixed_row(goal.tasks(variance), attempts, agents, price)


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
    goal: Goal, known: _Pilot, metric: CountMetric, pilot: Run | Outcomes | None
) -> float | None:
    if pilot is None:
        return None
    outcomes = _outcomes(pilot)
    n = int(np.median(outcomes.n))
    return goal.reached(known.total(n, _CAUTION), len(outcomes)) if n >= metric.k else None
