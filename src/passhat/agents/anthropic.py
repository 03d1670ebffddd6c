"""``anthropic:MODEL[@BASE_URL]``: the official SDK and its Messages API.

The same models at other clouds, by the SDK's own clients for them: ``bedrock:MODEL`` at AWS and
``vertex:MODEL`` at Google, with the credentials and the region that those clouds' tools use.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
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
    read_answer,
    split_data_url,
)
from passhat.agents.prices import TokenCount, read_cost, read_count
from passhat.agents.provider import ModelReply, ReplyError, ToolCall
from passhat.agents.provider_tables import stop_reason
from passhat.errors import InvalidValue, MissingExtra

_GUARDRAIL = "amazon-bedrock-guardrailAction"
"""Bedrock's note at an answer that its guardrail replaced; the model's reason stays as it was."""
_EMPTY = "(nothing)"
"""The API takes no empty text."""


class AnthropicAgent(ChatAgent):
    """A model by its name, at Anthropic or at an address that is compatible: anthropic:MODEL."""

    kind = "anthropic"
    usual_url = "https://api.anthropic.com"
    sends_seed = False

    def open_client(self) -> Any:
        # The SDK adds /v1 itself; addresses of compatible servers are often given with it.
        base_url = self.base_url and self.base_url.rstrip("/").removesuffix("/v1")
        client = self.sdk.AsyncAnthropic(base_url=base_url, max_retries=0)
        if client.api_key or client.auth_token or getattr(client, "credentials", None):
            return client
        if base_url is not None:  # a local server rarely needs a key
            return self.sdk.AsyncAnthropic(base_url=base_url, max_retries=0, api_key="no-key")
        raise InvalidValue(
            f"{self.kind}:{self.model} needs a key.",
            hint="Set ANTHROPIC_API_KEY, or give the address of your own server: "
            f"{self.kind}:{self.model}@http://127.0.0.1:8000",
        )

    def warm(self, client: Any) -> None:
        _ = client.messages

    def body(self, request: Request) -> dict[str, Any]:
        settings = dict(request.settings)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.limit,
            "messages": merge_turns(map(_write_entry, request.entries), "content"),
        }
        if request.system is not None:
            body["system"] = request.system
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters),
                }
                for tool in request.tools
            ]
        effort = settings.pop("reasoning_effort", None)
        if effort is not None:
            body["output_config"] = {"effort": effort}
        if request.thinking:
            body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking}
        if request.response_format is not None:
            schema = request.response_format.get("json_schema", {}).get("schema")
            if schema is None:
                raise InvalidValue("anthropic models take a response_format with a JSON schema.")
            form = {"type": "json_schema", "schema": schema}
            body["output_config"] = {**body.get("output_config", {}), "format": form}
        if request.cache:
            _mark_for_cache(body)
        return {**body, **settings}

    async def send(self, client: Any, body: dict[str, Any], *, stream: bool) -> ModelReply:
        rest = dict(body)
        required = {name: rest.pop(name) for name in ("model", "max_tokens", "messages")}
        # Not every version of the SDK names the other settings; the API takes them from the body.
        if stream:
            required["stream"] = True
        create = client.messages.with_streaming_response.create
        async with create(**required, extra_body=rest) as answer:
            data = await read_answer(answer, merge_events if stream else None)
        if data.get("type") == "error":
            raise ReplyError("an error with a success status", body=data)
        return read_message(data, str(answer.headers.get("request-id") or ""))


def merge_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the events of a stream into the message that would have come whole."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        kind = event.get("type")
        message |= {name: value for name, value in event.items() if name == _GUARDRAIL}
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif kind == "content_block_delta":
            delta = event["delta"]
            # Some servers begin a block without saying so.
            kind_of_block = str(delta.get("type", "")).removesuffix("_delta")
            block = blocks.setdefault(event["index"], {"type": kind_of_block, "json": ""})
            block["json"] += delta.get("partial_json") or ""
            for name in ("text", "thinking", "signature"):
                if delta.get(name):
                    block[name] = (block.get(name) or "") + delta[name]
        elif kind == "message_delta":
            message |= {name: value for name, value in event["delta"].items() if value}
            usage = {name: value for name, value in (event.get("usage") or {}).items() if value}
            message["usage"] = {**(message.get("usage") or {}), **usage}
    if not message.get("stop_reason"):
        raise ReplyError("the stream ended before the answer did")
    content = []
    for _, block in sorted(blocks.items()):
        arguments = block.pop("json")
        content.append({**block, "input": arguments} if arguments else block)
    return {**message, "content": content}


class BedrockAgent(AnthropicAgent):
    """A Claude model at Amazon Bedrock: bedrock:MODEL; credentials and region as for AWS tools."""

    kind = "bedrock"
    module = "anthropic"

    def open_client(self) -> Any:
        try:
            import boto3  # type: ignore[import-untyped]
        except ImportError:
            raise MissingExtra(f"The agent {self.kind}:{self.model}", extra="bedrock") from None
        # A key of Bedrock's own, or what AWS's tools find: variables, a profile, the machine.
        if not os.environ.get("AWS_BEARER_TOKEN_BEDROCK") and not boto3.Session().get_credentials():
            raise InvalidValue(
                f"{self.kind}:{self.model} needs credentials of AWS.",
                hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or "
                "AWS_BEARER_TOKEN_BEDROCK; the region is AWS_REGION.",
            )
        return self.sdk.AsyncAnthropicBedrock(base_url=self.base_url, max_retries=0)


class VertexAgent(AnthropicAgent):
    """A Claude model at Google's Vertex AI: vertex:MODEL; project and credentials as for gcloud."""

    kind = "vertex"
    module = "anthropic"

    def open_client(self) -> Any:
        options: dict[str, Any] = {"region": os.environ.get("CLOUD_ML_REGION") or "global"}
        token = os.environ.get("CLOUDSDK_AUTH_ACCESS_TOKEN")
        project = os.environ.get("ANTHROPIC_VERTEX_PROJECT_ID")
        if token:
            options["access_token"] = token
        else:
            options["credentials"], default_project = self._credentials()
            project = project or default_project
        if not project:
            raise InvalidValue(
                f"{self.kind}:{self.model} needs a project.",
                hint="Set ANTHROPIC_VERTEX_PROJECT_ID; the region is CLOUD_ML_REGION.",
            )
        return self.sdk.AsyncAnthropicVertex(
            base_url=self.base_url, project_id=project, max_retries=0, **options
        )

    def _credentials(self) -> tuple[Any, str | None]:
        """The credentials that Google's tools use, and their project."""
        try:
            import google.auth
            from google.auth.exceptions import DefaultCredentialsError
        except ImportError:
            raise MissingExtra(f"The agent {self.kind}:{self.model}", extra="vertex") from None
        try:
            credentials: tuple[Any, str | None] = google.auth.default(
                scopes=["https://www.googleapis.com/auth/cloud-platform"]
            )
        except DefaultCredentialsError as error:
            raise InvalidValue(
                f"{self.kind}:{self.model} needs credentials of Google Cloud. {error}",
                hint="Run gcloud auth application-default login, or set "
                "GOOGLE_APPLICATION_CREDENTIALS or CLOUDSDK_AUTH_ACCESS_TOKEN.",
            ) from None
        return credentials


