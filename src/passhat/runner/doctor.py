"""Checks of everything that a run needs; each reports a finding and a remedy."""

from __future__ import annotations

import re
import secrets
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from passhat._display import counted
from passhat._serialize import Plain
from passhat.errors import PasshatError, StoreUnavailable
from passhat.store.schema import PER_ATTEMPT, VERSION, postgres_version

if TYPE_CHECKING:
    from passhat.store.postgres_connection import PostgresConnection


class Level(StrEnum):
    """How a check ended: usable, usable with care, or not usable."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding(Plain):
    """The result of a check; ``advice`` is the remedy where something is wrong."""

    what: str
    level: Level
    found: str
    advice: str = ""

    def _as_dict(self) -> dict[str, object]:
        return {
            "what": self.what,
            "level": str(self.level),
            "found": self.found,
            "advice": self.advice or None,
        }


_WHAT = "store"
_OLDEST, _OLDEST_NUMBER = "13", 130_000
_TABLES = ("runs", "tasks", "leases", *PER_ATTEMPT)
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_HEAR_SECONDS = 5.0
_ADVICE = (
    (r"password", "Put the password into ~/.pgpass or PGPASSWORD, or fix the name of the user."),
    (r"role .* does not exist", "Fix the name of the user, or make it: createuser NAME"),
    (r"database .* does not exist", "Make it: createdb NAME"),
    (r"pg_hba", "Have the server's pg_hba.conf let this machine and user in."),
    (r"too many", "Close other programs that use the server, or raise its max_connections."),
)
_AWAY = "Start the server, or fix host and port; pg_isready -d ADDRESS checks whether it answers."


def examine_postgres(address: str) -> Iterator[Finding]:
    """Check that a server is reachable, supported, writable, and delivers notices."""
    try:
        from passhat.store.postgres_connection import PostgresConnection

        connection = PostgresConnection(address)
    except PasshatError as error:  # the extra is not installed, or it is no address
        yield Finding(_WHAT, Level.PROBLEM, error.message, error.hint or "")
        return
    with closing(connection), closing(PostgresConnection(address)) as other:
        try:
            yield from _server(connection)
            yield from _tables(connection)
            yield _check_notices(connection, other)
        except PasshatError as error:
            yield Finding(_WHAT, Level.PROBLEM, error.message, _advice(error))


def _advice(error: PasshatError) -> str:
    for words, advice in _ADVICE:
        if re.search(words, error.message):
            return advice
    return _AWAY if isinstance(error, StoreUnavailable) else error.hint or ""


def _server(connection: PostgresConnection) -> Iterator[Finding]:
    version_text, number = connection.execute(
        "SELECT current_setting('server_version'), current_setting('server_version_num')::integer"
    ).fetchone() or ("", 0)
    advice = "" if number >= _OLDEST_NUMBER else f"passhat needs PostgreSQL {_OLDEST} or newer."
    level = Level.PROBLEM if advice else Level.OK
    yield Finding(_WHAT, level, f"{connection.name} answers, PostgreSQL {version_text}", advice)


def _tables(connection: PostgresConnection) -> Iterator[Finding]:
    version = postgres_version(connection, connection.name)
    if version is None:
        yield _check_tables_rights(connection)
        return
    runs = int((connection.execute("SELECT count(*) FROM runs").fetchone() or (0,))[0])
    if version < VERSION:
        yield Finding(
            _WHAT,
            Level.WARNING,
            f"tables of version {version}, {counted(runs, 'run')}; this passhat has {VERSION}",
            "The next command that writes brings them up to date, and older passhats then refuse.",
        )
    else:
        yield Finding(_WHAT, Level.OK, f"tables of version {version}, {counted(runs, 'run')}")
        yield _check_writing(connection)


def _check_tables_rights(connection: PostgresConnection) -> Finding:
    user, schema, may = connection.execute(
        "SELECT current_user, current_schema(), "
        "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
    ).fetchone() or ("", None, False)
    if not may:
        advice = f"As the owner of the database: GRANT CREATE ON SCHEMA {schema or 'public'} TO "
        problem = f"there are no tables yet, and {user} may not make any"
        return Finding(_WHAT, Level.PROBLEM, problem, f'{advice}"{user}"')
    return Finding(_WHAT, Level.OK, "there are no tables yet; the first run makes them")


def _check_writing(connection: PostgresConnection) -> Finding:
    """Check every permission and write a row for real; then roll back."""
    rights = " AND ".join(f"has_table_privilege(name, '{right}')" for right in _RIGHTS)
    user, read_only, lacking = connection.execute(
        "SELECT current_user, current_setting('transaction_read_only')::boolean, "
        # A store of an older version has no leases yet; CASE keeps the order of evaluation.
        "(SELECT string_agg(name, ', ') FROM unnest(?::text[]) AS name "
        f"WHERE CASE WHEN to_regclass(name) IS NULL THEN false ELSE NOT ({rights}) END)",
        (list(_TABLES),),
    ).fetchone() or ("", True, None)
    if read_only:
        advice = "Name the main server, not a copy that follows it, or lift the read-only setting."
        return Finding(_WHAT, Level.PROBLEM, "takes nothing: sessions are read-only", advice)
    if lacking:
        grant = f'GRANT {", ".join(_RIGHTS)} ON {lacking} TO "{user}"'
        problem = f"{user} may not write to {lacking}; reports and passhat view work"
        return Finding(_WHAT, Level.PROBLEM, problem, f"As the owner of the tables: {grant}")
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO runs (id, agent, suite, name, protocol, planned, started) "
        "VALUES (?, '', '', '', '{}', 0, '')",
        (f"doctor/{secrets.token_hex(6)}",),
    )
    connection.execute("ROLLBACK")
    return Finding(_WHAT, Level.OK, f"{user} may write")


def _check_notices(connection: PostgresConnection, other: PostgresConnection) -> Finding:
    """Whether a notice of one connection arrives at another; a pooler may be between them."""
    channel = f"passhat_doctor_{secrets.token_hex(6)}"
    other.execute(f"LISTEN {channel}")
    connection.execute("SELECT pg_notify(?, '')", (channel,))
    if other.notifies(_HEAR_SECONDS):
        return Finding(_WHAT, Level.OK, "notices arrive at once (LISTEN)")
    return Finding(
        _WHAT,
        Level.WARNING,
        "notices do not arrive (LISTEN); live pages poll instead",
        "Name the server itself, not a pooler in transaction mode.",
    )


_LEAST_PYTHON = (3, 11)
_CORE = ("numpy", "scipy", "click", "rich", "msgspec", "starlette", "uvicorn")
_EXTRAS: Mapping[str, str] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "a2a": "a2a-sdk",
    "mcp": "mcp",
    "postgres": "psycopg",
    "parquet": "duckdb",
    "ray": "ray",
    "inspect": "inspect-ai",
}
_KEYS: Mapping[str, str] = {"OPENAI_API_KEY": "openai:", "ANTHROPIC_API_KEY": "anthropic:"}
_LITTLE_SPACE = 500 * 2**20
_REACH_SECONDS = 5.0


def examine(
    store: str,
    agents: Sequence[str],
    suites: Sequence[str],
    environment: Mapping[str, str],
    *,
    sandbox: bool = True,
) -> Iterator[Finding]:
    """Every check, one after another; no agent is called."""
    yield from _python()
    yield from _extras()
    yield from _keys(environment, agents)
    yield from _store(store)
    if sandbox:
        yield _sandbox()
    yield from _try_loading("suite", suites, _suite)
    for word in agents:
        yield from _try_loading("agent", [word], _agent)
        yield from _check_reachable(word)


def _python() -> Iterator[Finding]:
    running = ".".join(map(str, sys.version_info[:3]))
    least, advice = ".".join(map(str, _LEAST_PYTHON)), ""
    if sys.version_info < _LEAST_PYTHON:
        advice = f"passhat needs Python {least} or newer."
    yield Finding("python", Level.PROBLEM if advice else Level.OK, running, advice)
    absent = [name for name in _CORE if _version(name) is None]
    versions = ", ".join(f"{name} {_version(name)}" for name in ("passhat", *_CORE))
    if absent:
        advice = "Install again: pip install --force-reinstall passhat"
        yield Finding("packages", Level.PROBLEM, f"absent: {', '.join(absent)}", advice)
    else:
        yield Finding("packages", Level.OK, versions)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _extras() -> Iterator[Finding]:
    versions = {extra: _version(package) for extra, package in _EXTRAS.items()}
    present = ", ".join(f"{extra} {number}" for extra, number in versions.items() if number)
    absent = [extra for extra, number in versions.items() if number is None]
    yield Finding(
        "extras",
        Level.OK,
        f"installed: {present or 'none'}; not installed: {', '.join(absent) or 'none'}",
        f"Only if you need one: pip install 'passhat[{absent[0]}]'" if absent else "",
    )


def _keys(environment: Mapping[str, str], agents: Sequence[str]) -> Iterator[Finding]:
    """Whether keys are there; a key itself is never shown."""
    for name, prefix in _KEYS.items():
        is_needed = any(word.startswith(prefix) and "@" not in word for word in agents)
        if environment.get(name, "").strip():
            yield Finding("key", Level.OK, f"{name} is set")
        else:
            advice = f"Set it before you run {prefix}MODEL: export {name}=..." if is_needed else ""
            level = Level.PROBLEM if is_needed else Level.OK
            yield Finding("key", level, f"{name} is not set", advice)


def _store(path: str) -> Iterator[Finding]:
    """Check that a store opens, is intact, of a supported version, writable, and has free space."""
    from passhat.store import is_address, open_store
    from passhat.store.schema import VERSION

    if is_address(path):
        yield from examine_postgres(path)
        return
    if "://" in path:
        advice = "A store is a file, or postgresql://USER@HOST/DATABASE."
        yield Finding("store", Level.PROBLEM, f"{path.partition('://')[0]}://... is none", advice)
        return
    place = Path(path)
    if place.exists():
        try:
            with open_store(path, must_exist=True) as store:
                sound, runs = store.is_sound(), len(store.runs())
        except (PasshatError, sqlite3.Error) as error:
            hint = getattr(error, "hint", None) or "Name another one with --store PATH."
            yield Finding("store", Level.PROBLEM, str(getattr(error, "message", error)), hint)
            return
        if sound:
            yield Finding(
                "store", Level.OK, f"{path}: version {VERSION}, whole, {counted(runs, 'run')}"
            )
        else:
            advice = "Copy the file away, then: sqlite3 FILE .recover | sqlite3 NEW"
            yield Finding("store", Level.PROBLEM, f"{path} is damaged", advice)
    else:
        yield Finding("store", Level.OK, f"{path}: not there yet; the first run makes it")
    yield from _disk(place)


def _disk(place: Path) -> Iterator[Finding]:
    """Whether the store's folder takes a file, and how much more it would take."""
    folder = next(parent for parent in place.absolute().parents if parent.exists())
    try:
        # A check of permissions is not enough: a file system may be read-only, full or not real.
        with tempfile.TemporaryFile(dir=folder):
            pass
        if place.exists():
            with place.open("r+b"):
                pass
    except OSError as error:
        advice = "Name a place you may write to with --store PATH."
        problem = f"{folder} cannot be written to ({error.strerror})"
        yield Finding("store", Level.PROBLEM, problem, advice)
        return
    free = shutil.disk_usage(folder).free
    advice = "A store needs about 1 kB per attempt and its conversations; make room."
    found = f"{free / 2**30:,.1f} GB free for the store"
    if free < _LITTLE_SPACE:
        yield Finding("disk", Level.WARNING, found, advice)
    else:
        yield Finding("disk", Level.OK, found)


