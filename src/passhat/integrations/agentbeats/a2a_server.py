"""A2A servers of both protocol versions, and the launcher that AgentBeats' older backends expect.

``passhat serve`` and ``passhat white`` are served by it. The A2A project's test kit is
run against both (``tools/run_a2a_kit.py``); everything beyond the SDK is there because of the kit.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from email.utils import formatdate
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
from a2a.server.agent_execution import AgentExecutor
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
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from passhat._version import __version__
from passhat.agents.a2a_wire import whole_numbers
from passhat.dashboard.guard import Access, Guard
from passhat.errors import shorten
from passhat.integrations.agentbeats.assessments import Rules
from passhat.integrations.agentbeats.green_agent import CALLER, GreenAgent
from passhat.integrations.agentbeats.strangers import AllowedHosts, Callers, CheckedTransport

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_REQUEST = 1024 * 1024
_CARD_PLACES = (AGENT_CARD_WELL_KNOWN_PATH, "/.well-known/agent.json", "/")
"""Of today, of early agents, and where a person looks who has the address only."""
_CARD_CACHE = "public, max-age=300"
_REQUEST_SECONDS = 30.0
"""A client that sends its request byte by byte does not hold a connection for longer."""
_MOST_TASKS = 200
_AT_WORK = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
_INVALID_REQUEST, _INVALID_PARAMS = -32600, -32602
_PART_KINDS = ("text", "file", "data")

_DESCRIPTION = """\
Evaluates agents: k fresh attempts at every task of a suite, pass@k and pass^k with intervals. \
Send {"participants": {"role": "url"}, "config": {"suite": "orderdesk/retail", "k": 4}}."""


def agent_card(
    url: str, *, name: str, description: str, version: str, skill: AgentSkill
) -> AgentCard:
    """The card of an agent that streams text, for clients of both protocol versions."""
    return AgentCard(
        name=name,
        description=description,
        version=version,
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain", "application/json"],
        skills=[skill],
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version=protocol, url=url)
            for protocol in ("1.0", "0.3")
        ],
    )


def green_card(url: str) -> AgentCard:
    """The card of ``passhat serve``."""
    skill = AgentSkill(
        id="assess",
        name="Assess an agent",
        description=_DESCRIPTION,
        tags=["evaluation", "reliability", "pass^k"],
        examples=['{"participants": {"agent": "http://localhost:9210"}, "config": {"k": 4}}'],
    )
    return agent_card(
        url, name="passhat", description=_DESCRIPTION, version=__version__, skill=skill
    )


def green_application(agent: GreenAgent, url: str, access: Access | None = None) -> ASGIApp:
    """The evaluator."""
    return a2a_application(
        agent,
        green_card(url),
        access or Access(),
        server="evaluator",
        command="passhat serve",
        callers=agent.callers,
    )


def launcher_application(agent: GreenAgent, rules: Rules, access: Access | None = None) -> ASGIApp:
    """The evaluator's launcher, for a port of its own."""

    async def reset() -> dict[str, object]:
        return {"stopped": agent.stop_all()}

    def status() -> dict[str, object]:
        return {
            "evaluations": agent.turns.going_on,
            "waiting": agent.turns.waiting,
            "finished": agent.finished,
        }

    return _guard_app(
        Starlette(routes=launcher_routes(reset, status, rules.hosts)),
        access or Access(),
        server="launcher",
        command="passhat serve",
        callers=agent.callers,
    )


def a2a_application(
    agent: AgentExecutor | DefaultRequestHandler,
    card: AgentCard,
    access: Access,
    *,
    server: str,
    command: str,
    callers: Callers | None = None,
    routes: Sequence[Route] = (),
) -> ASGIApp:
    """An A2A server behind the guard.

    ``agent`` is called by the SDK, or is the handler of its requests. ``card`` is shown at the
    well-known paths of today and of early agents, and at ``/``. ``server`` and ``command`` are its
    name and the command that started it; ``callers`` caps callers, by default their bytes.
    """
    # The SDK logs a traceback for every wrong request; without a handler they would be printed.
    logging.getLogger("a2a").addHandler(logging.NullHandler())
    handler = (
        DefaultRequestHandler(agent, _BoundedTasks(), card)
        if isinstance(agent, AgentExecutor)
        else agent
    )
    start_date = formatdate(usegmt=True)
    app = Starlette(
        routes=[
            *(_card_route(card, place, start_date) for place in _CARD_PLACES),
            _rpc_route(handler),
            Route("/health", _health),
            *routes,
        ]
    )
    return _guard_app(app, access, server=server, command=command, callers=callers)


def _guard_app(
    app: ASGIApp,
    access: Access,
    *,
    server: str,
    command: str,
    callers: Callers | None,
) -> ASGIApp:
    """The same guard as the dashboard's; no page in a browser has a reason to call this server."""
    return Guard(
        _Limited(app, callers or Callers()),
        access,
        server=server,
        command=command,
        name_option="--card-url",
        content_types=("application/json",),
        open_paths=(*_CARD_PLACES, "/health"),
        pages=False,
    )


def _card_route(card: AgentCard, place: str, started: str) -> Route:
    (route,) = create_agent_card_routes(card, card_url=place, cache_control=_CARD_CACHE)
    show = route.endpoint

    async def show_card(request: Request) -> Response:
        response: Response = await show(request)
        response.headers["last-modified"] = started
        return response

    return Route(place, show_card, methods=["GET"])


