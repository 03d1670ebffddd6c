"""What of an attempt and its calls is sent as spans; test_agent_spans has the way they take."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.agents.base import ModelCall
from passhat.errors import InvalidValue
from passhat.runner import spans, telemetry
from passhat.runner.spans import Inbox
from passhat.runner.telemetry import (
    Telemetry,
    _attempt_attributes,
    _model_attributes,
    _Sender,
    _tool_attributes,
)
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement


def test_an_attempt_says_what_is_recorded_and_nothing_else() -> None:
    record = AttemptRecord("t", 3, Judgement(Verdict.FAILED, "timeout"), steps=2, retries=1)
    assert _attempt_attributes(record) == {
        "gen_ai.operation.name": "invoke_agent",
        "passhat.task.id": "t",
        "passhat.attempt.number": 3,
        "passhat.verdict": str(Verdict.FAILED),
        "passhat.reason": "timeout",
        "passhat.steps": 2,
        "passhat.retries": 1,
    }
    record = AttemptRecord("t", 1, Judgement(Verdict.PASSED), seed=7, tokens=5.0, cost=0.0)
    found = _attempt_attributes(record)
    assert "passhat.reason" not in found
    assert (found["passhat.seed"], found["passhat.tokens"], found["passhat.cost"]) == (7, 5.0, 0.0)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            ModelCall("openai:m", model="m-1", stop="stop", stop_raw="end", request_id="r"),
            {
                "provider.name": "openai",
                "request.model": "m",
                "response.model": "m-1",
                "response.finish_reasons": ["end"],
                "response.id": "r",
            },
        ),
        (
            ModelCall("m", stop="length"),
            {"request.model": "m", "response.finish_reasons": ["length"]},
        ),
        (
            ModelCall("a:b:c", input_tokens=5.0, output_tokens=2.0, cached_tokens=0, limit=9),
            {
                "provider.name": "a",
                "request.model": "b:c",
                "request.max_tokens": 9,
                "usage.input_tokens": 5,
                "usage.output_tokens": 2,
                "usage.cache_read.input_tokens": 0,
            },
        ),
    ],
)
def test_a_call_of_a_model_says_what_is_known(call: ModelCall, expected: dict[str, Any]) -> None:
    found = {
        name.removeprefix("gen_ai."): value
        for name, value in _model_attributes(call).items()
        if name.startswith("gen_ai.")
    }
    assert found == {"operation.name": "chat", **expected}


def test_errors_roles_and_retries_of_calls() -> None:
    found = _model_attributes(ModelCall("m", role="user", error="x", retries=["429"], cost=0.5))
    assert (found["error.type"], found["passhat.role"]) == ("provider_error", "user")
    assert (found["passhat.retries"], found["passhat.cost"]) == (1, 0.5)
    found = _tool_attributes(ModelCall("look", role="tool", error="x"))
    assert (found["gen_ai.tool.name"], found["error.type"]) == ("look", "tool_error")
    assert "error.type" not in _tool_attributes(ModelCall("look", role="tool"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What an exporter is given in place of the official one; it takes none."""
    from opentelemetry.exporter.otlp.proto.http import trace_exporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    spans: list[Any] = []

    class Exporter:
        def __init__(self, place: str, timeout: float) -> None:
            assert (place, timeout > 0) == ("http://collector/v1/traces", True)

        def export(self, batch: Any) -> SpanExportResult:
            spans.extend(batch)
            return SpanExportResult.FAILURE

        def shutdown(self) -> None: ...

    monkeypatch.setattr(trace_exporter, "OTLPSpanExporter", Exporter)
    return spans


