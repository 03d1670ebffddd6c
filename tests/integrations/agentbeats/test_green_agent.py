"""passhat serve, driven by real clients of both SDK generations."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from passhat.integrations.agentbeats.a2a_server import LARGEST_REQUEST
from passhat.integrations.agentbeats.assessments import GreenReply, request_assessment
from passhat.reporting.build import build_report
from passhat.store import open_store

Serving = Callable[[Callable[[str], Any]], str]
PATIENCE = 60
"""Seconds; httpx's own limit of five is short on a machine that is shared."""
JSON = {"content-type": "application/json"}
OLD_CLIENT = Path(__file__).parents[2] / "old_a2a" / "client.py"


def asked_of(white: str, **config: object) -> str:
    return json.dumps({"participants": {"agent": white}, "config": config})


def sent(url: str, text: str, token: str | None = None) -> tuple[GreenReply, list[str]]:
    said: list[str] = []
    return asyncio.run(request_assessment(url, text, said.append, token=token)), said


def _attempts(said: list[str]) -> list[str]:
    """The lines that tell of an attempt; signs of life, where attempts take long, say the last."""
    return [line for line in said if " done, " in line and not line.startswith("still working")]


def sent_by_old_client(old_a2a: Path, url: str, text: str, *how: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(old_a2a), str(OLD_CLIENT), url, *how],
        input=text,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_full_evaluation_by_a_client_of_today(white: str, start_green: Any) -> None:
    green = start_green()
    found, said = sent(green.url, asked_of(white, k=2, num_battles=3))
    assert found.completed
    attempts = _attempts(said)
    assert len(attempts) == 6  # a status update for every attempt
    assert "6 of 6 done" in attempts[-1]
    (report,) = found.data
    assert report["schema"] == "passhat.report/1"
    (run,) = report["runs"]
    assert (run["tasks"], run["attempts"]) == (3, 6)
    metrics = {(one["metric"], one["about"]): one["value"] for one in run["estimates"]}
    assert f"pass^2 = {metrics['pass^2', 'new tasks']:.3f}" in found.texts[0]
    with open_store(green.store) as store:
        (kept,) = store.runs()
        assert (kept.attempts, kept.status) == (6, "complete")


def test_a_second_evaluation_is_fresh(white: str, start_green: Any) -> None:
    green = start_green()
    for _ in range(2):
        found, said = sent(green.url, asked_of(white, k=1, task_id=0))
        assert found.completed
        assert len(_attempts(said)) == 1
    with open_store(green.store) as store:
        assert len(store.runs()) == 2


def test_a_full_evaluation_by_a_client_of_sdk_0_3_26(
    white: str, start_green: Any, old_a2a: Path
) -> None:
    lines = sent_by_old_client(old_a2a, start_green().url, asked_of(white, k=2, num_battles=2))
    said = [one["text"] for one in lines if one["kind"] == "status" and one["state"] == "working"]
    assert len(_attempts(said)) == 4
    (artifact,) = [one for one in lines if one["kind"] == "artifact"]
    assert artifact["name"] == "Result"
    assert artifact["data"][0]["schema"] == "passhat.report/1"
    assert "pass^2" in artifact["texts"][0]
    assert lines[-1]["state"] == "completed"


