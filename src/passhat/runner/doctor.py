"""Is everything there that a run needs? Each check says what it found and what to do about it."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from passhat._display import counted
from passhat.errors import PasshatError
from passhat.runner.findings import Finding, Level

__all__ = ["Finding", "Level", "examine"]

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
    """Every check, one after the other; no agent is asked anything."""
    yield from _python()
    yield from _extras()
    yield from _keys(environment, agents)
    yield from _store(store)
    if sandbox:
        yield _sandbox()
    yield from _loaded("suite", suites, _suite)
    for word in agents:
        yield from _loaded("agent", [word], _agent)
        yield from _reached(word)


def _python() -> Iterator[Finding]:
    running = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= _LEAST_PYTHON
    least = ".".join(map(str, _LEAST_PYTHON))
    yield Finding(
        "python",
        Level.OK if good else Level.PROBLEM,
        running,
        "" if good else f"passhat needs Python {least} or newer.",
    )
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
    found = {extra: _version(package) for extra, package in _EXTRAS.items()}
    there = ", ".join(f"{extra} {number}" for extra, number in found.items() if number)
    absent = [extra for extra, number in found.items() if number is None]
    yield Finding(
        "extras",
        Level.OK,
        f"installed: {there or 'none'}; not installed: {', '.join(absent) or 'none'}",
        f"Only if you need one: pip install 'passhat[{absent[0]}]'" if absent else "",
    )


def _keys(environment: Mapping[str, str], agents: Sequence[str]) -> Iterator[Finding]:
    """Whether keys are there; a key itself is never shown."""
    for name, prefix in _KEYS.items():
        needed = any(word.startswith(prefix) and "@" not in word for word in agents)
        if environment.get(name, "").strip():
            yield Finding("key", Level.OK, f"{name} is set")
        else:
            advice = f"Set it before you run {prefix}MODEL: export {name}=..." if needed else ""
            level = Level.PROBLEM if needed else Level.OK
            yield Finding("key", level, f"{name} is not set", advice)


def _store(path: str) -> Iterator[Finding]:
    """Opens, whole, of a version we know, writable, with room."""
    from passhat.store import is_address, open_store
    from passhat.store.schema import VERSION

    if is_address(path):
        from passhat.runner.doctor_postgres import examine_postgres

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
    folder = next(one for one in place.absolute().parents if one.exists())
    try:
        # Asking for permission says too little: a file system may be read-only, full or not real.
        with tempfile.TemporaryFile(dir=folder):
            pass
        if place.exists():
            with place.open("r+b"):
                pass
    except OSError as error:
        advice = "Name a place you may write to with --store PATH."
        found = f"{folder} cannot be written to ({error.strerror})"
        yield Finding("store", Level.PROBLEM, found, advice)
        return
    free = shutil.disk_usage(folder).free
    low = free < _LITTLE_SPACE
    yield Finding(
        "disk",
        Level.WARNING if low else Level.OK,
        f"{free / 2**30:,.1f} GB free for the store",
        "A store needs about 1 kB per attempt and its conversations; make room." if low else "",
    )


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
    return f"{suite.name}: {len(suite.tasks):,} tasks, fingerprint {suite.fingerprint}"


def _agent(word: str) -> str:
    from passhat.agents import load_agent

    return f"{load_agent(word).name} loads"


def _loaded(what: str, words: Sequence[str], load: Callable[[str], str]) -> Iterator[Finding]:
    for word in words:
        try:
            yield Finding(what, Level.OK, load(word))
        except PasshatError as error:
            yield Finding(what, Level.PROBLEM, f"{word}: {error.message}", error.hint or "")
        except Exception as error:  # another person's module may raise anything
            found = f"{word}: {type(error).__name__}: {error}"
            yield Finding(what, Level.PROBLEM, found, "Import it in Python and mend what it says.")


def _reached(word: str) -> Iterator[Finding]:
    """Whether somebody listens where an agent's address points; nothing is sent."""
    import socket

    start = word.find("http")
    address = urlsplit(word[start:]) if start >= 0 and "://" in word[start:] else None
    if address is None or not address.hostname:
        return
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname, port), _REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        found = f"{address.hostname} does not answer ({error})"
        yield Finding("agent", Level.PROBLEM, found, "Start the agent, or mend its address.")
    else:
        yield Finding("agent", Level.OK, f"{address.hostname}:{port} answers")
