"""passhat agents, suites, tasks and completion: lists of everything that can be run and typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat._display import counted
from passhat.cli.shared.commands import Command, set_option
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import suite_settings

if TYPE_CHECKING:
    from passhat.suites.base import Settings, Suite, TaskCheck


@click.command(
    "agents",
    cls=Command,
    examples=(
        "passhat agents",
        "passhat agents | grep demo",
    ),
)
def agents_command() -> ExitCode:
    """List the kinds of agent that are installed."""
    from rich.console import Console

    from passhat.agents.function import agent_kinds
    from passhat.reporting.terminal import capture, facts

    click.echo(capture(Console(), lambda: [facts(agent_kinds().items())]), nl=False)
    return ExitCode.OK


@click.command(
    "suites",
    cls=Command,
    examples=(
        "passhat suites",
        "passhat suites | grep orderdesk",
    ),
)
def suites_command() -> ExitCode:
    """List the kinds of suite that are installed."""
    from rich.console import Console

    from passhat.reporting.terminal import capture, facts
    from passhat.suites.registry import suite_kinds

    click.echo(capture(Console(), lambda: [facts(suite_kinds().items())]), nl=False)
    click.echo("passhat tasks SUITE lists the tasks of one, as in: passhat tasks orderdesk/retail")
    return ExitCode.OK


@click.command(
    "tasks",
    cls=Command,
    examples=(
        "passhat tasks orderdesk/retail",
        "passhat tasks jsonl:tasks.jsonl",
    ),
)
@click.argument("suite")
@click.option(
    "--check",
    is_flag=True,
    help="Test start and reference of coding tasks: the one must fail, the other pass.",
)
@suite_settings
@set_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def tasks_command(suite: str, check: bool, asked: Settings, as_json_text: bool) -> ExitCode:
    """List the tasks of SUITE with their labels."""
    import json

    from rich.console import Console

    from passhat.reporting.terminal import capture, plain_table
    from passhat.suites import load_suite

    loaded = load_suite(suite, asked)
    if check:
        return _check(loaded, as_json_text=as_json_text)
    tasks = loaded.tasks
    if as_json_text:
        data = [
            {"id": task.id, "prompt": task.prompt, "labels": dict(task.labels)} for task in tasks
        ]
        click.echo(json.dumps({"tasks": data}, indent=2, ensure_ascii=False))
        return ExitCode.OK
    labels = list(dict.fromkeys(name for task in tasks for name in task.labels))
    rows = [
        [task.id, *(task.labels.get(name, "") for name in labels), _first_line(task.prompt)]
        for task in tasks
    ]
    header = ("task", *labels, "prompt")
    table = plain_table(header, rows, left=range(len(header)))
    click.echo(capture(Console(), lambda: [table]), nl=False)
    return ExitCode.OK


def _check(suite: Suite, *, as_json_text: bool) -> ExitCode:
    """Check every task; 1 if one of them cannot be attempted."""
    import asyncio
    import json
    from dataclasses import asdict

    from rich.console import Console

    from passhat.reporting.terminal import capture, plain_table
    from passhat.runner.attempt import maybe_await

    async def check_all() -> list[TaskCheck]:
        try:
            return list(await maybe_await(suite.check(suite.tasks)))
        finally:
            await maybe_await(suite.close())

    checks = asyncio.run(check_all())
    if not checks:
        raise click.ClickException(f"{suite.name} has nothing to check: no start, no reference.")
    broken = sum(bool(check.problems) for check in checks)
    if as_json_text:
        click.echo(json.dumps({"tasks": [asdict(check) for check in checks]}, indent=2))
    else:
        rows = [
            (
                *(check.task, "broken" if check.problems else "ok"),
                "; ".join((*check.problems, *check.notes)),
            )
            for check in checks
        ]
        table = plain_table(("task", "check", "why"), rows, left=range(3))
        click.echo(capture(Console(), lambda: [table]), nl=False)
        click.echo(f"{len(checks) - broken} of {counted(len(checks), 'task')} can be attempted")
    return ExitCode.REFUTED if broken else ExitCode.OK


def _first_line(text: str) -> str:
    """The first line of a prompt, which may be pages long."""
    return next((line for line in text.splitlines() if line.strip()), "")


@click.command(
    "completion",
    cls=Command,
    examples=(
        "passhat completion bash",
        'eval "$(passhat completion bash)"',
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> ExitCode:
    """Print the script that completes passhat's commands and options in your shell.

    For bash, put this into ~/.bashrc:  eval "$(passhat completion bash)"
    """
    from click.shell_completion import get_completion_class

    from passhat.cli.main import cli

    maker = get_completion_class(shell)
    if maker is None:  # pragma: no cover - the choice above lists only shells click knows
        raise click.UsageError(f"no completion for {shell}.")
    click.echo(maker(cli, {}, "passhat", "_PASSHAT_COMPLETE").source())
    return ExitCode.OK
