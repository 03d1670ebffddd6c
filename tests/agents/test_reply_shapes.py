"""Shapes of answers and errors that providers really send, played by a server on loopback.

Each line is one shape: what the server answers, and what the attempt should come to.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import InvalidValue
from passhat.store import open_store

Passhat = Callable[..., Any]
Serve = Callable[..., Any]

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chat(message: Any, finish: Any = "stop", usage: Any = USAGE, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "model": "small-2", "choices": [choice], "usage": usage, **more}


def claude(content: Any, stop: Any = "end_turn", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "small-2",
        "content": content,
        "stop_reason": stop,
        "usage": usage,
        **more,
    }


def gemini(parts: Any, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    content = {"content": {"role": "model", "parts": parts}} if parts is not None else {}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [{**content, "finishReason": finish}], "usageMetadata": usage, **more}


def response(output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"id": "r1", "model": "m", "status": status, "output": output, "usage": usage, **more}


def said(text: str, kind: str = "output_text") -> dict[str, Any]:
    name = "refusal" if kind == "refusal" else "text"
    return {"type": "message", "role": "assistant", "content": [{"type": kind, name: text}]}


YES = {"role": "assistant", "content": "yes"}
PASSED = ("passed", "")
BROKEN = ("missing", "infrastructure")
BUSY = ("missing", "rate_limit")
ACCOUNT = ("missing", "account")

SHAPES: dict[str, tuple[str, int, Any, tuple[str, str]]] = {
    # Chat Completions
    "a region that is not served": (
        "openai",
        403,
        {"error": {"code": "unsupported_country_region_territory", "message": "not supported"}},
        ACCOUNT,
    ),
    "a proxy that asks for a password": ("openai", 407, "", ACCOUNT),
    "an error of Google, in a list": (
        "openai",
        400,
        [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}],
        ACCOUNT,
    ),
    "too long at the first request": (
        "openai",
        400,
        {"error": {"message": "too many tokens", "code": "context_length_exceeded"}},
        ("failed", "agent_error"),
    ),
    "llama.cpp: too long at the first request": (
        "openai",
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size"}},
        ("failed", "agent_error"),
    ),
    "anthropic: too long at the first request": (
        "anthropic",
        400,
        {
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 9 > 8 maximum",
            }
        },
        ("failed", "agent_error"),
    ),
    "gemini: too long at the first request": (
        "gemini",
        400,
        {
            "error": {
                "message": "The input token count (9) exceeds the maximum number of tokens (8)."
            }
        },
        ("failed", "agent_error"),
    ),
    "gemini: a wrong key, in a list": (
        "gemini",
        400,
        [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}],
        ACCOUNT,
    ),
    "anthropic: a limit of one's own": (
        "anthropic",
        400,
        {"error": {"message": "You have reached your specified API usage limits."}},
        ACCOUNT,
    ),
    "anthropic: disabled": (
        "anthropic",
        400,
        {"error": {"message": "This organization has been disabled."}},
        ACCOUNT,
    ),
    "openai plain": ("openai", 200, chat(YES), PASSED),
    "openai content parts": (
        "openai",
        200,
        chat({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "yes"}]}),
        PASSED,
    ),
    "openai parts without type": ("openai", 200, chat({"content": [{"text": "yes"}]}), PASSED),
    "openai strings as parts": ("openai", 200, chat({"content": ["y", "es"]}), PASSED),
    "openai usage missing": ("openai", 200, chat(YES, usage=None), PASSED),
    "openai usage half": ("openai", 200, chat(YES, usage={"prompt_tokens": 3}), PASSED),
    "openai no finish reason": ("openai", 200, chat(YES, finish=None), PASSED),
    "openai old completion": (
        "openai",
        200,
        {"choices": [{"text": "yes", "finish_reason": "stop"}]},
        PASSED,
    ),
    "openai cut": ("openai", 200, chat({"content": "ye"}, "length"), ("failed", "truncated")),
    "mistral cut": (
        "openai",
        200,
        chat({"content": "ye"}, "model_length"),
        ("failed", "truncated"),
    ),
    "openai cut but right": ("openai", 200, chat(YES, "length"), PASSED),
    "openai refusal": (
        "openai",
        200,
        chat({"content": None, "refusal": "I cannot help."}),
        ("failed", "refused"),
    ),
    "openai filtered": (
        "openai",
        200,
        chat({"content": ""}, "content_filter"),
        ("failed", "filtered"),
    ),
    "openai thinking only": (
        "openai",
        200,
        chat({"content": "", "reasoning_content": "let me see"}),
        ("failed", "wrong_answer"),
    ),
    "openai content null": ("openai", 200, chat({"content": None}), ("failed", "wrong_answer")),
    "error behind 200": (
        "openai",
        200,
        {"error": {"message": "Provider returned error", "code": 502}},
        ("missing", "infrastructure"),
    ),
    "busy behind 200": (
        "openai",
        200,
        {"error": {"message": "Rate limit exceeded: free-models-per-min", "code": 429}},
        ("missing", "rate_limit"),
    ),
    "error in the choice": (
        "openai",
        200,
        {"choices": [{"error": {"message": "upstream overloaded", "code": 529}}]},
        ("missing", "rate_limit"),
    ),
    "error as text": ("openai", 200, {"error": "no credits left"}, ("missing", "account")),
    "choices empty": ("openai", 200, {"choices": []}, ("missing", "infrastructure")),
    "choices null": (
        "openai",
        200,
        {"choices": None, "usage": USAGE},
        ("missing", "infrastructure"),
    ),
    "not an object": ("openai", 200, ["yes"], ("missing", "infrastructure")),
    "quota": (
        "openai",
        429,
        {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}},
        ("missing", "account"),
    ),
    "wrong key": (
        "openai",
        400,
        {"error": {"message": "Incorrect API key provided: sk-1234567890abcdef"}},
        ("missing", "account"),
    ),
    "no such model": (
        "openai",
        400,
        {"error": {"message": "The model `small` does not exist or you do not have access"}},
        ("missing", "account"),
    ),
    "azure filter": (
        "openai",
        400,
        {"error": {"message": "The response was filtered", "code": "content_filter"}},
        ("failed", "filtered"),
    ),
    "vllm abort": ("openai", 200, chat({"content": "ye"}, "abort"), BROKEN),
    "mistral error": ("openai", 200, chat({"content": ""}, "error"), BROKEN),
    "deepseek out of resources": (
        "openai",
        200,
        chat({"content": "ye"}, "insufficient_system_resource"),
        BROKEN,
    ),
    "zhipu network error": ("openai", 200, chat({"content": ""}, "network_error"), BROKEN),
    "zhipu sensitive": (
        "openai",
        200,
        chat({"content": ""}, "sensitive"),
        ("failed", "filtered"),
    ),
    "unknown finish reason": (
        "openai",
        200,
        chat({"content": "no"}, "moonphase"),
        ("failed", "unknown_failure"),
    ),
    "unknown finish reason, right answer": ("openai", 200, chat(YES, "moonphase"), PASSED),
    "negative usage": (
        "openai",
        200,
        chat(YES, usage={"prompt_tokens": -10, "completion_tokens": 5}),
        PASSED,
    ),
    "byte order mark": ("openai", 200, "\ufeff" + json.dumps(chat(YES)), PASSED),
    "cost of the provider": ("openai", 200, chat(YES, usage={**USAGE, "cost": 0.25}), PASSED),
    "failed dependency": ("openai", 424, {"error": {"message": "model failed"}}, BROKEN),
    "openai server error": (
        "openai",
        500,
        {"error": {"message": "The server had an error", "type": "server_error"}},
        BROKEN,
    ),
    "openai bad gateway": ("openai", 502, "<html>bad gateway</html>", BROKEN),
    "openai overloaded": ("openai", 503, {"error": {"message": "overloaded"}}, BUSY),
    "openai too often": (
        "openai",
        429,
        {"error": {"message": "Rate limit reached for requests", "code": "rate_limit_exceeded"}},
        BUSY,
    ),
    "out of credit": ("openai", 402, {"error": {"message": "Payment required"}}, ACCOUNT),
    "unknown address": ("openai", 404, {"detail": "Not Found"}, ACCOUNT),
    "fastapi detail": ("openai", 500, {"detail": "worker died"}, ("missing", "infrastructure")),
    "an error that is not wrapped": (
        "openai",
        200,
        {"message": "Rate limit exceeded", "code": 429},
        BUSY,
    ),
    "two objects in one body": ("openai", 200, json.dumps(chat(YES)) * 2, BROKEN),
    "newlines before the body": ("openai", 200, "\n\n  " + json.dumps(chat(YES)), PASSED),
    "usage as strings": (
        "openai",
        200,
        chat(YES, usage={"prompt_tokens": "10", "completion_tokens": "5"}),
        PASSED,
    ),
    "choices in another order": (
        "openai",
        200,
        {
            "choices": [
                {"index": 1, "message": {"content": "no"}, "finish_reason": "stop"},
                {"index": 0, "message": YES, "finish_reason": "stop"},
            ]
        },
        PASSED,
    ),
    "content that is a number": ("openai", 200, chat({"content": 3}), BROKEN),
    "usage as a list": ("openai", 200, chat(YES, usage=[1]), PASSED),
    "logprobs of another kind": (
        "openai",
        200,
        {"choices": [{"message": YES, "finish_reason": "stop", "logprobs": "?"}]},
        PASSED,
    ),
    "a finish reason that is a number": ("openai", 200, chat(YES, finish=3), PASSED),
    # Messages
    "anthropic plain": ("anthropic", 200, claude([{"type": "text", "text": "yes"}]), PASSED),
    "anthropic thinking": (
        "anthropic",
        200,
        claude([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]),
        PASSED,
    ),
    "anthropic string": ("anthropic", 200, claude("yes"), PASSED),
    "anthropic cut": (
        "anthropic",
        200,
        claude([{"type": "text", "text": "ye"}], "max_tokens"),
        ("failed", "truncated"),
    ),
    "anthropic refusal": ("anthropic", 200, claude([], "refusal"), ("failed", "refused")),
    "anthropic thinking only": (
        "anthropic",
        200,
        claude([{"type": "thinking", "thinking": "hm"}], "max_tokens"),
        ("failed", "truncated"),
    ),
    "anthropic no credit": (
        "anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API.",
            },
        },
        ("missing", "account"),
    ),
    "anthropic overloaded": (
        "anthropic",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ("missing", "rate_limit"),
    ),
    "anthropic overloaded behind 200": (
        "anthropic",
        200,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ("missing", "rate_limit"),
    ),
    "anthropic context full": (
        "anthropic",
        200,
        claude([{"type": "text", "text": "ye"}], "model_context_window_exceeded"),
        ("failed", "truncated"),
    ),
    "anthropic negative usage": (
        "anthropic",
        200,
        claude([{"type": "text", "text": "yes"}], usage={"input_tokens": -3, "output_tokens": 1}),
        PASSED,
    ),
    "anthropic wrong key": (
        "anthropic",
        401,
        {
            "type": "error",
            "error": {"type": "authentication_error", "message": "invalid x-api-key"},
        },
        ACCOUNT,
    ),
    "anthropic no such model": (
        "anthropic",
        404,
        {"type": "error", "error": {"type": "not_found_error", "message": "model: small"}},
        ACCOUNT,
    ),
    "anthropic api error": (
        "anthropic",
        500,
        {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}},
        BROKEN,
    ),
    "vertex quota per minute": (
        "anthropic",
        429,
        {
            "error": {
                "code": 429,
                "message": "Quota exceeded for aiplatform.googleapis.com/"
                "online_prediction_requests_per_base_model with base model: claude. "
                "Please submit a quota increase request.",
                "status": "RESOURCE_EXHAUSTED",
            }
        },
        BUSY,
    ),
    # generateContent
    "gemini language": ("gemini", 200, gemini(None, "LANGUAGE"), ("failed", "filtered")),
    "gemini malformed tool call": (
        "gemini",
        200,
        gemini(None, "MALFORMED_FUNCTION_CALL"),
        ("failed", "format_error"),
    ),
    "gemini unknown reason": (
        "gemini",
        200,
        gemini([{"text": "no"}], "MOONPHASE"),
        ("failed", "unknown_failure"),
    ),
    "gemini negative usage": (
        "gemini",
        200,
        gemini([{"text": "yes"}], usageMetadata={"promptTokenCount": -4}),
        PASSED,
    ),
    "gemini overloaded": (
        "gemini",
        503,
        {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
        BUSY,
    ),
    "gemini internal": (
        "gemini",
        500,
        {"error": {"code": 500, "message": "An internal error", "status": "INTERNAL"}},
        BROKEN,
    ),
    "gemini plain": ("gemini", 200, gemini([{"text": "yes"}]), PASSED),
    "gemini thoughts": (
        "gemini",
        200,
        gemini([{"text": "hm", "thought": True}, {"text": "yes", "thoughtSignature": "x"}]),
        PASSED,
    ),
    "gemini cut": ("gemini", 200, gemini([{"text": "y"}], "MAX_TOKENS"), ("failed", "truncated")),
    "gemini cut while thinking": (
        "gemini",
        200,
        gemini(None, "MAX_TOKENS"),
        ("failed", "truncated"),
    ),
    "gemini safety": ("gemini", 200, gemini(None, "SAFETY"), ("failed", "filtered")),
    "gemini prompt blocked": (
        "gemini",
        200,
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}},
        ("failed", "filtered"),
    ),
    "gemini wrong key": (
        "gemini",
        400,
        {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}},
        ("missing", "account"),
    ),
    "gemini limit per minute": (
        "gemini",
        429,
        {
            "error": {
                "code": 429,
                "message": "You exceeded your current quota, please check your plan.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "RetryInfo", "retryDelay": "0.01s"}],
            }
        },
        ("missing", "rate_limit"),
    ),
    "gemini nothing": ("gemini", 200, {"usageMetadata": {}}, ("missing", "infrastructure")),
    # Responses
    "responses plain": ("openai-responses", 200, response([said("yes")]), PASSED),
    "responses reasoning": (
        "openai-responses",
        200,
        response([{"type": "reasoning", "summary": []}, said("yes")]),
        PASSED,
    ),
    "responses cut": (
        "openai-responses",
        200,
        response([said("ye")], "incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ("failed", "truncated"),
    ),
    "responses refusal": (
        "openai-responses",
        200,
        response([said("No.", "refusal")]),
        ("failed", "refused"),
    ),
    "responses filtered": (
        "openai-responses",
        200,
        response([], "incomplete", incomplete_details={"reason": "content_filter"}),
        ("failed", "filtered"),
    ),
    "responses queued": ("openai-responses", 200, response([], "queued"), BROKEN),
    "responses failed": (
        "openai-responses",
        200,
        response([], "failed", error={"code": "server_error", "message": "broke"}),
        ("missing", "infrastructure"),
    ),
}


@pytest.fixture
def one_question(questions: Path) -> None:
    (questions / "tasks.jsonl").write_text('{"id": "t", "prompt": "yes?", "answer": "yes"}\n')


@pytest.mark.usefixtures("one_question")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_shape(passhat: Passhat, serve: Serve, shape: str) -> None:
    kind, status, body, (verdict, why) = SHAPES[shape]
    text = body if isinstance(body, str) else json.dumps(body)
    with serve(lambda _body: None) as (url, server):
        server.answer = lambda _path, _body: (status, {"x-request-id": "req_7"}, text.encode())
        base = url if kind == "anthropic" else f"{url}/v1"
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"{kind}:small@{base}", "-n", "1"),
            *("--set", "retries=0"),
        )
    assert "Traceback" not in ended.err
    with open_store() as store:
        (run,) = store.runs()
        attempt = store.attempt(run.id, "t", 1)
        assert attempt is not None
        assert (str(attempt.verdict), attempt.why) == (verdict, why), attempt.detail
        (call,) = store.calls(run.id, "t", 1)
    assert call["name"] == f"{kind}:small"
    assert call["request"]
    if "thinking only" in shape:
        assert "thinking only" in attempt.detail
    if why == "unknown_failure":
        assert "moonphase" in attempt.detail.lower()
    if "negative usage" in shape:
        assert call.get("input_tokens") is None
    if "cost" in shape:
        assert (call["cost"], call["priced"]) == (0.25, "reported by the provider")
    if why == "account":
        assert ended.code == 4
        assert "sk-1234567890abcdef" not in ended.err + json.dumps(call)


def stream(*events: Any, end: str = "data: [DONE]\n\n") -> str:
    lines = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return "".join(lines) + end


def delta(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    change: dict[str, Any] = {"content": text}
    change |= {name: more.pop(name) for name in ("tool_calls", "function_call") if name in more}
    choice = {"index": 0, "delta": change, "finish_reason": finish}
    return {"id": "c1", "model": "small-2", "choices": [choice], **more}


STARTED = {"type": "message_start", "message": claude([], None)}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
ENDED = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn", "stop_sequence": None},
    "usage": {"output_tokens": 5},
}


def piece(text: str) -> dict[str, Any]:
    part = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": part}


LAST_USAGE = {"choices": [], "usage": USAGE}

STREAMS: dict[str, tuple[str, str, tuple[str, str]]] = {
    "openai stream": (
        "openai",
        stream(delta("y"), delta("es"), delta(None, "stop"), {"choices": [], "usage": USAGE}),
        PASSED,
    ),
    "openai stream that breaks off": ("openai", stream(delta("yes"), end=""), BROKEN),
    "openai error in the stream": (
        "openai",
        stream(delta("y"), {"error": {"message": "upstream overloaded", "code": 529}}),
        BUSY,
    ),
    "openai stream cut": (
        "openai",
        stream(delta("ye"), delta(None, "length")),
        ("failed", "truncated"),
    ),
    "openai server that does not stream": ("openai", json.dumps(chat(YES)), PASSED),
    "openai comments in the stream": (
        "openai",
        ": waiting\n\n" * 20 + stream(delta("yes"), delta(None, "stop"), LAST_USAGE),
        PASSED,
    ),
    "openai lines that keep a stream open": (
        "openai",
        "\n" * 1_000 + stream(delta("yes"), delta(None, "stop"), LAST_USAGE),
        PASSED,
    ),
    "openai finish reason never comes": ("openai", stream(delta("yes"), delta()), BROKEN),
    "openai last chunk twice": (
        "openai",
        stream(delta("yes"), delta(None, "stop"), delta(None, "stop"), LAST_USAGE),
        PASSED,
    ),
    "openai stream cut within a character": (
        "openai",
        stream(delta("yes \N{SNOWMAN}"), end="").replace("\\u2603", "\N{SNOWMAN}")[:-60],
        BROKEN,
    ),
    "openai parts in the stream": (
        "openai",
        stream(
            {"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "yes"}]}}]},
            delta(None, "stop"),
            LAST_USAGE,
        ),
        PASSED,
    ),
    "openai empty stream": ("openai", "", BROKEN),
    "openai stream of something else": ("openai", "data: {oops\n\n", BROKEN),
    "anthropic stream": (
        "anthropic",
        stream(STARTED, BLOCK, piece("y"), piece("es"), ENDED, {"type": "message_stop"}, end=""),
        PASSED,
    ),
    "anthropic stream that breaks off": (
        "anthropic",
        stream(STARTED, BLOCK, piece("yes"), end=""),
        BROKEN,
    ),
    "anthropic error in the stream": (
        "anthropic",
        stream(
            STARTED,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            end="",
        ),
        BUSY,
    ),
    "anthropic server that does not stream": (
        "anthropic",
        json.dumps(claude([{"type": "text", "text": "yes"}])),
        PASSED,
    ),
    "gemini stream": (
        "gemini",
        stream(gemini([{"text": "y"}], ""), gemini([{"text": "es"}]), end=""),
        PASSED,
    ),
    "gemini stream that breaks off": (
        "gemini",
        stream(gemini([{"text": "yes"}], ""), end=""),
        BROKEN,
    ),
    "responses stream": (
        "openai-responses",
        stream(
            {"type": "response.output_text.delta", "delta": "yes"},
            {"type": "response.completed", "response": response([said("yes")])},
            end="",
        ),
        PASSED,
    ),
    "responses error in the stream": (
        "openai-responses",
        stream({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, end=""),
        BUSY,
    ),
    "responses stream that breaks off": (
        "openai-responses",
        stream({"type": "response.output_text.delta", "delta": "yes"}, end=""),
        BROKEN,
    ),
}


@pytest.mark.usefixtures("one_question")
@pytest.mark.parametrize("shape", STREAMS)
def test_a_stream(passhat: Passhat, serve: Serve, shape: str) -> None:
    kind, text, (verdict, why) = STREAMS[shape]
    form = "application/json" if text.startswith("{") else "text/event-stream"
    with serve(lambda _body: None) as (url, server):
        server.answer = lambda _path, _body: (200, {"content-type": form}, text.encode())
        base = url if kind == "anthropic" else f"{url}/v1"
        # A long limit streams by itself; the SDK of Anthropic refuses to wait for it otherwise.
        long = "?max_output_tokens=32000"
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"{kind}:small@{base}{long}", "-n", "1"),
            *("--set", "retries=0"),
        )
    assert "Traceback" not in ended.err
    with open_store() as store:
        (run,) = store.runs()
        attempt = store.attempt(run.id, "t", 1)
        assert attempt is not None
        assert (str(attempt.verdict), attempt.why) == (verdict, why), attempt.detail
        (call,) = store.calls(run.id, "t", 1)
    if verdict == "passed":
        assert (call["input_tokens"], call["output_tokens"]) == (10, 5)


EVENTS = {"content-type": "text/event-stream"}
PAGE = {"content-type": "text/html; charset=utf-8"}
GZIP = {"content-encoding": "gzip"}
PLAIN = json.dumps(chat(YES)).encode()
STREAM = stream(delta("y"), delta("es"), delta(None, "stop"), LAST_USAGE).encode()
CALL_WITHOUT_NAME = {"id": "c", "type": "function", "function": {"arguments": "{}"}}
PING = {"type": "ping"}
GEMINI_STREAM = stream(gemini([{"text": "y"}], ""), gemini([{"text": "es"}]), end="").encode()
NEW_EVENT = {"type": "moon_phase", "phase": "full"}

WIRE: dict[str, tuple[str, int, dict[str, str], bytes, tuple[str, str]]] = {
    "an answer that is called a page": ("openai", 200, PAGE, PLAIN, PASSED),
    "an answer that is called text": ("openai", 200, {"content-type": "text/plain"}, PLAIN, PASSED),
    "an answer without a type": ("openai", 200, {"content-type": ""}, PLAIN, PASSED),
    "a stream that is called JSON": ("openai", 200, {}, STREAM, PASSED),
    "called gzip, and not": ("openai", 200, GZIP, PLAIN, BROKEN),
    "gzip": ("openai", 200, GZIP, gzip.compress(PLAIN), PASSED),
    "gzip cut": ("openai", 200, GZIP, gzip.compress(PLAIN)[:-12], BROKEN),
    "gzip with a wrong checksum": (
        *("openai", 200, GZIP),
        gzip.compress(PLAIN)[:-8] + bytes(8),
        BROKEN,
    ),
    "called brotli, and not": ("openai", 200, {"content-encoding": "br"}, PLAIN, PASSED),
    "closed before the end": ("openai", 200, {"content-length": "9999"}, PLAIN, BROKEN),
    "closed before the first byte": ("openai", 200, {"content-length": "9999"}, b"", BROKEN),
    "a stream closed between events": (
        *("openai", 200, {**EVENTS, "content-length": "9999"}),
        stream(delta("yes"), end="").encode(),
        BROKEN,
    ),
    "a stream closed after its last event": (
        *("openai", 200, {**EVENTS, "content-length": "9999"}),
        STREAM,
        PASSED,
    ),
    "a stream closed within an event": (
        *("openai", 200, {**EVENTS, "content-length": "9999"}),
        STREAM[:90],
        BROKEN,
    ),
    "no content": ("openai", 204, {}, b"", BROKEN),
    "bytes that are no text": ("openai", 200, {}, PLAIN.replace(b"yes", b"\xff\xfe"), BROKEN),
    "two usages that agree": (
        *("openai", 200, EVENTS),
        stream(delta("yes", usage=USAGE), delta(None, "stop", usage=USAGE), LAST_USAGE).encode(),
        PASSED,
    ),
    "usage that grows with the stream": (
        *("openai", 200, EVENTS),
        stream(
            delta("y", usage={"prompt_tokens": 10, "completion_tokens": 1}),
            delta("es", "stop", usage=USAGE),
        ).encode(),
        PASSED,
    ),
    "usage that is not a number": (
        *("openai", 200, {}),
        PLAIN.replace(b"10", b"NaN").replace(b": 5", b": Infinity"),
        PASSED,
    ),
    "lines that end as on Windows": (
        *("openai", 200, EVENTS),
        STREAM.replace(b"\n", b"\r\n"),
        PASSED,
    ),
    "no blank after data:": ("openai", 200, EVENTS, STREAM.replace(b"data: ", b"data:"), PASSED),
    "an event over several lines": (
        *("openai", 200, EVENTS),
        STREAM.replace(b'"choices"', b'\ndata: "choices"'),
        PASSED,
    ),
    "no [DONE]": ("openai", 200, EVENTS, STREAM.replace(b"data: [DONE]\n\n", b""), PASSED),
    "a stream without its last blank line": ("openai", 200, EVENTS, STREAM.rstrip(), PASSED),
    "a byte order mark before a stream": ("openai", 200, EVENTS, b"\xef\xbb\xbf" + STREAM, PASSED),
    "a call without a name": (
        *("openai", 200, {}),
        json.dumps(
            chat({"content": None, "tool_calls": [CALL_WITHOUT_NAME]}, "tool_calls")
        ).encode(),
        ("failed", "format_error"),
    ),
    "a call without a function": (
        *("openai", 200, {}),
        json.dumps(chat({"content": None, "tool_calls": [{"id": "c"}]}, "tool_calls")).encode(),
        ("failed", "format_error"),
    ),
    "calls promised, none sent": (
        *("openai", 200, {}),
        json.dumps(chat({"content": None}, "tool_calls")).encode(),
        ("failed", "format_error"),
    ),
    "a reason in capitals": ("openai", 200, {}, PLAIN.replace(b'"stop"', b'"STOP"'), PASSED),
    "an empty reason": ("openai", 200, {}, PLAIN.replace(b'"stop"', b'""'), PASSED),
    "a reason of another format": (
        *("openai", 200, {}),
        json.dumps(chat({"content": "ye"}, "max_tokens")).encode(),
        ("failed", "truncated"),
    ),
    "a reason of Gemini": (
        *("openai", 200, {}),
        json.dumps(chat({"content": ""}, "SAFETY")).encode(),
        ("failed", "filtered"),
    ),
    "error: null beside an answer": (
        *("openai", 200, {}),
        json.dumps(chat(YES, error=None)).encode(),
        PASSED,
    ),
    "usage details in a list": (
        *("openai", 200, {}),
        json.dumps(chat(YES, usage={**USAGE, "prompt_tokens_details": [1]})).encode(),
        PASSED,
    ),
    "usage details in words": (
        *("openai", 200, {}),
        json.dumps(chat(YES, usage={**USAGE, "completion_tokens_details": "none"})).encode(),
        PASSED,
    ),
    "no empty lines between events": (
        *("openai", 200, EVENTS),
        STREAM.replace(b"\n\n", b"\n"),
        PASSED,
    ),
    "lines that end as on old Macs": (
        *("openai", 200, EVENTS),
        STREAM.replace(b"\n", b"\r"),
        PASSED,
    ),
    "a stream of lines of JSON": (
        *("openai", 200, {"content-type": "application/x-ndjson"}),
        STREAM.replace(b"data: [DONE]", b"").replace(b"data: ", b""),
        PASSED,
    ),
    "a stream with a choice that is null": (
        *("openai", 200, EVENTS),
        stream({"choices": [None]}, delta("yes"), delta(None, "stop"), LAST_USAGE).encode(),
        PASSED,
    ),
    "a stream that ends with the whole message": (
        *("openai", 200, EVENTS),
        stream(delta("y"), chat(YES), end="").encode(),
        PASSED,
    ),
    "a method that is not allowed": ("openai", 405, {}, b"Method Not Allowed", BROKEN),
    "headers that a proxy finds too large": ("openai", 431, {}, b"", BROKEN),
    "a bad request by a page": ("openai", 400, PAGE, b"<html>400 Bad Request</html>", BROKEN),
    "a broken server beside a bad request": (
        *("openai", 400, {}),
        b'{"error": {"message": "no such template", "type": "api_error"}}',
        ("failed", "agent_error"),
    ),
    "throttled by AWS, as a bad request": (
        *("anthropic", 400, {"x-amzn-errortype": "ThrottlingException:http://internal/"}),
        b'{"message": "Rate exceeded"}',
        BUSY,
    ),
    "a guardrail of AWS": (
        *("anthropic", 200, {}),
        json.dumps(
            claude(
                [{"type": "text", "text": "Sorry."}],
                **{"amazon-bedrock-guardrailAction": "INTERVENED"},
            )
        ).encode(),
        ("failed", "filtered"),
    ),
    "anthropic: a stream without the start of its block": (
        *("anthropic", 200, EVENTS),
        stream(STARTED, piece("y"), piece("es"), ENDED, {"type": "message_stop"}, end="").encode(),
        PASSED,
    ),
    "gemini: a stream in a list": (
        *("gemini", 200, {}),
        json.dumps([gemini([{"text": "y"}], ""), gemini([{"text": "es"}])]).encode(),
        PASSED,
    ),
    "gemini: an answer in a list": (
        *("gemini", 200, {}),
        json.dumps([gemini([{"text": "yes"}])]).encode(),
        PASSED,
    ),
    "gemini: an error in a list behind 200": (
        *("gemini", 200, {}),
        b'[{"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}]',
        BUSY,
    ),
    "gemini: too often, in a list": (
        *("gemini", 429, {}),
        b'[{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow"}}]',
        BUSY,
    ),
    "gemini: an image that is cited": (
        *("gemini", 200, {}),
        json.dumps(gemini([{"text": "no"}], "IMAGE_RECITATION")).encode(),
        ("failed", "filtered"),
    ),
    "responses: a stream whose last event has no output": (
        *("openai-responses", 200, EVENTS),
        stream(
            {"type": "response.output_text.delta", "delta": "yes"},
            {"type": "response.output_item.done", "item": said("yes")},
            {"type": "response.completed", "response": response([])},
            end="",
        ).encode(),
        PASSED,
    ),
    "responses: a stream of text alone": (
        *("openai-responses", 200, EVENTS),
        stream(
            {"type": "response.output_text.delta", "delta": "yes"},
            {"type": "response.done", "response": response([])},
            end="",
        ).encode(),
        PASSED,
    ),
    "responses: output_text alone": (
        *("openai-responses", 200, {}),
        json.dumps(response(None, output_text="yes")).encode(),
        PASSED,
    ),
    "responses: too many calls of tools": (
        *("openai-responses", 200, {}),
        json.dumps(
            response([said("no")], "incomplete", incomplete_details={"reason": "max_tool_calls"})
        ).encode(),
        ("failed", "unknown_failure"),
    ),
    "a conflict": ("openai", 409, {}, b'{"error": {"message": "conflict"}}', BROKEN),
    "too early": ("openai", 425, {}, b'{"error": {"message": "too early"}}', BROKEN),
    "timed out by the server": ("openai", 408, {}, b'{"error": {"message": "timeout"}}', BROKEN),
    "an unknown error of a proxy": ("openai", 520, PAGE, b"<html>Web server error</html>", BROKEN),
    "an origin that does not answer": ("openai", 524, PAGE, b"<html>A timeout</html>", BROKEN),
    "a site that is overloaded": ("openai", 529, PAGE, b"<html>Overloaded</html>", BUSY),
    "a client that hung up, they say": ("openai", 499, {}, b"{}", BROKEN),
    "a model that is loading": (
        *("openai", 503, {}),
        b'{"error": "Model is currently loading", "estimated_time": 20.0}',
        BUSY,
    ),
    "anthropic: pings and new events": (
        *("anthropic", 200, EVENTS),
        stream(
            *(STARTED, PING, BLOCK, piece("y"), NEW_EVENT, piece("es"), PING, ENDED),
            *({"type": "message_stop"},),
            end="",
        ).encode(),
        PASSED,
    ),
    "anthropic: paused": (
        *("anthropic", 200, {}),
        json.dumps(claude([{"type": "text", "text": "ye"}], "pause_turn")).encode(),
        ("failed", "unknown_failure"),
    ),
    "anthropic: called gzip, and not": (
        *("anthropic", 200, GZIP),
        json.dumps(claude([{"type": "text", "text": "yes"}])).encode(),
        BROKEN,
    ),
    "anthropic: a call without a name": (
        *("anthropic", 200, {}),
        json.dumps(claude([{"type": "tool_use", "id": "t", "input": {}}], "tool_use")).encode(),
        ("failed", "format_error"),
    ),
    "gemini: closed before the end": (
        *("gemini", 200, {"content-length": "9999"}),
        json.dumps(gemini([{"text": "yes"}])).encode(),
        BROKEN,
    ),
    "gemini: an unexpected call": (
        *("gemini", 200, {}),
        json.dumps(gemini(None, "UNEXPECTED_TOOL_CALL")).encode(),
        ("failed", "format_error"),
    ),
    "gemini: a call without a name": (
        *("gemini", 200, {}),
        json.dumps(gemini([{"functionCall": {"args": {}}}])).encode(),
        ("failed", "format_error"),
    ),
    "gemini: a byte order mark before a stream": (
        *("gemini", 200, EVENTS),
        b"\xef\xbb\xbf"
        + stream(gemini([{"text": "y"}], ""), gemini([{"text": "es"}]), end="").encode(),
        PASSED,
    ),
    "gemini: a stream that is called JSON": (
        *("gemini", 200, {}),
        GEMINI_STREAM,
        PASSED,
    ),
    "responses: cancelled": (
        *("openai-responses", 200, {}),
        json.dumps(response([], "cancelled")).encode(),
        BROKEN,
    ),
    "responses: incomplete, no reason": (
        *("openai-responses", 200, {}),
        json.dumps(response([said("ye")], "incomplete")).encode(),
        ("failed", "truncated"),
    ),
    "responses: a call without a name": (
        *("openai-responses", 200, {}),
        json.dumps(
            response([{"type": "function_call", "call_id": "c", "arguments": "{}"}])
        ).encode(),
        ("failed", "format_error"),
    ),
}


PLAIN_ANSWERS = {
    "openai": chat(YES),
    "anthropic": claude([{"type": "text", "text": "yes"}]),
    "gemini": gemini([{"text": "yes"}]),
    "openai-responses": response([said("yes")]),
}


def group_of(behavior: str) -> tuple[str, bool]:
    """Behaviors that one run can show: one format, with streams or without."""
    kind, _, _, body, _ = WIRE[behavior]
    return kind, "stream" in behavior or b"data:" in body


@pytest.mark.parametrize(("kind", "streams"), sorted({group_of(name) for name in WIRE}))
def test_on_the_wire(
    passhat: Passhat, serve: Serve, questions: Path, kind: str, streams: bool
) -> None:
    """One run with a task for every behavior: what one attempt meets does not touch the others."""
    names = [name for name in WIRE if group_of(name) == (kind, streams)]
    tasks = [{"id": f"t{i}", "prompt": f"<{i}>", "answer": "yes"} for i in range(len(names))]
    first = {"id": "a", "prompt": "<first>", "answer": "yes"}
    (questions / "tasks.jsonl").write_text("\n".join(map(json.dumps, [first, *tasks])))

    def answer(_path: str, body: Any) -> tuple[int, dict[str, str], bytes]:
        number = re.findall(r"<(\d+)>", json.dumps(body))
        if not number:  # the address is known to work
            return 200, {}, json.dumps(PLAIN_ANSWERS[kind]).encode()
        _, status, headers, text, _ = WIRE[names[int(number[0])]]
        return status, headers, text

    with serve(lambda _body: None) as (url, server):
        server.answer = answer
        base = url if kind == "anthropic" else f"{url}/v1"
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-n", "1", "--set", "retries=0", "--keep-going"),
            *("--jobs", "1", "--set", "give_up_after=99"),
            *("-a", f"{kind}:small@{base}{'?max_output_tokens=32000' if streams else ''}"),
        )
    assert "Traceback" not in ended.err
    with open_store() as store:
        (run,) = store.runs()
        for place, name in enumerate(names):
            attempt = store.attempt(run.id, f"t{place}", 1)
            assert attempt is not None, name
            assert (str(attempt.verdict), attempt.why) == WIRE[name][-1], (name, attempt.detail)
            (call,) = store.calls(run.id, f"t{place}", 1)
            if attempt.why == "" and "not a number" not in name:
                assert (call["input_tokens"], call["output_tokens"]) == (10, 5), name


def test_calls_in_a_stream_are_put_together() -> None:
    from passhat.agents.openai import merge_chunks, read_completion

    def part(index: int, **function: str) -> dict[str, Any]:
        call = {"index": index, "id": f"call_{index}", "function": function}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}

    chunks = [
        part(0, name="find", arguments='{"a'),
        part(1, name="list", arguments="{}"),
        part(0, arguments='": 1}'),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    calls = read_completion(merge_chunks(chunks)).calls
    assert [(call.name, call.arguments) for call in calls] == [("find", '{"a": 1}'), ("list", "{}")]


@pytest.mark.parametrize(
    "parts",
    [
        # Gemini's compatible server and Ollama: every call has the index 0.
        [(0, "a", "find", '{"a": 1}'), (0, "b", "list", "{}")],
        [(None, "a", "find", '{"a": 1}'), (None, "b", "list", "{}")],
        [(None, None, "find", '{"a": 1}'), (None, None, "list", "{}")],
        # The name again with every piece.
        [(0, "a", "find", '{"a'), (0, "a", "find", '": 1}'), (1, "b", "list", "{}")],
        # Old versions of vLLM: another id for every piece.
        [(0, "a", "find", '{"a'), (0, "x", None, '": 1}'), (1, "b", "list", "{}")],
        [("0", "a", "fi", ""), ("0", None, "nd", '{"a": 1}'), ("1", "b", "list", None)],
        [(0, "a", "find", {"a": 1}), (1, "b", "list", {})],
    ],
    ids=["index-0", "no-index", "no-ids", "name-repeated", "ids-change", "pieces", "objects"],
)
def test_calls_of_servers_that_number_them_badly(parts: list[tuple[Any, ...]]) -> None:
    from passhat.agents.openai import merge_chunks, read_completion

    chunks: list[dict[str, Any]] = [
        delta(tool_calls=[{"index": i, "id": id_, "function": {"name": name, "arguments": text}}])
        for i, id_, name, text in parts
    ]
    calls = read_completion(merge_chunks([*chunks, delta(None, "tool_calls")])).calls
    assert [(call.name, call.arguments) for call in calls] == [("find", '{"a": 1}'), ("list", "{}")]


def test_a_call_of_before_there_were_tools_is_read_in_a_stream() -> None:
    from passhat.agents.openai import merge_chunks, read_completion

    chunks = [
        delta(function_call={"name": "find", "arguments": ""}),
        delta(function_call={"arguments": '{"a": 1}'}),
        delta(None, "function_call"),
    ]
    (call,) = read_completion(merge_chunks(chunks)).calls
    assert (call.name, call.arguments) == ("find", '{"a": 1}')


ROOMS = {
    "vllm": "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum "
    "context length is 2048 tokens and your request has 100 input tokens (4096 > 2048 - 100).",
    "openai": "This model's maximum context length is 2048 tokens. However, you requested 4196 "
    "tokens (100 in the messages, 4096 in the completion).",
    "sglang": "Requested token count exceeds the model's maximum context length of 2,048 tokens. "
    "You requested a total of 4,196 tokens: 100 tokens from the input messages and 4,096 tokens "
    "for the completion.",
    "anthropic": "input length and `max_tokens` exceed context limit: 100 + 4096 > 2048, decrease "
    "input length or `max_tokens` and try again",
    "tgi": "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 100 `inputs` tokens and "
    "4096 `max_new_tokens`",
}


@pytest.mark.parametrize("server", ROOMS)
def test_a_limit_that_does_not_fit_beside_the_conversation_is_lowered_and_said(
    questions: Path, passhat: Passhat, serve: Serve, answer: Any, refusal: Any, server: str
) -> None:
    """The limit is passhat's own: no task fails for it, and the run goes on."""
    del questions

    def script(body: dict[str, Any]) -> Any:
        too_much = "yes? 3" in json.dumps(body) and body["max_tokens"] > 1_948
        return refusal(400, message=ROOMS[server]) if too_much else answer("yes")

    with serve(script) as (url, asked):
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:small@{url}/v1", "-n", "1"),
        )
    assert ended.code == 0, ended.err
    assert sorted(body["max_tokens"] for body in asked.requests) == [1_948, *[4_096] * 5]
    assert "1 call had to allow fewer than 4,096 tokens" in ended.err
    with open_store() as store:
        (run,) = store.runs()
        refused, made = store.calls(run.id, "t3", 1)
    assert (refused["limit"], made["limit"]) == (4_096, 1_948)
    assert refused["error"]


