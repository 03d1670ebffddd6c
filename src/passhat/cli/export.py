"""passhat export"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import HowToRead, exit_code, source_options


@click.command("export")
@click.argument("source")
@click.option("--jsonl", "form", flag_value="jsonl", default="jsonl", help="JSON lines (default).")
@click.option("--csv", "form", flag_value="csv", help="CSV.")
@click.option("--parquet", metavar="FILE", help="Write Parquet to FILE.")
@click.option("--tau2", "form", flag_value="tau2", help="A results file of tau2-bench.")
@click.option("--run", "run_name", metavar="NAME", help="Only this run.")
@source_options
def command(
    source: str,
    form: str,
    parquet: str | None,
    run_name: str | None,
    how: HowToRead,
) -> ExitCode:
    """Write the attempts in SOURCE to standard output, one row each, in their order.

    A row is run, agent, task, attempt, passed (true, false, or null when missing), category,
    reason, steps, seconds, tokens, cost, and what else is known.
    """
    from passhat.errors import InvalidValue
    from passhat.report.export import as_csv_rows, as_json_lines, as_tau2, write_parquet
    from passhat.store import without_password

    runs = how.read(source)
    chosen = [run for run in runs if run_name in (None, run.name)]
    if not chosen:
        raise InvalidValue(
            f"{without_password(source)}: no run is called {run_name!r}.",
            hint="There are: " + ", ".join(run.name for run in runs[:20]),
        )
    if parquet is not None:
        write_parquet(chosen, parquet)
        click.echo(f"wrote {parquet}", err=True)
        return exit_code(chosen)
    forms = {"jsonl": as_json_lines, "csv": as_csv_rows, "tau2": as_tau2}
    for text in forms[form](chosen):
        click.echo(text, nl=False)
    return exit_code(chosen)
