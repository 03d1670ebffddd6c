"""The history of an agent at a suite: the trend, shown changes, and every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

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
    upper_first,
)
from passhat.reporting.history import History, HistoryRun, ShownChange
from passhat.stats.changes import LOOKS_PER_YEAR

_MOST_ROWS = 10
_MOST_TASKS = 5
_MOST_SUITE_CHANGES = 3
_SHORT_REVISION = 10


def history_document(history: History) -> Document:
    """Build the document: the trend and its changes first, then run by run."""
    title = f"{history.agent} at {history.suite or 'a suite without a name'}"
    parts = {"trend": _trend(history, title), "changes": _changes(history), "runs": _runs(history)}
    return Document(title, tuple(Section(name, tuple(part)) for name, part in parts.items()))


def _trend(history: History, title: str) -> Iterator[Block]:
    yield Heading(f"History of {title}", counted(len(history.runs), "run"))
    newest = history.runs[-1]
    if newest.estimates:
        values = "; ".join(map(str, newest.estimates))
        yield Sentence(f"Newest run, {newest.title}: {values}.")
    if not newest.has_verdicts:
        yield Sentence("The newest run has no verdict: its value is not known.", "warning")
    if troubled := [run for run in history.runs if run.trouble]:
        yield Note(f"{counted(len(troubled), 'run')} without a value: {troubled[-1].trouble}")
    runs = [run for run in history.runs if run.estimates]
    if len(runs) > 1:
        starts = {change.since.place for change in history.changes}
        changes = tuple(i for i, run in enumerate(runs) if run.place in starts)
        others = tuple(i for i, run in enumerate(runs) if i and (run.added or run.removed))
        text = f"{history.values[0].metric} of every run, the newest on the right, with intervals"
        text += ", ○ if missing attempts had passed" * any(
            run.has_verdicts and run.estimates[0].value_range is not None for run in runs
        )
        text += ", ┊ a shown change" * bool(changes) + ", ¦ other tasks" * bool(others)
        yield Trend(text, tuple(_point(run) for run in runs), changes, others)


def _point(run: HistoryRun) -> tuple[float | None, float, float, float]:
    value = run.estimates[0]
    least, largest = value.value_ends
    bounds = largest, value.low or 0.0, value.high or 0.0
    return (least if run.has_verdicts else None), *bounds


def _changes(history: History) -> Iterator[Block]:
    apart = [run for run in history.runs[1:] if run.shares_no_task]
    if not history.changes:
        text = "No change of the agent is shown."
        if len(history.runs) == 1:
            text = "One run shows no change: there is none to compare it with."
        elif apart:
            text = "No change of the agent is shown where runs can be compared."
        yield Sentence(text, "lead")
    for change in history.changes:
        yield _finding(change)
    yield from _reading_notes(history, apart)
    if len(history.runs) > 1:
        yield Note(
            f"Looked at after every run; a series without a change shows one in at most "
            f"{percent(history.error, 0)} of years of {LOOKS_PER_YEAR} runs, if its attempts are "
            "independent. Nights that differ by themselves, as under load, are allowed for as far "
            "as earlier runs show it. Runs are compared at the tasks they share: new and removed "
            "tasks are no change of the agent."
        )
    if not history.is_dated:
        yield Note("Not every run records when it began: runs are in the order of the sources.")
    yield from _left_out(history)


def _reading_notes(history: History, apart: Sequence[HistoryRun]) -> Iterator[Block]:
    """Notes on a drift, and on tasks that came and went."""
    words = [entry.change.direction for entry in history.changes]
    if any(first == second != "mixed" for first, second in pairwise(words)):
        text = "Several changes in one direction may be one slow drift, which has no first run."
        yield Note(text)
    for run in apart:
        yield Note(
            f"{upper_first(_run_words(run))}: no task is one of the runs before, so that they "
            "cannot be compared."
        )
    moved = [run for run in history.runs[1:] if run.added or run.removed]
    for run in [run for run in moved if run not in apart][-_MOST_SUITE_CHANGES:]:
        yield Note(
            f"{upper_first(_run_words(run))}: {', '.join(_task_words(run))}; values before and "
            "since are of other tasks."
        )


def _left_out(history: History) -> Iterator[Block]:
    if history.copies:
        yield Note(f"{counted(history.copies, 'run')} left out: other sources have the same.")
    if history.partial:
        sources = some(list(history.partial), _MOST_TASKS)
        yield Sentence(f"Left out, since only a part could be read: {sources}.", "warning")
    for suite, agent, runs in history.others:
        yield Note(
            f"Left out: {counted(runs, 'run')} of {agent} at {suite or 'a suite without a name'}.",
            level=Level.FULL,
        )
    if history.others:
        count = counted(sum(runs for _, _, runs in history.others), "run")
        yield Note(f"{count} of other agents or suites left out.", level=Level.SHORT)


def _finding(entry: ShownChange) -> Finding:
    change = entry.change
    points = 100 * (change.after - change.before)
    details = [
        f"pass^1 {number(change.before)} before, {number(change.after)} since, at "
        f"{counted(change.shared, 'shared task')} ({points:+.1f} points)"
    ]
    if change.earliest != change.latest:
        ends = f"run {change.earliest + 1} and run {change.latest + 1}"
        details.append(f"it began between {ends} (95%)")
    moved = {w: [str(t) for t in change.tasks if t.change == w] for w in ("broke", "improved")}
    details += [f"{word}: {some(tasks, _MOST_TASKS)}" for word, tasks in moved.items() if tasks]
    if entry.differences:
        texts = [difference_text(difference) for difference in entry.differences]
        details.append(f"changed there: {some(texts, 6)}")
    else:
        details.append("nothing that both runs record changed there")
    if entry.since.is_other_suite:
        details.append("the judge or the tests changed at this run, so it may be theirs")
    if change.direction == "mixed":
        details.insert(1, "the mean is not shown to have changed")
    sign = "✓" if change.direction == "rise" else "✗"
    return Finding(sign, entry.verdict, f"since {_run_words(entry.since)}", tuple(details))


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
    header = ("run", "started (UTC)", *metrics, "missing", "tasks", "attempts")
    rows = tuple(_row(run, metrics) for run in reversed(history.runs))
    if not any(run.run.outcomes.total_missing for run in history.runs):
        place = header.index("missing")
        header, rows = (
            (*header[:place], *header[place + 1 :]),
            tuple((*row[:place], *row[place + 1 :]) for row in rows),
        )
    yield Table(header, rows, "Runs, the newest first", left=(0, 1), level=Level.FULL)
    narrow = tuple(row[:-2] for row in rows)
    more = "; --full lists them all, and what changed between runs"
    yield Table(header[:-2], narrow, "", (0, 1), _MOST_ROWS, more, level=Level.SHORT)
    changes = tuple(
        (f"{run.place + 1}", run.time, "; ".join(words))
        for run in reversed(history.runs)
        if (words := changed_words(run))
    )
    if changes:
        caption = "What changed since the run before"
        yield Table(("run", "started", "change"), changes, caption, (0, 1, 2), level=Level.FULL)


def _row(run: HistoryRun, metrics: Sequence[str]) -> tuple[str, ...]:
    values = {str(one.metric): f"{one.value_text()} {one.interval_text()}" for one in run.estimates}
    if not run.has_verdicts:
        values = dict.fromkeys(values, "no verdict")
    return (
        f"{run.place + 1} {run.run.id}".rstrip(),
        run.time,
        *(values.get(word, "-") for word in metrics),
        f"{run.run.outcomes.total_missing:,}",
        f"{len(run.run.outcomes):,}",
        f"{run.run.outcomes.attempts:,}",
    )


def changed_words(run: HistoryRun) -> list[str]:
    """Differences from the run before: recorded settings, and tasks that came and went."""
    return [*(difference_text(difference) for difference in run.differences), *_task_words(run)]


def _task_words(run: HistoryRun) -> list[str]:
    counts = {"new task": len(run.added), "removed task": len(run.removed)}
    return [counted(count, word) for word, count in counts.items() if count]
