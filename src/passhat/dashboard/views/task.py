"""One task of a run: its attempts, and the same task in other runs."""

from __future__ import annotations

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.guard import NotFound
from passhat.dashboard.run_summaries import Summary
from passhat.dashboard.views.task_table import DOTS_UP_TO
from passhat.errors import PasshatError
from passhat.stats.estimate import Estimate, estimate_all
from passhat.stats.outcomes import Outcomes, Verdict
from passhat.store.queries import AttemptLine, Wanted

__all__ = ["task"]

SCHEMA = "passhat.task/1"
_MOST_LINES = 1_000
_OTHER_RUNS = 12


def task(state: AppState, request: PageRequest) -> Answer:
    """Its attempts one by one."""
    summary = state.summaries.one(request.path["run"])
    name, form, key = _which(state, summary, request)
    lines = state.reading.lines(summary.head.key, Wanted(task=key), _MOST_LINES, None)
    if form == "csv":
        rows = [one.to_dict() for one in lines]
        return Csv([*rows[0]] if rows else ["task"], [[*row.values()] for row in rows])
    n = sum(one.verdict is not Verdict.MISSING for one in lines)
    passed = sum(one.verdict is Verdict.PASSED for one in lines)
    estimates = _estimates(name, lines)
    labels = state.reading.task_labels(summary.head.key, name)
    data = {
        "schema": SCHEMA,
        "run": summary.id,
        "task": name,
        "labels": dict(labels),
        "n": n,
        "c": passed,
        "missing": len(lines) - n,
        "estimates": [one.to_dict() for one in estimates],
        "attempts": [one.to_dict() for one in lines],
    }
    if form == "json":
        return Json(data)
    return Html(
        "task.html.j2",
        {
            "run": summary,
            "task": name,
            "labels": labels,
            "n": n,
            "c": passed,
            "missing": len(lines) - n,
            "lines": lines,
            "estimates": estimates,
            "others": _others(state, summary, name),
        },
    )


def _which(state: AppState, summary: Summary, request: PageRequest) -> tuple[str, str, int]:
    """The task; one whose own name ends in .json is found by it, too."""
    name, form = request.path["task"], request.form
    for known, shown in ((name, form), (f"{name}.{form}", "html")):
        key = state.reading.task_key(summary.head.key, known)
        if key is not None:
            return known, shown, key
    raise NotFound(f"run {summary.id} has no task {name!r}.")


def _estimates(name: str, lines: list[AttemptLine]) -> tuple[Estimate, ...]:
    """Estimates for this one task, attempted again."""
    if not lines:
        return ()
    marks = [int(one.verdict) for one in lines]
    n, c = sum(mark >= 0 for mark in marks), marks.count(1)
    outcomes = Outcomes.from_counts([n], [c], [name], missing=[len(marks) - n])
    words = dict.fromkeys(["pass^1", f"pass^{max(n, 1)}"])
    try:
        return estimate_all(outcomes, list(words), about="these tasks")
    except PasshatError:
        return ()


def _others(state: AppState, summary: Summary, name: str) -> list[dict[str, object]]:
    """The same task in other runs of the suite, newest first."""
    found: list[dict[str, object]] = []
    for other in state.summaries.all():
        if other.head.suite != summary.head.suite or other.id == summary.id:
            continue
        key = state.reading.task_key(other.head.key, name)
        if key is None or other.head.planned > DOTS_UP_TO:
            continue
        marks = state.reading.marks(other.head.key, [key]).get(key)
        if marks:
            passed = sum(verdict is Verdict.PASSED for _, verdict in marks)
            scored = sum(verdict is not Verdict.MISSING for _, verdict in marks)
            found.append({"run": other, "marks": marks, "c": passed, "n": scored})
        if len(found) == _OTHER_RUNS:
            break
    return found
