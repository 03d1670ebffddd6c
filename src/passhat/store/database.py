"""What a store needs of a database: the few calls of `sqlite3.Connection` that it makes.

SQLite's own connection has them; :mod:`passhat.store.postgres_connection` gives PostgreSQL the same
ones, so that every query is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

__all__ = ["Database", "Found"]


class Found(Protocol):
    """What a statement found or changed."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection; ``?`` stands for a parameter."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Found: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> object: ...

    def close(self) -> None: ...
