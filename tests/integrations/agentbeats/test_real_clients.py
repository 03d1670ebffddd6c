"""AgentBeats' own clients of both generations, against both of our agents."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.agentbeats.test_green_agent import asked_of

from passhat.suites import load_suite

REAL_CLIENT = Path(__file__).parents[2] / "old_a2a" / "real_client.py"
V2 = Path(os.environ.get("PASSHAT_AGENTBEATS", "no checkout is named"))
needs_v2 = pytest.mark.skipif(
    not (V2 / "src" / "agentbeats" / "client.py").is_file(),
    reason="PASSHAT_AGENTBEATS names no checkout of RDI-Foundation/agentbeats-tutorial",
)


def answered(python: Path, text: str, *arguments: object) -> Any:
    done = subprocess.run(
        [str(python), str(REAL_CLIENT), *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(V2 / "src")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def desk_message() -> str:
    """What a desk says first."""
    import asyncio

    suite = load_suite("orderdesk/retail")

    async def first() -> str:
        opened: Any = suite.episode(suite.tasks[0], 0)
        episode = await opened if asyncio.iscoroutine(opened) else opened
        turn = episode.open()
        turn = await turn if asyncio.iscoroutine(turn) else turn
        return str(turn.text)

    return asyncio.run(first())


def test_the_client_of_version_1_hears_both_agents(
    white: str, start_green: Any, old_a2a: Path, agentbeats_v1: Path
) -> None:
    green = start_green()
    hello = json.dumps({"type": "battle_info", "battle_id": "b", "backend_url": None})
    assert answered(old_a2a, hello, "v1", agentbeats_v1, white) == "ready"
    assert answered(old_a2a, hello, "v1", agentbeats_v1, green.url) == "ready to evaluate"
    said = answered(old_a2a, desk_message(), "v1", agentbeats_v1, white)
    assert "<json>" in said
    start = {
        "type": "battle_start",
        "battle_id": "b",
        "opponent_infos": [{"name": "white", "agent_url": white}],
        "config": {"k": 2, "task_id": 0},
    }
    said = answered(old_a2a, json.dumps(start), "v1", agentbeats_v1, green.url)
    assert "2 of 2 done" in said
    assert "pass^2" in said


@needs_v2
def test_the_tool_of_version_2_talks_to_the_white_agent(white: str, old_a2a: Path) -> None:
    first, second = answered(old_a2a, desk_message(), "v2", white)
    assert "<json>" in first
    assert "<json>" in second


@needs_v2
def test_the_client_of_version_2_plays_a_whole_scenario(
    white: str, start_green: Any, old_a2a: Path, tmp_path: Path
) -> None:
    green = start_green()
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        f"[green_agent]\nendpoint = '{green.url}'\n[[participants]]\nrole = 'agent'\n"
        f"endpoint = '{white}'\nagentbeats_id = 'a-1'\n[config]\nk = 2\nnum_battles = 2\n"
    )
    done = subprocess.run(
        [str(old_a2a), "-m", "agentbeats.client_cli", str(scenario), str(tmp_path / "out.json")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(V2 / "src")},
    )
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["participants"] == {"agent": "a-1"}
    (run,) = kept["results"][0]["runs"]
    assert run["attempts"] == 4
    assert type(run["attempts"]) is int


def test_a_request_that_an_early_client_reads_has_integers(white: str, start_green: Any) -> None:
    """In the bytes themselves, both at once and streamed."""
    import httpx

    green = start_green()
    message = {"messageId": "m", "role": "user", "kind": "message"}
    text = asked_of(white, k=2, task_id=0)
    for method in ("message/send", "message/stream"):
        call = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": method,
            "params": {"message": {**message, "parts": [{"kind": "text", "text": text}]}},
        }
        body = httpx.post(green.url, json=call, timeout=60).text
        assert '"attempts":2,' in body.replace(" ", "")
        assert '"attempts":2.0' not in body.replace(" ", "")
