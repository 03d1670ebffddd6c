"""``openai:MODEL[@BASE_URL]``: the official SDK, for OpenAI and everything that speaks like it."""

from __future__ import annotations

from typing import Any

from passhat.agents.chat import ChatAgent, Entry, Heard, Replied, Request, Returned, ToolCall
from passhat.agents.prices import TokenCount
from passhat.errors import InvalidValue

__all__ = ["OpenAiAgent"]


class OpenAiAgent(ChatAgent):
    """A model by its name, at OpenAI or at any address that is compatible: openai:MODEL[@URL]."""

    kind = "openai"

    def open_client(self) -> Any:
        try:
            return self.sdk.AsyncOpenAI(base_url=self.base_url, max_retries=0)
        except self.sdk.OpenAIError as error:
            if self.base_url is not None:  # a server of one's own rarely wants a key
                return self.sdk.AsyncOpenAI(base_url=self.base_url, max_retries=0, api_key="no-key")
            raise InvalidValue(
                f"{self.name} needs a key. {error}",
                hint="Set OPENAI_API_KEY, or give the address of your own server: "
                f"{self.name}@http://127.0.0.1:8000/v1",
            ) from None

    def warm(self, client: Any) -> None:
        _ = client.chat.completions

    def body(self, request: Request) -> dict[str, Any]:
        settings = dict(request.settings)
        most = settings.pop("max_output_tokens")
        # OpenAI wants the new name, most other servers know only the old one.
        settings["max_tokens" if self.base_url else "max_completion_tokens"] = most
        messages = [] if request.system is None else [_message("system", request.system)]
        messages += [_written(entry) for entry in request.entries]
        body = {
            "model": request.model,
            "messages": messages,
            "seed": request.seed,
            **settings,
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in request.tools
            ]
        return body

    async def send(self, client: Any, body: dict[str, Any]) -> tuple[Replied, TokenCount | None]:
        done = await client.chat.completions.create(**body)
        message = done.choices[0].message
        calls = tuple(
            ToolCall(one.id, one.function.name, one.function.arguments or "{}")
            for one in message.tool_calls or ()
            if one.type == "function"
        )
        text = message.content or getattr(message, "refusal", None) or ""
        return Replied(text, calls), _counted(done.usage)


def _written(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Heard):
        return _message("user", entry.text)
    if isinstance(entry, Returned):
        return {**_message("tool", entry.text), "tool_call_id": entry.call.id}
    message = _message("assistant", entry.text)
    if entry.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in entry.calls
        ]
    return message


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _counted(usage: Any) -> TokenCount | None:
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    return TokenCount(usage.prompt_tokens, usage.completion_tokens, cached)