@pytest.mark.parametrize("end", ["", "/", "/v1/traces"])
def test_an_attempt_is_a_span_around_its_calls(sent: list[Any], end: str) -> None:
    sender, inbox = _Sender(f"http://collector{end}", "agent", "run", "suite"), Inbox()
    assert sender.lost == 0
    calls = [
        ModelCall("openai:m", started=101.0, seconds=2.0),
        ModelCall("look", role="tool", seconds=0.5, error="boom"),
        ModelCall("judge", votes=[True, False], started=0.0),
        ModelCall("openai:m", model="m-1", started=110.0),
    ]
    sender.send(inbox, 100.0, AttemptRecord("t", 1, Judgement(Verdict.MISSING, "budget")), calls)
    sender.close()
    assert sender.lost == len(sent) == 4
    spans = {span.name: span for span in sent}
    root = spans.pop("attempt t#1")
    assert (f"{root.context.trace_id:032x}", f"{root.context.span_id:016x}") == (
        *(inbox.trace, inbox.span),
    )
    assert (root.start_time, root.parent) == (100 * 10**9, None)
    assert root.attributes["passhat.run.id"] == "run"
    assert not root.status.is_ok
    (event,) = root.events
    assert event.attributes["gen_ai.evaluation.score.label"] == str(Verdict.MISSING)
    assert "gen_ai.evaluation.score.value" not in event.attributes
    assert {span.parent.span_id for span in spans.values()} == {root.context.span_id}
    assert {span.context.trace_id for span in spans.values()} == {root.context.trace_id}
    times = {name: (span.start_time, span.end_time) for name, span in spans.items()}
    assert times == {
        "chat openai:m": (101 * 10**9, 103 * 10**9),
        # it does not say when it began: behind the call before it
        "execute_tool look": (103 * 10**9, 1035 * 10**8),
        "chat m-1": (110 * 10**9, 110 * 10**9),
    }
    assert spans["execute_tool look"].status.description == "boom"


@pytest.mark.parametrize(("verdict", "score"), [(Verdict.PASSED, 1.0), (Verdict.FAILED, 0.0)])
def test_a_verdict_is_a_score(sent: list[Any], verdict: Verdict, score: float) -> None:
    sender = _Sender("http://collector", "agent", "run", "suite")
    sender.send(Inbox(), 1.0, AttemptRecord("t", 1, Judgement(verdict, "", "why")), [])
    sender.close()
    ((event,),) = [span.events for span in sent]
    assert event.attributes["gen_ai.evaluation.score.value"] == score
    assert event.attributes["gen_ai.evaluation.explanation"] == "why"
    assert sent[0].status.is_unset


@pytest.mark.parametrize("url", ["localhost:4318", "grpc://x", ""])
def test_what_is_no_address_of_a_collector_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="otlp takes the address of a collector"):
        _Sender(url, "agent", "run", "suite")


# -- what is said when a run ends ------------------------------------------------------------------


def _telemetry(told: list[str], **parts: Any) -> Any:
    made: Any = object.__new__(Telemetry)
    fields: dict[str, Any] = {
        "_sender": None,
        "_prices": None,
        "_dropped": 0,
        "_trouble": "",
        "_receiver": None,
    }
    fields |= {"_for_programs": False, "_waits": False, "_elsewhere": False, "_started": False}
    fields |= {"_attempt_count": 1, "_span_count": 1, "_tell": told.append}
    fields["_in_process"] = SimpleNamespace(close=lambda: told.append("in process"))
    vars(made).update({**fields, **parts})
    return made


def _receiver(*refused: str) -> Any:
    names = dict.fromkeys(refused, 1)
    return SimpleNamespace(refused=names, url="http://127.0.0.1:7", close=lambda: None)


def _sender(lost: int) -> Any:
    return SimpleNamespace(lost=lost, url="http://c", close=lambda: None)


GRPC = "no spans received: the agent sends them by gRPC"
PATH = "no spans received: the agent posts to /x, not to /v1/traces"
ELSEWHERE = "no spans received: OTEL_EXPORTER_OTLP_ENDPOINT is set"
SILENT = "no spans received at http://127.0.0.1:7: the agent should send OTLP over HTTP"


