"""What of an attempt and its calls is sent as spans; test_agent_spans has the way they take."""

from __future__ import annotations

from typing import Any

import pytest

from passhat.agents.base import ModelCall
from passhat.errors import InvalidValue
from passhat.runner.spans import Inbox
from passhat.runner.telemetry import (
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
