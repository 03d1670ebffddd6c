"""passhat import"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import HowToRead, exit_code, source_options, sources_argument
from passhat.cli.run import store_option


@click.command("import")
@sources_argument
@source_options
@store_option
def command(sources: tuple[str, ...], how: HowToRead, store_path: str) -> ExitCode:
    """Put the runs in SOURCE into the store, attempt by attempt; what is there already stays.

    A table of counts has no attempts to put there and is left out, which is said.
    """
    from passhat._display import counted, visible
    from passhat.readers.store import import_run
    from passhat.store import open_store

    runs = how.read(sources)
    with open_store(store_path) as store:
        for run in runs:
            if run.attempts is None:
                click.echo(
                    visible(f"{run.name}: only counts are known, nothing to import"), err=True
                )
                continue
            stored, added = import_run(store, run)
            click.echo(visible(f"{stored} {run.name}: {counted(added, 'attempt')} added"), err=True)
    return exit_code(runs)
