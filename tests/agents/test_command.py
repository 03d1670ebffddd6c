"""Programs as agents: what they leave behind keeps nobody waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from passhat.agents.base import AgentFault, AttemptInfo
from passhat.agents.command import CommandAgent
from passhat.errors import InvalidValue
from passhat.suites.base import Turn

LEAVES_SOMEBODY = f"""#!{sys.executable}
import json, subprocess, sys
sys.stdin.readline()
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(json.dumps({{"text": str(left.pid)}}), flush=True)
"""


def test_somebody_who_keeps_the_pipe_open_is_not_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text(LEAVES_SOMEBODY)
    program.chmod(0o755)

    async def play() -> None:
        session = await CommandAgent(str(program)).session(AttemptInfo("t", 1, 0))
        left = int(await session.answer(Turn("?")))
        try:
            async with asyncio.timeout(300):
                await session.close()
        finally:
            os.kill(left, signal.SIGKILL)

    asyncio.run(play())


ASKED = """import json, os, sys
for line in sys.stdin:
    print(json.dumps({"text": " ".join(sorted(os.environ))}), flush=True)
"""


def _environment_seen(tmp_path: Path, *names: str) -> set[str]:
    (tmp_path / "asked.py").write_text(ASKED)
    agent = CommandAgent(f"{sys.executable} {tmp_path / 'asked.py'}")
    agent.pass_variables(names)

    async def ask() -> str:
        session = await agent.session(AttemptInfo("a", 1, 0))
        try:
            return await session.answer(Turn("?"))
        finally:
            await session.close()

    return set(asyncio.run(ask()).split())


def test_a_program_gets_no_variable_that_was_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "DATABASE_URL", "REGION", "https_proxy", "LC_TIME"):
        monkeypatch.setenv(name, "x")
    seen = _environment_seen(tmp_path)
    assert {"PATH", "https_proxy", "LC_TIME"} <= seen
    assert not {"OPENAI_API_KEY", "DATABASE_URL", "REGION"} & seen
    assert _environment_seen(tmp_path, "REGION") - seen == {"REGION"}
    assert {"OPENAI_API_KEY", "DATABASE_URL"} <= _environment_seen(tmp_path, "*")


def test_a_variable_that_is_not_set_cannot_be_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InvalidValue, match="OPENAI_API_KEY cannot be passed"):
        CommandAgent("true").pass_variables(["OPENAI_API_KEY"])


def test_a_program_that_ends_at_once_is_told_which_keys_it_did_not_get(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "x")
    agent = CommandAgent("true")
    assert agent.notices() == []

    async def ask() -> None:
        session = await agent.session(AttemptInfo("a", 1, 0))
        with pytest.raises(AgentFault):
            await session.answer(Turn("?"))
        await session.close()

    asyncio.run(ask())
    (notice,) = agent.notices()
    assert "SOME_API_KEY" in notice
    agent.pass_variables(["SOME_API_KEY"])
    assert "SOME_API_KEY" not in "".join(agent.notices())
