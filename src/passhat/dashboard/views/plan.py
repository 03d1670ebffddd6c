"""How many tasks and attempts are needed, before they are paid for."""

from __future__ import annotations

from dataclasses import replace

from starlette.datastructures import QueryParams

from passhat._serialize import to_data
from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.errors import PasshatError
from passhat.stats.plan import Plan, plan

__all__ = ["planned"]

_OFFERED = 200
_FIELDS = (
    *("run", "against", "goal", "target", "metric", "power", "level"),
    *("mean", "icc", "correlation", "attempts"),
)


def planned(state: AppState, request: PageRequest) -> Answer:
    """A plan from a pilot, or from stated assumptions."""
    offered = [one for one in state.summaries.all() if one.counts.attempts][:_OFFERED]
    if not request.query and request.form == "html":  # opened from the menu: the newest run
        newest = [one.id for one in offered if not one.is_all_missing and one.head.planned > 1][:1]
        request = replace(request, query=QueryParams([("run", one) for one in newest]))
    context: dict[str, object] = {
        "offered": offered,
        "asked": {name: request.text(name) for name in _FIELDS},
        "plan": None,
        "trouble": "",
        "hint": "",
    }
    asked = bool(request.text("run") or request.text("mean"))
    if not asked and request.form == "html":
        return Html("plan.html.j2", context)
    try:
        found = _plan(state, request)
    except PasshatError as error:
        if request.form != "html":
            raise
        return Html("plan.html.j2", context | {"trouble": error.message, "hint": error.hint or ""})
    if request.form == "json":
        return Json(found)
    if request.form == "csv":
        rows = to_data(found.rows)
        return Csv([*rows[0]], [[*row.values()] for row in rows])
    return Html("plan.html.j2", context | {"plan": found})


def _plan(state: AppState, request: PageRequest) -> Plan:
    def run_of(name: str) -> object:
        word = request.text(name)
        return state.snapshots.run(state.summaries.one(word)) if word else None

    goal = request.choice("goal", ("half-width", "detect"))
    target = request.number("target", 0.05)
    attempts = request.number("attempts")
    return plan(
        run_of("run"),  # type: ignore[arg-type]
        metric=request.text("metric") or "pass^1",
        detect=target if goal == "detect" else None,
        half_width=target if goal == "half-width" else None,
        power=request.number("power", 0.8) or 0.8,
        level=request.number("level", 0.95) or 0.95,
        against=run_of("against"),  # type: ignore[arg-type]
        mean=request.number("mean"),
        icc=request.number("icc"),
        correlation=request.number("correlation", 0.75) or 0.75,
        attempts=None if attempts is None else int(attempts),
    )
