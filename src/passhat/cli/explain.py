"""passhat explain"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import exit_code, reading_options


@click.command("explain")
@click.argument("metric")
@click.argument("source", required=False)
@click.option("--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several.")
@reading_options
def command(
    metric: str,
    source: str | None,
    run_name: str | None,
    columns: dict[str, str],
    pass_at: float | None,
    scorer: str | None,
    join: bool,
    missing: str,
    drop_short: bool,
) -> ExitCode:
    """Print what METRIC asks, its formula, paper and inputs, and Python that gives the same.

    With SOURCE the inputs and the value are those of that run.
    """
    from passhat.errors import InvalidValue
    from passhat.readers import read
    from passhat.report.explaining import explain

    run = None
    if source is not None:
        runs = read(source, columns=columns, pass_at=pass_at, scorer=scorer, join=join)
        chosen = [found for found in runs if run_name in (None, found.name)]
        if len(chosen) != 1:
            asked = f"no run is called {run_name!r}" if run_name else f"there are {len(runs)} runs"
            raise InvalidValue(
                f"{source}: {asked}.",
                hint="Choose one with --run: " + ", ".join(found.name for found in runs[:20]),
            )
        run = chosen[0]
    explanation = explain(metric, run, missing=missing, drop_short=drop_short)
    click.echo("\n".join(explanation.lines()))
    return exit_code([] if run is None else [run])
