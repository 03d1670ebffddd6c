"""passhat run"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from passhat._display import counted
from passhat.cli.shared.commands import set_option, setting
from passhat.cli.shared.configuring import (
    Configured,
    name_unusual_store,
    print_configuration,
    store_option,
)
from passhat.cli.shared.exits import ExitCode, hint_text
from passhat.cli.shared.options import full_option, suite_settings, this_command
from passhat.cli.shared.run_settings import (
    AttemptsParam,
    JudgingOptions,
    Money,
    judging_options,
    money_options,
    ray_address,
    ray_workers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from passhat.protocol import Question
    from passhat.reporting.run_summary import Summary
    from passhat.runner import Progress, RunPlan
    from passhat.runner.run_spec import RunResult, RunSpec
    from passhat.stats.plan import Allocation
    from passhat.store import Store
    from passhat.suites.base import Settings

_SPECS = "passhat.specs"
"""Where the command leaves its spec, in click's context, when it is only read."""


def read_spec(words: list[str]) -> RunSpec:
    """The spec of ``passhat run WORDS``, with passhat.toml and the environment; runs nothing."""
    specs: list[RunSpec] = []
    # Of a copy: click empties the list that it is given.
    with command.make_context("passhat run", [*words], obj=("run", *words)) as ctx:
        ctx.meta[_SPECS] = specs
        command.invoke(ctx)
    return specs[0]


def _resolve_attempts(
    attempts: int | Allocation,
    earlier: str | None,
    total: int | None,
    metric: str | None,
    store: str,
) -> int | Allocation:
    """The value of ``--attempts``, or an allocation from the run of ``attempts_from``."""
    if earlier is None:
        if total is not None or metric is not None:
            raise click.UsageError(
                "attempts_total and attempts_for go with attempts_from: --set attempts_from=RUN."
            )
        return attempts
    if _is_typed("attempts"):
        raise click.UsageError("--attempts and attempts_from both say how many; give one.")
    from passhat.errors import InvalidValue
    from passhat.readers import Needs, read_all
    from passhat.stats.plan import allocate

    runs = read_all(earlier, store=store, needs=Needs(attempts=False, answers=False)).runs
    if len(runs) != 1:
        raise InvalidValue(
            f"attempts_from={earlier}: there are {len(runs)} runs.",
            hint="Name one run of the store, or make a plan: passhat plan SOURCE --run NAME "
            "--allocate -o plan.json",
        )
    allocation = allocate(runs[0], metric=metric or "pass^1", budget=total).allocation
    assert allocation is not None
    click.echo(allocation.sentence, err=True)
    return allocation


def _read_question(text: str) -> Question:
    from passhat.protocol import Question
    from passhat.stats.estimate import metric

    question = Question.of_text(text)
    metric(question.metric)  # a name that means nothing is refused before any attempt
    return question


def _is_typed(name: str) -> bool:
    """Whether a value stands on the command line, not in a file or in the environment."""
    from click.core import ParameterSource

    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


