"""Starting a run or a regrade: shown and done only where passhat view was told to allow it."""

from __future__ import annotations

from collections.abc import Mapping

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.guard import Forbidden
from passhat.errors import InvalidValue

__all__ = ["regrade_command", "start_command", "started"]

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
    """The form, and what was started since the server is up."""
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
    """What ``passhat run`` is told: what the form says."""
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
    """What ``passhat regrade`` is told: one run."""
    return [state.summaries.one(run).id]
