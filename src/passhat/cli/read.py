"""passhat read"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from passhat._display import counted, visible
from passhat.cli.export import EXPORT_FORMS, write_attempts
from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.options import (
    ReadingOptions,
    all_source_options,
    exit_code,
    sources_argument,
)
from passhat.cli.shared.outputs import Output, fit_screen, output_option, prints_to_screen

if TYPE_CHECKING:
    from passhat.readers import Reading
    from passhat.readers.reading import FileRead
    from passhat.stats.outcomes import Run

_SCHEMA = "passhat.reading/1"


@click.command(
    "read",
    cls=Command,
    examples=(
        "passhat read example:helpdesk",
        "passhat read latest -o runs.jsonl",
    ),
)
@sources_argument
@all_source_options
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Keep this column, for report --by and --cluster, as in --slice domain; repeatable.",
)
@output_option(
    *EXPORT_FORMS,
    help="Write the attempts for other commands, as in runs.jsonl, .csv or .parquet.",
)
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
@click.option("--guess", is_flag=True, help="Print a mapping for an unknown file as TOML.")
def command(
    sources: tuple[str, ...],
    how: ReadingOptions,
    slices: tuple[str, ...],
    outputs: tuple[Output, ...],
    as_json_text: bool,
    guess: bool,
) -> ExitCode:
    """Read SOURCE with every option there is, show what was recognized, and write it for others.

    SOURCE is a log of another harness, a table, a glob or folder of them, - for standard input, or
    example:NAME. Ends with 4 when part of a file could not be read.

    Other commands read common logs by themselves. Where one needs more, read it once: passhat read
    log.json --scorer exact -o runs.jsonl, then passhat report runs.jsonl.

    For a file of your own, --guess prints a mapping to start from: passhat read FILE --guess >
    mine.toml, then passhat read FILE --map mine.toml.
    """
    from passhat.readers import Needs, read_all

    if guess:
        return _print_guess(sources, how)
    needs = Needs(details=True) if outputs else None
    reading = read_all(sources, **how.options(slices, needs))
    write_attempts(reading.runs, outputs)
    if as_json_text:
        click.echo(_as_json(reading), nl=False)
    elif prints_to_screen(outputs):
        click.echo(fit_screen("\n".join(map(visible, _lines(reading, how.needs_export)))))
    how.note_refused(reading)
    return exit_code(run for file in reading.files for run in file.runs)


def _print_guess(sources: tuple[str, ...], how: ReadingOptions) -> ExitCode:
    """Print the mapping that the first file seems to need, with its structure as comments."""
    from passhat.readers.base import ReadOptions
    from passhat.readers.guessing import describe_structure, guess_mapping
    from passhat.readers.sources import expand

    options = ReadOptions(
        columns=how.columns, records=how.records, trials=how.trials, passes=how.passes
    )
    source = expand(sources[:1])[0]
    mapping, certain = guess_mapping(source, options)
    lacking = [word for word in ("task", "success") if word not in mapping.fields]
    comments = [
        f"How to read {source.name}. Use it with: passhat read {source.name} --map THIS_FILE.toml",
        "The names fit without doubt." if certain else "This is a guess: check every line.",
    ]
    if lacking:
        comments.append(f"Still to be stated under [fields]: {', '.join(lacking)}.")
    click.echo(
        mapping.to_toml([visible(c) for c in (*comments, *describe_structure(source, options))])
    )
    return ExitCode.OK


def _lines(reading: Reading, needs_export: bool) -> Iterator[str]:
    """The reading as text, file by file, then the remaining runs and the commands they support."""
    for file in reading.files:
        yield f"{file.source}"
        yield f"  recognized as {file.reader}: {counted(len(file.runs), 'run')}"
        yield from (f"  {line}" for line in _tally_lines(file))
        for run in file.runs:
            yield f"  {run}"
            yield from (f"    {line}" for line in _run_lines(run))
    for name, why in reading.passed_over:
        yield f"{name}"
        yield f"  passed over: {why}"
    notes = {line for file in reading.files for read in file.runs for line in read.reading}
    for run in reading.runs:
        # Parts that were dropped or joined while the files were combined.
        yield from (f"{run.name}: {line}" for line in run.reading if line not in notes)
    yield from _commands(reading.runs, needs_export)
    yield ""
    yield _total(reading)


def _as_json(reading: Reading) -> str:
    """The reading under its schema."""
    from passhat._serialize import as_json

    data = {
        "schema": _SCHEMA,
        "files": [_file(file) for file in reading.files],
        "passed_over": [{"file": name, "why": why} for name, why in reading.passed_over],
        "refused": [{"file": name, "why": why} for name, why in reading.refused],
        "runs": [_run(run) for run in reading.runs],
    }
    return as_json(data)


def _tally_lines(file: FileRead) -> tuple[str, ...]:
    tally = file.runs[0].tally if file.runs else None
    return () if tally is None else tally.sentences()


def _run_lines(run: Run) -> Iterator[str]:
    protocol = run.protocol
    facts = [
        ("suite", protocol.suite),
        ("judge", protocol.judge),
        ("user", protocol.user_simulator),
    ]
    facts += [(key, str(value)) for key, value in protocol.decoding.items()]
    facts_text = ", ".join(f"{word} {value}" for word, value in facts if value is not None)
    if facts_text:
        yield facts_text
    if run.missing_by_reason:
        yield f"missing: {_counts(run.missing_by_reason)}"
    if run.failures_by_category:
        yield f"failed: {_counts(run.failures_by_category)}"
    if run.source_says:
        stated_values = ", ".join(f"{name} {value:.4g}" for name, value in run.source_says.items())
        yield f"the source says: {stated_values}"
    counts = run.tally.sentences() if run.tally is not None else ()
    yield from (line for line in run.reading[1:] if line not in counts)
    yield from (f"decided: {line}" for line in run.decisions if line not in run.reading)
    yield from _supports(run)


def _supports(run: Run) -> Iterator[str]:
    """Metrics that the attempts of a run allow, and the command that would give more."""
    outcomes = run.outcomes
    low, high = int(outcomes.n.min()), int(outcomes.n.max())
    short_tasks = int((outcomes.n < high).sum())
    if high <= 1:
        yield "supports: pass^1 only; for pass@k and pass^k: several attempts at each task"
    else:
        order = ", first@k and window^w" if outcomes.order is not None else ""
        some_tasks = f" ({counted(short_tasks, 'task')} up to {low})" if short_tasks else ""
        yield f"supports: pass@k and pass^k up to k = {high}{some_tasks}{order}"
    if high > 1 and outcomes.order is None and run.attempts is not None:
        yield "for first@k, state the number of each attempt: --map trial=COLUMN"
    if outcomes.scores is not None:
        yield f"scores between 0 and 1 are kept: mean {outcomes.scores.mean:.4g}"
    if run.agent_guessed:
        yield "to join it with other files, state the agent: --agent NAME"


def _commands(runs: Sequence[Run], needs_export: bool) -> Iterator[str]:
    """The commands that the runs support, and what it takes for more."""
    # Standard input is gone when another command would read it.
    needs_export = needs_export or any(run.source == "-" for run in runs)
    if needs_export:
        yield "for other commands: add -o runs.jsonl to this one"
    words = dict.fromkeys(word for run in runs for word in run.words or (run.id or run.source,))
    source = "runs.jsonl" if needs_export else shlex.join(words)
    if "--join" in words and not needs_export and len(words) > 2:
        yield "for plan: add -o runs.jsonl to this command"
    metric = f"pass^{min(int(run.outcomes.n.min()) for run in runs) or 1}"
    slices = list(runs[0].outcomes.labels)
    by = f" --by {shlex.quote(slices[0])}" if slices else ""
    yield f"to report: passhat report {source} --metric {metric}{by}"
    other = "" if len(runs) > 1 else " OTHER"
    yield f"to compare: passhat compare {source}{other}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {count:,}" for word, count in counts.items())


def _total(reading: Reading) -> str:
    attempts = sum(run.outcomes.attempts for run in reading.runs)
    parts = [
        counted(len(reading.files), "file"),
        counted(len(reading.runs), "run"),
        counted(attempts, "attempt"),
    ]
    missing = sum(run.outcomes.total_missing for run in reading.runs)
    if missing:
        parts.append(f"{missing:,} missing")
    return ", ".join(parts)


def _file(file: FileRead) -> dict[str, object]:
    tally = file.runs[0].tally if file.runs else None
    return {
        "file": file.source,
        "reader": file.reader,
        "tally": tally,
        "runs": [run.name for run in file.runs],
    }


def _run(run: Run) -> dict[str, object]:
    outcomes = run.outcomes
    return {
        "name": run.name,
        "agent": run.agent,
        "source": run.source,
        "tasks": len(outcomes),
        "attempts": outcomes.attempts,
        "attempts_per_task": outcomes.attempts_text(),
        "passed": outcomes.passes,
        "mean_score": None if outcomes.scores is None else outcomes.scores.mean,
        "missing": outcomes.total_missing,
        "missing_by_reason": run.missing_by_reason,
        "failures_by_category": run.failures_by_category,
        "order_known": outcomes.order is not None,
        "protocol": {"digest": run.protocol.digest, **run.protocol.to_dict()},
        "source_says": dict(run.source_says),
        "reading": list(run.reading),
        "decisions": list(run.decisions),
    }
