"""How many tasks and attempts are needed, before they are paid for."""

from __future__ import annotations

from passhat.dashboard.app_state import Answer, Ask, Csv, Html, Json, Site
from passhat.errors import PasshatError
from passhat.stats.plan import Plan, plan

__all__ = ["planned"]

_OFFERED = 200
_FIELDS = (
    *("run", "against", "goal", "target", "metric", "power", "level"),
    *("mean", "icc", "correlation", "attempts"),
)


def planned(site: Site, ask: Ask) -> Answer:
    """A plan from a pilot, or from stated assumptions."""
    context: dict[str, object] = {
        "offered": [one for one in site.summaries.all() if one.counts.attempts][:_OFFERED],
        "asked": {name: ask.text(name) for name in _FIELDS},
        "plan": None,
        "trouble": "",
        "hint": "",
    }
    asked = bool(ask.text("run") or ask.text("mean"))
    if not asked and ask.form == "html":
        return Html("plan.html.j2", context)
    try:
        found = _plan(site, ask)
    except PasshatError as error:
        if ask.form != "html":
            raise
        return Html("plan.html.j2", context | {"trouble": error.message, "hint": error.hint or ""})
    if ask.form == "json":
        return Json(found.to_dict())
    if ask.form == "csv":
        rows = [row.to_dict() for row in found.rows]
        return Csv([*rows[0]], [[*row.values()] for row in rows])
    return Html("plan.html.j2", context | {"plan": found})


def _plan(site: Site, ask: Ask) -> Plan:
    def run_of(name: str) -> object:
        word = ask.text(name)
        return site.reports.run(site.summaries.one(word)) if word else None

    goal = ask.choice("goal", ("half-width", "detect"))
    target = ask.number("target", 0.05)
    attempts = ask.number("attempts")
    return plan(
        run_of("run"),  # type: ignore[arg-type]
        metric=ask.text("metric") or "pass^1",
        detect=target if goal == "detect" else None,
        half_width=target if goal == "half-width" else None,
        power=ask.number("power", 0.8) or 0.8,
        level=ask.number("level", 0.95) or 0.95,
        against=run_of("against"),  # type: ignore[arg-type]
        mean=ask.number("mean"),
        icc=ask.number("icc"),
        correlation=ask.number("correlation", 0.75) or 0.75,
        attempts=None if attempts is None else int(attempts),
    )