@click.command(
    "run",
    cls=Configured,
    words=("-a", "-s"),
    renamed={"--unsafe-no-sandbox": "--sandbox none"},
    examples=(
        "passhat run -a demo:careful -s orderdesk/retail -n 4",
        "passhat run -a python:agent:answer -s jsonl:tasks.jsonl -n 8",
    ),
)
@click.option(
    "-a",
    "--agent",
    metavar="AGENT",
    help="Agent to evaluate, as openai:gpt-5, python:my_agent:answer, a2a:http://localhost:9000.",
)
@click.option(
    "-s",
    "--suite",
    metavar="SUITE",
    help="Suite of tasks, as orderdesk/retail, jsonl:tasks.jsonl, code:ordercode.",
)
@click.option(
    "-n",
    "--attempts",
    type=AttemptsParam(),
    default="4",
    show_default=True,
    metavar="N|PLAN",
    help="Attempts at every task, or a plan of `passhat plan --allocate -o plan.json`.",
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    metavar="ID",
    help="Only this task, as in --task retail/012; repeatable.",
)
@click.option(
    "--random", "drawn", type=int, metavar="N", help="Only N tasks, drawn by --seed, as in 20."
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    metavar="N",
    help="Every attempt's seed is derived from it, as in 7.",
)
@click.option(
    "--jobs", default=8, show_default=True, metavar="N", help="Attempts at the same time, as in 16."
)
@click.option(
    "--temperature",
    type=float,
    metavar="T",
    help="Handed to the agent and recorded in the protocol, as in 0.7.",
)
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="Time for one attempt.  [default: 600]"
)
@click.option(
    "--stop-when",
    multiple=True,
    metavar="RULE",
    help="End once settled, as in 'pass^4 >= 0.6'; repeatable.",
)
@click.option("--isolate", is_flag=True, help="Run a python: agent in a process per attempt.")
@click.option("--keep-home", is_flag=True, help="Give coding agents your home; attempts share it.")
@click.option("--keep-going", is_flag=True, help="Go on when the first attempts give no answer.")
@click.option("--only-missing", is_flag=True, help="Make attempts without a verdict again.")
@click.option(
    "--pass-env",
    metavar="NAMES",
    default="",
    help="Variables that a command: agent gets, as in OPENAI_API_KEY,REGION.",
)
@click.option("--wait", is_flag=True, help="Stay until other runners of this run have finished.")
@click.option(
    "--on",
    metavar="ENGINE",
    help="Where: ray for workers here, or elsewhere, as in ray://HEAD:10001.",
)
@click.option(
    "--shard", metavar="I/N", help="Only the I-th of N parts of the tasks, as in 1/4; merge later."
)
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="A name, to distinguish runs of the same set-up, as in nightly.",
)
@setting(
    "attempts_from",
    help="An earlier run; attempts per task from it, many where they decide, few elsewhere.",
)
@setting(
    "attempts_total",
    type=click.IntRange(1),
    help="With attempts_from: attempts over all tasks.  [default: as many as that run has]",
)
@setting("attempts_for", help="With attempts_from: the metric they decide.  [default: pass^1]")
@setting(
    "k",
    type=click.IntRange(1),
    help="Report pass^k and pass@k at this k, first^k, half of it in a row, and steps.",
)
@setting(
    "question",
    help="What the run is to answer, recorded before it, as in 'pass^4 greater 0.95'.",
)
@setting("max_steps", type=int, help="Turns of the agent; 30, unless the suite sets more.")
@setting(
    "step_timeout",
    type=float,
    help="Seconds for one answer.  [default: 60, unless the suite sets more]",
)
@setting(
    "give_up_after",
    type=click.IntRange(0),
    default=8,
    help="Stop when so many attempts in a row got no answer at all; 0 never stops.",
)
@setting(
    "canary",
    type=bool,
    help="Put a reference into each conversation, and search for it in others.  "
    "[default: where the suite has room for it]",
)
@setting(
    "tools",
    type=click.Choice(["text", "mcp"]),
    default="text",
    help="How the agent reaches tools: in its answers, or at an MCP endpoint of each attempt",
)
@setting("agent_memory", type=click.IntRange(64), help="With --isolate: memory in MiB.")
@setting(
    "timeouts_are",
    type=click.Choice(["missing", "failed"]),
    help="Whose fault a late answer is: the server's or the agent's.  "
    "[default: failed; missing for a bare model behind an API]",
)
@setting(
    "otlp",
    help="Send every attempt as an OpenTelemetry trace, as in otlp=http://localhost:4318.",
)
@setting(
    "otlp_port",
    type=click.IntRange(1, 65535),
    help="Take OpenTelemetry spans of an agent that is not started here, as in otlp_port=4318.",
)
@setting(
    "lease",
    type=float,
    default=30.0,
    help="Seconds that attempts claimed here stay ours if this process gives no sign of life.",
)
@setting("baseline", help="Point out where the suite changed since this run.")
@setting(
    "revision",
    help="The state of the code, kept with the run, as in v1.2.  [default: the commit of git here]",
)
@money_options
@suite_settings
@store_option
@judging_options
@click.option(
    "--config",
    expose_value=False,  # Configured reads it before anything else
    metavar="FILE",
    help="Settings in TOML.  [default: passhat.toml, if it is in this folder]",
)
@set_option
@click.option(
    "--show-config",
    is_flag=False,
    flag_value="table",
    type=click.Choice(["table", "json"]),
    metavar="[json]",
    help="Print every setting and where its value comes from, and end; json for programs.",
)
@full_option
@click.option("--verbose", is_flag=True, help="A line for every attempt, and all their reasons.")
def command(
    agent: str | None,
    suite: str | None,
    attempts: int | Allocation,
    attempts_from: str | None,
    attempts_total: int | None,
    attempts_for: str | None,
    k: int | None,
    question: str | None,
    tasks: tuple[str, ...],
    drawn: int | None,
    seed: int,
    jobs: int,
    temperature: float | None,
    max_steps: int | None,
    step_timeout: float | None,
    timeout: float | None,
    stop_when: tuple[str, ...],
    give_up_after: int,
    canary: bool | None,
    tools: str,
    isolate: bool,
    keep_home: bool,
    agent_memory: int | None,
    timeouts_are: str | None,
    only_missing: bool,
    keep_going: bool,
    wait: bool,
    pass_env: str,
    otlp: str | None,
    otlp_port: int | None,
    on: str | None,
    shard: str | None,
    lease: float,
    name: str,
    baseline: str | None,
    revision: str | None,
    money: Money,
    asked: Settings,
    store_path: str,
    choose: JudgingOptions,
    show_config: str | None,
    full: bool,
    verbose: bool,
) -> ExitCode:
    """Make fresh attempts of AGENT at every task of SUITE, and report.

    The same command continues where it stopped; a larger -n adds attempts. Ctrl-C lets attempts
    in flight finish, a second one stops at once.

    A flag wins over the environment (PASSHAT_ and the name in capitals), that over the file
    (--config, else passhat.toml in this folder), that over the default. Settings without a flag
    are given with --set; --show-config lists them all.
    """
    if show_config is not None:
        return print_configuration(click.get_current_context(), as_json_text=show_config == "json")
    if agent is None or suite is None:
        option, example = ("-a", "openai:gpt-5") if agent is None else ("-s", "jsonl:tasks.jsonl")
        raise click.UsageError(
            f"Missing option {option}. As in: {this_command()} {option} {example}"
            + (
                ""
                if agent or suite
                else ". Or passhat init, which writes an example to start from."
            )
        )

    from passhat.runner.run_spec import RunSpec
    from passhat.runner.task_choice import Shard

    spec = RunSpec(
        agent=agent,
        suite=suite,
        attempts=_resolve_attempts(
            attempts, attempts_from, attempts_total, attempts_for, store_path
        ),
        store=store_path,
        tasks=tasks,
        random_tasks=drawn,
        shard=None if shard is None else Shard.of_text(shard),
        seed=seed,
        jobs=jobs,
        max_steps=max_steps,
        step_seconds=step_timeout,
        attempt_seconds=timeout,
        temperature=temperature,
        top_p=money.top_p,
        lease_seconds=lease,
        name=name,
        user=money.user,
        tools=tools,
        isolate=isolate,
        agent_memory=agent_memory,
        canary=canary,
        stop_when=stop_when,
        give_up_after=give_up_after,
        timeouts_are=timeouts_are,
        only_missing=only_missing,
        keep_going=keep_going,
        wait=wait,
        pass_env=tuple(name.strip() for name in pass_env.split(",") if name.strip()),
        otlp=otlp,
        otlp_port=otlp_port,
        spending=money.spending(),
        prices=money.table(),
        judging=choose() if choose.given else None,
        settings=replace(asked, keep_home=keep_home),
        question=None if question is None else _read_question(question),
        revision=revision or "",
    )
    if (specs := click.get_current_context().meta.get(_SPECS)) is not None:
        specs.append(spec)
        return ExitCode.OK
    if k is not None and isinstance(spec.attempts, int) and not _is_typed("k"):
        k = min(k, spec.attempts)  # a file's k, with fewer attempts on the command line
    if revision is None:
        from passhat.runner.revisions import current_revision

        spec = replace(spec, revision=current_revision())
    result = _run(spec, ray_address(on), baseline, k, verbose=verbose, full=full)
    progress, budget = result.progress, result.plan.budget
    if progress.settled is not None and progress.settled.settled:
        _print_settled(progress)
        return ExitCode.OK
    if budget is not None and budget.exhausted and not result.stopped:
        money.print_capped(budget, result.left)
        return ExitCode.INCOMPLETE
    if result.stopped:
        click.echo(
            f"stopped with {counted(result.left, 'attempt')} to go; the same command continues",
            err=True,
        )
        return ExitCode.STOPPED
    return _print_missing(result, str(spec.store))


