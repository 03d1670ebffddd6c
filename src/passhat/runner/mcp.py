"""Tools at MCP endpoints: one application, one path for every world."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from passhat.errors import InvalidValue, MissingExtra, RunStopped
from passhat.runner.attempt import maybe_await
from passhat.runner.serving import Listening
from passhat.suites.base import (
    CallReport,
    Episode,
    Judgement,
    Suite,
    Task,
    ToolSpec,
    Turn,
    fingerprint,
)
from passhat.suites.tool_calls import RESPOND, write_call

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_ERROR = "Tool error: "
_IDLE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a tool call: text for the record, and text for the client."""

    recorded: str
    text: str
    is_error: bool = False

    @classmethod
    def refusal(cls, why: str) -> Called:
        return cls(f"{_ERROR}{why}", why, is_error=True)

    @classmethod
    def of_turn(cls, turn: Turn | None) -> Called:
        if turn is None:
            return cls("Tool result: the conversation is over", "the conversation is over")
        text = turn.text if turn.result is None else turn.result
        return cls(turn.text, text.removeprefix(_ERROR), turn.text.startswith(_ERROR))


class World(Protocol):
    """An environment whose tools are served under a path."""

    @property
    def tools(self) -> Mapping[str, ToolSpec]: ...

    async def call(self, name: str, arguments: Mapping[str, object]) -> Called: ...


def endpoints(worlds: Mapping[str, World]) -> Any:
    """The official MCP server, once for all worlds; the path of a request selects the world."""
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

    def world_of(path: str) -> World | None:
        secret, _, rest = path.strip("/").partition("/")
        return worlds.get(secret) if rest == "mcp" else None

    def find_world(context: Any) -> World:
        world = world_of(context.request.scope["path"])
        if world is None:
            raise ValueError("this attempt is over")
        return world

    async def list_tools(context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                McpTool(name=tool.name, description=tool.description, input_schema=_schema(tool))
                for tool in find_world(context).tools.values()
            ]
        )

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        world = find_world(context)
        await context.session.report_progress(0, 1, f"{params.name} was called")
        result = await world.call(params.name, params.arguments or {})
        await context.session.report_progress(1, 1, f"{params.name} is done")
        return CallToolResult(
            content=[TextContent(type="text", text=result.text)], is_error=result.is_error
        )

    server: Server[Any] = Server("passhat", on_list_tools=list_tools, on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(
        server,
        # Sessions, and answers as events: without them a call can neither be canceled nor report
        # its progress. A session that its client forgot to end expires by itself.
        session_idle_timeout=_IDLE_SECONDS,
        max_request_body_size=1024 * 1024,
        # Web pages in a browser on this machine are kept out, by any host name.
        security_settings=TransportSecuritySettings(allowed_hosts=["127.0.0.1:*"]),
    )

    async def by_path(scope: Scope, receive: Receive, send: Send) -> None:
        if world_of(scope["path"]) is None:
            not_found = JSONResponse({"error": "there is no such attempt, or it is over"}, 404)
            await not_found(scope, receive, send)
        else:
            await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Mount("/", by_path)], lifespan=lifespan)


def _schema(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "object", **tool.parameters}


_TAKEN_FOR_A_CALL = ("<json>", "```", "{")
_NO_TOOLS = "Its first turn should name them, as those of orderdesk/retail and tau2:retail do."


class McpSuite(Suite):
    """A suite whose tools are reached by MCP; tasks, users and judge stay as they are."""

    def __init__(self, suite: Suite) -> None:
        try:
            import mcp.server  # noqa: F401 - the extra is there, or the user learns it now
        except ImportError:
            raise MissingExtra("tools=mcp", extra="mcp") from None
        if suite.harness or suite.has_tools is False:
            raise InvalidValue(_without_tools(suite.name), hint=_NO_TOOLS)
        self._suite = suite
        self.name = f"{suite.name}+mcp"
        self.max_steps = suite.max_steps
        self.slow_reason = suite.slow_reason
        self.takes_reference = suite.takes_reference
        self.user_simulator = suite.user_simulator
        self._worlds: dict[str, McpEpisode] = {}
        self._listening: Listening | None = None
        self._starting = asyncio.Lock()

    @cached_property
    def tasks(self) -> Sequence[Task]:
        return self._suite.tasks

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint([self._suite.fingerprint, "tools by mcp"])

    @cached_property
    def judge_fingerprint(self) -> str:
        return self._suite.judge_fingerprint

    async def episode(self, task: Task, seed: int) -> McpEpisode:
        """A fresh world behind a path of its own."""
        async with self._starting:
            if self._listening is None:
                self._listening = await Listening(endpoints(self._worlds)).__aenter__()
        world = await maybe_await(self._suite.episode(task, seed))
        secret = secrets.token_urlsafe(24)
        episode = McpEpisode(
            world,
            self._suite.name,
            f"{self._listening.url}/{secret}/mcp",
            lambda: self._worlds.pop(secret, None),
            mixed=self._suite.has_tools is True,
        )
        self._worlds[secret] = episode
        return episode

    async def close(self) -> None:
        """Stop listening; a later run starts a new server."""
        listening, self._listening = self._listening, None
        self._starting = asyncio.Lock()
        if listening is not None:
            await listening.close()
        await maybe_await(self._suite.close())