def test_an_answer_without_end_is_not_held_in_memory(
    questions: Path, passhat: Passhat, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    del questions
    monkeypatch.setattr("passhat.agents.chat._LARGEST_ANSWER", 100_000)
    big = gzip.compress(json.dumps(chat({"content": "y" * 200_000})).encode())
    with serve(lambda _body: None) as (url, server):
        server.answer = lambda _path, _body: (200, GZIP, big)
        passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:small@{url}/v1", "-n", "1"),
            *("--set", "retries=0", "--keep-going"),
        )
    with open_store() as store:
        (run,) = store.runs()
        attempt = store.attempt(run.id, "t0", 1)
    assert attempt is not None
    assert attempt.why == "infrastructure"
    assert "over 100,000 bytes" in attempt.detail


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}, 4),
        ({**USAGE, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6}, 4),
        ({**USAGE, "cached_tokens": 4}, 4),
        ({**USAGE, "prompt_tokens_details": None, "cached_tokens": 99}, 10),
        ({"prompt_tokens": 10**30, "completion_tokens": 5}, None),
    ],
    ids=["openai", "deepseek", "moonshot", "more-than-all", "absurd"],
)
def test_cached_tokens_are_read_where_servers_write_them(
    usage: dict[str, Any], cached: int | None
) -> None:
    from passhat.agents.openai import read_completion

    tokens = read_completion(chat(YES, usage=usage)).tokens
    assert (None if tokens is None else tokens.cached) == cached


