"""The group of all commands, and their exit codes and error messages."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import BinaryIO, TextIO

import click

from passhat._display import visible
from passhat._version import __version__
from passhat.cli.shared.exits import ExitCode, hint_text
from passhat.cli.shared.options import SuggestingGroup, forget_standard_output
from passhat.errors import PasshatError

__all__ = ["COMMANDS", "EXAMPLES", "add_examples", "cli", "main"]


EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": ("passhat init", "passhat init my-evals"),
        "demo": ("passhat demo", "passhat demo -n 4 --store demo.db"),
        "run": (
            "passhat run -a demo:careful -s orderdesk/retail -n 4",
            "passhat run -a python:agent:answer -s jsonl:tasks.jsonl -n 8",
        ),
        "runs": ("passhat runs", "passhat runs --json"),
        "show": ("passhat show latest", "passhat show latest 'multiply#1'"),
        "rm": ("passhat rm latest~1 --yes", "passhat rm latest --yes"),
        "regrade": ("passhat regrade latest --dry-run", "passhat regrade latest"),
        "store check": ("passhat store check", "passhat store check --store .passhat/passhat.db"),
        "store copy": (
            "passhat store copy .passhat/passhat.db backup.db",
            "passhat store copy .passhat/passhat.db archive/runs.db",
        ),
        "store backup": (
            "passhat store backup backups/monday.db",
            "passhat store backup today.db --store .passhat/passhat.db",
        ),
        "store restore": (
            "passhat store restore .passhat/passhat.db --store restored.db",
            "passhat store restore .passhat/passhat.db --store copies/restored.db",
        ),
        "store merge": (
            "passhat store merge .passhat/passhat.db --store all.db",
            "passhat store merge .passhat/passhat.db .passhat/passhat.db --store both.db",
        ),
        "store vacuum": (
            "passhat store vacuum",
            "passhat store vacuum --transcripts-older-than 30d",
        ),
        "suites": ("passhat suites", "passhat suites | grep orderdesk"),
        "tasks": ("passhat tasks orderdesk/retail", "passhat tasks jsonl:tasks.jsonl"),
        "agents": ("passhat agents", "passhat agents | grep demo"),
        "config": ("passhat config", "passhat config -n 16"),
        "doctor": ("passhat doctor", "passhat doctor -a python:agent:answer -s jsonl:tasks.jsonl"),
        "report": ("passhat report", "passhat report example:helpdesk -k 1,2,4 --full"),
        "compare": (
            "passhat compare latest~1 latest --allow",
            "passhat compare example:helpdesk -k 1,4 --html compare.html",
        ),
        "view": ("passhat view --open", "passhat view --port 8000 --allow-run"),
        "gate": (
            "passhat gate latest 'pass^1 >= 0.5'",
            "passhat gate latest 'pass^1 >= base - 0.2' --against latest~1 --allow",
        ),
        "plan": (
            "passhat plan latest --metric pass^4 --half-width 0.05",
            "passhat plan --mean 0.7 --icc 0.3 --metric pass^4 --detect 0.1",
        ),
        "forecast": (
            "passhat forecast latest --metric pass^16",
            "passhat forecast latest --metric pass@100",
        ),
        "temperature fit": (
            "passhat temperature fit example:smollm2 -k 1,8",
            "passhat temperature fit example:smollm2 -k 1,8 --json",
        ),
        "temperature toy": (
            "passhat temperature toy",
            "passhat temperature toy --family exponential",
        ),
        "explain": ("passhat explain pass^4", "passhat explain pass^4 latest"),
        "figure": (
            "passhat figure curves latest -o curves.svg",
            "passhat figure article-sweep -o sweep.svg",
        ),
        "review": (
            "passhat review 'Our agent solves 70% of the tasks.'",
            "passhat review 'pass^4 rose to 72%.' --source example:helpdesk",
        ),
        "judge": (
            "passhat judge samples.jsonl -s code:ordercode",
            "passhat judge samples.jsonl -s code:ordercode --json",
        ),
        "sandbox check": ("passhat sandbox check", "passhat sandbox check --json"),
        "read": ("passhat read example:helpdesk", "passhat read latest --json"),
        "validate": (
            "passhat validate attempts.jsonl",
            "passhat validate --print-schema",
        ),
        "import": (
            "passhat import example:helpdesk",
            "passhat import example:helpdesk --store imported.db",
        ),
        "export": (
            "passhat export latest > baseline.jsonl",
            "passhat export latest --csv > attempts.csv",
        ),
        "serve": ("passhat serve", "passhat serve --port 0 --token SECRET"),
        "white": (
            "passhat white demo:careful",
            "passhat white python:agent:answer --port 9211",
        ),
        "battle": (
            "passhat battle scenario.toml",
            "passhat battle scenario.toml -o result.json",
        ),
        "completion": (
            "passhat completion bash",
            'eval "$(passhat completion bash)"',
        ),
    }
)


def add_examples(command: click.Command, name: str) -> None:
    """Append the examples of a command, or of the commands of a group, to its help."""
    if isinstance(command, click.Group):
        for own, member in command.commands.items():
            add_examples(member, f"{name} {own}")
        return
    if name in EXAMPLES:
        lines = "\n".join(f"  {example}" for example in EXAMPLES[name])
        command.epilog = f"\b\nExamples:\n{lines}"


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
        "white",
        "battle",
    ),
    "completion",
)
"""Every command, in the order in which help lists them."""


_SHARED_MODULES = MappingProxyType(
    {
        "agents": ("listing", "agents_command"),
        "suites": ("listing", "suites_command"),
        "tasks": ("listing", "tasks_command"),
        "completion": ("listing", "completion_command"),
        "rm": ("runs", "rm_command"),
        "import": ("export", "import_command"),
        "validate": ("export", "validate_command"),
    }
)
"""Small commands that share a module; every other command has one of its own name."""


class _Commands(SuggestingGroup):
    """Imports a command's module when it is needed; the modules keep heavy imports inside."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = _SHARED_MODULES.get(name, (name, "command"))
        command = getattr(import_module(f"passhat.cli.{module}"), attribute)
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
    # Escape sequences other than colors and those of a progress bar: erase, up, show, hide.
    r"|\x1b(?!\[[0-9;]*m|\[[0-2]?K|\[\d*A|\[\?25[hl])"
)


class _SafeStream(io.TextIOBase):
    """A stream that escapes control characters, so that no text can control the terminal.

    Commands print clean text already; this is a safety net for every command at once.
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


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


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
        if hint := hint_text(error):
            click.echo(f"  {visible(hint)}", err=True)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return ExitCode.STOPPED
    except BrokenPipeError:
        forget_standard_output()
        return ExitCode.OK
