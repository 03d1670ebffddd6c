"""passhat leaderboard"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    ReadingOptions,
    exit_code,
    source_options,
    sources_argument,
    term_options,
    this_command,
)
from passhat.cli.shared.outputs import write_text

if TYPE_CHECKING:
    from passhat.stats.outcomes import Run
    from passhat.stats.terms import Terms

_MOST = 20


@click.command(
    "leaderboard",
    cls=Command,
    examples=(
        "passhat leaderboard example:helpdesk -o site",
        "passhat leaderboard example:helpdesk --metric pass^4 --about these-tasks",
    ),
)
@sources_argument
@click.option(
    "-o", "--output", "folder", metavar="FOLDER", help="Write the site there, as in -o site."
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="M",
    help="Rank by it, as in pass^4 or mean; may be repeated.  [default: pass^1 and the largest k]",
)
@click.option("--title", default="Leaderboard", show_default=True, help="The title of the page.")
@term_options("about")
@source_options
@click.option(
    "--check",
    "submission",
    metavar="FILE",
    help="Check this submission beside SOURCE instead, as in --check new.jsonl.",
)
def command(
    sources: tuple[str, ...],
    folder: str | None,
    metrics: tuple[str, ...],
    title: str,
    how: ReadingOptions,
    terms: Terms,
    submission: str | None,
) -> ExitCode:
    """Rank all agents in SOURCE, with the ranks that are possible, as a static site.

    Every pair of agents is tested and corrected for all pairs (Holm), so that a range of ranks
    holds the true rank of every agent at once. Runs of different protocols get boards of their own.
    With --check, a submission is checked for a pull request; exit code 1 where it has problems.
    """
    if submission is not None:
        if folder is not None or metrics:
            raise click.UsageError("--check writes and ranks nothing: leave out -o and --metric.")
        return _check(sources, submission, how)
    from rich.console import Console

    from passhat.reporting.document import Level
    from passhat.reporting.documents.leaderboard import leaderboard_document
    from passhat.reporting.leaderboard import BoardOptions, build_leaderboard
    from passhat.reporting.terminal import render_terminal

    runs = how.read(sources)
    leaderboard = build_leaderboard(runs, BoardOptions(metrics, terms, title))
    if folder is not None:
        from passhat.reporting.leaderboard.page import site_files

        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"{folder} cannot be made: {error.strerror}.") from None
        for name, text in site_files(leaderboard, this_command()).items():
            write_text(str(place / name), text)
            (place / name).chmod(0o644)  # to be published, other than reports
    document = leaderboard_document(leaderboard)
    click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)
    return exit_code(runs)


def _check(sources: Sequence[str], submission: str, how: ReadingOptions) -> ExitCode:
    """Check a submission beside the runs on the board, and print its problems."""
    from passhat._display import counted, visible
    from passhat.errors import PasshatError
    from passhat.readers.formats.export import outcome_problems
    from passhat.readers.sources import expand
    from passhat.reporting.leaderboard.submissions import Problem, check_submission

    problems: list[Problem] = []
    for source in expand([submission]):
        for where, text in outcome_problems(source):
            problems.append(Problem("schema", f"{where}: {text}"))
    runs: list[Run] = []
    try:
        runs = how.read([submission])
    except PasshatError as error:
        problems.append(Problem("schema", error.message))
    place = Path(submission).resolve()
    others = [run for run in how.read(sources) if Path(run.source).resolve() != place]
    if not others and any(Path(source).resolve() == place for source in sources):
        raise click.UsageError(
            f"SOURCE is the submission itself ({submission}). Name the folder or the files of the "
            "board that it is checked beside."
        )
    if len(runs) > 1:
        problems.append(Problem("schema", f"{len(runs)} runs; a submission is one run"))
    for run in runs:
        problems += check_submission(run, others)
    for problem in problems[:_MOST]:
        click.echo(visible(f"✗ {problem}"))
    if len(problems) > _MOST:
        click.echo(f"and {len(problems) - _MOST} more")
    names = visible(", ".join(run.agent or run.name for run in runs) or submission)
    if problems:
        click.echo(f"{names}: {counted(len(problems), 'problem')}")
        return ExitCode.REFUTED
    beside = f"checked beside {counted(len(others), 'run')}" if others else "the first of its board"
    click.echo(f"✓ {names}: {runs[0].outcomes}; {beside}")
    return ExitCode.OK
