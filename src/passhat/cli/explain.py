"""passhat explain"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.labels import corrected_option, labels_option, with_labels
from passhat.cli.shared.options import ReadingOptions, exit_code, source_options, term_options
from passhat.cli.shared.outputs import fit_screen

if TYPE_CHECKING:
    from passhat.stats.terms import Terms


@click.command(
    "explain",
    cls=Command,
    examples=(
        "passhat explain pass^4",
        "passhat explain pass^4 latest",
    ),
)
@click.argument("metric")
@click.argument("source", required=False)
@click.option(
    "--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several, as in careful."
)
@term_options(
    "missing", "drop_short", "level", "about", help={"level": "Confidence of the interval."}
)
@corrected_option
@labels_option
@source_options
def command(
    metric: str,
    source: str | None,
    run_name: str | None,
    corrected: str | None,
    label_files: tuple[str, ...],
    how: ReadingOptions,
    terms: Terms,
) -> ExitCode:
    """Print METRIC's question, formula, paper and inputs, and Python code that computes it.

    With SOURCE the inputs and the value are those of that run.
    """
    from passhat.errors import MetricError
    from passhat.reporting.explanation import explain
    from passhat.stats.estimate import metric as parse_metric

    if source is not None:
        try:
            parse_metric(metric)
        except MetricError:
            try:
                parse_metric(source)
            except MetricError:
                pass
            else:
                raise click.UsageError(
                    f"the metric comes first. Write:\n  passhat explain {source} {metric}"
                ) from None
    run = None
    if source is not None:
        (run,) = with_labels([how.read_one(source, run_name)], label_files)
    explanation = explain(metric, run, terms, corrected)
    for line in explanation.lines():
        click.echo(line if line.startswith("    ") else fit_screen(line))  # code is copied
    return exit_code([] if run is None else [run])
