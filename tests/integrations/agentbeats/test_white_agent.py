"""The example white agent: fresh contexts, bounded memory, a reset, and a whole run through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from passhat.suites.base import Turn

Serving = Callable[[Callable[[str], Any]], str]


def test_its_memory_is_bounded_and_the_longest_silent_go_first(
    white_module: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    async def whole() -> None:
        agent = white_module.WhiteAgent("demo:careful")
        for number in range(100):
            await agent.session(f"c{number}")
        await agent.session("c0")  # speaks again
        await agent.session("new")
        assert len(agent.sessions) == 100
        assert "c0" in agent.sessions
        assert "c1" not in agent.sessions

    asyncio.run(whole())
    assert capsys.readouterr().err.count("new conversation") == 101


def test_a_reset_clears_its_memory(serving: Serving, white_module: ModuleType) -> None:
    agent = white_module.WhiteAgent("demo:careful")
    asyncio.run(agent.session("c"))
    url = serving(lambda url: white_module.application(agent, url))
    assert httpx.get(f"{url}/status", timeout=60).json()["conversations"] == 1
    assert httpx.post(f"{url}/reset", timeout=60).status_code == 415  # as a page could send it
    assert agent.sessions
    answered = httpx.post(f"{url}/reset", json={"signal": "reset"}, timeout=60)
    assert answered.json() == {"status": "reset", "backend_told": False}
    assert not agent.sessions


def test_two_conversations_know_nothing_of_each_other(
    white_module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        agent = white_module.WhiteAgent("python:counting:Counts")
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
