"""passhat regrade"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from passhat.runner.regrade import Regraded
    from passhat.store import StoredRun

_MOST_SHOWN = 50


@click.command(
    "regrade",
    cls=Command,
    examples=(
        "passhat regrade latest --dry-run",
        "passhat regrade latest",
    ),
)
@click.argument("run")
@click.option(
    "-s",
    "--suite",
    metavar="SUITE",
    help="The suite, if not the run's own, as in jsonl:tasks.jsonl.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=8, show_default=True, help="Judged at the same time."
)
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def command(
    run: str, suite: str | None, jobs: int, dry_run: bool, store_path: str, as_json_text: bool
) -> ExitCode:
    """Judge the attempts of RUN again without making them again.

    The stored answers are played into a fresh world and judged by the suite as it is now. A verdict
    that changes is added to the first, and reports use the newest. Where the world no longer
    replies as it did then, the attempt keeps its verdict: exit code 4.
    """
    import asyncio

    from passhat._serialize import as_json
    from passhat.runner.redaction import Redactor
    from passhat.runner.regrade import regrade
    from passhat.runner.users import attach_judges
    from passhat.store import open_store
    from passhat.suites import load_suite

    with open_store(store_path, must_exist=True) as store:
        stored_run = store.find(run)
        new_suite = load_suite(suite or suite_of(stored_run))
        attach_judges(new_suite)
        was = store.protocol(stored_run.id).tests_fingerprint
        redact = Redactor(os.environ)

        async def everything() -> list[Regraded]:
            attempts = regrade(store, stored_run.id, new_suite, redact, keep=not dry_run, jobs=jobs)
            return [attempt async for attempt in attempts]

        attempts = asyncio.run(everything())
    if as_json_text:
        data = {
            "run": stored_run.id,
            "judge_before": was,
            "judge_now": new_suite.judge_fingerprint,
            "attempts": attempts,
        }
        click.echo(as_json(data), nl=False)
    else:
        which = "the one" if was == new_suite.judge_fingerprint else "not the one"
        click.echo(f"judge {new_suite.judge_fingerprint}, {which} the run was made with")
        _print_summary(attempts, dry_run=dry_run)
    return _exit_code(attempts)


def suite_of(stored: StoredRun) -> str:
    """The suite of a run; an imported one has none."""
    from passhat.errors import InvalidValue

    if not stored.suite:
        raise InvalidValue(
            f"run {stored.id} was imported and names no suite, so its judge is not known here.",
            hint="Name the suite: -s jsonl:tasks.jsonl",
        )
    return stored.suite


def _exit_code(attempts: Sequence[Regraded]) -> ExitCode:
    from passhat.runner.regrade import Outcome

    any_lost = any(attempt.outcome is Outcome.NOT_REGRADABLE for attempt in attempts)
    return ExitCode.INCOMPLETE if any_lost else ExitCode.OK


def _print_summary(attempts: Sequence[Regraded], *, dry_run: bool) -> None:
    """How many changed and which; how many could not be judged, and why."""
    from collections import Counter

    from rich.console import Console

    from passhat._display import counted
    from passhat.reporting.terminal import capture, facts, plain
    from passhat.runner.regrade import Outcome

    counts = Counter(attempt.outcome for attempt in attempts)
    changes = [attempt for attempt in attempts if attempt.outcome is Outcome.CHANGED]
    flips = sum(
        attempt.now is not None and attempt.now.verdict != attempt.before.verdict
        for attempt in changes
    )
    tense = "would change" if dry_run else "changed"
    parts = [f"{counts[Outcome.SAME]:,} the same", f"{counted(flips, 'verdict')} {tense}"]
    if len(changes) > flips:
        parts.append(f"{len(changes) - flips:,} {tense} their category")
    parts += [
        f"{counts[outcome]:,} {outcome}"
        for outcome in (Outcome.NOT_JUDGED, Outcome.HUMAN, Outcome.NOT_REGRADABLE)
        if counts[outcome]
    ]
    click.echo(f"{counted(len(attempts), 'attempt')}: {', '.join(parts)}")
    for group in (Outcome.CHANGED, Outcome.NOT_REGRADABLE):
        members = [attempt for attempt in attempts if attempt.outcome is group]
        rows = [
            (attempt.id, attempt.why or f"{attempt.before} → {attempt.now}")
            for attempt in members[:_MOST_SHOWN]
        ]
        if rows:
            click.echo(capture(Console(), lambda rows=rows: [facts(rows)]), nl=False)  # type: ignore[misc]
        if len(members) > _MOST_SHOWN:
            text = f"and {len(members) - _MOST_SHOWN:,} more; --json lists all of them"
            click.echo(capture(Console(), lambda text=text: [plain(text)]), nl=False)  # type: ignore[misc]


@click.command(
    "judge-check",
    cls=Command,
    examples=(
        "passhat judge-check latest",
        "passhat judge-check latest --sample 20",
    ),
)
@click.argument("run")
@click.option(
    "-s",
    "--suite",
    metavar="SUITE",
    help="The suite whose judge is checked, if not the run's own, as in jsonl:tasks.jsonl.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Attempts that are judged again; labeled ones first.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the choice.")
@click.option(
    "--jobs", type=click.IntRange(1), default=8, show_default=True, help="Judged at the same time."
)
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def judge_check_command(
    run: str,
    suite: str | None,
    sample: int,
    seed: int,
    jobs: int,
    store_path: str,
    as_json_text: bool,
) -> ExitCode:
    """Judge answers of RUN again in other forms: does the verdict flip, and which way?

    The same answers are padded, reformatted, reworded and reordered without a change of content.
    Answers as they are tell whether the judge has drifted since the run; labeled attempts serve as
    anchors. Nothing is stored.
    """
    import asyncio

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.document import Level
    from passhat.reporting.documents.judge import judge_check_document
    from passhat.reporting.terminal import render_terminal
    from passhat.runner.redaction import Redactor
    from passhat.runner.regrade import check_attempts
    from passhat.runner.users import attach_judges
    from passhat.stats.labels.drawing import draw_attempts
    from passhat.stats.labels.judge_error import summarize_check
    from passhat.stats.outcomes import Verdict
    from passhat.store import open_store
    from passhat.store.labels import decide_labels, load_labels
    from passhat.suites import load_suite

    with open_store(store_path, must_exist=True) as store:
        stored = store.find(run)
        loaded = load_suite(suite or suite_of(stored))
        attach_judges(loaded)
        labels = decide_labels(load_labels(store._queries, store._key(stored.id)))
        places = [
            (task, number)
            for task, number, verdict in store.verdicts(stored.id)
            if verdict is not Verdict.MISSING
        ]
        anchors = [place for place in places if place in labels]
        others = [place for place in places if place not in labels]
        chosen = [
            place
            for part in (anchors, others)
            if part
            for place in draw_attempts(part, [], sample, seed).attempts
        ][:sample]
        attempts, skipped = asyncio.run(
            check_attempts(store, stored.id, loaded, Redactor(os.environ), chosen, labels, jobs)
        )
    check = summarize_check(stored.id, loaded.judge_fingerprint, attempts, skipped=skipped)
    if as_json_text:
        click.echo(as_json(check), nl=False)
    else:
        click.echo(render_terminal(judge_check_document(check), Console(), Level.SHORT), nl=False)
    return ExitCode.INCOMPLETE if skipped and not attempts else ExitCode.OK
