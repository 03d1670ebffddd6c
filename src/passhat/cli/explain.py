"""passhat explain"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import HowToRead, exit_code, reading_options


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
    how: HowToRead,
    missing: str,
    drop_short: bool,
    level: float,
) -> ExitCode:
    """Print what METRIC asks, its formula, paper and inputs, and Python that gives the same.

    With SOURCE the inputs and the value are those of that run.
    """
    from passhat.report.explanation import explain

    run = None
    if source is not None:
        run = how.one(source, run_name)
    explanation = explain(metric, run, missing=missing, drop_short=drop_short, level=level)
    click.echo("\n".join(explanation.lines()))
    return exit_code([] if run is None else [run])
