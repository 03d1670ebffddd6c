"""Reports to a version 1 backend, ``POST /battles/{id}``: beside the evaluation, not before it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from passhat.integrations.agentbeats.assessments import Battle

if TYPE_CHECKING:
    import httpx

__all__ = ["BackendReports"]

_SECONDS = 5.0
_TRIES = 3
_PAUSE = 0.5
_UNSENT = 500
"""Progress beyond this is dropped: a backend that is slow does not fill the memory."""


class BackendReports:
    """Sends progress and the result in order; a backend that is down is noted, and nothing else."""

    def __init__(self, battle: Battle) -> None:
        self._battle = battle
        self._waiting: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None
        self.lost = 0

    def progress(self, message: str, detail: Mapping[str, object] | None = None) -> None:
        if self._waiting.qsize() >= _UNSENT:
            self.lost += 1
            return
        self._put({"is_result": False, "message": message, "detail": dict(detail or {})})

    def result(self, winner: str, message: str, detail: Mapping[str, object]) -> None:
        self._put({"is_result": True, "winner": winner, "message": message, "detail": dict(detail)})

    async def close(self) -> None:
        """Wait for what is unsent; as long as a backend that is there may need."""
        if self._sender is not None:
            self._waiting.put_nowait(None)
            await self._sender

    def _put(self, report: Mapping[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._waiting.put_nowait(
            {**report, "reported_by": self._battle.reported_by, "timestamp": now}
        )
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        import httpx

        url = f"{self._battle.backend_url}/battles/{self._battle.id}"
        async with httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False) as http:
            while (report := await self._waiting.get()) is not None:
                # Progress is not worth waiting for; the result is.
                tries = _TRIES if report["is_result"] else 1
                if not await _sent(http, url, report, tries):
                    self.lost += 1


async def _sent(
    http: httpx.AsyncClient, url: str, report: Mapping[str, object], tries: int
) -> bool:
    import httpx

    for left in reversed(range(tries)):
        try:
            answered = await http.post(url, json=dict(report))
        except (httpx.HTTPError, httpx.InvalidURL):
            pass
        else:
            if answered.is_success:
                return True
        if left:
            await asyncio.sleep(_PAUSE)
    return False
