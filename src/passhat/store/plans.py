"""The number of attempts that a run is to have, before and after it is resumed with more."""

from __future__ import annotations

from typing import Any, NamedTuple

from passhat.store.base import Store

__all__ = ["StoredPlan", "load_plan", "restore_plan"]


class StoredPlan(NamedTuple):
    """Attempts at every task, in all, and by task where they differ."""

    planned: int
    total: int | None
    allocation: str | None


def load_plan(store: Store, run: str) -> StoredPlan | None:
    """The plan of a run; ``None`` where it is not stored."""
    rows: list[Any] = store.read("SELECT planned, total, allocation FROM runs WHERE id = ?", (run,))
    return StoredPlan(*rows[0]) if rows else None


def restore_plan(store: Store, run: str, plan: StoredPlan) -> None:
    """Write an earlier plan back, unless an attempt beyond it was made or claimed meanwhile."""
    with store._transaction():
        store._db.execute(
            "UPDATE runs SET planned = ?, total = ?, allocation = ? WHERE id = ? AND NOT EXISTS "
            "(SELECT 1 FROM attempts WHERE run = runs.key AND number > ?)",
            (*plan, run, plan.planned),
        )
        store._tell(run)
