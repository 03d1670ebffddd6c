"""passhat export"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option, store_words
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    ReadingOptions,
    exit_code,
    runs_called,
    source_options,
    sources_argument,
)
from passhat.cli.shared.outputs import Output, output_option, write_parts

if TYPE_CHECKING:
    from passhat.stats.outcomes import Run

EXPORT_FORMS = ("jsonl", "csv", "parquet", "tau2", "eee")

_MOST = 20
"""Problems that `passhat validate` lists."""


@click.command(
    "export",
    cls=Command,
    renamed={"--csv": "-o csv", "--jsonl": "-o jsonl", "--parquet": "-o", "--tau2": "-o tau2"},
    examples=(
        "passhat export latest -o baseline.jsonl",
        "passhat export latest -o attempts.csv",
    ),
)
@click.argument("source")
@output_option(
    *EXPORT_FORMS,
    help="Write a file, as in runs.jsonl, .csv, .parquet, tau2:results.json or eee:samples.jsonl.",
)
@click.option("--run", "run_name", metavar="NAME", help="Only this run, as in careful.")
@source_options
def command(
    source: str,
    outputs: tuple[Output, ...],
    run_name: str | None,
    how: ReadingOptions,
) -> ExitCode:
    """Write the attempts in SOURCE, one row each: to a file, or as JSON lines to the screen.

    A row is run, agent, task, attempt, passed (true, false, or null when missing), category,
    reason, detail, steps, seconds, tokens, cost, retries, the answer, and further columns.
    """
    from passhat.errors import InvalidValue
    from passhat.readers import Needs
    from passhat.store import without_password

    # A results file of tau2-bench is one JSON document, which is written as a whole.
    streamed = all(output.form != "tau2" for output in outputs)
    runs = how.read(source, needs=Needs(details=True, streamed=streamed))
    selection = runs if run_name is None else runs_called(runs, run_name)
    if not selection:
        raise InvalidValue(
            f"{without_password(source)}: no run is called {run_name!r}.",
            hint="There are: " + ", ".join(run.name for run in runs[:20]),
        )
    write_attempts(selection, outputs or (Output("jsonl", "-"),))
    return exit_code(selection)


def write_attempts(runs: Sequence[Run], outputs: Sequence[Output]) -> None:
    """Write the attempts of runs in every form that was asked for, row by row."""
    from passhat.reporting.export import (
        as_csv_rows,
        as_every_eval,
        as_json_lines,
        as_tau2,
        write_parquet,
    )

    forms = {"jsonl": as_json_lines, "csv": as_csv_rows, "tau2": as_tau2, "eee": as_every_eval}
    for output in outputs:
        if output.form == "parquet":
            if output.place == "-":
                raise click.UsageError("Parquet is written to a file, as in -o runs.parquet")
            write_parquet(runs, output.place)
            click.echo(f"wrote {output.place}", err=True)
        else:
            write_parts(output.place, forms[output.form](runs))


@click.command(
    "import",
    cls=Command,
    examples=(
        "passhat import example:helpdesk",
        "passhat import example:helpdesk --store imported.db",
    ),
)
@sources_argument
@source_options
@store_option
def import_command(sources: tuple[str, ...], how: ReadingOptions, store_path: str) -> ExitCode:
    """Put the runs in SOURCE into the store; attempts that it has stay.

    A table of counts has no attempts to import; it is skipped with a message.
    """
    from passhat._display import counted, visible
    from passhat.readers import Needs
    from passhat.readers.store import import_run
    from passhat.store import open_store

    runs = how.read(sources, needs=Needs(details=True, conversations=True))
    ids: dict[str, None] = {}
    with open_store(store_path) as store:
        for run in runs:
            if run.attempts is None:
                click.echo(
                    visible(f"{run.name}: only counts are known, nothing to import"), err=True
                )
                continue
            run_id, new_attempts = import_run(store, run, ids)
            ids[run_id] = None
            click.echo(
                visible(f"{run_id} {run.name}: {counted(new_attempts, 'attempt')} added"), err=True
            )
    if ids:
        elsewhere = store_words(store_path)
        is_short = not elsewhere and len(ids) <= 2
        step = f"report {' '.join(ids)}" if is_short else f"runs{elsewhere}"
        click.echo(f"Next: passhat {step}", err=True)
    return exit_code(runs)


@click.command(
    "validate",
    cls=Command,
    examples=(
        "passhat validate attempts.jsonl",
        "passhat validate --print-schema",
    ),
)
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.option("--print-schema", is_flag=True, help="Print the JSON Schema of a row and end.")
def validate_command(sources: tuple[str, ...], print_schema: bool) -> ExitCode:
    """Check that files have the format of passhat export, passhat.outcomes/2 or /1.

    JSON lines or Parquet, one attempt per row. Exit code 1 when a row violates the schema.
    For example: passhat validate attempts.jsonl
    """
    import json

    from passhat._display import counted, visible
    from passhat.readers.formats.export import (
        outcome_problems,
        outcomes_json_schema,
    )
    from passhat.readers.sources import expand

    if print_schema:
        click.echo(json.dumps(outcomes_json_schema(), indent=2))
        return ExitCode.OK
    if not sources:
        raise click.UsageError(
            "Missing argument 'SOURCE...'. For example: passhat validate attempts.jsonl"
        )
    valid = True
    for source in expand(sources):
        count = 0
        for where, problem in outcome_problems(source):
            count += 1
            if count <= _MOST:
                click.echo(visible(f"{source.name}, {where}: {problem}"), err=True)
        name = visible(source.name)
        click.echo(
            f"{name}: not passhat.outcomes, {counted(count, 'problem')}"
            if count
            else f"{name}: valid passhat.outcomes"
        )
        valid = valid and not count
    return ExitCode.OK if valid else ExitCode.REFUTED
