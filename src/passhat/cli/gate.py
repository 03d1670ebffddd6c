"""passhat gate"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import (
    HowToRead,
    forget_standard_output,
    look_at_order,
    source_options,
    term_options,
    write_text,
)

if TYPE_CHECKING:
    from passhat.stats.gate import GateResult
    from passhat.stats.terms import Terms

SUMMARY = "GITHUB_STEP_SUMMARY"


@click.command("gate")
@click.argument("source")
@click.argument("rules", metavar="RULE...", nargs=-1, required=True)
@click.option("--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several.")
@click.option("--against", metavar="SOURCE", help="The run that 'base' stands for in rules.")
@click.option("--base-run", metavar="NAME", help="Which run, when that source holds several.")
@term_options(
    "missing", "drop_short", "level", "allow", help={"level": "One-sided confidence of a rule."}
)
@source_options
@click.option("--tasks", metavar="N|FILE", help="Tasks planned: how many, or a file of their ids.")
@click.option("--attempts", type=click.IntRange(1), metavar="N", help="Attempts planned per task.")
@click.option("--watch", is_flag=True, help="Look again while SOURCE grows; stop once settled.")
@click.option(
    "--interval", type=float, default=10.0, show_default=True, help="Seconds between looks."
)
@click.option(
    "--about",
    type=click.Choice(["this suite", "new tasks"]),
    default="this suite",
    show_default=True,
    help="What --watch settles: what all planned tasks would read, or tasks like them.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the order of --watch.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option("--md", metavar="FILE", help="Write Markdown to FILE (- is standard output).")
@click.option("--junit", metavar="FILE", help="Write JUnit XML to FILE (- is standard output).")
def command(
    source: str,
    rules: tuple[str, ...],
    run_name: str | None,
    against: str | None,
    base_run: str | None,
    how: HowToRead,
    terms: Terms,
    tasks: str | None,
    attempts: int | None,
    watch: bool,
    interval: float,
    about: str,
    seed: int,
    as_json_text: bool,
    md: str | None,
    junit: str | None,
) -> ExitCode:
    """Judge the run in SOURCE by RULEs, such as 'pass^4 >= 0.6' (in quotes).

    Rules: 'pass^4 >= 0.6', 'pass@8 > 0.9', 'pass^4 >= base - 0.03' (with --against),
    'cost <= 0.5' per attempt, 'cost/solved <= 2' per solved task, also seconds, steps and tokens,
    'missing <= 2%'.

    Ends with 0 when all are shown, 1 when any is refuted, 3 when not settled, 4 when planned
    attempts are absent or too many are missing, 2 when a rule cannot be asked.
    """
    from passhat.readers import Needs
    from passhat.stats.gate import GateOptions, judge, parse_rule
    from passhat.stats.gate.rules import Measure

    asked = [parse_rule(rule) for rule in rules]
    ids = None if tasks is None or tasks.isdigit() else _task_ids(tasks)
    planned = int(tasks) if tasks is not None and ids is None else None if ids is None else len(ids)
    options = GateOptions(terms, planned, attempts)

    needs = Needs(
        attempts=look_at_order(str(rule.subject) for rule in asked),
        measures=any(isinstance(rule.subject, Measure) for rule in asked),
        answers=False,
    )
    base = None if against is None else how.one(against, base_run, "--base-run", needs)
    if watch:
        from passhat.cli.watching import state_of, watch_source
        from passhat.stats.gate.sequential_gate import Watcher

        if planned is None or attempts is None:
            raise click.UsageError(
                "--watch needs the plan: --tasks N (or a file of task ids) and --attempts N."
            )
        watcher = Watcher(
            asked,
            tasks=ids or planned,
            attempts=attempts,
            options=options,
            against=None if base is None else base.outcomes,
            about="new tasks" if about == "new tasks" else "this suite",
            seed=seed,
        )
        result = watch_source(
            lambda growing: how.one(source, run_name, needs=replace(needs, growing=growing)),
            watcher,
            interval,
            state=lambda: state_of(source),
        )
    else:
        result = judge(how.one(source, run_name, needs=needs), asked, base, options)
    try:
        _put_out(result, as_json_text=as_json_text, md=md, junit=junit)
    except BrokenPipeError:
        # Whoever read our words has gone; the verdict stays what it is.
        forget_standard_output()
    return ExitCode(result.exit_code)


def _task_ids(path: str) -> list[str]:
    """Task ids, one per line; blank lines are skipped."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise click.UsageError(
            f"--tasks {path}: neither a number nor a file of task ids ({reason})."
        ) from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise click.UsageError(f"--tasks {path}: the file holds no task id.")
    return ids


def _put_out(result: GateResult, *, as_json_text: bool, md: str | None, junit: str | None) -> None:
    from rich.console import Console

    from passhat.report.data import gate_as_json, gate_as_junit
    from passhat.report.markdown import gate_as_markdown
    from passhat.report.terminal import render_gate

    if md is not None:
        write_text(md, gate_as_markdown(result))
    if junit is not None:
        write_text(junit, gate_as_junit(result))
    if summary := os.environ.get(SUMMARY):
        _append(summary, gate_as_markdown(result))
    if as_json_text:
        click.echo(gate_as_json(result), nl=False)
    elif "-" not in (md, junit):
        click.echo(render_gate(result, Console()), nl=False)


def _append(path: str, text: str) -> None:
    """Add to the job summary; a summary that cannot be written must not change the verdict."""
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")
    except OSError as error:
        click.echo(f"passhat: ${SUMMARY} cannot be written: {error.strerror}.", err=True)
