"""passhat figure"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.corrections import join_command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    ReadingOptions,
    choose_runs,
    exit_code,
    source_options,
    term_options,
    this_command,
)
from passhat.cli.shared.outputs import fit_screen

if TYPE_CHECKING:
    from passhat.reporting.figures import Material
    from passhat.stats.outcomes import Run
    from passhat.stats.terms import Terms


@click.command(
    "figure",
    cls=Command,
    renamed={"--list": ""},
    examples=(
        "passhat figure curves latest -o curves.svg",
        "passhat figure article-sweep -o sweep.svg",
    ),
)
@click.argument("name", required=False)
@click.argument("sources", metavar="[SOURCE]...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", help="The file, as in fig.svg, fig.png or fig.pdf.")
@click.option(
    "--run",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only these runs, A first, as in --run old --run new.",
)
@click.option(
    "--metric",
    metavar="M",
    default="pass^1",
    show_default=True,
    help="What flips and lift are about.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME:RATES",
    help="Suite for the article's figures, as in 'half easy:0.9*50+0.1*50'; repeatable.",
)
@term_options(
    "missing",
    "drop_short",
    "level",
    "allow",
    help={"allow": "Draw flips and lift although the protocols differ."},
)
@source_options
def command(
    name: str | None,
    sources: tuple[str, ...],
    output: str | None,
    names: tuple[str, ...],
    metric: str,
    shapes: tuple[str, ...],
    how: ReadingOptions,
    terms: Terms,
) -> ExitCode:
    """Draw a figure of the runs in SOURCE for a paper; without NAME: list the figures.

    article-sweep and article-delta, the two figures of the article on pass^k, need no SOURCE; they
    take suites of your own with --shape.
    """
    from passhat.errors import InvalidValue
    from passhat.reporting.figures import FIGURES, FORMS, figure_bytes, make_figure
    from passhat.reporting.figures.article import parse_shape
    from passhat.reporting.figures.registry import needs

    if name is None:
        for title, what in FIGURES.items():
            click.echo(fit_screen(f"{title:16}  {what}"))
        return ExitCode.OK
    if name not in FIGURES:
        raise _wrong_name(name, sources, output or "fig.svg")
    if output is None:
        raise InvalidValue(
            "a figure needs a file to be written to.", hint=this_command("-o", "fig.svg")
        )
    form = FORMS.get(Path(output).suffix.lower())
    if form is None:
        raise InvalidValue(
            f"{output}: a figure is written as {', '.join(FORMS)}.", hint="Choose by the ending."
        )
    shape_values = dict(map(parse_shape, shapes))
    if shape_values and not name.startswith("article-"):
        raise InvalidValue(
            f"--shape has no effect on {name!r}.",
            hint="It is for article-sweep and article-delta.",
        )
    material: Material | None = None
    code = ExitCode.OK
    if sources and not name.startswith("article-"):
        runs = how.read(sources)
        code = exit_code(runs)
        material = _material(choose_runs(runs, names), name, metric, terms)
    figure = make_figure(name, material, shape_values)
    if figure is None:
        raise InvalidValue(
            f"{' '.join(sources)}: nothing to draw as {name!r}.", hint=f"It needs {needs(name)}."
        )
    _write(output, figure_bytes(figure, form))
    click.echo(f"{figure.title}. {figure.sentence}")
    click.echo(f"wrote {output}", err=True)
    return code


def _wrong_name(name: str, sources: Sequence[str], output: str) -> Exception:
    """The answer to a first word that is no figure; it may be what the figure is about."""
    from passhat.errors import InvalidValue
    from passhat.reporting.figures import FIGURES

    other = next((word for word in sources if word in FIGURES), None)
    if other is None and not (name.startswith("latest") or Path(name).exists()):
        return InvalidValue(
            f"no figure is called {name!r}.", hint=f"There are: {', '.join(FIGURES)}"
        )
    rest = [word for word in (name, *sources) if word != other]
    line = join_command(["passhat", "figure", other or "curves", *rest, "-o", output])
    return click.UsageError(f"the figure's name comes first. Write:\n  {line}")


def _write(output: str, content: bytes) -> None:
    from passhat.errors import InvalidValue
    from passhat.store import write_private

    try:
        write_private(output, content)
    except OSError as error:
        raise InvalidValue(f"{output} cannot be written: {error.strerror}.") from None


def _material(runs: Sequence[Run], name: str, metric: str, terms: Terms) -> Material:
    """The data of a figure: the runs, their report with details, or the comparison of two."""
    from passhat.errors import InvalidValue
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.reporting.figures import Material
    from passhat.reporting.figures.registry import DETAILED, FITTED
    from passhat.reporting.task_changes import task_changes
    from passhat.reporting.view import Report
    from passhat.stats.compare import compare

    if name in FITTED:
        # The intervals of a report take 7 minutes for example:smollm2, and are not drawn here.
        return Material(Report(()), terms=terms, unreported=tuple(runs))
    options = ReportOptions(
        terms=terms, with_details=name in DETAILED, with_forecasts=name == "forecast"
    )
    if name not in ("flips", "lift"):
        return Material(build_report(runs, options), terms=terms)
    if len(runs) != 2:
        raise InvalidValue(
            f"this figure is about two runs, and there are {len(runs)}.",
            hint="Choose them with --run NAME --run NAME: "
            + ", ".join(run.name for run in runs[:9]),
        )
    comparison = compare(runs[0], runs[1], metric, terms)
    changes = task_changes(runs[0], runs[1], metric, terms)
    return Material(build_report(runs, options), comparison, changes, terms)
