"""``passhat serve``: requests of browser pages and of strangers start, read and reset nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.integrations.agentbeats.test_green_agent import asked_of, sent

from passhat.integrations.agentbeats.strangers import Caps

Serving = Callable[[Callable[[str], Any]], str]
PATIENCE = 60
JSON = {"content-type": "application/json"}


def send_message(text: str) -> dict[str, object]:
    message = {"messageId": "m", "role": "user", "kind": "message"}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {"message": {**message, "parts": [{"kind": "text", "text": text}]}},
    }


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example", **JSON}, 400),
        ({"host": "evil.example:9006", **JSON}, 400),
        ({"host": "192.0.2.7", **JSON}, 400),
        ({"host": "", **JSON}, 400),
        ({"origin": "http://evil.example", **JSON}, 403),
        ({"origin": "null", **JSON}, 403),
        ({"origin": "http://localhost:3000", **JSON}, 403),
        ({"sec-fetch-site": "cross-site", **JSON}, 403),
        ({"sec-fetch-site": "same-site", **JSON}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"content-type": ""}, 415),
    ],
)
def test_what_a_page_could_send_is_refused_everywhere(
    headers: dict[str, str], status: int, white: str, start_green: Any
) -> None:
    green = start_green()
    body = json.dumps(send_message(asked_of(white, k=1, task_id=0)))
    for place in (green.url, f"{green.launcher}/reset"):
        answered = httpx.post(place, content=body, headers=headers, timeout=PATIENCE)
        assert answered.status_code == status, answered.text
    assert green.agent.finished == 0
    assert not Path(green.store).exists()


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/health", "/status"])
def test_nothing_is_read_by_another_site(path: str, method: str, start_green: Any) -> None:
    green = start_green()
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        url = f"{green.launcher}{path}"
        answered = httpx.request(method, url, headers=headers, timeout=PATIENCE)
        assert answered.status_code == 403
        assert "access-control-allow-origin" not in answered.headers


def test_a_page_of_another_origin_cannot_reset_what_is_going_on(start_green: Any) -> None:
    green = start_green()
    stopped: list[str] = []
    green.agent.stop_all = lambda: stopped.append("stopped")
    url = f"{green.launcher}/reset"
    httpx.post(url, content=b"", headers={"content-type": "text/plain"}, timeout=PATIENCE)
    assert not stopped


def test_the_card_may_be_cached_and_says_what_is_required(start_green: Any) -> None:
    green = start_green()
    cards = []
    for name in ("agent-card.json", "agent.json"):
        answered = httpx.get(f"{green.url}/.well-known/{name}", timeout=PATIENCE)
        assert "max-age" in answered.headers["cache-control"]
        assert answered.headers["etag"]
        cards.append(answered.json())
    assert cards[0] == cards[1]
    assert cards[0]["capabilities"]["streaming"] is True


def test_caps_of_a_caller(white: str, start_green: Any) -> None:
    green = start_green(caps=Caps(runs=1, attempts=4))
    found, said = sent(green.url, asked_of(white, k=5, task_id=0))
    assert found.state == "rejected"
    assert "4 attempts an hour" in said[-1]
    found, _ = sent(green.url, asked_of(white, k=1, task_id=0))
    assert found.completed
    found, said = sent(green.url, asked_of(white, k=1, task_id=0))
    assert found.state == "rejected"
    assert "1 runs an hour" in said[-1]


def _slow_or_long(url: str, *, seconds: float = 0, size: int = 1) -> Starlette:
    """An agent that answers late, or much."""

    async def answer(request: Request) -> Response:
        import asyncio

        await asyncio.sleep(seconds)
        asked = await request.json()
        said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x" * size}]}
        said["contextId"] = str(asked["id"])
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": {"message": said}})

    interface = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0", "url": url}
    card = {"name": "x", "version": "1", "supportedInterfaces": [interface]}
    return Starlette(
        routes=[
            Route("/.well-known/agent-card.json", lambda _: JSONResponse(card)),
            Route("/", answer, methods=["POST"]),
        ]
    )


@pytest.mark.parametrize(
    ("caps", "agent", "words"),
    [
        (Caps(seconds=1.2), {"seconds": 60}, "1 seconds an hour"),
        (Caps(bytes=100_000), {"size": 60_000}, "100,000 bytes an hour"),
    ],
)
def test_an_evaluation_ends_at_its_callers_caps(
    caps: Caps, agent: dict[str, Any], words: str, serving: Serving, start_green: Any
) -> None:
    url = serving(lambda url: _slow_or_long(url, **agent))
    found, _ = sent(start_green(caps=caps).url, asked_of(url, k=8, task_ids=[0, 1, 2]))
    assert found.state == "failed"
    assert words in found.said


def test_a_caller_that_sent_too_much_is_told_so(start_green: Any) -> None:
    green = start_green(caps=Caps(bytes=1_000))
    statuses = [
        httpx.post(green.url, content=b"x" * 600, headers=JSON, timeout=PATIENCE).status_code
        for _ in range(3)
    ]
    assert statuses == [200, 429, 429]


def test_tasks_of_callers_do_not_fill_the_memory(
    start_green: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passhat.integrations.agentbeats.a2a_server._MOST_TASKS", 3)
    green = start_green()
    with httpx.Client(timeout=PATIENCE) as http:
        ids = [
            http.post(green.url, json=send_message("no request")).json()["result"]["id"]
            for _ in range(5)
        ]
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get"}
        known = [
            "result" in http.post(green.url, json={**asked, "params": {"id": one}}).json()
            for one in ids
        ]
    assert known == [False, False, True, True, True]


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    """``passhat serve`` in a process of its own: its address, and what it said until then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", "serve", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    said = ""
    try:
        while not (found := re.search(r"agents at (http://\S+/)", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        yield found[1], said
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_server_for_others_makes_a_token_and_files_are_private(
    tmp_path: Path, white: str
) -> None:
    port = white.rpartition(":")[2]
    old = os.umask(0o022)
    try:
        with served(tmp_path, "--host", "0.0.0.0", "--allow-host", f"127.0.0.1:{port}") as (
            url,
            said,
        ):
            token = re.search(r"need this token: (\S+)", said)
            assert token is not None
            here = url.replace("0.0.0.0", "127.0.0.1")
            assert httpx.post(here, json={}, timeout=PATIENCE).status_code == 401
            assert (
                httpx.get(here, headers={"host": "evil.example"}, timeout=PATIENCE).status_code
                == 400
            )
            found, _ = sent(here, asked_of(white, k=1, task_id=0), token[1])
            assert found.completed, found.said
    finally:
        os.umask(old)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / ".passhat").iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert (tmp_path / ".passhat").stat().st_mode & 0o777 == 0o700


def test_a_public_server_asks_for_no_token(tmp_path: Path, passhat: Any) -> None:
    with served(tmp_path, "--host", "0.0.0.0", "--public") as (url, said):
        assert "token" not in said
        here = url.replace("0.0.0.0", "127.0.0.1")
        answered = httpx.post(
            here, json=send_message(asked_of("http://127.0.0.1:1")), timeout=PATIENCE
        ).json()
        assert answered["result"]["status"]["state"] == "rejected"
        assert "not allowed here" in json.dumps(answered)
    ended = passhat("serve", "--public", "--token", "x")
    assert ended.code == 2
    ended = passhat("serve", "--card-url", "evaluator")
    assert ended.code == 2
    assert "--card-url takes an address" in ended.err
