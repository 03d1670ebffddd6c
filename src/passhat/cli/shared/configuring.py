"""Where the values of options come from: flag, environment, file, default, in this order.

In a TOML file, ``[run]`` takes the names of options and settings. ``[pass_k_config]`` is read as
tau-bench green agents read it: ``mode`` "manual" tries one task of one domain, "random" some tasks
of both domains.
"""

from __future__ import annotations

import difflib
import os
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from passhat.cli.shared.commands import Command, Setting, options_of, settings_of
from passhat.cli.shared.exits import ExitCode
from passhat.errors import InvalidValue, ReadError, shorten

if TYPE_CHECKING:
    from rich.console import RenderableType

_PREFIX = "PASSHAT_"
_FILE_OPTION = "config"
_NOT_SETTINGS = (_FILE_OPTION, "set", "show_config")
_HELP = {"-h", "--help"}
_RANKS = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
_DEFAULT_STORE = ".passhat/passhat.db"


def store_option(function: click.decorators.FC) -> click.decorators.FC:
    """Where attempts are kept; the same for every command that needs it."""
    return click.option(
        "--store",
        "store_path",
        metavar="PATH|URL",
        default=read_store_setting,
        envvar="PASSHAT_STORE",
        help="Where attempts are kept: a file, or postgresql://USER@HOST/DATABASE.  "
        f"[default: {_DEFAULT_STORE}]",
    )(function)


def name_unusual_store(place: str) -> str:
    """The place of a store, where commands without ``--store`` look elsewhere; else empty."""
    from passhat.store import is_same_place

    usual = os.environ.get("PASSHAT_STORE") or read_store_setting()
    return "" if is_same_place(place, usual) else place


def store_words(place: str) -> str:
    """The ``--store`` to write after a command about this store; empty where none is needed."""
    name = name_unusual_store(place)
    return f" --store {shlex.quote(name)}" if name else ""


def read_store_setting() -> str:
    """The store that passhat.toml in this folder names, so that all commands use the same one."""
    return (read_store(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None) or _DEFAULT_STORE


class _Words(click.types.StringParamType):
    """Several values in an environment variable, separated by commas: a rule contains blanks."""

    envvar_list_splitter = ","

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx).strip()


class Configured(Command):
    """A command whose options can also be set in the environment and in a TOML file.

    The name of an option in a file is its long flag with ``_``; in the environment it is that in
    capitals after ``PASSHAT_``. A new option is configurable without another line of code.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for key, option in _parameters(self).items():
            if option.multiple and option.type is click.STRING:
                option.type = _Words()
            if key not in ("set", "show_config"):
                option.envvar = option.envvar or f"{_PREFIX}{key.upper()}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        configuration = self._configuration(ctx, list(args))
        ctx.meta[_FILE_OPTION] = configuration
        by_key = _parameters(self)
        ctx.default_map = {
            str(by_key[key].name): _convert(by_key[key], key, setting, configuration, ctx)
            for key, setting in configuration.settings.items()
        }
        rest = super().parse_args(ctx, args)
        _keep_one_choice_of_tasks(ctx, by_key)
        return rest

    def _configuration(self, ctx: click.Context, args: list[str]) -> Configuration:
        """The file that is named, or passhat.toml where it lies here."""
        if ctx.resilient_parsing or _HELP & set(args):
            return Configuration()
        by_key = _parameters(self)
        option = by_key[_FILE_OPTION]
        # Only --config is looked up here; other problems are reported later.
        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        try:
            file_option = parser.parse_args(args)[0].get(str(option.name))
        except click.UsageError:
            file_option = None
        path = file_option if isinstance(file_option, str) else option.value_from_envvar(ctx)
        if path is None and Path(DEFAULT_FILE).is_file():
            path = DEFAULT_FILE
        if path is None:
            return Configuration()
        return read_configuration(str(path), set(by_key) - set(_NOT_SETTINGS))


def _parameters(command: click.Command) -> dict[str, click.Option | Setting]:
    """Every option and setting by the name it has in a file."""
    return {**options_of(command), **settings_of(command)}


def _convert(
    option: click.Option | Setting,
    key: str,
    setting: FileValue,
    configuration: Configuration,
    ctx: click.Context,
) -> object:
    """The value as the flag would take it; a mistake names the file, not a flag."""

    def wrong(why: str) -> ReadError:
        return ReadError(f"[{setting.table}] {key}: {why}", source=configuration.path)

    value = setting.value
    if option.is_flag != isinstance(value, bool):
        takes = "must be true or false" if option.is_flag else "takes a value, not true or false"
        raise wrong(f"{takes}.")
    if isinstance(value, list) and not option.multiple:
        raise wrong("takes one value, not a list.")
    if option.is_flag:
        return value
    words = [str(item) for item in value] if isinstance(value, list) else [str(value)]
    try:
        values = [option.type.convert(word, option, ctx) for word in words]
    except click.BadParameter as error:
        raise wrong(error.message) from None
    return values if option.multiple else values[0]


def _keep_one_choice_of_tasks(
    ctx: click.Context, by_key: Mapping[str, click.Option | Setting]
) -> None:
    """``--task`` on the command line ends a file's ``random``, and the other way round."""
    rivals = [by_key[key] for key in ("task", "random") if key in by_key]
    by_rank = {
        _RANKS.index(source): option
        for option in rivals
        if (source := ctx.get_parameter_source(str(option.name))) in _RANKS
    }
    if len(by_rank) == 2:
        loser = by_rank[max(by_rank)]
        ctx.params[str(loser.name)] = () if loser.multiple else None
        ctx.set_parameter_source(str(loser.name), ParameterSource.DEFAULT)


