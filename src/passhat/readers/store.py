"""A store as runs, so that every command reads what ``passhat run`` wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from passhat.errors import ReadError
from passhat.judging import SPLIT_JUDGE
from passhat.readers import counted
from passhat.readers.base import Needs, ReadOptions
from passhat.readers.sources import Source
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.outcomes.columns import SLICE_PREFIX, ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer
from passhat.store import Store, StoredRun, open_store

__all__ = ["StoreReader", "run_from_store"]

_MAGIC = b"SQLite format 3\x00"
_COLUMNS = (
    *("task", "trial", "success", "failure", "duration", "steps", "tokens", "cost", "seed"),
    "answer",
)
_KEPT = ("seed",)
"""What is kept with an attempt, and counts for nothing."""


class StoreReader:
    """passhat's own store."""

    name = "store"

    def recognises(self, source: Source) -> bool:
        return bool(source.address) or source.head.startswith(_MAGIC)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        with open_store(source.address or str(source.path), must_exist=True) as store:
            chosen = [store.find(source.part)] if source.part else store.runs()
            found = [run_from_store(store, run, options.needs) for run in chosen if run.attempts]
        if not found:
            raise ReadError("holds no finished attempt.", source=source.name)
        return found


def run_from_store(store: Store, stored: StoredRun, needs: Needs | None = None) -> Run:
    """One run with its finished attempts, or with their counts when there are many of them."""
    needs = _with_programs(store, stored, needs or Needs())
    if counted.is_counted(stored.attempts, needs):
        outcomes, sums = counted.outcomes_from(store, stored.id, stored.attempts, needs)
        run = _as_run(store, stored, outcomes, (counted.counted_note(stored.attempts),))
        return replace(run, sums=sums)
    labels = dict.fromkeys(name for text in store.labels(stored.id) for name in json.loads(text))
    columns = ColumnMap.resolve([*_COLUMNS, *(SLICE_PREFIX + n for n in labels)])
    gatherer = AttemptGatherer(columns, extras=_KEPT, first_trial=1)
    parsed: dict[str, dict[str, str]] = {}
    for rows in store.rows(stored.id):
        cells: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
        task, number, verdict, *others, label = cells
        parsed |= {text: json.loads(text) for text in set(label) - parsed.keys()}
        success: list[object] = [None if value < 0 else value for value in verdict]
        block = dict(zip(_COLUMNS, (task, number, success, *others), strict=True))
        block |= {
            SLICE_PREFIX + name: [parsed[text].get(name) for text in label] for name in labels
        }
        gatherer.add(block)
    (found,) = gatherer.runs()
    return replace(_as_run(store, stored, found.outcomes), attempts=found.attempts)


def _with_programs(store: Store, stored: StoredRun, needs: Needs) -> Needs:
    """How many different programs there were is said attempt by attempt."""
    judge = store.protocol(stored.id).judge or ""
    programs = needs.answers and judge.startswith(SPLIT_JUDGE)
    return replace(needs, attempts=True) if programs else needs


def _as_run(
    store: Store, stored: StoredRun, outcomes: Outcomes, reading: tuple[str, ...] = ()
) -> Run:
    said = f"run {stored.id} of the store, started {stored.started}, {stored.status}"
    return Run(
        name=f"{stored.agent} {stored.id}",
        agent=stored.agent,
        outcomes=outcomes,
        protocol=replace(store.protocol(stored.id), attempts=stored.planned),
        source=store.path,
        notes=_leak_notes(store, stored),
        reading=(said, *reading),
    )


def _leak_notes(store: Store, stored: StoredRun) -> tuple[str, ...]:
    """Attempts in which the agent said the reference that only another attempt had been told."""
    leaks = store.leaks(stored.id)
    if not leaks:
        return ()
    task, number, other = leaks[0]
    return (
        f"leak: in {len(leaks):,} of {stored.attempts:,} attempts the agent repeated a reference "
        f"that only another attempt had been told (first in {task}#{number}, from {other}), so "
        "attempts were not fresh and no number of this run is to be trusted",
    )
