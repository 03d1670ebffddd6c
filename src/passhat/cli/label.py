"""passhat label"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import store_option, store_words
from passhat.cli.shared.exits import ExitCode
from passhat.cli.shared.labels import (
    read_label_table,
    refuse_contradictions,
    refuse_strangers,
)

if TYPE_CHECKING:
    from passhat.store import Store, StoredRun
    from passhat.store.labels import DrawnAttempt, Label, StoredLabel

_KEYS = {"r": "right", "w": "wrong", "s": "skip"}
_NOTHING_KEPT = (
    "neither the conversation nor the answer is in the store; look where the run was made, or skip"
)
_HELP = "r right, w wrong, s skip, u undo, q quit"


@click.command(
    "label",
    cls=Command,
    examples=(
        "passhat label latest --whole-tasks 10",
        "passhat label latest --sample 100 -o labels.csv",
    ),
)
@click.argument("run")
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Draw so many attempts at random, as in 100.",
)
@click.option(
    "--failures",
    type=click.IntRange(0),
    metavar="N",
    help="So many of --sample from the judge's failures, as in 50; labels are weighted then.",
)
@click.option(
    "--whole-tasks",
    type=click.IntRange(1),
    metavar="N",
    help="Draw all attempts of so many tasks, as in 10; what report --corrected needs.",
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of the draw; it is recorded."
)
@click.option("--person", metavar="NAME", help="Who labels, as in ada.  [default: the user]")
@click.option(
    "--from", "table", metavar="FILE", help="Take labels from a CSV, as in labels.csv, and end."
)
@click.option(
    "-o", "out", metavar="FILE", help="Write the drawn attempts as a CSV to fill in, as in l.csv."
)
@store_option
def command(
    run: str,
    sample: int | None,
    failures: int | None,
    whole_tasks: int | None,
    seed: int,
    person: str | None,
    table: str | None,
    out: str | None,
    store_path: str,
) -> ExitCode:
    """Label attempts of RUN as right or wrong, to learn how good its judge is.

    Attempts are drawn at random and shown one at a time without the judge's verdict; labels are
    kept beside it and never replace it. Stop at any time, and continue with passhat label RUN. The
    dashboard has the same: passhat view --allow-run.
    """
    from passhat.errors import InvalidValue
    from passhat.store import open_store

    if sample is not None and whole_tasks is not None:
        raise InvalidValue("--sample draws attempts and --whole-tasks tasks; choose one.")
    if failures is not None and sample is None:
        raise InvalidValue("--failures says how many of --sample; give both.")
    name = (person or _user()).strip()
    with open_store(store_path, must_exist=True) as store:
        stored = store.find(run)
        if sample is not None or whole_tasks is not None:
            _draw(store, stored.id, sample, failures, whole_tasks, seed)
        if table is not None:
            _take_table(store, stored, table, person or "")
        elif out is not None:
            _write_table(store, stored.id, out)
        else:
            _ask(store, stored.id, name)
        _print_progress(store, stored.id)
    return ExitCode.OK


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "person"


def _draw(
    store: Store,
    run: str,
    sample: int | None,
    failures: int | None,
    whole_tasks: int | None,
    seed: int,
) -> None:
    from passhat._display import counted
    from passhat.stats.labels.drawing import draw_attempts, draw_whole_tasks
    from passhat.stats.outcomes import Verdict
    from passhat.store.labels import save_draw

    verdicts = list(store.verdicts(run))
    passed, failed = (
        [(task, number) for task, number, verdict in verdicts if verdict is wanted]
        for wanted in (Verdict.PASSED, Verdict.FAILED)
    )
    if whole_tasks is not None:
        draw = draw_whole_tasks([*passed, *failed], whole_tasks, seed)
    else:
        draw = draw_attempts(passed, failed, sample or 0, seed, failures)
    save_draw(store, run, draw.text, draw.attempts)
    click.echo(f"drawn: {draw.text} ({counted(len(draw.attempts), 'attempt')})")


def _queue(store: Store, run: str) -> list[DrawnAttempt]:
    """The attempts that were drawn; refuses a run without a draw."""
    from passhat.errors import InvalidValue
    from passhat.store.labels import load_draws

    drawn = load_draws(store._queries, store._key(run))
    if not drawn:
        raise InvalidValue(
            f"no attempts of run {run} were drawn to be labeled.",
            hint="Draw whole tasks (--whole-tasks 10), or attempts (--sample 100).",
        )
    return drawn


def _take_table(store: Store, stored: StoredRun, path: str, person: str) -> None:
    from passhat._display import counted
    from passhat.stats.outcomes import Verdict
    from passhat.store.labels import add_labels

    names = ("", stored.id, stored.name, stored.title)
    rows = [row for row in read_label_table(path, person) if row.run in names]
    refuse_contradictions(rows)
    verdicts = store.verdicts(stored.id)
    judged = {
        (task, number) for task, number, verdict in verdicts if verdict is not Verdict.MISSING
    }
    refuse_strangers(rows, judged)
    added = add_labels(store, stored.id, [row.label for row in rows])
    changes = f", {added.changed:,} changed" if added.changed else ""
    click.echo(f"{counted(len(rows), 'label')} read, {added.new:,} new{changes}")


def _write_table(store: Store, run: str, path: str) -> None:
    """The drawn attempts with their labels so far; never the judge's verdict."""
    import csv
    import io

    from passhat._display import counted, csv_cell
    from passhat.cli.shared.outputs import write_text
    from passhat.reporting.answers import find_answers
    from passhat.store.labels import load_labels

    given: dict[tuple[str, int], list[StoredLabel]] = {}
    for label in load_labels(store._queries, store._key(run)):
        given.setdefault((label.task, label.number), []).append(label)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    shown = ("expected", "got", "conversation")
    writer.writerow(("task", "attempt", "label", "person", "note", "at", *shown))
    drawn = [(attempt.task, attempt.number) for attempt in _queue(store, run)]
    bare = 0
    for place in dict.fromkeys([*drawn, *given]):
        ended = store.attempt(run, *place)
        transcript = () if ended is None else ended.transcript
        bare += not transcript
        answers = find_answers(transcript)
        talk = "\n".join(f"{entry['role']}: {entry['text']}" for entry in _talk(transcript))
        texts = (answers.expected, answers.got, talk)
        rows = [
            (str(label.label), label.person, label.note, label.at) for label in given.get(place, ())
        ]
        for cells in rows or [("", "", "", "")]:
            writer.writerow([csv_cell(cell) for cell in (*place, *cells, *texts)])
    write_text(path, out.getvalue())
    if bare:
        click.echo(f"{counted(bare, 'attempt')}: {_NOTHING_KEPT}")


