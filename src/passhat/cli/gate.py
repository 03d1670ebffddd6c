"""passhat gate"""

from __future__ import annotations

import os
import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import read_rules
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.labels import corrected_option, labels_option, with_labels
from passhat.cli.shared.options import (
    ReadingOptions,
    forget_standard_output,
    look_at_attempts,
    runs_called,
    source_options,
    sources_or_latest,
    term_options,
    this_command,
)
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs
from passhat.errors import NoRows, PasshatError, ReadError

if TYPE_CHECKING:
    from passhat.readers import Needs
    from passhat.stats.gate import GateResult, Rule
    from passhat.stats.gate.cases import Unsettled
    from passhat.stats.gate.sequential_gate import Watcher
    from passhat.stats.outcomes import Failures, Run
    from passhat.stats.terms import Terms

_PATIENCE = 3
"""Looks in a row at which the source may stay as it is: unreadable, or without an end of its last
line."""


def state_of(source: str) -> object:
    """A value that changes with every write to a file; ``None`` if it is not a file."""
    path = Path(source)
    try:
        status = path.stat() if path.is_file() else None
    except OSError:
        return None
    return status and (status.st_ino, status.st_size, status.st_mtime_ns)


def watch_source(
    read: Callable[[bool], Run],
    watcher: Watcher,
    interval: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    state: Callable[[], object] = lambda: None,
) -> GateResult:
    """Look until the rules are settled or all planned tasks are in, and return the verdicts.

    ``read`` takes whether the source may be growing: then a row that is being written is left
    for the next look. A file that has not changed for some looks is taken as it is.
    """
    before, quiet_rounds, failures = state(), 0, 0
    last_message = ""
    while True:
        now = state()
        quiet_rounds = quiet_rounds + 1 if now == before else 0
        failures = failures if now == before else 0
        before = now
        try:
            look = watcher.look(read(now is not None))
            if now is not None and quiet_rounds > _PATIENCE and not (look.settled or look.complete):
                with suppress(ReadError):  # half a row: its writer pauses
                    look = watcher.look(read(False))
            failures = 0
        except NoRows as error:
            message = f"nothing to be read yet ({error.message})"
        except ReadError as error:
            failures += 1
            if failures > _PATIENCE:
                raise
            message = f"cannot be read yet ({error.message})"
        else:
            if look.settled or look.complete:
                return look.result
            message = str(look)
        if message != last_message:
            click.echo(message, err=True)
            last_message = message
        sleep(interval)


SUMMARY = "GITHUB_STEP_SUMMARY"