def _print_missing(result: RunResult, store_path: str) -> ExitCode:
    """Print the number of missing attempts and the command that makes them; 4 if any.

    A run without a single answer ends with 4 too: nothing was measured.
    """
    from passhat._display import counted

    if not result.left and not result.unscored:
        from passhat.readers.store import has_no_answer
        from passhat.store import open_store

        with open_store(store_path, read_only=True) as store:
            is_silent = has_no_answer(store, result.stored)
        return ExitCode.INCOMPLETE if is_silent else ExitCode.OK
    parts = []
    if unmade := result.left - result.held:
        parts.append(f"{unmade:,} not made")
    if result.held:
        parts.append(f"{result.held:,} being made by another runner")
    if result.unscored:
        parts.append(f"{result.unscored:,} without a verdict")
    command = this_command()
    if result.unscored and "--only-missing" not in command:
        command += " --only-missing"
    total = counted(result.left + result.unscored, "attempt")
    click.echo(f"{total} missing ({', '.join(parts)}); make them with: {command}", err=True)
    return ExitCode.INCOMPLETE


def _print_settled(progress: Progress) -> None:
    """Which rules were settled, by how much of the plan."""
    look = progress.settled
    assert look is not None
    for result in look.result.results:
        click.echo(f"{result.rule}: {result.verdict}", err=True)
    rest = progress.total - progress.done
    click.echo(
        f"settled after {look.used:,} of {counted(look.tasks, 'task')}; {counted(rest, 'attempt')} "
        f"{'was' if rest == 1 else 'were'} not needed",
        err=True,
    )