@dataclass(frozen=True, slots=True)
class Origin:
    """A value and its origin."""

    key: str
    value: object
    source: str
    where: str


def origins(ctx: click.Context) -> Iterator[Origin]:
    """Every option of a configured command with the place that decided it."""
    from passhat.store import without_password

    configuration: Configuration = ctx.meta[_FILE_OPTION]
    for key, option in _parameters(ctx.command).items():
        if key in _NOT_SETTINGS:
            continue
        name = str(option.name)
        origin = ctx.get_parameter_source(name)
        if origin is ParameterSource.COMMANDLINE:
            flag = isinstance(option, click.Option)
            source, where = "flag", max(option.opts, key=len) if flag else f"--set {key}"
        elif origin is ParameterSource.ENVIRONMENT:
            source, where = "environment", str(option.envvar)
        elif origin is ParameterSource.DEFAULT_MAP:
            table = configuration.settings[key].table
            source, where = "file", f"{configuration.path} [{table}]"
        else:
            source, where = "default", ""
        value = ctx.params[name]
        if isinstance(value, str):
            value = without_password(value)
        yield Origin(key, list(value) if isinstance(value, tuple) else value, source, where)


def unknown_settings(ctx: click.Context, environment: Iterable[str]) -> list[str]:
    """Variables that look like settings and are none: a slip would go unseen otherwise."""
    variables = {str(option.envvar) for option in _parameters(ctx.command).values()}
    return sorted(
        name for name in environment if name.startswith(_PREFIX) and name not in variables
    )


def print_configuration(ctx: click.Context, *, as_json_text: bool) -> ExitCode:
    """Print every setting of a configured command, its value and the place that decided it."""
    import os

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.terminal import capture, plain, plain_table
    from passhat.runner.redaction import Redactor

    redact = Redactor(os.environ)
    settings = list(origins(ctx))
    configuration: Configuration = ctx.meta[_FILE_OPTION]
    unknown = unknown_settings(ctx, os.environ)
    if as_json_text:
        data = {
            "file": configuration.path or None,
            "ignored": list(configuration.ignored),
            "unknown_variables": unknown,
            "settings": settings,
        }
        click.echo(redact(as_json(data)), nl=False)
        return ExitCode.OK
    rows = [
        [origin.key, redact(_word(origin.value)), f"{origin.source} {origin.where}".rstrip()]
        for origin in settings
    ]
    parts: list[RenderableType] = [plain_table(("setting", "value", "from"), rows, left=(0, 1, 2))]
    if configuration.ignored:
        parts.append(plain(f"not passhat's: {', '.join(configuration.ignored)}"))
    if unknown:
        parts.append(plain(f"variables that are not a setting: {', '.join(unknown)}"))
    click.echo(capture(Console(), lambda: parts), nl=False)
    return ExitCode.OK


