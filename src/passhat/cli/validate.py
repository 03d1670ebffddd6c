"""passhat validate"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import sources_argument

_MOST = 20


@click.command("validate")
@sources_argument
@click.option("--print-schema", is_flag=True, help="Print the JSON Schema of a row and end.")
def command(sources: tuple[str, ...], print_schema: bool) -> ExitCode:
    """Check that files are passhat.outcomes/1, the format that passhat export writes.

    JSON lines or Parquet, one attempt per row. Ends with 1 when a row is not as the schema says.
    For example: passhat validate attempts.jsonl
    """
    import json

    from passhat._display import counted, visible
    from passhat.readers.export import OUTCOMES_SCHEMA, outcome_problems, outcomes_json_schema
    from passhat.readers.sources import expand

    if print_schema:
        click.echo(json.dumps(outcomes_json_schema(), indent=2))
        return ExitCode.OK
    valid = True
    for source in expand(sources):
        count = 0
        for where, problem in outcome_problems(source):
            count += 1
            if count <= _MOST:
                click.echo(visible(f"{source.name}, {where}: {problem}"), err=True)
        name = visible(source.name)
        click.echo(
            f"{name}: not {OUTCOMES_SCHEMA}, {counted(count, 'problem')}"
            if count
            else f"{name}: valid {OUTCOMES_SCHEMA}"
        )
        valid = valid and not count
    return ExitCode.OK if valid else ExitCode.REFUTED