def _run(
    spec: RunSpec,
    address: str | None,
    baseline: str | None,
    k: int | None,
    *,
    verbose: bool,
    full: bool,
) -> RunResult:
    """Run with a display on standard error, then report."""
    import asyncio
    import signal
    import sys
    from contextlib import ExitStack
    from functools import partial

    from passhat.cli.shared.live import Display, print_preview
    from passhat.runner.run import Stop
    from passhat.runner.run_spec import arun
    from passhat.store import open_store

    stop = Stop()
    display = Display(verbose=verbose)
    plans: list[RunPlan] = []

    with ExitStack() as stack:

        def before(plan: RunPlan, store: Store, freed: int) -> None:
            plans.append(plan)
            fewest = plan.attempts.fewest
            if k is not None and k > fewest:
                raise click.UsageError(f"k={k} needs {k} attempts at every task, not {fewest}.")
            if freed:
                click.echo(
                    f"{counted(freed, 'attempt')} without a verdict will be made again", err=True
                )
            print_preview(plan, store, baseline)
            title = f"{plan.agent.name} at {plan.suite.name}"
            stack.enter_context(display.begin(title, plan.jobs))

        async def whole() -> RunResult:
            loop = asyncio.get_running_loop()

            def on_interrupt() -> None:
                stop.ask()
                display.note("finishing what is in flight; Ctrl-C again stops at once")

            if sys.platform != "win32":
                loop.add_signal_handler(signal.SIGINT, on_interrupt)
                loop.add_signal_handler(signal.SIGTERM, on_interrupt)
                loop.add_signal_handler(signal.SIGHUP, on_interrupt)  # the terminal was closed
            return await arun(
                spec,
                progress=display.note_attempt,
                tell=display.say,
                stop=stop,
                before=before,
                engine=None if address is None else partial(ray_workers, spec, address),
            )

        result = _until_stopped(whole, plans, store_path=str(spec.store))
    with open_store(str(spec.store)) as store:
        _report(result, store, k, verbose=verbose, full=full)
    return result


