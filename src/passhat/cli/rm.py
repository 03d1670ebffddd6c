"""passhat rm"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.run import store_option


@click.command("rm")
@click.argument("run")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(run: str, store_path: str, yes: bool) -> ExitCode:
    """Delete a stored RUN with all its attempts."""
    from passhat.store import open_store

    with open_store(store_path, must_exist=True) as store:
        stored = store.find(run)
        what = f"{stored.id}: {stored.agent} on {stored.suite}, {stored.attempts:,} attempts"
        if not yes:
            click.confirm(f"Delete {what}?", abort=True)
        store.remove(stored.id)
        click.echo(f"deleted {what}", err=True)
    return ExitCode.OK
