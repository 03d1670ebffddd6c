"""Where the values of options come from: flag, environment, file, default, in this order."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from passhat.cli.shared.settings import Configuration, Setting

__all__ = [
    "Configured",
    "Origin",
    "configured_store",
    "origins",
    "same_options",
    "store_option",
    "unknown_settings",
]

_PREFIX = "PASSHAT_"
_FILE_OPTION = "config"
_NOT_SETTINGS = (_FILE_OPTION, "json")
_HELP = {"-h", "--help"}
_RANKS = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
_DEFAULT_STORE = ".passhat/passhat.db"


def store_option(function: click.decorators.FC) -> click.decorators.FC:
    """Where attempts are kept; the same for every command that needs it."""
    return click.option(
        "--store",
        "store_path",
        metavar="PATH|URL",
        default=configured_store,
        envvar="PASSHAT_STORE",
        help="Where attempts are kept: a file, or postgresql://USER@HOST/DATABASE.  "
        f"[default: {_DEFAULT_STORE}]",
    )(function)


def configured_store() -> str:
    """The store that passhat.toml in this folder names, so that all commands use the same one."""
    from passhat.cli.shared.settings import DEFAULT_FILE, read_store

    return (read_store(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None) or _DEFAULT_STORE


class _Words(click.types.StringParamType):
    """Several values in an environment variable, separated by commas: a rule contains blanks."""

    envvar_list_splitter = ","

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx).strip()


class Configured(click.Command):
    """A command whose options can also be set in the environment and in a TOML file.

    The name of an option in a file is its long flag with ``_``; in the environment it is that in
    capitals after ``PASSHAT_``. A new option is configurable without another line of code.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for key, option in _options_by_key(self).items():
            if option.multiple and option.type is click.STRING:
                option.type = _Words()
            if key != "json":
                option.envvar = option.envvar or f"{_PREFIX}{key.upper()}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        configuration = self._configuration(ctx, list(args))
        ctx.meta[_FILE_OPTION] = configuration
        by_key = _options_by_key(self)
        ctx.default_map = {
            str(by_key[key].name): _converted(by_key[key], key, setting, configuration, ctx)
            for key, setting in configuration.settings.items()
        }
        rest = super().parse_args(ctx, args)
        _keep_one_choice_of_tasks(ctx, by_key)
        return rest

    def _configuration(self, ctx: click.Context, args: list[str]) -> Configuration:
        """The file that is named, or passhat.toml where it lies here."""
        from passhat.cli.shared.settings import DEFAULT_FILE, Configuration, read_configuration

        if ctx.resilient_parsing or _HELP & set(args):
            return Configuration()
        by_key = _options_by_key(self)
        option = by_key[_FILE_OPTION]
        # Only --config is looked up here; other problems are reported later.
        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        try:
            named = parser.parse_args(args)[0].get(str(option.name))
        except click.UsageError:
            named = None
        path = named if isinstance(named, str) else option.value_from_envvar(ctx)
        if path is None and Path(DEFAULT_FILE).is_file():
            path = DEFAULT_FILE
        if path is None:
            return Configuration()
        return read_configuration(str(path), set(by_key) - set(_NOT_SETTINGS))


def _options_by_key(command: click.Command) -> dict[str, click.Option]:
    """Every option by the name it has in a file."""
    return {
        max(option.opts, key=len).lstrip("-").replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option)
    }


def _converted(
    option: click.Option,
    key: str,
    setting: Setting,
    configuration: Configuration,
    ctx: click.Context,
) -> object:
    """The value as the flag would take it; a mistake names the file, not a flag."""
    from passhat.errors import ReadError

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
        converted = [option.type.convert(word, option, ctx) for word in words]
    except click.BadParameter as error:
        raise wrong(error.message) from None
    return converted if option.multiple else converted[0]


def _keep_one_choice_of_tasks(ctx: click.Context, by_key: dict[str, click.Option]) -> None:
    """``--task`` on the command line ends a file's ``random``, and the other way round."""
    named = [by_key[key] for key in ("task", "random") if key in by_key]
    ranked = {
        _RANKS.index(source): option
        for option in named
        if (source := ctx.get_parameter_source(str(option.name))) in _RANKS
    }
    if len(ranked) == 2:
        loser = ranked[max(ranked)]
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
    for key, option in _options_by_key(ctx.command).items():
        if key in _NOT_SETTINGS:
            continue
        name = str(option.name)
        origin = ctx.get_parameter_source(name)
        if origin is ParameterSource.COMMANDLINE:
            source, where = "flag", max(option.opts, key=len)
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
    known = {str(option.envvar) for option in _options_by_key(ctx.command).values()}
    return sorted(name for name in environment if name.startswith(_PREFIX) and name not in known)


def same_options(command: click.Command) -> list[click.Parameter]:
    """The options of another command, none of them required."""
    values = []
    for option in command.params:
        own = copy.copy(option)
        own.required = False
        values.append(own)
    return values
