"""OpenTelemetry of a run: an attempt is a trace, every model or tool call a span.

The setting ``otlp`` sends the spans of our own records. What an agent emits itself is received by
:mod:`passhat.runner.spans` and becomes call records of its attempt.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from passhat._display import counted
from passhat.agents.a2a import A2AAgent
from passhat.agents.base import Agent, ModelCall
from passhat.agents.command import CommandAgent
from passhat.agents.prices import PriceTable
from passhat.errors import InvalidValue, MissingExtra, shorten
from passhat.runner.spans import GRPC, Inbox, SpanReceiver, calls_in, spans_of_message
from passhat.stats.outcomes import Verdict

if TYPE_CHECKING:
    from passhat.store.rows import AttemptRecord

_LATE_SECONDS = 6.0
"""How long an agent elsewhere is waited for: SDKs send every 5 s by default."""
_FLUSH_SECONDS = 10.0
_QUEUE = 50_000
_OWN_ENDPOINT = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def telemetry_for(
    agent: Agent,
    *,
    otlp: str | None,
    port: int | None,
    prices: PriceTable | None,
    about: tuple[str, str] = ("", ""),
    tell: Callable[[str], None],
) -> Telemetry | None:
    """The telemetry of a run; ``None`` where nothing is to be sent and nothing can come.

    ``about`` is the id of the run and the name of its suite.

    Raises
    ------
    MissingExtra
        It was asked for, and OpenTelemetry is not installed.
    """
    try:
        is_installed = (
            find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
        )
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        if otlp is not None or port is not None:
            raise MissingExtra("otlp" if otlp is not None else "otlp_port", extra="otel")
        return None
    sender = None if otlp is None else _Sender(otlp, agent.name, *about)
    return Telemetry(agent, sender, port, prices, tell)


class Telemetry:
    """Gives every attempt a trace, takes in the agent's spans, and sends our own."""

    def __init__(
        self,
        agent: Agent,
        sender: _Sender | None,
        port: int | None,
        prices: PriceTable | None,
        tell: Callable[[str], None],
    ) -> None:
        self._sender = sender
        self._prices = prices
        self._tell = tell
        self._dropped = 0
        self._trouble = ""
        # A program whose user has a collector already keeps it.
        is_free = not any(os.environ.get(name) for name in _OWN_ENDPOINT)
        self._for_programs = isinstance(agent, CommandAgent) and is_free
        self._waits = port is not None and isinstance(agent, A2AAgent)
        self._attempt_count = self._span_count = 0
        self._elsewhere = isinstance(agent, CommandAgent) and not is_free
        self._receiver: SpanReceiver | None = None
        if port is not None:
            self._receiver = SpanReceiver(port)  # a port that is taken is an error before the run
        self._started = False
        self._starting = asyncio.Lock()
        self._in_process = _InProcess()

    @property
    def url(self) -> str:
        """Where spans are received; empty where they are not, or not yet."""
        return "" if self._receiver is None else self._receiver.url

    async def begin(self) -> Inbox:
        """The trace of an attempt that begins now."""
        if self._receiver is not None or self._for_programs:
            async with self._starting:
                if not self._started:
                    self._receiver = self._receiver or SpanReceiver()
                    await asyncio.to_thread(self._receiver.start)
                    self._started = True
        inbox = Inbox(self._receiver.url if self._for_programs and self._receiver else "")
        if self._receiver is not None:
            self._receiver.open(inbox)
        self._in_process.open(inbox)
        return inbox

    @contextmanager
    def current(self, inbox: Inbox) -> Iterator[None]:
        """Spans that code in this process begins in here belong to the attempt."""
        with self._in_process.current(inbox):
            yield

    async def collect_calls(self, inbox: Inbox) -> list[ModelCall]:
        """The model and tool calls in the spans that came for an attempt."""
        if self._waits:
            await inbox.wait_until_complete(_LATE_SECONDS)
        self._dropped += inbox.dropped
        self._attempt_count += 1
        self._span_count += len(inbox.spans())
        try:
            return calls_in(inbox.spans(), self._prices)
        except Exception as error:  # anything may be in a stranger's spans; the verdict stays
            self._trouble = f"spans of the agent cannot be read ({type(error).__name__}: {error})"
            return []

    def end(self, inbox: Inbox) -> None:
        """Take no more spans for an attempt."""
        if self._receiver is not None:
            self._receiver.forget(inbox)
        self._in_process.forget(inbox)

    def send(
        self, inbox: Inbox, began: float, record: AttemptRecord, calls: list[ModelCall]
    ) -> None:
        """Send an attempt and its calls, if that was asked for. Does not wait."""
        if self._sender is None:
            return
        try:
            self._sender.send(inbox, began, record, calls)
        except Exception as error:  # what is sent is a copy: the attempt is stored without it
            self._trouble = f"attempts cannot be sent ({type(error).__name__}: {error})"

    async def close(self) -> None:
        """Send the remaining spans, and stop listening."""
        self._in_process.close()
        if self._receiver is not None:
            await asyncio.to_thread(self._receiver.close)
        if self._trouble:
            self._tell(self._trouble)
        if self._attempt_count and not self._span_count:
            self._tell_of_silence()
        if self._dropped:
            self._tell(
                f"{counted(self._dropped, 'span')} of the agent not kept: an attempt has room for "
                "5,000 spans and 16 million characters"
            )
        if self._sender is not None:
            await asyncio.to_thread(self._sender.close)
            if self._sender.lost:
                self._tell(
                    f"{counted(self._sender.lost, 'span')} could not be sent to "
                    f"{self._sender.url}; the attempts themselves are stored"
                )

    def _tell_of_silence(self) -> None:
        """Say that no spans came, where the user can expect some."""
        refused = {} if self._receiver is None else self._receiver.refused
        if GRPC in refused:
            self._tell(
                "no spans received: the agent sends them by gRPC, and passhat takes OTLP over "
                "HTTP; use the exporter of opentelemetry-exporter-otlp-proto-http, or set "
                "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf where the SDK reads it"
            )
        elif refused:
            self._tell(
                f"no spans received: the agent posts to {next(iter(refused))}, not to /v1/traces; "
                "an exporter that is given a whole address needs it with that path"
            )
        elif self._elsewhere:
            self._tell(
                "no spans received: OTEL_EXPORTER_OTLP_ENDPOINT is set, so the agent sends its "
                "spans there; unset it, and tokens and calls are recorded with the attempts"
            )
        elif self._waits:
            self._tell(
                f"no spans received at {self.url}: the agent should send OTLP over HTTP "
                "(OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, not gRPC) to this address, and "
                "continue the trace of the traceparent header"
            )


