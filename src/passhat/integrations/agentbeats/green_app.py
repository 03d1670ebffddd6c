"""The green agent's doors: A2A of both versions, and the launcher that older backends expect."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from passhat._version import __version__
from passhat.integrations.agentbeats.assessments import Rules
from passhat.integrations.agentbeats.green_agent import GreenAgent

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LARGEST_REQUEST", "green_application", "green_card", "launcher_application"]

LARGEST_REQUEST = 1024 * 1024
_EARLY_CARD = "/.well-known/agent.json"
_OPEN = ("/.well-known/agent-card.json", _EARLY_CARD, "/health")
"""What may be read without a token."""

_DESCRIPTION = """\
Evaluates agents: k fresh attempts at every task of a suite, pass@k and pass^k with intervals. \
Send {"participants": {"role": "url"}, "config": {"suite": "orderdesk/retail", "k": 4}}."""


def green_card(url: str) -> AgentCard:
    """What passhat says about itself, for clients of both protocol versions."""
    skill = AgentSkill(
        id="assess",
        name="Assess an agent",
        description=_DESCRIPTION,
        tags=["evaluation", "reliability", "pass^k"],
        examples=['{"participants": {"agent": "http://localhost:9210"}, "config": {"k": 4}}'],
    )
    return AgentCard(
        name="passhat",
        description=_DESCRIPTION,
        version=__version__,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[skill],
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version=version, url=url)
            for version in ("1.0", "0.3")
        ],
    )


def green_application(agent: GreenAgent, url: str, token: str | None = None) -> ASGIApp:
    """The A2A server, with its card where clients of today and of yesterday look for it."""
    card = green_card(url)
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    routes += create_agent_card_routes(card, card_url=_EARLY_CARD)
    routes += create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True)
    routes.append(Route("/health", _health))
    return _Guarded(Starlette(routes=routes), token)


def launcher_application(agent: GreenAgent, rules: Rules, token: str | None = None) -> ASGIApp:
    """``POST /reset`` gives up what is going on, ``GET /status`` says how much that is."""

    async def reset(request: Request) -> JSONResponse:
        try:
            asked = await request.json()
        except ValueError:
            asked = {}
        asked = asked if isinstance(asked, dict) else {}
        if asked.get("signal", "reset") != "reset":
            return JSONResponse({"detail": "unsupported signal"}, 400)
        stopped = agent.stop_all()
        told = await _tell_backend(asked, rules)
        return JSONResponse({"status": "reset", "stopped": stopped, "backend_told": told})

    async def status(_request: Request) -> JSONResponse:
        return JSONResponse(
            {
                "status": "server up, with agent running",
                "evaluations": agent.going_on,
                "finished": agent.finished,
            }
        )

    routes = [
        Route("/reset", reset, methods=["POST"]),
        Route("/status", status),
        Route("/health", _health),
    ]
    return _Guarded(Starlette(routes=routes), token)


async def _health(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def _tell_backend(asked: Mapping[str, Any], rules: Rules) -> bool:
    """A version 1 backend waits until the agent it has reset says that it is ready."""
    from urllib.parse import quote, urlsplit

    import httpx

    backend, agent_id = asked.get("backend_url"), asked.get("agent_id")
    if not isinstance(backend, str) or not isinstance(agent_id, str):
        return False
    if (urlsplit(backend).hostname or "").lower() not in rules.hosts:
        return False
    try:
        async with httpx.AsyncClient(timeout=5.0) as http:
            place = f"{backend.rstrip('/')}/agents/{quote(agent_id, safe='')}"
            return (await http.put(place, json={"ready": True})).is_success
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


class _Guarded:
    """Refuses what carries no token, where one is asked for, and what is too large to be read."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if self._expected is not None and scope["path"] not in _OPEN:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                refusal = JSONResponse(
                    {"detail": "this server asks for a bearer token"},
                    401,
                    {"www-authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        body = await _body(receive)
        if body is None:
            refusal = JSONResponse({"detail": f"over {LARGEST_REQUEST:,} bytes"}, 413)
            await refusal(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


async def _body(receive: Receive) -> bytes | None:
    """The request's body, or ``None`` when it is larger than a request may be."""
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(found)
        found += message.get("body", b"")
        if len(found) > LARGEST_REQUEST:
            return None
        if not message.get("more_body", False):
            return bytes(found)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Hand the body on, and then whatever else comes: that the client has left, for instance."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def following() -> Message:
        return rest.pop() if rest else await receive()

    return following
