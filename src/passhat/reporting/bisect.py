"""The search for the revision that broke it, as facts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from passhat._display import counted
from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.runner.revisions import Revision
from passhat.stats.changes import Found
from passhat.stats.compare.task_changes import TaskChange


class BisectStatus(StrEnum):
    """How a search ended."""

    FOUND = "found"
    """A revision is confirmed, or several that cannot be told apart because some do not run."""
    RANGE = "range"
    """A range is left: the budget is spent, or nothing more can be tried."""
    NO_DROP = "no drop"
    """The bad revision is not shown to be worse than the good one; nothing was searched."""
    STOPPED = "stopped"
    """Stopped by the user; the same command continues."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most attempts or dollars; ``None`` is without limit."""

    attempts: int | None = None
    dollars: float | None = None

    @classmethod
    def of_text(cls, text: str) -> Budget:
        """Read ``2000`` (attempts) or ``5usd``."""
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(usd)?\s*", text, re.IGNORECASE)
        if match is None or (not match[2] and not match[1].isdecimal()):
            raise InvalidValue(
                f"a budget is a number of attempts or dollars, not {text!r}.",
                hint="As in: --budget 2000, or --budget 5usd",
            )
        return cls(dollars=float(match[1])) if match[2] else cls(attempts=int(match[1]))

    def __str__(self) -> str:
        if self.dollars is not None:
            return f"${self.dollars:,.2f}"
        return "" if self.attempts is None else counted(self.attempts, "attempt")


@dataclass(frozen=True, slots=True)
class BisectStep(Plain):
    """Attempts at a revision; ``chance`` is that of containing the change, after them."""

    WRITTEN = ("revision", "run", "attempts", "passed", "tasks", "confirms", "chance")

    revision: str
    run: str
    attempts: int
    passed: int
    tasks: int
    confirms: bool
    chance: float | None


@dataclass(frozen=True, slots=True)
class MoreAttempts(Plain):
    """Attempts that show a drop as large as the one seen in 8 of 10 cases."""

    each: int
    total: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Bisection(Plain):
    """A search: the revisions, the attempts, and the answer."""

    SCHEMA = "passhat.bisect/1"

    agent: str
    suite: str
    status: BisectStatus
    revisions: tuple[Revision, ...]
    """The candidates in their order, then the good revision."""
    found: Found | None
    """The candidates that are left; ``None`` where nothing was searched."""
    parent: Revision | None
    """The revision before the one that is named."""
    tasks: tuple[TaskChange, ...]
    """Tasks that are shown to pass less often with the change than without."""
    steps: tuple[BisectStep, ...]
    skipped: tuple[tuple[Revision, str], ...]
    """Revisions that cannot run, and why."""
    attempts: int
    cost: float | None
    foreseen: int = 0
    """Attempts that the search was expected to take."""
    p_value: float | None = None
    more: MoreAttempts | None = None
    """Where no drop is shown: what would show it; ``None`` if no drop is seen at all."""
    budget: str = ""

    @property
    def left(self) -> Sequence[Revision]:
        """The revisions that may have broken it, in their order."""
        if self.found is None:
            return self.revisions[:-1]
        return [self.revisions[place] for place in self.found.candidates]

    def _as_dict(self) -> dict[str, object]:
        found = self.found
        return {
            "agent": self.agent,
            "suite": self.suite,
            "status": str(self.status),
            "good": self.revisions[-1],
            "bad": self.revisions[-2],
            "candidates": len(self.revisions) - 1,
            "left": list(self.left),
            "chance": None if found is None else found.chance,
            "confirmed": found is not None and found.is_confirmed,
            "e_value": None if found is None else found.capital,
            "parent": self.parent,
            "tasks": self.tasks,
            "steps": self.steps,
            "skipped": [{"revision": one, "why": why} for one, why in self.skipped],
            "attempts": self.attempts,
            "cost": self.cost,
            "foreseen": self.foreseen,
            "p_value": self.p_value,
            "more": self.more,
            "budget": self.budget or None,
        }
