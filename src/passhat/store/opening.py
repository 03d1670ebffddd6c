"""A store by what a user calls it: a path is SQLite, an address is PostgreSQL."""

from __future__ import annotations

from passhat.store.addresses import is_address
from passhat.store.base import Store
from passhat.store.sqlite import DEFAULT_PATH, SqliteStore

__all__ = ["open_store"]


def open_store(place: str = DEFAULT_PATH, *, must_exist: bool = False) -> Store:
    """The store at a path or an address.

    Parameters
    ----------
    place : str
        A path, or ``postgresql://user@host/database``.
    must_exist : bool
        Refuse a store that is not there, rather than make it.
    """
    if not is_address(place):
        return SqliteStore(place, must_exist=must_exist)
    from passhat.store.postgres import PostgresStore

    return PostgresStore(place, must_exist=must_exist)
