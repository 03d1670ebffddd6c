"""Server-sent events that notify an open page of changes; the page then reloads changed parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from passhat.dashboard.app_state import AppState
from passhat.dashboard.run_summaries import Summary
from passhat.errors import PasshatError, StoreUnavailable

_PAUSE_SECONDS = 0.4
"""Seconds between events: the first is sent at once, later ones at most this often."""
_SIGN_OF_LIFE = 25
"""Pauses without news after which a comment is sent, so that a closed connection is noticed."""

Ending = Callable[[], bool]


async def live(request: Request, state: AppState, ending: Ending) -> StreamingResponse:
    """Server-sent events: ``changed`` with the version that is there now."""
    run = request.path_params["run"]
    with suppress(StoreUnavailable):  # the stream waits for it, and the page with the stream
        run = (await run_in_threadpool(state.summaries.find, run)).id
    last_id = request.headers.get("last-event-id", request.query_params.get("seen", ""))
    return StreamingResponse(
        _events(request, state, run, last_id, ending), media_type="text/event-stream"
    )


async def _events(
    request: Request, state: AppState, run: str, seen: str, ending: Ending
) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    quiet, final = 0, False
    with state.changes.page() as woken:
        while not ending() and not await request.is_disconnected():
            if woken.is_set() or not final:
                woken.clear()
                try:
                    now, final = await run_in_threadpool(_mark, state, run)
                except StoreUnavailable:
                    # Woken when it is back; the page is then drawn again in any case.
                    now, seen, final = "", "", True
                except PasshatError:
                    return  # the run was removed
                if now != seen:
                    seen, quiet = now, 0
                    yield f"id: {now}\nevent: changed\ndata: {now}\n\n"
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
            quiet += 1
            if quiet >= _SIGN_OF_LIFE:
                quiet = 0
                yield ": still here\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(_next(woken, final=final), _PAUSE_SECONDS)


async def _next(woken: asyncio.Event, *, final: bool) -> None:
    """The next news; while something is still being counted, just a pause."""
    await (woken.wait() if final else asyncio.sleep(_PAUSE_SECONDS))


def mark_of(state: AppState, summary: Summary) -> str:
    """The state of a page: the version of its run, and whether its numbers were ready."""
    return f"{summary.version}/{'ready' if state.snapshots.is_ready(summary) else 'computing'}"


def _mark(state: AppState, run: str) -> tuple[str, bool]:
    """The mark, and whether it stays as it is until the next write."""
    summary = state.summaries.find(run)
    if summary.counts.attempts:
        state.snapshots.begin(summary)  # a page is open
    final = state.summaries.is_settled and state.snapshots.is_ready(summary)
    return mark_of(state, summary), final
