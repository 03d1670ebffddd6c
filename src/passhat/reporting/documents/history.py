"""The history of an agent at a suite: the trend, shown changes, and every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat._display import counted, number, percent, shown, some
from passhat.protocol import Difference
from passhat.reporting.document import (
    Block,
    Document,
    Finding,
    Heading,
    Level,
    Note,
    Section,
    Sentence,
    Table,
    Trend,
)
from passhat.reporting.history import History, HistoryRun, ShownChange
from passhat.stats.changes import LOOKS_PER_YEAR

__all__ = ["difference_text", "history_document"]

_MOST_ROWS = 10
_MOST_TASKS = 5
_SHORT_REVISION = 10


def history_document(history: History) -> Document:
    """Build the document: the trend and its changes first, then run by run."""
    title = f"{history.agent} at {history.suite or 'a suite without a name'}"
    return Document(
        title,
        (
            Section("trend", tuple(_trend(history, title))),
            Section("changes", tuple(_changes(history))),
            Section("runs", tuple(_runs(history))),
        ),
    )


def _trend(history: History, title: str) -> Iterator[Block]:
    yield Heading(f"History of {title}", counted(len(history.runs), "run"))
    newest = history.runs[-1]
    if newest.estimates:
        values = "; ".join(map(str, newest.estimates))
        yield Sentence(f"Newest run, {newest.title}: {values}.")
    points: list[tuple[float, float, float]] = []
    places: dict[int, int] = {}
    for run in history.runs:
        if run.estimates:
            value = run.estimates[0]
            places[run.place] = len(points)
            points.append((value.value, value.low or 0.0, value.high or 0.0))
    if len(points) > 1:
        word = history.values[0]
        text = f"{word.metric} of every run, the newest on the right, with intervals"
        starts = tuple(
            places[change.since.place] for change in history.changes if change.since.place in places
        )
        yield Trend(text + (", ┊ a shown change" if starts else ""), tuple(points), starts)


def _changes(history: History) -> Iterator[Block]:
    if not history.changes:
        yield Sentence(
            "No change of the agent is shown."
            if len(history.runs) > 1
            else "One run shows no change: there is none to compare it with.",
            "lead",
        )
    for change in history.changes:
        yield _finding(change)
    if len(history.runs) > 1:
        yield Note(
            f"Looked at after every run; a series without a change shows one in at most "
            f"{percent(history.error, 0)} of years of {LOOKS_PER_YEAR} runs. Runs are compared at "
            "the tasks they share: new and removed tasks are no change of the agent."
        )
    if not history.is_dated:
        yield Note("Not every run records when it began: runs are in the order of the sources.")
    for suite, agent, runs in history.others:
        yield Note(
            f"Left out: {counted(runs, 'run')} of {agent} at {suite or 'a suite without a name'}.",
            level=Level.FULL,
        )
    if history.others:
        count = sum(runs for _, _, runs in history.others)
        text = f"{counted(count, 'run')} of other agents or suites left out."
        yield Note(text, level=Level.SHORT)


def _finding(entry: ShownChange) -> Finding:
    change = entry.change
    fell = change.direction == "drop"
    points = 100 * (change.after - change.before)
    details = [
        f"pass^1 {number(change.before)} before, {number(change.after)} since, at "
        f"{counted(change.shared, 'shared task')} ({points:+.1f} points)"
    ]
    if change.earliest != change.latest:
        details.append(
            f"it began between run {change.earliest + 1} and run {change.latest + 1} (95%)"
        )
    details += [f"{task}: {text}" for task, text in _list_moved_tasks(entry)]
    if entry.differences:
        texts = [difference_text(difference) for difference in entry.differences]
        details.append(f"changed there: {some(texts, 6)}")
    else:
        details.append("nothing that both runs record changed there")
    if any(run.is_other_suite for run in (entry.since,)):
        details.append("the judge or the tests changed at this run, so it may be theirs")
    return Finding(
        "✗" if fell else "✓",
        "dropped" if fell else "rose",
        f"since {_run_words(entry.since)}",
        tuple(details),
    )


def _list_moved_tasks(entry: ShownChange) -> Iterator[tuple[str, str]]:
    for word in ("broke", "improved"):
        tasks = [str(task) for task in entry.change.tasks if task.change == word]
        if tasks:
            yield word, some(tasks, _MOST_TASKS)


def _run_words(run: HistoryRun) -> str:
    """Place, time, id and revision of a run."""
    parts = [f"run {run.place + 1}", run.title]
    if run.run.id:
        parts.append(run.run.id)
    if run.revision:
        parts.append(f"revision {run.revision[:_SHORT_REVISION]}")
    return ", ".join(dict.fromkeys(parts))


def difference_text(difference: Difference) -> str:
    """A recorded difference from the run before, as in ``temperature: 0.2, now 0.7``."""
    name = difference.field.removeprefix("decoding.")
    return f"{name}: {shown(difference.mine)}, now {shown(difference.theirs)}"


def _runs(history: History) -> Iterator[Block]:
    metrics = list(dict.fromkeys(str(one.metric) for run in history.runs for one in run.estimates))
    header = ("run", "started", *metrics, "tasks", "attempts")
    rows = tuple(_row(run, metrics) for run in reversed(history.runs))
    caption = "Runs, the newest first"
    yield Table(header, rows, caption, left=(0, 1), level=Level.FULL)
    yield Table(
        header[:-2],
        tuple(row[:-2] for row in rows),
        left=(0, 1),
        most=_MOST_ROWS,
        more="; --full lists them all, and what changed between runs",
        level=Level.SHORT,
    )
    changes = tuple(
        (f"{run.place + 1}", run.title, "; ".join(words))
        for run in reversed(history.runs)
        if (words := changed_words(run))
    )
    if changes:
        caption = "What changed since the run before"
        yield Table(("run", "started", "change"), changes, caption, (0, 1, 2), level=Level.FULL)


def _row(run: HistoryRun, metrics: Sequence[str]) -> tuple[str, ...]:
    values = {
        str(one.metric): f"{number(one.value)} {one.interval_text()}" for one in run.estimates
    }
    return (
        f"{run.place + 1} {run.run.id}".rstrip(),
        run.title,
        *(values.get(word, "-") for word in metrics),
        f"{len(run.run.outcomes):,}",
        f"{run.run.outcomes.attempts:,}",
    )


def changed_words(run: HistoryRun) -> list[str]:
    """Differences from the run before: recorded settings, and tasks that came and went."""
    words = [difference_text(difference) for difference in run.differences]
    if run.added:
        words.append(f"{counted(len(run.added), 'new task')}")
    if run.removed:
        words.append(f"{counted(len(run.removed), 'removed task')}")
    return words
