"""All runs, with their numbers, filters, search and sorting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passhat._serialize import to_data
from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.guard import Forbidden
from passhat.dashboard.run_summaries import Summary
from passhat.errors import InvalidValue
from passhat.stats.estimate import Estimate

__all__ = ["regrade_command", "runs", "start_command", "started"]


_FIELDS = {
    "agent": "--agent",
    "suite": "--suite",
    "attempts": "-n",
    "jobs": "--jobs",
    "seed": "--seed",
    "temperature": "--temperature",
    "name": "--name",
}
_NEEDED = ("agent", "suite", "attempts")


def started(state: AppState, request: PageRequest) -> Answer:
    """The form, and the commands started since the server is up."""
    if not state.allow_run:
        raise Forbidden(
            "runs cannot be started from here.", hint="Start the dashboard with --allow-run."
        )
    found = state.commands.all()
    if request.form == "json":
        return Json({"commands": [{"line": one.line, "code": one.code} for one in found]})
    if request.form == "csv":
        return Csv(("number", "line", "code"), [(one.number, one.line, one.code) for one in found])
    suites = sorted({one.head.suite for one in state.summaries.all() if one.head.suite})
    agents = sorted({one.head.agent for one in state.summaries.all()})
    template = "_started.html.j2" if request.part == "list" else "start.html.j2"
    return Html(template, {"commands": found, "suites": suites, "agents": agents})


def start_command(fields: Mapping[str, str]) -> list[str]:
    """Arguments of ``passhat run`` from the fields of the form."""
    for name in _NEEDED:
        if not fields.get(name, "").strip():
            raise InvalidValue(f"the field {name!r} is empty.")
    arguments = []
    for name, option in _FIELDS.items():
        value = fields.get(name, "").strip()
        if value:
            arguments.append(f"{option}{value}" if option == "-n" else f"{option}={value}")
    if not fields["attempts"].strip().isdigit():
        raise InvalidValue(f"attempts should be a whole number, not {fields['attempts']!r}.")
    return arguments


def regrade_command(state: AppState, run: str) -> list[str]:
    """Arguments of ``passhat regrade``: the run's id."""
    return [state.summaries.one(run).id]


STATUS = ("", "in progress", "complete", "stopped", "all missing")
COLUMNS = ("agent", "suite", "pass^1", "attempts", "missing", "started", "status")
_PAGE = 50


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the list shows it; the estimates are ``None`` until they are computed."""

    run: Summary
    temperature: str
    first: Estimate | None
    last: Estimate | None


def runs(state: AppState, request: PageRequest) -> Answer:
    """The runs that match, the newest first unless sorted otherwise."""
    everything = state.summaries.all()
    column = request.choice("sort", ("started", *COLUMNS))
    order = request.choice("order", ("down", "up"))
    found = _sorted(_matching(everything, request), column, order)
    if request.form == "json":
        return Json({"runs": to_data([one.stored for one in reversed(found)])})
    if request.form == "csv":
        rows = [to_data(one.stored) for one in reversed(found)]
        header = [*to_data(everything[0].stored)] if everything else ["id"]
        return Csv(header, [[*row.values()] for row in rows])
    pages = max(1, -(-len(found) // _PAGE))
    page = min(request.whole("page", 1), pages)
    fields = ("q", "agent", "suite", "status", "sort", "order")
    return Html(
        "_runs.html.j2" if request.part == "list" else "runs.html.j2",
        {
            "found": [_row(state, one) for one in found[(page - 1) * _PAGE : page * _PAGE]],
            "count": len(found),
            "total": len(everything),
            "attempts": sum(one.counts.attempts for one in everything),
            "page": page,
            "pages": pages,
            "agents": sorted({one.head.agent for one in everything}),
            "suites": sorted({one.head.suite for one in everything}),
            "status_words": STATUS[1:],
            "sorted_by": column,
            "order": order,
            "asked": {name: request.text(name) for name in fields},
        },
    )


def _row(state: AppState, summary: Summary) -> RunRow:
    first, last = state.snapshots.headline(summary) or (None, None)
    return RunRow(summary, state.summaries.temperature(summary), first, last)


def _matching(summaries: Sequence[Summary], request: PageRequest) -> list[Summary]:
    words = request.text("q").lower().split()
    agent, suite = request.text("agent"), request.text("suite")
    status = request.choice("status", STATUS)
    return [
        one
        for one in summaries
        if (not agent or one.head.agent == agent)
        and (not suite or one.head.suite == suite)
        and (not status or status == one.status or (status == "all missing" and one.is_all_missing))
        and all(word in _searched(one) for word in words)
    ]


def _sorted(summaries: list[Summary], column: str, order: str) -> list[Summary]:
    """Stable, so that equal values stay the newest first."""
    keys: dict[str, Callable[[Summary], Any]] = {
        "agent": lambda one: one.title.lower(),
        "suite": lambda one: one.head.suite.lower(),
        "pass^1": lambda one: -1.0 if one.rate is None else one.rate,
        "attempts": lambda one: one.counts.attempts,
        "missing": lambda one: one.counts.missing,
        "started": lambda one: one.head.started,
        "status": lambda one: (one.is_all_missing, one.status),
    }
    return sorted(summaries, key=keys[column], reverse=order == "down")


def _searched(one: Summary) -> str:
    head = one.head
    return f"{head.id} {head.agent} {head.suite} {head.name} {head.started}".lower()