class Backend:
    """A stand-in for a version 1 backend, as strict as the real one.

    It resets both agents by their launchers, waits until both have said that they are ready,
    greets both by streaming to the card at the early path, starts the battle, and takes reports.
    """

    def __init__(self, old_a2a: Path, white: str, green: Any, config: dict[str, object]) -> None:
        self.old_a2a, self.white, self.green, self.config = old_a2a, white, green, config
        self.battle: dict[str, Any] = {"battle_id": "b-1", "state": "pending"}
        self.battle["interact_history"] = []
        self.asked: dict[str, Any] = {}
        self.ready: list[str] = []
        self.both_ready = asyncio.Event()
        self.greeted: dict[str, str] = {}
        self.background: set[asyncio.Task[None]] = set()
        self.url = ""

    def application(self, url: str) -> Starlette:
        self.url = url
        return Starlette(
            routes=[
                Route("/battles", self.create, methods=["POST"]),
                Route("/battles/{id}", self.report, methods=["POST"]),
                Route("/battles/{id}", self.show),
                Route("/agents/{id}", self.is_ready, methods=["PUT"]),
            ]
        )

    async def create(self, request: Request) -> JSONResponse:
        self.asked = await request.json()
        task = asyncio.create_task(self.play())
        self.background.add(task)
        return JSONResponse({"battle_id": "b-1"}, 201)

    async def report(self, request: Request) -> Response:
        data = await request.json()
        self.battle["interact_history"].append(data)
        if data["is_result"]:
            assert data["winner"]  # required there
            self.battle |= {"state": "finished", "result": data}
        return Response(status_code=204)

    async def show(self, _request: Request) -> JSONResponse:
        return JSONResponse(self.battle)

    async def is_ready(self, request: Request) -> Response:
        assert (await request.json()) == {"ready": True}
        self.ready.append(request.path_params["id"])
        if set(self.ready) == {"green-1", "white-1"}:
            self.both_ready.set()
        return Response(status_code=204)

    async def play(self) -> None:
        self.battle["state"] = "running"
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            for launcher, agent_id in ((self.green.launcher, "green-1"), (self.white, "white-1")):
                reset = {"signal": "reset", "agent_id": agent_id, "backend_url": self.url}
                answered = await http.post(f"{launcher}/reset", json={**reset, "extra_args": {}})
                assert answered.status_code == 200
        async with asyncio.timeout(PATIENCE):
            await self.both_ready.wait()
        for agent_id, url in (("green-1", self.green.url), ("white-1", self.white)):
            hello: dict[str, object] = {
                "type": "battle_info",
                "battle_id": "b-1",
                "agent_name": agent_id,
                "agent_id": agent_id,
                "backend_url": self.url,
            }
            self.greeted[agent_id] = "".join(
                "".join(one.get("texts", [])) + one.get("text", "")
                for one in await self.send(url, hello)
            )
        start: dict[str, object] = {
            "type": "battle_start",
            "battle_id": "b-1",
            "green_battle_context": {
                "battle_id": "b-1",
                "backend_url": self.url,
                "agent_name": "passhat",
                "task_config": f"Task description: {json.dumps(self.config)}",
            },
            "opponent_infos": [{"name": "white", "agent_url": self.white}],
        }
        await self.send(self.green.url, start)

    async def send(self, url: str, data: dict[str, object]) -> list[dict[str, Any]]:
        return await asyncio.to_thread(
            sent_by_old_client, self.old_a2a, url, json.dumps(data), "early"
        )


