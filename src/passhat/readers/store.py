"""A store as runs, so that every command reads what ``passhat run`` wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from passhat.errors import ReadError
from passhat.outcomes import Outcomes, Run
from passhat.outcomes.columns import SLICE_PREFIX, ColumnMap
from passhat.outcomes.gathering import AttemptGatherer
from passhat.readers import counted
from passhat.readers.registry import ReadOptions
from passhat.readers.sources import Source
from passhat.store import Store, StoredRun, open_store

__all__ = ["StoreReader", "run_from_store"]

_MAGIC = b"SQLite format 3\x00"
_COLUMNS = (
    *("task", "trial", "success", "failure", "duration", "steps", "tokens", "cost", "answer"),
)


class StoreReader:
    """passhat's own store."""

    name = "store"

    def recognises(self, source: Source) -> bool:
        return bool(source.address) or source.head.startswith(_MAGIC)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:  # noqa: ARG002
        with open_store(source.address or str(source.path), must_exist=True) as store:
            chosen = [store.find(source.part)] if source.part else store.runs()
            found = [run_from_store(store, run) for run in chosen if run.attempts]
        if not found:
            raise ReadError("holds no finished attempt.", source=source.name)
        return found


def run_from_store(store: Store, stored: StoredRun) -> Run:
    """One run with its finished attempts, or with their counts when there are millions."""
    if stored.attempts > counted.MOST_ATTEMPTS:
        outcomes, sums = counted.outcomes_from(store.counts(stored.id))
        run = _as_run(store, stored, outcomes, (counted.counted_note(stored.attempts),))
        return replace(run, sums=sums)
    labels: dict[str, None] = {}
    blocks: list[dict[str, list[object]]] = []
    for rows in store.rows(stored.id):
        columns: list[list[Any]] = [list(cells) for cells in zip(*rows, strict=True)]
        task, number, verdict, *others, label = columns
        marks = [json.loads(text) for text in label]
        labels |= dict.fromkeys(name for mark in marks for name in mark)
        success: list[object] = [None if value < 0 else value for value in verdict]
        block = dict(zip(_COLUMNS, (task, number, success, *others), strict=True))
        block |= {SLICE_PREFIX + name: [mark.get(name) for mark in marks] for name in labels}
        blocks.append(block)
    gatherer = AttemptGatherer(ColumnMap.resolve([*_COLUMNS, *(SLICE_PREFIX + n for n in labels)]))
    for block in blocks:
        size = len(block["task"])
        gatherer.add({**{SLICE_PREFIX + n: [None] * size for n in labels}, **block})
    (found,) = gatherer.runs()
    return replace(_as_run(store, stored, found.outcomes), attempts=found.attempts)


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