def read_message(data: Mapping[str, Any], request_id: str = "") -> ModelReply:
    """An answer of the Messages API, tolerant of deviations in compatible servers."""
    content = data.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ReplyError(f"an answer without content: {json.dumps(data)[:200]}")
    texts, thinking, calls = [], [], []
    for place, block in enumerate(content):
        if not isinstance(block, Mapping):
            continue
        kind = block.get("type", "text" if "text" in block else "")
        if kind == "text":
            texts.append(str(block.get("text") or ""))
        elif kind in ("thinking", "redacted_thinking"):
            thinking.append(str(block.get("thinking") or block.get("data") or "thinking"))
        elif kind == "tool_use" and block.get("name"):
            value = block.get("input")
            arguments = value if isinstance(value, str) else json.dumps(value or {})
            calls.append(
                ToolCall(str(block.get("id") or f"toolu_{place}"), str(block["name"]), arguments)
            )
    raw = data.get("stop_reason")
    stop = stop_reason(raw) if raw else (StopReason.TOOL_CALLS if calls else StopReason.OTHER)
    if data.get(_GUARDRAIL) == "INTERVENED":
        stop = StopReason.FILTERED
    return ModelReply(
        "".join(texts),
        tuple(calls),
        stop,
        str(raw or ""),
        _count_tokens(data.get("usage")),
        str(data.get("model") or ""),
        request_id or str(data.get("id") or ""),
        "".join(thinking),
        # Thinking has to come back as it was, signature included.
        native=content if thinking else None,
        raw=data,
        cost=read_cost(data.get("usage")),
    )


def _mark_for_cache(body: dict[str, Any]) -> None:
    """Ask for a cached prefix: tools and system, and the conversation so far."""
    mark = {"cache_control": {"type": "ephemeral"}}
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], **mark}]
    elif "tools" in body:
        body["tools"][-1] = {**body["tools"][-1], **mark}
    last = body["messages"][-1]
    if isinstance(last["content"], list) and last["content"]:
        last["content"][-1] = {**last["content"][-1], **mark}


def _write_entry(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, UserEntry):
        parts = [{"type": "text", "text": entry.text or _EMPTY}, *map(_image, entry.images)]
        return {"role": entry.role, "content": parts}
    if isinstance(entry, ToolResult):
        result = {"type": "tool_result", "tool_use_id": entry.call.id, "content": entry.text}
        return {"role": "user", "content": [result]}
    if entry.native is not None:
        return {"role": "assistant", "content": list(entry.native)}
    blocks: list[dict[str, Any]] = []
    if entry.text.strip():
        blocks.append({"type": "text", "text": entry.text.strip()})
    blocks += [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments_of(call) or {},
        }
        for call in entry.calls
    ]
    return {"role": "assistant", "content": blocks or [{"type": "text", "text": _EMPTY}]}


def _image(url: str) -> dict[str, Any]:
    if data_url := split_data_url(url):
        kind, data = data_url
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _count_tokens(usage: object) -> TokenCount | None:
    if not isinstance(usage, Mapping):
        return None
    inputs, outputs = read_count(usage.get("input_tokens")), read_count(usage.get("output_tokens"))
    if inputs is None or outputs is None:
        return None
    cached = read_count(usage.get("cache_read_input_tokens")) or 0
    written = read_count(usage.get("cache_creation_input_tokens")) or 0
    details = usage.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if isinstance(details, Mapping) else None
    # The API's own number of input tokens leaves out both.
    return TokenCount(inputs + cached + written, outputs, cached, written, read_count(thinking))
