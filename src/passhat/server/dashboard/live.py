"""Tells an open page that its run has changed; the page then asks for the parts that moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from passhat.errors import PasshatError
from passhat.server.dashboard.site import Site
from passhat.server.dashboard.summaries import Summary

__all__ = ["Ending", "live", "mark_of"]

_LOOK_SECONDS = 0.4
_SIGN_OF_LIFE = 25
"""Looks without news after which a comment is sent, so that a closed connection is noticed."""

Ending = Callable[[], bool]


async def live(request: Request, site: Site, ending: Ending) -> StreamingResponse:
    """Server-sent events: ``changed`` with the version that is there now."""
    run = site.summaries.one(request.path_params["run"]).id
    seen = request.headers.get("last-event-id", request.query_params.get("seen", ""))
    return StreamingResponse(
        _events(request, site, run, seen, ending), media_type="text/event-stream"
    )


async def _events(
    request: Request, site: Site, run: str, seen: str, ending: Ending
) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    quiet = 0
    while not ending() and not await request.is_disconnected():
        now = await run_in_threadpool(_mark, site, run)
        if now is None:
            return
        if now != seen:
            seen, quiet = now, 0
            yield f"id: {now}\nevent: changed\ndata: {now}\n\n"
        elif quiet >= _SIGN_OF_LIFE:
            quiet = 0
            yield ": still here\n\n"
        quiet += 1
        await asyncio.sleep(_LOOK_SECONDS)


def mark_of(site: Site, summary: Summary) -> str:
    """What a page is drawn from: the version of the run, and whether its numbers were ready."""
    return f"{summary.version}/{'ready' if site.reports.is_ready(summary) else 'computing'}"


def _mark(site: Site, run: str) -> str | None:
    """``None`` when the run was removed or the store is away."""
    try:
        return mark_of(site, site.summaries.one(run))
    except PasshatError:
        return None
