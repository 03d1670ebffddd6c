"""passhat review"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import ReadingOptions, source_options, term_options

if TYPE_CHECKING:
    from passhat.stats.terms import Terms


@click.command(
    "review",
    cls=Command,
    examples=(
        "passhat review 'Our agent solves 70% of the tasks.'",
        "passhat review 'pass^4 rose to 72%.' --source example:helpdesk",
    ),
)
@click.argument("claim", metavar="CLAIM|FILE.md|-")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="SOURCE",
    help="Runs that the claim is about, A first, as in runs.csv; repeatable.",
)
@term_options("missing", "level")
@source_options
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(
    claim: str,
    sources: tuple[str, ...],
    terms: Terms,
    how: ReadingOptions,
    as_json_text: bool,
) -> ExitCode:
    """List what a claim about pass rates omits: k, n, interval, pairing or protocol.

    By rule, no model. With --source every number and comparison is checked against the runs. Ends
    with 0 when nothing was found, with 1 otherwise, and with 3 where no claim was recognized or a
    part of it could not be checked.
    """

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.review import review, review_document
    from passhat.reporting.terminal import render_terminal

    text = _text(claim)
    runs = how.read(sources) if sources else []
    result = review(text, runs, missing=terms.missing, level=terms.level)
    if as_json_text:
        click.echo(as_json(result), nl=False)
    else:
        click.echo(render_terminal(review_document(result), Console()), nl=False)
    if result.findings:
        return ExitCode.REFUTED
    return ExitCode.OK if result.is_settled else ExitCode.NOT_SETTLED


def _text(claim: str) -> str:
    """The claim itself, or the text of a file."""
    from passhat.errors import InvalidValue

    if claim == "-":
        return sys.stdin.read()
    try:
        is_file = Path(claim).is_file()
    except (OSError, ValueError):  # a sentence may be too long for a path
        is_file = False
    if is_file:
        try:
            return Path(claim).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidValue(f"{claim} cannot be read as text: {error}.") from None
    if claim.endswith((".md", ".txt")) and " " not in claim:
        raise InvalidValue(f"{claim}: there is no such file.", hint="Or give the claim itself.")
    return claim
