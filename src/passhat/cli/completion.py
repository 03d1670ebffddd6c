"""passhat completion"""

from __future__ import annotations

import click

from passhat.cli.shared.exits import ExitCode


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> ExitCode:
    """Print the script that completes passhat's commands and options in your shell.

    For bash, put this into ~/.bashrc:  eval "$(passhat completion bash)"
    """
    from click.shell_completion import get_completion_class

    from passhat.cli.main import cli

    maker = get_completion_class(shell)
    if maker is None:  # pragma: no cover - the choice above lists only shells click knows
        raise click.UsageError(f"no completion for {shell}.")
    click.echo(maker(cli, {}, "passhat", "_PASSHAT_COMPLETE").source())
    return ExitCode.OK
