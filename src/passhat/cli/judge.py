"""passhat judge"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from passhat.cli.exits import ExitCode
from passhat.cli.options import KList, write_text

if TYPE_CHECKING:
    from passhat.judging.bulk import Bench

_OURS = ("sandbox_error", "judge_error")


@click.command("judge")
@click.argument("samples", metavar="SAMPLES.jsonl", required=False)
@click.option("-s", "--suite", required=True, metavar="SUITE", help="code:PATH or ordercode.")
@click.option("--out", metavar="FILE", help="Keep results in FILE, and resume from it.")
@click.option("--jobs", type=click.IntRange(1), help="Workers.  [default: one per processor]")
@click.option(
    "--timeout",
    type=float,
    default=5.0,
    show_default=True,
    help="Seconds of processor time for a program.",
)
@click.option(
    "--memory", type=click.IntRange(64), default=1024, show_default=True, help="MiB for a program."
)
@click.option("--python", metavar="PATH", help="Run programs on this Python, with its packages.")
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bubblewrap", "landlock"]),
    default="auto",
    show_default=True,
    help="What keeps programs in.",
)
@click.option(
    "--unsafe-no-sandbox",
    "unsafe",
    is_flag=True,
    help="Run programs with your own rights. Only for programs you trust.",
)
@click.option(
    "--mutants",
    is_flag=True,
    help="Judge the tests instead: what share of broken canonical solutions do they notice?",
)
@click.option("-k", "ks", type=KList(), default=(), help="Values of k, as in 1,2,4 or 1-4.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option("--md", metavar="FILE", help="Write Markdown to FILE (- is standard output).")
def command(
    samples: str | None,
    suite: str,
    out: str | None,
    jobs: int | None,
    timeout: float,
    memory: int,
    python: str | None,
    sandbox: str,
    unsafe: bool,
    mutants: bool,
    ks: tuple[int, ...],
    as_json_text: bool,
    md: str | None,
) -> ExitCode:
    """Judge generated programs by hidden tests that they cannot see, and report.

    SAMPLES.jsonl holds {"task_id": ..., "completion": ...} lines; the k-th line of a task is its
    k-th attempt.
    """
    from dataclasses import replace

    from rich.console import Console

    from passhat.judging.bulk import judge_samples
    from passhat.judging.code_suites import read_code_suite
    from passhat.judging.samples import read_samples
    from passhat.report import Report, ReportOptions, build_report
    from passhat.report.markdown import as_markdown
    from passhat.report.plain_data import as_json
    from passhat.report.terminal import render_report

    tasks = read_code_suite(suite)
    if mutants:
        bench = _bench(tasks, timeout, memory, python, sandbox, unsafe, jobs)
        return _judge_tests(bench, as_json_text)
    if samples is None:
        raise click.UsageError("SAMPLES.jsonl is needed, unless --mutants judges the tests.")
    programs = read_samples(samples, tasks)
    bench = _bench(tasks, timeout, memory, python, sandbox, unsafe, jobs)
    judged = judge_samples(bench, programs, samples, out)
    if judged.resumed:
        click.echo(f"{out}: {judged.resumed:,} of {len(programs):,} were there", err=True)
    (found,) = build_report([judged.run], ReportOptions(ks=ks)).runs
    report = Report((replace(found, notes=(*found.notes, *judged.notes)),))
    if md is not None:
        write_text(md, as_markdown(report))
    if as_json_text:
        click.echo(as_json(report), nl=False)
    elif md != "-":
        click.echo(render_report(report, Console()), nl=False)
    lost = sum(judged.run.missing_by_reason.get(word, 0) for word in _OURS)
    return ExitCode.INCOMPLETE if lost else ExitCode.OK


def _judge_tests(bench: Bench, as_json_text: bool) -> ExitCode:
    """Print how strong the hidden tests are, weakest first."""
    from passhat.judging.mutants import WEAK_BELOW, strength_of_tests

    found = sorted(strength_of_tests(bench), key=lambda one: (one.share is not None, one.share))
    if as_json_text:
        click.echo(json.dumps([one.to_dict() for one in found], indent=2))
        return ExitCode.OK
    for one in found:
        click.echo(str(one))
    weak = sum(one.weak for one in found)
    click.echo(f"{weak} of {len(found)} tasks have tests that kill under {WEAK_BELOW:.0%}")
    return ExitCode.OK


def _bench(
    tasks: object,
    timeout: float,
    memory: int,
    python: str | None,
    sandbox: str,
    unsafe: bool,
    jobs: int | None,
) -> Bench:
    """Choose the walls; refuses, before anything is run, when there are none."""
    from passhat.judging.bulk import Bench
    from passhat.judging.interpreters import find_interpreter
    from passhat.judging.limits import Limits
    from passhat.judging.sandboxes import SandboxKind, choose_sandbox
    from passhat.judging.tasks import CodeSuite

    assert isinstance(tasks, CodeSuite)
    interpreter = find_interpreter(python)
    if unsafe:
        click.secho(
            "WARNING: no sandbox. The programs run with all your rights: files, network, secrets.",
            fg="red",
            bold=True,
            err=True,
        )
        kind = SandboxKind.NONE
    else:
        kind = choose_sandbox(interpreter, None if sandbox == "auto" else SandboxKind(sandbox))
    limits = Limits(cpu_seconds=timeout, memory=memory << 20)
    return Bench(tasks, kind, interpreter, limits, jobs or os.cpu_count() or 1)