def _rpc_route(handler: DefaultRequestHandler) -> Route:
    """JSON-RPC at ``/``, as the SDK answers it, with three corrections.

    Its adapter for version 0.3 calls wrong parameters an invalid request (-32600 where -32602 is
    due) and takes a part of an unknown kind for text. Numbers of data parts come out of protobuf
    as floats: 4 is sent as 4.0, and clients that look for an integer find none.
    """
    (route,) = create_jsonrpc_routes(
        handler, rpc_url="/", context_builder=_CallContext(), enable_v0_3_compat=True
    )
    dispatch = route.endpoint

    async def rpc(request: Request) -> Response:
        call = _early_call(await request.body())
        if call is not None and (kinds := _unknown_kinds(call)):
            error = {"code": _INVALID_PARAMS, "message": f"Parts of unknown kind: {kinds}"}
            return JSONResponse({"jsonrpc": "2.0", "id": call.get("id"), "error": error})
        response: Response = await dispatch(request)
        if isinstance(response, EventSourceResponse):
            response.body_iterator = _correct_events(response.body_iterator)
        elif isinstance(response, JSONResponse):
            body = json.loads(bytes(response.body))
            error = body.get("error") or {}
            if error.get("code") == _INVALID_REQUEST and call is not None:
                body["error"] = {**error, "code": _INVALID_PARAMS, "message": "Invalid params"}
            response = JSONResponse(whole_numbers(body), response.status_code)
        return response

    return Route("/", rpc, methods=["POST"])


def _early_call(body: bytes) -> dict[str, Any] | None:
    """A well-formed call of a method of version 0.3, with any parameters; or ``None``."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_call = (
        isinstance(data, dict)
        and data.get("jsonrpc") == "2.0"
        and (data.get("id") is None or type(data["id"]) in (str, int))
        and isinstance(data.get("method"), str)
        and "/" in data["method"]
    )
    return data if is_call else None


def _unknown_kinds(call: Mapping[str, Any]) -> str:
    """The kinds of a message's parts that version 0.3 does not have, as words."""
    params = call.get("params")
    message = params.get("message") if isinstance(params, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    # Before version 0.3 the field was called type.
    kinds = [
        part.get("kind", part.get("type"))
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
    ]
    unknown = [kind for kind in kinds if isinstance(kind, str) and kind not in _PART_KINDS]
    return ", ".join(shorten(kind) for kind in unknown[:5])


async def _correct_events(events: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for event in events:
        if isinstance(event, dict) and isinstance(event.get("data"), str):
            data = whole_numbers(json.loads(event["data"]))
            yield {**event, "data": json.dumps(data, ensure_ascii=False)}
        else:
            yield event


def launcher_routes(
    reset: Callable[[], Awaitable[Mapping[str, object]]],
    status: Callable[[], Mapping[str, object]],
    hosts: AllowedHosts,
) -> list[Route]:
    """Routes that a backend of version 1 expects: ``POST /reset``, ``GET /status``.

    ``reset`` gives up what is going on. The backend that asked for it is told that the agent is
    ready: it waits for that before it begins a battle.
    """

    async def reset_now(request: Request) -> JSONResponse:
        try:
            body = await request.json()
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        if body.get("signal", "reset") != "reset":
            return JSONResponse({"detail": "unsupported signal"}, 400)
        is_reset = await reset()
        is_told = await _tell_backend(body, hosts)
        return JSONResponse({"status": "reset", **is_reset, "backend_told": is_told})

    async def status_now(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "server up, with agent running", **status()})

    return [
        Route("/reset", reset_now, methods=["POST"]),
        Route("/status", status_now),
        Route("/health", _health),
    ]


async def _health(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def _tell_backend(body: Mapping[str, Any], hosts: AllowedHosts) -> bool:
    """Notify a version 1 backend that the agent it has reset is ready."""
    backend, agent_id = body.get("backend_url"), body.get("agent_id")
    if not isinstance(backend, str) or not isinstance(agent_id, str):
        return False
    if hosts.refusal(backend, "the backend") is not None:
        return False
    transport = CheckedTransport(hosts)
    try:
        async with httpx.AsyncClient(timeout=30.0, transport=transport, trust_env=False) as http:
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
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                body = await _body(receive)
        except TimeoutError:
            why, status = f"the request took over {_REQUEST_SECONDS:g} s to arrive", 408
        else:
            if body is not None and self._callers.receive(_caller(scope), len(body)):
                await self._app(scope, _replay(body, receive), send)
                return
            why, status = "this caller has sent too many bytes; try again later", 429
            if body is None:
                why, status = f"over {LARGEST_REQUEST:,} bytes", 413
        await JSONResponse({"detail": why}, status)(scope, receive, send)


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
        self._resting: dict[str, bool] = {}

    async def save(self, task: Task, context: ServerCallContext) -> None:
        await super().save(task, context)
        self._resting[task.id] = task.status.state not in _AT_WORK
        resting = [key for key, rests in self._resting.items() if rests]
        for key in resting[: max(0, len(self._resting) - _MOST_TASKS)]:
            del self._resting[key]
            await self.delete(key, context)


async def _body(receive: Receive) -> bytes | None:
    """The request's body, or ``None`` when it is larger than a request may be."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > LARGEST_REQUEST:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Replay the body, then pass on later messages, such as the client's disconnect."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def following() -> Message:
        return rest.pop() if rest else await receive()

    return following