def _ask(store: Store, run: str, person: str) -> None:
    """Show attempts one at a time and keep the answer to each."""
    from passhat.store.labels import Label, StoredLabel, add_labels, load_labels

    drawn = [(attempt.task, attempt.number) for attempt in _queue(store, run)]
    mine = {
        (label.task, label.number)
        for label in load_labels(store._queries, store._key(run))
        if label.person == person
    }
    left = [place for place in drawn if place not in mine]
    done: list[tuple[str, int]] = []
    while left:
        place = left[0]
        click.echo(f"\n{len(drawn) - len(left) + 1} of {len(drawn)}: {place[0]}#{place[1]}")
        for line in _attempt_lines(store, run, place):
            click.echo(line)
        key = _key()
        if key == "q":
            break
        if key == "u" and done:
            last = done.pop()
            add_labels(store, run, [StoredLabel(*last, person, None)])
            left.insert(0, last)
        elif key in _KEYS:
            add_labels(store, run, [StoredLabel(*place, person, Label.of(_KEYS[key]))])
            done.append(left.pop(0))
        else:
            click.echo(_HELP)


def _key() -> str:
    """A key, or the first letter of a line where the input is no terminal; q at its end."""
    if sys.stdin.isatty():
        click.echo(f"[{_HELP}] ", nl=False)
        key = click.getchar()
        click.echo(key)
        return "q" if key in ("\x03", "\x04") else key.lower()
    try:
        line = sys.stdin.readline()
    except OSError:  # there is no input at all
        line = ""
    return line.strip()[:1].lower() if line else "q"


def _attempt_lines(store: Store, run: str, place: tuple[str, int]) -> Iterator[str]:
    """The conversation, what was expected and what came; never the judge's word."""
    from passhat.reporting.answers import find_answers

    ended = store.attempt(run, *place)
    transcript = () if ended is None else ended.transcript
    if not transcript:
        yield f"  {_NOTHING_KEPT}"
        return
    for entry in _talk(transcript):
        yield from _indent(entry["role"], entry["text"])
    answers = find_answers(transcript)
    yield from _indent("expected", answers.expected or "(not recorded)")
    yield from _indent("got", answers.got or "(not recorded)")


def _talk(transcript: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The conversation without answers that are shown apart and without the judge's word."""
    from passhat.reporting.answers import drop_answers
    from passhat.suites.base import REMARKS

    return [
        entry
        for entry in drop_answers(transcript)
        if entry["role"] not in REMARKS and not entry["role"].endswith("judge")
    ]


def _indent(title: str, text: str) -> Iterator[str]:
    """A text under its title, line by line."""
    from passhat._display import visible

    first, *lines = text.splitlines() or [""]
    yield f"  {visible(title)}: {visible(first)}"
    yield from (f"    {visible(line)}" for line in lines)


def _print_progress(store: Store, run: str) -> None:
    from passhat._display import counted
    from passhat.store.labels import load_draws, load_labels

    labels = load_labels(store._queries, store._key(run))
    by_person: dict[str, list[Label | None]] = {}
    for label in labels:
        by_person.setdefault(label.person, []).append(label.label)
    drawn = load_draws(store._queries, store._key(run))
    for name, words in by_person.items():
        click.echo(f"{name}: {_counts_text(words)}")
    places = {(label.task, label.number) for label in labels}
    left = sum((attempt.task, attempt.number) not in places for attempt in drawn)
    if left:
        click.echo(
            f"{counted(left, 'drawn attempt')} without a label; continue: passhat label {run}"
            f"{store_words(store.path)}"
        )


def _counts_text(words: Sequence[Label | None]) -> str:
    from passhat.store.labels import Label

    return ", ".join(f"{words.count(kind):,} {kind}" for kind in Label)
