"""``openai:MODEL[@BASE_URL]``: the official SDK, for OpenAI and every compatible server.

``openai:`` uses Chat Completions, ``openai-responses:`` the Responses API, ``azure:`` Azure
OpenAI, ``openrouter:`` and ``ollama:`` are the same at their usual addresses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from passhat.agents.base import StopReason
from passhat.agents.chat import (
    ChatAgent,
    Entry,
    Request,
    ToolResult,
    UserEntry,
    arguments_of,
    read_answer,
    text_of,
    tool_calls_of,
)
from passhat.agents.framework_answers import count_tokens
from passhat.agents.prices import read_cost, read_count
from passhat.agents.provider import ModelReply, ReplyError, ToolCall
from passhat.agents.provider_tables import stop_reason
from passhat.errors import InvalidValue


class OpenAiAgent(ChatAgent):
    """A model by its name, at OpenAI or at any compatible address: openai:MODEL[@URL]."""

    kind = "openai"
    module = "openai"
    usual_url = "https://api.openai.com/v1"
    key_name: ClassVar[str] = "OPENAI_API_KEY"

    def open_client(self) -> Any:
        try:
            return self.sdk.AsyncOpenAI(base_url=self.base_url, max_retries=0)
        except self.sdk.OpenAIError as error:
            if self.base_url is not None:  # a local server rarely needs a key
                return self.sdk.AsyncOpenAI(base_url=self.base_url, max_retries=0, api_key="no-key")
            raise InvalidValue(
                f"{self.kind}:{self.model} needs a key. {error}",
                hint=f"Set {self.key_name}, or give the address of your own server: "
                f"{self.kind}:{self.model}@http://127.0.0.1:8000/v1",
            ) from None

    def warm(self, client: Any) -> None:
        _ = client.chat.completions

    def body(self, request: Request) -> dict[str, Any]:
        # OpenAI requires the new name, most other servers accept only the old one.
        usual = "max_tokens" if self.is_elsewhere else "max_completion_tokens"
        messages = [] if request.system is None else [_message("system", request.system)]
        messages += [_write_entry(entry) for entry in request.entries]
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            **({} if request.seed is None else {"seed": request.seed}),
            request.limit_name or usual: request.limit,
            **request.settings,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        if request.response_format is not None:
            body["response_format"] = dict(request.response_format)
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

    @property
    def is_elsewhere(self) -> bool:
        """Whether the server is another than OpenAI's own."""
        return "base_url" in self.decoding

    async def send(self, client: Any, body: dict[str, Any], *, stream: bool) -> ModelReply:
        rest = dict(body)
        required = {name: rest.pop(name) for name in ("model", "messages")}
        if stream:
            required["stream"] = True
            rest.setdefault("stream_options", {"include_usage": True})
        create = client.chat.completions.with_streaming_response.create
        async with create(**required, extra_body=rest) as answer:
            data = await read_answer(answer, merge_chunks if stream else None)
        return read_completion(data, _request_id(answer.headers))


def merge_chunks(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the chunks of a stream into the answer that would have come whole."""
    answer: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[dict[str, Any]] = []
    finish = None
    for chunk in chunks:
        answer |= {name: value for name, value in chunk.items() if value is not None}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, Mapping) or choice.get("index"):
                continue
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta")
            if not isinstance(delta, Mapping):
                # The last chunk of some servers is the whole message.
                delta = choice.get("message")
                delta = delta if isinstance(delta, Mapping) else {}
                message |= dict.fromkeys(delta)
                calls = [] if delta.get("tool_calls") else calls
            for name, text in delta.items():
                part_text = text_of(text) if name == "content" else text
                if isinstance(part_text, str) and name != "role":
                    message[name] = (message.get(name) or "") + part_text
            for part in delta.get("tool_calls") or ():
                _add_to_calls(calls, part)
            if isinstance(delta.get("function_call"), Mapping):  # the form before tools
                _add_to_calls(calls, {"index": 0, "function": delta["function_call"]})
    if finish is None:
        raise ReplyError("the stream ended before the answer did")
    message["tool_calls"] = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in calls
    ]
    return {**answer, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _add_to_calls(calls: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add a piece of a stream to the call that it belongs to.

    Gemini's compatible server and Ollama give every call the index 0, other servers none: there a
    name with another id begins a call. An id alone does not: old versions of vLLM make a new one
    for every piece. A name may come in pieces, or again and again.
    """
    function, index, number = part.get("function") or {}, part.get("index"), part.get("id")
    name, arguments = function.get("name") or "", function.get("arguments")
    call = next((call for call in reversed(calls) if index is None or call["index"] == index), None)
    if call is not None and name and call["name"]:
        has_other_id = bool(number and call["id"] and number != call["id"])
        if has_other_id or (index is None and not number and name != call["name"]):
            call = None
    if call is None:
        call = {"index": index, "id": number, "name": "", "arguments": ""}
        calls.append(call)
    call["id"] = call["id"] or number
    call["name"] += "" if name == call["name"] else name
    if arguments:
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)


