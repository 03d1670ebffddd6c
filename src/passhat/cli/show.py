"""passhat show"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from passhat.store import Ended, Store

_WHO = {"judge": "the judge", "regrade": "judged again", "human": "a person"}


@click.command(
    "show",
    cls=Command,
    examples=(
        "passhat show latest",
        "passhat show latest 'multiply#1'",
    ),
)
@click.argument("run")
@click.argument("attempt", metavar="[TASK#ATTEMPT]", required=False)
@click.option(
    "--override",
    type=click.Choice(["passed", "failed"]),
    help="Your own verdict, kept beside the judge's; reports use it.",
)
@click.option(
    "--because", metavar="TEXT", help="Reason of --override, as in 'right, but in French'."
)
@click.option(
    "--calls",
    is_flag=True,
    help="Every model call of the attempt: model, stop reason, tokens, retries, request and reply.",
)
@store_option
def command(
    run: str,
    attempt: str | None,
    override: str | None,
    because: str | None,
    calls: bool,
    store_path: str,
) -> ExitCode:
    """Report on a stored RUN, or print the conversation of one attempt, as in retail/012#3.

    An attempt with several judgements shows all of them; the last counts.
    """
    from rich.console import Console

    from passhat.errors import InvalidValue
    from passhat.readers.store import run_from_store
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.reporting.documents.report import report_document
    from passhat.reporting.terminal import render_terminal
    from passhat.store import damage_reported, open_store

    if bool(override) != bool(because and because.strip()) or (override and attempt is None):
        raise InvalidValue(
            "a verdict of your own needs the attempt, --override and --because.",
            hint='As in: passhat show RUN retail/012#3 --override passed --because "The refund '
            'was right, the goal is wrong."',
        )
    if calls and attempt is None:
        raise InvalidValue(
            "--calls needs an attempt.", hint="As in: passhat show RUN retail/012#3 --calls"
        )
    with damage_reported(store_path), open_store(store_path, must_exist=True) as store:
        stored_run = store.find(run)
        if attempt is None:
            report = build_report(
                [run_from_store(store, stored_run)], ReportOptions(with_tasks=True)
            )
            click.echo(render_terminal(report_document(report), Console()), nl=False)
            return ExitCode.OK
        task, sign, number = attempt.rpartition("#")
        if not sign or not number.isdigit():
            raise InvalidValue(f"{attempt!r} should read TASK#ATTEMPT, as in retail/012#3.")
        if store.attempt(stored_run.id, task, int(number)) is None:
            raise InvalidValue(f"run {stored_run.id} has no finished attempt {attempt!r}.")
        if override is not None:
            _decide(store, stored_run.id, (task, int(number)), override, str(because).strip())
        record = store.attempt(stored_run.id, task, int(number))
        assert record is not None
        call_records = store.calls(stored_run.id, task, int(number)) if calls else []
    _show(attempt, record)
    if calls:
        _show_calls(call_records)
    return ExitCode.OK


def _decide(store: Store, run: str, place: tuple[str, int], verdict: str, because: str) -> None:
    """Store a person's verdict; a failure keeps the judge's category, if any."""
    from passhat.stats.outcomes import FailureCategory, Verdict
    from passhat.store import JudgementSource, StoredJudgement

    word = Verdict[verdict.upper()]
    why = ""
    if word is Verdict.FAILED:
        categories = [
            judgement.why
            for judgement in store.judgements(run, *place)
            if judgement.verdict is Verdict.FAILED
        ]
        why = categories[-1] if categories else str(FailureCategory.UNKNOWN_FAILURE)
    judgement = StoredJudgement(word, why, because, JudgementSource.HUMAN)
    store.add_judgement(run, *place, judgement)


def _show(attempt: str, ended: Ended) -> None:
    from rich.console import Console

    from passhat._display import counted
    from passhat.reporting.answers import drop_answers, find_answers
    from passhat.reporting.terminal import capture, facts, plain

    why = f", {ended.why}: {ended.detail}" if ended.why else ""
    measures = [] if ended.steps is None else [counted(int(ended.steps), "step")]
    measures += [] if ended.seconds is None else [f"{ended.seconds:.2f} s"]
    parts = [
        plain(f"{attempt} {ended.verdict}{why}", "bold"),
        plain(", ".join(measures) or "nothing else is recorded"),
    ]
    answers = find_answers(ended.transcript)
    if answers.expected:
        beside = [("expected", answers.expected), ("got", answers.got or "no answer")]
        if str(ended.verdict) != "passed":
            beside += [("difference", line) for line in answers.differences]
        click.echo(capture(Console(), lambda: [*parts, facts(beside)]), nl=False)
        parts = []
    if len(ended.said) > 1:
        words = [
            (_WHO[judgement.source], f"{judgement} ({judgement.at[:16]})")
            for judgement in ended.said
        ]
        click.echo(capture(Console(), lambda: [*parts, facts(words)]), nl=False)
        parts = []
    for entry in drop_answers(ended.transcript):
        parts += [plain(""), plain(entry["role"], "bold"), plain(entry["text"])]
    click.echo(capture(Console(), lambda: parts), nl=False)


def _show_calls(calls: Sequence[Mapping[str, Any]]) -> None:
    """Print every model call: a line of facts, then its request and its reply."""
    from passhat.reporting.run_summary import call_facts

    if not calls:
        click.echo("\nNo model calls are recorded for this attempt.")
    for number, call in enumerate(calls, 1):
        click.echo(f"\ncall {number} of {len(calls)}: {', '.join(call_facts(call))}")
        for cause in call.get("retries", ()):
            click.echo(f"  retried after {cause}")
        if call.get("error"):
            click.echo(f"  error: {call['error']}")
        for name in ("request", "reply"):
            if call.get(name) is not None:
                click.echo(f"{name}:")
                click.echo(json.dumps(call[name], indent=2, ensure_ascii=False))
