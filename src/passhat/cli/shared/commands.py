"""Base classes of all commands: examples in the help, rare settings, and corrected command lines.

A *setting* is a rarely used value of a command. It has no flag: ``--set KEY=VALUE`` gives it on the
command line, and where a command is configurable also the environment and ``passhat.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import click
from click.core import ParameterSource

from passhat.cli.shared.corrections import correct_command, correct_extra_words, correct_option

_ASSIGNMENTS = "passhat.set"
"""Values of ``--set`` by key, in click's context."""


class Setting(click.Parameter):
    """A value without a flag, set by ``--set KEY=VALUE``; ``multiple`` may be given repeatedly."""

    param_type_name = "setting"

    def __init__(self, decls: Iterable[str], *, help: str, **options: Any) -> None:  # noqa: A002
        super().__init__(tuple(decls), **options)
        self.text = help

    @property
    def key(self) -> str:
        """Its name on the command line and in a file."""
        return self.opts[0]

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false."""
        return self.type is click.BOOL

    def _parse_decls(self, decls: Any, _expose_value: bool) -> tuple[str, list[str], list[str]]:
        key, *name = decls
        return (name[0] if name else key), [key], []

    def add_to_parser(self, _parser: Any, _ctx: click.Context) -> None:
        """Do nothing: there is no flag to parse."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        values = ctx.meta.get(_ASSIGNMENTS, {}).get(self.key)
        if values:
            return (values if self.multiple else values[-1]), ParameterSource.COMMANDLINE
        return super().consume_value(ctx, opts)

    def line(self) -> tuple[str, str]:
        """Key and help text with the default, as the reference lists them."""
        default = self.default if isinstance(self.default, int | float | str) else None
        default_text = (
            f"  [default: {default}]" if default is not None and "[default" not in self.text else ""
        )
        choices = (
            f" ({', '.join(self.type.choices)})" if isinstance(self.type, click.Choice) else ""
        )
        return self.key, f"{self.text}{choices}{default_text}"


def setting(*decls: str, help: str, **options: Any) -> Callable[[Any], Any]:  # noqa: A002
    """Declare a setting of a command: its key and, where it differs, the parameter's name."""
    kind = cast("type[click.Option]", Setting)  # click.option takes any parameter class
    return click.option(*decls, cls=kind, help=help, **options)


def set_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--set KEY=VALUE``, for the settings of the command."""
    return click.option(
        "--set",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=_assign,
        metavar="KEY=VALUE",
        help="A rarely used setting, as in lease=60; the reference lists them. Repeatable.",
    )(function)


def _assign(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> None:
    """Keep the values of ``--set`` for the settings that they belong to."""
    import difflib

    by_key = settings_of(ctx.command)
    values: dict[str, list[str]] = {}
    for word in words:
        key, sign, value = word.partition("=")
        key = key.strip().replace("-", "_")
        if key in by_key and (sign or by_key[key].is_flag):
            values.setdefault(key, []).append(value.strip() if sign else "true")
            continue
        if key in by_key:
            raise click.BadParameter(f"{word!r} should read {key}=VALUE.", param=param)
        option = options_of(ctx.command).get(key)
        if option is not None:
            hint = f"{key} is an option: {max(option.opts, key=len)} {value}".rstrip()
        else:
            near = difflib.get_close_matches(key, by_key, 1)
            guess = f"Did you mean {near[0]}? " if near else ""
            hint = f"{key!r} is not a setting. {guess}Known: {', '.join(sorted(by_key))}"
        raise click.BadParameter(f"{hint}.", param=param)
    ctx.meta[_ASSIGNMENTS] = values


def settings_of(command: click.Command) -> dict[str, Setting]:
    """The settings of a command by key."""
    return {param.key: param for param in command.params if isinstance(param, Setting)}


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by long name with ``_``, as a settings file writes it."""
    return {
        max(option.opts, key=len).lstrip("-").replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option)
    }


class Command(click.Command):
    """A command with examples in its help; a misspelt option is answered with the right line.

    Parameters
    ----------
    examples
        Command lines that end its help; tests run them.
    renamed
        Options of earlier versions and the words that replace them, as in ``{"--md": "-o"}``.
        ``{}`` in the words stands for the option's value.
    words
        Options that plain words were probably meant for, in order: ``passhat run AGENT SUITE``.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: tuple[str, ...] = (),
        renamed: Mapping[str, str] = MappingProxyType({}),
        words: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples
        self.renamed = renamed
        self.words = words
        if examples:
            lines = "\n".join(f"  {example}" for example in examples)
            self.epilog = f"\b\nExamples:\n{lines}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise correct_option(self, ctx, words, error) from None
        except click.MissingParameter as error:
            example = f"{error.message} For example: {self.examples[0]}" if self.examples else None
            raise click.MissingParameter(
                example and example.lstrip(), ctx, error.param, error.param_hint, error.param_type
            ) from None
        except click.UsageError as error:
            raise correct_extra_words(self, ctx, words, error) from None


class Group(click.Group):
    """A group of commands that answers a misspelt or misplaced word with the right command line."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            raise correct_command(self, ctx, words) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            raise correct_command(self, ctx, list(args)) from None

    def sections(self) -> Iterable[tuple[str, Iterable[str]]]:
        """Headings of the help, and the commands below each."""
        return [("Commands", tuple(self.commands))]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print every command with the whole first sentence of its help."""
        for heading, names in self.sections():
            pairs = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, first_sentence(one)) for name, one in pairs if one])


def first_sentence(command: click.Command) -> str:
    """The first paragraph of a command's help, on one line."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def every_command(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Each command below a group, under the words that call it."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from every_command(command, f"{path}{name} ")
        elif command is not None:
            yield f"{path}{name}", command