def read_completion(data: Mapping[str, Any], request_id: str = "") -> ModelReply:
    """A Chat Completions answer, tolerant of deviations in compatible servers."""
    choices = data.get("choices")
    entries = (
        [one for one in choices if isinstance(one, Mapping)] if isinstance(choices, list) else []
    )
    # Some servers send several, and not in their order.
    choice = min(entries, key=lambda one: read_count(one.get("index")) or 0, default=None)
    if choice is None:
        raise ReplyError(f"an answer without choices: {json.dumps(data)[:200]}")
    if choice.get("error"):
        raise ReplyError("an error with a success status", body={"error": choice["error"]})
    message = choice.get("message")
    if not isinstance(message, Mapping):
        if not isinstance(choice.get("text"), str):
            raise ReplyError(f"an answer without a message: {json.dumps(data)[:200]}")
        message = {"content": choice["text"]}
    calls = tool_calls_of(message.get("tool_calls"))
    if not calls and isinstance(message.get("function_call"), Mapping):
        calls = tool_calls_of([message["function_call"]])
    content = message.get("content")
    if not isinstance(content, str | list | Mapping | None):
        raise ReplyError(f"an answer whose content is no text: {json.dumps(data)[:200]}")
    text = text_of(content)
    refusal = message.get("refusal")
    raw = choice.get("finish_reason")
    stop = stop_reason(raw) if raw else (StopReason.TOOL_CALLS if calls else StopReason.OTHER)
    if message.get("tool_calls") and stop is StopReason.STOP:
        stop = StopReason.TOOL_CALLS  # also where no call can be read
    if isinstance(refusal, str) and refusal.strip():
        text, stop = text or refusal, StopReason.REFUSED
    return ModelReply(
        text,
        calls,
        stop,
        str(raw or ""),
        count_tokens(data.get("usage")),
        str(data.get("model") or ""),
        request_id or str(data.get("id") or ""),
        _thinking_of(message),
        raw=data,
        cost=read_cost(data.get("usage")),
        fingerprint=str(data.get("system_fingerprint") or ""),
    )


def _thinking_of(message: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning", "thinking", "reasoning_text"):
        if isinstance(message.get(name), str) and message[name].strip():
            return str(message[name])
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    return "".join(
        json.dumps(part)
        for part in parts
        if isinstance(part, Mapping) and str(part.get("type", "")) in ("thinking", "reasoning")
    )


class ResponsesAgent(OpenAiAgent):
    """A model by OpenAI's Responses API: openai-responses:MODEL[@URL]."""

    kind = "openai-responses"
    sends_seed = False

    def warm(self, client: Any) -> None:
        _ = client.responses

    def body(self, request: Request) -> dict[str, Any]:
        settings = dict(request.settings)
        body: dict[str, Any] = {"model": request.model, "input": [], "store": False}
        for entry in request.entries:
            body["input"] += _as_items(entry)
        if request.system is not None:
            body["instructions"] = request.system
        body[request.limit_name or "max_output_tokens"] = request.limit
        effort = settings.pop("reasoning_effort", None)
        if effort is not None:
            body["reasoning"] = {"effort": effort}
        if request.response_format is not None:
            form = dict(request.response_format)
            body["text"] = {"format": {**form.pop("json_schema", {}), **form}}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    "strict": False,
                }
                for tool in request.tools
            ]
        return {**body, **settings}

    async def send(self, client: Any, body: dict[str, Any], *, stream: bool) -> ModelReply:
        rest = dict(body)
        required = {name: rest.pop(name) for name in ("model", "input")}
        if stream:
            required["stream"] = True
        create = client.responses.with_streaming_response.create
        async with create(**required, extra_body=rest) as answer:
            data = await read_answer(answer, _last_response if stream else None)
        return read_response(data, _request_id(answer.headers))


