"""The group of all commands, and their exit codes and error messages."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import BinaryIO, TextIO

import click

from passhat._display import visible
from passhat._version import __version__
from passhat.cli.shared.commands import Group
from passhat.cli.shared.corrections import complete_hint, correct_word
from passhat.cli.shared.exits import ExitCode, hint_text
from passhat.cli.shared.options import forget_standard_output
from passhat.cli.shared.outputs import fit_screen
from passhat.errors import PasshatError

SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Start": ("init", "demo", "doctor"),
        "Run an agent": (
            "run",
            "runs",
            "show",
            "view",
            "label",
            "judge-check",
            "regrade",
            "rm",
            "store",
        ),
        "Report and decide": (
            *("report", "compare", "leaderboard", "gate", "history", "bisect"),
            *("why", "explain", "figure", "review"),
        ),
        "Look ahead": ("plan", "forecast", "temperature"),
        "Read and write logs": ("read", "import", "export", "validate"),
        "Judge programs": ("judge", "sandbox"),
        "Serve other systems": ("serve", "white", "battle", "mcp"),
        "Look up": ("agents", "suites", "tasks", "completion"),
    }
)
"""Every command, in the order in which help lists them."""

COMMANDS = tuple(name for names in SECTIONS.values() for name in names)


_SHARED_MODULES = MappingProxyType(
    {
        "agents": ("listing", "agents_command"),
        "suites": ("listing", "suites_command"),
        "tasks": ("listing", "tasks_command"),
        "completion": ("listing", "completion_command"),
        "rm": ("runs", "rm_command"),
        "import": ("export", "import_command"),
        "validate": ("export", "validate_command"),
        "judge-check": ("regrade", "judge_check_command"),
    }
)
"""Small commands that share a module; every other command has one of its own name."""


class _Commands(Group):
    """Imports a command's module when it is needed; the modules keep heavy imports inside."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = _SHARED_MODULES.get(name, (name, "command"))
        command = getattr(import_module(f"passhat.cli.{module}"), attribute)
        return command if isinstance(command, click.Command) else None

    def sections(self) -> Iterable[tuple[str, Iterable[str]]]:
        return SECTIONS.items()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="passhat")
def cli() -> None:
    """Run your agent k times. Know how often it gets it right every time."""


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
    # Escape sequences other than colors and those of a progress bar: erase, up, show, hide.
    r"|\x1b(?!\[[0-9;]*m|\[[0-2]?K|\[\d*A|\[\?25[hl])"
)


_MOVES = re.compile("[\r\x1b]")
"""What a progress line begins with."""


class _SafeStream(io.TextIOBase):
    """A stream that escapes control characters, so that no text can control the terminal.

    Commands print clean text already; this is a safety net for every command at once. Messages
    to a person at a terminal are broken between words.
    """

    def __init__(self, stream: TextIO, *, is_for_messages: bool = False) -> None:
        self._stream = stream
        self._is_for_messages = is_for_messages

    def write(self, text: str, /) -> int:
        safe = _UNSAFE.sub(_spell_out, text)
        # In a log a message stays on one line, where it is searched for.
        if self._is_for_messages and self.isatty() and not _MOVES.search(safe):
            safe = fit_screen(safe)
        self._stream.write(safe)
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    # The base class has these as None, and click then writes to the bytes below instead.
    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    @property
    def buffer(self) -> BinaryIO:
        return self._stream.buffer


def _spell_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


@contextmanager
def _safe_streams() -> Iterator[None]:
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _SafeStream(stdout), _SafeStream(stderr, is_for_messages=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; no mistake of a user ends in a traceback."""
    words = tuple(sys.argv[1:] if arguments is None else arguments)
    with _safe_streams():
        return _run_command(words)


def _run_command(words: tuple[str, ...]) -> int:
    try:
        code = cli.main(args=words, prog_name="passhat", standalone_mode=False, obj=words)
        return int(code) if isinstance(code, int) else ExitCode.OK
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except PasshatError as error:
        click.echo(f"passhat: {visible(error.message)}", err=True)
        hint = correct_word(cli, words, error.message) or hint_text(error)
        for line in filter(None, (*hint.splitlines(), *complete_hint(cli, words, hint))):
            click.echo(f"  {visible(line)}", err=True)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return ExitCode.STOPPED
    except BrokenPipeError:
        forget_standard_output()
        return ExitCode.OK
