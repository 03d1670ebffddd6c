"""Battles of a version 1 backend: create one, and follow it until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from passhat.agents.a2a_wire import is_address
from passhat.errors import InvalidValue, shorten
from passhat.integrations.agentbeats.assessments import Battle
from passhat.integrations.agentbeats.strangers import AllowedHosts, CheckedTransport

if TYPE_CHECKING:
    import httpx

_SECONDS = 30.0
_TRIES = 3
_PAUSE = 0.5
_UNSENT = 500
"""Progress beyond this is dropped: a backend that is slow does not fill the memory."""


_REFUSED_IN_A_ROW = 3
"""Reports that a backend refuses (HTTP 4xx) before its battle counts as over."""


class BackendReports:
    """Sends progress and the result in order; a backend that is down is only logged.

    ``on_refused`` is called once when the backend refuses several reports in a row: it has ended
    the battle, by its own time limit for example, and further attempts would be for nothing.
    """

    def __init__(
        self,
        battle: Battle,
        hosts: AllowedHosts,
        on_refused: Callable[[], object] = lambda: None,
    ) -> None:
        self._on_refused = on_refused
        self._refusals = 0
        self._battle = battle
        self._hosts = hosts
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
        """Wait for unsent reports, as long as a working backend may need."""
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

        url = f"{self._battle.backend_url}/battles/{quote(self._battle.id, safe='')}"
        transport = CheckedTransport(self._hosts)
        async with httpx.AsyncClient(
            timeout=_SECONDS, transport=transport, trust_env=False, follow_redirects=False
        ) as http:
            while (report := await self._waiting.get()) is not None:
                # Progress is not worth waiting for; the result is.
                tries = _TRIES if report["is_result"] else 1
                status = await _send_report(http, url, report, tries)
                if not 200 <= status < 300:
                    self.lost += 1
                is_refusal = 400 <= status < 500 and status not in (408, 429)
                self._refusals = self._refusals + 1 if is_refusal else 0
                if self._refusals == _REFUSED_IN_A_ROW:
                    self._on_refused()


async def _send_report(
    http: httpx.AsyncClient, url: str, report: Mapping[str, object], tries: int
) -> int:
    """Return the HTTP status of the last try; 0 where there was no answer."""
    import httpx

    status = 0
    for left in reversed(range(tries)):
        try:
            response = await http.post(url, json=dict(report))
        except (httpx.HTTPError, httpx.InvalidURL):
            status = 0
        else:
            status = response.status_code
            if response.is_success:
                break
        if left:
            await asyncio.sleep(_PAUSE)
    return status


_BATTLE_SECONDS = 30.0
_LOOK_SECONDS = 1.0
_SILENT_LOOKS = 30
"""A backend that does not answer for so long in a row is given up."""


async def fight(
    backend: str,
    green: str,
    opponents: Mapping[str, str],
    say: Callable[[str], object],
    *,
    timeout: float,
    token: str | None = None,
    look_seconds: float = _LOOK_SECONDS,
) -> Mapping[str, Any]:
    """``POST /battles``, then look at it until it is finished; returns the battle as it ended."""
    import httpx

    if not is_address(backend):
        raise InvalidValue(
            f"--backend takes an address such as http://localhost:9000, not {backend!r}."
        )
    headers = {"authorization": f"Bearer {token}"} if token else {}
    base = backend.rstrip("/")
    async with httpx.AsyncClient(timeout=_BATTLE_SECONDS, headers=headers) as http:
        battle_id = await _create_battle(http, base, green, opponents)
        say(f"battle {battle_id} at {base}")
        try:
            async with asyncio.timeout(timeout):
                place = f"{base}/battles/{quote(battle_id, safe='')}"
                return await _poll_until_ended(http, place, say, look_seconds)
        except TimeoutError:
            raise InvalidValue(
                f"battle {battle_id} was not finished after {timeout:g} s.",
                hint="Look at it in the backend, or wait longer with --timeout.",
            ) from None


async def _create_battle(
    http: httpx.AsyncClient, base: str, green: str, opponents: Mapping[str, str]
) -> str:
    payload = {
        "green_agent_id": green,
        "opponents": [{"name": name, "agent_id": agent} for name, agent in opponents.items()],
    }
    data = await _json(http, "POST", f"{base}/battles", payload)
    battle_id = data.get("battle_id") or data.get("id")
    if not battle_id:
        raise InvalidValue(f"the backend at {base} named no battle_id: {shorten(str(data), 200)}.")
    return str(battle_id)


async def _poll_until_ended(
    http: httpx.AsyncClient, place: str, say: Callable[[str], object], look_seconds: float
) -> Mapping[str, Any]:
    line_count = silent = 0
    while True:
        try:
            battle = await _json(http, "GET", place)
            silent = 0
        except InvalidValue:
            silent += 1
            if silent >= _SILENT_LOOKS:
                raise
            battle = {}
        history = battle.get("interact_history")
        lines = history if isinstance(history, list) else []
        for entry in lines[line_count:]:
            if isinstance(entry, dict) and entry.get("message"):
                say(str(entry["message"]))
        line_count = max(line_count, len(lines))
        if battle.get("state") in ("finished", "error"):
            return battle
        await asyncio.sleep(look_seconds)


async def _json(
    http: httpx.AsyncClient, method: str, url: str, body: Mapping[str, object] | None = None
) -> Mapping[str, Any]:
    import httpx

    try:
        response = await http.request(method, url, json=body)
        data = response.json() if response.is_success else None
    except (httpx.HTTPError, ValueError) as error:
        raise InvalidValue(
            f"the backend did not answer {method} {url} ({type(error).__name__}: {error}).",
            hint="Is it running? AgentBeats' backend listens on port 9000.",
        ) from None
    if not isinstance(data, dict):
        reply = shorten(response.text, 200)
        raise InvalidValue(f"{method} {url} answered HTTP {response.status_code}: {reply}.")
    return data
