"""passhat why"""

from __future__ import annotations

import re

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode, hint_text
from passhat.cli.shared.options import ReadingOptions, exit_code, full_option, this_command
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs

_READABLE = (
    "passhat why reads runs of a store, and logs of inspect, tau2-bench, tau-bench and promptfoo."
)


@click.command(
    "why",
    cls=Command,
    examples=(
        "passhat why latest",
        "passhat why latest --full",
    ),
)
@click.argument("source", metavar="RUN")
@click.argument("task", required=False)
@click.option(
    "--run", "run_name", metavar="NAME", help="Which run, when RUN holds several, as in careful."
)
@full_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option("html", "md", "json", help="Write a file, as in why.html, .md or .json.")
def command(
    source: str,
    task: str | None,
    run_name: str | None,
    full: bool,
    as_json_text: bool,
    outputs: tuple[Output, ...],
) -> ExitCode:
    """Find what goes with failure: what failing attempts do and passing ones do not.

    Over all tasks, events such as a tool called or an error returned, tested within tasks. With
    TASK also the tree of its tool calls, the decisive step where one is shown, and the passing and
    failing attempts that are closest to each other. RUN is a run of the store, or a log of inspect,
    tau2-bench, tau-bench or promptfoo.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.errors import ReadError
    from passhat.reporting.document import Level
    from passhat.reporting.documents.why import why_document
    from passhat.reporting.html.page import why_page
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal
    from passhat.reporting.why import NEEDS, build_why

    try:
        run = ReadingOptions({}).read_one(source, run_name, needs=NEEDS)
    except ReadError as error:
        if re.search(r"--(?!run\b)\w", hint_text(error)):  # advice for commands that read tables
            error.hint = _READABLE
        raise
    facts = build_why(run, task)
    document = why_document(facts, subject=source)
    write_outputs(
        outputs,
        {
            "html": lambda: why_page(facts, document, this_command()),
            "md": lambda: render_markdown(document),
            "json": lambda: as_json(facts),
        },
    )
    if as_json_text:
        click.echo(as_json(facts), nl=False)
    elif prints_to_screen(outputs):
        level = Level.FULL if full else Level.SHORT
        click.echo(render_terminal(document, Console(), level), nl=False)
    return exit_code([run])
