"""``gemini:MODEL[@BASE_URL]``: Google's generateContent, with the key in GEMINI_API_KEY.

The REST API is called directly: its SDK would add nothing but another form of the same fields.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from passhat.agents.base import StopReason
from passhat.agents.chat import (
    ChatAgent,
    Entry,
    Request,
    ToolResult,
    UserEntry,
    arguments_of,
    merge_turns,
    read_events,
    split_data_url,
)
from passhat.agents.prices import TokenCount, read_count
from passhat.agents.provider import ModelReply, ReplyError, ToolCall
from passhat.agents.provider_tables import stop_reason
from passhat.errors import InvalidValue

_SECONDS = 600.0
_SETTINGS = {
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}


class APIStatusError(Exception):
    """An answer whose status is no success."""

    def __init__(self, answer: Any) -> None:
        try:
            self.body: object = answer.json()
        except ValueError:
            self.body = answer.text
        self.message = f"HTTP {answer.status_code}"
        super().__init__(self.message)
        self.status_code = answer.status_code
        self.response = answer


class GeminiAgent(ChatAgent):
    """A Gemini model by its name: gemini:MODEL, with the key in GEMINI_API_KEY."""

    kind = "gemini"
    module = "httpx"
    extra = "gemini"
    usual_url = "https://generativelanguage.googleapis.com/v1beta"

    def open_client(self) -> Any:
        key = os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")
        if not key and self.base_url is None:
            raise InvalidValue(
                f"gemini:{self.model} needs a key.", hint="Set GEMINI_API_KEY or GOOGLE_API_KEY."
            )
        address = self.base_url or os.environ.get("GEMINI_BASE_URL") or self.usual_url
        headers = {"x-goog-api-key": key} if key else {}
        return self.sdk.AsyncClient(base_url=address, headers=headers, timeout=_SECONDS)

    @property
    def errors(self) -> Any:
        return SimpleNamespace(
            APIStatusError=APIStatusError, APIConnectionError=self.sdk.TransportError
        )

    def warm(self, client: Any) -> None:
        del client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def body(self, request: Request) -> dict[str, Any]:
        settings = dict(request.settings)
        effort = settings.pop("reasoning_effort", None)
        config: dict[str, Any] = {
            request.limit_name or "maxOutputTokens": request.limit,
            **({} if request.seed is None else {"seed": request.seed}),
        }
        for name in ("temperature", *_SETTINGS):
            if name in settings:
                config[_SETTINGS.get(name, name)] = settings.pop(name)
        if request.stop:
            config["stopSequences"] = list(request.stop)
        if request.thinking:
            config["thinkingConfig"] = {"thinkingBudget": request.thinking}
        if effort is not None:
            config["thinkingConfig"] = {"thinkingLevel": effort}
        if request.response_format is not None:
            config["responseMimeType"] = "application/json"
            if schema := request.response_format.get("json_schema", {}).get("schema"):
                config["responseJsonSchema"] = schema
        body: dict[str, Any] = {
            "contents": merge_turns(map(_write_entry, request.entries), "parts"),
            "generationConfig": config,
        }
        if request.system is not None:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            declarations = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": dict(tool.parameters),
                }
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": declarations}]
        return {**body, **settings}

    async def send(self, client: Any, body: dict[str, Any], *, stream: bool) -> ModelReply:
        method = "streamGenerateContent" if stream else "generateContent"
        params = {"alt": "sse"} if stream else {}
        async with client.stream(
            "POST", f"models/{self.model}:{method}", params=params, json=body
        ) as answer:
            if answer.status_code >= 400:
                await answer.aread()
                raise APIStatusError(answer)
            return read_candidates(await read_events(answer, merge_candidates))


def merge_candidates(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the chunks of a stream into the answer that would have come whole."""
    answer: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[Any] = []
    for chunk in chunks:
        answer |= chunk
        for first in (chunk.get("candidates") or [])[:1]:
            candidate |= first
            parts += (first.get("content") or {}).get("parts") or []
    if not candidate.get("finishReason") and "promptFeedback" not in answer:
        raise ReplyError("the stream ended before the answer did")
    if candidate:
        answer["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    return answer


def read_candidates(data: Mapping[str, Any]) -> ModelReply:
    """An answer of generateContent; a blocked prompt has no candidates."""
    candidates = data.get("candidates")
    feedback = data.get("promptFeedback")
    block_reason = feedback.get("blockReason") if isinstance(feedback, Mapping) else None
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    tokens = _count_tokens(data.get("usageMetadata"))
    model, name = str(data.get("modelVersion") or ""), str(data.get("responseId") or "")
    if not isinstance(first, Mapping):
        if not block_reason:
            raise ReplyError(f"an answer without candidates: {json.dumps(data)[:200]}")
        return ModelReply(
            "",
            (),
            StopReason.FILTERED,
            f"prompt blocked: {block_reason}",
            tokens,
            model,
            name,
            raw=data,
        )
    content = first.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    texts: list[str] = []
    thinking: list[str] = []
    calls: list[ToolCall] = []
    writes_calls = False
    for place, part in enumerate(parts if isinstance(parts, list) else ()):
        if not isinstance(part, Mapping):
            continue
        if isinstance(call := part.get("functionCall"), Mapping):
            writes_calls = True
            arguments = json.dumps(call.get("args") or {})
            number = str(call.get("id") or f"call_{place}")
            if name_of_tool := call.get("name"):
                calls.append(ToolCall(number, str(name_of_tool), arguments))
        elif isinstance(part.get("text"), str):
            (thinking if part.get("thought") else texts).append(part["text"])
    raw = str(first.get("finishReason") or "")
    stop = stop_reason(raw)
    if writes_calls and stop in (StopReason.STOP, StopReason.OTHER):
        stop = StopReason.TOOL_CALLS
    return ModelReply(
        "".join(texts),
        tuple(calls),
        stop,
        raw,
        tokens,
        model,
        name,
        "".join(thinking),
        # Thought signatures have to come back with the parts they belong to.
        native=parts,
        raw=data,
    )


def _write_entry(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, UserEntry):
        return {"role": "user", "parts": [{"text": entry.text}, *map(_image, entry.images)]}
    if isinstance(entry, ToolResult):
        response = {"name": entry.call.name, "response": {"result": entry.text}}
        return {"role": "user", "parts": [{"functionResponse": response}]}
    if entry.native:
        return {"role": "model", "parts": list(entry.native)}
    parts: list[dict[str, Any]] = [{"text": entry.text}] if entry.text else []
    parts += [
        {"functionCall": {"name": call.name, "args": arguments_of(call) or {}}}
        for call in entry.calls
    ]
    return {"role": "model", "parts": parts or [{"text": ""}]}


def _image(url: str) -> dict[str, Any]:
    if data_url := split_data_url(url):
        kind, data = data_url
        return {"inlineData": {"mimeType": kind, "data": data}}
    return {"fileData": {"fileUri": url}}


def _count_tokens(usage: object) -> TokenCount | None:
    count = {
        name: read_count(value) or 0
        for name, value in (usage.items() if isinstance(usage, Mapping) else ())
    }
    if not isinstance(usage, Mapping) or read_count(usage.get("promptTokenCount")) is None:
        return None
    thoughts = count.get("thoughtsTokenCount", 0)
    # Candidates leave thoughts out, and are absent where there is no text; thoughts are billed.
    outputs = count.get("candidatesTokenCount", 0) + thoughts
    inputs = count["promptTokenCount"] + count.get("toolUsePromptTokenCount", 0)
    cached = min(count.get("cachedContentTokenCount", 0), inputs)
    return TokenCount(inputs, outputs, cached, 0, thoughts or None)
