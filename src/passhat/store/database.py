"""What a store needs of a database connection, and addresses such as ``postgresql://user@host/db``.

Both connections have the few calls of `sqlite3.Connection` listed here, so that every query is
written once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import unquote

__all__ = ["Database", "Found", "is_address", "is_well_formed", "without_password"]


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


_SCHEMES = ("postgresql://", "postgres://")
_LETTER = r"(?:[^:@/?#&%]|%(?!00)[0-9A-Fa-f]{2})"
_HOST = r"(?:[^:@/?#,\[\]]*|\[[^\]@/?#]*\])(?::\d*)?"
_VALUE = r"(?:[^&#%]|%(?!00)[0-9A-Fa-f]{2})*"
_PLAIN = re.compile(
    rf"(?P<scheme>\w+://)(?:(?P<user>{_LETTER}*)(?::(?:{_LETTER}|[:&])*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^@?#/]*)?"
    rf"(?:\?(?P<query>[\w%]+={_VALUE}(?:&[\w%]+={_VALUE})*)?)?(?P<part>#\w*)?"
)
"""Only what all programs read in the same way: see :func:`is_well_formed`."""
_SECRET = re.compile(r"(?i)password|secret")


def is_address(place: str) -> bool:
    """Whether this names a database server rather than a file."""
    return place.startswith(_SCHEMES)


def is_well_formed(address: str) -> bool:
    """Whether it is clear where a password in it begins and ends.

    ``@ / ? # %`` in a password have to be written as ``%40 %2F %3F %23 %25``; otherwise parts of
    it would be taken for a host or the like, and be shown as such.
    """
    return _PLAIN.fullmatch(address) is not None


def without_password(address: str) -> str:
    """An address that may be shown; a path is shown as it is."""
    if not is_address(address):
        return address
    match = _PLAIN.fullmatch(address)
    if match is None:
        # Where the password begins and ends is not clear: nothing of it is shown.
        return f"{address.partition('://')[0]}://..."
    user = "" if match["user"] is None else f"{match['user']}@"
    query = "&".join(_harmless(part) for part in (match["query"] or "").split("&"))
    shown = f"{match['scheme']}{user}{match['hosts']}{match['database'] or ''}"
    return f"{shown}{'?' if query else ''}{query}{match['part'] or ''}"


def _harmless(part: str) -> str:
    name, sign, _ = part.partition("=")
    return f"{name}{sign}..." if _SECRET.search(unquote(name)) else part
