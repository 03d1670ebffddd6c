"""A white agent: fresh contexts, bounded memory, a reset, and a whole run through it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from passhat.integrations.agentbeats.white_agent import WhiteAgent, white_application
from passhat.suites.base import Turn

Serving = Callable[[Callable[[str], Any]], str]


def test_its_memory_is_bounded_and_the_longest_silent_go_first() -> None:
    lines: list[str] = []

    async def whole() -> None:
        agent = WhiteAgent("demo:careful", say=lines.append, most_conversations=100)
        for number in range(100):
            await agent.session(f"c{number}")
        await agent.session("c0")  # speaks again
        await agent.session("new")
        assert len(agent.sessions) == 100
        assert "c0" in agent.sessions
        assert "c1" not in agent.sessions

    asyncio.run(whole())
    assert len(lines) == 101


def test_it_remembers_more_conversations_than_an_evaluator_has_attempts() -> None:
    async def whole() -> None:
        agent = WhiteAgent("demo:careful")
        for number in range(300):
            await agent.session(f"c{number}")
        assert len(agent.sessions) == 300

    asyncio.run(whole())


def test_the_command_serves_until_it_is_stopped() -> None:
    program = [sys.executable, "-m", "passhat", "white", "demo:careful", "--port", "0"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            url = line.partition(" at ")[2].strip()
            card = httpx.get(f"{url}.well-known/agent-card.json", timeout=60).json()
            assert card["name"] == "demo:careful"
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_reset_clears_its_memory(serving: Serving) -> None:
    agent = WhiteAgent("demo:careful")
    asyncio.run(agent.session("c"))
    url = serving(lambda url: white_application(agent, url))
    assert httpx.get(f"{url}/status", timeout=60).json()["conversations"] == 1
    assert httpx.post(f"{url}/reset", timeout=60).status_code == 415  # as a page could send it
    assert agent.sessions
    answered = httpx.post(f"{url}/reset", json={"signal": "reset"}, timeout=60)
    assert answered.json() == {"status": "reset", "backend_told": False}
    assert not agent.sessions


def test_two_conversations_know_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting.py").write_text(
        "class Counts:\n"
        "    heard = 0\n"
        "    def __call__(self, prompt):\n"
        "        self.heard += 1\n"
        "        return str(self.heard)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    async def whole() -> list[str]:
        agent = WhiteAgent("python:counting:Counts")
        return [
            await (await agent.session(context)).answer(Turn("?")) for context in ("a", "a", "b")
        ]

    assert asyncio.run(whole()) == ["1", "2", "1"]


def test_a_run_through_it_is_as_good_as_the_agent_itself(
    white: str, passhat: Any, tmp_path: Path
) -> None:
    ended = passhat(
        *("run", "-a", f"a2a:{white}", "-s", "orderdesk/retail", "-n", 2, "--random", 6),
        *("--store", tmp_path / "store.db"),
    )
    assert ended.code == 0, ended.err
    assert "12 of 12 attempts" in ended.err
    assert "0 missing" in ended.err
