"""passhat demo"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat._display import counted
from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from passhat.runner import RunPlan
    from passhat.stats.compare import Comparison
    from passhat.stats.outcomes import Run
    from passhat.store import Store

_AGENTS = ("demo:hasty", "demo:careful")
_SUITE = "orderdesk/retail"
_METRICS = ("pass^1", "pass^4")


@click.command(
    "demo",
    cls=Command,
    examples=(
        "passhat demo",
        "passhat demo -n 4 --store demo.db",
    ),
)
@click.option("-n", "attempts", default=8, show_default=True, help="Attempts at every task.")
@click.option(
    "--store",
    "store_path",
    metavar="PATH",
    default=".passhat/demo.db",
    show_default=True,
    help="Where attempts are kept; the report is written beside it.",
)
def command(attempts: int, store_path: str) -> ExitCode:
    """Run two demo agents on orderdesk/retail and compare them; no key, no network.

    Every attempt is a real one: a fresh world, a user with a mood, an agent that may slip. Made
    once, they stay in the store, and the same command shows them again.
    """
    import asyncio

    from rich.console import Console

    from passhat.errors import InvalidValue
    from passhat.readers.store import run_from_store
    from passhat.reporting.document import Level
    from passhat.reporting.documents.verdicts import comparison_document
    from passhat.reporting.task_changes import task_changes
    from passhat.reporting.terminal import render_terminal
    from passhat.runner.run_spec import RunSpec
    from passhat.stats.compare import compare
    from passhat.store import open_store

    if attempts < 4:
        raise InvalidValue("-n must be at least 4: the demo compares pass^4.")
    with open_store(store_path) as store:
        runs = []
        for word in _AGENTS:
            plan = RunSpec(agent=word, suite=_SUITE, attempts=attempts).plan()
            asyncio.run(_make_missing(plan, store))
            runs.append(run_from_store(store, store.find(plan.record.id)))
    comparison = compare(runs[0], runs[1], _METRICS)
    changes = task_changes(runs[0], runs[1], _METRICS[0])
    document = comparison_document(comparison, runs, changes)
    click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)
    click.echo()
    _report(runs, comparison, store_path)
    return ExitCode.OK


async def _make_missing(plan: RunPlan, store: Store) -> None:
    """Make the attempts that the store lacks, and print their number."""
    from passhat.runner import run_attempts
    from passhat.runner.run import Stop

    progress = await run_attempts(plan, store, Stop(), lambda _record, _progress: None)
    what = (
        f"{counted(len(plan.tasks), 'task')} of {plan.suite.name}, "
        f"{counted(plan.attempts.each, 'attempt')} each"
    )
    origin = f"{progress.done} made now" if progress.done else "all in the store already"
    click.echo(f"{plan.agent.name}: {what}; {origin}", err=True)


def _report(runs: Sequence[Run], comparison: Comparison, store_path: str) -> None:
    """The sentence about each run, why its attempts failed, and where to read the rest."""
    from rich.console import Console

    from passhat.cli.shared.options import this_command
    from passhat.cli.shared.outputs import write_text
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.reporting.documents.report import report_document
    from passhat.reporting.html import HtmlOptions, html_report
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.task_changes import task_changes
    from passhat.reporting.terminal import capture, facts

    report = build_report(runs, ReportOptions(by="band", with_tasks=True, with_details=True))
    write_text(str(Path(store_path).with_suffix(".md")), render_markdown(report_document(report)))
    page = Path(store_path).with_suffix(".html")
    changes = task_changes(runs[0], runs[1], _METRICS[0])
    write_text(str(page), html_report(report, HtmlOptions(this_command()), comparison, changes))
    entries = []
    for run in report.runs:
        failures = run.run.failures_by_category.items()
        entries += [(run.run.agent or run.name, run.headline)]
        entries += [(run.run.agent or run.name, f"failed by {why}: {n}") for why, n in failures]
    example = f"passhat show {runs[0].id} retail/001#1 --store {store_path}"
    entries += [("Attempts", store_path), ("Read one", example)]
    entries += [("The report", f"{page} (open it in a browser)")]
    click.echo(capture(Console(), lambda: [facts(entries)]), nl=False)