@click.command(
    "gate",
    cls=Command,
    renamed={"--md": "-o", "--junit": "-o", "--interval": "--watch", "--rule": "{}"},
    examples=(
        "passhat gate latest 'pass^1 >= 0.5'",
        "passhat gate latest 'pass^1 >= base - 0.2' --against latest~1 --allow",
    ),
)
@click.argument("source", required=False)
@click.argument("rules", metavar="[RULE...]", nargs=-1)
@click.option(
    "--run", "run_name", metavar="NAME", help="Which run, when SOURCE holds several, as in careful."
)
@click.option(
    "--against",
    metavar="SOURCE",
    help="The baseline, 'base' in rules, as in baseline.jsonl or latest~1.",
)
@click.option("--base-run", metavar="NAME", help="Which run of --against, as in careful.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="POINTS",
    help="Without a rule: the drop that is accepted, as in 5.  [default: what the data resolve]",
)
@click.option(
    "--metric",
    metavar="M",
    help="Without a rule: what is compared, as in pass^4. [default: pass^1]",
)
@click.option(
    "--unsettled",
    type=click.Choice(["pass", "warn", "fail"]),
    help="How a gate ends that is not settled: 0, 0 with a warning, or 3.  [default: fail with "
    "rules, warn without]",
)
@click.option(
    "--max-missing",
    type=click.FloatRange(0, 100),
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="Planned attempts that may be absent or have no verdict; beyond it the gate ends with 4.",
)
@click.option(
    "--confirm",
    is_flag=False,
    flag_value=0,
    type=click.IntRange(0),
    metavar="[N]",
    help="Without a rule: N fresh attempts at up to 5 tasks that look broken, as in 8; name those "
    "that are.",
)
@click.option(
    "--settle",
    type=click.IntRange(1),
    metavar="N",
    help="With 'each': up to N more attempts at each task that is not decided, as in 64.",
)
@click.option(
    "--again",
    metavar="OPTIONS",
    help="Options of passhat run for fresh attempts, as in '-a python:agent:answer'.  [default: "
    "as recorded]",
)
@term_options(
    "missing",
    "drop_short",
    "level",
    "allow",
    "about",
    "cluster",
    help={
        "level": "One-sided confidence of a rule.",
        "about": "The tasks verdicts are about.  [default: new-tasks; these-tasks against a "
        "baseline; with --watch and no baseline this run]",
    },
)
@source_options
@corrected_option
@labels_option
@click.option("--tasks", metavar="N|FILE", help="Tasks planned, as in 40, or a file of their ids.")
@click.option(
    "--attempts", type=click.IntRange(1), metavar="N", help="Attempts planned per task, as in 8."
)
@click.option(
    "--watch",
    type=float,
    metavar="SECONDS",
    help="Look again so often while SOURCE grows, as in 10; stop once settled.",
)
@click.option(
    "--seed", type=int, metavar="N", help="Repeat the order of an earlier --watch, as in 1234."
)
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option(
    *("md", "junit", "json"),
    help="Write a file, as in gate.md, gate.json, or gate.xml (JUnit); repeatable. -o md prints.",
)
def command(
    source: str | None,
    rules: tuple[str, ...],
    run_name: str | None,
    against: str | None,
    base_run: str | None,
    margin: float | None,
    metric: str | None,
    unsettled: Unsettled | None,
    max_missing: float,
    confirm: int | None,
    settle: int | None,
    again: str | None,
    how: ReadingOptions,
    terms: Terms,
    corrected: str | None,
    label_files: tuple[str, ...],
    tasks: str | None,
    attempts: int | None,
    watch: float | None,
    seed: int | None,
    as_json_text: bool,
    outputs: tuple[Output, ...],
) -> ExitCode:
    """Judge the run in SOURCE by RULEs, such as 'pass^4 >= 0.6' (in quotes).

    Without SOURCE: the newest run of the store. Without a RULE and a baseline: the rules of
    [gate] in passhat.toml.

    Without a RULE the run is held against its baseline: passhat gate NEW --against BASELINE. It
    ends with 1 and names the tasks on a regression, with 0 when there is none beyond the margin,
    and with 0 and a warning when that is unsettled. With --confirm a mean that looks lower gets a
    second look: as many attempts again, at all tasks.

    Rules: 'pass^4 >= 0.6', 'pass@8 > 0.9', 'pass^4 >= base - 0.03' (with --against),
    'cost <= 0.5' per attempt, 'cost/solved <= 2' per solved task, also seconds, steps and tokens,
    'missing <= 2%', 'each pass^1 >= 0.8' for every task by itself.

    Ends with 0 when all are shown, 1 when any is refuted, 3 when not settled, 4 when tasks of the
    baseline are absent or too many planned attempts were not made or not judged, 2 when a rule
    cannot be evaluated. The plan is the run's own where it states one (or --attempts), else the
    baseline's attempts.
    """
    from passhat.readers import Needs
    from passhat.stats.gate import GateOptions, judge, parse_rule
    from passhat.stats.gate.cases import Tools

    words = [word for word in (source, *rules) if word is not None]
    rules = tuple(word for word in words if _is_rule(word))
    (source,) = sources_or_latest(_one_source([word for word in words if word not in rules]))
    rules = rules or _usual_rules(against)
    parsed_rules = [parse_rule(rule) for rule in rules]
    ids = None if tasks is None or tasks.isdigit() else _task_ids(tasks)
    task_count = (
        int(tasks) if tasks is not None and ids is None else None if ids is None else len(ids)
    )
    _refuse_useless(
        parsed_rules, watch=watch is not None, seed=seed, metric=metric, against=against
    )
    _refuse_useless_fresh(parsed_rules, confirm, settle, again, watch=watch is not None)
    options = GateOptions(
        terms,
        task_count,
        attempts,
        metric or "pass^1",
        None if margin is None else margin / 100,
        unsettled,
        tools=Tools(task_failures=_find_task_failures),
        max_missing=max_missing / 100,
        details=True,
        corrected=corrected,
    )

    needs = Needs(
        # A watch about these tasks takes attempts in rounds, for which it needs their order.
        attempts=watch is not None
        or bool(label_files)
        or look_at_attempts([metric or "pass^1", *(str(rule.subject) for rule in parsed_rules)]),
        measures=watch is None,
        answers=False,
    )
    labels = (terms.cluster,)
    base = None if against is None else _read_base(how, source, against, base_run, needs, labels)
    if watch is not None and corrected is not None:
        raise click.UsageError("--corrected needs all labels; it cannot --watch a run that grows.")
    if watch is not None:
        from passhat.stats.gate.sequential_gate import Watcher

        if task_count is None or attempts is None:
            raise click.UsageError(
                "--watch needs the plan: --tasks N (or a file of task ids) and --attempts N."
            )
        watcher = Watcher(
            parsed_rules,
            tasks=ids or task_count,
            attempts=attempts,
            options=options,
            against=None if base is None else base.outcomes,
            # A fixed order would repeat the same unlucky beginning in every build.
            seed=secrets.randbits(31) if seed is None else seed,
        )
        result = watch_source(
            lambda growing: how.read_one(source, run_name, needs=replace(needs, growing=growing)),
            watcher,
            watch,
            state=lambda: state_of(source),
        )
    else:
        run = how.read_one(source, run_name, needs=needs, labels=labels)
        runs = with_labels([run] if base is None else [run, base], label_files)
        run, base = runs[0], None if base is None else runs[1]
        if base is not None and not terms.allow:
            _refuse_same_run(run, base)
        from passhat.cli.shared.fresh import Again, confirm_run, settle_run

        repeat = Again(again or "")
        if confirm is not None and base is not None:
            result = confirm_run(repeat, run, base, options, confirm or None)
        elif settle is not None:
            result = settle_run(repeat, run, parsed_rules, base, options, settle)
        else:
            result = judge(run, parsed_rules, base, options)
        if base is not None and run.planned is None:
            hints = (*_plan_hint(result), *_offer(base, against, base_run, metric))
            result = replace(result, notes=(*result.notes, *hints))
        if base is not None and not parsed_rules and result.exit_code == ExitCode.REFUTED:
            from passhat.cli.shared.fresh import offer_search

            result = replace(result, notes=(*result.notes, *offer_search(run, base)))
    try:
        _print_result(result, outputs, as_json_text=as_json_text)
    except BrokenPipeError:
        # The reader of the output (head, less) has gone; the verdict stays the same.
        forget_standard_output()
    return ExitCode(result.exit_code)


