"""OpenTelemetry: an agent's own spans become call records, and attempts are sent as traces.

Spans are made and sent by the official SDK and exporter, in processes and servers of their own.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from passhat.agents.a2a import A2AAgent
from passhat.agents.command import CommandAgent
from passhat.agents.prices import read_prices
from passhat.runner import run_attempts, spans, telemetry
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.runner.spans import Inbox, Span, SpanReceiver, calls_in
from passhat.store import open_store

PROGRAM = """
import json, sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("a framework")


def ask(inputs):
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1-mini",
        "gen_ai.response.model": "gpt-4.1-mini-2025-04-14",
        "gen_ai.response.id": "resp-1",
        "gen_ai.response.finish_reasons": ["length"],
        "gen_ai.usage.input_tokens": inputs,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": "sk-abcdefghijklmnopq"}]),
    }
    with tracer.start_as_current_span("chat gpt-4.1-mini", attributes=about):
        pass


def look_up():
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look_up",
        "gen_ai.tool.call.arguments": '{"word": "sun"}',
        "gen_ai.tool.call.result": "a star",
    }
    with tracer.start_as_current_span("execute_tool look_up", attributes=about):
        pass
"""
COMMAND = (
    PROGRAM
    + """
for line in sys.stdin:
    turn = json.loads(line)
    whole = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 9999}
    with tracer.start_as_current_span("invoke_agent", attributes=whole):
        look_up()
        ask(100 * int(turn["task"][1:]) + turn["attempt"])
    answer = {"text": "yes"}
    if "--says-usage" in sys.argv:
        answer["usage"] = {"tokens": 7, "cost": 0.5}
    print(json.dumps(answer), flush=True)
"""
)


def program(folder: Path, *words: str) -> str:
    (folder / "agent.py").write_text(COMMAND)
    return " ".join(["command:" + sys.executable, str(folder / "agent.py"), *words])


def run(spec: RunSpec, store: str) -> tuple[list[Any], list[list[dict[str, Any]]], list[str]]:
    """Rows, calls and messages of a run."""
    from passhat.runner.run_spec import arun

    messages: list[str] = []
    result = asyncio.run(arun(replace(spec, store=store), tell=messages.append))
    with open_store(store) as opened:
        rows: list[Any] = [row for block in opened.rows(result.id) for row in block]
        rows.sort(key=lambda row: (row[0], row[1]))
        calls = [list(opened.calls(result.id, row[0], row[1])) for row in rows]
    return rows, calls, messages


def test_spans_of_a_program_become_calls_tokens_cost_and_steps(
    questions: Path, passhat: Callable[..., Any]
) -> None:
    spec = RunSpec(agent=program(questions), suite="jsonl:tasks.jsonl", attempts=2)
    spec = replace(spec, tasks=("t1", "t2"), jobs=4)
    rows, calls, _ = run(spec, "store.db")
    # Each attempt has its own tokens, although four ran at once.
    assert [row[6] for row in rows] == [111, 112, 211, 212]
    price = read_prices(None).price("openai", "gpt-4.1-mini")
    assert price is not None
    costs = [(row[6] - 10) * price.input / 1e6 + 10 * price.output / 1e6 for row in rows]
    assert [row[7] for row in rows] == pytest.approx(costs)
    (tool, model) = calls[0]
    assert (tool["name"], tool["role"], tool["reply"]) == ("look_up", "tool", "a star")
    assert tool["request"] == {"word": "sun"}
    assert (model["name"], model["stop"], model["request_id"]) == (
        "openai:gpt-4.1-mini",
        "length",
        "resp-1",
    )
    assert (model["model"], model["source"]) == ("gpt-4.1-mini-2025-04-14", "spans")
    assert "sk-abc" not in json.dumps(calls)
    assert "[redacted]" in json.dumps(model["request"])
    ended = passhat("show", "latest", "t1#1", "--calls", "--store", "store.db")
    assert "2 steps" in ended.out
    assert ended.out.index("look_up") < ended.out.index("a star") < ended.out.index("agent\nyes")
    assert "100 input tokens" not in ended.out
    assert "101 input tokens" in ended.out
    assert "from the agent's spans" in ended.out


def test_what_an_agent_reports_itself_is_not_counted_again(questions: Path) -> None:
    spec = RunSpec(agent=program(questions, "--says-usage"), suite="jsonl:tasks.jsonl", attempts=1)
    rows, calls, _ = run(replace(spec, tasks=("t1",)), "store.db")
    assert (rows[0][6], rows[0][7]) == (7, 0.5)
    assert [call["role"] for call in calls[0]] == ["tool"]


def test_a_collector_of_the_users_own_is_left_alone(
    questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (url, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        source = COMMAND.replace("print(json", "provider.force_flush()\n    print(json")
        agent = program(questions)
        (questions / "agent.py").write_text(source)
        spec = RunSpec(agent=agent, suite="jsonl:tasks.jsonl", attempts=1, tasks=("t1",))
        rows, calls, _ = run(spec, "store.db")
    assert rows[0][6] is None
    assert calls == [[]]
    assert {span.name for span in taken} >= {"chat gpt-4.1-mini", "invoke_agent"}


IN_PROCESS = (
    PROGRAM
    + """