_LAST_EVENTS = ("completed", "incomplete", "failed", "cancelled", "done")


def _last_response(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the whole response, which the last event of a stream carries.

    Servers that store nothing leave its output out: then the items of the stream are its output.
    """
    items: list[Any] = []
    text = ""
    for event in events:
        kind = str(event.get("type", ""))
        if kind == "error":
            raise ReplyError("an error in the stream", body={"error": event.get("error") or event})
        if kind == "response.output_item.done":
            items.append(event.get("item"))
        elif kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            text += event["delta"]
        elif kind.removeprefix("response.") in _LAST_EVENTS and event.get("response"):
            message = {"type": "message", "content": text}
            response = dict(event["response"])
            return {**response, "output": response.get("output") or items or [message]}
    raise ReplyError("the stream ended before the answer did")


def read_response(data: Mapping[str, Any], request_id: str = "") -> ModelReply:
    """An answer of the Responses API."""
    output = data.get("output")
    if not output and isinstance(data.get("output_text"), str):
        output = [{"type": "message", "content": data["output_text"]}]
    if not isinstance(output, list):
        raise ReplyError(f"an answer without output: {json.dumps(data)[:200]}")
    items = [item for item in output if isinstance(item, Mapping)]
    calls = [
        {"id": item.get("call_id") or item.get("id"), "function": item}
        for item in items
        if item.get("type") == "function_call"
    ]
    thinking = [
        json.dumps(item.get("summary") or item.get("content") or "")
        for item in items
        if item.get("type") == "reasoning"
    ]
    contents = [item.get("content") for item in items if item.get("type") == "message"]
    parts = [part for content in contents for part in _parts(content)]
    refusals = [text_of(part) for part in parts if part.get("type") == "refusal"]
    texts = [text_of(part) for part in parts if part.get("type") != "refusal"]
    why = data.get("incomplete_details")
    reason = why.get("reason") if isinstance(why, Mapping) else None
    status = data.get("status")
    if status == "failed":
        raise ReplyError("the response failed", body={"error": data.get("error") or "failed"})
    stop = stop_reason(reason or status)
    if calls and stop is StopReason.STOP:
        stop = StopReason.TOOL_CALLS
    if refusals:
        stop = StopReason.REFUSED
    usage = data.get("usage")
    return ModelReply(
        "".join(texts) or "".join(refusals),
        tool_calls_of(calls),
        stop,
        str(reason or status or ""),
        count_tokens(usage),
        str(data.get("model") or ""),
        request_id or str(data.get("id") or ""),
        "".join(part for part in thinking if part not in ('""', "[]")),
        native=output,
        raw=data,
        cost=read_cost(usage),
    )


def _parts(content: object) -> list[Mapping[str, Any]]:
    entries = content if isinstance(content, list) else [content]
    return [
        part if isinstance(part, Mapping) else {"type": "text", "text": part} for part in entries
    ]


def _as_items(entry: Entry) -> list[dict[str, Any]]:
    if isinstance(entry, UserEntry):
        content: list[dict[str, Any]] = [{"type": "input_text", "text": entry.text}]
        content += [{"type": "input_image", "image_url": url} for url in entry.images]
        return [{"role": entry.role, "content": content if entry.images else entry.text}]
    if isinstance(entry, ToolResult):
        return [{"type": "function_call_output", "call_id": entry.call.id, "output": entry.text}]
    # Reasoning items belong to a stored response; nothing is stored, so they are not sent back.
    items: list[dict[str, Any]] = []
    if entry.text:
        items.append({"role": "assistant", "content": entry.text})
    return items + [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": _sendable(call),
        }
        for call in entry.calls
    ]


class AzureAgent(OpenAiAgent):
    """A deployment at Azure OpenAI: azure:DEPLOYMENT@https://RESOURCE.openai.azure.com."""

    kind = "azure"
    key_name = "AZURE_OPENAI_API_KEY"

    def open_client(self) -> Any:
        version = os.environ.get("OPENAI_API_VERSION", "2025-04-01-preview")
        try:
            # The endpoint's base URL comes from AZURE_OPENAI_ENDPOINT where none is given.
            endpoint = {} if self.base_url is None else {"azure_endpoint": self.base_url}
            return self.sdk.AsyncAzureOpenAI(api_version=version, max_retries=0, **endpoint)
        except (self.sdk.OpenAIError, ValueError) as error:
            raise InvalidValue(
                f"azure:{self.model} needs a key and an endpoint. {error}",
                hint="Set AZURE_OPENAI_API_KEY, and AZURE_OPENAI_ENDPOINT or "
                f"azure:{self.model}@https://RESOURCE.openai.azure.com",
            ) from None

    @property
    def is_elsewhere(self) -> bool:
        return False  # GPT-5 at Azure rejects max_tokens


class OpenRouterAgent(OpenAiAgent):
    """A model at OpenRouter: openrouter:VENDOR/MODEL, with the key in OPENROUTER_API_KEY."""

    kind = "openrouter"
    usual_url = "https://openrouter.ai/api/v1"
    key_name = "OPENROUTER_API_KEY"

    def open_client(self) -> Any:
        key = os.environ.get(self.key_name)
        if not key and self.base_url is None:
            raise InvalidValue(
                f"openrouter:{self.model} needs a key.", hint=f"Set {self.key_name}."
            )
        return self.sdk.AsyncOpenAI(
            base_url=self.base_url or self.usual_url, api_key=key or "no-key", max_retries=0
        )


class OllamaAgent(OpenAiAgent):
    """A model of a local Ollama: ollama:MODEL, at http://localhost:11434 or OLLAMA_HOST."""

    kind = "ollama"
    usual_url = "http://localhost:11434/v1"

    def open_client(self) -> Any:
        host = os.environ.get("OLLAMA_HOST", "")
        address = self.base_url or (ollama_address(host) if host.strip() else self.usual_url)
        return self.sdk.AsyncOpenAI(base_url=address, api_key="ollama", max_retries=0)

    @property
    def is_elsewhere(self) -> bool:
        return True


def ollama_address(host: str) -> str:
    """The address in OLLAMA_HOST as Ollama's own client reads it.

    Examples
    --------
    >>> ollama_address("0.0.0.0"), ollama_address("https://models.example/"), ollama_address(":9")
    ('http://127.0.0.1:11434/v1', 'https://models.example:443/v1', 'http://127.0.0.1:9/v1')
    """
    scheme, _, rest = host.strip().rpartition("://")
    name, slash, path = rest.partition("/")
    try:
        parts = urlsplit(f"//{name}")
        port = parts.port or {"http": 80, "https": 443}.get(scheme, 11434)
    except ValueError as error:
        raise InvalidValue(
            f"OLLAMA_HOST is {host!r}, which is no address ({error}).",
            hint="Set it as in OLLAMA_HOST=127.0.0.1:11434.",
        ) from None
    # The server may listen everywhere; a client needs one address.
    machine = parts.hostname if parts.hostname not in (None, "0.0.0.0", "::") else "127.0.0.1"
    machine = f"[{machine}]" if ":" in str(machine) else machine
    return f"{scheme or 'http'}://{machine}:{port}{slash}{path}".rstrip("/") + "/v1"


def _write_entry(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, UserEntry):
        if not entry.images:
            return _message(entry.role, entry.text)
        parts: list[dict[str, Any]] = [{"type": "text", "text": entry.text}]
        parts += [{"type": "image_url", "image_url": {"url": url}} for url in entry.images]
        return {"role": entry.role, "content": parts}
    if isinstance(entry, ToolResult):
        return {**_message("tool", entry.text), "tool_call_id": entry.call.id}
    message = _message("assistant", entry.text)
    if entry.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _sendable(call)},
            }
            for call in entry.calls
        ]
    return message


def _sendable(call: ToolCall) -> str:
    """The arguments of an earlier call; servers that parse them fail on invalid JSON."""
    return call.arguments if arguments_of(call) is not None else "{}"


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _request_id(headers: Any) -> str:
    return str(headers.get("x-request-id") or headers.get("apim-request-id") or "")
