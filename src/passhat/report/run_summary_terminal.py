"""The summary of a run in a terminal: in full for a few tasks, a row each for many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from passhat._display import counted
from passhat.report.run_summary import MARKS, AttemptLine, Summary, TaskSummary
from passhat.report.tables import captured, facts, plain, plain_table
from passhat.stats.outcomes import Verdict

__all__ = ["render_summary"]

_IN_FULL = 3
"""Up to this many tasks are shown one by one."""
_MOST_ROWS = 60
_MOST_MARKS = 40
_MOST_REASONS = 20
_WORDS = {True: "✓ yes", False: "✗ no", None: "? open"}


def render_summary(summary: Summary, console: Console, *, full: bool = False) -> str:
    """What happened, task by task; ``full`` leaves nothing out that was kept."""
    return captured(console, lambda: _parts(summary, full))


def _parts(summary: Summary, full: bool) -> Iterator[RenderableType]:
    if len(summary.tasks) <= _IN_FULL:
        for task in summary.tasks:
            yield from _one(task, summary.details, full)
        return
    yield from _many(summary, full)


def _one(task: TaskSummary, details: Sequence[AttemptLine], full: bool) -> Iterator[RenderableType]:
    yield Text.assemble(plain(task.task, "bold"), "  ", plain(_marks(task, full)))
    scored = counted(task.scored, "judged attempt")
    rate = "–" if task.rate is None else f"{task.rate:.0%} ({task.passed} of {scored})"
    steps, total = _number(task.steps_on_success, ".1f"), _number(task.total_steps, ",.0f")
    entries = [
        (f"first^{task.k}", f"{_WORDS[task.first]}   all of the first {task.k} passed"),
        (f"window^{task.half}", f"{_WORDS[task.in_a_row]}   some {task.half} in a row passed"),
        ("success rate", rate),
        ("steps", f"{steps} on average on success, {total} in all"),
        *(("failures", f"{why}: {count}") for why, count in task.failures.items()),
        *(("missing", f"{why}: {count}") for why, count in task.missing.items()),
    ]
    yield facts(entries)
    own = [line for line in details if line.task == task.task]
    most = len(own) if full else _MOST_REASONS
    yield plain_table(
        ("", "attempt", "steps", "seconds", "reason"),
        (
            (
                *(MARKS[line.verdict], line.id, _number(line.steps, "g")),
                *(_number(line.seconds, ".1f"), line.reason),
            )
            for line in own[:most]
        ),
        left=(0, 1, 4),
    )
    if len(own) > most:
        yield Text(f"and {counted(len(own) - most, 'more attempt')}; --verbose lists them")
    yield Text("")


def _many(summary: Summary, full: bool) -> Iterator[RenderableType]:
    half = summary.tasks[0].half
    yield Text.assemble(
        (f"{len(summary.tasks):,} tasks as they came", "bold"),
        "   ✓ passed  ✗ failed  ? missing  · not made",
    )
    shown = summary.tasks if full else summary.tasks[:_MOST_ROWS]
    header = ("task", "attempts", f"first^{summary.k}", f"window^{half}", "rate")
    yield plain_table(
        (*header, "steps ✓", "steps", "not passed"),
        (
            (
                *(task.task, _marks(task, full), _sign(task.first), _sign(task.in_a_row)),
                "–" if task.rate is None else f"{task.rate:.0%}",
                *(_number(task.steps_on_success, ".1f"), _number(task.total_steps, ",.0f")),
                _tally({**task.failures, **task.missing}),
            )
            for task in shown
        ),
        left=(0, 1, 7),
    )
    if len(shown) < len(summary.tasks):
        hidden = counted(len(summary.tasks) - len(shown), "more task")
        yield Text(f"and {hidden}; --verbose lists them")
    yield facts(_totals(summary, half))
    yield from _reasons(summary, full)
    yield Text("")


def _totals(summary: Summary, half: int) -> Iterator[tuple[str, str]]:
    """The same over all tasks, as it was seen; what is to be expected stands in the report."""
    of = f"of {counted(len(summary.tasks), 'task')}"
    for name, which in ((f"first^{summary.k}", "first"), (f"window^{half}", "in_a_row")):
        found = summary.answers(which)
        still = f", open on {found[None]:,}" if found[None] else ""
        yield name, f"on {found[True]:,} {of}{still}"
    rate = f"{summary.passed / summary.scored:.0%}" if summary.scored else "–"
    yield "success rate", f"{rate} ({summary.passed:,} of {summary.scored:,} judged attempts)"
    steps, total = _number(summary.steps_on_success, ".1f"), _number(summary.total_steps, ",.0f")
    yield "steps", f"{steps} on average on success, {total} in all"
    for title, counts in (("failures", summary.failures), ("missing", summary.missing)):
        if counts:
            yield title, _tally(counts)


def _reasons(summary: Summary, full: bool) -> Iterator[RenderableType]:
    """Why attempts did not pass, the first ones one by one."""
    bad = [line for line in summary.details if line.verdict is not Verdict.PASSED]
    if not bad:
        return
    most = len(bad) if full else _MOST_REASONS
    yield Text("Attempts that did not pass", style="bold")
    yield facts((f"{MARKS[line.verdict]} {line.id}", line.reason) for line in bad[:most])
    hidden = len(bad) - min(most, len(bad)) + summary.not_detailed
    if hidden:
        how = "passhat show RUN TASK#N shows any of them" if full else "--verbose lists them"
        yield Text(f"and {hidden:,} more; {how}")


def _marks(task: TaskSummary, full: bool) -> str:
    marks = task.marks
    return marks if full or len(marks) <= _MOST_MARKS else f"{marks[:_MOST_MARKS]}…"


def _sign(value: bool | None) -> str:
    return _WORDS[value][0]


def _tally(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{why} {count}" for why, count in counts.items())


def _number(value: float | None, digits: str) -> str:
    return "–" if value is None else f"{value:{digits}}"
