"""Tools at MCP endpoints: one application, one path for every world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from passhat.suites.base import ToolSpec, Turn

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["Called", "World", "endpoints"]

_ERROR = "Tool error: "


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to: the words for the record, and those for the client."""

    recorded: str
    text: str
    is_error: bool = False

    @classmethod
    def refused(cls, why: str) -> Called:
        return cls(f"{_ERROR}{why}", why, is_error=True)

    @classmethod
    def of_turn(cls, turn: Turn | None) -> Called:
        if turn is None:
            return cls("Tool result: the conversation is over", "the conversation is over")
        text = turn.text if turn.result is None else turn.result
        return cls(turn.text, text.removeprefix(_ERROR), turn.text.startswith(_ERROR))


class World(Protocol):
    """What stands behind a path."""

    @property
    def tools(self) -> Mapping[str, ToolSpec]: ...

    async def call(self, name: str, arguments: Mapping[str, object]) -> Called: ...


def endpoints(worlds: Mapping[str, World]) -> Any:
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

    def world_of(path: str) -> World | None:
        secret, _, rest = path.strip("/").partition("/")
        return worlds.get(secret) if rest == "mcp" else None

    def meant(context: Any) -> World:
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
        done = await meant(context).call(params.name, params.arguments or {})
        return CallToolResult(
            content=[TextContent(type="text", text=done.text)], is_error=done.is_error
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


def _schema(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "object", **tool.parameters}