class McpEpisode(Episode):
    """An attempt: the conversation with the user here, the tools at an endpoint."""

    def __init__(
        self,
        world: Episode,
        suite: str,
        url: str,
        forget: Callable[[], object],
        *,
        mixed: bool = False,
    ) -> None:
        self._world = world
        self._suite = suite
        self._mixed = mixed  # some tasks of the suite have tools, and this one may have none
        self._url = url
        self._forget = forget
        self._report: CallReport = lambda _call, _result: True
        self._steps_left = True
        self._over = False
        self._broke: Exception | None = None
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[Called]] = set()
        self.tools: Mapping[str, ToolSpec] = {}

    def report_calls(self, report: CallReport) -> None:
        self._report = report

    def join(self, attempt: object) -> None:
        """Bind a user who is played by a model to an attempt."""
        self._world.join(attempt)

    async def open(self) -> Turn | None:
        turn: Turn | None = await maybe_await(self._world.open())
        if turn is None:
            return None
        if not turn.tools:
            if self._mixed:
                return turn
            raise RunStopped(_without_tools(self._suite), hint=_NO_TOOLS)
        self.tools = {tool.name: tool for tool in turn.tools}
        # A suite that does not separate the policy has it in its text.
        policy, words = ("", turn.text) if turn.said is None else (turn.system or "", turn.said)
        system = (
            f"{policy}\n\n## Tools by MCP\n\n"
            f"The tools are at this MCP endpoint (streamable HTTP): {self._url}\n"
            "It is yours alone, and gone when the conversation ends. Call the tools there yourself."
            "\n\nWhat you answer here is said to the user. "
            "You may write it as it is, or in this form:"
            f"\n{write_call(RESPOND, {'content': 'What you say.'})}"
        ).lstrip()
        earlier = [
            f"{message.get('role', 'user')}: {message.get('content')}" for message in turn.messages
        ]
        return replace(
            turn,
            text="\n\n".join([system, *earlier, f"User: {words}"]),
            system=system,
            said=words,
            tools=(),  # they are at the endpoint
        )

    async def reply(self, answer: str) -> Turn | None:
        async with self._one_at_a_time:
            if self._broke is not None:
                raise self._broke
            if self._over:
                return None
            # A task without tools takes the text unchanged.
            if self.tools and not any(mark in answer for mark in _TAKEN_FOR_A_CALL):
                answer = write_call(RESPOND, {"content": answer})
            return await maybe_await(self._world.reply(answer))

    async def judge(self) -> Judgement:
        return await maybe_await(self._world.judge())

    async def close(self) -> None:
        self._forget()
        for call in self._under_way:
            call.cancel()
        await maybe_await(self._world.close())

    async def call(self, name: str, arguments: Mapping[str, object]) -> Called:
        """Call a tool on the agent's behalf, while it has steps left."""
        # A client that hangs up must not leave a call half made.
        task = asyncio.ensure_future(self._call_tool(name, arguments))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _call_tool(self, name: str, arguments: Mapping[str, object]) -> Called:
        async with self._one_at_a_time:
            if self._over:
                return Called.refusal("the conversation is over; nothing more can be done.")
            if not self._steps_left:
                return Called.refusal("no steps are left in this attempt.")
            call = write_call(name, arguments)
            refusal = _refusal(name, arguments, self.tools)
            result = Called.refusal(refusal) if refusal else await self._call_world(call)
            self._steps_left = self._report(call, result.recorded)
            return result

    async def _call_world(self, call: str) -> Called:
        try:
            turn: Turn | None = await maybe_await(self._world.reply(call))
        except Exception as error:
            # Reported to the runner with the agent's next answer.
            self._broke, self._over = error, True
            return Called.refusal("the world broke; this is not your fault.")
        self._over = turn is None
        return Called.of_turn(turn)


def _refusal(
    name: str, arguments: Mapping[str, object], tools: Mapping[str, ToolSpec]
) -> str | None:
    """Return why a call cannot be made: there is no such tool, or its schema forbids these."""
    if name not in tools:
        return f"there is no tool {name!r}; there are: {', '.join(tools) or 'none'}."
    # Imported here: it takes 50 ms, and most commands validate nothing.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match

    try:
        checker = Draft202012Validator(_schema(tools[name]))
        error = best_match(checker.iter_errors(dict(arguments)))
    except (
        SchemaError,
        TypeError,
        ValueError,
        LookupError,
    ):  # a schema that is none checks nothing
        return None
    if error is None:
        return None
    where = f" at {'/'.join(map(str, error.absolute_path))}" if error.absolute_path else ""
    return f"the arguments of {name} are wrong{where}: {error.message[:300]}."


def _without_tools(name: str) -> str:
    return f"{name} has no tools that could be served by MCP."
