"""passhat judge"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from passhat.cli.exits import ExitCode
from passhat.cli.judge_options import Chooser, judging_options
from passhat.cli.options import KList, write_text

if TYPE_CHECKING:
    from passhat.judging.bench import Bench
    from passhat.judging.samples import Sample
    from passhat.stats.outcomes import Run

_DEFAULT_STORE = ".passhat/passhat.db"
_OURS = ("sandbox_error", "judge_error")


@click.command("judge")
@click.argument("samples", metavar="[SAMPLES.jsonl | RUN]", required=False)
@click.option("-s", "--suite", metavar="SUITE", help="code:PATH or code:ordercode.")
@click.option("--out", metavar="FILE", help="Keep results in FILE, and resume from it.")
@click.option(
    "--store",
    "store_path",
    metavar="PATH",
    envvar="PASSHAT_STORE",
    help="Keep results as a run of a store, and resume from it; with --audit: where RUN is.",
)
@click.option("--name", default="", metavar="NAME", help="Tell runs of the same set-up apart.")
@click.option("--jobs", type=click.IntRange(1), help="Workers.  [default: one per processor]")
@judging_options("--timeout", "--memory")
@click.option(
    "--mutants",
    is_flag=True,
    help="Judge the tests instead: what share of broken canonical solutions do they notice?",
)
@click.option(
    "--audit",
    type=click.IntRange(1),
    metavar="N",
    help="Draw N judged attempts of a RUN, or of a file of results, for a person to look at.",
)
@click.option(
    "--show",
    metavar="TASK",
    help="Print what each judge finds about a task, or an attempt as in TASK#2, of SAMPLES, of a "
    "RUN, or of a file of results.",
)
@click.option("--seed", default=0, show_default=True, help="What an audit is drawn by.")
@click.option("-k", "ks", type=KList(), default=(), help="Values of k, as in 1,2,4 or 1-4.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option("--md", metavar="FILE", help="Write Markdown to FILE (- is standard output).")
def command(
    samples: str | None,
    suite: str | None,
    out: str | None,
    store_path: str | None,
    name: str,
    jobs: int | None,
    choose: Chooser,
    mutants: bool,
    audit: int | None,
    show: str | None,
    seed: int,
    ks: tuple[int, ...],
    as_json_text: bool,
    md: str | None,
) -> ExitCode:
    """Judge generated programs by hidden tests that they cannot see, and report.

    SAMPLES.jsonl holds {"task_id": ..., "completion": ...} lines; the k-th line of a task is its
    k-th attempt.
    """
    if audit is not None:
        from passhat.cli.audit import audit_run

        if samples is None:
            raise click.UsageError("--audit needs a RUN of a store or a file of results.")
        return audit_run(samples, store_path or _DEFAULT_STORE, audit, seed, as_json_text, md)
    if show is not None and samples is not None and suite is None:
        from passhat.cli.judge_show import show_stored

        return show_stored(samples, store_path or _DEFAULT_STORE, show)
    if suite is None:
        raise click.UsageError("-s SUITE is needed: code:PATH or code:ordercode.")
    if out is not None and store_path is not None:
        if _typed("store_path"):
            raise click.UsageError("results go to --out or to --store, not to both.")
        store_path = None  # PASSHAT_STORE is for those who name no file

    from passhat.judging.code_suites import read_code_suite
    from passhat.judging.samples import read_samples

    tasks = read_code_suite(suite)
    if mutants:
        bench = choose(jobs).bench(tasks)
        return _judge_tests(bench, store_path or _DEFAULT_STORE, as_json_text)
    if samples is None:
        raise click.UsageError("SAMPLES.jsonl is needed, unless --mutants judges the tests.")
    programs = read_samples(samples, tasks)
    bench = choose(jobs).bench(tasks)
    if show is not None:
        from passhat.cli.judge_show import show_judged

        return show_judged(bench, programs, show)
    run = _judged(bench, programs, samples, out, store_path, name)
    _report(run, ks, as_json_text, md)
    lost = sum(run.missing_by_reason.get(word, 0) for word in _OURS)
    return ExitCode.INCOMPLETE if lost else ExitCode.OK


def _typed(name: str) -> bool:
    """Whether an option stands on the command line, rather than in the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _judged(
    bench: Bench,
    samples: list[Sample],
    source: str,
    out: str | None,
    store_path: str | None,
    name: str,
) -> Run:
    """The run, from the store or from the file of results; says what was there already."""
    if store_path is None:
        from passhat.judging.results import judge_samples

        judged = judge_samples(bench, samples, source, out)
        if judged.resumed:
            click.echo(f"{out}: {judged.resumed:,} of {len(samples):,} were there", err=True)
        return judged.run

    from passhat.readers.store import run_from_store
    from passhat.runner.samples import judge_into_store
    from passhat.store import open_store

    with open_store(store_path) as store:
        run, resumed = judge_into_store(bench, samples, source, store, name)
        if resumed:
            click.echo(f"run {run}: {resumed:,} of {len(samples):,} were there", err=True)
        found = run_from_store(store, store.find(run))
    click.echo(f"run {run} in {store.path}", err=True)
    return found


def _report(run: Run, ks: tuple[int, ...], as_json_text: bool, md: str | None) -> None:
    from rich.console import Console

    from passhat.report.build import ReportOptions, build_report
    from passhat.report.data import as_json
    from passhat.report.markdown import as_markdown
    from passhat.report.terminal import render_report

    report = build_report([run], ReportOptions(ks=ks))
    if md is not None:
        write_text(md, as_markdown(report))
    if as_json_text:
        click.echo(as_json(report), nl=False)
    elif md != "-":
        click.echo(render_report(report, Console()), nl=False)


def _judge_tests(bench: Bench, store_path: str, as_json_text: bool) -> ExitCode:
    """Print how strong the hidden tests are, weakest first, and keep it for later reports."""
    from passhat.judging.mutants import (
        WEAK_BELOW,
        keep_strengths,
        strength_of_tests,
        strengths_folder,
    )

    found = sorted(strength_of_tests(bench), key=lambda one: (one.share is not None, one.share))
    folder = strengths_folder(store_path)
    try:
        kept = keep_strengths(folder, bench.suite.tests_fingerprint, found)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written: {error.strerror}.") from None
    if as_json_text:
        click.echo(json.dumps([one.to_dict() for one in found], indent=2))
        return ExitCode.OK
    for one in found:
        click.echo(str(one))
    weak = sum(one.weak for one in found)
    click.echo(f"{weak} of {len(found)} tasks have tests that kill under {WEAK_BELOW:.0%}")
    click.echo(f"kept in {kept}; reports of this suite mark tasks with weak tests", err=True)
    return ExitCode.OK