def answer(prompt):
    look_up()
    ask(len(prompt))
    return "yes"
"""
)


def test_spans_of_a_python_agent_in_this_process(questions: Path) -> None:
    """In a process of its own: a tracer provider is set once and for all."""
    (questions / "traced_agent.py").write_text(
        IN_PROCESS.replace("provider.add_span_processor(", "(")
        .replace("OTLPSpanExporter()", "None")
        .replace("(BatchSpanProcessor(None))", "")
    )
    words = "run -a python:traced_agent:answer -s jsonl:tasks.jsonl -n 2 --task t1 --store store.db"
    ended = subprocess.run(
        [sys.executable, "-m", "passhat", *words.split()], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    with open_store("store.db") as store:
        stored = store.find("latest")
        rows = [row for block in store.rows(stored.id) for row in block]
        assert [row[6] for row in rows] == [len("yes? 1") + 10] * 2
        assert [call["name"] for call in store.calls(stored.id, "t1", 2)] == [
            "look_up",
            "openai:gpt-4.1-mini",
        ]


# -- the receiver ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans may come late, from a machine that is busy."""
    monkeypatch.setattr(telemetry, "_LATE_SECONDS", 120.0)
    monkeypatch.setattr(telemetry, "_FLUSH_SECONDS", 120.0)
    monkeypatch.setattr("passhat.agents.command._GRACE_SECONDS", 120.0)


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    made = SpanReceiver()
    made.start()
    yield made
    made.close()


def post(url: str, body: bytes, content_type: str, **headers: str) -> int:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(
        url, data=body, headers={"content-type": content_type, **headers}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def as_json(trace: str, count: int = 1, text: str = "") -> bytes:
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "5"}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": 2}},
        {"key": "gen_ai.input.messages", "value": {"stringValue": text}},
        {
            "key": "gen_ai.response.finish_reasons",
            "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}},
        },
    ]
    made = [
        {
            "traceId": trace,
            "spanId": f"{number + 1:016x}",
            "name": "chat",
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": 1700000001500000000,
            "attributes": attributes,
        }
        for number in range(count)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}).encode()


def test_json_is_received_and_garbage_disturbs_nothing(receiver: SpanReceiver) -> None:
    inbox, other = Inbox(receiver.url), Inbox(receiver.url)
    receiver.open(inbox)
    receiver.open(other)
    own = f"{inbox.endpoint}/v1/traces"
    kind = "application/json"
    assert post(own, as_json("0" * 31 + "1"), kind) == 200  # its own path: any trace id
    packed = gzip.compress(as_json("0" * 31 + "2", 2))
    assert post(own, packed, kind, content_encoding="gzip") == 200
    garbage: list[tuple[bytes, str, int]] = [
        (b"\xff\xfe\x00garbage", "application/x-protobuf", 400),
        (b"not json", kind, 400),
        (b'{"resourceSpans": 7}', kind, 400),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [3]}]}]}', kind, 400),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "!!"}]}]}]}', kind, 400),
        (b"[" * 100_000, kind, 400),
        (as_json("1" * 32).replace(b'"5"', b"1e999"), kind, 400),
        (as_json("1" * 32).replace(b'"1700000000000000000"', b"1e999"), kind, 400),
        (as_json("1" * 32).replace(b'"1700000000000000000"', b'"soon"'), kind, 400),
        (b"x" * (spans.LARGEST_REQUEST + 1), kind, 413),
    ]
    for body, content_type, status in garbage:
        assert post(own, body, content_type) == status, body[:60]
    bomb = gzip.compress(b" " * (3 * spans.LARGEST_REQUEST))
    assert post(own, bomb, kind, content_encoding="gzip") == 413
    assert post(own, b"no gzip", kind, content_encoding="gzip") == 400
    assert post(f"{receiver.url}/unknown/v1/traces", as_json(inbox.trace), kind) == 404
    assert post(f"{inbox.endpoint}/v1/metrics", b"anything", kind) == 200
    # Without a path, attempts are told apart by their trace; others are nobody's.
    assert post(f"{receiver.url}/v1/traces", as_json(other.trace), kind) == 200
    assert post(f"{receiver.url}/v1/traces", as_json("f" * 32), kind) == 200
    assert len(calls_in(inbox.spans(), None)) == 2  # a span that is sent twice is one
    assert len(other.spans()) == 1
    (call,) = calls_in(other.spans(), None)
    assert (call.input_tokens, call.output_tokens, call.stop, call.seconds) == (5, 2, "stop", 1.5)


