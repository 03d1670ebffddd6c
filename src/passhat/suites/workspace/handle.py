"""The workspace as an agent sees it: read and write files, run commands, look at the diff."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from passhat.errors import InvalidValue
from passhat.judging.sandbox_kinds import Container, SandboxKind
from passhat.suites.workspace.changes import (
    Change,
    Snapshot,
    apply_changes,
    is_inside,
    take_snapshot,
)
from passhat.suites.workspace.walls import (
    CommandLimits,
    Walls,
    is_unmounted,
    real_path,
    wrap_command,
)

WORKSPACE_FILE = "workspace.tar.gz"
"""The workspace as a file, to and from agents that are elsewhere."""
_LARGEST_ARCHIVE = 64 << 20

_LONGEST_OUTPUT = 1 << 20
_BEGIN = 200


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
        status, output = self._start(words, environment, seconds or self.limits.seconds)
        while self.has_mounts and is_unmounted(output[:_BEGIN].decode("utf-8", "replace")):
            status, output = self._start(words, environment, seconds or self.limits.seconds)
        text = output[-_LONGEST_OUTPUT:].decode("utf-8", "replace")
        if self.note is not None:
            self.note(command, text)
        return Finished(status, text)

    def _start(
        self, words: Sequence[str], environment: Mapping[str, str], seconds: float
    ) -> tuple[int, bytes]:
        try:
            process = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                env=environment,
                cwd=self.folder,
            )
        except subprocess.TimeoutExpired as error:
            return 124, error.stdout or b""
        return process.returncode, process.stdout

    def diff(self) -> str:
        """Return all changes since the start as a unified diff, made by git."""
        return self.run("git add -A -N . && git diff").output

    @property
    def is_touched(self) -> bool:
        """Whether any file differs from the start in its place or its time of change."""
        return take_snapshot(str(self.folder)) != self.snapshot

    def pack(self) -> bytes:
        """The workspace as an archive for an agent elsewhere, without histories and caches.

        Raises
        ------
        InvalidValue
            It is larger than 64 MiB.
        """
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
            for path in self.snapshot:
                archive.add(self.folder / path, path, recursive=False)
                if buffer.tell() > _LARGEST_ARCHIVE:
                    raise InvalidValue(f"the workspace is larger than {_LARGEST_ARCHIVE:,} bytes")
        return buffer.getvalue()

    def take_files(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write files by their paths; ``workspace.tar.gz`` is all of the workspace.

        Raises
        ------
        InvalidValue
            A path leads out of the workspace, or the archive cannot be read.
        """
        changes: list[Change] = []
        for name, content in files:
            if name != WORKSPACE_FILE:
                path = _check_path(name)
                mode = (self.folder / path).lstat().st_mode if path in self.snapshot else 0
                changes.append(Change(path, content, executable=bool(mode & stat.S_IXUSR)))
                continue
            entries = list(_read_archive(content))
            paths = {entry.path for entry in entries}
            changes += [Change(path) for path in self.snapshot if path not in paths]
            changes += entries
        apply_changes(changes, str(self.folder))

    def _resolve(self, path: str) -> Path:
        root = self.folder.resolve()
        place = (root / path).resolve()
        if not place.is_relative_to(root):
            raise InvalidValue(f"{path!r} is outside of the workspace.")
        return place


def _check_path(path: str) -> str:
    parts = path.split("/")
    if not {"", ".", "..", ".git"}.isdisjoint(parts) or not path.isprintable():
        raise InvalidValue(f"{path!r} is not a path in the workspace")
    return path


def _read_archive(content: bytes) -> Iterator[Change]:
    """The plain files of an archive, and links that stay inside; nothing else is taken."""
    room = 2 * _LARGEST_ARCHIVE
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                room -= member.size
                if room < 0:
                    raise InvalidValue("the archive of the workspace is too large")
                if member.issym() and is_inside(_check_path(name), member.linkname):
                    yield Change(name, target=member.linkname)
                elif member.isfile() and ".git" not in name.split("/"):
                    file = archive.extractfile(member)
                    assert file is not None
                    is_executable = bool(member.mode & stat.S_IXUSR)
                    yield Change(_check_path(name), file.read(), executable=is_executable)
    except (tarfile.TarError, OSError, EOFError, zlib.error, UnicodeError) as error:
        raise InvalidValue(f"the archive of the workspace cannot be read ({error})") from None


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
    from passhat.suites.workspace.walls import choose_walls

    if not isinstance(kind, Container):
        return kind
    walls_kind = choose_walls(None)
    assert isinstance(walls_kind, SandboxKind)
    return walls_kind
