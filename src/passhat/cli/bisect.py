"""passhat bisect"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import DEFAULT_FILE, store_option
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.outputs import Output, output_option, prints_to_screen, write_outputs

if TYPE_CHECKING:
    from passhat.cli.shared.bisecting import Question
    from passhat.runner.revisions import Lineage

_RUN = ("passhat", "run")
_JUDGES = "python:passhat.runner.exit_codes:suite"


@click.command(
    "bisect",
    cls=Command,
    context_settings={"ignore_unknown_options": False},
    examples=(
        "passhat bisect --good v1.2 --bad HEAD -a python:agent:answer -s jsonl:tasks.jsonl",
        "passhat bisect --good v1.2 --bad HEAD -- pytest -q tests/test_agent.py",
    ),
)
@click.option("--good", metavar="REV", help="A commit that was good, as in v1.2.")
@click.option("--bad", metavar="REV", help="A later commit that is bad, as in HEAD.")
@click.option(
    "--candidates",
    metavar="FILE",
    help="A list instead of commits, good first, as in models.txt; {} in -a or -s is one of them.",
)
@click.option("-a", "--agent", metavar="AGENT", help="Agent, as in passhat run, as openai:gpt-5.")
@click.option("-s", "--suite", metavar="SUITE", help="Suite of tasks, as jsonl:tasks.jsonl.")
@click.option(
    "-n",
    "--attempts",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Attempts at every task with the good and the bad revision, unless runs are stored.",
)
@click.option(
    "--budget",
    metavar="N|DOLLARS",
    help="The most to spend, as in 2000 (attempts) or 5usd.  [default: 10 times the two ends]",
)
@store_option
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@output_option("md", "json", help="Write a file, as in bisect.md or .json.")
@click.argument("words", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
def command(
    good: str | None,
    bad: str | None,
    candidates: str | None,
    agent: str | None,
    suite: str | None,
    attempts: int,
    budget: str | None,
    store_path: str,
    as_json_text: bool,
    outputs: tuple[Output, ...],
    words: tuple[str, ...],
) -> ExitCode:
    """Find the revision that broke an agent, although every attempt is partly luck.

    Attempts are made where they decide, in a git worktree of its own, and kept in the store. It
    begins where the bad revision is shown to be worse, stops when one revision has 95% of the
    chance, confirms it against its parent with fresh attempts, and else prints the range that is
    left. The same command continues after Ctrl-C or a crash.

    COMMAND is run once per attempt: exit code 0 passes, 125 cannot run, others fail; or it is
    `passhat run` with its options. The suite is that of this folder for all revisions.
    """
    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.cli.shared.bisecting import Bisector
    from passhat.cli.shared.live import StepLines
    from passhat.reporting.bisect import BisectStatus, Budget
    from passhat.reporting.document import Level
    from passhat.reporting.documents.bisect import bisect_document
    from passhat.reporting.markdown import render_markdown
    from passhat.reporting.terminal import render_terminal
    from passhat.store import is_address

    lineage = _lineage(good, bad, candidates)
    question = make_question(lineage, agent, suite, words, attempts, is_git=candidates is None)
    place = store_path if is_address(store_path) else str(Path(store_path).resolve())
    limit = Budget() if budget is None else Budget.of_text(budget)
    result = Bisector(question, place, limit, StepLines()).run()
    document = bisect_document(result)
    write_outputs(
        outputs, {"md": lambda: render_markdown(document), "json": lambda: as_json(result)}
    )
    if as_json_text:
        click.echo(as_json(result), nl=False)
    elif prints_to_screen(outputs):
        click.echo(render_terminal(document, Console(), Level.SHORT), nl=False)
    if result.status is BisectStatus.STOPPED:
        return ExitCode.STOPPED
    return ExitCode.OK if result.status is BisectStatus.FOUND else ExitCode.NOT_SETTLED


def _lineage(good: str | None, bad: str | None, candidates: str | None) -> Lineage:
    from passhat.errors import ReadError
    from passhat.runner.revisions import Lineage, list_revisions

    if candidates is None:
        if good is None or bad is None:
            example = "passhat bisect --good v1.2 --bad HEAD -- pytest -q tests/test_agent.py"
            raise click.UsageError(f"--good and --bad are needed. For example: {example}")
        return list_revisions(good, bad)
    try:
        text = Path(candidates).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"cannot be read ({error}).", source=candidates) from None
    lines = [line.strip() for line in text.splitlines()]
    entries = [line for line in lines if line and not line.startswith("#")]
    if repeated := next((line for line in entries if entries.count(line) > 1), ""):
        raise click.UsageError(
            f"{candidates} has {repeated!r} twice. A rollback is a candidate of its own: end the "
            "list before it, or give it another name."
        )
    for option, word in (("--good", good), ("--bad", bad)):
        if word is not None and word not in entries:
            raise click.UsageError(f"{option} {word}: {candidates} has no such line.")
    first = 0 if good is None else entries.index(good)
    last = len(entries) - 1 if bad is None else entries.index(bad)
    if last <= first:
        raise click.UsageError(
            f"{candidates} needs a good candidate and after it at least one more, one per line."
        )
    return Lineage.of_list(entries[first : last + 1])


def make_question(
    lineage: Lineage,
    agent: str | None,
    suite: str | None,
    words: tuple[str, ...],
    attempts: int,
    *,
    is_git: bool,
) -> Question:
    """The options of ``passhat run`` for every revision, checked in this folder."""
    from passhat.cli.run import read_spec
    from passhat.cli.shared.bisecting import PLACE, Question

    run_words = words[2:] if words[:2] == _RUN else ()
    options = list(run_words)
    is_command = bool(words) and not run_words
    if is_command:
        if agent is not None or suite is not None:
            raise click.UsageError("give -a and -s, or a COMMAND after --, not both.")
        from passhat.runner import exit_codes

        wrapped = [sys.executable, exit_codes.__file__, *words]
        options = ["-a", f"command:{shlex.join(wrapped)}", "-s", _JUDGES, "--jobs", "1"]
        options += ["--pass-env", "*"]
    options += ["-a", agent] if agent is not None else []
    options += ["-s", suite] if suite is not None else []
    try:
        spec = read_spec(options)
    except click.UsageError as error:
        raise click.UsageError(error.message.replace("passhat run", "passhat bisect")) from None
    assert isinstance(spec.agent, str)
    assert isinstance(spec.suite, str)
    options += ["-a", spec.agent, "-s", _absolute_suite(spec.suite)]
    if not (is_git or is_command or any(PLACE in word for word in options)):
        raise click.UsageError(
            "--candidates needs {} where the candidate stands, as in -a 'openai:{}'; a COMMAND "
            "after -- finds it in PASSHAT_CANDIDATE."
        )
    if Path(DEFAULT_FILE).is_file() and "--config" not in options:
        options += ["--config", str(Path(DEFAULT_FILE).resolve())]
    return Question(lineage, tuple(options), spec.agent, spec.suite, attempts, is_git)


def _absolute_suite(word: str) -> str:
    """The suite's file by its whole path, so that all revisions have the tasks of this folder."""
    kind, sign, place = word.partition(":")
    if not sign and Path(word).is_file():
        return str(Path(word).resolve())
    if sign and place and Path(place).exists():
        return f"{kind}:{Path(place).resolve()}"
    return word
