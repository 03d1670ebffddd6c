"""All runs, with filters and search."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.run_summaries import Summary

__all__ = ["runs"]

STATUS = ("", "in progress", "complete", "stopped")
_PAGE = 50


def runs(state: AppState, request: PageRequest) -> Answer:
    """The runs that fit, the newest first."""
    everything = state.summaries.all()
    found = _fitting(everything, request)
    if request.form == "json":
        return Json({"runs": [one.stored.to_dict() for one in reversed(found)]})
    if request.form == "csv":
        rows = [one.stored.to_dict() for one in reversed(found)]
        header = [*everything[0].stored.to_dict()] if everything else ["id"]
        return Csv(header, [[*row.values()] for row in rows])
    pages = max(1, -(-len(found) // _PAGE))
    page = min(request.whole("page", 1), pages)
    return Html(
        "_runs.html.j2" if request.part == "list" else "runs.html.j2",
        {
            "found": found[(page - 1) * _PAGE : page * _PAGE],
            "count": len(found),
            "total": len(everything),
            "attempts": sum(one.counts.attempts for one in everything),
            "page": page,
            "pages": pages,
            "agents": sorted({one.head.agent for one in everything}),
            "suites": sorted({one.head.suite for one in everything}),
            "status_words": STATUS[1:],
            "asked": {name: request.text(name) for name in ("q", "agent", "suite", "status")},
        },
    )


def _fitting(summaries: Sequence[Summary], request: PageRequest) -> list[Summary]:
    words = request.text("q").lower().split()
    agent, suite = request.text("agent"), request.text("suite")
    status = request.choice("status", STATUS)
    return [
        one
        for one in summaries
        if (not agent or one.head.agent == agent)
        and (not suite or one.head.suite == suite)
        and (not status or one.status == status)
        and all(word in _searched(one) for word in words)
    ]


def _searched(one: Summary) -> str:
    head = one.head
    return f"{head.id} {head.agent} {head.suite} {head.name} {head.started}".lower()
