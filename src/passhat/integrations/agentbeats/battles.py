"""Battles of a version 1 backend: create one, and follow it until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from passhat.agents.a2a_wire import is_address
from passhat.errors import InvalidValue, shorten

if TYPE_CHECKING:
    import httpx

__all__ = ["fight"]

_SECONDS = 10.0
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
    async with httpx.AsyncClient(timeout=_SECONDS, headers=headers) as http:
        battle_id = await _created(http, base, green, opponents)
        say(f"battle {battle_id} at {base}")
        try:
            async with asyncio.timeout(timeout):
                place = f"{base}/battles/{quote(battle_id, safe='')}"
                return await _followed(http, place, say, look_seconds)
        except TimeoutError:
            raise InvalidValue(
                f"battle {battle_id} was not finished after {timeout:g} s.",
                hint="Look at it in the backend, or wait longer with --timeout.",
            ) from None


async def _created(
    http: httpx.AsyncClient, base: str, green: str, opponents: Mapping[str, str]
) -> str:
    asked = {
        "green_agent_id": green,
        "opponents": [{"name": name, "agent_id": one} for name, one in opponents.items()],
    }
    data = await _json(http, "POST", f"{base}/battles", asked)
    found = data.get("battle_id") or data.get("id")
    if not found:
        raise InvalidValue(f"the backend at {base} named no battle_id: {shorten(str(data), 200)}.")
    return str(found)


async def _followed(
    http: httpx.AsyncClient, place: str, say: Callable[[str], object], look_seconds: float
) -> Mapping[str, Any]:
    shown = silent = 0
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
        for entry in lines[shown:]:
            if isinstance(entry, dict) and entry.get("message"):
                say(str(entry["message"]))
        shown = max(shown, len(lines))
        if battle.get("state") in ("finished", "error"):
            return battle
        await asyncio.sleep(look_seconds)


async def _json(
    http: httpx.AsyncClient, method: str, url: str, body: Mapping[str, object] | None = None
) -> Mapping[str, Any]:
    import httpx

    try:
        answered = await http.request(method, url, json=body)
        data = answered.json() if answered.is_success else None
    except (httpx.HTTPError, ValueError) as error:
        raise InvalidValue(
            f"the backend did not answer {method} {url} ({type(error).__name__}: {error}).",
            hint="Is it running? AgentBeats' backend listens on port 9000.",
        ) from None
    if not isinstance(data, dict):
        said = shorten(answered.text, 200)
        raise InvalidValue(f"{method} {url} answered HTTP {answered.status_code}: {said}.")
    return data
