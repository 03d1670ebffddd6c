"""passhat judge"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat._display import counted
from passhat.cli.shared.commands import Command, set_option
from passhat.cli.shared.configuring import store_words
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import KList
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs
from passhat.cli.shared.run_settings import JudgingOptions, judging_options
from passhat.errors import InvalidValue, ReadError

if TYPE_CHECKING:
    from passhat.judging.bench import Bench
    from passhat.reporting.audit import Audited
    from passhat.stats.outcomes import Run
    from passhat.store import Ended, Store, StoredJudgement
    from passhat.suites.code_samples import Sample


@dataclass(frozen=True, slots=True)
class _Shown:
    """A judged attempt: verdict, the verdict of each judge, the program and the raw answer."""

    id: str
    verdict: str
    judges: tuple[tuple[str, str], ...]
    program: str
    raw: str = ""


def show_judged(bench: Bench, samples: list[Sample], task: str) -> ExitCode:
    """Judge the samples of a task now, and print the verdict of each judge."""
    matches = [sample for sample in samples if _matches(task, sample.task.id, sample.trial + 1)]
    verdicts = dict(bench.verdicts((sample.task, sample.program) for sample in matches))
    return _print(
        [
            _Shown(
                f"{sample.task.id}#{sample.trial + 1}",
                verdicts[number].words,
                verdicts[number].judges or ((bench.rules.judges, verdicts[number].words),),
                sample.program,
                sample.raw,
            )
            for number, sample in enumerate(matches)
        ],
        task,
    )


def show_stored(word: str, store_path: str, task: str) -> ExitCode:
    """Print the verdicts of the judges, from a file of results or a run of a store."""
    verdicts = _in_file(word) if Path(word).is_file() else _in_store(word, store_path)
    return _print(
        [attempt for attempt in verdicts if _matches(task, *attempt.id.rsplit("#", 1))], task
    )


def _matches(selector: str, task: str, number: object) -> bool:
    return selector in (task, f"{task}#{number}")


def _in_file(path: str) -> Iterator[_Shown]:
    from passhat.suites.code_files import json_lines

    for _, row in json_lines(path):
        success, judges = row.get("success"), row.get("judges")
        word = "missing" if success is None else "passed" if success else "failed"
        parts = (row.get("failure"), row.get("detail"))
        yield _Shown(
            f"{row.get('task')}#{int(str(row.get('trial', 0))) + 1}",
            ", ".join(str(part) for part in (word, *parts) if part),
            tuple(judges.items()) if isinstance(judges, dict) else (),
            str(row.get("program") or ""),
            str(row.get("raw") or ""),
        )


def _in_store(word: str, store_path: str) -> Iterator[_Shown]:
    from passhat.stats.outcomes import Verdict
    from passhat.store import open_store

    with open_store(store_path, must_exist=True) as store:
        run = store.find(word).id
        for block in store.rows(run):
            for name, number, *_ in block:
                attempt = store.attempt(run, str(name), int(str(number)))
                assert attempt is not None
                texts = {turn["role"]: turn["text"] for turn in attempt.transcript}
                verdict = {Verdict.PASSED: "passed", Verdict.FAILED: "failed"}
                words = (verdict.get(attempt.verdict, "missing"), attempt.why, attempt.detail)
                answer = texts.get("agent", "")
                yield _Shown(
                    f"{name}#{number}",
                    ", ".join(part for part in words if part),
                    tuple((_JUDGES[role], text) for role, text in texts.items() if role in _JUDGES),
                    texts.get("program", answer),
                    answer if "program" in texts else "",
                )


def _print(shown: list[_Shown], task: str) -> ExitCode:
    from passhat.reporting.audit import escape_program

    if not shown:
        raise InvalidValue(
            f"there is no attempt at {task!r}.", hint="Name a task, or an attempt as in TASK#2."
        )
    for attempt in shown:
        click.echo(f"{attempt.id}: {attempt.verdict}")
        for name, words in attempt.judges:
            click.echo(f"  {name}: {words}")
        if attempt.raw:
            click.echo("  answer:")
            click.echo(_indent(escape_program(attempt.raw)))
        click.echo("  program:")
        click.echo(_indent(escape_program(attempt.program)))
        click.echo()
    return ExitCode.OK


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def audit_run(
    word: str,
    store_path: str,
    size: int,
    seed: int,
    as_json_text: bool,
    outputs: tuple[Output, ...],
) -> ExitCode:
    """Print a sample of a stored run or of a file of results."""
    from passhat.reporting.audit import agreement, audit_as_json, audit_as_markdown, audit_sample
    from passhat.store import open_store

    if Path(word).is_file():
        verdicts = read_result_verdicts(word)
        answer = ""
    else:
        with open_store(store_path, must_exist=True) as store:
            run = store.find(word).id
            verdicts = read_stored_verdicts(store, run)
        answer = (
            f"Say what you think: `passhat show {run} TASK#N --override passed|failed "
            f"--because TEXT{store_words(store_path)}`."
        )
    sample = audit_sample(verdicts, size, seed)
    judge_agreement = agreement(
        (attempt.passed, attempt.human) for attempt in verdicts if attempt.human is not None
    )
    forms = {
        "md": lambda: audit_as_markdown(sample, len(verdicts), seed, judge_agreement, answer),
        "json": lambda: audit_as_json(sample, len(verdicts), seed, judge_agreement),
    }
    screen = () if outputs else (Output("json" if as_json_text else "md", "-"),)
    write_outputs((*outputs, *screen), forms)
    return ExitCode.OK


def read_stored_verdicts(store: Store, run: str) -> list[Audited]:
    """Every attempt of a run that has a verdict, with the agent's answer."""
    from passhat.reporting.audit import Audited
    from passhat.stats.outcomes import Verdict

    attempts = []
    for block in store.rows(run):
        for task, number, *_ in block:
            attempt = store.attempt(run, str(task), int(str(number)))
            assert attempt is not None
            judge, human = _words(attempt)
            if judge.verdict is Verdict.MISSING:
                continue
            texts = [turn["text"] for turn in attempt.transcript if turn["role"] == "agent"]
            attempts.append(
                Audited(
                    attempt.task,
                    attempt.number,
                    judge.verdict is Verdict.PASSED,
                    judge.why,
                    judge.detail,
                    "\n".join(texts),
                    human,
                )
            )
    if not attempts:
        raise InvalidValue(f"run {run} has no attempt with a verdict to audit.")
    return attempts


