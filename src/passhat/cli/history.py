"""passhat history"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    ReadingOptions,
    exit_code,
    full_option,
    look_at_attempts,
    sources_or_store,
    term_options,
)
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs

if TYPE_CHECKING:
    from passhat.stats.terms import Terms


@click.command(
    "history",
    cls=Command,
    examples=(
        "passhat history",
        "passhat history attempts.jsonl --badge pass.svg -o history.md",
    ),
)
@click.argument("sources", metavar="[SOURCE...]", nargs=-1)
@click.option("-a", "--agent", metavar="AGENT", help="Whose runs, as in openai:gpt-5.")
@click.option("-s", "--suite", metavar="SUITE", help="At which suite, as in jsonl:tasks.jsonl.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="M",
    help="What is listed and drawn, as in pass^4.  [default: pass^1, and pass^k at the largest k]",
)
@term_options("missing")
@click.option("--badge", metavar="FILE", help="Write the newest value as an SVG, as in pass.svg.")
@full_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@store_option
@output_option("md", "json", "svg", help="Write a file, as in history.md, .json or .svg.")
def command(
    sources: tuple[str, ...],
    agent: str | None,
    suite: str | None,
    metrics: tuple[str, ...],
    terms: Terms,
    badge: str | None,
    full: bool,
    as_json_text: bool,
    store_path: str,
    outputs: tuple[Output, ...],
) -> ExitCode:
    """Show the runs of an agent at a suite in the order of time: is it getting worse, since when?

    SOURCE is a store, a folder of exports or the files of CI artifacts; the store of this folder by
    default. A change is shown where attempts at the same tasks show it; looking after every
    nightly run gives a false alarm in at most 5% of years.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.cli.shared.outputs import write_text
    from passhat.readers import Needs
    from passhat.reporting.document import Level
    from passhat.reporting.documents.history import history_document
    from passhat.reporting.figures.agents import badge_svg, trend_figure
    from passhat.reporting.figures.base import figure_bytes
    from passhat.reporting.history import build_history
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal
    from passhat.stats.estimate import metric

    needs = Needs(attempts=look_at_attempts(metrics), measures=False, answers=False)
    runs = ReadingOptions({}).read(sources_or_store(sources, store_path), needs=needs)
    words = [metric(word) for word in metrics]
    history = build_history(runs, suite=suite, agent=agent, metrics=words, terms=terms)
    document = history_document(history)
    write_outputs(
        outputs,
        {
            "md": lambda: render_markdown(document),
            "json": lambda: as_json(history),
            "svg": lambda: figure_bytes(trend_figure(history), "svg").decode(),
        },
    )
    if badge is not None:
        write_text(badge, badge_svg(history))
    if as_json_text:
        click.echo(as_json(history), nl=False)
    elif prints_to_screen(outputs) and badge != "-":
        level = Level.FULL if full else Level.SHORT
        click.echo(render_terminal(document, Console(), level), nl=False)
    return exit_code(runs)
