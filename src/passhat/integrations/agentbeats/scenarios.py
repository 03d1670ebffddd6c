"""AgentBeats scenario files: start the agents, send a request, keep the result, stop the agents.

[green_agent]     endpoint, cmd
[[participants]]  role, endpoint, cmd
[config]          handed to the green agent
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from passhat.agents.a2a import A2AAgent
from passhat.errors import InvalidValue, ReadError, shorten
from passhat.integrations.agentbeats.assessments import GreenReply, request_assessment

_LOOK_SECONDS = 0.2
_KILL_SECONDS = 3.0

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Place:
    """An agent of the scenario: its address, and the command that starts it, if any."""

    role: str
    endpoint: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file's content."""

    green: Place
    participants: Sequence[Place]
    config: Mapping[str, Any]

    def request(self) -> dict[str, object]:
        """The message to the green agent."""
        roles = {participant.role: participant.endpoint for participant in self.participants}
        return {"participants": roles, "config": dict(self.config)}


def read_scenario(path: str) -> Scenario:
    """Read a scenario file; errors name the place of the problem."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(f"cannot be read ({error.strerror}).", source=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"is not TOML ({error}).", source=path) from None
    parts, config = data.get("participants", []), data.get("config", {})
    if not isinstance(parts, list) or not parts or not isinstance(config, dict):
        raise ReadError(
            "needs at least one [[participants]], and [config] as a table.", source=path
        )
    green = _place(data.get("green_agent"), "[green_agent]", path, role="green_agent")
    places = [_place(part, f"[[participants]] {at}", path) for at, part in enumerate(parts, 1)]
    if len({place.role for place in places}) < len(places):
        raise ReadError("two participants have the same role.", source=path)
    return Scenario(green, places, config)


def _place(data: object, where: str, path: str, role: str = "") -> Place:
    table = data if isinstance(data, dict) else {}
    role = role or str(table.get("role", ""))
    endpoint, command = table.get("endpoint"), table.get("cmd", "")
    if not role or not isinstance(endpoint, str) or not isinstance(command, str):
        raise ReadError(
            f"{where} needs an endpoint{'' if role else ' and a role'}, as text.",
            source=path,
            hint='As in: endpoint = "http://127.0.0.1:9210"',
        )
    return Place(role, endpoint, command)


async def play(
    scenario: Scenario, say: Say, *, wait_seconds: float = 30.0, token: str | None = None
) -> GreenReply:
    """Start the agents, wait for their cards, send the request, and always stop the agents."""
    async with _start_agents([*scenario.participants, scenario.green], say) as processes:
        for place in (*scenario.participants, scenario.green):
            await _wait_for_card(place, processes, wait_seconds)
        text = json.dumps(scenario.request())
        return await request_assessment(scenario.green.endpoint, text, say, token=token)


@dataclass(slots=True)
class _Process:
    running: subprocess.Popen[bytes]
    said: IO[bytes]

    def last_error_line(self) -> str:
        self.said.seek(0)
        lines = self.said.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return " / ".join(lines[-3:])


@asynccontextmanager
async def _start_agents(places: Sequence[Place], say: Say) -> AsyncIterator[Mapping[str, _Process]]:
    processes: dict[str, _Process] = {}
    try:
        for place in places:
            if place.command:
                processes[place.role] = _start(place)
                say(f"started {place.role}: {place.command}")
        yield processes
    finally:
        for process in processes.values():
            await _stop(process)


def _start(place: Place) -> _Process:
    output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    try:
        running = subprocess.Popen(
            shlex.split(place.command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that everything it starts is stopped with it
        )
    except (OSError, ValueError) as error:
        output.close()
        raise InvalidValue(
            f"{place.role} cannot be started ({error}).", hint=f"Its cmd is: {place.command}"
        ) from None
    return _Process(running, output)


async def _stop(process: _Process) -> None:
    """Ask, wait a little, insist; its children go with it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.running.pid, signal.SIGTERM)
    end = asyncio.get_running_loop().time() + _KILL_SECONDS
    while process.running.poll() is None and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.05)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.running.pid, signal.SIGKILL)
    process.running.wait()
    process.said.close()


async def _wait_for_card(
    place: Place, processes: Mapping[str, _Process], wait_seconds: float
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + wait_seconds
    agent = A2AAgent(place.endpoint)
    process = processes.get(place.role)
    try:
        while True:
            try:
                await agent.check()
                return
            except InvalidValue as error:
                if process is not None and process.running.poll() is not None:
                    raise InvalidValue(
                        f"{place.role} ended before it answered: "
                        f"{shorten(process.last_error_line() or 'no output', 300)}",
                        hint=f"Its cmd is: {place.command}",
                    ) from None
                if loop.time() > end:
                    raise InvalidValue(
                        f"{place.role} did not answer within {wait_seconds:g} s. {error.message}",
                        hint=error.hint,
                    ) from None
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        await agent.close()
