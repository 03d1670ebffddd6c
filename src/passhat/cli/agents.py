"""passhat agents"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode


@click.command("agents")
def command() -> ExitCode:
    """List the kinds of agent that are installed."""
    from rich.console import Console

    from passhat.agents.registry import agent_kinds
    from passhat.report.tables import captured, facts

    click.echo(captured(Console(), lambda: [facts(agent_kinds().items())]), nl=False)
    return ExitCode.OK
