"""A stored run too large to be read attempt by attempt: its tasks, counted by the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from passhat.stats.outcomes import Outcomes, Run
from passhat.store.queries import Reading, TaskCounts
from passhat.store.rows import StoredRun

__all__ = ["run_from_counts"]


def run_from_counts(reading: Reading, key: int, stored: StoredRun) -> Run:
    """The run without its attempts; what depends on n, c and missing is the same as with them."""
    rows = reading.task_counts(key)
    outcomes = Outcomes.from_counts(
        [row.n for row in rows],
        [row.c for row in rows],
        [row.task for row in rows],
        missing=[row.missing for row in rows],
        labels=_labels(rows),
    )
    return Run(
        name=f"{stored.agent} {stored.id}",
        agent=stored.agent,
        outcomes=outcomes,
        protocol=replace(reading.protocol(key), attempts=stored.planned),
        source=reading.path,
        reading=(
            f"run {stored.id} of the store, started {stored.started}, {stored.status}",
            f"{stored.attempts:,} attempts, counted per task and not read one by one",
        ),
    )


def _labels(rows: Sequence[TaskCounts]) -> dict[str, list[str]]:
    """One value per task for every label; most tasks of a run carry one of few sets of labels."""
    known = {text: json.loads(text) for text in {row.labels for row in rows}}
    names = dict.fromkeys(name for marks in known.values() for name in marks)
    return {name: [str(known[row.labels].get(name, "")) for row in rows] for name in names}