@pytest.mark.parametrize(
    ("parts", "begins"),
    [
        ({}, []),
        ({"_span_count": 0}, []),
        ({"_trouble": "it broke"}, ["it broke"]),
        ({"_attempt_count": 0, "_span_count": 0, "_receiver": _receiver("/x")}, []),
        ({"_span_count": 1, "_receiver": _receiver("/x")}, []),
        ({"_span_count": 0, "_receiver": _receiver("/x")}, [PATH]),
        ({"_span_count": 0, "_receiver": _receiver("/x", spans.GRPC)}, [GRPC]),
        ({"_span_count": 0, "_elsewhere": True}, [ELSEWHERE]),
        ({"_span_count": 0, "_elsewhere": True, "_receiver": _receiver("/x")}, [PATH]),
        ({"_span_count": 0, "_waits": True, "_receiver": _receiver()}, [SILENT]),
        ({"_span_count": 0, "_receiver": _receiver()}, []),
        ({"_dropped": 1}, ["1 span of the agent not kept"]),
        ({"_dropped": 2}, ["2 spans of the agent not kept"]),
        ({"_sender": _sender(0)}, []),
        ({"_sender": _sender(1)}, ["1 span could not be sent to http://c;"]),
        (
            {"_dropped": 2, "_sender": _sender(3), "_trouble": "it broke"},
            ["it broke", "2 spans of the agent", "3 spans could not be sent"],
        ),
    ],
)
def test_what_is_said_of_spans_when_a_run_ends(parts: dict[str, Any], begins: list[str]) -> None:
    told: list[str] = []
    asyncio.run(_telemetry(told, **parts).close())
    assert told[0] == "in process"
    assert len(told) == 1 + len(begins)
    assert all(line.startswith(begin) for line, begin in zip(told[1:], begins, strict=True))


@pytest.mark.parametrize("waits", [True, False])
def test_spans_of_an_attempt_are_counted_and_read(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    found = _telemetry([], _waits=waits, _attempt_count=2, _span_count=3, _dropped=4)
    inbox: Any = SimpleNamespace(spans=lambda: ["a", "b"], dropped=5, wait_until_complete=wait)
    monkeypatch.setattr(telemetry, "calls_in", lambda spans, _: spans)
    assert asyncio.run(found.collect_calls(inbox)) == ["a", "b"]
    assert (found._attempt_count, found._span_count, found._dropped) == (3, 5, 9)
    assert waited == ([telemetry._LATE_SECONDS] if waits else [])

    def fail(*_: object) -> Any:
        raise ValueError("odd")

    monkeypatch.setattr(telemetry, "calls_in", fail)
    assert asyncio.run(found.collect_calls(inbox)) == []
    assert found._trouble == "spans of the agent cannot be read (ValueError: odd)"


def test_an_attempt_that_cannot_be_sent_is_stored_all_the_same() -> None:
    nothing: Any = None
    _telemetry([]).send(nothing, 0.0, nothing, [])

    def fail(*_: object) -> None:
        raise ValueError("odd")

    found = _telemetry([], _sender=SimpleNamespace(send=fail))
    found.send(nothing, 0.0, nothing, [])
    assert found._trouble == "attempts cannot be sent (ValueError: odd)"
    sent: list[object] = []
    found = _telemetry([], _sender=SimpleNamespace(send=lambda *words: sent.append(words)))
    found.send("inbox", 1.0, "record", [])
    assert (sent, found._trouble) == ([("inbox", 1.0, "record", [])], "")


@pytest.mark.parametrize("has_receiver", [True, False])
@pytest.mark.parametrize("for_programs", [True, False])
def test_an_attempt_has_an_inbox_from_its_beginning_to_its_end(
    monkeypatch: pytest.MonkeyPatch, has_receiver: bool, for_programs: bool
) -> None:
    log: list[str] = []

    def receiver() -> Any:
        names = ("start", "open", "forget")
        calls = {name: lambda *_, name=name: log.append(f"receiver {name}") for name in names}
        return SimpleNamespace(url="http://127.0.0.1:7", **calls)

    inside = SimpleNamespace(
        open=lambda _: log.append("open"), forget=lambda _: log.append("forget")
    )
    monkeypatch.setattr(telemetry, "SpanReceiver", receiver)
    found = _telemetry(
        [],
        _receiver=receiver() if has_receiver else None,
        _for_programs=for_programs,
        _in_process=inside,
    )

    async def play() -> list[str]:
        found._starting = asyncio.Lock()
        inboxes = [await found.begin() for _ in range(2)]
        for inbox in inboxes:
            found.end(inbox)
        return [inbox.endpoint for inbox in inboxes]

    endpoints = asyncio.run(play())
    assert bool(endpoints[0]) is for_programs
    is_open = has_receiver or for_programs
    opening = (["receiver open"] if is_open else []) + ["open"]
    ending = (["receiver forget"] if is_open else []) + ["forget"]
    assert log == [*(["receiver start"] if is_open else []), *opening * 2, *ending * 2]
    assert found.url == ("http://127.0.0.1:7" if is_open else "")
