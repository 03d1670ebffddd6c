"""``--tools mcp``: every attempt's world as an MCP endpoint of its own.

One server on loopback holds the worlds of all attempts that are going on, each at a path that
cannot be guessed and that is gone when its attempt ends. The agent calls tools there by itself;
every call stands in the transcript and counts as a step. It talks to the user as ever.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from passhat.errors import InvalidValue, MissingExtra
from passhat.runner.serving import Listening
from passhat.suites.base import Judgement, Suite, Task, Turn, fingerprint
from passhat.suites.orderdesk.calls import RESPOND, Call, write_call
from passhat.suites.orderdesk.episode import OrderdeskEpisode
from passhat.suites.orderdesk.simulated import SimulatedEpisode
from passhat.suites.orderdesk.tools import Tool

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["McpSuite"]

_KINDS: Mapping[str, Mapping[str, object]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "list[str]": {"type": "array", "items": {"type": "string"}},
}
_TAKEN_FOR_A_CALL = ("<json>", "```", "{")

Report = Callable[[str, str], bool]


class McpSuite:
    """A suite whose tools are reached by MCP; tasks, users and judge stay as they are."""

    def __init__(self, suite: Suite) -> None:
        try:
            import mcp.server  # noqa: F401 - the extra is there, or the user learns it now
        except ImportError:
            raise MissingExtra("--tools mcp", extra="mcp") from None
        probe = suite.episode(suite.tasks[0], 0) if suite.tasks else None
        if not isinstance(probe, OrderdeskEpisode):
            if inspect.iscoroutine(probe):
                probe.close()
            raise InvalidValue(
                f"{suite.name} has no tools that could be served by MCP.",
                hint="--tools mcp works with orderdesk/retail, orderdesk/airline and orderdesk.",
            )
        self._suite = suite
        self.name = f"{suite.name}+mcp"
        self.user_simulator = getattr(suite, "user_simulator", None)
        self._worlds: dict[str, McpEpisode] = {}
        self._listening: Listening | None = None
        self._starting = asyncio.Lock()

    @property
    def tasks(self) -> Sequence[Task]:
        return self._suite.tasks

    @property
    def fingerprint(self) -> str:
        return fingerprint([self._suite.fingerprint, "tools by mcp"])

    @property
    def judge_fingerprint(self) -> str:
        return self._suite.judge_fingerprint

    async def episode(self, task: Task, seed: int) -> McpEpisode:
        """A fresh world behind a path of its own."""
        async with self._starting:
            if self._listening is None:
                self._listening = await Listening(_application(self._worlds)).__aenter__()
        world = self._suite.episode(task, seed)
        assert isinstance(world, OrderdeskEpisode | SimulatedEpisode)
        secret = secrets.token_urlsafe(24)
        episode = McpEpisode(
            world,
            f"{self._listening.url}/{secret}/mcp",
            lambda: self._worlds.pop(secret, None),
        )
        self._worlds[secret] = episode
        return episode

    async def close(self) -> None:
        """Stop listening; a later run listens anew."""
        listening, self._listening = self._listening, None
        self._starting = asyncio.Lock()
        if listening is not None:
            await listening.close()


class McpEpisode:
    """One attempt: the conversation with the user here, the tools at an endpoint."""

    def __init__(
        self,
        world: OrderdeskEpisode | SimulatedEpisode,
        url: str,
        forget: Callable[[], object],
    ) -> None:
        self._world = world
        self._url = url
        self._forget = forget
        self._report: Report = lambda _call, _result: True
        self._steps_left = True

    def report_calls(self, report: Report) -> None:
        self._report = report

    async def open(self) -> Turn:
        self._world.reached_by(
            "## Tools\n\n"
            f"The desk's tools are at this MCP endpoint (streamable HTTP): {self._url}\n"
            "It is yours alone, and gone when the conversation ends. Call the tools there yourself."
            "\n\n## How to answer\n\n"
            "What you answer here is said to the user. You may write it as it is, or in this form:"
            f"\n{write_call(RESPOND, {'content': 'What you say.'})}\n"
            "The conversation is over when the user leaves or you hand over."
        )
        turn = self._world.open()
        return turn if isinstance(turn, Turn) else await turn

    def join(self, attempt: object) -> None:
        """A user who is played by a model belongs to an attempt."""
        join = getattr(self._world, "join", None)
        if join is not None:
            join(attempt)

    async def reply(self, answer: str) -> Turn | None:
        if self._world.closed:
            return None
        if not any(mark in answer for mark in _TAKEN_FOR_A_CALL):
            answer = write_call(RESPOND, {"content": answer})
        turn = self._world.reply(answer)
        return await turn if isinstance(turn, Awaitable) else turn

    def judge(self) -> Judgement:
        return self._world.judge()

    async def close(self) -> None:
        self._forget()
        if isinstance(self._world, SimulatedEpisode):
            await self._world.close()

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._world.tools

    def call(self, name: str, arguments: Mapping[str, object]) -> str:
        """Call a tool on the agent's behalf, while it has steps left."""
        if self._world.closed:
            return "Tool error: the user has been handed over; nothing more can be done."
        if not self._steps_left:
            return "Tool error: no steps are left in this attempt."
        result = self._world.call(Call(name, arguments))
        self._steps_left = self._report(write_call(name, arguments), result)
        return result


def _application(worlds: Mapping[str, McpEpisode]) -> Any:
    """The official MCP server, once for all worlds; the path of a request says which is meant."""
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import (
        CallToolRequestParams,
        CallToolResult,
        ListToolsResult,
        PaginatedRequestParams,
        TextContent,
    )
    from mcp.types import Tool as McpTool
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Mount

    def world_of(path: str) -> McpEpisode | None:
        secret, _, rest = path.strip("/").partition("/")
        return worlds.get(secret) if rest == "mcp" else None

    def meant(context: Any) -> McpEpisode:
        found = world_of(context.request.scope["path"])
        if found is None:
            raise ValueError("this attempt is over")
        return found

    async def list_tools(context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                McpTool(name=one.name, description=one.description, input_schema=_schema(one))
                for one in meant(context).tools.values()
            ]
        )

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        result = meant(context).call(params.name, params.arguments or {})
        kind, _, text = result.partition(": ")
        return CallToolResult(
            content=[TextContent(type="text", text=text)], is_error=kind == "Tool error"
        )

    server: Server[Any] = Server("passhat", on_list_tools=list_tools, on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(
        server,
        stateless=True,
        json_response=True,
        max_request_body_size=1024 * 1024,
        # Web pages in a browser on this machine are kept out, whatever name they call it by.
        security_settings=TransportSecuritySettings(allowed_hosts=["127.0.0.1:*"]),
    )

    async def by_path(scope: Scope, receive: Receive, send: Send) -> None:
        if world_of(scope["path"]) is None:
            gone = JSONResponse({"error": "there is no such attempt, or it is over"}, 404)
            await gone(scope, receive, send)
        else:
            await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Mount("/", by_path)], lifespan=lifespan)


def _schema(tool: Tool) -> dict[str, Any]:
    """A tool's parameters as JSON Schema."""
    properties = {
        name: {**_KINDS.get(tool.kinds[name], {"type": "string"}), "description": what}
        for name, what in tool.parameters.items()
    }
    return {"type": "object", "properties": properties, "required": list(properties)}