def test_a_battle_of_version_1_from_the_command_line(
    white: str,
    start_green: Any,
    old_a2a: Path,
    serving: Serving,
    passhat: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_SECONDS", "_BATTLE_SECONDS"):  # no line is lost because the machine is busy
        monkeypatch.setattr(f"passhat.integrations.agentbeats.battles.{name}", float(PATIENCE))
    backend = Backend(old_a2a, white, start_green(), {"k": 2, "task_id": [0, 1], "win_at": 0})
    url = serving(backend.application)
    kept = tmp_path / "battle.json"
    ended = passhat(
        *("battle", "--backend", url, "--green", "green-1", "--opponent", "white=white-1"),
        *("-o", kept),
    )
    assert ended.code == 0, ended.err
    assert backend.asked == {
        "green_agent_id": "green-1",
        "opponents": [{"name": "white", "agent_id": "white-1"}],
    }
    assert backend.ready == ["green-1", "white-1"]
    assert backend.greeted == {"green-1": "ready to evaluate", "white-1": "ready"}
    *progress, result = backend.battle["interact_history"]
    assert len([one for one in progress if " attempt " in one["message"]]) == 4
    assert {one["reported_by"] for one in (*progress, result)} == {"passhat"}
    assert result["winner"] == "white"
    assert result["detail"]["schema"] == "passhat.report/1"
    assert "winner: white" in ended.out
    assert "attempt 2/2" in ended.err
    assert json.loads(kept.read_text())["result"]["winner"] == "white"


def test_a_backend_that_is_down_does_not_stop_the_evaluation(white: str, start_green: Any) -> None:
    start = {
        "type": "battle_start",
        "battle_id": "b",
        "backend_url": "http://127.0.0.1:9",
        "opponent_infos": [{"name": "white", "agent_url": white}],
        "config": {"k": 1, "task_id": 0},
    }
    found, _ = sent(start_green().url, json.dumps(start))
    assert found.completed


def test_a_backend_that_has_ended_the_battle_ends_the_evaluation(
    white: str, start_green: Any, serving: Serving
) -> None:
    taken: list[Any] = []

    async def refuse(request: Request) -> Response:
        taken.append(await request.json())
        return JSONResponse({"detail": "battle is finished"}, 400)

    backend = Starlette(routes=[Route("/battles/b", refuse, methods=["POST"])])
    start = {
        "type": "battle_start",
        "battle_id": "b",
        "backend_url": serving(lambda _: backend),
        "opponent_infos": [{"name": "white", "agent_url": white}],
        "config": {"k": 200, "jobs": 1},
    }
    found, _ = sent(start_green().url, json.dumps(start))
    assert not found.completed
    assert "its backend refuses reports" in found.said
    (partial,) = found.data
    assert partial["complete"] is False
    assert 0 < len(partial["results"]) < 500
    assert "first^200" in found.texts[0]
    assert len(taken) < 500  # of 4,800 attempts


def test_signs_of_life_go_on_while_a_report_is_computed_and_taken(
    white: str, start_green: Any, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that hear nothing for five seconds give up."""
    monkeypatch.setattr("passhat.integrations.agentbeats.green_agent._HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr("passhat.integrations.agentbeats.battles._SECONDS", float(PATIENCE))
    alive, met = threading.Event(), []

    def until_alive() -> None:
        alive.clear()
        met.append(alive.wait(2 * PATIENCE))

    def slow_report(*arguments: Any) -> Any:
        until_alive()
        return build_report(*arguments)

    async def take(request: Request) -> Response:
        if (await request.json())["is_result"]:
            await asyncio.to_thread(until_alive)
        return Response(status_code=204)

    monkeypatch.setattr("passhat.integrations.agentbeats.green_agent.build_report", slow_report)
    backend = Starlette(routes=[Route("/battles/b", take, methods=["POST"])])
    start = {
        "type": "battle_start",
        "battle_id": "b",
        "backend_url": serving(lambda _: backend),
        "opponent_infos": [{"name": "white", "agent_url": white}],
        "config": {"k": 1, "task_id": 0},
    }

    def hear(line: str) -> None:
        if line.startswith("still working"):
            alive.set()

    found = asyncio.run(request_assessment(start_green().url, json.dumps(start), hear))
    assert found.completed
    assert met == [True, True]


def test_tags_are_a_request_as_well(white: str, start_green: Any) -> None:
    config = '<env_config>{"k": 1, "task_id": 0}</env_config>'
    found, _ = sent(start_green().url, f"<white_agent_url>{white}</white_agent_url>{config}")
    assert found.completed
    assert found.texts[0].startswith("orderdesk/retail: 1 task,")


def test_a_bad_request_is_rejected_with_reasons(start_green: Any) -> None:
    found, said = sent(start_green().url, asked_of("http://evil.example", k=0))
    assert found.state == "rejected"
    assert "--allow-host evil.example" in said[-1]
    assert "k should be" in said[-1]


def test_an_agent_that_is_not_there_fails_the_evaluation(start_green: Any) -> None:
    found, _ = sent(start_green().url, asked_of("http://127.0.0.1:9", k=1, task_id=0))
    assert found.state == "failed"
    assert "cannot be reached" in found.said


def test_a_token_is_asked_for(white: str, start_green: Any) -> None:
    green = start_green(token="open sesame")
    http = httpx.Client(timeout=PATIENCE)
    card = http.get(f"{green.url}/.well-known/agent-card.json").json()
    versions = {one["protocolVersion"] for one in card["supportedInterfaces"]}
    assert versions == {"1.0", "0.3"}
    assert http.post(green.url, json={}).status_code == 401
    assert http.post(green.url, json={}, headers={"authorization": "Bearer x"}).status_code == 401
    assert http.get(f"{green.launcher}/health").status_code == 200
    assert http.get(f"{green.launcher}/status").status_code == 401
    http.close()
    found, _ = sent(green.url, asked_of(white, k=1, task_id=0), "open sesame")
    assert found.completed


def test_a_large_request_is_refused(start_green: Any) -> None:
    large = b"x" * (LARGEST_REQUEST + 1)
    answered = httpx.post(start_green().url, content=large, headers=JSON, timeout=PATIENCE)
    assert answered.status_code == 413


async def _hangs(_request: Request) -> Response:
    await asyncio.sleep(3600)
    return Response()


def _hanging(url: str) -> Starlette:
    interface = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0", "url": url}
    card = {"name": "hangs", "version": "1", "supportedInterfaces": [interface]}
    routes = [
        Route("/.well-known/agent-card.json", lambda _: JSONResponse(card)),
        Route("/", _hangs, methods=["POST"]),
    ]
    return Starlette(routes=routes)


@pytest.fixture
def quick_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_HEARTBEAT_SECONDS", "_WAITING_SECONDS"):
        monkeypatch.setattr(f"passhat.integrations.agentbeats.green_agent.{name}", 0.05)


async def _until(start: str, url: str, text: str) -> asyncio.Task[GreenReply]:
    """Ask for an evaluation; wait until it says a line that starts like this."""
    said = asyncio.Event()

    def hear(line: str) -> None:
        if line.startswith(start):
            said.set()

    task = asyncio.create_task(request_assessment(url, text, hear))
    await said.wait()
    return task


@pytest.mark.usefixtures("quick_heartbeats")
def test_another_evaluation_waits_for_its_turn_and_a_reset_ends_both(
    serving: Serving, start_green: Any
) -> None:
    green = start_green(most_at_once=1)
    text = asked_of(serving(_hanging), k=1, task_id=0, step_timeout=600)

    async def whole() -> tuple[GreenReply, GreenReply, dict[str, Any], dict[str, Any]]:
        # Said where attempts take long.
        first = await _until("still working", green.url, text)
        waiting = "waiting for its turn: 1 evaluation going on, 0 before this one"
        second = await _until(waiting, green.url, text)
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            status = (await http.get(f"{green.launcher}/status")).json()
            reset = (await http.post(f"{green.launcher}/reset", json={"signal": "reset"})).json()
        return await first, await second, status, reset

    first, second, status, reset = asyncio.run(whole())
    assert (status["evaluations"], status["waiting"]) == (1, 1)
    assert reset["stopped"] == 2
    assert (first.state, second.state) == ("failed", "failed")
    assert "stopped" in first.said
    assert "stopped before it began" in second.said


@pytest.mark.usefixtures("quick_heartbeats")
def test_a_full_queue_is_told_so(
    serving: Serving, start_green: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passhat.integrations.agentbeats.green_agent._MOST_WAITING", 0)
    green = start_green(most_at_once=1)
    text = asked_of(serving(_hanging), k=1, task_id=0, step_timeout=600)

    async def whole() -> GreenReply:
        first = await _until("still working", green.url, text)
        second = await request_assessment(green.url, text, lambda _: None)
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            await http.post(f"{green.launcher}/reset", json={"signal": "reset"})
        await first
        return second

    second = asyncio.run(whole())
    assert second.state == "rejected"
    assert "busy: 1 evaluation going on and 0 waiting" in second.said


def test_every_one_of_many_at_once_gets_its_result(white: str, start_green: Any) -> None:
    green = start_green(most_at_once=2)
    text = asked_of(white, k=1, task_id=0)

    async def whole() -> list[GreenReply]:
        ask = request_assessment
        return await asyncio.gather(*(ask(green.url, text, lambda _: None) for _ in range(8)))

    assert [reply.state for reply in asyncio.run(whole())] == ["completed"] * 8


def test_a_request_in_a_data_part_is_read(white: str, start_green: Any) -> None:
    data = json.loads(asked_of(white, k=1, task_id=0))
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": data}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    answered = httpx.post(
        start_green().url, json=call, headers={**JSON, "A2A-Version": "1.0"}, timeout=PATIENCE
    )
    assert answered.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("body", [b"", b"[]", b"{"])
def test_a_reset_without_words_is_a_reset(body: bytes, start_green: Any) -> None:
    url = f"{start_green().launcher}/reset"
    answered = httpx.post(url, content=body, headers=JSON, timeout=PATIENCE)
    assert answered.json() == {"status": "reset", "stopped": 0, "backend_told": False}


def test_another_signal_is_refused(start_green: Any) -> None:
    body = {"signal": "x"}
    answered = httpx.post(f"{start_green().launcher}/reset", json=body, timeout=PATIENCE)
    assert answered.status_code == 400
