"""Programs as agents: what they leave behind keeps nobody waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from passhat.agents.base import AttemptInfo
from passhat.agents.command import CommandAgent
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
