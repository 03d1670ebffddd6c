"""passhat explain"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import reading_options


@click.command("explain")
@click.argument("metric")
@click.argument("source", required=False)
@click.option("--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several.")
@reading_options
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Confidence of the interval."
)
def command(
    metric: str,
    source: str | None,
    run_name: str | None,
    columns: dict[str, str],
    pass_at: float | None,
    missing: str,
    drop_short: bool,
    level: float,
) -> ExitCode:
    """Print what METRIC asks, its formula, paper and inputs, and Python that gives the same.

    With SOURCE the inputs and the value are those of that run.
    """
    from passhat.cli.choosing import one_run
    from passhat.report.explaining import explain

    run = None
    if source is not None:
        run = one_run(source, run_name, columns=columns, pass_at=pass_at)
    explanation = explain(metric, run, missing=missing, drop_short=drop_short, level=level)
    click.echo("\n".join(explanation.lines()))
    return ExitCode.OK
