"""a2a:URL against servers that other projects' packages make: `make test-a2a`.

Servers of the Python SDK, 1.3 and 0.3.26, are in test_a2a.py, which every test run includes; those
here want Node with packages and an environment of google-adk.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.agents.test_a2a import attempts

SERVERS = Path(__file__).parents[1] / "a2a_servers"
NODE_FOLDER = os.environ.get("PASSHAT_NODE_FOLDER", "")
ADK_PYTHON = os.environ.get("PASSHAT_ADK_PYTHON", "")
Start = Callable[..., str]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server; returns the address that it writes."""
    servers: list[subprocess.Popen[str]] = []

    def start_server(*command: str) -> str:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        servers.append(server)
        assert server.stdout is not None
        return next(line.strip() for line in server.stdout if line.startswith("http://"))

    yield start_server
    for server in servers:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("streaming", ["yes", "no"])
@pytest.mark.parametrize("kind", ["message", "task", "question"])
def test_the_javascript_sdk(
    kind: str, version: str, streaming: str, start: Start, tmp_path: Path
) -> None:
    made = attempts(start("node", f"{NODE_FOLDER}/server.mjs", kind, version, streaming), tmp_path)
    assert [str(one.judgement.verdict) for one in made] == ["passed"] * 8, made[0].judgement
    assert len({one.conversation for one in made}) == 8


def test_a_failed_task_of_the_javascript_sdk(start: Start, tmp_path: Path) -> None:
    url = start("node", f"{NODE_FOLDER}/server.mjs", "failed", "1.0", "yes")
    made = attempts(url, tmp_path, n=1)
    assert {one.judgement.why for one in made} == {"agent_error"}
    assert "out of paper" in made[0].judgement.detail


def test_google_adk(start: Start, tmp_path: Path) -> None:
    made = attempts(start(ADK_PYTHON, str(SERVERS / "adk_server.py")), tmp_path)
    assert [str(one.judgement.verdict) for one in made] == ["passed"] * 8, made[0].judgement
    assert len({one.conversation for one in made}) == 8
