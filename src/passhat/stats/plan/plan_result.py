"""A plan: its goal, the tasks and attempts that are enough, and its assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from passhat._display import counted, percent
from passhat._serialize import Screen
from passhat.stats.arrays import special
from passhat.stats.compare.lift import expected_bound
from passhat.stats.plan.allocation import Allocation

SCHEMA = "passhat.plan/1"
_MOST_TASKS = 10**9


@dataclass(frozen=True, slots=True)
class HalfWidth:
    """The goal to estimate an agent's value to within ``target``, by normal theory."""

    target: float
    level: float
    power: None = None

    kind: ClassVar[str] = "half-width"
    agents: ClassVar[int] = 1
    approximation: ClassVar[str] = (
        "normal approximation: near 0 and 1, and below about 20 tasks, the intervals passhat "
        "reports are wider"
    )

    def tasks(self, variance: float) -> int:
        """With Guenther's correction for a variance that is estimated."""
        outer = _quantile((1 - self.level) / 2)
        return max(2, math.ceil(outer**2 * variance / self.target**2 + outer**2 / 2))

    def reach(self, variance: float, tasks: int) -> float:
        """The half-width that this many tasks give."""
        outer = _quantile((1 - self.level) / 2)
        return outer * math.sqrt(variance / max(tasks - outer**2 / 2, 1.0))

    def reach_with_noise(self, noise: float, tail: float, cost: float) -> float:
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
    agents: ClassVar[int] = 2
    approximation: ClassVar[str] = (
        "seen means that the interval of passhat compare lies above zero; the mean of the "
        "differences is taken to be normal"
    )

    def tasks(self, variance: float) -> int:
        """The fewest tasks with the wanted power."""
        return _smallest(lambda tasks: self._power(self.target, variance, tasks) >= self.power)

    def reach(self, variance: float, tasks: int) -> float:
        """The smallest lift that this many tasks would show with the wanted power."""
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            is_seen = self._power(middle, variance, tasks) >= self.power
            low, high = (low, middle) if is_seen else (middle, high)
        return high

    def reach_with_noise(self, noise: float, tail: float, cost: float) -> float:
        """The smallest lift that is seen with the wanted power, given its standard error."""
        return (cost * _quantile(tail) + _quantile(1 - self.power)) * noise

    def power_at(self, variance: float, tasks: int) -> float:
        """The chance to see the target with this many tasks."""
        return self._power(self.target, variance, tasks)

    def _power(self, lift: float, variance: float, tasks: int) -> float:
        margin = expected_bound(tasks, lift, variance, (1 - self.level) / 2)
        noise = math.sqrt(variance * tasks) / (tasks + 1)
        return float(margin > 0) if noise == 0 else float(special.ndtr(margin / noise))


Goal = HalfWidth | Detect


def _quantile(tail: float) -> float:
    """The normal quantile that leaves ``tail`` above it."""
    return -float(special.ndtri(tail))