class _InProcess:
    """Spans of agents in this process, taken from the tracer provider that they set up.

    Nothing of OpenTelemetry is imported here unless the agent's code did so.
    """

    def __init__(self) -> None:
        self._inboxes: dict[int, Inbox] = {}
        self._providers: list[Any] = []

    def open(self, inbox: Inbox) -> None:
        self._inboxes[int(inbox.trace, 16)] = inbox

    def forget(self, inbox: Inbox) -> None:
        self._inboxes.pop(int(inbox.trace, 16), None)

    def close(self) -> None:
        self._inboxes.clear()  # a provider lets no processor go

    @contextmanager
    def current(self, inbox: Inbox) -> Iterator[None]:
        if "opentelemetry.sdk.trace" not in sys.modules:
            yield
            return
        from opentelemetry import context, trace

        self._join(trace.get_tracer_provider())
        ours = trace.SpanContext(
            int(inbox.trace, 16),
            int(inbox.span, 16),
            is_remote=True,
            trace_flags=trace.TraceFlags(1),
        )
        token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(ours)))
        try:
            yield
        finally:
            context.detach(token)

    def _join(self, provider: Any) -> None:
        """Hear of every span that ends at a provider."""
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

        if not isinstance(provider, TracerProvider) or provider in self._providers:
            return
        inboxes = self._inboxes

        class Taker(SpanProcessor):
            def on_end(self, span: Any) -> None:
                inbox = inboxes.get(span.context.trace_id)
                if inbox is not None:
                    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

                    for own_span in spans_of_message(encode_spans([span])):
                        inbox.add(own_span)

        provider.add_span_processor(Taker())
        self._providers.append(provider)


