"""Settings of a run in a TOML file: passhat's own table, and that of tau-bench green agents.

``[run]`` takes the names of the command's options. ``[pass_k_config]`` is read as those agents read
it: ``mode`` "manual" tries one task of one domain, "random" some tasks of both domains.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from passhat.errors import InvalidValue, ReadError, shorten

__all__ = ["DEFAULT_FILE", "Configuration", "Setting", "read_configuration", "read_store"]

DEFAULT_FILE = "passhat.toml"
"""Used when it lies in the folder that passhat is called in."""

_OWN, _GREEN = "run", "pass_k_config"
_GREEN_KEYS = ("mode", "k", "domain", "task_id", "num_battles")
_DOMAINS = ("retail", "airline")

Value = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and the TOML table it is in."""

    value: Value
    table: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings of a run from a file; ``ignored`` are entries of another program."""

    path: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read_configuration(path: str, known: Collection[str]) -> Configuration:
    """Read a file; ``known`` are the names of options that ``[run]`` may set.

    Raises
    ------
    ReadError
        The file cannot be read, is not TOML, or holds a name or a value that means nothing.
    """
    data = _parsed(path)
    green = _table(data, _GREEN, path)
    own = _table(data, _OWN, path)
    others = tuple(name for name in data if name not in (_OWN, _GREEN))
    for name in others:
        # The file of a green agent describes that agent, too. Only a likely slip is refused there.
        if green is None or difflib.get_close_matches(name, (_OWN, _GREEN)):
            raise _unknown(name, (_OWN, _GREEN), path, "table")
    settings = {} if green is None else _from_green(green, path)
    for name, value in (own or {}).items():
        if name not in known:
            raise _unknown(name, known, path, f"key in [{_OWN}]")
        settings[name] = Setting(_plain(value, f"{_OWN}.{name}", path), _OWN)
    return Configuration(path, settings, others)


def read_store(path: str) -> str | None:
    """The ``store`` of ``[run]``; the other settings are checked by the command they belong to."""
    value = (_table(_parsed(path), _OWN, path) or {}).get("store")
    if value is None or isinstance(value, str):
        return value
    raise ReadError(f"[{_OWN}] store must be text, not {shorten(value)}.", source=path)


def _parsed(path: str) -> dict[str, object]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}.", source=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"is not TOML ({error}).", source=path) from None


def _table(data: Mapping[str, object], name: str, path: str) -> dict[str, object] | None:
    table = data.get(name)
    if table is None or isinstance(table, dict):
        return table
    raise ReadError(f"{name} must be a table, [{name}], not {shorten(table)}.", source=path)


def _plain(value: object, where: str, path: str) -> Value:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return [str(item) for item in value]
    raise ReadError(
        f"{where} must be text, a number, true or false, or a list of names, not {shorten(value)}.",
        source=path,
    )


def _unknown(name: str, known: Collection[str], path: str, what: str) -> ReadError:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    listed = f"Known: {', '.join(sorted(known))}."
    return ReadError(
        f"{shorten(name)} is no known {what}.",
        source=path,
        hint=f"Did you mean {near[0]}? {listed}" if near else listed,
    )


def _from_green(table: Mapping[str, object], path: str) -> dict[str, Setting]:
    """The options that ``[pass_k_config]`` amounts to."""
    for name in table:
        if name not in _GREEN_KEYS:
            raise _unknown(name, _GREEN_KEYS, path, f"key in [{_GREEN}]")
    try:
        values = _green_values(table)
    except InvalidValue as error:
        raise ReadError(f"[{_GREEN}] {error.message}", source=path, hint=error.hint) from None
    return {name: Setting(value, _GREEN) for name, value in values.items()}


def _green_values(table: Mapping[str, object]) -> dict[str, Value]:
    attempts = _whole(table, "k", 2)
    if attempts % 2:
        raise InvalidValue(
            f"k must be even, not {attempts}: half of it, k/2, is asked for as window^(k/2).",
            hint=f"Write k = {attempts + 1}, or use attempts = {attempts} in [run] instead.",
        )
    mode = table.get("mode", "manual")
    if mode == "random":
        drawn = _whole(table, "num_battles", 1)
        return {"suite": "orderdesk", "random": drawn, "attempts": attempts}
    if mode != "manual":
        raise InvalidValue(f'mode must be "manual" or "random", not {shorten(mode)}.')
    domain = table.get("domain")
    if domain not in _DOMAINS:
        raise InvalidValue(f'domain must be "retail" or "airline", not {shorten(domain)}.')
    task = str(_whole(table, "task_id", 0))
    return {"suite": f"orderdesk/{domain}", "task": [task], "attempts": attempts}


def _whole(table: Mapping[str, object], name: str, least: int) -> int:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        came = "nothing" if name not in table else shorten(value)
        raise InvalidValue(f"{name} must be a whole number of at least {least}, not {came}.")
    return value
