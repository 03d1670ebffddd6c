"""The group of all commands, and how any of them ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType

import click

from passhat._version import __version__
from passhat.cli.exits import ExitCode
from passhat.cli.options import forget_standard_output
from passhat.errors import PasshatError

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = (
    *("demo", "run", "runs", "show", "rm", "regrade", "store", "suites", "tasks", "agents"),
    *("config", "doctor"),
    *("report", "compare", "view", "gate", "plan", "forecast", "temperature", "explain"),
    *("figure", "review", "judge", "sandbox", "read", "import", "export", "serve", "battle"),
    "completion",
)
"""Every command, one module of the same name each, in the order in which help lists them."""


_MODULES = MappingProxyType({"import": "importing"})
"""Commands whose name cannot be that of a module."""


class _Commands(click.Group):
    """Imports a command's module when it is asked for; the modules keep heavy imports inside."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = _MODULES.get(name, name)
        command = import_module(f"passhat.cli.{module}").command
        return command if isinstance(command, click.Command) else None


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="passhat")
def cli() -> None:
    """Run your agent k times. Know how often it gets it right every time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; no mistake of a user ends in a traceback."""
    try:
        said = tuple(sys.argv[1:] if arguments is None else arguments)
        code = cli.main(args=arguments, prog_name="passhat", standalone_mode=False, obj=said)
        return int(code) if isinstance(code, int) else ExitCode.OK
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except PasshatError as error:
        click.echo(f"passhat: {error.message}", err=True)
        if error.hint:
            click.echo(f"  {error.hint}", err=True)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return ExitCode.STOPPED
    except BrokenPipeError:
        forget_standard_output()
        return ExitCode.OK
