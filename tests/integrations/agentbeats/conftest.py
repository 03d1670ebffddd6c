"""The example white agent, a green agent and a stand-in backend, all on loopback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from passhat.dashboard.guard import Access
from passhat.integrations.agentbeats.a2a_server import green_application, launcher_application
from passhat.integrations.agentbeats.assessments import Rules
from passhat.integrations.agentbeats.green_agent import GreenAgent, Settings
from passhat.integrations.agentbeats.white_agent import WhiteAgent, white_application

Serving = Callable[[Callable[[str], Any]], str]


@pytest.fixture
def white(serving: Serving) -> str:
    """A white agent with demo:careful in it."""
    agent = WhiteAgent("demo:careful")
    return serving(lambda url: white_application(agent, url))


@dataclass(frozen=True)
class Green:
    url: str
    launcher: str
    agent: GreenAgent
    store: str


@pytest.fixture
def start_green(serving: Serving, tmp_path: Path) -> Callable[..., Green]:
    """A green agent and its launcher, with settings of one's own."""

    def start(*, token: str | None = None, rules: Rules | None = None, **more: Any) -> Green:
        store = str(tmp_path / "green.db")
        agent = GreenAgent(Settings(store, rules or Rules(), **more))
        access = Access(token=token or "")
        url = serving(lambda url: green_application(agent, url, access))
        launcher = serving(lambda _: launcher_application(agent, rules or Rules(), access))
        return Green(url, launcher, agent, store)

    return start