def _find_task_failures(run: Run, task: str) -> Failures:
    """Why attempts at a task failed; a run in a store keeps the messages there."""
    from passhat.stats.outcomes import summarize_task_failures
    from passhat.store import open_store

    messages = None
    if run.id:
        with (
            suppress(PasshatError),
            open_store(run.source, must_exist=True, read_only=True) as store,
        ):
            messages = store.failure_messages(run.id, task)
    return summarize_task_failures(run, task, messages)


def _plan_hint(result: GateResult) -> Iterator[str]:
    """How to state a plan, where the baseline's was taken."""
    if result.incomplete and result.losses is not None and result.losses.plan:
        yield "A run that was planned with fewer attempts states it: --attempts N."


def _offer(
    base: Run, against: str | None, base_run: str | None, metric: str | None
) -> Iterator[str]:
    """A line with a command, if the baseline has attempts that add no precision."""
    from shlex import join

    from passhat.stats.estimate.grammar import metric as parse_metric
    from passhat.stats.estimate.metrics import CountMetric
    from passhat.stats.plan.allocation import Offer

    goal = parse_metric(metric or "pass^1")
    offer = Offer.of(base, goal) if isinstance(goal, CountMetric) else None
    if offer is None:
        return
    words = ["passhat", "plan", against or base.name, *(["--run", base_run] if base_run else [])]
    words += [*(["--metric", metric] if metric else []), "--gate", "-o", "plan.json"]
    yield f"{offer}; {join(words)}"


def _read_base(
    how: ReadingOptions,
    source: str,
    against: str,
    base_run: str | None,
    needs: Needs,
    labels: tuple[str | None, ...],
) -> Run:
    """The baseline; the name of a run in SOURCE is answered with the command that takes it."""
    from passhat.errors import InvalidValue, ReadError

    try:
        return how.read_one(against, base_run, "--base-run", needs, labels)
    except ReadError:
        if base_run is not None or not runs_called(how.read(source), against):
            raise
        line = f"{this_command('--against', source)} --base-run {shlex.quote(against)}"
        raise InvalidValue(f"{against} is a run in {source}.", hint=f"Write: {line}") from None