def test_costs_are_read_in_every_form() -> None:
    from passhat.agents.anthropic import read_message
    from passhat.agents.openai import read_completion, read_response

    usage = {"input_tokens": 1, "output_tokens": 1, "cost": 0.25}
    assert read_response({**response([said("yes")]), "usage": usage}).cost == 0.25
    assert read_message({**claude("yes"), "usage": usage}).cost == 0.25
    object_cost = {"cost": {"total_cost": 0.25}}
    assert read_completion(chat(YES, usage=object_cost)).cost == 0.25
    assert read_completion(chat(YES, usage={"cost": 1e300})).cost is None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1:9", "http://127.0.0.1:9/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("[::]:9", "http://127.0.0.1:9/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("http://models.example", "http://models.example:80/v1"),
        ("https://models.example/ollama/", "https://models.example:443/ollama/v1"),
    ],
)
def test_the_host_of_ollama_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    from passhat.agents.openai import ollama_address

    assert ollama_address(host) == address
    with pytest.raises(InvalidValue, match="OLLAMA_HOST"):
        ollama_address("models.example:port")


REJECTIONS = {
    "a tool that was not found": (400, "The model called a tool that was not found: get_order"),
    "a request too large for the limit": (
        429,
        "Request too large for small: Limit 30000, Requested 38000.",
    ),
    "too many tokens of input": (400, "This model's maximum context length is 8192 tokens."),
}


