"""OpenTelemetry spans that an agent emits, received on loopback and read as model and tool calls.

An agent under test that has its framework's own instrumentation sends its spans over OTLP/HTTP
(protobuf or JSON) to a receiver that runs in a thread of its own. Spans of a model or tool call,
by the GenAI semantic conventions, OpenInference or OpenLLMetry, become call records.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import secrets
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from passhat.agents.base import ModelCall
from passhat.agents.prices import PriceTable, TokenCount
from passhat.agents.provider_tables import stop_reason
from passhat.errors import InvalidValue
from passhat.runner.serving import Listening, open_socket

GRPC = "gRPC"
LARGEST_REQUEST = 8 * 1024 * 1024
"""Bytes of one request, also after unpacking. The SDKs send at most 512 spans in one."""
MOST_SPANS = 5_000
MOST_CHARACTERS = 16 * 1024 * 1024
"""Limits of what is kept of one attempt; the rest is dropped and counted."""
_LONGEST_VALUE = 100_000
_MOST_ATTRIBUTES = 500
_DEEPEST = 100
"""Ancestors looked at: the parents in a stranger's spans may go round in a circle."""
_START_SECONDS = 60.0

_KEPT = (
    "gen_ai.",
    "llm.",
    "openinference.span.kind",
    "traceloop.",
    "tool.",
    "tool_",
    "input.value",
    "output.value",
    "operation.cost",
    "error.type",
)
_MODEL, _TOOL = "model", "tool"
_OPERATIONS = {
    "chat": _MODEL,
    "text_completion": _MODEL,
    "generate_content": _MODEL,
    "embeddings": _MODEL,
    "execute_tool": _TOOL,
}
"""Other operations, such as ``invoke_agent``, repeat the tokens of the calls inside them."""
_SPAN_KINDS = {"LLM": _MODEL, "EMBEDDING": _MODEL, "TOOL": _TOOL}
_INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
)
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
)
_CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.details.reasoning_tokens",
    "llm.token_count.completion_details.reasoning",
)
_COST = ("gen_ai.usage.cost", "operation.cost", "llm.cost.total")
_STOP = ("gen_ai.response.finish_reasons", "gen_ai.completion.0.finish_reason")
_SENT = ("gen_ai.input.messages", "gen_ai.prompt", "input.value", "traceloop.entity.input")
_CAME = ("gen_ai.output.messages", "gen_ai.completion", "output.value", "traceloop.entity.output")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "tool.parameters",
    "input.value",
    "traceloop.entity.input",
)
_RESULT = ("gen_ai.tool.call.result", "tool_response", "output.value", "traceloop.entity.output")


@dataclass(frozen=True, slots=True)
class Span:
    """The kept part of a span: ids as hexadecimal text, times in seconds since 1970."""

    trace: str
    id: str
    parent: str
    name: str
    started: float
    ended: float
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


# -- decoding OTLP --------------------------------------------------------------------------------


