"""A stand-in for OpenAI's two APIs that calls the first tool once, then answers 42."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARGUMENTS = json.dumps({"a": 6, "b": 7})


def chat(body: dict[str, Any]) -> dict[str, Any]:
    done = any(message.get("role") == "tool" for message in body["messages"])
    message: dict[str, Any] = {"role": "assistant", "content": "42"}
    if body.get("tools") and not done:
        call = {"name": body["tools"][0]["function"]["name"], "arguments": ARGUMENTS}
        calls = [{"id": "c1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    if "Action Input:" in str(body["messages"][0].get("content")):
        # CrewAI asks for calls in text, and appends what they gave back to the assistant's words.
        said = [str(m.get("content")) for m in body["messages"] if m.get("role") == "assistant"]
        over = any("Observation" in text for text in said)
        call_text = f"Thought: I multiply.\nAction: multiply\nAction Input: {ARGUMENTS}"
        message["content"] = "Thought: done\nFinal Answer: 42" if over else call_text
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        made = response(body) if "/responses" in self.path else chat(body)
        text = json.dumps(made).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
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
