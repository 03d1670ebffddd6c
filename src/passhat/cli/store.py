"""passhat store"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from passhat._display import counted
from passhat.cli.shared.commands import Group
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from passhat.store.copy import Copied

_LOG_PROBLEMS = {
    "foreign": "the write-ahead log {where}-wal BELONGS TO ANOTHER FILE, or to another state of "
    "this one.\n  Move it away and check again; what only it holds is lost.",
    "absent": "the WRITE-AHEAD LOG IS ABSENT although a runner was writing: the file was copied "
    "or moved\n  without {where}-wal. Copy both, or use passhat store backup.",
}


@click.group("store", cls=Group)
def command() -> None:
    """Manage stores: copy, merge, back up, restore, check, vacuum."""


class _Age(click.ParamType["timedelta"]):
    """``30d``, ``12h`` or ``2w``."""

    name = "AGE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        import re
        from datetime import timedelta

        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"\s*(\d+)\s*([hdw])\s*", str(value))
        if match is None:
            self.fail(f"{value!r} is not an age; write 30d, 12h or 2w.", param, ctx)
        units = {"h": "hours", "d": "days", "w": "weeks"}
        try:
            return timedelta(**{units[match[2]]: int(match[1])})
        except OverflowError:
            self.fail(f"{value!r} is longer than time is counted.", param, ctx)


@command.command(
    "copy",
    examples=(
        "passhat store copy .passhat/passhat.db backup.db",
        "passhat store copy .passhat/passhat.db archive/runs.db",
    ),
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--run", "runs", multiple=True, metavar="RUN", help="Only this run, as in latest; repeatable."
)
def copy(source: str, target: str, runs: tuple[str, ...]) -> ExitCode:
    """Copy all runs of the store FROM into the store TO; each is a path or postgresql://...

    Existing attempts in TO stay, so an interrupted copy continues where it stopped.
    Every run is read again on both sides and compared by counts and digests. Attempts that are
    being made just now are left out.
    """
    from passhat.store import open_store
    from passhat.store.copy import copy_runs

    with open_store(source, must_exist=True, read_only=True) as source_store:
        run_ids = [source_store.find(run).id for run in runs] or [
            run.id for run in source_store.runs()
        ]
        with open_store(target) as here:
            for run_copy in copy_runs(source_store, here, run_ids, _progress()):
                click.echo(_sentence(run_copy))
    if not run_ids:
        click.echo(f"there is no run in {source_store.path}", err=True)
    return ExitCode.OK


@command.command(
    "merge",
    examples=(
        "passhat store merge .passhat/passhat.db --store all.db",
        "passhat store merge .passhat/passhat.db .passhat/passhat.db --store both.db",
    ),
)
@click.argument("sources", metavar="STORE...", nargs=-1, required=True)
@store_option
def merge(sources: tuple[str, ...], store_path: str) -> ExitCode:
    """Join the runs of several STOREs, such as those of shards, into the store of --store.

    An attempt that two of them have in different forms is a conflict: then nothing is written. A
    merge that was interrupted continues where it stopped.
    """
    from contextlib import ExitStack

    from passhat.store import open_store
    from passhat.store.copy import merge_runs

    with ExitStack() as stack:
        others = [
            stack.enter_context(open_store(source, must_exist=True, read_only=True))
            for source in sources
        ]
        store = stack.enter_context(open_store(store_path))
        for run_copy in merge_runs(others, store, _progress()):
            click.echo(_sentence(run_copy))
        for run in store.runs():
            click.echo(
                f"{run.id}: {run.attempts:,} of {counted(run.total, 'attempt')}, {run.status}",
                err=True,
            )
    return ExitCode.OK


@command.command(
    "backup",
    examples=(
        "passhat store backup backups/monday.db",
        "passhat store backup today.db --store .passhat/passhat.db",
    ),
)
@click.argument("target", metavar="DEST")
@store_option
def backup(target: str, store_path: str) -> ExitCode:
    """Write a consistent copy of the store to the file DEST, while runners go on.

    Example: passhat store backup backups/monday.db. From PostgreSQL, too, the copy is one SQLite
    file, taken at one moment. `passhat store restore` brings it back.
    """
    from passhat.store import open_store
    from passhat.store.copy import back_up

    with open_store(store_path, must_exist=True, read_only=True) as store:
        result = back_up(store, target)
        click.echo(
            f"{store.path}: {counted(result.runs, 'run')}, {counted(result.attempts, 'attempt')} "
            f"in {target}"
        )
    return ExitCode.OK


@command.command(
    "restore",
    examples=(
        "passhat store restore .passhat/passhat.db --store restored.db",
        "passhat store restore .passhat/passhat.db --store copies/restored.db",
    ),
)
@click.argument("source", metavar="BACKUP")
@store_option
def restore(source: str, store_path: str) -> ExitCode:
    """Bring a backup into a store without runs; every row is compared afterwards.

    Example: passhat store restore backups/monday.db --store new.db
    """
    from passhat.store import open_store
    from passhat.store.copy import restore as bring_back

    with (
        open_store(source, must_exist=True, read_only=True) as source_store,
        open_store(store_path) as here,
    ):
        copies = list(bring_back(source_store, here, _progress()))
        attempts = sum(run_copy.attempts for run_copy in copies)
        click.echo(
            f"{here.path}: {counted(len(copies), 'run')}, {counted(attempts, 'attempt')} restored"
        )
    return ExitCode.OK


@command.command(
    "check",
    examples=(
        "passhat store check",
        "passhat store check --store .passhat/passhat.db",
    ),
)
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def check(store_path: str, as_json_text: bool) -> ExitCode:
    """Read a whole store once: is it sound, of which version, does any row point nowhere.

    Exit code 4 when something is damaged.
    """
    from passhat._serialize import as_json, to_data
    from passhat.store import damage_reported, open_store
    from passhat.store.check import check as checked

    with (
        damage_reported(store_path),
        open_store(store_path, must_exist=True, read_only=True) as store,
    ):
        looked_at = _make_quiet_echo()
        health = checked(store, lambda what: looked_at(f"checking {what} ..."))
        where = store.path
    if as_json_text:
        data = {"store": where, "whole": health.whole, **to_data(health)}
        click.echo(as_json(data), nl=False)
        return ExitCode.OK if health.whole else ExitCode.INCOMPLETE
    click.echo(f"{where}: store version {health.version}, {health.size / 1e6:,.1f} MB")
    if health.log_problem is not None:
        click.echo(_LOG_PROBLEMS[health.log_problem].format(where=where))
    if not health.sound:
        click.echo("the database IS DAMAGED; restore a backup, or copy what can still be read")
        return ExitCode.INCOMPLETE
    click.echo(
        f"{counted(health.runs, 'run')}, {counted(health.tasks, 'task')}, "
        f"{counted(health.attempts, 'finished attempt')}, "
        f"{health.transcripts:,} transcripts"
    )
    click.echo("the database is sound")
    for count, what in (
        (health.attempts_without_task, "attempts BELONG TO NO TASK of their run"),
        (health.attempts_beyond_plan, "attempts are OUTSIDE THEIR PLAN"),
        (health.judgements_without_attempt, "judgements BELONG TO NO ATTEMPT"),
        (health.half_finished, "attempts are HALF WRITTEN: a verdict without an end, or an end"),
        (health.unknown_verdicts, "attempts have an UNKNOWN VERDICT"),
        (health.unreadable_transcripts, "transcripts CANNOT BE READ"),
        (health.unreadable_runs, "runs have a protocol or labels that CANNOT BE READ"),
        (
            health.transcripts_without_attempt,
            "transcripts without an attempt (vacuum removes them)",
        ),
        (health.open_claims, "attempts are being made or were left by a runner"),
        (health.abandoned_claims, "of them were left by runners that are gone"),
    ):
        if count:
            click.echo(f"{count:,} {what}")
    return ExitCode.OK if health.whole else ExitCode.INCOMPLETE


@command.command(
    "vacuum",
    examples=(
        "passhat store vacuum",
        "passhat store vacuum --transcripts-older-than 30d",
    ),
)
@store_option
@click.option(
    "--transcripts-older-than",
    "age",
    type=_Age(),
    metavar="AGE",
    help="Delete transcripts of attempts that ended this long ago, as 30d. Verdicts stay.",
)
def vacuum(store_path: str, age: timedelta | None) -> ExitCode:
    """Free disk space: remains of deleted runs and, on request, old transcripts."""
    from passhat.store import open_store
    from passhat.store.check import forget_orphans, forget_transcripts

    with open_store(store_path, must_exist=True) as store:
        before = store.size()
        say = _make_quiet_echo()

        def tell(count: int) -> None:
            say(f"deleted {count:,} transcripts so far ...")

        forgotten = 0 if age is None else forget_transcripts(store, age, tell)
        forgotten += forget_orphans(store)
        say("freeing disk space ...")
        store.vacuum()
        after = store.size()
    click.echo(
        f"deleted {forgotten:,} transcripts; {before / 1e6:,.1f} MB before, "
        f"{after / 1e6:,.1f} MB now"
    )
    return ExitCode.OK


def _sentence(done: Copied) -> str:
    digest = done.source["attempts"].value
    if done.equal:
        same = f"equal on both sides, digest {digest}"
    else:
        extra_rows = done.target["attempts"].rows - done.source["attempts"].rows
        same = f"all there; the target has {extra_rows:,} more"
    return f"{done.run}: {counted(done.attempts, 'attempt')}, {done.added:,} added; {same}"


def _progress() -> Any:
    say = _make_quiet_echo()
    return lambda doing, run, attempts: say(f"{run}: {counted(attempts, 'attempt')} {doing} ...")


def _make_quiet_echo() -> Callable[[str], None]:
    """A function that prints a message, at most once every two seconds."""
    import time

    last = time.monotonic()

    def say(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > 2.0:
            last = time.monotonic()
            click.echo(text, err=True)

    return say