def test_a_flood_is_dropped_and_counted(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "MOST_SPANS", 100)
    inbox = Inbox(receiver.url)
    receiver.open(inbox)
    for _ in range(4):
        post(f"{inbox.endpoint}/v1/traces", as_json("1" * 32, 60), "application/json")
    assert len(inbox.spans()) <= 100
    many = Inbox(receiver.url)
    receiver.open(many)
    post(f"{many.endpoint}/v1/traces", as_json("1" * 32, 160), "application/json")
    assert len(many.spans()) == 100
    assert many.dropped == 60
    monkeypatch.setattr(spans, "MOST_CHARACTERS", 1_000)
    large = Inbox(receiver.url)
    receiver.open(large)
    post(f"{large.endpoint}/v1/traces", as_json("1" * 32, 2, "x" * 990), "application/json")
    assert large.spans() == []
    assert large.dropped == 2


# -- the conventions ------------------------------------------------------------------------------


def span(number: int, parent: int = 0, **about: Any) -> Span:
    attributes = {name.replace("__", "."): value for name, value in about.items()}
    return Span("t", str(number), str(parent), "span", float(number), number + 0.5, attributes)


CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
COUNTS: dict[str, Any] = {"gen_ai__usage__input_tokens": 5, "gen_ai__usage__output_tokens": 1}


def test_a_call_that_two_instrumentations_wrap_counts_once() -> None:
    def tokens(*made: Span) -> list[float | None]:
        return [call.input_tokens for call in calls_in(made, None)]

    assert tokens(span(1, **CHAT, **COUNTS), span(2, 1, **CHAT, **COUNTS)) == [5]
    # Another span in between makes no difference, nor the order in which they come.
    assert tokens(span(3, 2, **CHAT, **COUNTS), span(1, **CHAT, **COUNTS), span(2, 1)) == [5]
    # The outer one does not count: its two inner calls do.
    inner = [span(2, 1, **CHAT, **COUNTS), span(3, 1, **CHAT, **COUNTS)]
    assert tokens(span(1, **CHAT), *inner) == [5, 5]
    assert tokens(span(1, **CHAT, **COUNTS), span(2, 1, **CHAT), span(3, 2, **CHAT, **COUNTS)) == [
        5
    ]
    assert tokens(span(1, **CHAT), span(2, 1, **CHAT)) == [None]
    # A tool may ask a model: that is a call of its own.
    tool = span(2, 1, gen_ai__operation__name="execute_tool", gen_ai__tool__name="ask")
    nested = span(3, 2, **CHAT, **COUNTS)
    assert tokens(span(1, **CHAT, **COUNTS), tool, nested) == [5, None, 5]
    again = span(4, 2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="ask")
    assert len(calls_in([tool, again], None)) == 1
    assert tokens(span(1, 2, **CHAT, **COUNTS), span(2, 1, **CHAT, **COUNTS)) == []  # a circle


def test_other_conventions_are_read() -> None:
    openinference = span(
        1,
        openinference__span__kind="LLM",
        llm__model_name="claude-sonnet-4-5",
        llm__token_count__prompt=30,
        llm__token_count__completion=4,
        llm__token_count__prompt_details__cache_read=10,
        output__value='{"a": 1}',
    )
    tool = span(2, openinference__span__kind="TOOL", tool__name="t", input__value='{"x": 1}')
    chain = span(3, openinference__span__kind="CHAIN", llm__token_count__prompt=30)
    openllmetry = span(
        4,
        gen_ai__system="OpenAI",
        gen_ai__request__model="gpt-4.1",
        gen_ai__usage__prompt_tokens="12",
        gen_ai__usage__completion_tokens=3,
    )
    workflow = span(5, traceloop__span__kind="workflow", gen_ai__system="OpenAI")
    task = span(6, traceloop__span__kind="tool", traceloop__entity__name="look", operation__cost=1)
    first, second, third, fourth = calls_in(
        [openinference, tool, chain, openllmetry, workflow, task], read_prices(None)
    )
    assert (first.model, first.input_tokens, first.cached_tokens) == ("claude-sonnet-4-5", 30, 10)
    assert first.cost is not None
    assert first.reply == {"a": 1}
    assert (second.name, second.role, second.request) == ("t", "tool", {"x": 1})
    assert (third.name, third.input_tokens, third.output_tokens) == ("OpenAI:gpt-4.1", 12, 3)
    assert (fourth.name, fourth.role) == ("look", "tool")