@pytest.mark.parametrize("case", REJECTIONS)
def test_a_request_that_no_wait_can_help_fails_its_attempt(
    questions: Path, passhat: Passhat, serve: Serve, answer: Any, refusal: Any, case: str
) -> None:
    del questions
    status, message = REJECTIONS[case]

    def script(body: dict[str, Any]) -> Any:
        return refusal(status, message=message) if "yes? 4" in json.dumps(body) else answer("yes")

    with serve(script) as (url, server):
        passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:small@{url}/v1", "-n", "1"),
            *("--jobs", "1"),
        )
    assert len(server.requests) == 5  # not made again, and the run goes on
    with open_store() as store:
        (run,) = store.runs()
        attempt = store.attempt(run.id, "t4", 1)
    assert attempt is not None
    assert (str(attempt.verdict), attempt.why) == ("failed", "agent_error")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("Unsupported parameter: 'seed' is not supported.", "?seed=off"),
        ("`temperature` and `top_p` cannot both be specified for this model.", "--temperature"),
        ("max_tokens: 4096 > 2048, which is the maximum allowed number", "?max_output_tokens=N"),
        ("max_tokens exceeds the context length of the model", "?max_output_tokens=N"),
    ],
    ids=["seed", "temperature", "limit", "context"],
)
def test_a_rejected_setting_stops_the_run_with_the_setting_to_change(
    questions: Path,
    passhat: Passhat,
    serve: Serve,
    answer: Any,
    refusal: Any,
    message: str,
    hint: str,
) -> None:
    del questions

    def script(body: dict[str, Any]) -> Any:
        if "yes? 0" in json.dumps(body):
            return answer("yes")
        return refusal(400, message=message)

    with serve(script) as (url, server):
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:small@{url}/v1", "-n", "1"),
            *("--jobs", "1"),
        )
    assert ended.code != 0
    assert hint in ended.err
    assert len(server.requests) == 2


