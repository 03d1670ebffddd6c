"""The attempts of a run in order, task by task, as they came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from passhat._display import counted, percent
from passhat.reporting.document import Block, Document, Facts, Heading, Sentence, Table
from passhat.reporting.run_summary import MARKS, AttemptLine, Summary, TaskSummary
from passhat.stats.outcomes import Verdict

_IN_FULL = 3
"""Up to this many tasks are shown one by one."""
_MOST_TASK_ROWS = 60
_MOST_MARKS = 40
_MOST_REASONS = 20
_ANSWERS = {True: "✓ yes", False: "✗ no", None: "? open"}


def attempts_document(summary: Summary, *, verbose: bool = False) -> Document:
    """Build the document of a run's attempts; ``verbose`` shows everything that was kept."""
    if len(summary.tasks) > _IN_FULL:
        return Document.of("Attempts", _all_tasks(summary, verbose))
    parts = (_one_task(task, summary.details, verbose) for task in summary.tasks)
    return Document.of("Attempts", chain.from_iterable(parts))


def totals_document(summary: Summary) -> Document:
    """Build first^k, window^(k/2), rate, steps and failures over all tasks, a line each."""
    return Document.of("Attempts", [Facts(tuple(total_facts(summary)))])


def _one_task(task: TaskSummary, details: Sequence[AttemptLine], verbose: bool) -> Iterator[Block]:
    yield Heading(task.task, _mark_row(task, verbose))
    scored_text = counted(task.scored, "judged attempt")
    rate = "–" if task.rate is None else f"{percent(task.rate, 0)} ({task.passed} of {scored_text})"
    steps, total = _measure(task.steps_on_success, ".1f"), _measure(task.total_steps, ",.0f")
    yield Facts(
        (
            (f"first^{task.k}", f"{_ANSWERS[task.first]}   all of the first {task.k} passed"),
            (f"window^{task.half}", f"{_ANSWERS[task.in_a_row]}   {_in_a_row(task.half)}"),
            ("success rate", rate),
            ("steps", f"{steps} on average on success, {total} in all"),
            *(("failures", f"{why}: {count}") for why, count in task.failures.items()),
            *(("missing", f"{why}: {count}") for why, count in task.missing.items()),
        )
    )
    rows = tuple(
        (
            *(MARKS[line.verdict], line.id, _measure(line.steps, "g")),
            *(_measure(line.seconds, ".1f"), line.reason),
        )
        for line in details
        if line.task == task.task
    )
    header = ("", "attempt", "steps", "seconds", "reason")
    limit = None if verbose else _MOST_REASONS
    yield Table(header, rows, left=(0, 1, 4), most=limit, more="; --verbose lists them")


def _in_a_row(count: int) -> str:
    return "some attempt passed" if count == 1 else f"some {count} in a row passed"


def _all_tasks(summary: Summary, verbose: bool) -> Iterator[Block]:
    title = f"{counted(len(summary.tasks), 'task')}, attempts as they came"
    yield Heading(title, "✓ passed  ✗ failed  ? missing  · not made")
    rows = tuple(
        (
            *(task.task, _mark_row(task, verbose)),
            *(_ANSWERS[task.first][0], _ANSWERS[task.in_a_row][0]),
            "–" if task.rate is None else percent(task.rate, 0),
            *(_measure(task.steps_on_success, ".1f"), _measure(task.total_steps, ",.0f")),
            _counts({**task.failures, **task.missing}),
        )
        for task in summary.tasks
    )
    header = ("task", "attempts", f"first^{summary.k}", f"window^{summary.half}", "rate")
    yield Table(
        (*header, "steps ✓", "steps", "not passed"),
        rows,
        left=(0, 1, 7),
        most=None if verbose else _MOST_TASK_ROWS,
        more="; --verbose lists them",
    )
    yield Facts(tuple(total_facts(summary)))
    yield from _reasons(summary, verbose)


def total_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """The same over all tasks, as observed; estimates are in the report."""
    half = summary.half
    of = f"of {counted(len(summary.tasks), 'task')}"
    for name, which in ((f"first^{summary.k}", "first"), (f"window^{half}", "in_a_row")):
        answers = summary.answers(which)
        still = f", open on {answers[None]:,}" if answers[None] else ""
        yield name, f"on {answers[True]:,} {of}{still}"
    rate = percent(summary.passed / summary.scored, 0) if summary.scored else "–"
    judged_text = counted(summary.scored, "judged attempt")
    yield "success rate", f"{rate} ({summary.passed:,} of {judged_text})"
    steps, total = _measure(summary.steps_on_success, ".1f"), _measure(summary.total_steps, ",.0f")
    yield "steps", f"{steps} on average on success, {total} in all"
    for title, counts in (("failures", summary.failures), ("missing", summary.missing)):
        if counts:
            yield title, _counts(counts)


def _reasons(summary: Summary, verbose: bool) -> Iterator[Block]:
    """Reasons why attempts did not pass, the first attempts one by one."""
    lines = [line for line in summary.details if line.verdict is not Verdict.PASSED]
    if not lines:
        return
    visible = lines if verbose else lines[:_MOST_REASONS]
    yield Heading("Attempts that did not pass", rank=3)
    yield Facts(tuple((f"{MARKS[line.verdict]} {line.id}", line.reason) for line in visible))
    hidden = len(lines) - len(visible) + summary.not_detailed
    if hidden:
        how = "passhat show RUN TASK#N shows any of them" if verbose else "--verbose lists them"
        yield Sentence(f"and {hidden:,} more; {how}")


def _mark_row(task: TaskSummary, verbose: bool) -> str:
    marks = task.marks
    return marks if verbose or len(marks) <= _MOST_MARKS else f"{marks[:_MOST_MARKS]}…"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{why} {count}" for why, count in counts.items())


def _measure(value: float | None, digits: str) -> str:
    return "–" if value is None else f"{value:{digits}}"
