# mypy: ignore-errors
"""AgentBeats' own clients, on a2a-sdk 0.3.26: sends standard input, writes the answer as JSON.

python real_client.py v1 FOLDER URL   the function by which a backend of version 1 talks to agents;
                                      FOLDER has the package agentbeats 1.2.6 without its needs
python real_client.py v2 URL          the tool by which a green agent of version 2 talks to agents,
                                      in two turns; its checkout is on the path
"""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path

import httpx


class Patient(httpx.AsyncClient):
    """The HTTP library's client; its own limit of five seconds is short on a shared machine."""

    def __init__(self, *, timeout=60, **given):
        super().__init__(timeout=timeout, **given)


httpx.AsyncClient = Patient


def of_version_1(folder):
    # By its path: the package itself imports containers, browsers and model libraries.
    path = Path(folder, "agentbeats", "utils", "agents", "a2a.py")
    spec = importlib.util.spec_from_file_location("agentbeats_v1_a2a", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.send_message_to_agent


async def version_1(folder, url, text):
    return await of_version_1(folder)(url, text)


async def version_2(url, text):
    from agentbeats.tool_provider import ToolProvider

    tools = ToolProvider()
    first = await tools.talk_to_agent(text, url, new_conversation=True)
    return [first, await tools.talk_to_agent(text, url)]


if __name__ == "__main__":
    which, *given = sys.argv[1:]
    asked = (version_1 if which == "v1" else version_2)(*given, sys.stdin.read())
    sys.stdout.write(json.dumps(asyncio.run(asked)) + "\n")
