"""Spans become calls: which do, and part by part."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.agents.base import ModelCall
from passhat.agents.prices import Price, PriceTable
from passhat.runner import spans
from passhat.runner.spans import Inbox, Span, calls_in, decode_spans


@pytest.mark.parametrize(("ended", "seconds"), [(10.25, 0.25), (10.0, 0.0), (9.0, 0.0)])
def test_a_call_takes_as_long_as_its_span_and_never_less_than_nothing(
    ended: float, seconds: float
) -> None:
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
    }
    (call,) = calls_in([Span("t", "1", "", "chat", 10.0, ended, about)], None)
    assert call.seconds == seconds
    assert (call.input_tokens, call.output_tokens) == (3, 2)


def _json_span(**more: object) -> dict[str, object]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [more]}]}]}


def _decode(data: object) -> list[Span]:
    return decode_spans(json.dumps(data).encode(), "application/json; charset=utf-8")


def test_a_span_in_json_is_read_part_by_part() -> None:
    values = {
        "gen_ai.a": {"stringValue": "x"},
        "gen_ai.b": {"intValue": "7"},
        "gen_ai.c": {"doubleValue": 0.5},
        "gen_ai.d": {"boolValue": True},
        "gen_ai.e": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "y"}]}},
        "gen_ai.f": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": 2}}]}},
        "gen_ai.g": {},
        "http.url": {"stringValue": "not kept"},
    }
    data = _json_span(
        traceId="AB" * 16,
        spanId=base64.b64encode(bytes(8)).decode().rstrip("="),
        parentSpanId="",
        name="n" * 200_000,
        startTimeUnixNano="1500000000",
        endTimeUnixNano=2_500_000_000,
        attributes=[{"key": key, "value": value} for key, value in values.items()],
        status={"code": 2, "message": ""},
    )
    (span,) = _decode(data)
    assert (span.trace, span.id, span.parent) == ("ab" * 16, "00" * 8, "")
    assert (span.started, span.ended, span.error) == (1.5, 2.5, "error")
    assert set(span.name) == {"n"}
    assert len(span.name) < 200_000
    assert span.attributes == {
        "gen_ai.a": "x",
        "gen_ai.b": 7,
        "gen_ai.c": 0.5,
        "gen_ai.d": True,
        "gen_ai.e": [1, "y"],
        "gen_ai.f": {"k": 2},
        "gen_ai.g": None,
    }


@pytest.mark.parametrize(
    ("code", "error"),
    [("STATUS_CODE_ERROR", "boom"), (2, "boom"), (1, ""), (None, ""), ("STATUS_CODE_OK", "")],
)
def test_only_a_status_of_an_error_is_one(code: object, error: str) -> None:
    (span,) = _decode(_json_span(status={"code": code, "message": "boom"}))
    assert span.error == error


@pytest.mark.parametrize(
    "data",
    [[], {"resourceSpans": [1]}, _json_span(spanId="not base64!"), _json_span(attributes=[1])],
)
def test_what_is_no_otlp_is_an_error_that_says_so(data: object) -> None:
    with pytest.raises(ValueError, match="not OTLP in JSON"):
        _decode(data)


def test_a_document_without_spans_has_none() -> None:
    assert _decode({}) == _decode({"resourceSpans": [{"scopeSpans": [{}]}, {}]}) == []


def _call(**about: object) -> ModelCall:
    attributes = {f"gen_ai.{name.replace('__', '.')}": value for name, value in about.items()}
    (call,) = calls_in([Span("t", "1", "", "chat", 10.0, 11.0, attributes)], None)
    return call


CHAT_ONLY = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}
CHAT = {"operation__name": "chat", "system": "openai"}


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"request__model": "m", "response__model": "m-1"}, {"name": "openai:m", "model": "m-1"}),
        ({"response__model": "m-1"}, {"name": "openai:m-1", "model": "m-1"}),
        ({"provider__name": "azure"}, {"name": "azure", "model": ""}),
        ({"system": ""}, {"name": "model"}),
        ({"response__finish_reasons": ["length"]}, {"stop_raw": "length"}),
        ({"response__finish_reasons": []}, {"stop_raw": ""}),
        ({"completion__0__finish_reason": "stop"}, {"stop_raw": "stop"}),
        ({}, {"stop_raw": "", "stop": "", "input_tokens": None, "cost": None, "limit": None}),
        ({"usage__input_tokens": 5}, {"input_tokens": 5, "output_tokens": 0, "cached_tokens": 0}),
        ({"usage__output_tokens": 5}, {"input_tokens": 0, "output_tokens": 5}),
        (
            {"usage__input_tokens": 5, "usage__cache_read_input_tokens": 9},
            {"input_tokens": 5, "cached_tokens": 5},  # never more than there were
        ),
        (
            {"usage__input_tokens": 5, "usage__reasoning__output_tokens": 3},
            {"reasoning_tokens": 3},
        ),
        ({"usage__input_tokens": 5}, {"reasoning_tokens": None}),
        ({"usage__cost": 0.25, "request__max_tokens": 64}, {"cost": 0.25, "limit": 64}),
        ({"response__id": "r-1"}, {"request_id": "r-1", "seconds": 1.0, "started": 10.0}),
        ({"prompt": "why", "completion": "so"}, {"request": "why", "reply": "so"}),
    ],
)
def test_conventions_become_the_parts_of_a_call(
    about: dict[str, object], expected: dict[str, object]
) -> None:
    call = _call(**{**CHAT, **about})
    assert {name: getattr(call, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("about", "kind"),
    [
        ({"gen_ai.operation.name": "chat"}, "agent"),
        ({"gen_ai.operation.name": "embeddings"}, "agent"),
        ({"gen_ai.operation.name": "execute_tool"}, "tool"),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.tool.name": "t"}, None),
        ({"openinference.span.kind": "llm"}, "agent"),
        ({"openinference.span.kind": "TOOL"}, "tool"),
        ({"openinference.span.kind": "CHAIN"}, None),
        ({"traceloop.span.kind": "tool"}, "tool"),
        ({"traceloop.span.kind": "workflow"}, None),
        ({"gen_ai.tool.name": "t"}, "tool"),
        ({"gen_ai.system": "openai"}, None),
        ({"gen_ai.system": "openai", "gen_ai.usage.input_tokens": 1}, "agent"),
        ({"gen_ai.provider.name": "openai", "gen_ai.usage.output_tokens": 1}, "agent"),
        ({"gen_ai.usage.input_tokens": 1}, None),
        ({}, None),
    ],
)
def test_which_spans_are_calls(about: dict[str, object], kind: str | None) -> None:
    calls = calls_in([Span("t", "1", "", "x", 0.0, 1.0, about)], None)
    assert [call.role for call in calls] == ([] if kind is None else [kind])


def test_of_spans_inside_each_other_the_outermost_that_counts_is_taken() -> None:
    chat = {"gen_ai.operation.name": "chat"}
    counted = {**chat, "gen_ai.usage.input_tokens": 1}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    spans = [
        Span("t", "outer", "", "x", 0.0, 9.0, chat),
        Span("t", "middle", "outer", "x", 1.0, 9.0, counted),
        Span("t", "inner", "middle", "x", 2.0, 9.0, counted),
        Span("t", "tool", "middle", "execute_tool look", 3.0, 9.0, tool),
        Span("t", "same", "tool", "execute_tool look", 4.0, 9.0, tool),
        Span("t", "within", "tool", "x", 5.0, 9.0, counted),
        Span("t", "alone", "gone", "x", 6.0, 9.0, chat),
        Span("t", "own", "own", "x", 7.0, 9.0, counted),
    ]
    starts = [call.started for call in calls_in(spans, None)]
    assert starts == [1.0, 3.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [("Oops", "bad", "Oops: bad"), ("", "bad", "bad"), ("Oops", "", "Oops"), ("a", "a", "a")],
)
def test_an_error_is_named_once(kind: str, status: str, error: str) -> None:
    about = {"gen_ai.operation.name": "chat", "error.type": kind}
    (call,) = calls_in([Span("t", "1", "", "chat", 0.0, 1.0, about, status)], None)
    assert call.error == error


@pytest.mark.parametrize(
    ("name", "about", "tool"),
    [
        ("execute_tool look", {}, "look"),
        ("execute_tool", {}, "tool"),
        ("x", {"gen_ai.tool.name": "look"}, "look"),
        ("x", {"tool.name": "look"}, "look"),
    ],
)
def test_the_name_of_a_tool(name: str, about: dict[str, object], tool: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.arguments": {"a": 1},
        "gen_ai.tool.call.result": "r",
        **about,
    }
    (call,) = calls_in([Span("t", "1", "", name, 0.0, 2.0, attributes)], None)
    assert (call.name, call.role, call.seconds, call.reply) == (tool, "tool", 2.0, "r")


@pytest.mark.parametrize(
    ("about", "cost", "source"),
    [
        ({"request__model": "small"}, 5.0, "list"),
        ({"request__model": "small", "response__model": "unknown"}, 5.0, "list"),
        ({"request__model": "unknown", "response__model": "small"}, 5.0, "list"),
        ({"request__model": "unknown"}, None, ""),
        ({"response__model": "unknown"}, None, ""),
        ({}, None, ""),
        ({"request__model": "small", "usage__cost": 0.5}, 0.5, ""),
    ],
)
def test_tokens_have_the_price_of_their_model(
    about: dict[str, object], cost: float | None, source: str
) -> None:
    table = PriceTable({("openai", "small"): Price(1.0, 4.0, source="list")})
    counts = {"usage__input_tokens": 1_000_000, "usage__output_tokens": 1_000_000}
    attributes = {
        f"gen_ai.{name.replace('__', '.')}": value
        for name, value in {**CHAT, **counts, **about}.items()
    }
    (call,) = calls_in([Span("t", "1", "", "chat", 0.0, 1.0, attributes)], table)
    assert (call.cost, call.priced) == (cost, source)
    (bare,) = calls_in([Span("t", "1", "", "chat", 0.0, 1.0, {**CHAT_ONLY})], table)
    assert bare.cost is None


# -- what is received ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attributes", "size"),
    [("abc", {}, 3), ("", {"a": "text"}, 4), ("", {"a": 7}, 2), ("n", {"a": "b", "c": [1, 2]}, 14)],
)
def test_an_inbox_takes_so_many_characters(
    monkeypatch: pytest.MonkeyPatch, name: str, attributes: dict[str, Any], size: int
) -> None:
    span = Span("t", "1", "", name, 0.0, 1.0, attributes)
    monkeypatch.setattr(spans, "MOST_CHARACTERS", 2 * size)
    inbox = Inbox()
    for _ in range(3):
        inbox.add(span)
    assert (len(inbox.spans()), inbox.dropped, inbox.is_full()) == (2, 1, True)
    assert inbox._characters == 2 * size


def test_an_inbox_takes_so_many_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MOST_SPANS", 2)
    inbox, span = Inbox("http://here"), Span("t", "1", "", "x", 0.0, 1.0)
    inbox.add(span)
    inbox.add(span)
    assert not inbox.is_full()
    inbox.add(span)
    assert (inbox.spans(), inbox.dropped) == ([span, span], 1)
    assert inbox.endpoint == f"http://here/{inbox.key}"
    assert inbox.traceparent == f"00-{inbox.trace}-{inbox.span}-01"
    assert (len(inbox.trace), len(inbox.span), Inbox().endpoint) == (32, 16, "")


def test_a_trace_is_complete_when_its_first_span_and_every_parent_are_there() -> None:
    inbox = Inbox()
    assert not inbox.is_complete()
    inbox.add(Span("t", "inner", "outer", "x", 0.0, 1.0))
    assert not inbox.is_complete()
    inbox.add(Span("t", "outer", inbox.span, "x", 0.0, 1.0))
    assert inbox.is_complete()
    inbox.add(Span("t", "late", "absent", "x", 0.0, 1.0))
    assert not inbox.is_complete()


def test_a_complete_trace_is_waited_for_and_not_for_ever() -> None:
    async def course() -> None:
        inbox = Inbox()
        await inbox.wait_until_complete(0.0)
        waiting = asyncio.create_task(inbox.wait_until_complete(60.0))
        await asyncio.sleep(0)
        inbox.add(Span("t", "inner", "outer", "x", 0.0, 1.0))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        inbox.add(Span("t", "outer", inbox.span, "x", 0.0, 1.0))
        await waiting
        assert inbox._changed is None
        await inbox.wait_until_complete(60.0)

    asyncio.run(course())


@pytest.mark.parametrize(
    ("encoding", "body", "most", "expected"),
    [
        ("", b"12345678", 8, b"12345678"),
        ("", b"12345678", 7, None),
        ("identity", b"12345678", 8, b"12345678"),
        ("gzip", gzip.compress(b"12345678", mtime=0), 99, b"12345678"),
        ("deflate", zlib.compress(b"12345678"), 99, b"12345678"),
        ("gzip", b"12345678", 99, b"\xff"),
        ("gzip", gzip.compress(bytes(99), mtime=0), 99, bytes(99)),
        ("gzip", gzip.compress(bytes(100), mtime=0), 99, None),
    ],
)
def test_a_body_is_unpacked_up_to_a_size(
    monkeypatch: pytest.MonkeyPatch, encoding: str, body: bytes, most: int, expected: bytes | None
) -> None:
    async def stream() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 3):
            yield body[at : at + 3]

    monkeypatch.setattr(spans, "LARGEST_REQUEST", most)
    headers = {"content-encoding": encoding} if encoding else {}
    request = SimpleNamespace(stream=stream, headers=headers)
    assert asyncio.run(spans._body(request)) == expected
