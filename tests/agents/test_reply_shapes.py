"""Shapes of answers and errors that providers really send, played by a server on loopback.

Each line is one shape: what the server answers, and what the attempt should come to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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

SHAPES: dict[str, tuple[str, int, Any, tuple[str, str]]] = {
    # Chat Completions
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
    "a page of HTML": ("openai", 200, "<html>gateway</html>", ("missing", "infrastructure")),
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
    "fastapi detail": ("openai", 500, {"detail": "worker died"}, ("missing", "infrastructure")),
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
    # generateContent
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
            *("--retries", "0"),
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
    if why == "account":
        assert ended.code == 4
        assert "sk-1234567890abcdef" not in ended.err + json.dumps(call)


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
        option = () if choice is None else ("--timeouts-are", choice)
        ended = passhat(
            *("run", "-s", "jsonl:tasks.jsonl", "-a", f"openai:small@{url}/v1", "-n", "1"),
            *("--step-timeout", "0.2", *option),
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
