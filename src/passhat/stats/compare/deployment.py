"""What an agent uses up: cost, seconds, steps, tokens. Never part of the evidence.

A lift says whether B is better; this says what B asks for it. The two stand on separate lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passhat.stats.outcomes import Run, Verdict

__all__ = ["Use", "Value", "deployment", "deployment_line"]

_ORDER = ("cost", "seconds", "steps", "tokens")
_FIGURES = 3


@dataclass(frozen=True, slots=True)
class Use:
    """What one run used of one thing, over the attempts that recorded it.

    ``per_solved`` is everything used divided by the attempts that passed, so failed attempts are
    paid for too; ``None`` when nothing passed.
    """

    attempts: int
    per_attempt: float
    per_solved: float | None

    def to_dict(self) -> dict[str, object]:
        return {
            "attempts": self.attempts,
            "per_attempt": self.per_attempt,
            "per_solved": self.per_solved,
        }


@dataclass(frozen=True, slots=True)
class Value:
    """One measure under both agents; ``None`` where a side did not record it."""

    measure: str
    a: Use | None
    b: Use | None

    def __str__(self) -> str:
        sides = (self.a, self.b)
        attempt = " against ".join(_figure(use.per_attempt if use else None) for use in sides)
        solved = " against ".join(_figure(use.per_solved if use else None) for use in sides)
        return f"{self.measure} per attempt {attempt}, per solved task {solved}"

    def to_dict(self) -> dict[str, object]:
        return {
            "measure": self.measure,
            "a": None if self.a is None else self.a.to_dict(),
            "b": None if self.b is None else self.b.to_dict(),
        }


def deployment(a: Run, b: Run, tasks: Sequence[str]) -> tuple[Value, ...]:
    """What both used on the paired tasks, for every measure that one of them recorded."""
    used = [_used(run, tasks) for run in (a, b)]
    return tuple(
        Value(measure, used[0].get(measure), used[1].get(measure))
        for measure in _ORDER
        if measure in used[0] or measure in used[1]
    )


def deployment_line(values: Sequence[Value]) -> str:
    """One line for all measures, or that there are none."""
    if not values:
        return "neither cost, seconds, steps nor tokens are recorded"
    return "; ".join(map(str, values)) + " (A against B)"


def _used(run: Run, tasks: Sequence[str]) -> dict[str, Use]:
    attempts = run.attempts
    if attempts is None:
        # Sums are over all tasks of a run: they are what both used only if it shares all of them.
        return _summed(run) if len(tasks) == len(run.outcomes) else {}
    shared = set(tasks)
    wanted = np.array([task in shared for task in attempts.tasks])
    rows = np.repeat(wanted, np.diff(attempts.starts))
    found = {}
    for measure, column in attempts.measures.items():
        here = rows & ~np.isnan(column)
        count = int(here.sum())
        if count:
            solved = int((attempts.verdicts[here] == Verdict.PASSED).sum())
            found[measure] = _use(count, float(column[here].sum()), solved)
    return found


def _summed(run: Run) -> dict[str, Use]:
    sums = {} if run.aggregates is None else run.aggregates.measures
    return {name: _use(one.recorded, one.total, one.passed) for name, one in sums.items()}


def _use(count: int, total: float, solved: int) -> Use:
    return Use(count, total / count, total / solved if solved else None)


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{_FIGURES}g}"
