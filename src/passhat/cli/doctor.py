"""passhat doctor"""

from __future__ import annotations

import os

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode

_MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}


@click.command(
    "doctor",
    cls=Command,
    examples=(
        "passhat doctor",
        "passhat doctor -a python:agent:answer -s jsonl:tasks.jsonl",
    ),
)
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    help="Check this agent, as in openai:gpt-5.",
)
@click.option(
    "-s",
    "--suite",
    "suites",
    multiple=True,
    metavar="SUITE",
    help="Check this suite, as in code:ordercode.",
)
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(
    agents: tuple[str, ...], suites: tuple[str, ...], store_path: str, as_json_text: bool
) -> ExitCode:
    """Check that everything a run needs is present, and print a fix for each problem.

    Python and packages, keys (present or not, never shown), the store, the sandbox, and the agents
    and suites you name. Exit code 0 when passhat is usable, 1 when something is a problem.
    """

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.terminal import capture, plain_table
    from passhat.runner.doctor import Level, examine

    findings = list(examine(store_path, agents, suites, os.environ))
    usable = all(finding.level is not Level.PROBLEM for finding in findings)
    if as_json_text:
        click.echo(as_json({"usable": usable, "checks": findings}), nl=False)
    else:
        rows = [
            (
                f"{_MARKS[finding.level]} {finding.level}",
                finding.what,
                finding.found,
                finding.advice,
            )
            for finding in findings
        ]
        table = plain_table(("", "check", "found", "what to do"), rows, left=(0, 1, 2, 3))
        click.echo(capture(Console(), lambda: [table]), nl=False)
        click.echo("passhat is usable" if usable else "Fix the problems above first.")
    return ExitCode.OK if usable else ExitCode.REFUTED