def _until_stopped(
    whole: Callable[[], Coroutine[Any, Any, RunResult]], planned: list[RunPlan], store_path: str
) -> RunResult:
    """Run; if the run has to stop, report the attempts made so far."""
    from passhat.errors import RunStopped
    from passhat.runner.boundary import run_guarded
    from passhat.runner.run_spec import load_result
    from passhat.runner.stop_reasons import SetupMistake
    from passhat.store import open_store

    try:
        return run_guarded(whole())
    except RunStopped as error:
        # Nothing new after a mistake in the set-up: results of earlier calls would hide it.
        if not planned or isinstance(error, SetupMistake):
            raise
        with open_store(store_path) as store:
            if not len(store.load_attempts(planned[0].record.id)):
                raise
            result = load_result(planned[0], store)
        click.echo(f"passhat: {error.message}", err=True)
        if hint := hint_text(error):
            click.echo(f"  {hint}", err=True)
        return result


def _report(result: RunResult, store: Store, k: int | None, *, verbose: bool, full: bool) -> None:
    """Print the attempts in order, then the estimates over all tasks."""
    from rich.console import Console

    from passhat.cli.shared.live import name_failure
    from passhat.readers import Needs
    from passhat.readers.store import run_from_store
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.reporting.document import Level
    from passhat.reporting.documents.attempts import attempts_document, totals_document
    from passhat.reporting.documents.report import report_document, run_document
    from passhat.reporting.run_summary import summarise
    from passhat.reporting.terminal import render_terminal

    plan, stored_run = result.plan, result.stored
    ks = () if k is None else tuple(sorted({1, k}))

    def summarise_attempts() -> Summary:
        task_ids = {task.id for task in plan.tasks}
        rows = (row for row in store.iterate_results(stored_run.id) if row[0] in task_ids)
        return summarise(rows, k or plan.attempts.fewest)

    if stored_run.attempts and (full or verbose):
        summary = summarise_attempts()
        attempts = attempts_document(summary, verbose=verbose)
        click.echo(render_terminal(attempts, Console()), nl=False)
        report = build_report([run_from_store(store, stored_run)], ReportOptions(ks=ks))
        click.echo(render_terminal(report_document(report), Console()), nl=False)
    elif stored_run.attempts:
        # One screen needs counts alone: those of a million attempts take a second.
        needs = Needs(attempts=False, measures=False, answers=False)
        run = run_from_store(store, stored_run, needs)
        (run_report,) = build_report([run], ReportOptions(ks=ks, short=True)).runs
        failure = name_failure(store, stored_run.id, run)
        document = run_document(run_report, failure, name_unusual_store(store.path))
        if k is not None:
            totals = totals_document(summarise_attempts())
            click.echo(render_terminal(totals, Console()), nl=False)
        click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)
    click.echo(f"run {stored_run.id} in {store.path}", err=True)
