"""A stand-in for OpenAI's two APIs and Anthropic's that calls a tool once, then answers 42."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARGUMENTS = json.dumps({"a": 6, "b": 7})


def chat(body: dict[str, Any]) -> dict[str, Any]:
    # smolagents writes what a tool gave back as a message of its own, and ends by a tool.
    done = any(
        message.get("role") == "tool" or "Observation:" in json.dumps(message.get("content"))
        for message in body["messages"]
        if message.get("role") != "system"
    )
    message: dict[str, Any] = {"role": "assistant", "content": "42"}
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    if names and (not done or "final_answer" in names):
        call = {"name": names[0], "arguments": ARGUMENTS}
        if done:
            call = {"name": "final_answer", "arguments": '{"answer": "42"}'}
        calls = [{"id": "c1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    if "Action Input:" in str(body["messages"][0].get("content")):
        # CrewAI asks for calls in text, and appends what they gave back to the assistant's words.
        said = [str(m.get("content")) for m in body["messages"] if m.get("role") == "assistant"]
        over = any("Observation" in text for text in said)
        call_text = f"Thought: I multiply.\nAction: multiply\nAction Input: {ARGUMENTS}"
        message["content"] = "Thought: done\nFinal Answer: 42" if over else call_text
    system = str(body["messages"][0].get("content"))
    if "[[ ##" in system:
        message["content"] = dspy_fields(system, str(body["messages"][-1].get("content")))
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def dspy_fields(system: str, asked: str) -> str:
    """DSPy asks for named fields in text: a tool, the end of its loop, then the answer."""
    fields = {"reasoning": "6 times 7", "answer": "42"}
    if "next_tool_name" in system:
        has_result = "observation_0" in asked
        name, arguments = ("finish", "{}") if has_result else ("multiply", ARGUMENTS)
        fields = {"next_thought": "go", "next_tool_name": name, "next_tool_args": arguments}
    parts = [f"[[ ## {name} ## ]]\n{text}\n" for name, text in fields.items()]
    return "\n".join([*parts, "[[ ## completed ## ]]"])


def response(body: dict[str, Any]) -> dict[str, Any]:
    done = any(item.get("type") == "function_call_output" for item in body["input"])
    text = {"type": "output_text", "text": "42", "annotations": []}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [text]}
    if body.get("tools") and not done:
        name = body["tools"][0]["name"]
        item = {"type": "function_call", "call_id": "c1", "name": name, "arguments": ARGUMENTS}
    return {
        "id": "r1",
        "object": "response",
        "created_at": 0,
        "model": body["model"],
        "status": "completed",
        "output": [{"id": "i1", "status": "completed", **item}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 10,
            "total_tokens": 110,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def chunks(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """A chat completion as a stream sends it."""
    (choice,) = whole["choices"]
    delta = {**choice["message"]}
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls)]
    shared = {**whole, "object": "chat.completion.chunk", "usage": None}
    first = {"index": 0, "delta": delta, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    return [
        {**shared, "choices": [first]},
        {**shared, "choices": [last]},
        {**shared, "choices": [], "usage": whole["usage"]},
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of an answer of Anthropic's Messages API."""
    done = "tool_result" in json.dumps(body["messages"])
    names = [tool["name"] for tool in body.get("tools", ())]
    name = next((name for name in names if "multiply" in name), None)
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "42"}
    stop = "end_turn"
    if name and not done:
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": ARGUMENTS}
        stop = "tool_use"
    usage = {"input_tokens": 100, "output_tokens": 10}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": body["model"]}
    start = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    ending = {"stop_reason": stop, "stop_sequence": None}
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": usage},
        {"type": "message_stop"},
    ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        form = "text/event-stream"
        if "count_tokens" in self.path:
            text, form = b'{"input_tokens": 100}', "application/json"
        elif "/messages" in self.path:
            lines = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in messages(body)]
            text = "".join(lines).encode()
        elif body.get("stream"):
            lines = [f"data: {json.dumps(event)}\n\n" for event in chunks(chat(body))]
            text = "".join([*lines, "data: [DONE]\n\n"]).encode()
        else:
            answer = response(body) if "/responses" in self.path else chat(body)
            text, form = json.dumps(answer).encode(), "application/json"
        self.send_response(200)
        self.send_header("content-type", form)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        return


def start() -> str:
    """Start the server in a thread; returns its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
