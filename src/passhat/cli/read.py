"""passhat read"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import HowToRead, exit_code, source_options, sources_argument


@click.command("read")
@sources_argument
@source_options
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(
    sources: tuple[str, ...],
    how: HowToRead,
    as_json_text: bool,
) -> ExitCode:
    """Show what SOURCE was recognized as: files, runs, tasks, attempts, what is missing and why.

    SOURCE is a log of another harness, a table, a glob or folder of them, - for standard input, or
    example:NAME. Ends with 4 when part of a file could not be read.
    """
    from passhat.readers import read_all
    from passhat.report.reading import reading_as_json, reading_lines

    found = read_all(sources, **how.options())
    if as_json_text:
        click.echo(reading_as_json(found), nl=False)
    else:
        click.echo("\n".join(reading_lines(found)))
    return exit_code(run for file in found.files for run in file.runs)
