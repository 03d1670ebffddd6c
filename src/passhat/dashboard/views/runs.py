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
from passhat.reporting.view import populations_text
from passhat.stats.estimate import Estimate
from passhat.stats.terms import Population
from passhat.store.rows import FRESH_PREFIXES

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


def show_commands(state: AppState, request: PageRequest) -> Answer:
    """The form, and the commands started since the server is up."""
    if not state.allow_run:
        raise Forbidden(
            "runs cannot be started from here.", hint="Start the dashboard with --allow-run."
        )
    commands = state.commands.all()
    if request.form == "json":
        lines = [{"line": command.line, "code": command.code} for command in commands]
        return Json({"commands": lines})
    if request.form == "csv":
        rows = [(command.number, command.line, command.code) for command in commands]
        return Csv(("number", "line", "code"), rows)
    suites = sorted({summary.head.suite for summary in state.summaries.all() if summary.head.suite})
    agents = sorted({summary.head.agent for summary in state.summaries.all()})
    template = "_started.html.j2" if request.part == "list" else "start.html.j2"
    return Html(template, {"commands": commands, "suites": suites, "agents": agents})


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
    return [state.summaries.find(run).id]


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
    everything = state.summaries.all(
        fresh=any(word in request.text("q") for word in FRESH_PREFIXES)
    )
    column = request.choice("sort", ("started", *COLUMNS))
    order = request.choice("order", ("down", "up"))
    matching = _sort(_matching(everything, request), column, order)
    if request.form == "json":
        return Json({"runs": to_data([summary.stored for summary in reversed(matching)])})
    if request.form == "csv":
        header = [*to_data(everything[0].stored)] if everything else ["id"]
        return Csv.of_dicts([to_data(summary.stored) for summary in reversed(matching)], *header)
    page, pages, on_page = request.page(len(matching), _PAGE)
    fields = ("q", "agent", "suite", "status", "sort", "order")
    rows = [_row(state, summary) for summary in matching[on_page]]
    return Html(
        "_runs.html.j2" if request.part == "list" else "runs.html.j2",
        {
            "found": rows,
            "about": populations_text(row.first for row in rows) or Population.NEW_TASKS,
            "count": len(matching),
            "total": len(everything),
            "attempts": sum(summary.counts.attempts for summary in everything),
            "page": page,
            "pages": pages,
            "agents": sorted({summary.head.agent for summary in everything}),
            "suites": sorted({summary.head.suite for summary in everything}),
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
        summary
        for summary in summaries
        if (not agent or summary.head.agent == agent)
        and (not suite or summary.head.suite == suite)
        and (
            not status
            or status == summary.status
            or (status == "all missing" and summary.is_all_missing)
        )
        and all(word in _search_text(summary) for word in words)
    ]


def _sort(summaries: list[Summary], column: str, order: str) -> list[Summary]:
    """Stable, so that equal values stay the newest first."""
    keys: dict[str, Callable[[Summary], Any]] = {
        "agent": lambda summary: summary.title.lower(),
        "suite": lambda summary: summary.head.suite.lower(),
        "pass^1": lambda summary: -1.0 if summary.rate is None else summary.rate,
        "attempts": lambda summary: summary.counts.attempts,
        "missing": lambda summary: summary.counts.missing,
        "started": lambda summary: summary.head.started,
        "status": lambda summary: (summary.is_all_missing, summary.status),
    }
    return sorted(summaries, key=keys[column], reverse=order == "down")


def _search_text(summary: Summary) -> str:
    head = summary.head
    return f"{head.id} {head.agent} {head.suite} {head.name} {head.started}".lower()