def test_seeds_fit_into_31_bits_and_another_model_is_named(
    questions: Path, passhat: Passhat, serve: Serve, answer: Any
) -> None:
    del questions
    with serve(lambda _body: answer("yes")) as (url, server):
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:huge@{url}/v1", "-n", "4"),
        )
    assert len({body["seed"] for body in server.requests}) > 1
    assert all(0 <= body["seed"] < 2**31 for body in server.requests)
    assert "was answered by small (20 answers)" in ended.err + ended.out


@pytest.mark.usefixtures("one_question")
def test_a_call_is_shown_and_the_report_names_the_cut(passhat: Passhat, serve: Serve) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 4}}
    usage = {**USAGE, **details, "completion_tokens_details": {"reasoning_tokens": 2}}
    cut = chat({"content": "ye"}, "length", usage)
    with serve(lambda _body: None) as (url, server):
        server.answer = lambda _p, _b: (200, {"x-request-id": "req_7"}, json.dumps(cut).encode())
        word = (
            f"openai:small@{url}/v1?max_tokens=5&seed=off&extra.priority=3&stop=END&system=Be+brief"
        )
        ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", word, "-n", "2")
    assert ended.out.startswith("Warning: 100% of answers were cut at 5 tokens (2 of 2).\n")
    with open_store() as store:
        (run,) = store.runs()
        call = store.calls(run.id, "t", 1)[0]
        assert store.protocol(run.id).decoding["extra.priority"] == "3"
    body = call["request"]
    assert (body["max_tokens"], body["priority"], body["stop"]) == (5, 3, ["END"])
    assert "seed" not in body
    assert body["messages"][0] == {"role": "system", "content": "Be brief"}
    assert (call["stop"], call["output_tokens"], call["cached_tokens"]) == ("length", 5, 4)
    assert (call["reasoning_tokens"], call["request_id"], call["model"]) == (2, "req_7", "small-2")
    shown = passhat("show", run.id, "t#1", "--calls").out
    for part in ("served by small-2", "ended by length", "5 output tokens", "req_7", "END"):
        assert part in shown
    data = json.loads(passhat("report", ".passhat/passhat.db", "--json").out)
    assert data["runs"][0]["warnings"] == ["100% of answers were cut at 5 tokens (2 of 2)"]


