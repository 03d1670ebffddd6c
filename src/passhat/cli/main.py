"""The group of all commands, and how any of them ends."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import BinaryIO, TextIO

import click

from passhat._display import visible
from passhat._version import __version__
from passhat.cli.examples import add_examples
from passhat.cli.exits import ExitCode
from passhat.cli.options import SuggestingGroup, forget_standard_output
from passhat.errors import PasshatError

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = (
    *("init", "demo", "run", "runs", "show", "rm", "regrade", "store", "suites", "tasks", "agents"),
    *("config", "doctor"),
    *("report", "compare", "view", "gate", "plan", "forecast", "temperature", "explain"),
    *(
        "figure",
        "review",
        "judge",
        "sandbox",
        "read",
        "import",
        "export",
        "validate",
        "serve",
        "battle",
    ),
    "completion",
)
"""Every command, one module of the same name each, in the order in which help lists them."""


_MODULES = MappingProxyType({"import": "importing"})
"""Commands whose name cannot be that of a module."""


class _Commands(SuggestingGroup):
    """Imports a command's module when it is asked for; the modules keep heavy imports inside."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = _MODULES.get(name, name)
        command = import_module(f"passhat.cli.{module}").command
        if not isinstance(command, click.Command):
            return None
        add_examples(command, name)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="passhat")
def cli() -> None:
    """Run your agent k times. Know how often it gets it right every time."""


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
    # Escape sequences other than colors and what a progress bar needs: erase, up, show, hide.
    r"|\x1b(?!\[[0-9;]*m|\[[0-2]?K|\[\d*A|\[\?25[hl])"
)


class _SafeStream(io.TextIOBase):
    """A stream that writes control characters out, so that no text can steer the terminal.

    What commands print is clean already; this is the net below them, for every command at once.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        self._stream.write(_UNSAFE.sub(_written_out, text))
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


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


@contextmanager
def _safe_streams() -> Iterator[None]:
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _SafeStream(stdout), _SafeStream(stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; no mistake of a user ends in a traceback."""
    try:
        given = tuple(sys.argv[1:] if arguments is None else arguments)
        with _safe_streams():
            code = cli.main(args=arguments, prog_name="passhat", standalone_mode=False, obj=given)
        return int(code) if isinstance(code, int) else ExitCode.OK
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except PasshatError as error:
        click.echo(f"passhat: {visible(error.message)}", err=True)
        if error.hint:
            click.echo(f"  {visible(error.hint)}", err=True)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return ExitCode.STOPPED
    except BrokenPipeError:
        forget_standard_output()
        return ExitCode.OK
