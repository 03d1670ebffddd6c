"""The workspace as an agent sees it: read and write files, run commands, look at the diff."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from passhat.errors import InvalidValue
from passhat.judging.sandbox_kinds import Container, SandboxKind
from passhat.judging.walls import CommandLimits, Walls, real_path, wrap_command
from passhat.suites.workspace.changes import Snapshot, take_snapshot

__all__ = ["Finished", "Workspace"]

_LONGEST_OUTPUT = 1 << 20


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that process: exit status, and standard output and error as one text."""

    status: int
    output: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder that a coding agent works in; fresh for every attempt.

    A function with a parameter ``attempt`` has it as ``attempt.workspace``. Paths are relative to
    ``folder``.

    Attributes
    ----------
    folder : Path
        Where the files are.
    """

    folder: Path
    home: str = ""
    mount: str = ""
    walls: Walls | None = None
    sandbox: SandboxKind = SandboxKind.NONE
    limits: CommandLimits = field(default_factory=CommandLimits)
    snapshot: Snapshot = field(default_factory=dict, repr=False, compare=False)
    note: Callable[[str, str], object] | None = field(default=None, repr=False, compare=False)
    """Called with every command that was run and its output."""

    @property
    def has_mounts(self) -> bool:
        """Whether the agent sees the workspace under another path than its real one."""
        return self.sandbox is SandboxKind.BUBBLEWRAP

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return self._resolve(path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        """Write a file; folders that it needs are made."""
        place = self._resolve(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def run(self, command: str, seconds: float | None = None) -> Finished:
        """Run a shell command in the workspace; one that takes too long has status 124."""
        words = ["/bin/sh", "-c", command]
        environment: Mapping[str, str] = os.environ
        if self.walls is not None:
            words = wrap_command(self.sandbox, self.walls, words, self.mount, self.limits)
            environment = agent_environment(dict(os.environ), self)
        try:
            process = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds or self.limits.seconds,
                env=environment,
                cwd=self.folder,
            )
            status, output = process.returncode, process.stdout
        except subprocess.TimeoutExpired as error:
            status, output = 124, error.stdout or b""
        text = output[-_LONGEST_OUTPUT:].decode("utf-8", "replace")
        if self.note is not None:
            self.note(command, text)
        return Finished(status, text)

    def diff(self) -> str:
        """Return all changes since the start as a unified diff, made by git."""
        return self.run("git add -A -N . && git diff").output

    @property
    def is_touched(self) -> bool:
        """Whether any file differs from the start in its place or its time of change."""
        return take_snapshot(str(self.folder)) != self.snapshot

    def _resolve(self, path: str) -> Path:
        root = self.folder.resolve()
        place = (root / path).resolve()
        if not place.is_relative_to(root):
            raise InvalidValue(f"{path!r} is outside of the workspace.")
        return place


def agent_environment(variables: dict[str, str], workspace: Workspace) -> dict[str, str]:
    """Variables for an agent, with a home of its own and nothing that leads to another."""
    walls = workspace.walls
    if walls is None:
        return variables
    if workspace.home:
        for name in [name for name in variables if name.startswith("XDG_")]:
            del variables[name]
        variables["HOME"] = workspace.home
    variables["TMPDIR"] = "/tmp" if workspace.has_mounts else walls.temporary
    mount = workspace.mount
    variables["PWD"] = mount if workspace.has_mounts else real_path(walls, mount)
    for name in ("TMP", "TEMP", "OLDPWD"):
        variables.pop(name, None)
    return variables


def agent_kind(kind: SandboxKind | Container) -> SandboxKind:
    """The sandbox of the agent: tests may run in a container, the agent does not."""
    from passhat.judging.walls import choose_walls

    if not isinstance(kind, Container):
        return kind
    walls_kind = choose_walls(None)
    assert isinstance(walls_kind, SandboxKind)
    return walls_kind
