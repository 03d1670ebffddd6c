"""passhat show"""

from __future__ import annotations

import click

from passhat.cli.exits import ExitCode
from passhat.cli.run import store_option


@click.command("show")
@click.argument("run")
@click.argument("attempt", metavar="[TASK#ATTEMPT]", required=False)
@store_option
def command(run: str, attempt: str | None, store_path: str) -> ExitCode:
    """Report on a stored RUN, or print the conversation of one attempt, as in retail/012#3."""
    from rich.console import Console

    from passhat.errors import InvalidValue
    from passhat.readers.store import run_from_store
    from passhat.report import ReportOptions, build_report
    from passhat.report.tables import captured
    from passhat.report.terminal import render_report
    from passhat.store import open_store

    with open_store(store_path, must_exist=True) as store:
        stored = store.find(run)
        if attempt is None:
            report = build_report([run_from_store(store, stored)], ReportOptions(with_tasks=True))
            click.echo(render_report(report, Console()), nl=False)
            return ExitCode.OK
        task, sign, number = attempt.rpartition("#")
        if not sign or not number.isdigit():
            raise InvalidValue(f"{attempt!r} should read TASK#ATTEMPT, as in retail/012#3.")
        ended = store.attempt(stored.id, task, int(number))
        if ended is None:
            raise InvalidValue(f"run {stored.id} has no finished attempt {attempt!r}.")
    from passhat.report.tables import plain

    why = f", {ended.why}: {ended.detail}" if ended.why else ""
    parts = [plain(f"{attempt} {ended.verdict}{why}", "bold")]
    measures = [
        f"{value:{digits}} {unit}"
        for value, digits, unit in ((ended.steps, "g", "steps"), (ended.seconds, ".2f", "s"))
        if value is not None
    ]
    parts.append(plain(", ".join(measures) or "nothing else is recorded"))
    for entry in ended.transcript:
        parts += [plain(""), plain(entry["role"], "bold"), plain(entry["text"])]
    click.echo(captured(Console(), lambda: parts), nl=False)
    return ExitCode.OK
