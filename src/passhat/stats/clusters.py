"""Clusters of tasks: tasks of one repository, template or document are not independent.

An interval about new tasks then draws whole clusters with their sizes. With few clusters there is
little to draw from, and a warning says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from passhat._display import counted, percent
from passhat.errors import InvalidValue
from passhat.stats.outcomes import Outcomes

ENOUGH = 20
"""Clusters from which the measured coverage is at least .93 (docs/benchmarks/clusters.md)."""


@dataclass(frozen=True, slots=True)
class TaskClusters:
    """The cluster of every task."""

    column: str
    """The label that names the clusters."""
    labels: tuple[str, ...]
    """The cluster of each task, in the order of the tasks."""

    @property
    def count(self) -> int:
        return len(set(self.labels))

    @property
    def largest(self) -> tuple[str, float]:
        """The cluster with the most tasks, and its share of all tasks."""
        name, tasks = Counter(self.labels).most_common(1)[0]
        return name, tasks / len(self.labels)

    def warnings(self) -> tuple[str, ...]:
        """Warnings about claims that these clusters do not support, with remedies."""
        name, share = self.largest
        safe = (
            "Treat a claim about new tasks as a hint, add tasks from other clusters, or ask about "
            "these tasks, which needs no clusters."
        )
        if self.count < ENOUGH:
            return (
                f"only {counted(self.count, 'cluster')} of {self.column}: below about {ENOUGH} the "
                f"interval is too narrow when large clusters differ from small ones. {safe}",
            )
        if share > 0.5:
            return (
                f"{self.column} {name} holds {percent(share, 0)} of the tasks, so the interval "
                f"rests on one cluster. {safe}",
            )
        return ()


def task_clusters(outcomes: Outcomes, column: str | None) -> TaskClusters | None:
    """The clusters of a run's tasks; ``None`` without a column."""
    return None if column is None else TaskClusters(column, tuple(outcomes.label(column)))


def shared_labels(sides: Sequence[Outcomes], column: str) -> tuple[str, ...]:
    """The label of every paired task; sides that have it must agree."""
    columns = [side.labels[column] for side in sides if column in side.labels]
    if not columns:
        names = sorted({name for side in sides for name in side.labels})
        raise InvalidValue(
            f"there is no slice called {column!r}; slices here: {', '.join(names) or 'none'}.",
            hint=f"A table names one with a column 'slice:{column}'.",
        )
    for other in columns[1:]:
        for task, label, other_label in zip(sides[0].tasks, columns[0], other, strict=True):
            if label != other_label:
                raise InvalidValue(
                    f"task {task!r} is in slice {label!r} of {column!r} in one run and in "
                    f"{other_label!r} in the other.",
                    hint="Give each task the same slice in both.",
                )
    return tuple(columns[0])
