"""passhat run"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from passhat.cli.exits import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from passhat.runner import Progress, RunPlan
    from passhat.runner.running import Work
    from passhat.suites import Suite, Task

_DEFAULT_STORE = ".passhat/passhat.db"


def store_option(function: click.decorators.FC) -> click.decorators.FC:
    """Where attempts are kept; the same for every command that needs it."""
    return click.option(
        "--store",
        "store_path",
        metavar="PATH|URL",
        default=_DEFAULT_STORE,
        envvar="PASSHAT_STORE",
        show_default=True,
        help="Where attempts are kept: a file, or postgresql://USER@HOST/DATABASE.",
    )(function)


@click.command("run")
@click.option("-a", "--agent", required=True, metavar="AGENT", help="Who attempts: KIND:REST.")
@click.option("-s", "--suite", required=True, metavar="SUITE", help="What: KIND:REST.")
@click.option("-n", "attempts", default=4, show_default=True, help="Attempts at every task.")
@click.option("--task", "tasks", multiple=True, metavar="ID", help="Only this task; repeatable.")
@click.option("--random", "drawn", type=int, metavar="N", help="Only N tasks, drawn by --seed.")
@click.option("--seed", default=0, show_default=True, help="What every attempt's seed comes from.")
@click.option("--jobs", default=8, show_default=True, help="Attempts at the same time.")
@click.option("--temperature", type=float, help="Handed to the agent, recorded in the protocol.")
@click.option("--max-steps", default=30, show_default=True, help="Turns of the agent.")
@click.option("--step-timeout", default=60.0, show_default=True, help="Seconds for one answer.")
@click.option("--timeout", default=600.0, show_default=True, help="Seconds for one attempt.")
@click.option(
    "--stop-when", multiple=True, metavar="RULE", help="End once settled, as 'pass^4 >= 0.6'."
)
@click.option(
    "--canary/--no-canary",
    default=None,
    help="Tell each conversation a reference, and look for it in others.",
)
@click.option("--only-missing", is_flag=True, help="Make attempts without a verdict again.")
@click.option("--on", metavar="ENGINE", help="Where: ray for workers here, or ray://HEAD:10001.")
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts of the tasks; merge later.")
@click.option("--name", default="", metavar="NAME", help="Tell runs of the same set-up apart.")
@store_option
@click.option("--verbose", is_flag=True, help="A line for every attempt.")
def command(
    agent: str,
    suite: str,
    attempts: int,
    tasks: tuple[str, ...],
    drawn: int | None,
    seed: int,
    jobs: int,
    temperature: float | None,
    max_steps: int,
    step_timeout: float,
    timeout: float,
    stop_when: tuple[str, ...],
    canary: bool | None,
    only_missing: bool,
    on: str | None,
    shard: str | None,
    name: str,
    store_path: str,
    verbose: bool,
) -> ExitCode:
    """Make fresh attempts of AGENT at every task of SUITE, and report.

    The same command again goes on where it stopped; a larger -n adds attempts. Ctrl-C lets what is
    in flight finish, a second one stops at once.
    """
    from passhat.agents import load_agent
    from passhat.errors import InvalidValue
    from passhat.runner import Limits
    from passhat.runner.planning import plan_run
    from passhat.runner.redaction import Redactor
    from passhat.runner.shards import Shard
    from passhat.store import open_store
    from passhat.suites import load_suite

    if attempts < 1 or jobs < 1:
        raise InvalidValue("-n and --jobs must be at least 1.")
    address = None if on is None else _ray_address(on)
    _import_from_here()
    chosen_suite, chosen_agent = load_suite(suite), load_agent(agent)
    chosen = choose_tasks(chosen_suite, tasks, drawn, seed)
    if temperature == 0 and attempts > 1:
        click.echo("note: temperature 0 usually makes all attempts alike", err=True)
    plan = plan_run(
        chosen_suite,
        chosen_agent,
        attempts=attempts,
        tasks=chosen,
        limits=Limits(max_steps, step_timeout, timeout),
        jobs=jobs,
        seed=seed,
        temperature=temperature,
        name=name,
        stop_when=stop_when,
        canary=canary,
        redact=Redactor(os.environ),
        shard=None if shard is None else Shard.of_text(shard),
    )
    with open_store(store_path) as store:
        freed = store.release(plan.record.id, missing=only_missing)
        if freed:
            click.echo(f"{freed} attempts that came to nothing will be made again", err=True)
        with _engine(address, plan, suite, agent) as work:
            progress, stopped = _run(plan, store, work, verbose=verbose)
        _report(plan, store)
    if progress.settled is not None and progress.settled.settled:
        _say_settled(progress)
        return ExitCode.OK
    if stopped:
        left = progress.total - progress.done
        click.echo(f"stopped with {left} attempts to go; the same command goes on", err=True)
        return ExitCode.STOPPED
    return ExitCode.OK


def _say_settled(progress: Progress) -> None:
    """Which rules were settled, by how much of the plan."""
    look = progress.settled
    assert look is not None
    for result in look.result.results:
        click.echo(f"{result.rule}: {result.verdict}", err=True)
    saved = progress.total - progress.done
    click.echo(
        f"settled after {look.used:,} of {look.tasks:,} tasks; {saved:,} attempts were not needed",
        err=True,
    )


def choose_tasks(
    suite: Suite, wanted: Sequence[str], drawn: int | None, seed: int
) -> tuple[Task, ...]:
    """All tasks, or some: by id, by place (a whole number, from 0), or drawn."""
    import random

    from passhat._display import some
    from passhat.errors import InvalidValue

    by_id = {task.id: task for task in suite.tasks}
    chosen = list(suite.tasks)
    if wanted:
        chosen = []
        for word in wanted:
            place = int(word) if word.isdigit() else -1
            if word not in by_id and not 0 <= place < len(suite.tasks):
                raise InvalidValue(
                    f"{suite.name} has no task {word!r}.", hint=f"Tasks: {some(list(by_id), 8)}."
                )
            chosen.append(by_id.get(word) or suite.tasks[place])
    if drawn is not None:
        if not 1 <= drawn <= len(chosen):
            raise InvalidValue(f"--random takes 1 to {len(chosen)} tasks here, not {drawn}.")
        chosen = random.Random(seed).sample(chosen, drawn)
    return tuple({task.id: task for task in chosen}.values())


def _ray_address(on: str) -> str:
    from passhat.runner.on_ray import OnRay

    return OnRay.address_of(on, here=os.environ.get("RAY_ADDRESS", ""))


@contextmanager
def _engine(address: str | None, plan: RunPlan, suite: str, agent: str) -> Iterator[Work | None]:
    """Who makes the attempts: workers elsewhere, or (``None``) this process."""
    if address is None:
        yield None
        return
    from passhat.runner.on_ray import OnRay

    with OnRay(plan, suite, agent, address) as engine:
        click.echo(f"{engine.workers} Ray workers", err=True)
        yield engine.work


def _run(
    plan: RunPlan, store: object, work: Work | None, *, verbose: bool
) -> tuple[Progress, bool]:
    import asyncio
    import signal
    import sys
    import time

    from passhat.runner import run_attempts
    from passhat.runner.running import Stop
    from passhat.store import AttemptRecord, Store

    assert isinstance(store, Store)
    stop = Stop()
    last = [time.monotonic()]

    def seen(record: AttemptRecord, progress: Progress) -> None:
        if verbose:
            verdict = record.judgement
            why = f" {verdict.why}: {verdict.detail}" if verdict.why else ""
            click.echo(
                f"{record.task}#{record.number} {verdict.verdict} "
                f"({record.steps} steps, {record.seconds:.1f} s){why}",
                err=True,
            )
        now = time.monotonic()
        if progress.done == progress.total or now - last[0] > 2.0:
            last[0] = now
            click.echo(
                f"{progress.done:,} of {progress.total:,} attempts: {progress.passed:,} passed, "
                f"{progress.failed:,} failed, {progress.missing:,} missing",
                err=True,
            )

    async def whole() -> Progress:
        loop = asyncio.get_running_loop()

        def interrupted() -> None:
            stop.ask()
            click.echo("finishing what is in flight; Ctrl-C again stops at once", err=True)

        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGINT, interrupted)
            loop.add_signal_handler(signal.SIGTERM, interrupted)
        return await run_attempts(plan, store, stop, seen, work)

    progress = asyncio.run(whole())
    return progress, stop.asked


def _report(plan: RunPlan, store: object) -> None:
    from rich.console import Console

    from passhat.readers.store import run_from_store
    from passhat.report import ReportOptions, build_report
    from passhat.report.terminal import render_report
    from passhat.store import Store

    assert isinstance(store, Store)
    stored = store.find(plan.record.id)
    if stored.attempts:
        run = run_from_store(store, stored)
        report = build_report([run], ReportOptions(with_tasks=len(run.outcomes) <= 60))
        click.echo(render_report(report, Console()), nl=False)
    click.echo(f"run {stored.id} in {store.path}", err=True)


def _import_from_here() -> None:
    """python:MODULE means a module of the folder that passhat was called in, too."""
    import sys

    if "" not in sys.path:
        sys.path.insert(0, "")
