"""What the A2A project's test kit asks of an agent, of both agents that we ship."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integrations.agentbeats.test_green_agent import asked_of

from passhat.integrations.agentbeats.white_agent import WhiteAgent, white_application

Serving = Callable[[Callable[[str], Any]], str]
ROOT = Path(__file__).parents[3]
PLACES = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/")
V1 = {"a2a-version": "1.0"}


@pytest.fixture
def echo(serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The white agent with an agent that answers everything but "fail"."""
    (tmp_path / "kit_echo.py").write_text(
        "def answer(text):\n"
        "    assert text != 'fail', 'no answer'\n"
        "    return f'You said: {text}'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = WhiteAgent("python:kit_echo:answer")
    return serving(lambda url: white_application(agent, url))


@pytest.fixture(params=["serve", "white"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "serve":
        return str(request.getfixturevalue("start_green")().url)
    return str(request.getfixturevalue("echo"))


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60) as client:
        yield client


def call(method: str, params: object, **changed: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params} | changed


def early_message(text: str, **more: object) -> dict[str, object]:
    parts = [{"kind": "text", "text": text}]
    return {"message": {"messageId": "m", "role": "user", "kind": "message", "parts": parts} | more}


def message(text: str, **more: object) -> dict[str, object]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]} | more}


def test_the_card_is_complete_for_both_versions_and_may_be_cached(
    url: str, http: httpx.Client
) -> None:
    answers = [http.get(f"{url}{place}") for place in PLACES]
    card = answers[0].json()
    assert all(answer.json() == card for answer in answers)
    for answer in answers:
        assert "max-age=" in answer.headers["cache-control"]
        assert {"etag", "last-modified"} <= set(answer.headers)
    again = http.get(f"{url}{PLACES[0]}", headers={"if-none-match": answers[0].headers["etag"]})
    assert again.status_code == 304
    required = {"name", "description", "version", "capabilities", "skills", "supportedInterfaces"}
    assert required | {"defaultInputModes", "defaultOutputModes"} <= set(card)
    assert {"url", "protocolVersion", "preferredTransport"} <= set(card)  # of version 0.3
    assert card["capabilities"]["streaming"] is True
    versions = [one["protocolVersion"] for one in card["supportedInterfaces"]]
    assert versions == ["1.0", "0.3"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", -32700),
        ("[]", -32600),
        ("7", -32600),
        ([call("message/send", {})], -32600),
        (call("message/send", {}, jsonrpc="1.0"), -32600),
        (call("message/send", {}, id={"bad": "type"}), -32600),
        ({**call("message/send", {}), "method": {"not": "a name"}}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "params": {}}, -32600),
        (call("message/ssend", {}), -32601),
        (call("message/send", {}), -32602),
        (call("message/send", {"": "nothing"}), -32602),
        (call("message/send", {"message": 7}), -32602),
        (call("message/send", {"message": {"role": "user", "kind": "message"}}), -32602),
        (call("message/send", early_message("x", parts=[{"kind": "smell", "text": "x"}])), -32602),
        (call("message/send", early_message("x", parts=[{"type": "smell", "text": "x"}])), -32602),
        (call("message/stream", {}), -32602),
        (call("tasks/get", {}), -32602),
        (call("tasks/get", {"id": "unknown"}), -32001),
        (call("tasks/cancel", {"id": "unknown"}), -32001),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, int) else None,
)
def test_errors_have_their_codes(body: Any, code: int, url: str, http: httpx.Client) -> None:
    content = body if isinstance(body, str) else json.dumps(body)
    answer = http.post(url, content=content, headers={"content-type": "application/json"})
    assert answer.json()["error"]["code"] == code, answer.text


def test_what_is_no_json_is_refused_by_its_content_type(url: str, http: httpx.Client) -> None:
    body = json.dumps(call("SendMessage", message("x")))
    answer = http.post(url, content=body, headers={"content-type": "text/plain", **V1})
    assert answer.status_code == 415


def events(http: httpx.Client, url: str, body: object, headers: Any = None) -> list[Any]:
    lines = http.post(url, json=body, headers=headers).text.splitlines()
    return [json.loads(line[6:])["result"] for line in lines if line.startswith("data: ")]


def test_streaming_as_announced(echo: str, http: httpx.Client) -> None:
    early = events(http, echo, call("message/stream", early_message("hello")))
    assert [one["kind"] for one in early] == [
        *("task", "status-update", "artifact-update", "status-update"),
    ]
    assert early[2]["artifact"]["parts"][0]["text"] == "You said: hello"
    assert early[-1]["status"]["state"] == "completed"
    assert early[-1]["final"] is True
    today = events(http, echo, call("SendStreamingMessage", message("hello")), V1)
    assert today[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_white_agents_task_is_complete_and_can_be_read_again(
    echo: str, http: httpx.Client
) -> None:
    task = http.post(echo, json=call("message/send", early_message("hi"))).json()["result"]
    assert task["status"]["state"] == "completed"
    assert task["contextId"]
    again = http.post(echo, json=call("tasks/get", {"id": task["id"]})).json()["result"]
    assert again["artifacts"] == task["artifacts"]
    refused = http.post(echo, json=call("tasks/cancel", {"id": task["id"]})).json()
    assert refused["error"]["code"] == -32002
    more = early_message("more", contextId=task["contextId"])
    following = http.post(echo, json=call("message/send", more)).json()["result"]
    assert following["contextId"] == task["contextId"]
    assert following["id"] != task["id"]


def test_an_agent_that_raises_fails_its_task_not_the_server(echo: str, http: httpx.Client) -> None:
    task = http.post(echo, json=call("message/send", early_message("fail"))).json()["result"]
    assert task["status"]["state"] == "failed"
    assert "no answer" in json.dumps(task["status"])
    assert http.get(f"{echo}/health").json() == {"status": "ok"}


def test_a_white_agent_that_answers_by_messages(serving: Serving, http: httpx.Client) -> None:
    agent = WhiteAgent("demo:careful", "message")
    url = serving(lambda url: white_application(agent, url))
    hello = early_message('{"type": "battle_info"}')
    answer = http.post(url, json=call("message/send", hello)).json()["result"]
    assert (answer["kind"], answer["parts"][0]["text"]) == ("message", "ready")


def test_a_text_that_is_no_request_is_asked_about_and_then_evaluated(
    white: str, start_green: Any, http: httpx.Client
) -> None:
    green = start_green()
    task = http.post(green.url, json=call("message/send", early_message("hello"))).json()["result"]
    assert task["status"]["state"] == "input-required"
    assert "participants" in json.dumps(task["status"])
    request = early_message(asked_of(white, k=1, task_id=0), taskId=task["id"], messageId="n")
    done = http.post(green.url, json=call("message/send", request)).json()["result"]
    assert (done["id"], done["status"]["state"]) == (task["id"], "completed")
    other = http.post(green.url, json=call("message/send", early_message("hello"))).json()["result"]
    canceled = http.post(green.url, json=call("tasks/cancel", {"id": other["id"]})).json()
    assert canceled["result"]["status"]["state"] == "canceled"


def test_every_failure_that_stays_is_in_the_documentation_with_its_reason() -> None:
    listed = tomllib.loads((ROOT / "tools" / "a2a_kit_failures.toml").read_text())["failure"]
    page = (ROOT / "docs" / "a2a.md").read_text()
    names = [
        (one["kit"], agent, name)
        for one in listed
        for agent in one["agents"]
        for name in one["tests"]
    ]
    assert len(names) == len(set(names))
    for entry in listed:
        assert entry["reason"] in page
