"""A program as a coding agent: started in a workspace, with the instruction as its prompt.

``{prompt}`` among the words of its command is replaced by the instruction, ``{prompt_file}`` by the
path of a file that holds it; a command with neither gets it on standard input. The answer is what
it prints.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from passhat.agents.base import ENDED, AgentFault, AttemptInfo, Session
from passhat.agents.coding_events import read_events
from passhat.judging.sandbox import SandboxFault
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Turn, WorldFault
from passhat.suites.workspace.handle import Workspace, agent_environment
from passhat.suites.workspace.walls import Command, CommandEnd, run_command

_PROMPT, _PROMPT_FILE = "{prompt}", "{prompt_file}"
_FILE = ".passhat-prompt.md"
_LONGEST_OUTPUT, _LONGEST_ERRORS = 100_000, 8_000
_KEPT_REPLY = 4 << 20


class Program(Protocol):
    """The program of a command agent, as a session needs it."""

    speaks_json: bool
    source_files: tuple[Path, ...]

    def absolute_words(self) -> list[str]: ...

    def environment(self, attempt: AttemptInfo) -> dict[str, str]: ...

    def read_line(self, line: bytes, attempt: AttemptInfo) -> str: ...

    def note_early_end(self) -> None: ...


class CodingSession(Session):
    """One attempt of a program in a workspace; it answers once."""

    def __init__(self, agent: Program, attempt: AttemptInfo) -> None:
        self._agent = agent
        self._attempt = attempt

    async def answer(self, turn: Turn) -> str:
        workspace = self._attempt.workspace
        assert workspace is not None
        assert workspace.walls is not None
        is_function = self._agent.speaks_json
        if is_function:
            words, given = self._agent.absolute_words(), self._request(turn, workspace)
        else:
            words, given = self._words(turn.text, workspace)
        # The folder that the run was started in is hidden, but for the agent itself.
        named = [Path(word) for word in words if word.startswith("/") and Path(word).is_file()]
        files = find_own_files([*named, *self._agent.source_files], workspace.walls.hidden)
        walls = replace(workspace.walls, visible=(*workspace.walls.visible, *files))
        environment = agent_environment(self._agent.environment(self._attempt), workspace)
        try:
            command = Command(
                words, workspace.mount, environment, workspace.limits, given, _KEPT_REPLY
            )
            end = await run_command(workspace.sandbox, walls, command)
        except SandboxFault as error:
            raise WorldFault(MissingReason.SANDBOX_ERROR, str(error)) from None
        if end.over == "time":
            seconds = f"the agent took longer than {workspace.limits.seconds:g} s"
            raise AgentFault(FailureCategory.TIMEOUT, seconds)
        if end.over == "disk":
            raise AgentFault(FailureCategory.SANDBOX_VIOLATION, "the agent filled the disk")
        if is_function and end.output.strip():
            return self._agent.read_line(end.output.splitlines()[0].encode(), self._attempt)
        if end.status and not workspace.is_touched:
            self._agent.note_early_end()
            raise AgentFault(FailureCategory.AGENT_ERROR, _describe_end(end))
        return self._read_output(end)

    def _read_output(self, end: CommandEnd) -> str:
        """The answer in an output; tools and usage that it tells go on the meter."""
        events = read_events(end.output)
        if events is None:
            return _spoken(end)
        for call in events.calls:
            self._attempt.meter.record(call)
        if events.usage is not None:
            self._attempt.meter.settle(events.usage)
        return events.text or "[no text]"

    def _words(self, prompt: str, workspace: Workspace) -> tuple[list[str], bytes]:
        words = self._agent.absolute_words()
        text = " ".join(words)
        if _PROMPT_FILE in text:
            assert workspace.walls is not None
            # In /tmp, which is the attempt's own: a file in the workspace would be in its diff.
            place = Path(workspace.walls.temporary, _FILE)
            place.write_text(prompt, encoding="utf-8")
            place_inside = f"/tmp/{_FILE}" if workspace.has_mounts else str(place)
            words = [word.replace(_PROMPT_FILE, place_inside) for word in words]
        if _PROMPT in text:
            return [word.replace(_PROMPT, prompt) for word in words], b""
        return words, b"" if _PROMPT_FILE in text else prompt.encode()

    def _request(self, turn: Turn, workspace: Workspace) -> bytes:
        """The line that a Python function in a process of its own reads."""
        place = workspace.mount if workspace.has_mounts else str(workspace.folder)
        request = write_request(turn, self._attempt)
        request |= {"folder": os.getcwd(), "workspace": place}  # noqa: PTH109 - text
        return json.dumps(request).encode() + b"\n"


def write_request(turn: Turn, attempt: AttemptInfo) -> dict[str, object]:
    """A turn as programs read it that speak JSON; settings that were not given are left out."""
    request: dict[str, object] = {"text": turn.text, "task": attempt.task}
    request |= {"attempt": attempt.number, "seed": attempt.seed}
    sampling = {"temperature": attempt.temperature, "top_p": attempt.top_p}
    request |= {name: value for name, value in sampling.items() if value is not None}
    if turn.tools:
        request["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in turn.tools
        ]
    return request


def find_own_files(files: Sequence[Path], hidden: Sequence[str]) -> list[str]:
    """Paths that an agent needs to run: its files, and of this folder what belongs to them.

    A file in a folder of its own brings that folder, a Python file the modules of this folder that
    it imports. Folders that are hidden for themselves, such as the suite's, are not brought.
    """
    here = Path.cwd().resolve()
    shown: dict[str, None] = {}
    pending = [path.resolve() for path in files]
    while pending:
        path = pending.pop()
        if str(path) in shown:
            continue
        shown[str(path)] = None
        if not path.is_relative_to(here):
            continue
        folder = path.parent
        while folder.parent != here and (folder.parent / "__init__.py").is_file():
            folder = folder.parent
        if folder != here and here in folder.parents and str(folder) not in hidden:
            shown[str(folder)] = None
        pending += [place for name in _imports(path) for place in _module_places(here, name)]
    return list(shown)


def _imports(path: Path) -> set[str]:
    """Names of modules that a Python file imports at any place."""
    if path.suffix != ".py":
        return set()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


def _module_places(here: Path, name: str) -> list[Path]:
    places = (here / f"{name}.py", here / name / "__init__.py")
    return [place for place in places if place.is_file()]


def _describe_end(end: CommandEnd) -> str:
    lines = [line.strip() for line in (end.output + "\n" + end.errors).splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    text = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in last)
    return f"{ENDED} (exit {end.status})" + (f": {text}" if text else "")


def _spoken(end: CommandEnd) -> str:
    """Everything that a program printed, and its exit status if that is not 0."""
    output = end.output.strip()
    cut = f"[...]\n{output[-_LONGEST_OUTPUT:]}" if len(output) > _LONGEST_OUTPUT else output
    parts = [cut]
    if end.errors.strip():
        parts.append(f"[standard error]\n{end.errors.strip()[-_LONGEST_ERRORS:]}")
    if end.status or not any(parts):
        parts.append(f"[exit status {end.status}]")
    return "\n".join(part for part in parts if part)
