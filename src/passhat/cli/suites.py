"""passhat suites"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode


@click.command("suites")
def command() -> ExitCode:
    """List the kinds of suite that are installed."""
    from rich.console import Console

    from passhat.report.tables import captured, facts
    from passhat.suites.registry import suite_kinds

    click.echo(captured(Console(), lambda: [facts(suite_kinds().items())]), nl=False)
    click.echo("passhat tasks SUITE lists the tasks of one, as in: passhat tasks orderdesk/retail")
    return ExitCode.OK