def _words(ended: Ended) -> tuple[StoredJudgement, bool | None]:
    """The judge's latest judgement of an attempt, and whether a person passed it."""
    from passhat.stats.outcomes import Verdict
    from passhat.store import JudgementSource

    human = [entry for entry in ended.said if entry.source is JudgementSource.HUMAN]
    judge = next(entry for entry in reversed(ended.said) if entry not in human)
    return judge, (human[-1].verdict is Verdict.PASSED) if human else None


def read_result_verdicts(path: str) -> list[Audited]:
    """Every row with a verdict of a file that ``passhat judge -o`` wrote."""
    from passhat.reporting.audit import Audited
    from passhat.suites.code_files import json_lines

    attempts = []
    for line, row in json_lines(path):
        if row.get("success") is None:
            continue
        if not isinstance(row.get("program"), str) or not isinstance(row.get("trial"), int):
            raise ReadError(
                "the row holds no program, so it cannot be looked at.",
                source=path,
                line=line,
                hint="Results of passhat judge -o hold it; judge the samples again.",
            )
        attempts.append(
            Audited(
                str(row.get("task")),
                int(str(row["trial"])) + 1,
                bool(row["success"]),
                str(row.get("failure") or ""),
                str(row.get("detail") or ""),
                str(row["program"]),
            )
        )
    if not attempts:
        raise ReadError("holds no judged attempt.", source=Path(path).name)
    return attempts


_DEFAULT_STORE = ".passhat/passhat.db"
_JUDGES = {"plain judge": "plain", "split judge": "split"}


