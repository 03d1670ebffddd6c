"""What changed from A to B, task by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import MissingPolicy, Run

__all__ = ["TaskChange", "task_changes"]

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A metric of one task under both agents."""

    task: str
    a: float
    b: float

    @property
    def change(self) -> float:
        return self.b - self.a

    @property
    def flip(self) -> str:
        """Won: from less than half to half or more. Lost: the other way round. Else empty."""
        before, after = self.a >= _HALF, self.b >= _HALF
        return "" if before == after else "won" if after else "lost"

    def to_dict(self) -> dict[str, object]:
        return {
            "task": self.task,
            "a": self.a,
            "b": self.b,
            "change": self.change,
            "flip": self.flip or None,
        }


def task_changes(
    a: Run, b: Run, metric: str, *, missing: str = "bound", drop_short: bool = False
) -> tuple[TaskChange, ...]:
    """Every paired task, the largest gain first; missing attempts count as the policy says."""
    chosen, policy = parse(metric), MissingPolicy.of(missing)
    pairing = pair(a.outcomes, b.outcomes, (a.name, b.name)).supporting(
        [chosen], policy, drop_short=drop_short
    )
    mine, theirs = (
        values_by_task(side, chosen, policy.completion) for side in (pairing.a, pairing.b)
    )
    order: Sequence[int] = np.argsort(mine - theirs, kind="stable").tolist()
    return tuple(TaskChange(pairing.a.tasks[i], float(mine[i]), float(theirs[i])) for i in order)