def _word(value: object) -> str:
    """A value as a cell of the table: a dash when nothing is set, members for a list."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None or value == "" else str(value)


DEFAULT_FILE = "passhat.toml"
"""Used when it lies in the folder that passhat is called in."""

_OWN, _GATE, _GREEN = "run", "gate", "pass_k_config"
_GREEN_KEYS = ("mode", "k", "domain", "task_id", "num_battles")
_DOMAINS = ("retail", "airline")

Value = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class FileValue:
    """A value and the TOML table it is in."""

    value: Value
    table: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings of a run from a file; ``ignored`` are entries of another program."""

    path: str = ""
    settings: Mapping[str, FileValue] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read_configuration(path: str, known: Collection[str]) -> Configuration:
    """Read a file; ``known`` are the names of options that ``[run]`` may set.

    Raises
    ------
    ReadError
        The file cannot be read, is not TOML, or holds a name or a value that means nothing.
    """
    data = _parse_file(path)
    green = _table(data, _GREEN, path)
    table = _table(data, _OWN, path)
    tables = (_OWN, _GATE, _GREEN)
    others = tuple(name for name in data if name not in tables)
    for name in others:
        # The file of a green agent describes that agent, too. Only a likely slip is refused there.
        if green is None or difflib.get_close_matches(name, tables):
            raise _unknown(name, tables, path, "table")
    settings = {} if green is None else _from_green(green, path)
    for name, value in (table or {}).items():
        if name not in known:
            raise _unknown(name, known, path, f"key in [{_OWN}]")
        settings[name] = FileValue(_plain(value, f"{_OWN}.{name}", path), _OWN)
    return Configuration(path, settings, others)


def read_green_table(path: str) -> Mapping[str, object]:
    """Read ``[pass_k_config]`` as it stands, checked."""
    table = _table(_parse_file(path), _GREEN, path)
    if table is None:
        raise ReadError(f"has no table [{_GREEN}].", source=path)
    _from_green(table, path)
    return table


def read_store(path: str) -> str | None:
    """The ``store`` of ``[run]``; the other settings are checked by the command they belong to."""
    value = (_table(_parse_file(path), _OWN, path) or {}).get("store")
    if value is None or isinstance(value, str):
        return value
    raise ReadError(f"[{_OWN}] store must be text, not {shorten(value)}.", source=path)


def read_rules() -> tuple[str, ...]:
    """The ``rules`` of ``[gate]`` in passhat.toml here, for a gate to which none are given."""
    if not Path(DEFAULT_FILE).is_file():
        return ()
    table = _table(_parse_file(DEFAULT_FILE), _GATE, DEFAULT_FILE) or {}
    for name in table:
        if name != "rules":
            raise _unknown(name, ("rules",), DEFAULT_FILE, f"key in [{_GATE}]")
    rules = table.get("rules", [])
    rules = [rules] if isinstance(rules, str) else rules
    if isinstance(rules, list) and all(isinstance(rule, str) for rule in rules):
        return tuple(rules)
    raise ReadError(
        f"[{_GATE}] rules must be a list of rules, not {shorten(rules)}.",
        source=DEFAULT_FILE,
        hint="For example rules = ['pass^4 >= 0.6'].",
    )


def _parse_file(path: str) -> dict[str, object]:
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
    known_text = f"Known: {', '.join(sorted(known))}."
    return ReadError(
        f"{shorten(name)} is no known {what}.",
        source=path,
        hint=f"Did you mean {near[0]}? {known_text}" if near else known_text,
    )


def _from_green(table: Mapping[str, object], path: str) -> dict[str, FileValue]:
    """The options that ``[pass_k_config]`` amounts to."""
    for name in table:
        if name not in _GREEN_KEYS:
            raise _unknown(name, _GREEN_KEYS, path, f"key in [{_GREEN}]")
    try:
        values = _green_values(table)
    except InvalidValue as error:
        raise ReadError(f"[{_GREEN}] {error.message}", source=path, hint=error.hint) from None
    return {name: FileValue(value, _GREEN) for name, value in values.items()}


def _green_values(table: Mapping[str, object]) -> dict[str, Value]:
    attempts = _whole(table, "k", 2)
    if attempts % 2:
        raise InvalidValue(
            f"k must be even, not {attempts}: half of it, k/2, is asked for as window^(k/2).",
            hint=f"Write k = {attempts + 1}, or use attempts = {attempts} in [run] instead.",
        )
    mode = table.get("mode", "manual")
    if mode == "random":
        battle_count = _whole(table, "num_battles", 1)
        return {"suite": "orderdesk", "random": battle_count, "attempts": attempts, "k": attempts}
    if mode != "manual":
        raise InvalidValue(f'mode must be "manual" or "random", not {shorten(mode)}.')
    domain = table.get("domain")
    if domain not in _DOMAINS:
        raise InvalidValue(f'domain must be "retail" or "airline", not {shorten(domain)}.')
    task = str(_whole(table, "task_id", 0))
    return {"suite": f"orderdesk/{domain}", "task": [task], "attempts": attempts, "k": attempts}


def _whole(table: Mapping[str, object], name: str, least: int) -> int:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        came = "nothing" if name not in table else shorten(value)
        raise InvalidValue(f"{name} must be a whole number of at least {least}, not {came}.")
    return value
