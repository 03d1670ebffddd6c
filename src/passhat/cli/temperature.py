"""passhat temperature"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Group
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    KList,
    ReadingOptions,
    source_options,
    sources_argument,
    term_options,
    this_command,
)
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs

if TYPE_CHECKING:
    from passhat.stats.terms import Terms


@click.group("temperature", cls=Group)
def command() -> None:
    """Find the best temperature for pass@k: in a toy model, and in your own runs."""


@command.command(
    "toy",
    renamed={"--html": "-o"},
    examples=(
        "passhat temperature toy",
        "passhat temperature toy --family exponential",
    ),
)
@click.option(
    "--family",
    type=click.Choice(["gaussian", "exponential", "power"]),
    default="gaussian",
    show_default=True,
    help="How the difficulties of the tasks are distributed.",
)
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option(
    "html", "json", help="Write the figures, as in toy.html, or the numbers, as in toy.json."
)
def toy(family: str, as_json_text: bool, outputs: tuple[Output, ...]) -> ExitCode:
    """Print the laws of the toy model: how T* grows with k and with the spread of the tasks."""

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.documents.temperature import study_document
    from passhat.reporting.terminal import render_terminal
    from passhat.stats.temperature import study

    result = study(family)

    def page() -> str:
        from passhat.reporting.html.temperature import toy_page

        return toy_page(result, command=this_command())

    write_outputs(outputs, {"html": page, "json": lambda: as_json(result)})
    if as_json_text:
        click.echo(as_json(result), nl=False)
    elif prints_to_screen(outputs):
        click.echo(render_terminal(study_document(result), Console()), nl=False)
    return ExitCode.OK


@command.command(
    "fit",
    renamed={"--html": "-o"},
    examples=(
        "passhat temperature fit example:smollm2 -k 1,8",
        "passhat temperature fit example:smollm2 -k 1,8 --json",
    ),
)
@sources_argument
@click.option(
    "-k", "ks", type=KList(), default=(), help="Values of k, as in 1,5.  [default: 1,2,4,8...]"
)
@term_options("missing", "drop_short", "level")
@source_options
@click.option("--full", is_flag=True, help="Print every temperature, k and note.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option(
    "html", "json", help="Write a page with charts and tables, as in fit.html, or fit.json."
)
def fit(
    sources: tuple[str, ...],
    ks: tuple[int, ...],
    how: ReadingOptions,
    terms: Terms,
    full: bool,
    as_json_text: bool,
    outputs: tuple[Output, ...],
) -> ExitCode:
    """Fit runs of the same agent and tasks at several temperatures: which T for which k?

    The table needs a column for the temperature. Two temperatures are compared; three or more give
    a curve of T* over k. Several agents are fitted one by one, and their rankings are compared.
    """

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.readers.base import COUNTS_ONLY
    from passhat.reporting.document import Level
    from passhat.reporting.documents.temperature import fit_document
    from passhat.reporting.terminal import render_terminal
    from passhat.stats.temperature import fit_temperatures

    runs = how.read(sources, needs=COUNTS_ONLY)
    result = fit_temperatures(runs, ks, terms)

    def page() -> str:
        from passhat.reporting.html.temperature import fit_page

        return fit_page(result, runs, missing=terms.missing, command=this_command())

    write_outputs(outputs, {"html": page, "json": lambda: as_json(result)})
    if as_json_text:
        click.echo(as_json(result), nl=False)
    elif prints_to_screen(outputs):
        level = Level.FULL if full else Level.SHORT
        click.echo(render_terminal(fit_document(result), Console(), level), nl=False)
    return ExitCode.OK