def decode_spans(body: bytes, content_type: str) -> list[Span]:
    """The spans of a request of OTLP/HTTP, as protobuf or as JSON.

    Raises
    ------
    ValueError
        It is neither.
    """
    if "json" not in content_type:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        try:
            return spans_of_message(ExportTraceServiceRequest.FromString(body))
        except DecodeError as error:
            raise ValueError(str(error)) from None
    try:
        return list(_spans_of_json(msgspec.json.decode(body)))
    except (msgspec.DecodeError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not OTLP in JSON ({error})") from None


def spans_of_message(message: Any) -> list[Span]:
    """The spans of an ``ExportTraceServiceRequest``."""
    return [
        Span(
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.name[:_LONGEST_VALUE],
            span.start_time_unix_nano / 1e9,
            span.end_time_unix_nano / 1e9,
            _attributes((one.key, _value_of_message(one.value)) for one in span.attributes),
            _status(span.status.code, span.status.message),
        )
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _value_of_message(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value_of_message(entry) for entry in value.array_value.values]
    if kind == "kvlist_value":
        return {one.key: _value_of_message(one.value) for one in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return None if kind is None else getattr(value, kind)


def _spans_of_json(data: Any) -> Iterator[Span]:
    for resource in data.get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                status = span.get("status") or {}
                yield Span(
                    _hexadecimal(span.get("traceId")),
                    _hexadecimal(span.get("spanId")),
                    _hexadecimal(span.get("parentSpanId")),
                    str(span.get("name") or "")[:_LONGEST_VALUE],
                    int(span.get("startTimeUnixNano") or 0) / 1e9,
                    int(span.get("endTimeUnixNano") or 0) / 1e9,
                    _attributes(
                        (str(one.get("key")), _value_of_json(one.get("value") or {}))
                        for one in span.get("attributes") or ()
                    ),
                    _status(status.get("code"), str(status.get("message") or "")),
                )


def _hexadecimal(text: Any) -> str:
    """An id in OTLP's JSON is hexadecimal; some senders use protobuf's own rule, base64."""
    word = str(text or "")
    if len(word) in (0, 16, 32):
        return word.lower()
    with_padding = word + "=" * (-len(word) % 4)
    try:
        return base64.b64decode(with_padding, validate=True).hex()
    except binascii.Error as error:
        raise TypeError(str(error)) from None


def _value_of_json(value: Any) -> Any:
    for name, content in value.items():
        if name == "intValue":
            return int(content)
        if name == "arrayValue":
            return [_value_of_json(entry) for entry in content.get("values") or ()]
        if name == "kvlistValue":
            entries = content.get("values") or ()
            return {str(one.get("key")): _value_of_json(one.get("value") or {}) for one in entries}
        return content
    return None


def _attributes(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Attributes that say something about a model or tool call; long texts are cut."""
    attributes: dict[str, Any] = {}
    for key, value in pairs:
        if key.startswith(_KEPT) and len(attributes) < _MOST_ATTRIBUTES:
            attributes[key] = value[:_LONGEST_VALUE] if isinstance(value, str) else value
    return attributes


def _status(code: Any, message: str) -> str:
    """The error that a span's status tells; empty where it tells none."""
    return (message[:_LONGEST_VALUE] or "error") if code in (2, "STATUS_CODE_ERROR") else ""


# -- reading the conventions ----------------------------------------------------------------------


def calls_in(spans: Sequence[Span], prices: PriceTable | None) -> list[ModelCall]:
    """The model and tool calls in the spans of one attempt, in the order they began.

    Two instrumentations may wrap one call, say a framework's and that of the model's SDK: of spans
    of model calls inside each other, those that count tokens are taken, and the outermost of those.
    """
    by_id = {span.id: span for span in spans}
    kinds = {span.id: _kind(span) for span in by_id.values()}
    outer = {
        span.id: _enclosing_calls(span, by_id, kinds) for span in by_id.values() if kinds[span.id]
    }
    counts = {id_: _tokens(by_id[id_]) is not None for id_ in outer}
    with_counts_inside = {above for id_, chain in outer.items() if counts[id_] for above in chain}
    calls = []
    for span in sorted(by_id.values(), key=lambda span: span.started):
        if span.id not in outer:
            continue
        enclosing = outer[span.id]
        if kinds[span.id] == _TOOL:
            if not any(_tool_name(by_id[above]) == _tool_name(span) for above in enclosing):
                calls.append(_tool_call(span))
        elif counts[span.id]:
            if not any(counts[above] for above in enclosing):
                calls.append(_model_call(span, prices))
        elif not enclosing and span.id not in with_counts_inside:
            calls.append(_model_call(span, prices))
    return calls


def _kind(span: Span) -> str:
    """Whether a span is a model call or a tool call; empty for everything else."""
    about = span.attributes
    operation = about.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return _OPERATIONS.get(operation, "")
    if "openinference.span.kind" in about:
        return _SPAN_KINDS.get(str(about["openinference.span.kind"]).upper(), "")
    if "traceloop.span.kind" in about:
        return _TOOL if about["traceloop.span.kind"] == _TOOL else ""
    if "gen_ai.tool.name" in about:
        return _TOOL
    has_provider = "gen_ai.system" in about or "gen_ai.provider.name" in about
    return _MODEL if has_provider and _tokens(span) is not None else ""


def _enclosing_calls(span: Span, by_id: Mapping[str, Span], kinds: Mapping[str, str]) -> list[str]:
    """Ids of the spans of the same kind that a span is inside of, up to one of the other kind."""
    chain: list[str] = []
    parent = span.parent
    for _ in range(_DEEPEST):
        if parent not in by_id or parent == span.id:
            break
        if kinds[parent] == kinds[span.id]:
            chain.append(parent)
        elif kinds[parent]:
            break
        parent = by_id[parent].parent
    return chain


def _model_call(span: Span, prices: PriceTable | None) -> ModelCall:
    about = span.attributes
    request_model = _text(about, "gen_ai.request.model", "llm.model_name")
    model = _text(about, "gen_ai.response.model") or request_model
    provider = _text(about, "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
    tokens = _tokens(span)
    stop = _first(about, _STOP)
    stop = stop[0] if isinstance(stop, list) and stop else stop
    cost, price_source = _number(about, *_COST), ""
    if cost is None and tokens is not None and prices is not None and model:
        price = prices.price_of_model(model) or (
            prices.price_of_model(request_model) if request_model else None
        )
        if price is not None:
            cost, price_source = price.of(tokens), price.source
    limit = _number(about, "gen_ai.request.max_tokens")
    return ModelCall(
        ":".join(word for word in (provider, request_model or model) if word) or "model",
        model=model,
        stop=str(stop_reason(stop)) if stop else "",
        stop_raw=str(stop or ""),
        input_tokens=None if tokens is None else tokens.input,
        output_tokens=None if tokens is None else tokens.output,
        cached_tokens=None if tokens is None else tokens.cached,
        reasoning_tokens=None if tokens is None else tokens.reasoning,
        cost=cost,
        priced=price_source,
        limit=None if limit is None else int(limit),
        seconds=max(0.0, span.ended - span.started),
        started=span.started,
        request_id=_text(about, "gen_ai.response.id"),
        error=_error(span),
        request=_plain(_first(about, _SENT)),
        reply=_plain(_first(about, _CAME)),
        source="spans",
    )


def _tool_call(span: Span) -> ModelCall:
    return ModelCall(
        _tool_name(span),
        role="tool",
        seconds=max(0.0, span.ended - span.started),
        started=span.started,
        error=_error(span),
        request=_plain(_first(span.attributes, _ARGUMENTS)),
        reply=_plain(_first(span.attributes, _RESULT)),
        source="spans",
    )


def _tool_name(span: Span) -> str:
    name = _text(span.attributes, "gen_ai.tool.name", "tool.name", "traceloop.entity.name")
    return name or span.name.removeprefix("execute_tool").strip() or "tool"


def _error(span: Span) -> str:
    kind = _text(span.attributes, "error.type")
    return ": ".join(dict.fromkeys(word for word in (kind, span.error) if word))


def _tokens(span: Span) -> TokenCount | None:
    about = span.attributes
    inputs, outputs = _number(about, *_INPUT), _number(about, *_OUTPUT)
    if inputs is None and outputs is None:
        return None
    input_count, reasoning = int(inputs or 0), _number(about, *_REASONING)
    cached = min(int(_number(about, *_CACHED) or 0), input_count)
    cache_writes = min(int(_number(about, *_WRITTEN) or 0), input_count - cached)
    return TokenCount(
        input_count,
        int(outputs or 0),
        cached,
        cache_writes,
        None if reasoning is None else int(reasoning),
    )


def _first(about: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((about[name] for name in names if about.get(name) not in (None, "")), None)


def _text(about: Mapping[str, Any], *names: str) -> str:
    value = _first(about, names)
    return value if isinstance(value, str) else ""


def _number(about: Mapping[str, Any], *names: str) -> float | None:
    """A finite number that is not negative; senders also write numbers as text."""
    for name in names:
        try:
            number = float(about[name])
        except (KeyError, TypeError, ValueError):
            continue
        if 0 <= number < 1e15:
            return number
    return None


def _plain(value: Any) -> Any:
    """Content as data: the conventions allow structures, and the same as JSON text."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


# -- receiving ------------------------------------------------------------------------------------


class Inbox:
    """The spans of one attempt. Filled by the receiver's thread, emptied by the runner.

    ``trace`` and ``span`` are the ids of the attempt's trace and of its own span; ``dropped``
    counts spans beyond the limits.
    """

    def __init__(self, url: str = "") -> None:
        self.trace = secrets.token_hex(16)
        self.span = secrets.token_hex(8)
        self.key = secrets.token_urlsafe(16)
        self.endpoint = f"{url}/{self.key}" if url else ""
        self.dropped = 0
        self._spans: list[Span] = []
        self._characters = 0
        self._lock = threading.Lock()
        self._changed: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    @property
    def traceparent(self) -> str:
        """The W3C trace context of the attempt."""
        return f"00-{self.trace}-{self.span}-01"

    def add(self, span: Span) -> None:
        """Keep a span, if there is room."""
        size = len(span.name) + sum(
            len(value) if isinstance(value, str) else 20 * len(repr(value)) // 10
            for value in span.attributes.values()
        )
        with self._lock:
            if len(self._spans) >= MOST_SPANS or self._characters + size > MOST_CHARACTERS:
                self.dropped += 1
                return
            self._spans.append(span)
            self._characters += size
            listener = self._changed
        if listener is not None:
            listener[0].call_soon_threadsafe(listener[1].set)

    def is_full(self) -> bool:
        return self.dropped > 0

    def spans(self) -> list[Span]:
        with self._lock:
            return list(self._spans)

    def is_complete(self) -> bool:
        """Whether a span that the attempt itself began has ended, and every parent is known."""
        spans = self.spans()
        span_ids = {self.span, *(span.id for span in spans)}
        return any(span.parent == self.span for span in spans) and all(
            span.parent in span_ids for span in spans
        )

    async def wait_until_complete(self, seconds: float) -> None:
        """Wait until the trace is complete, at most so long."""
        event = asyncio.Event()
        with self._lock:
            self._changed = asyncio.get_running_loop(), event
        try:
            async with asyncio.timeout(seconds):
                while not self.is_complete():
                    await event.wait()
                    event.clear()
        except TimeoutError:
            pass
        finally:
            with self._lock:
                self._changed = None


class SpanReceiver:
    """Receives spans over OTLP/HTTP on 127.0.0.1, in a thread of its own.

    Every attempt has a path of its own, so a program that is started for one attempt needs to
    know nothing of traces. At the fixed port of ``otlp_port`` attempts are told apart by their
    trace id.
    """

    def __init__(self, port: int | None = None) -> None:
        try:
            self._socket = open_socket("127.0.0.1", port or 0)
        except InvalidValue as error:
            raise InvalidValue(
                error.message, hint="Choose another otlp_port, or end what listens there."
            ) from None
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._by_key: dict[str, Inbox] = {}
        self._by_trace: dict[str, Inbox] = {}
        self.refused: Counter[str] = Counter()  # what came and cannot be used
        self._ready = threading.Event()
        self._stop: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), daemon=True, name="passhat spans"
        )

    def start(self) -> None:
        """Start listening; returns when requests are answered."""
        self._thread.start()
        self._ready.wait(_START_SECONDS)

    def close(self) -> None:
        """Stop listening."""
        if self._stop is not None:
            loop, event = self._stop
            loop.call_soon_threadsafe(event.set)
            self._thread.join(_START_SECONDS)
        self._socket.close()

    def open(self, inbox: Inbox) -> None:
        """Take spans for an attempt from now on."""
        self._by_key[inbox.key] = self._by_trace[inbox.trace] = inbox

    def forget(self, inbox: Inbox) -> None:
        """Take no more spans for an attempt."""
        self._by_key.pop(inbox.key, None)
        self._by_trace.pop(inbox.trace, None)

    async def _serve(self) -> None:
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [
            Route(f"{prefix}/v1/{{signal}}", self._answer, methods=["POST"])
            for prefix in ("", "/{key}")
        ]
        routes.append(Route("/{rest:path}", self._refuse, methods=["POST"]))
        stop = asyncio.Event()
        note_grpc = partial(self.refused.update, [GRPC])
        async with Listening(Starlette(routes=routes), self._socket, on_http2=note_grpc):
            self._stop = asyncio.get_running_loop(), stop
            self._ready.set()
            await stop.wait()

    async def _refuse(self, request: Any) -> Any:
        from starlette.responses import Response

        self.refused[request.url.path[:200]] += 1
        return Response("spans are taken at /v1/traces", 404)

    async def _answer(self, request: Any) -> Any:
        from starlette.responses import Response

        key = request.path_params.get("key")
        inbox = None if key is None else self._by_key.get(key)
        if key is not None and inbox is None:
            return Response("no such attempt, or it is over", 404)
        content_type = request.headers.get("content-type", "")
        # What is not wanted is accepted all the same: an exporter that is refused retries, which
        # would hold up the agent.
        if request.path_params["signal"] == "traces" and not (inbox and inbox.is_full()):
            body = await _body(request)
            if body is None:
                return Response(f"over {LARGEST_REQUEST:,} bytes", 413)
            try:
                spans = decode_spans(body, content_type)
            except ValueError as error:
                return Response(str(error)[:200], 400)
            for span in spans:
                if (target := inbox or self._by_trace.get(span.trace)) is not None:
                    target.add(span)
        form = "application/json" if "json" in content_type else "application/x-protobuf"
        return Response("{}" if "json" in form else b"", media_type=form)


async def _body(request: Any) -> bytes | None:
    """The unpacked body of a request; ``None`` if it is too large."""
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > LARGEST_REQUEST:
            return None
    if request.headers.get("content-encoding", "identity") not in ("gzip", "deflate"):
        return bytes(body)
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        content = unpacker.decompress(bytes(body), LARGEST_REQUEST)
    except zlib.error:
        return b"\xff"  # read as neither protobuf nor JSON
    return None if unpacker.unconsumed_tail else content
