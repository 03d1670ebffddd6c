"""A plan: tasks and attempts that are enough, and its assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from passhat._display import counted, percent
from passhat._serialize import Plain
from passhat.stats.plan.allocation import Allocation

__all__ = ["SCHEMA", "Plan", "PlanRow"]

SCHEMA = "passhat.plan/1"


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A way to reach the goal.

    Attributes
    ----------
    attempts : int
        Attempts per task.
    tasks : int
        Tasks needed.
    total_attempts : int
        Attempts over all tasks; for a comparison those of both agents.
    cost, seconds : float or None
        Cost of the attempts, and seconds one after the other; ``None`` when not recorded.
    """

    attempts: int
    tasks: int
    total_attempts: int
    cost: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Plan(Plain):
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
    enough_attempts: int | None
    pilot_reaches: float | None
    assumptions: tuple[str, ...]
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
            return self._allocated_sentence(self.allocation)
        row = self.cheapest
        each = " by each agent" if self.goal == "detect" else ""
        return (
            f"{self.goal_text}: {counted(row.tasks, 'task')} x "
            f"{counted(row.attempts, 'attempt')}{each}, {row.total_attempts:,} attempts in all."
        )

    def _allocated_sentence(self, made: Allocation) -> str:
        if self.goal == "budget":
            return made.sentence
        row = self.cheapest
        each = " by each agent" if self.goal == "detect" else ""
        even = f"{row.attempts:,} attempts at each of {counted(row.tasks, 'task')}"
        if made.is_uniform:
            return f"{self.goal_text}: {even}{each}."
        return (
            f"{self.goal_text}: {made.total:,} attempts{each}, {made.range_text} per task, instead "
            f"of {even} ({row.attempts * row.tasks:,})."
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

    def lines(self) -> Iterator[str]:
        """The plan as text."""
        yield self.sentence
        yield ""
        if self.allocation is not None:
            yield from self.allocation.lines()
        else:
            yield from _table(self.rows)
            yield ""
            yield f"- {self.attempts_text}"
        if self.tasks_range is not None:
            low, high = self.tasks_range
            power = ""
            if self.power_range is not None:
                ends = [percent(end, 0) for end in self.power_range]
                power = f", power {ends[0]} to {ends[1]}"
            yield (
                f"- uncertainty of the pilot's variance: {low:,} to {high:,} tasks{power} "
                "(from 1 to 9 redraws in 10)"
            )
        if self.pilot_reaches is not None:
            what = "a lift of" if self.goal == "detect" else "a half-width of"
            yield f"- a run of the pilot's size gives {what} {self.pilot_reaches:.3f}"
        yield from (f"- {assumption}" for assumption in self.assumptions)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _table(rows: tuple[PlanRow, ...]) -> Iterator[str]:
    """The rows as a table, without columns that were not recorded."""
    columns = [
        ("attempts per task", [f"{row.attempts:,}" for row in rows]),
        ("tasks", [f"{row.tasks:,}" for row in rows]),
        ("attempts in all", [f"{row.total_attempts:,}" for row in rows]),
    ]
    if rows[0].cost is not None:
        columns.append(("cost", [f"{row.cost:,.2f}" for row in rows]))
    if rows[0].seconds is not None:
        columns.append(("hours in a row", [f"{(row.seconds or 0) / 3600:,.1f}" for row in rows]))
    widths = [max(len(name), *map(len, cells)) for name, cells in columns]
    names = [name for name, _ in columns]
    for line in (names, *zip(*(cells for _, cells in columns), strict=True)):
        yield "  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