def _smallest(suffices: Callable[[int], bool]) -> int:
    """The smallest number from 2 on that is enough, by doubling and halving."""
    low, high = 1, 2
    while not suffices(high) and high < _MOST_TASKS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A way to reach the goal."""

    attempts: int
    """Attempts per task."""
    tasks: int
    """Tasks needed."""
    total_attempts: int
    """Attempts over all tasks; for a comparison those of both agents."""
    cost: float | None
    seconds: float | None
    """``cost``, ``seconds``: cost of the attempts, and seconds one after the other; ``None`` when
    not recorded.
    """


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Screen):
    """Tasks and attempts needed.

    Attributes
    ----------
    metric : str
        The word of the grammar.
    goal : {"detect", "half-width", "budget"}
        A lift between two agents on the same tasks, the precision of one agent's value, or the
        most that so many attempts give.
    target : float
        The lift, the half-width, or the attempts.
    level, power : float or None
        Confidence, and the chance to find a lift of that size (``None`` for a half-width).
    value : float
        The value of the metric under the assumptions.
    between, within : float
        Variance of a task's value (for a comparison: of its difference) between tasks, and
        within tasks at ``rows[0].attempts`` attempts each.
    rows : tuple of PlanRow
        Ways to reach the goal, few attempts per task first.
    fewest_tasks : int
        Tasks needed even with endless attempts at each.
    enough_attempts : int or None
        Attempts per task beyond which more of them save less than a tenth of the tasks; ``None``
        when tasks are so alike that more attempts always help.
    pilot_reaches : float or None
        The lift or half-width that a run of the pilot's size gives.
    assumptions : tuple of str
        The assumptions of the plan.
    power_range : tuple of float or None
        The power of the cheapest way if the pilot's variance is a large or a small one of those
        that its tasks allow (9 redraws in 10 lie below, above).
    tasks_range : tuple of int or None
        The tasks of the cheapest way for the same variances.
    about : str
        New tasks, or these tasks: then the tasks are the pilot's, and attempts are planned.
    gate : bool
        Whether the plan is for the gate against a baseline.
    allocation : Allocation or None
        Attempts for each of the pilot's tasks, where that was requested or (for a gate) needs
        fewer attempts than the same number at every task.
    """

    SCHEMA = SCHEMA
    WRITTEN = (..., "cheapest", "sentence")

    metric: str
    goal: str
    target: float
    level: float
    power: float | None
    value: float
    between: float
    within: float
    rows: tuple[PlanRow, ...]
    fewest_tasks: int
    assumptions: tuple[str, ...]
    enough_attempts: int | None = None
    pilot_reaches: float | None = None
    power_range: tuple[float, float] | None = None
    tasks_range: tuple[int, int] | None = None
    about: str = "new tasks"
    gate: bool = False
    allocation: Allocation | None = None

    @property
    def cheapest(self) -> PlanRow:
        """The way with the fewest attempts overall."""
        return min(self.rows, key=lambda row: (row.total_attempts, row.tasks))

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.allocation is not None:
            return self._sentence_by_task(self.allocation)
        row = self.cheapest
        whose = " by each agent" if self.goal == "detect" else ""
        return (
            f"{self.goal_text}: {counted(row.tasks, 'task')} x "
            f"{counted(row.attempts, 'attempt')}{whose}, {counted(row.total_attempts, 'attempt')} "
            "in all."
        )

    def _sentence_by_task(self, allocation: Allocation) -> str:
        if self.goal == "budget":
            return allocation.sentence
        row = self.cheapest
        whose = " by each agent" if self.goal == "detect" else ""
        even = f"{counted(row.attempts, 'attempt')} at each of {counted(row.tasks, 'task')}"
        if allocation.is_uniform:
            return f"{self.goal_text}: {even}{whose}."
        return (
            f"{self.goal_text}: {counted(allocation.total, 'attempt')}{whose}, "
            f"{allocation.range_text} per "
            f"task, instead of {even} ({row.attempts * row.tasks:,})."
        )

    @property
    def goal_text(self) -> str:
        """The goal in words."""
        level, power = (f"{100 * (share or 0):g}%" for share in (self.level, self.power))
        these = " on these tasks" if self.about == "these tasks" else ""
        if self.gate:
            return (
                f"For the gate to be red with power {power} when {self.metric} drops by "
                f"{self.target:g} on these tasks"
            )
        if self.goal == "detect":
            return (
                f"To see a lift of {self.target:g} in {self.metric}{these} with power "
                f"{power} at level {level}"
            )
        return f"To know {self.metric}{these} to within {self.target:g} at level {level}"

    @property
    def attempts_text(self) -> str:
        """Where more attempts stop helping."""
        if self.about == "these tasks":
            return "about these tasks only attempts count; more tasks would answer another question"
        if self.enough_attempts is None:
            return (
                "the tasks are so alike that more attempts per task keep helping as much as more "
                "tasks do"
            )
        return (
            f"beyond {counted(self.enough_attempts, 'attempt')} per task more attempts save less "
            f"than a tenth of the tasks; at least {counted(self.fewest_tasks, 'task')} "
            f"{'is' if self.fewest_tasks == 1 else 'are'} needed, however many attempts each"
        )

    def remarks(self) -> Iterator[str]:
        """Yield what goes with the answer: limits, uncertainty, assumptions."""
        if self.allocation is not None:
            yield from self.allocation.remarks()
        else:
            yield self.attempts_text
        if self.tasks_range is not None:
            low, high = self.tasks_range
            power = ""
            if self.power_range is not None:
                ends = [percent(end, 0) for end in self.power_range]
                power = f", power {ends[0]} to {ends[1]}"
            yield (
                f"uncertainty of the pilot's variance: {low:,} to {high:,} tasks{power} "
                "(from 1 to 9 redraws in 10)"
            )
        if self.pilot_reaches is not None:
            what = "a lift of" if self.goal == "detect" else "a half-width of"
            yield f"a run of the pilot's size gives {what} {self.pilot_reaches:.3f}"
        yield from self.assumptions

    @property
    def title(self) -> str:
        return self.sentence