def test_nonsense_in_attributes_is_not_recorded() -> None:
    wrong = span(
        1,
        gen_ai__operation__name="chat",
        gen_ai__usage__input_tokens=float("nan"),
        gen_ai__usage__output_tokens=-3,
        gen_ai__request__model=["m"],
        gen_ai__response__finish_reasons=[],
        gen_ai__input__messages="{not json",
    )
    (call,) = calls_in([wrong], read_prices(None))
    assert (call.name, call.input_tokens, call.output_tokens, call.stop) == (
        "model",
        None,
        None,
        "",
    )
    assert call.request == "{not json"


# -- what is sent ---------------------------------------------------------------------------------


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A collector that decodes with the official package, and the spans it was sent."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    taken: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    taken.extend(scope.spans)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attributes_of(span: Any) -> dict[str, Any]:
    return {one.key: spans._value_of_message(one.value) for one in span.attributes}


METERED = """
import time
from passhat.agents.base import ModelCall

def answer(prompt, attempt):
    words = {"model": "m", "stop": "stop", "stop_raw": "stop"}
    counts = {"input_tokens": 100, "output_tokens": 10}
    attempt.meter.record(ModelCall("openai:m", started=time.time(), **words, **counts))
    return "yes"
"""


def test_an_attempt_is_a_trace_and_a_call_a_span(
    questions: Path, passhat: Callable[..., Any]
) -> None:
    (questions / "metered_agent.py").write_text(METERED)
    with collector() as (url, taken):
        ended = passhat(
            *("run", "-a", "python:metered_agent:answer", "-s", "jsonl:tasks.jsonl", "-n", "2"),
            *("--task", "t1", "--set", f"otlp={url}", "--store", "store.db"),
        )
    assert ended.code == 0, ended.err
    roots = {span.trace_id: span for span in taken if not span.parent_span_id}
    calls = [span for span in taken if span.parent_span_id]
    assert len(roots) == len(calls) == 2
    for call in calls:
        root = roots[call.trace_id]
        assert call.parent_span_id == root.span_id
        assert root.start_time_unix_nano <= call.start_time_unix_nano
        assert call.end_time_unix_nano <= root.end_time_unix_nano
        about = attributes_of(call)
        assert call.name == "chat m" or about["gen_ai.response.model"] in call.name
        assert about["gen_ai.operation.name"] == "chat"
        assert about["gen_ai.provider.name"] == "openai"
        assert about["gen_ai.request.model"] == "m"
        assert about["gen_ai.usage.input_tokens"] == 100
        assert about["gen_ai.usage.output_tokens"] == 10
        assert about["gen_ai.response.finish_reasons"] == ["stop"]
        whole = attributes_of(root)
        assert whole["gen_ai.operation.name"] == "invoke_agent"
        assert whole["passhat.task.id"] == "t1"
        assert whole["passhat.verdict"] == "passed"
        assert [event.name for event in root.events] == ["gen_ai.evaluation.result"]
    assert {root.name for root in roots.values()} == {"attempt t1#1", "attempt t1#2"}
    assert "yes?" not in str(taken)  # prompts and answers are not sent


def test_tools_that_the_suite_carries_out_are_spans_as_well(
    passhat: Callable[..., Any], tmp_path: Path
) -> None:
    with collector() as (url, taken):
        ended = passhat(
            *("run", "-a", "demo:careful", "-s", "orderdesk/retail", "-n", "1", "--random", "1"),
            *("--set", f"otlp={url}", "--store", str(tmp_path / "store.db")),
        )
    assert ended.code == 0, ended.err
    (root,) = [span for span in taken if not span.parent_span_id]
    tools = [attributes_of(span) for span in taken if span.parent_span_id]
    assert tools
    assert {about["gen_ai.operation.name"] for about in tools} == {"execute_tool"}
    assert "respond" not in {about["gen_ai.tool.name"] for about in tools}
    assert attributes_of(root)["gen_ai.agent.name"] == "demo:careful"


def test_a_collector_that_refuses_costs_the_run_nothing(
    questions: Path, passhat: Callable[..., Any]
) -> None:
    (questions / "plain_agent.py").write_text("def answer(prompt):\n    return 'yes'\n")
    with collector(400) as (url, _):
        ended = passhat(
            *("run", "-a", "python:plain_agent:answer", "-s", "jsonl:tasks.jsonl", "-n", "1"),
            *("--set", f"otlp={url}", "--store", "store.db"),
        )
    assert ended.code == 0
    assert f"5 spans could not be sent to {url}" in ended.err
    assert "Traceback" not in ended.err