@click.command(
    "judge",
    cls=Command,
    renamed={
        "--md": "-o",
        "--out": "-o",
        "--timeout": "--set program_seconds={}",
        "--memory": "--set program_memory={}",
        "--unsafe-no-sandbox": "--sandbox none",
    },
    examples=(
        "passhat judge samples.jsonl -s code:ordercode",
        "passhat judge samples.jsonl -s code:ordercode --json",
    ),
)
@click.argument("samples", metavar="[SAMPLES.jsonl | RUN]", required=False)
@click.option(
    "-s",
    "--suite",
    metavar="SUITE",
    help="Tasks with hidden tests, as in code:tasks.jsonl or code:ordercode.",
)
@output_option(
    *("jsonl", "md", "json"),
    help="Keep results, and resume from them, as in results.jsonl; or write report.md, .json.",
)
@click.option(
    "--store",
    "store_path",
    metavar="PATH",
    envvar="PASSHAT_STORE",
    help="Keep results as a run of this store, and resume from it, as in runs.db.",
)
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="A name, to distinguish runs of the same set-up, as in nightly.",
)
@click.option("--jobs", type=click.IntRange(1), help="Workers.  [default: one per processor]")
@judging_options
@set_option
@click.option(
    "--mutants",
    is_flag=True,
    help="Judge the tests instead: what share of broken canonical solutions do they notice?",
)
@click.option(
    "--audit",
    type=click.IntRange(1),
    metavar="N",
    help="Draw N judged attempts of a RUN or results file for a person to look at, as in 50.",
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
def command(
    samples: str | None,
    suite: str | None,
    outputs: tuple[Output, ...],
    store_path: str | None,
    name: str,
    jobs: int | None,
    choose: JudgingOptions,
    mutants: bool,
    audit: int | None,
    show: str | None,
    seed: int,
    ks: tuple[int, ...],
    as_json_text: bool,
) -> ExitCode:
    """Judge generated programs by hidden tests that they cannot see, and report.

    SAMPLES.jsonl holds {"task_id": ..., "completion": ...} lines; the k-th line of a task is its
    k-th attempt.
    """
    if audit is not None:
        if samples is None:
            raise click.UsageError("--audit needs a RUN of a store or a file of results.")
        return audit_run(samples, store_path or _DEFAULT_STORE, audit, seed, as_json_text, outputs)
    if show is not None and samples is not None and suite is None:
        return show_stored(samples, store_path or _DEFAULT_STORE, show)
    if suite is None:
        raise click.UsageError("-s SUITE is needed: code:PATH or code:ordercode.")
    out = next((output.place for output in outputs if output.form == "jsonl"), None)
    if out is not None and store_path is not None:
        if _is_on_command_line("store_path"):
            raise click.UsageError("results go to a file or to --store, not to both.")
        store_path = None  # PASSHAT_STORE applies only where no file is named

    from passhat.stats.outcomes import MissingReason
    from passhat.suites.code_files import read_code_suite
    from passhat.suites.code_samples import read_samples

    tasks = read_code_suite(suite)
    if mutants:
        bench = choose(jobs).bench(tasks)
        return _judge_tests(bench, store_path or _DEFAULT_STORE, as_json_text)
    if samples is None:
        raise click.UsageError("SAMPLES.jsonl is needed, unless --mutants judges the tests.")
    programs = read_samples(samples, tasks)
    bench = choose(jobs).bench(tasks)
    if show is not None:
        return show_judged(bench, programs, show)
    run = _judge_run(bench, programs, samples, out, store_path, name)
    _report(run, ks, as_json_text, outputs)
    ours = (MissingReason.SANDBOX_ERROR, MissingReason.JUDGE_ERROR)
    lost_count = sum(run.missing_by_reason.get(reason, 0) for reason in ours)
    return ExitCode.INCOMPLETE if lost_count else ExitCode.OK


def _is_on_command_line(name: str) -> bool:
    """Whether an option is given on the command line, rather than in the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _judge_run(
    bench: Bench,
    samples: list[Sample],
    source: str,
    out: str | None,
    store_path: str | None,
    name: str,
) -> Run:
    """The run, from the store or from the file of results; prints the number of reused rows."""
    if store_path is None:
        from passhat.suites.code_results import judge_samples

        results = judge_samples(bench, samples, source, out)
        if results.resumed:
            click.echo(f"{out}: {results.resumed:,} of {len(samples):,} were there", err=True)
        return results.run

    from passhat.readers.store import run_from_store
    from passhat.runner.regrade import judge_into_store
    from passhat.store import open_store

    with open_store(store_path) as store:
        run, reused_rows = judge_into_store(bench, samples, source, store, name)
        if reused_rows:
            click.echo(f"run {run}: {reused_rows:,} of {len(samples):,} were there", err=True)
        judged_run = run_from_store(store, store.find(run))
    click.echo(f"run {run} in {store.path}", err=True)
    return judged_run


def _report(run: Run, ks: tuple[int, ...], as_json_text: bool, outputs: tuple[Output, ...]) -> None:
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.reporting.documents.report import report_document
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal

    report = build_report([run], ReportOptions(ks=ks))
    document = report_document(report)
    write_outputs(
        outputs, {"md": lambda: render_markdown(document), "json": lambda: as_json(report)}
    )
    if as_json_text:
        click.echo(as_json(report), nl=False)
    elif prints_to_screen(outputs):
        click.echo(render_terminal(document, Console()), nl=False)


def _judge_tests(bench: Bench, store_path: str, as_json_text: bool) -> ExitCode:
    """Print how strong the hidden tests are, weakest first, and keep it for later reports."""
    from passhat._serialize import as_json
    from passhat.suites.code_mutants import (
        WEAK_BELOW,
        keep_strengths,
        strength_of_tests,
        strengths_folder,
    )

    strengths = sorted(
        strength_of_tests(bench), key=lambda strength: (strength.share is not None, strength.share)
    )
    folder = strengths_folder(store_path)
    try:
        path = keep_strengths(folder, bench.suite.tests_fingerprint, strengths)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written: {error.strerror}.") from None
    if as_json_text:
        click.echo(as_json(strengths), nl=False)
        return ExitCode.OK
    for strength in strengths:
        click.echo(str(strength))
    weak = sum(strength.weak for strength in strengths)
    click.echo(
        f"{weak} of {counted(len(strengths), 'task')} with tests that kill under {WEAK_BELOW:.0%}"
    )
    click.echo(f"kept in {path}; reports of this suite mark tasks with weak tests", err=True)
    return ExitCode.OK
