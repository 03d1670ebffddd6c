"""The database connection that a store needs, addresses of databases, and private files.

Both connections have the few calls of `sqlite3.Connection` listed here, so that every query is
written once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote


class ResultSet(Protocol):
    """Result of a statement: rows, or the number of changed rows."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection; ``?`` marks a parameter."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> ResultSet: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> object: ...

    def close(self) -> None: ...


class ReadableStore(Protocol):
    """A store, as far as the read model needs it; see :class:`passhat.store.base.Store`."""

    path: str
    open_attempts: str
    judged_attempts: str

    def read(self, statement: str, values: Sequence[Any] = ..., /) -> list[tuple[Any, ...]]: ...

    def data_version(self) -> object: ...

    def changes(self, seconds: float, /) -> bool: ...

    def close(self) -> None: ...


class LogProblem(StrEnum):
    """A problem with the write-ahead log of a SQLite file."""

    FOREIGN = "foreign"
    """It belongs to another file, or to another state of this one."""
    ABSENT = "absent"
    """A runner was writing, and its log is not there: the file was copied without it."""


def private_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder and those above it, for this user alone; folders that exist keep their mode."""
    folder = Path(path)
    # Not ``parents=True``: it makes the folders above with the mode of the umask.
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)  # an error where the path is a file


def private_file(path: str | os.PathLike[str], *, truncate: bool = False) -> int:
    """Open a file to write, readable by this user alone if it is new; return its descriptor.

    Conversations of agents and users are in stores and reports, so other users of the machine must
    not read them. A file that exists keeps its mode: its owner may have shared it.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if truncate else 0)
    return os.open(path, flags, 0o600)


def write_private(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file; a new one is readable by this user alone."""
    data = content.encode() if isinstance(content, str) else content
    with os.fdopen(private_file(path, truncate=True), "wb") as stream:
        stream.write(data)


GROUP = "passhat.stores"
"""Entry points of backends; the name of each is the scheme of its addresses."""
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


def backends() -> dict[str, EntryPoint]:
    """Installed backends by the scheme of their addresses."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def is_address(place: str) -> bool:
    """Whether this names a database of a backend rather than a file."""
    scheme, sign, _ = place.partition("://")
    return bool(sign) and scheme in backends()


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
    location = f"{match['scheme']}{user}{match['hosts']}{match['database'] or ''}"
    return f"{location}{'?' if query else ''}{query}{match['part'] or ''}"


def _harmless(part: str) -> str:
    name, sign, _ = part.partition("=")
    return f"{name}{sign}..." if _SECRET.search(unquote(name)) else part
