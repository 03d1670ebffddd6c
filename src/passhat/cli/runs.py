"""passhat runs"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.run import store_option


@click.command("runs")
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(store_path: str, as_json_text: bool) -> ExitCode:
    """List the runs of a store."""
    import json

    from rich.console import Console

    from passhat.report.tables import captured, plain_table
    from passhat.store import open_store

    with open_store(store_path, must_exist=True) as store:
        runs = store.runs()
    if as_json_text:
        click.echo(json.dumps({"runs": [run.to_dict() for run in runs]}, indent=2))
        return ExitCode.OK
    header = (
        "run",
        "agent",
        "suite",
        "tasks",
        "attempts",
        "passed",
        "missing",
        "started",
        "status",
    )
    rows = [
        [
            *(run.id, run.agent, run.suite, f"{run.tasks:,}", f"{run.attempts:,}"),
            *(f"{run.passed:,}", f"{run.missing:,}", run.started, run.status),
        ]
        for run in runs
    ]
    table = plain_table(header, rows, left=(0, 1, 2, 7, 8))
    click.echo(captured(Console(), lambda: [table]), nl=False)
    return ExitCode.OK