def _refuse_useless(
    rules: Sequence[Rule],
    *,
    watch: bool,
    seed: int | None,
    metric: str | None,
    against: str | None,
) -> None:
    """Refuse options that would change nothing."""
    if seed is not None and not watch:
        raise click.UsageError("--seed repeats the order of a --watch; without it there is none.")
    if metric is not None and rules:
        raise click.UsageError("--metric belongs to the gate without a rule; a rule names its own.")
    if watch and not rules:
        raise click.UsageError(
            "--watch needs a rule, such as 'pass^1 >= base - 0.05' with --against."
        )
    if not rules and against is None:
        line = f"{this_command()} 'pass^1 >= 0.5'"
        raise click.UsageError(
            "a gate needs a rule, or a baseline: --against SOURCE. passhat.toml may hold rules for "
            f"every gate here: [gate] rules = ['pass^1 >= 0.5']. Write:\n  {line}"
        )


def _refuse_useless_fresh(
    rules: Sequence[Rule],
    confirm: int | None,
    settle: int | None,
    again: str | None,
    *,
    watch: bool,
) -> None:
    """Refuse fresh attempts where they would answer nothing."""
    from passhat.stats.gate import EachTaskRule

    if confirm is not None and rules:
        raise click.UsageError("--confirm belongs to the gate without a rule; leave out the rules.")
    if settle is not None and not any(isinstance(rule, EachTaskRule) for rule in rules):
        raise click.UsageError(
            "--settle needs a rule on each task, such as 'each pass^1 >= 0.8'; others are settled "
            "by a larger passhat run."
        )
    if settle is not None and watch:
        raise click.UsageError("--settle makes attempts and --watch waits for them; give one.")
    if again is not None and confirm is None and settle is None:
        raise click.UsageError("--again is for fresh attempts: it goes with --confirm or --settle.")


def _refuse_same_run(run: Run, base: Run) -> None:
    """Refuse to compare attempts with themselves: that is always green."""
    from passhat.errors import NotComparable

    is_same = (run.source, run.name) == (base.source, base.name) or run.id == base.id != ""
    if not is_same:
        # An export of the run, kept over the baseline: each attempt has its duration to the bit.
        sides = [side.measured("seconds") for side in (run, base)]
        is_same = sides[0] is not None and sides[0].total > 0 and sides[0] == sides[1]
    if is_same:
        raise NotComparable(
            f"{run.name} is both the run and its baseline (a copy of it), so that no regression "
            "can show.",
            hint="Name an earlier run, by its id or as latest~1 (passhat runs lists them), or a "
            "file that was kept before this run; --allow compares anyway.",
        )


def _one_source(words: list[str]) -> list[str]:
    """The words that are no rule: one source at most."""
    from passhat.stats.gate import parse_rule

    for word in words[1:]:
        if not (Path(word).exists() or word.startswith("latest")):
            parse_rule(word)  # raises, and says what is wrong with it
        raise click.UsageError(f"a gate judges one SOURCE; for a baseline write --against {word}")
    return words


def _usual_rules(against: str | None) -> tuple[str, ...]:
    """The rules of passhat.toml, where neither a rule nor a baseline is given."""
    rules = () if against is not None else read_rules()
    if rules:
        click.echo(f"Rules of passhat.toml: {', '.join(rules)}", err=True)
    return rules


def _is_rule(word: str) -> bool:
    """Whether a word is a rule rather than a source."""
    return any(sign in word for sign in "<>") and not Path(word).exists()


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


def _print_result(result: GateResult, outputs: Sequence[Output], *, as_json_text: bool) -> None:
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.data import gate_as_junit
    from passhat.reporting.document import Level
    from passhat.reporting.documents.verdicts import gate_document
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal

    document = gate_document(result)
    write_outputs(
        outputs,
        {
            "md": lambda: render_markdown(document),
            "junit": lambda: gate_as_junit(result),
            "json": lambda: as_json(result),
        },
    )
    if summary := os.environ.get(SUMMARY):
        _append(summary, render_markdown(document))
    if as_json_text:
        click.echo(as_json(result), nl=False)
    elif prints_to_screen(outputs):
        click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)


def _append(path: str, text: str) -> None:
    """Add to the job summary; a summary that cannot be written must not change the verdict."""
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")
    except OSError as error:
        click.echo(f"passhat: ${SUMMARY} cannot be written: {error.strerror}.", err=True)
