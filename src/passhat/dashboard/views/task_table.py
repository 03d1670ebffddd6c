"""The tasks of a run: filtered and sorted as arrays; only those on the page are looked up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.guard import NotFound
from passhat.dashboard.run_snapshots import RunSnapshot
from passhat.dashboard.run_summaries import Summary
from passhat.errors import PasshatError
from passhat.stats.arrays import IntArray
from passhat.stats.estimate import Estimate, estimate_all
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Outcomes, Verdict
from passhat.stats.terms import Population
from passhat.store.queries import AttemptFilter, AttemptLine

SCHEMA = "passhat.task/1"
_MOST_LINES = 1_000
_OTHER_RUNS = 12


def task(state: AppState, request: PageRequest) -> Answer:
    """Its attempts one by one."""
    summary = state.summaries.find(request.path["run"])
    name, form, key = _find_task(state, summary, request)
    lines = state.reading.lines(summary.head.key, AttemptFilter(task=key), _MOST_LINES, None)
    if form == "csv":
        return Csv.of_dicts([line.to_dict() for line in lines], "task")
    n = sum(line.verdict is not Verdict.MISSING for line in lines)
    passed = sum(line.verdict is Verdict.PASSED for line in lines)
    estimates = _estimates(name, lines)
    labels = state.reading.task_labels(summary.head.key, name)
    facts = {
        "task": name,
        "labels": dict(labels),
        "n": n,
        "c": passed,
        "missing": len(lines) - n,
        "estimates": estimates,
    }
    if form == "json":
        return Json({"schema": SCHEMA, "run": summary.id, **facts, "attempts": lines})
    others = _in_other_runs(state, summary, name)
    return Html("task.html.j2", {"run": summary, **facts, "lines": lines, "others": others})


def _find_task(state: AppState, summary: Summary, request: PageRequest) -> tuple[str, str, int]:
    """The task of a request; a task whose own name ends in .json is recognized, too."""
    name, form = request.path["task"], request.form
    for task, page_form in ((name, form), (f"{name}.{form}", "html")):
        key = state.reading.task_key(summary.head.key, task)
        if key is not None:
            return task, page_form, key
    raise NotFound(f"run {summary.id} has no task {name!r}.")


def _estimates(name: str, lines: list[AttemptLine]) -> tuple[Estimate, ...]:
    """Estimates for this one task, attempted again."""
    if not lines:
        return ()
    marks = [int(line.verdict) for line in lines]
    n, c = sum(mark >= 0 for mark in marks), marks.count(1)
    outcomes = Outcomes.from_counts([n], [c], [name], missing=[len(marks) - n])
    metrics = dict.fromkeys([PassHat(1), PassHat(max(n, 1))])
    try:
        return estimate_all(outcomes, list(metrics), about=Population.THESE_TASKS)
    except PasshatError:
        return ()


def _in_other_runs(state: AppState, summary: Summary, name: str) -> list[dict[str, object]]:
    """The same task in other runs of the suite, newest first."""
    other_runs: list[dict[str, object]] = []
    for other in state.summaries.all():
        if other.head.suite != summary.head.suite or other.id == summary.id:
            continue
        key = state.reading.task_key(other.head.key, name)
        if key is None or other.head.planned > DOTS_UP_TO:
            continue
        marks = state.reading.marks(other.head.key, [key]).get(key)
        if marks:
            passed = sum(verdict is Verdict.PASSED for _, verdict in marks)
            scored_count = sum(verdict is not Verdict.MISSING for _, verdict in marks)
            other_runs.append({"run": other, "marks": marks, "c": passed, "n": scored_count})
        if len(other_runs) == _OTHER_RUNS:
            break
    return other_runs


SHOW = ("all", "sometimes", "never", "always", "missing")
SORT = ("suite", "unsettled", "fewest", "most", "name")
DOTS_UP_TO = 40
"""Attempts at one task up to which each is a dot."""
_PAGE = 60


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task with its counts; ``marks`` is empty where there are too many attempts for dots."""

    task: str
    labels: str
    n: int
    c: int
    missing: int
    marks: tuple[tuple[int, Verdict], ...]


@dataclass(frozen=True, slots=True)
class TaskList:
    """A page of the tasks that match the filter."""

    lines: tuple[TaskLine, ...]
    count: int
    total: int
    page: int
    pages: int
    asked: dict[str, str]
    show_words: tuple[str, ...] = SHOW
    sort_words: tuple[str, ...] = SORT


def task_list(
    state: AppState, summary: Summary, known: RunSnapshot | None, request: PageRequest
) -> TaskList:
    """The requested tasks; none before the first attempt has finished."""
    filters = {
        "show": request.choice("show", SHOW),
        "sort": request.choice("sort", SORT),
        "task": request.text("task"),
    }
    if known is None:
        return TaskList((), 0, summary.counts.tasks, 1, 1, filters)
    outcomes = known.run.outcomes
    rows = _sort_rows(outcomes, _matching_rows(outcomes, filters), filters["sort"])
    page, pages, on_page = request.page(len(rows), _PAGE)
    page_rows = rows[on_page].tolist()
    names = [outcomes.tasks[i] for i in page_rows]
    keys = state.reading.task_keys(summary.head.key, names)
    has_dots = (outcomes.n + outcomes.missing <= DOTS_UP_TO)[page_rows].tolist()
    dot_keys = [keys[name] for name in compress(names, has_dots)]
    marks = state.reading.marks(summary.head.key, dot_keys)
    lines = tuple(
        TaskLine(
            name,
            " · ".join(values[i] for values in outcomes.labels.values() if values[i]),
            int(outcomes.n[i]),
            int(outcomes.c[i]),
            int(outcomes.missing[i]),
            tuple(marks.get(keys[name], ())),
        )
        for name, i in zip(names, page_rows, strict=True)
    )
    return TaskList(lines, len(rows), len(outcomes), page, pages, filters)


def _matching_rows(outcomes: Outcomes, filters: dict[str, str]) -> IntArray:
    n, c = outcomes.n, outcomes.c
    fits = {
        "all": np.ones(len(n), bool),
        "sometimes": (c > 0) & (c < n),
        "never": (c == 0) & (n > 0),
        "always": (c == n) & (n > 0),
        "missing": outcomes.missing > 0,
    }[filters["show"]]
    rows = np.flatnonzero(fits)
    word = filters["task"].lower()
    if word:
        rows = np.array([i for i in rows.tolist() if word in _search_text(outcomes, i)], np.int64)
    return rows


def _search_text(outcomes: Outcomes, index: int) -> str:
    labels = (values[index] for values in outcomes.labels.values())
    return " ".join([outcomes.tasks[index], *labels]).lower()


def _sort_rows(outcomes: Outcomes, rows: IntArray, way: str) -> IntArray:
    if way == "suite":
        return rows
    if way == "name":
        return np.array(sorted(rows.tolist(), key=lambda i: outcomes.tasks[i]), np.int64)
    n, c = outcomes.n[rows], outcomes.c[rows]
    # Jeffreys' prior, as in the report: highest for few attempts and a rate near one half.
    a, b = c + 0.5, n - c + 0.5
    value = {
        "unsettled": -a * b / ((a + b) ** 2 * (a + b + 1)),
        "fewest": a / (a + b),
        "most": -a / (a + b),
    }[way]
    return rows[np.argsort(value, kind="stable")]
