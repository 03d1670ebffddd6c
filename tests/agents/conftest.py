"""Servers of our own on loopback that speak like OpenAI and like Anthropic.

The official SDKs talk to them over real sockets. What a server answers is a function of the
request, so that a test can let it solve a task, storm with 429, or count tokens as it likes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Body = dict[str, Any]
_ANTHROPIC = ("/messages", "/invoke", ":rawPredict")
"""How addresses of Anthropic's API end: its own, at Bedrock, at Vertex."""


@dataclass(frozen=True)
class Answer:
    """What the model says or calls for, and the tokens it is said to have used."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any] | str], ...] = ()
    inputs: int = 100
    outputs: int = 10


@dataclass(frozen=True)
class Refusal:
    """A status that is no success."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "no"
    code: str | None = None


Script = Callable[[Body], Answer | Refusal]


class ModelServer:
    """One server; remembers every request and adds up what it served."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Body] = []
        self.paths: list[str] = []
        self.served: list[Answer] = []
        self.refused = 0
        self._lock = threading.Lock()

    def answer(self, path: str, body: Body) -> tuple[int, Mapping[str, str], bytes]:
        with self._lock:
            self.requests.append(body)
            self.paths.append(path)
            said = self.script(body)
            if isinstance(said, Refusal):
                self.refused += 1
                error = {"message": said.message, "type": "error", "code": said.code}
                return said.status, said.headers, json.dumps({"error": error}).encode()
            self.served.append(said)
        write = _as_anthropic if path.endswith(_ANTHROPIC) else _as_openai
        return 200, {}, json.dumps(write(said, len(self.requests))).encode()


def _as_openai(said: Answer, number: int) -> Body:
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for place, (name, given) in enumerate(said.calls)
    ]
    message = {"role": "assistant", "content": said.text or None, "tool_calls": calls or None}
    usage = {
        "prompt_tokens": said.inputs,
        "completion_tokens": said.outputs,
        "total_tokens": said.inputs + said.outputs,
    }
    finish = "tool_calls" if calls else "stop"
    return {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 0,
        "model": "small",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }


def _as_anthropic(said: Answer, number: int) -> Body:
    content: list[Body] = [{"type": "text", "text": said.text}] if said.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": given}
        for place, (name, given) in enumerate(said.calls)
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "small",
        "content": content,
        "stop_reason": "tool_use" if said.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": said.inputs, "output_tokens": said.outputs},
    }


@contextmanager
def serving(script: Script) -> Iterator[tuple[str, ModelServer]]:
    """A server at an address of its own."""
    model = ModelServer(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, headers, text = model.answer(self.path, body)
            self.send_response(status)
            length = str(len(text))
            sent = {"content-type": "application/json", "content-length": length, **headers}
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection |= sent["content-length"] != length
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is no news."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", model
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def serve() -> Callable[[Script], Any]:
    """``with serve(script) as (url, server)``"""
    return serving


@pytest.fixture
def answer() -> type[Answer]:
    """What a model may say."""
    return Answer


@pytest.fixture
def refusal() -> type[Refusal]:
    """What a server may refuse with."""
    return Refusal
