"""``anthropic:MODEL[@BASE_URL]``: the official SDK and its messages."""

from __future__ import annotations

import json
from typing import Any

from passhat.agents.chat import ChatAgent, Entry, Heard, Replied, Request, Returned, ToolCall
from passhat.agents.prices import TokenCount
from passhat.errors import InvalidValue

__all__ = ["AnthropicAgent"]

_EMPTY = "(nothing)"
"""The API takes no empty text."""


class AnthropicAgent(ChatAgent):
    """A model by its name, at Anthropic or at an address that is compatible: anthropic:MODEL."""

    kind = "anthropic"

    def open_client(self) -> Any:
        # The SDK adds /v1 itself; addresses of compatible servers are often given with it.
        base_url = self.base_url and self.base_url.rstrip("/").removesuffix("/v1")
        client = self.sdk.AsyncAnthropic(base_url=base_url, max_retries=0)
        known = (client.api_key, client.auth_token, getattr(client, "credentials", None))
        if any(known):
            return client
        if base_url is not None:  # a server of one's own rarely wants a key
            return self.sdk.AsyncAnthropic(base_url=base_url, max_retries=0, api_key="no-key")
        raise InvalidValue(
            f"{self.name} needs a key.",
            hint="Set ANTHROPIC_API_KEY, or give the address of your own server: "
            f"{self.name}@http://127.0.0.1:8000",
        )

    def warm(self, client: Any) -> None:
        _ = client.messages

    def body(self, request: Request) -> dict[str, Any]:
        settings = dict(request.settings)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": settings.pop("max_output_tokens"),
            "messages": _joined([_written(entry) for entry in request.entries]),
            # Not every version of the SDK names these; the API takes them from the body.
            "extra_body": settings,
        }
        if request.system is not None:
            body["system"] = request.system
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters),
                }
                for tool in request.tools
            ]
        return body

    async def send(self, client: Any, body: dict[str, Any]) -> tuple[Replied, TokenCount | None]:
        done = await client.messages.create(**body)
        text = "\n".join(block.text for block in done.content if block.type == "text")
        calls = tuple(
            ToolCall(block.id, block.name, json.dumps(block.input))
            for block in done.content
            if block.type == "tool_use"
        )
        return Replied(text, calls), _counted(done.usage)


def _written(entry: Entry) -> tuple[str, list[dict[str, Any]]]:
    if isinstance(entry, Heard):
        return "user", [{"type": "text", "text": entry.text or _EMPTY}]
    if isinstance(entry, Returned):
        result = {"type": "tool_result", "tool_use_id": entry.call.id, "content": entry.text}
        return "user", [result]
    blocks: list[dict[str, Any]] = []
    if entry.text.strip() or not entry.calls:
        blocks.append({"type": "text", "text": entry.text.strip() or _EMPTY})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in entry.calls
    ]
    return "assistant", blocks


def _joined(messages: list[tuple[str, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """One message for neighbours of the same role: results of several calls come together."""
    joined: list[dict[str, Any]] = []
    for role, blocks in messages:
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += blocks
        else:
            joined.append({"role": role, "content": blocks})
    return joined


def _counted(usage: Any) -> TokenCount | None:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = getattr(usage, "cache_read_input_tokens", None) or 0
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    # Here input_tokens leaves out what went through the cache.
    inputs = usage.input_tokens + cached + written
    return TokenCount(inputs, usage.output_tokens, cached, written)
