"""Two runs or more, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat._serialize import to_data
from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import render_parts
from passhat.dashboard.run_summaries import Summary
from passhat.dashboard.views.task_table import DOTS_UP_TO
from passhat.errors import InvalidValue, NotComparable, PasshatError
from passhat.reporting.documents.verdicts import comparison_document, pair_table, result_table
from passhat.reporting.task_changes import TaskChange, task_changes
from passhat.stats.compare import Comparison, Comparisons, compare, compare_all
from passhat.stats.outcomes import Run, Verdict
from passhat.stats.terms import Terms

_RUN_NAMES = ("run 1", "run 2", "run 3", "run 4", "run 5", "run 6")

_MOST_RUNS = 6
_MOST_TASKS = 200
_OFFERED = 200
_CONSIDERED = 20
"""Runs among which the two that a page opens on are looked for."""


@dataclass(frozen=True, slots=True)
class Side:
    """Counts of a task under a run."""

    c: int
    n: int
    marks: tuple[tuple[int, Verdict], ...]


@dataclass(frozen=True, slots=True)
class TaskAcrossRuns:
    """A task under all compared runs."""

    task: str
    sides: tuple[Side | None, ...]
    change: TaskChange | None = None

    @property
    def kind(self) -> str:
        """won, lost, or nothing; of three and more: whether they differ."""
        if self.change is not None:
            return self.change.flip or ""
        shares = {side.c / side.n for side in self.sides if side is not None and side.n}
        return "differ" if len(shares) > 1 else ""


def comparison(state: AppState, request: PageRequest) -> Answer:
    """The claim, the table, and the changes task by task."""
    summaries = [state.summaries.find(word) for word in dict.fromkeys(request.texts("run"))]
    if "run" not in request.query and request.form == "html":
        summaries = _newest_pair(state)
    words = request.texts("metric") or ["pass^1"]
    allow = request.text("allow") in ("1", "on", "true")
    show = request.choice("show", ("changed", "all"))
    context: dict[str, object] = {
        "chosen": summaries,
        "offered": state.summaries.all()[:_OFFERED],
        "words": words,
        "allow": allow,
        "show": show,
        "most": _MOST_RUNS,
        # Two are A and B, as in every lift; more have numbers, as in the tables.
        "names": _RUN_NAMES if len(summaries) > 2 else ("A", "B", *_RUN_NAMES[2:]),
        "found": None,
        "trouble": "",
        "hint": "",
        "may_allow": False,
    }
    if len(summaries) < 2 and request.form == "html":
        return Html("compare.html.j2", context)
    try:
        runs, result = _compare(state, summaries, words, allow=allow)
    except PasshatError as error:
        if request.form != "html":
            raise
        trouble = {
            "trouble": error.message,
            "hint": error.hint or "",
            "may_allow": isinstance(error, NotComparable) and not allow,
        }
        return Html("compare.html.j2", context | trouble)
    if request.form == "json":
        changes = task_changes(runs[0], runs[1], words[0]) if len(runs) == 2 else ()
        return Json(to_data(result) | {"changes": to_data(changes)})
    if request.form == "csv":
        table = result_table(result) if isinstance(result, Comparison) else pair_table(result)
        return Csv(table.header, table.rows)
    document = comparison_document(result, runs)
    all_rows = _task_rows(state, summaries, runs, words[0])
    flips = [row for row in all_rows if row.kind]
    rows = all_rows if show == "all" else flips
    return Html(
        "compare.html.j2",
        context
        | {
            "found": result,
            "lead": render_parts(document, ["lead", "claims"]),
            "numbers": render_parts(document, ["results", "failures", "slices", "curves"]),
            "steps": render_parts(document, ["next"]),
            "agreement": render_parts(document, ["evidence"]),
            "beside": rows[:_MOST_TASKS],
            "left_out": max(0, len(rows) - _MOST_TASKS),
            "won": sum(row.kind == "won" for row in all_rows),
            "lost": sum(row.kind == "lost" for row in all_rows),
            "differ": len(flips),
            "tasks": len(all_rows),
        },
    )


def _compare(
    state: AppState, chosen: Sequence[Summary], words: Sequence[str], *, allow: bool
) -> tuple[list[Run], Comparison | Comparisons]:
    if not 2 <= len(chosen) <= _MOST_RUNS:
        raise InvalidValue(
            f"two to {_MOST_RUNS} runs can be compared here, not {len(chosen)}.",
            hint="Choose them with run=ID&run=ID.",
        )
    runs = [state.snapshots.run(summary) for summary in chosen]
    if len(runs) == 2:
        return runs, compare(runs[0], runs[1], list(words), allow=allow)
    return runs, compare_all(runs, list(words), allow=allow)


def _newest_pair(state: AppState) -> list[Summary]:
    """The newest run and the newest one before it that it can be compared with, the older first.

    Another agent is preferred to another run of the same one.
    """
    runs = state.summaries.all()
    candidates = [run for run in runs if run.counts.attempts and not run.is_all_missing]
    suites = [(*_suite(state, run), run.head.planned) for run in candidates[:_CONSIDERED]]
    for place, (newer, suite) in enumerate(zip(candidates, suites, strict=False), 1):
        rest = zip(candidates[place:], suites[place:], strict=False)
        older = [summary for summary, other in rest if other == suite]
        others = [summary for summary in older if summary.head.agent != newer.head.agent]
        if older:
            return [(others or older)[0], newer]
    return []


def _suite(state: AppState, summary: Summary) -> tuple[object, ...]:
    protocol = state.reading.protocol(summary.head.key)
    return summary.head.suite, protocol.suite_fingerprint, protocol.tests_fingerprint


def _task_rows(
    state: AppState, chosen: Sequence[Summary], runs: Sequence[Run], word: str
) -> list[TaskAcrossRuns]:
    """Every task of any of the runs; of two, the largest gain first."""
    sides = [_sides(state, summary, run) for summary, run in zip(chosen, runs, strict=True)]
    changes: dict[str, TaskChange] = {}
    if len(runs) == 2:
        changes_of_pair = task_changes(runs[0], runs[1], word, Terms(drop_short=True))
        changes = {change.task: change for change in changes_of_pair}
    tasks = dict.fromkeys([*changes, *(task for run in runs for task in run.outcomes.tasks)])
    return [
        TaskAcrossRuns(task, tuple(side.get(task) for side in sides), changes.get(task))
        for task in tasks
    ]


def _sides(state: AppState, summary: Summary, run: Run) -> dict[str, Side]:
    """Counts of every task; dots where a run is small enough for them."""
    outcomes, key = run.outcomes, summary.head.key
    marks: dict[str, list[tuple[int, Verdict]]] = {}
    if summary.head.planned <= DOTS_UP_TO and len(outcomes) <= _MOST_TASKS:
        keys = state.reading.task_keys(key, list(outcomes.tasks))
        marks_by_key = state.reading.marks(key, list(keys.values()))
        marks = {task: marks_by_key.get(task_key, []) for task, task_key in keys.items()}
    return {
        task: Side(int(c), int(n), tuple(marks.get(task, ())))
        for task, c, n in zip(outcomes.tasks, outcomes.c, outcomes.n, strict=True)
    }