@pytest.mark.usefixtures("one_question")
def test_two_servers_are_two_runs(
    passhat: Passhat, serve: Serve, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    for _ in range(2):
        with serve(lambda _body: answer("yes")) as (url, server):
            monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
            passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "openai:small", "-n", "1")
        assert len(server.requests) == 1
    with open_store() as store:
        assert len(store.runs()) == 2


@pytest.mark.usefixtures("one_question")
@pytest.mark.parametrize(("choice", "ends"), [(None, -1), ("missing", -1), ("failed", 0)])
def test_a_slow_server_is_missing_or_failed_by_choice(
    passhat: Passhat, serve: Serve, choice: str | None, ends: int
) -> None:
    import threading

    over = threading.Event()
    with serve(lambda _body: over.wait(600)) as (url, _):
        option = () if choice is None else ("--set", f"timeouts_are={choice}")
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:small@{url}/v1", "-n", "1"),
            *("--set", "step_timeout=0.2", *option),
        )
        over.set()
    with open_store() as store:
        (run,) = store.runs()
        rows = [row for block in store.rows(run.id) for row in block]
    assert [(row[2], row[3]) for row in rows] == [(ends, "timeout")]
    assert "100% of attempts (1 of 1) timed out" in ended.out


@pytest.mark.usefixtures("one_question")
def test_the_same_command_continues_after_account_trouble(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any
) -> None:
    broke = refusal(400, message="Your credit balance is too low")
    with serve(lambda _body: broke) as (url, server):
        command = ("run", "-s", "jsonl:tasks.jsonl", "-a", f"anthropic:small@{url}", "-n", "2")
        assert passhat(*command, "--jobs", "1").code == 4
        server.script = lambda _body: answer("yes")
        assert passhat(*command, "--jobs", "1").code == 0
    with open_store() as store:
        (run,) = store.runs()
        assert (run.attempts, run.passed) == (2, 2)


