"""The tasks of a run: filtered and sorted as arrays, and only those on the page looked up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.dashboard.app_state import AppState, PageRequest
from passhat.dashboard.run_snapshots import RunSnapshot
from passhat.dashboard.run_summaries import Summary
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes import Outcomes, Verdict

__all__ = ["DOTS_UP_TO", "TaskLine", "TaskList", "task_list"]

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
    """One page of the tasks that fit."""

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
    """The tasks that were asked for; none before the first attempt has finished."""
    asked = {
        "show": request.choice("show", SHOW),
        "sort": request.choice("sort", SORT),
        "task": request.text("task"),
    }
    if known is None:
        return TaskList((), 0, summary.counts.tasks, 1, 1, asked)
    outcomes = known.run.outcomes
    rows = _sorted(outcomes, _fitting(outcomes, asked), asked["sort"])
    pages = max(1, -(-len(rows) // _PAGE))
    page = min(request.whole("page", 1), pages)
    chosen = rows[(page - 1) * _PAGE : page * _PAGE].tolist()
    names = [outcomes.tasks[i] for i in chosen]
    keys = state.reading.task_keys(summary.head.key, names)
    few = [keys[n] for n, i in zip(names, chosen, strict=True) if _made(outcomes, i) <= DOTS_UP_TO]
    marks = state.reading.marks(summary.head.key, few)
    lines = tuple(
        TaskLine(
            name,
            " · ".join(values[i] for values in outcomes.labels.values() if values[i]),
            int(outcomes.n[i]),
            int(outcomes.c[i]),
            int(outcomes.missing[i]),
            tuple(marks.get(keys[name], ())),
        )
        for name, i in zip(names, chosen, strict=True)
    )
    return TaskList(lines, len(rows), len(outcomes), page, pages, asked)


def _made(outcomes: Outcomes, index: int) -> int:
    return int(outcomes.n[index] + outcomes.missing[index])


def _fitting(outcomes: Outcomes, asked: dict[str, str]) -> IntArray:
    n, c = outcomes.n, outcomes.c
    fits = {
        "all": np.ones(len(n), bool),
        "sometimes": (c > 0) & (c < n),
        "never": (c == 0) & (n > 0),
        "always": (c == n) & (n > 0),
        "missing": outcomes.missing > 0,
    }[asked["show"]]
    rows = np.flatnonzero(fits)
    word = asked["task"].lower()
    if word:
        rows = np.array([i for i in rows.tolist() if word in _searched(outcomes, i)], np.int64)
    return rows


def _searched(outcomes: Outcomes, index: int) -> str:
    labels = (values[index] for values in outcomes.labels.values())
    return " ".join([outcomes.tasks[index], *labels]).lower()


def _sorted(outcomes: Outcomes, rows: IntArray, way: str) -> IntArray:
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