def _sandbox() -> Finding:
    """Only code suites need one, so having none is no problem by itself."""
    from passhat.judging.interpreters import find_interpreter
    from passhat.judging.sandbox_check import choose_sandbox

    try:
        kind = choose_sandbox(find_interpreter(None))
    except PasshatError as error:
        return Finding("sandbox", Level.WARNING, error.message, error.hint or "")
    return Finding("sandbox", Level.OK, f"{kind} holds every attack of the self-test")


def _suite(word: str) -> str:
    from passhat.suites import load_suite

    suite = load_suite(word)
    return f"{suite.name}: {counted(len(suite.tasks), 'task')}, fingerprint {suite.fingerprint}"


def _agent(word: str) -> str:
    from passhat.agents import load_agent

    return f"{load_agent(word).name} loads"


def _try_loading(what: str, words: Sequence[str], load: Callable[[str], str]) -> Iterator[Finding]:
    for word in words:
        try:
            yield Finding(what, Level.OK, load(word))
        except PasshatError as error:
            yield Finding(what, Level.PROBLEM, f"{word}: {error.message}", error.hint or "")
        except Exception as error:  # another person's module may raise anything
            problem = f"{word}: {type(error).__name__}: {error}"
            yield Finding(
                what, Level.PROBLEM, problem, "Import it in Python and fix what it reports."
            )


def _check_reachable(word: str) -> Iterator[Finding]:
    """Whether a server listens at an agent's address; nothing is sent."""
    import socket

    start = word.find("http")
    address = urlsplit(word[start:]) if start >= 0 and "://" in word[start:] else None
    if address is None or not address.hostname:
        return
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname, port), _REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        problem = f"{address.hostname} does not answer ({error})"
        yield Finding("agent", Level.PROBLEM, problem, "Start the agent, or fix its URL.")
    else:
        yield Finding("agent", Level.OK, f"{address.hostname}:{port} answers")