_RESULTS = {
    PASSED: "read; the answer is judged",
    BROKEN: "tried again, then missing (`infrastructure`)",
    BUSY: "waited for, then missing (`rate_limit`)",
    ACCOUNT: "the run stops, the attempt is missing (`account`)",
}
_FORMATS = {
    "openai": "Chat Completions",
    "openai-responses": "Responses",
    "anthropic": "Messages",
    "gemini": "generateContent",
}


def behavior_table() -> str:
    """The table of docs/models.md: every behavior that is tested here, and its result."""
    rows = [(name, kind, end) for name, (kind, _, _, end) in SHAPES.items()]
    rows += [(name, kind, end) for name, (kind, _, end) in STREAMS.items()]
    rows += [(name, kind, end) for name, (kind, _, _, _, end) in WIRE.items()]
    rows += [(name, "openai", ("failed", "agent_error")) for name in REJECTIONS]
    lines = ["| behavior of the server | format | result |", "| --- | --- | --- |"]
    for name, kind, end in rows:
        result = _RESULTS.get(end, f"the attempt is {end[0]} (`{end[1]}`)")
        lines.append(f"| {name} | {_FORMATS[kind]} | {result} |")
    return "\n".join(lines)


def test_the_table_in_the_docs_is_this_one() -> None:
    """Print it with: python -c 'import test_reply_shapes as t; print(t.behavior_table())'"""
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert behavior_table() in page.read_text(encoding="utf-8")
    assert len(SHAPES) + len(STREAMS) + len(REJECTIONS) >= 60