class _Sender:
    """Sends spans to a collector in the background, through the official SDK."""

    def __init__(self, url: str, agent: str, run: str, suite: str) -> None:
        import logging

        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import (
            BatchSpanProcessor,
            SpanExporter,
            SpanExportResult,
        )
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        from passhat._version import __version__

        if not url.startswith(("http://", "https://")):
            raise InvalidValue(
                f"otlp takes the address of a collector, not {shorten(url)}.",
                hint="Write it as in otlp=http://localhost:4318",
            )
        self.url = url
        self.lost = 0
        self._about = {
            "gen_ai.agent.name": agent,
            "passhat.run.id": run,
            "passhat.suite": suite,
        }
        place = url if url.rstrip("/").endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
        sender = self

        class Counting(SpanExporter):
            """Counts spans that a collector does not take; the run goes on."""

            def __init__(self) -> None:
                self._exporter = OTLPSpanExporter(place, timeout=_FLUSH_SECONDS)

            def export(self, spans: Sequence[Any]) -> Any:
                result = self._exporter.export(spans)
                if result is not SpanExportResult.SUCCESS:
                    sender.lost += len(spans)
                return result

            def shutdown(self) -> None:
                self._exporter.shutdown()  # type: ignore[no-untyped-call]

        class Ids(RandomIdGenerator):
            """The ids that were promised to the agent, for the span of the attempt itself."""

            trace_id = span_id = 0

            def generate_trace_id(self) -> int:
                return self.trace_id or super().generate_trace_id()

            def generate_span_id(self) -> int:
                given, self.span_id = self.span_id, 0
                return given or super().generate_span_id()

        # The exporter logs every failed request; the user hears of it once, at the end.
        for name in ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._ids = Ids()
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "passhat", "service.version": __version__}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(Counting(), max_queue_size=_QUEUE, schedule_delay_millis=1_000)
        )
        self._tracer = self._provider.get_tracer("passhat", __version__)

    def send(
        self, inbox: Inbox, began: float, record: AttemptRecord, calls: list[ModelCall]
    ) -> None:
        from opentelemetry import trace
        from opentelemetry.context import Context

        end_time = time.time()
        self._ids.trace_id, self._ids.span_id = int(inbox.trace, 16), int(inbox.span, 16)
        root = self._tracer.start_span(
            f"attempt {record.task}#{record.number}",
            context=Context(),
            start_time=_nanoseconds(began),
            attributes={**self._about, **_attempt_attributes(record)},
        )
        self._ids.trace_id = 0
        root_context = trace.set_span_in_context(root, Context())
        place = began
        for call in calls:
            if call.votes is not None:
                continue  # sums up calls that are spans themselves
            # A framework's adapter does not know when a call began: after the one before it.
            place = start_time = place if call.started is None else call.started
            place = min(end_time, start_time + (call.seconds or 0.0))
            is_tool = call.role == "tool"
            span = self._tracer.start_span(
                f"execute_tool {call.name}" if is_tool else f"chat {call.model or call.name}",
                context=root_context,
                kind=trace.SpanKind.INTERNAL if is_tool else trace.SpanKind.CLIENT,
                start_time=_nanoseconds(start_time),
                attributes=_tool_attributes(call) if is_tool else _model_attributes(call),
            )
            if call.error:
                span.set_status(trace.StatusCode.ERROR, call.error[:500])
            span.end(_nanoseconds(place))
        verdict = record.judgement.verdict
        score = {Verdict.PASSED: 1.0, Verdict.FAILED: 0.0}.get(verdict)
        root.add_event(
            "gen_ai.evaluation.result",
            _without_none(
                {
                    "gen_ai.evaluation.name": "passhat",
                    "gen_ai.evaluation.score.value": score,
                    "gen_ai.evaluation.score.label": str(verdict),
                    "gen_ai.evaluation.explanation": record.judgement.detail or None,
                }
            ),
            _nanoseconds(end_time),
        )
        if verdict is Verdict.MISSING:
            root.set_status(trace.StatusCode.ERROR, record.judgement.why)
        root.end(_nanoseconds(end_time))

    def close(self) -> None:
        self._provider.shutdown()


def _attempt_attributes(record: AttemptRecord) -> dict[str, Any]:
    return _without_none(
        {
            "gen_ai.operation.name": "invoke_agent",
            "passhat.task.id": record.task,
            "passhat.attempt.number": record.number,
            "passhat.seed": record.seed,
            "passhat.verdict": str(record.judgement.verdict),
            "passhat.reason": record.judgement.why or None,
            "passhat.steps": record.steps,
            "passhat.retries": record.retries,
            "passhat.tokens": record.tokens,
            "passhat.cost": record.cost,
        }
    )


def _model_attributes(call: ModelCall) -> dict[str, Any]:
    provider, sign, request_model = call.name.partition(":")
    return _without_none(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider if sign else None,
            "gen_ai.request.model": request_model if sign else call.name,
            "gen_ai.response.model": call.model or None,
            "gen_ai.response.id": call.request_id or None,
            "gen_ai.response.finish_reasons": [call.stop_raw or call.stop] if call.stop else None,
            "gen_ai.request.max_tokens": call.limit,
            "gen_ai.usage.input_tokens": _whole(call.input_tokens),
            "gen_ai.usage.output_tokens": _whole(call.output_tokens),
            "gen_ai.usage.cache_read.input_tokens": _whole(call.cached_tokens),
            "gen_ai.usage.reasoning.output_tokens": _whole(call.reasoning_tokens),
            "error.type": "provider_error" if call.error else None,
            "passhat.role": call.role,
            "passhat.cost": call.cost,
            "passhat.retries": len(call.retries),
        }
    )


def _tool_attributes(call: ModelCall) -> dict[str, Any]:
    return _without_none(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "error.type": "tool_error" if call.error else None,
        }
    )


def _without_none(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes without those that are not recorded."""
    return {name: value for name, value in attributes.items() if value is not None}


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
