"""Open a store by its name (a path is SQLite, an address has its backend), and plans of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from passhat.errors import InvalidValue
from passhat.store.base import Store
from passhat.store.database import GROUP, backends, is_address, without_password
from passhat.store.leases import LEASE_SECONDS
from passhat.store.queries import Reading
from passhat.store.sqlite import DEFAULT_PATH, SqliteStore


def open_store(
    place: str = DEFAULT_PATH,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    lease_seconds: float = LEASE_SECONDS,
) -> Store:
    """The store at a path or an address.

    Parameters
    ----------
    place : str
        A path, or ``postgresql://user@host/database``.
    must_exist : bool
        Refuse a store that is not there, rather than make it.
    read_only : bool
        Refuse every write; an older store is read as it is.
    lease_seconds : float
        How long claims of this store are kept when it gives no sign of life.
    """
    return _backend(place)(
        place, must_exist=must_exist, read_only=read_only, lease_seconds=lease_seconds
    )


def open_reading(place: str = DEFAULT_PATH) -> Reading:
    """A store that is there, as pages see it: nothing can be written through it."""
    return Reading(open_store(place, must_exist=True, read_only=True))


def is_same_place(first: str, second: str) -> bool:
    """Whether two names are of one store; a password is no part of it."""
    if is_address(first) or is_address(second):
        return without_password(first) == without_password(second)
    return Path(first).resolve() == Path(second).resolve()


def _backend(place: str) -> Callable[..., Store]:
    """Return the class of the store at a place; its module is imported only now."""
    scheme, sign, _ = place.partition("://")
    if not sign:
        return SqliteStore
    if scheme not in backends():
        # A folder by the name of an address, with its password, is never wanted.
        raise InvalidValue(
            f"a store cannot be at {scheme}://...",
            hint="It is a file, or postgresql://USER@HOST/DATABASE.",
        )
    backend = backends()[scheme].load()
    if not (isinstance(backend, type) and issubclass(backend, Store)):
        raise InvalidValue(
            f"the entry point {scheme} of {GROUP} is not a store.",
            hint="It names a class derived from passhat.store.Store.",
        )
    return backend


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