def test_a_model_that_changes_is_warned_about_within_a_run_and_against_its_baseline(
    one_question: None, passhat: Passhat, serve: Serve
) -> None:
    del one_question
    served: list[str] = []

    def answer(_path: str, _body: Any) -> tuple[int, dict[str, str], bytes]:
        reply = chat(YES, system_fingerprint="fp_1") | {"model": served.pop(0)}
        return 200, {}, json.dumps(reply).encode()

    with serve(lambda _body: None) as (url, server):
        server.answer = answer
        word = f"openai:small@{url}/v1"
        for name, models in (
            ("first", ["small-2"] * 4),
            ("later", ["small-3"] * 4),
            ("mixed", ["small-2", "small-3"] * 2),
        ):
            served[:] = models
            arguments = ("-n", "4", "--name", name, "--jobs", "1")
            ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", word, *arguments)
            is_mixed = "the model changed during the run" in ended.out
            assert is_mixed == (name == "mixed")
    change = "was answered by small-2 (fp_1) before and by small-3 (fp_1) now"
    store = ".passhat/passhat.db"
    compared = passhat("compare", store, "--run", "first", "--run", "later", "--json")
    assert any(change in note for note in json.loads(compared.out)["notes"])
    assert "was answered by" in passhat("compare", store, "--run", "first", "--run", "later").out
    # Also where the baseline is a file.
    passhat("export", "first", "-o", "base.jsonl")
    gated = passhat("gate", "later", "--against", "base.jsonl", "--json")
    assert any(change in note for note in json.loads(gated.out)["notes"]), gated.out
