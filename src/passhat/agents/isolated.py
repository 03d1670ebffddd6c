"""``--isolate``: a Python agent in a process of its own for every attempt.

An agent that hangs or eats memory can then be killed, and its changes to its process (the working
directory, signals, standard output) end with it. The process reads and writes the JSON lines of
:mod:`passhat.agents.command`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, TextIO

import msgspec

from passhat._plugins import describe_error
from passhat.agents.base import AgentFault, AttemptInfo, Session, Usage
from passhat.agents.command import ALL_VARIABLES, CommandAgent
from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import ToolSpec, Turn
from passhat.suites.workspace.handle import Workspace

_KIND = "python:"


def isolate(word: str, memory: int | None = None) -> CommandAgent:
    """The agent of a word such as ``python:my_agent:answer``, in processes of its own.

    ``memory`` is the most that one process may take, in MiB.
    """
    if not word.startswith(_KIND):
        raise InvalidValue(
            f"--isolate is for Python agents, and {word} is none.",
            hint="Other agents run outside of this process already.",
        )
    words = [sys.executable, "-m", "passhat.agents.isolated", word.removeprefix(_KIND)]
    agent = CommandAgent(shlex.join([*words, *([str(memory)] if memory else [])]))
    agent.name = word  # the same run as without --isolate
    agent.pass_variables((ALL_VARIABLES,))
    agent.speaks_json = True
    return agent


def main(path: str, memory: int | None = None) -> None:
    """Answer turns from standard input until it ends; the agent's own output goes elsewhere."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if memory is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))
    sys.path.insert(0, "")
    asyncio.run(_serve(path, answers))


async def _serve(path: str, answers: TextIO) -> None:
    from passhat.agents.function import python_agent

    session: Session | None = None
    info = AttemptInfo("", 1, 0)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if session is None:
                sys.path[0] = request.get("folder", "")
                agent = python_agent(path)
                info = _info(request)
                session = await agent.session(info)
            before, call_count = info.meter.usage, len(info.meter.calls)
            reply: dict[str, Any] = {"text": await session.answer(_turn(request))}
            if info.meter.usage != before:
                reply["usage"] = _difference(before, info.meter.usage)
            reply["calls"] = msgspec.to_builtins(info.meter.calls[call_count:], enc_hook=str)
        except AgentFault as fault:
            reply = {"fault": str(fault.category), "detail": fault.detail}
        except BaseException as error:
            reply = {"fault": str(FailureCategory.EXCEPTION), "detail": describe_error(error)}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def _difference(before: Usage, after: Usage) -> dict[str, float | None]:
    return {
        name: None if new is None else new - (old or 0)
        for name, old, new in (
            ("tokens", before.tokens, after.tokens),
            ("cost", before.cost, after.cost),
        )
    }


def _info(request: dict[str, Any]) -> AttemptInfo:
    info = AttemptInfo(
        request["task"],
        request["attempt"],
        request["seed"],
        request.get("temperature"),
        request.get("top_p"),
    )
    if "workspace" in request:
        info = info.with_workspace(Workspace(Path(request["workspace"])))
    return info


def _turn(request: dict[str, Any]) -> Turn:
    return Turn(request["text"], tools=tuple(ToolSpec(**tool) for tool in request.get("tools", ())))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
