"""passhat forecast"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import ReadingOptions, source_options, term_options

if TYPE_CHECKING:
    from passhat.stats.terms import Terms


@click.command(
    "forecast",
    cls=Command,
    examples=(
        "passhat forecast latest --metric pass^16",
        "passhat forecast latest --metric pass@100",
    ),
)
@click.argument("source")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="pass@1000, pass^32, gpass@100:0.5; repeat for more.  [default: pass@10n and pass^4n]",
)
@click.option("--curve", is_flag=True, help="Also at k = 1, 2, 4 ... up to each metric's own k.")
@click.option(
    "--reach",
    type=float,
    multiple=True,
    metavar="X",
    help="The smallest k with pass@k >= X, as in 0.5, where two agents differ most.",
)
@click.option(
    "--keep",
    type=float,
    multiple=True,
    metavar="X",
    help="The largest k with pass^k >= X, as in 0.9.",
)
@click.option(
    "--users",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Number of users in the sentence.",
)
@click.option(
    "--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several, as in careful."
)
@term_options("missing", "level", "cluster", help={"level": "Confidence of the band."})
@source_options
@click.option("--full", is_flag=True, help="Print every model line, note and the method.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(
    source: str,
    metrics: tuple[str, ...],
    curve: bool,
    reach: tuple[float, ...],
    keep: tuple[float, ...],
    users: int,
    run_name: str | None,
    terms: Terms,
    how: ReadingOptions,
    full: bool,
    as_json_text: bool,
) -> ExitCode:
    """Bound pass@k and pass^k at a k beyond the attempts that were made.

    The band holds for every shape of difficulty that the data do not reject. --full adds the
    lines of named models.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.readers.base import Needs
    from passhat.reporting.document import Level
    from passhat.reporting.documents.forecast import (
        default_words,
        forecast_data,
        forecast_document,
    )
    from passhat.reporting.terminal import render_terminal
    from passhat.stats.forecast import forecast_all, forecast_curve, keeps, reaches

    # The order of attempts, where it is quickly read: a warning depends on it.
    needs = Needs(measures=False, answers=False, attempts_up_to=100_000)
    run = how.read_one(source, run_name, needs=needs)
    words = metrics or (() if reach or keep else default_words(run))
    if curve:
        curves = [forecast_curve(run, word, terms) for word in words]
        forecasts = tuple(point for points in curves for point in points)
    else:
        forecasts = forecast_all(run, words, terms)
    inverse = [reaches(run, x, terms) for x in reach]
    inverse += [keeps(run, x, terms) for x in keep]
    if as_json_text:
        data = forecast_data(run, forecasts, inverse, users)
        click.echo(as_json(data), nl=False)
    else:
        document = forecast_document(run, forecasts, inverse, users=users)
        level = Level.FULL if full else Level.SHORT
        click.echo(render_terminal(document, Console(), level), nl=False)
    return ExitCode.OK
