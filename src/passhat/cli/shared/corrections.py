"""The right command line for a wrong one: misspelt, misplaced or from an earlier version."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

_OTHER_WORDS = {
    "config": "run --show-config",
    "help": "--help",
    "version": "--version",
    **dict.fromkeys(("list", "ls"), "runs"),
    **dict.fromkeys(("diagnose", "estimate", "flaky"), "report"),
}
"""Commands of earlier versions or other tools, functions of Python, and what does the same."""
_RUN_WORDS = ("test", "eval", "evaluate", "start")
"""Commands of other tools that make attempts, or report on a log."""
_SOURCES = ("sources", "source", "against")
_COLUMN_FLAGS = ("--map", "--pass-at", "--scorer")
"""Options about the columns of the source, which what `read` writes no longer has."""
_MANY = 6
"""So many commands are not listed as those that have an option."""
_SLICES = ("by", "cluster")
_SOURCE = re.compile(r"latest(~\d+)?$|[a-z_]+:|.*\.(csv|jsonl?|parquet|eval|db|gz|zst)$")
_COMMAND_LINE = re.compile(r"passhat [a-z-]+(?:[^;,.]|[.](?! |$))*")
_FLAG = re.compile(
    r"(?<![\w-])(--[a-z][a-z-]*)(?:[ =]('[^']*'|[^\s;,():'-](?:[^\s;,()']|,(?=[^\s,]))*))?"
)
"""An option in a hint, and the word after it, which may be its value."""
_PLACEHOLDER = re.compile(r"(^|\W)(PATTERN|COLUMN|FIELD|WORD)$|^TASK=")
"""A value that the user has to find: a command line with it does not run."""
_EXAMPLE = re.compile(r"^For example (--.*?)(?:[.:] |[.:]?$)")
"""Options that a hint gives as an example, several after ", or "."""
_FORECAST = re.compile(r"\bor forecast (\S+)\.$")
"""Advice to forecast what was not observed."""
_METRIC = re.compile(r"(pass|gpass|first|window|delta)[@^](\d+|k)(:\d?\.\d+)?$")


def correct_command(group: click.Group, ctx: click.Context, words: list[str]) -> click.UsageError:
    """The answer to words that do not begin with a command of the group."""
    names = group.list_commands(ctx)
    path = ctx.command_path
    first = words[0]
    problem = f"There is no command {first!r}."
    if first.startswith("-"):
        problem = f"{first} comes after a command."
    if path == "passhat" and (line := _translate(words)):
        return _usage(ctx, problem, [path, *line])
    # The options of a command, or its source, before its name.
    place = next((i for i, word in enumerate(words) if i and word in names), None)
    if place is not None:
        command = group.get_command(ctx, words[place])
        if isinstance(command, click.Group) and first in command.list_commands(ctx):
            rest = words[1:place] + words[place + 1 :]
            return _usage(ctx, problem, [path, words[place], first, *rest])
        return _usage(ctx, problem, [path, words[place], *words[place + 1 :], *words[:place]])
    inner = [name for name in names if first in _commands_below(group, ctx, name)]
    if inner:
        return _usage(ctx, problem, *([path, name, *words] for name in inner))
    if path == "passhat" and not first.startswith("-"):
        if _METRIC.match(first):
            return _usage(ctx, problem, [path, "explain", *words])
        if _SOURCE.match(first) or Path(first).exists():
            return _usage(ctx, problem, [path, "report", *words])
    near = difflib.get_close_matches(first, names, 2, cutoff=0.5)
    if near:
        return _usage(ctx, problem, *([path, name, *words[1:]] for name in near))
    return click.UsageError(f"{problem} '{path} -h' lists all.", ctx)


def _translate(words: list[str]) -> list[str]:
    """The command line for a command of an earlier version or another tool; empty for none."""
    first, *rest = words
    if first == "help" and rest:
        return [*rest, "--help"]
    if first in _RUN_WORDS:
        is_log = bool(rest) and _SOURCE.match(rest[0]) is not None
        return ["report" if is_log else "run", *rest]
    return [*_OTHER_WORDS[first].split(), *rest] if first in _OTHER_WORDS else []


def _commands_below(group: click.Group, ctx: click.Context, name: str) -> Sequence[str]:
    command = group.get_command(ctx, name)
    return command.list_commands(ctx) if isinstance(command, click.Group) else ()


def correct_word(root: click.Group, words: Sequence[str], problem: str) -> str:
    """A hint when a word of a command line is no source but a command or a metric.

    As in ``passhat report run`` and ``passhat report latest pass@2``.
    """
    if len(words) < 2:
        return ""
    ctx = click.Context(root)
    names = root.list_commands(ctx)
    first, second, *rest = words
    file, is_missing, _ = problem.partition(": there is no such file")
    if is_missing and _METRIC.match(file) and (command := root.get_command(ctx, first)):
        corrected = _with_metrics(command, f"passhat {first}", words[1:])
        return f"Write: {join_command(corrected)}" if corrected else ""
    if first not in names or second not in names or Path(second).exists():
        return ""
    line = join_command(["passhat", second, *rest])
    latest = join_command(["passhat", first, "latest", *rest])
    other = f", or {latest} for the newest run" if second in ("run", "runs") else ""
    return f"{second} is a command, too. Did you mean: {line}{other}?"


def complete_hint(root: click.Group, words: Sequence[str], hint: str) -> list[str]:
    """Command lines for the options of a hint that the command that was typed does not have.

    Most commands have few options for reading; ``passhat read`` has all of them.
    """
    others = {word for word in words if word[:1] == "-"} - {"-k", "--metric", "--full"}
    beyond = _FORECAST.search(hint)
    if beyond and not others and len(words) > 1 and _SOURCE.match(words[1]):
        line = ["passhat forecast", words[1], "--metric", beyond[1]]
        return [f"As in: {join_command(line)}"]
    if "--" not in hint:
        return []
    ctx = click.Context(root, info_name="passhat")
    commands = dict(_all_commands(ctx))
    name = next((n for n in (" ".join(words[:2]), *words[:1]) if n in commands), None)
    if name is None:
        return []
    command, reader = commands[name], commands["read"]
    own_flags, reading_flags = _all_flags(command), _all_flags(reader)
    arguments = list(words[len(name.split()) :])
    ctx = click.Context(command, parent=ctx, info_name=name)
    if example := _EXAMPLE.search(hint):
        return [
            f"{'  or:' if place else 'Write:'} {join_command(['passhat', *words, *parts])}"
            for place, parts in enumerate(map(str.split, example[1].split(", or ")))
            if own_flags.issuperset(parts[::2]) and not set(parts[::2]).intersection(words)
        ]
    lines = []
    reads = any(param.name in _SOURCES for param in command.params)
    groups = list(_option_groups(_COMMAND_LINE.sub("", hint)))
    concrete = [g for g in groups if not any(map(_PLACEHOLDER.search, g.values()))]
    for options in concrete or groups:
        lacking = options.keys() - own_flags
        elsewhere = lacking - (reading_flags if reads else set())
        owners = [other for other, one in commands.items() if lacking <= _all_flags(one)]
        if elsewhere and owners:
            flags = ", ".join(flag for flag in options if flag in lacking)
            where = f"; it is an option of {', '.join(owners)}" if len(owners) < _MANY else ""
            lines.append(f"(passhat {name} has no {flags}{where}.)")
        elif lacking and not elsewhere:
            pairs = (_option_words(reader, flag, value) for flag, value in options.items())
            reading_words = [word for pair in pairs for word in pair]
            steps = _read_first(command, ctx, [*arguments, *reading_words]) or [
                ["passhat", "read", "SOURCE", *reading_words, "-o", "runs.jsonl"]
            ]
            lines.append(f"Write: {_join_lines(steps, ' && ')}")
    return lines


def _with_metrics(command: click.Command, path: str, words: Sequence[str]) -> list[str]:
    """The command line with the metrics among its words as options; empty where there are none."""
    metrics, rest = list[str](), list[str]()
    for before, word in pairwise(["", *words]):
        (metrics if _METRIC.match(word) and before != "--metric" else rest).append(word)
    if not metrics or "--metric" not in _all_flags(command):
        return []
    return [path, *rest, *(part for metric in metrics for part in ("--metric", metric))]


def _option_groups(text: str) -> Iterator[dict[str, str]]:
    """Options that a text names one right after the other, with the word that follows each.

    Of the values that a text lists behind a colon it is the first.
    """
    group: dict[str, str] = {}
    end = None
    for match in _FLAG.finditer(text):
        if group and match.start() != end:
            yield group
            group = {}
        listed = text[match.end() + 1 :] if text[match.end() :].startswith(": ") else ""
        value = (match[2] or "").strip("'") or re.split(r", |\.(?: |$)", listed)[0].strip()
        group[match[1]] = value.rstrip(".")
        end = match.end() + 1
    if group:
        yield group


def _option_words(command: click.Command, flag: str, value: str) -> list[str]:
    """An option with its value, or with the placeholder that the help shows."""
    param = next((param for param in command.params if flag in _flags(param)), None)
    if not isinstance(param, click.Option):
        return []
    return [flag] if param.is_flag else [flag, value or param.metavar or "VALUE"]


def correct_extra_words(
    command: click.Command, ctx: click.Context, words: list[str], error: click.UsageError
) -> click.UsageError:
    """The answer to words that a command has no place for; other errors stay as they are."""
    options: tuple[str, ...] = getattr(command, "words", ())
    extra = [word for word in words if not word.startswith("-")]
    if type(error) is not click.UsageError or not words:
        return error
    if line := _with_metrics(command, ctx.command_path, words):
        return _usage(ctx, f"{error.message}.", line)
    if words[0] not in extra:
        return error
    if not options:
        # A file after a command about the store: its runs are shown there once they are in it.
        if "--store" not in _all_flags(command) or not Path(words[0]).exists():
            return error
        problem = f"{error.message}."
        if words[0].endswith(".db"):
            return _usage(ctx, problem, [ctx.command_path, "--store", *words])
        steps = ["passhat", "import", words[0]], [ctx.command_path, *words[1:]]
        return _usage(ctx, problem, *steps, joint=" && ")
    # Only words before the first option are certain to be no values.
    plain = []
    for word in words:
        if word.startswith("-"):
            break
        plain.append(word)
    if len(plain) > len(options):
        return error
    flags = [part for pair in zip(options, plain, strict=False) for part in pair]
    line = [ctx.command_path, *flags, *words[len(plain) :]]
    return _usage(ctx, f"{error.message}.", line)


def correct_option(
    command: click.Command, ctx: click.Context, words: list[str], error: click.NoSuchOption
) -> click.UsageError:
    """The answer to an option that a command does not have."""
    option = error.option_name
    place = next((i for i, word in enumerate(words) if word.split("=")[0] == option), None)
    if place is None:  # joined short options, as in -xyz
        return error
    problem = f"{ctx.command_path} has no option {option}."
    lead, before, (value, after) = [ctx.command_path], words[:place], _value(words, place)
    new_names: dict[str, str] = getattr(command, "renamed", {})
    if option in new_names:
        new = _new_words(new_names[option], option, value, str(ctx.info_name))
        return _usage(ctx, problem, [*lead, *before, *new, *after])
    flags = _all_flags(command)
    if "--metric" in flags and _METRIC.match(option[2:]):
        return _usage(ctx, problem, [*lead, *before, *_metric_words(option, value, words[place:])])
    key = option.lstrip("-").replace("-", "_")
    keys = {p.opts[0]: p for p in command.params if p.param_type_name == "setting"}
    positive_key = key.removeprefix("no_")
    if key in keys or positive_key in keys:
        setting = keys.get(key) or keys[positive_key]
        if setting.type is click.BOOL:
            value, after = ("yes" if key in keys else "no"), words[place + 1 :]
        line = [*lead, *before, "--set", f"{setting.opts[0]}={value or 'VALUE'}", *after]
        return _usage(ctx, f"{option} is a setting.", line)
    if lines := _read_first(command, ctx, words):
        return _usage(ctx, f"{problem} passhat read has it.", *lines, joint=" && ")
    owners = [name for name, one in _all_commands(ctx) if option in _all_flags(one)]
    # An option of another command is meant as it is, unless it is all but one of this command.
    cutoff = 0.85 if owners else 0.6
    is_short = option[1:] in flags  # --n for -n
    near = [option[1:]] if is_short else difflib.get_close_matches(option, flags, 1, cutoff)
    if near:
        correction = words[place].replace(option, near[0], 1)
        return _usage(ctx, problem, [*lead, *before, correction, *words[place + 1 :]])
    if len(owners) == 1 and owners[0] != "rm":  # a line that deletes is never offered
        return _usage(
            ctx, f"{problem} passhat {owners[0]} has it.", ["passhat", *owners[0].split(), *words]
        )
    if owners:
        commands = ", ".join(f"passhat {name}" for name in owners)
        return click.UsageError(f"{problem} It is an option of {commands}.", ctx)
    return error


def _new_words(template: str, option: str, value: str | None, command: str) -> list[str]:
    """The words for an option of an earlier version and its value."""
    new = [part.replace("{}", value or "") for part in template.split() if value or part != "{}"]
    if "{}" not in template and value is not None:
        new.append(_target(option, value))
    elif new == ["-o"]:
        new.append(f"{command}.{option.lstrip('-')}")
    return new


def _metric_words(option: str, value: str | None, words: list[str]) -> list[str]:
    """A metric that was written as an option, and the words after it: --pass@3, --pass@k 3."""
    if value is None or not option.endswith("k"):
        return ["--metric", option[2:], *words[1:]]
    return ["--metric", option[2:-1] + value, *_value(words, 0)[1]]


def _value(words: list[str], place: int) -> tuple[str | None, list[str]]:
    """The value of the option at a place, and the words after it."""
    _, sign, value = words[place].partition("=")
    if sign:
        return value, words[place + 1 :]
    following = words[place + 1 :]
    if following and (following[0] == "-" or not following[0].startswith("-")):
        return following[0], following[1:]
    return None, following


def _target(option: str, value: str) -> str:
    """A file for ``-o``; its form is named where the ending does not say it."""
    form = option.lstrip("-")
    if value == "-":
        return form
    return value if option == "--to" or Path(value).suffix else f"{form}:{value}"


def _read_first(command: click.Command, ctx: click.Context, words: list[str]) -> list[list[str]]:
    """``passhat read`` with all options on reading, then the command on what it wrote.

    Nothing is proposed when the command has all of the options.
    """
    reader = ctx.find_root().command.get_command(ctx, "read")  # type: ignore[attr-defined]
    known_flags = {flag for param in command.params for flag in _flags(param)}
    flags = {
        flag: param
        for param in reader.params
        if isinstance(param, click.Option)
        for flag in param.opts
        if flag not in known_flags or flag in _COLUMN_FLAGS
    }
    reading_words, rest, i = [], [], 0
    while i < len(words):
        name, sign, _ = words[i].partition("=")
        if name in flags:
            last = i + (0 if sign or flags[name].is_flag else 1)
            reading_words += words[i : last + 1]
            i = last + 1
        else:
            rest.append(words[i])
            i += 1
    if known_flags.issuperset({word.partition("=")[0] for word in reading_words} & flags.keys()):
        return []
    inner = click.Context(command, parent=ctx.parent, info_name=ctx.info_name)
    try:
        with inner.scope(cleanup=False):
            click.Command.parse_args(command, inner, list(rest))
    except (click.ClickException, click.exceptions.Exit):
        return []
    slices = [inner.params.get(name) for name in _SLICES]
    reading_words += [
        word for name in slices if isinstance(name, str) for word in ("--slice", name)
    ]
    lines: list[list[str]] = []
    files: dict[str, str] = {}
    for name in _SOURCES:
        value: Any = inner.params.get(name)
        sources = [value] if isinstance(value, str) else list(value or ())
        if sources:
            file = "base.jsonl" if name == "against" else "runs.jsonl"
            files |= dict.fromkeys(sources, file)
            lines.append(["passhat", "read", *sources, *reading_words, "-o", file])
    if not lines:
        lines, files = [["passhat", "read", "SOURCE", *reading_words, "-o", "runs.jsonl"]], {}
        rest = ["runs.jsonl", *rest]
    # Several sources become one file, named where the first of them was.
    result = list[str]()
    for word in rest:
        file = files.get(word, word)
        if word not in files or file not in result:
            result.append(file)
    return [*lines, [ctx.command_path, *result]]


def _flags(param: click.Parameter) -> list[str]:
    return [*param.opts, *param.secondary_opts] if isinstance(param, click.Option) else []


def _all_flags(command: click.Command) -> set[str]:
    return {flag for param in command.params for flag in _flags(param)}


def _all_commands(ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    root = ctx.find_root().command
    assert isinstance(root, click.Group)
    for name in root.list_commands(ctx):
        command = root.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", one) for sub, one in command.commands.items())
        elif command is not None:
            yield name, command


def _usage(
    ctx: click.Context, problem: str, *lines: Sequence[str], joint: str = "\n  or: "
) -> click.UsageError:
    """A problem and the command lines that were probably meant."""
    return click.UsageError(f"{problem} Write:\n  {_join_lines(lines, joint)}", ctx)


def _join_lines(lines: Iterable[Sequence[str]], joint: str) -> str:
    return joint.join(map(join_command, lines))


def join_command(words: Sequence[str]) -> str:
    """A command line to be copied; the first word is the command, which has a space in it."""
    return " ".join([words[0], *map(_quote, words[1:])])


def with_option(words: list[str], *option: str) -> list[str]:
    """The words with an option and its value, in place of another value where there is one."""
    if option and option[0] in words:
        place = words.index(option[0])
        return [*words[:place], *option, *words[place + 2 :]]
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], *option, *words[end:]]


def _quote(word: str) -> str:
    """A word for a shell; metrics such as pass^4 need no quotes there."""
    return word if re.fullmatch(r"[\w@%+=:,./~^-]+", word) else shlex.quote(word)
