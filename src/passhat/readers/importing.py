"""Runs that were read, written into the store as if they had been made here."""

from __future__ import annotations

from dataclasses import replace

from passhat.stats.outcomes import Attempt, Run, Verdict
from passhat.store import AttemptRecord, RunRecord, Store
from passhat.suites.base import Judgement, Task

__all__ = ["attempt_record", "import_run"]


def import_run(store: Store, run: Run) -> tuple[str, int]:
    """Write a run's attempts; returns its id in the store and how many attempts were new.

    The id follows from agent, protocol and source, so importing the same file again adds nothing.
    """
    labels = run.outcomes.labels
    tasks = [
        Task(name, "", {label: values[i] for label, values in labels.items()})
        for i, name in enumerate(run.outcomes.tasks)
    ]
    record = RunRecord(run.agent, replace(run.protocol, attempts=None), tasks, run.source)
    attempts = list(run.attempts or ())
    store.begin(record, max((attempt.number for attempt in attempts), default=0))
    claimed = set(store.claim(record.id, [(one.task, one.number) for one in attempts]))
    new = [one for one in attempts if (one.task, one.number) in claimed]
    store.finish(record.id, map(attempt_record, new))
    return record.id, len(new)


def attempt_record(attempt: Attempt) -> AttemptRecord:
    """An attempt that was read, as the store keeps it."""
    why = "" if attempt.verdict is Verdict.PASSED else attempt.why or ""
    measures = attempt.measures
    return AttemptRecord(
        attempt.task,
        attempt.number,
        Judgement(attempt.verdict, why, attempt.detail or ""),
        seconds=measures.get("seconds"),
        steps=measures.get("steps"),
        tokens=measures.get("tokens"),
        cost=measures.get("cost"),
    )
