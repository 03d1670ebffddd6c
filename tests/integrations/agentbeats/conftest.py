"""The example white agent, a green agent and a stand-in backend, all on loopback."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from passhat.dashboard.guard import Access
from passhat.integrations.agentbeats.a2a_server import green_application, launcher_application
from passhat.integrations.agentbeats.assessments import Rules
from passhat.integrations.agentbeats.green_agent import GreenAgent, Settings

Serving = Callable[[Callable[[str], Any]], str]


@pytest.fixture(scope="session")
def white_module() -> ModuleType:
    """examples/white_agent.py."""
    path = Path(__file__).parents[3] / "examples" / "white_agent.py"
    spec = importlib.util.spec_from_file_location("white_agent", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def white(serving: Serving, white_module: ModuleType) -> str:
    """The example white agent with demo:careful in it."""
    agent = white_module.WhiteAgent("demo:careful")
    return serving(lambda url: white_module.application(agent, url))


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
