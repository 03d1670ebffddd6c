"""The attempts of ``passhat run WORDS`` without its report, as a program.

``passhat bisect`` makes each of its runs by it, in a process that imports one revision of an agent.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from passhat.cli.shared.exits import ExitCode, hint_text
from passhat.errors import PasshatError


def make_attempts(words: list[str]) -> ExitCode:
    """Make the attempts; SIGINT lets those in flight finish, a second one stops at once."""
    from passhat.cli.run import read_spec
    from passhat.runner.run import Stop
    from passhat.runner.run_spec import RunResult, arun

    stop = Stop()

    async def whole() -> RunResult:
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.ask)
        return await arun(read_spec(words), stop=stop)

    try:
        result = asyncio.run(whole())
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except PasshatError as error:
        click.echo(f"passhat: {error.message}\n  {hint_text(error)}", err=True)
        return ExitCode.USAGE
    return ExitCode.STOPPED if result.stopped else ExitCode.OK


if __name__ == "__main__":
    sys.exit(make_attempts(sys.argv[1:]))
