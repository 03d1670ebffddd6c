"""Two runs task by task: the changes, and how attempts at the same task end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passhat._display import percent
from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import Terms

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class TaskChange(Plain):
    """A metric of one task under both agents, and how many of its attempts passed.

    ``a`` and ``b`` are the metric's values, ``change`` is b minus a. ``flip`` is ``won`` where B
    passes half of its attempts or more and A does not, ``lost`` the other way round; it looks at
    attempts, not at the metric, whose value can be near zero for a task that mostly passes.
    """

    WRITTEN = (..., "rate_a", "rate_b")

    task: str
    a: float
    b: float
    change: float
    flip: str | None
    passed_a: int
    attempts_a: int
    passed_b: int
    attempts_b: int

    @property
    def rate_a(self) -> float | None:
        """The share of A's attempts that passed."""
        return self.passed_a / self.attempts_a if self.attempts_a else None

    @property
    def rate_b(self) -> float | None:
        """The share of B's attempts that passed."""
        return self.passed_b / self.attempts_b if self.attempts_b else None

    @property
    def counts_text(self) -> str:
        """``1 of 8 -> 7 of 8``."""
        return f"{self.passed_a} of {self.attempts_a} -> {self.passed_b} of {self.attempts_b}"


def task_changes(a: Run, b: Run, metric: str, terms: Terms | None = None) -> tuple[TaskChange, ...]:
    """Every paired task, the largest gain first; missing attempts count by the policy."""
    terms = terms or Terms()
    parsed_metric, policy = parse(metric), terms.missing
    pairing = pair(a.outcomes, b.outcomes, (a.name, b.name)).supporting(
        [parsed_metric], policy, drop_short=terms.drop_short
    )
    values_a, values_b = (
        values_by_task(side, parsed_metric, policy.completion) for side in (pairing.a, pairing.b)
    )
    order: Sequence[int] = np.argsort(values_a - values_b, kind="stable").tolist()
    return tuple(_task_change(pairing.a, pairing.b, values_a, values_b, i) for i in order)


def _task_change(
    a: Outcomes, b: Outcomes, values_a: FloatArray, values_b: FloatArray, i: int
) -> TaskChange:
    counts = (int(a.c[i]), int(a.n[i]), int(b.c[i]), int(b.n[i]))
    flip = None
    if counts[1] and counts[3]:
        before, after = counts[0] / counts[1] >= _HALF, counts[2] / counts[3] >= _HALF
        flip = None if before == after else "won" if after else "lost"
    value_a, value_b = float(values_a[i]), float(values_b[i])
    return TaskChange(a.tasks[i], value_a, value_b, value_b - value_a, flip, *counts)


def largest_changes(changes: Sequence[TaskChange]) -> dict[str, tuple[TaskChange, ...]]:
    """The tasks that gained and those that lost, the largest change first.

    By the shares of judged attempts, which are the numbers that are printed: a missing attempt
    moves the metric, but a task whose judged attempts all pass has not lost.
    """
    moves = [
        (change.rate_b - change.rate_a, change)
        for change in changes
        if change.rate_a is not None and change.rate_b is not None
    ]
    moves.sort(key=lambda move: -abs(move[0]))
    by_direction = {
        "Gained": [c for d, c in moves if d > 0],
        "Lost": [c for d, c in moves if d < 0],
    }
    return {title: tuple(tasks) for title, tasks in by_direction.items() if tasks}


@dataclass(frozen=True, slots=True)
class PairedCells:
    """The paired table of two runs: counts of tasks, or shares where tasks have more attempts."""

    both: float
    only_a: float
    only_b: float
    neither: float
    counted: bool
    partial: bool = False  # attempts without a verdict are left out

    def text(self, a: str, b: str) -> str:
        """The four cells in a line."""
        names = ("both pass", f"only {b}", f"only {a}", "both fail")
        shares = (self.both, self.only_b, self.only_a, self.neither)
        values = [f"{value:.0f}" for value in shares] if self.counted else whole_percents(shares)
        cells = (f"{name} {value}" for name, value in zip(names, values, strict=True))
        which = " with a verdict" if self.partial else ""
        return f"{'Tasks' if self.counted else 'Attempts'}{which}: {', '.join(cells)}"


def whole_percents(shares: Sequence[float]) -> list[str]:
    """Shares of a whole in whole percent that add up to 100 (largest remainders).

    Examples
    --------
    >>> whole_percents([0.125, 0.125, 0.625, 0.125])
    ['13%', '13%', '62%', '12%']
    """
    parts = [100 * share for share in shares]
    # Rounded first, so that 62.5 computed in two ways has the same remainder.
    floors = [int(round(part, 9)) for part in parts]
    order = sorted(range(len(parts)), key=lambda i: round(floors[i] - parts[i], 9))
    for i in order[: 100 - sum(floors)]:
        floors[i] += 1
    return [
        f"{whole}%" if whole or not share else percent(share, 0)
        for whole, share in zip(floors, shares, strict=True)
    ]


def pair_cells(a: Outcomes, b: Outcomes) -> PairedCells | None:
    """How attempts of both runs at the same task end; ``None`` without a shared judged task.

    With one attempt each the cells count tasks. With more they are the mean over tasks of what two
    attempts, one of each run, would give: p_a p_b and so on, since attempts are independent.
    """
    place = {task: i for i, task in enumerate(b.tasks)}
    pairs = [
        (i, place[task])
        for i, task in enumerate(a.tasks)
        if task in place and a.n[i] and b.n[place[task]]
    ]
    if not pairs:
        return None
    rows_a, rows_b = (np.array(rows) for rows in zip(*pairs, strict=True))
    rate_a, rate_b = a.c[rows_a] / a.n[rows_a], b.c[rows_b] / b.n[rows_b]
    single = bool((a.n[rows_a] == 1).all() and (b.n[rows_b] == 1).all())
    scale = 1 if single else len(pairs)
    return PairedCells(
        float((rate_a * rate_b).sum()) / scale,
        float((rate_a * (1 - rate_b)).sum()) / scale,
        float(((1 - rate_a) * rate_b).sum()) / scale,
        float(((1 - rate_a) * (1 - rate_b)).sum()) / scale,
        single,
        a.m is not None or b.m is not None,
    )
