"""A store by what a user calls it: a path is SQLite, an address is PostgreSQL."""

from __future__ import annotations

from typing import Any

from passhat.errors import InvalidValue
from passhat.store.base import Store
from passhat.store.database import is_address
from passhat.store.leases import LEASE_SECONDS
from passhat.store.queries import Reading
from passhat.store.sqlite import DEFAULT_PATH, SqliteStore
from passhat.store.sqlite_reading import SqliteReading

__all__ = ["open_reading", "open_store"]


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
    options: dict[str, Any] = {
        "must_exist": must_exist,
        "read_only": read_only,
        "lease_seconds": lease_seconds,
    }
    if not is_address(place):
        _refuse_other_addresses(place)
        return SqliteStore(place, **options)
    from passhat.store.postgres import PostgresStore

    return PostgresStore(place, **options)


def open_reading(place: str = DEFAULT_PATH) -> Reading:
    """A store that is there, as pages see it: nothing can be written through it."""
    if not is_address(place):
        _refuse_other_addresses(place)
        return SqliteReading(place)
    from passhat.store.postgres_reading import PostgresReading

    return PostgresReading(place)


def _refuse_other_addresses(place: str) -> None:
    """A folder by the name of an address, with its password, is not what anybody wants."""
    scheme, sign, _ = place.partition("://")
    if sign:
        raise InvalidValue(
            f"a store cannot be at {scheme}://...",
            hint="It is a file, or postgresql://USER@HOST/DATABASE.",
        )
