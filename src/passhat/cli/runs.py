"""passhat runs"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat._display import counted
from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from passhat.store import Store

_TEXTS = ("run", "agent", "suite", "started", "status")
"""Columns that hold words, not numbers."""


@click.command(
    "runs",
    cls=Command,
    examples=(
        "passhat runs",
        "passhat runs --json",
    ),
)
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(store_path: str, as_json_text: bool) -> ExitCode:
    """List the runs of a store, the oldest first."""
    from rich.console import Console

    from passhat._display import counted, percent
    from passhat._serialize import as_json, to_data
    from passhat.readers.store import has_no_answer
    from passhat.reporting.terminal import capture, plain_table
    from passhat.store import damage_reported, open_store

    with (
        damage_reported(store_path),
        open_store(store_path, must_exist=True, read_only=True) as store,
    ):
        runs = store.runs()
        # Where tasks have different numbers of attempts, the share of attempts is misleading.
        means = {run.id: _task_mean(store, run.id) for run in runs if run.plan.by_task}
        silent = set() if as_json_text else {run.id for run in runs if has_no_answer(store, run)}
    if as_json_text:
        click.echo(as_json({"runs": to_data(runs)}), nl=False)
        return ExitCode.OK
    # Ids, counts and times stay on one line; long names of agents and suites go on in the next.
    header = ("run", "agent", "suite", "made", "pass", "missing", "started", "status")
    rows = []
    listed = [run for run in runs if not run.is_fresh]
    for run in listed:
        judged_count = run.attempts - run.missing
        rate = percent(means.get(run.id, run.passed / judged_count), 0) if judged_count else "–"
        status = run.status
        if run.id in silent:
            rate, status = "–", "no answers" if status == "complete" else status
        start_time = run.started[5:16].replace("T", " ")
        counts = (f"{run.attempts:,}", rate, f"{run.missing:,}")
        rows.append([run.id, run.name or run.agent, run.suite, *counts, start_time, status])
    console = Console()
    # A column that says nothing, and the time on a narrow screen, leave their room to the names.
    is_missing = any(run.missing for run in listed)
    shown = [i for i, name in enumerate(header) if name != "missing" or is_missing]
    if _width([header, *rows], shown) > console.width:
        shown.remove(header.index("started"))
    table = plain_table(
        [header[i] for i in shown],
        [[row[i] for i in shown] for row in rows],
        left=[at for at, i in enumerate(shown) if header[i] in _TEXTS],
        whole=[at for at, i in enumerate(shown) if header[i] not in ("agent", "suite")],
    )
    click.echo(capture(console, lambda: [table]), nl=False)
    if len(listed) < len(runs):
        fresh = f"{counted(len(runs) - len(listed), 'run')} of fresh attempts"
        click.echo(f"{fresh} that gates and searches made: passhat runs --json lists them")
    return ExitCode.OK


def _task_mean(store: Store, run: str) -> float:
    """The mean over tasks of the share of their attempts that passed."""
    counts = store.counts(run)
    has_score = counts.n > 0
    return float((counts.c[has_score] / counts.n[has_score]).mean()) if has_score.any() else 0.0


def _width(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    """The columns of a screen that a table takes, with two between cells."""
    return sum(2 + max(len(row[at]) for row in rows) for at in columns)


@click.command(
    "rm",
    cls=Command,
    examples=(
        "passhat rm latest~1 --yes",
        "passhat rm latest --yes",
    ),
)
@click.argument("run")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Delete a run that a runner is making; it then ends.")
def rm_command(run: str, store_path: str, yes: bool, force: bool) -> ExitCode:
    """Delete a stored RUN with all its attempts."""
    from passhat.store import open_store

    with open_store(store_path, must_exist=True) as store:
        entry = store.find(run)
        what = f"{entry.id}: {entry.agent} on {entry.suite}, {counted(entry.attempts, 'attempt')}"
        if not yes:
            click.confirm(f"Delete {what}?", abort=True)
        store.remove(entry.id, force=force)
        click.echo(f"deleted {what}", err=True)
    return ExitCode.OK
