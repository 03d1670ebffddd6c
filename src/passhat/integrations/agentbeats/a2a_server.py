"""The green agent's doors: A2A of both versions, and the launcher that older backends expect."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    DefaultServerCallContextBuilder,
    create_agent_card_routes,
    create_jsonrpc_routes,
)
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from passhat._version import __version__
from passhat.dashboard.guard import Access, Guard
from passhat.integrations.agentbeats.assessments import Rules
from passhat.integrations.agentbeats.green_agent import CALLER, GreenAgent
from passhat.integrations.agentbeats.strangers import Callers, CheckedTransport

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LARGEST_REQUEST", "green_application", "green_card", "launcher_application"]

LARGEST_REQUEST = 1024 * 1024
_EARLY_CARD = "/.well-known/agent.json"
_OPEN = (AGENT_CARD_WELL_KNOWN_PATH, _EARLY_CARD, "/health")
"""What may be read without a token."""
_CARD_CACHE = "public, max-age=300"
_REQUEST_SECONDS = 30.0
"""A client that sends its request byte by byte does not hold a connection for longer."""
_MOST_TASKS = 200
_ENDED = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
)

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


def green_application(agent: GreenAgent, url: str, access: Access | None = None) -> ASGIApp:
    """The A2A server, with its card where clients of today and of yesterday look for it."""
    card = green_card(url)
    handler = DefaultRequestHandler(agent, _BoundedTasks(), card)
    routes = []
    for place in (AGENT_CARD_WELL_KNOWN_PATH, _EARLY_CARD):
        routes += create_agent_card_routes(card, card_url=place, cache_control=_CARD_CACHE)
    routes += create_jsonrpc_routes(
        handler, rpc_url="/", context_builder=_CallContext(), enable_v0_3_compat=True
    )
    routes.append(Route("/health", _health))
    return _guarded(Starlette(routes=routes), agent, access)


def launcher_application(agent: GreenAgent, rules: Rules, access: Access | None = None) -> ASGIApp:
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
    return _guarded(Starlette(routes=routes), agent, access)


def _guarded(app: ASGIApp, agent: GreenAgent, access: Access | None) -> ASGIApp:
    """The same guard as the dashboard's; no page in a browser has a reason to call this server."""
    return Guard(
        _Limited(app, agent.callers),
        access or Access(),
        server="evaluator",
        command="passhat serve",
        name_option="--card-url",
        content_types=("application/json",),
        open_paths=_OPEN,
        pages=False,
    )


async def _health(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def _tell_backend(asked: Mapping[str, Any], rules: Rules) -> bool:
    """A version 1 backend waits until the agent it has reset says that it is ready."""
    from urllib.parse import quote

    import httpx

    backend, agent_id = asked.get("backend_url"), asked.get("agent_id")
    if not isinstance(backend, str) or not isinstance(agent_id, str):
        return False
    if rules.hosts.refusal(backend, "the backend") is not None:
        return False
    transport = CheckedTransport(rules.hosts)
    try:
        async with httpx.AsyncClient(timeout=5.0, transport=transport, trust_env=False) as http:
            place = f"{backend.rstrip('/')}/agents/{quote(agent_id, safe='')}"
            return (await http.put(place, json={"ready": True})).is_success
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


class _Limited:
    """Refuses requests that are too large, take too long to arrive, or exceed a caller's bytes."""

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app, self._callers = app, callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = None
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                body = await _body(receive)
        except TimeoutError:
            refusal = _refused(f"the request took over {_REQUEST_SECONDS:g} s to arrive", 408)
        else:
            if body is None:
                refusal = _refused(f"over {LARGEST_REQUEST:,} bytes", 413)
            elif not self._callers.receive(_caller(scope), len(body)):
                refusal = _refused("this caller has sent too many bytes; try again later", 429)
            else:
                await self._app(scope, _replayed(body, receive), send)
        if refusal is not None:
            await refusal(scope, receive, send)


def _refused(why: str, status: int) -> JSONResponse:
    return JSONResponse({"detail": why}, status)


def _caller(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


class _CallContext(DefaultServerCallContextBuilder):
    """The SDK's context of a call, with the caller's address for its caps."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[CALLER] = _caller(request.scope)
        return context


class _BoundedTasks(InMemoryTaskStore):
    """Keeps the newest tasks; a caller cannot fill the memory with requests."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: dict[str, bool] = {}

    async def save(self, task: Task, context: ServerCallContext) -> None:
        await super().save(task, context)
        self._ended[task.id] = task.status.state in _ENDED
        ended = [one for one, has_ended in self._ended.items() if has_ended]
        for one in ended[: max(0, len(self._ended) - _MOST_TASKS)]:
            del self._ended[one]
            await self.delete(one, context)


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