def test_what_is_asked_for_and_cannot_be_done_is_refused(
    questions: Path, passhat: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    del questions
    words = ("run", "-a", "openai:m@http://127.0.0.1:1/v1", "-s", "jsonl:tasks.jsonl")
    ended = passhat(*words, "--set", "otlp=localhost:4318")
    assert ended.code == 2
    assert "otlp=http://localhost:4318" in ended.err
    monkeypatch.setattr(telemetry, "find_spec", lambda _: None)
    ended = passhat(*words, "--set", "otlp=http://localhost:4318")
    assert ended.code == 2
    assert "pip install 'passhat[otel]'" in ended.err


# -- an agent elsewhere ---------------------------------------------------------------------------


def test_an_a2a_agent_is_sent_the_trace_and_its_spans_are_taken(
    serving: Callable[..., str], tmp_path: Path, questions: Path
) -> None:
    del questions
    from a2a.helpers import new_text_message
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.events import EventQueue
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    spec = RunSpec(agent="", suite="jsonl:tasks.jsonl", attempts=2, tasks=("t1",), otlp_port=0)
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("a framework")

    class Answers(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            assert context.call_context is not None
            headers = context.call_context.state["headers"]
            outside = TraceContextTextMapPropagator().extract(headers)
            with tracer.start_as_current_span("a2a request", context=outside):
                about = {name.replace("__", "."): value for name, value in (CHAT | COUNTS).items()}
                with tracer.start_as_current_span("chat m", attributes=about):
                    pass
            words = new_text_message("yes", context_id=str(context.context_id))
            await event_queue.enqueue_event(words)

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            raise NotImplementedError

    url = serving(lambda url: a2a_application(Answers(), url))
    spec = replace(spec, agent=A2AAgent(url))
    loaded = spec.load()
    plan = spec.plan(loaded)
    tracing = spec.telemetry(loaded, plan.record.id)
    assert tracing is not None
    exporter = OTLPSpanExporter(f"{tracing.url}/v1/traces")
    # Sent late, in a batch of its own, as by a server that goes on.
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=100))
    made: list[Any] = []

    async def whole() -> None:
        await run_attempts(
            replace(plan, telemetry=tracing), store, Stop(), lambda record, _: made.append(record)
        )
        await tracing.close()

    with open_store(str(tmp_path / "store.db")) as store:
        asyncio.run(whole())
    provider.shutdown()
    assert [(one.tokens, one.calls is not None) for one in made] == [(6, True)] * 2


def a2a_application(executor: Any, url: str) -> Any:
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
    from starlette.applications import Starlette

    card = AgentCard(
        name="traced",
        description="answers",
        version="1",
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[AgentSkill(id="answer", name="answer", description="answers", tags=["a"])],
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=url)
        ],
    )
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    return Starlette(routes=routes + create_jsonrpc_routes(handler, rpc_url="/"))


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_that_could_have_had_spans_and_got_none_says_so(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    lines: list[str] = []

    async def play() -> None:
        agent = CommandAgent(f"{sys.executable} -V")
        running = telemetry.telemetry_for(
            agent, otlp=None, port=None, prices=None, tell=lines.append
        )
        assert running is not None
        inbox = await running.begin()
        monkeypatch.setattr(type(inbox), "spans", lambda _self: [span(1)] * count)
        await running.collect_calls(inbox)
        running.end(inbox)
        await running.close()

    asyncio.run(play())
    assert any("no spans received" in line for line in lines) == (count == 0)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "the agent sends them by gRPC"),
        (
            b"POST /traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
            "the agent posts to /traces, not to /v1/traces",
        ),
    ],
    ids=["gRPC", "wrong path"],
)
def test_spans_that_cannot_be_taken_are_named_with_the_cause(
    sent: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in telemetry._OWN_ENDPOINT:
        monkeypatch.delenv(name, raising=False)
    lines: list[str] = []

    async def play() -> None:
        agent = CommandAgent(f"{sys.executable} -V")
        running = telemetry.telemetry_for(
            agent, otlp=None, port=None, prices=None, tell=lines.append
        )
        assert running is not None
        inbox = await running.begin()
        host, _, port = running.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        await reader.read(1)  # an answer, or the end of the connection
        writer.close()
        await running.collect_calls(inbox)
        running.end(inbox)
        await running.close()

    asyncio.run(play())
    (line,) = lines
    assert line.startswith("no spans received")
    assert said in line
