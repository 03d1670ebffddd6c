"""Failures by cause and both sides of a gate, the same lines on every screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from passhat._display import duration, money, percent, percent_interval
from passhat.reporting.document import Bar, Block, Level, Sentence, Table
from passhat.stats.arrays import LazyModule
from passhat.stats.outcomes import (
    FailureKind,
    Failures,
    Run,
    no_answer_text,
    summarize_failures,
    summarize_task_failures,
)

if TYPE_CHECKING:
    from passhat.stats import gate
    from passhat.stats.compare.claims import Evidence
    from passhat.stats.compare.task_changes import TaskChange
else:
    gate = LazyModule("passhat.stats.gate")  # the report on a run has none


def failure_lines(failures: Failures) -> Iterator[Block]:
    """A line for each kind of failure, with its count and most common messages."""
    if failures.warning:
        yield Sentence(f"{failures.warning}.", "warning")
    for which, words in failures.lines():
        text = f"{which}: {words}" if words else which
        yield Sentence(text, level=Level.SHORT)


def broken_lines(failures: Failures) -> Iterator[Block]:
    """That failures are no wrong answers, with their causes; nothing where all of them are."""
    if failures.warning:
        yield Sentence(f"{failures.warning}.", "warning")
    if not failures.total or failures.total == failures.count(FailureKind.WRONG_ANSWER):
        return
    subject = f"The {failures.total:,} failures are"
    lines = failures.lines()
    if len(lines) > 1:
        yield Sentence(f"{subject} {failures.sentence()}.", "lead")
        return
    ((_, words),) = lines
    (kind,) = {group.kind for group in failures.groups}
    which = f"{subject} {kind}s"
    if failures.total == 1:
        which = f"The only failure is {'an' if kind is FailureKind.EXCEPTION else 'a'} {kind}"
    yield Sentence(f"{which}: {words}." if words else f"{which}.", "lead")


_MOST_TASKS = 3


def dropped_lines(dropped: Sequence[gate.DroppedTask]) -> Iterator[Block]:
    """The first tasks that dropped with the causes of their failures, a line each."""
    for task in [task for task in dropped if task.cause][:_MOST_TASKS]:
        which = f"{task.task} broke" if task.status == "broken" else f"{task.task} (suspected)"
        among = f", {task.counted_in}" if task.counted_in else ""
        yield Sentence(f"{which}{among}: {task.cause}", level=Level.SHORT)


def dropped_table(dropped: Sequence[gate.DroppedTask]) -> Iterator[Block]:
    """Tasks that dropped, each with the kinds of its failures and the most common message."""
    if any(task.cause for task in dropped):
        rows = tuple(
            (
                task.task,
                task.status,
                f"{task.change.passed_a} of {task.change.attempts_a}",
                f"{task.change.passed_b} of {task.change.attempts_b}",
                task.cause,
            )
            for task in dropped
        )
        header = ("task", "", "before", "now", "failures of the new run")
        among = f", {dropped[0].counted_in}" if dropped[0].counted_in else ""
        caption = f"Causes of the tasks that dropped{among}"
        yield Table(header, rows, caption, left=(0, 1, 4), level=Level.FULL)


def change_bar(
    evidence: Evidence, detectable: float | None = None, level: Level = Level.FULL
) -> Iterator[Block]:
    """The change of a metric with its interval, drawn; nothing where nothing was judged."""
    if evidence.unjudged or evidence.alternative != "two-sided":
        return
    text, ends = f"Points on {evidence.population}: ● change, │ none", evidence.interval
    low, value, high = (100 * x for x in (ends.low, evidence.lift, ends.high))
    if detectable is not None:
        text += f", ▼ caught in 8 of 10 runs ({100 * detectable:g})"
        detectable *= 100
    yield Bar(text, low, min(max(value, low), high), high, detectable, level=level)


def broken_table(changes: Sequence[TaskChange], run: Run) -> Iterator[Block]:
    """The same for the broken tasks of a comparison."""
    failures = ((change, summarize_task_failures(run, change.task)) for change in changes)
    yield from dropped_table([gate.DroppedTask(one, "broken", why) for one, why in failures])


def failure_table(failures: Failures, who: str = "") -> Iterator[Table]:
    """Every category with its kind, count and most common message."""
    if not failures.groups:
        return
    rows = tuple(
        (
            *(str(group.kind), group.category, f"{group.count:,}", group.message),
            f"{group.message_count:,}" if group.message else "",
        )
        for group in failures.groups
    )
    header = ("kind", "category", "attempts", "most common message", "times")
    caption = "Failures by cause" + (f", {who}" if who else "")
    yield Table(header, rows, caption, left=(0, 1, 3), level=Level.FULL)


def no_answer_lines(labels: Sequence[str], runs: Sequence[Run]) -> Iterator[Sentence]:
    """A sentence for each run of which no attempt gave an answer, to be read before numbers."""
    for label, run in zip(labels, runs, strict=True):
        if no_answer_text(run):
            causes = summarize_failures(run).sentence()
            yield Sentence(f"No attempt of {label} gave an answer: {causes}.", "warning")


def label_failures(labels: Sequence[str], runs: Sequence[Run]) -> Iterator[Block]:
    """The causes in several runs, each under its label."""
    for label, run in zip(labels, runs, strict=True):
        failures = summarize_failures(run)
        if failures.warning:
            yield Sentence(f"{label}: {failures.warning}.", "warning", level=Level.SHORT)
        if failures.groups and not no_answer_text(run):  # or it stands before the numbers
            yield Sentence(f"{label} failed by {failures.sentence()}.", level=Level.SHORT)
        yield from failure_table(failures, label)


def side_table(result: gate.GateResult) -> Iterator[Block]:
    """Before and after, each with its interval, and what the attempts took."""
    if not result.sides:
        return
    rows = tuple(
        (
            side.name,
            percent(side.value, 1),
            "–" if side.low is None else percent_interval(side.low, side.high or 0.0),
            f"{side.attempts:,}",
            f"{side.missing:,}",
            "–" if side.cost is None else money(side.cost),
            "–" if side.seconds is None else duration(side.seconds),
        )
        for side in result.sides
    )
    subject = str(result.results[0].rule.subject)
    header = ("run", subject, "interval", "attempts", "missing", "cost", "time")
    caption = "Before and after, each by itself, about these tasks; time is the sum over attempts"
    yield Table(header, rows, caption, level=Level.FULL)
