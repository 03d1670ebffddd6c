"""One sandbox: a container or a restricted process with a fork server in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from passhat.judging.inside import wire
from passhat.judging.interpreters import Interpreter
from passhat.judging.limits import Limits

__all__ = ["Ended", "Sandbox", "SandboxFault", "SandboxKind", "sealed"]

_INSIDE = Path(__file__).parent / "inside"
_START_SECONDS = 30.0
_PATIENCE = 20.0
"""Seconds beyond the wall clock limit after which a fork server that says nothing is broken."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_NOBODY = 65534


class SandboxKind(StrEnum):
    """What keeps a program in."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


class SandboxFault(Exception):
    """The sandbox broke. Never the program's failure: the judgement is made again."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one execution ended.

    ``why`` is ``ended`` (by itself), ``stopped`` (by the judge) or the limit that was reached:
    ``cpu``, ``wall`` or ``files``. ``words`` are what the child reported; for a program they are
    its own words and prove nothing.
    """

    why: str
    status: int
    cpu: float
    seconds: float
    memory: int
    words: tuple[Any, ...]


class Sandbox:
    """A fork server behind a wall. Starts when first used, and anew after it broke."""

    def __init__(self, kind: SandboxKind, interpreter: Interpreter, limits: Limits) -> None:
        self.kind = kind
        self._interpreter = interpreter
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._complaints: IO[bytes] | None = None
        self._folder: str | None = None
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The process that holds the sandbox, if it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, unless it is running."""
        self.launch()
        self.greet()

    def launch(self) -> None:
        """Begin to start it, so that several can start at once."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        mine, theirs = socket.socketpair()
        _set_patience(mine, _START_SECONDS)
        self._control = mine
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by greet or close
        with theirs:
            self._process = subprocess.Popen(
                self._command(),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                env={},
                cwd="/",
                start_new_session=True,
            )
        self.starts += 1

    def greet(self) -> None:
        """Wait until the fork server of a launched sandbox is ready."""
        if self._complaints is None:
            return
        hello: dict[str, Any] = {}
        with contextlib.suppress(SandboxFault):
            self._send(self._setup())
            hello = self._receive()
        complaints, self._complaints = self._complaints, None
        with complaints:
            if hello.get("ready"):
                return
            complaints.seek(0)
            said = complaints.read(2000).decode("utf-8", "replace").strip()
        self.close()
        raise SandboxFault(hello.get("why") or said or "the sandbox ended without a word")

    def submit(self, kind: str, descriptors: Sequence[int]) -> None:
        """Begin an execution; the descriptors go to the child, the first of them its brief."""
        self.start()
        assert self._control is not None
        limits = self._limits
        patient = 1 if kind == "program" else 2  # the tests outlive the program they wait for
        job = {
            "kind": kind,
            "cpu": limits.cpu_seconds * patient,
            "wall": limits.wall_seconds + (5 if kind == "tests" else 0),
            "memory": limits.memory,
        }
        _set_patience(self._control, limits.wall_seconds + _PATIENCE)
        try:
            socket.send_fds(self._control, [b"+"], list(descriptors))
        except OSError as error:
            raise SandboxFault(str(error)) from None
        self._send(job)

    def stop(self, *, ending: bool = False) -> None:
        """Ask for the end of the present execution; too late is no harm.

        One that is ``ending`` by itself gets a moment to do so.
        """
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(b"?" if ending else b"-")

    def wait(self) -> Ended:
        """How the execution ended."""
        report = self._receive()
        try:
            words = tuple(wire.frames(bytes.fromhex(report.pop("words"))))
            spent = report.pop("spent")
            ended = Ended(words=words, **report)
        except (TypeError, KeyError, ValueError) as error:
            raise SandboxFault(f"an unreadable report: {error}") from None
        if spent:
            self.close()
        return ended

    def close(self) -> None:
        """End the sandbox with everything in it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        if self._complaints is not None:
            self._complaints.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._control = self._complaints = self._folder = None

    # -- talking to the fork server ------------------------------------------------------------

    def _send(self, message: object) -> None:
        assert self._control is not None
        try:
            wire.send(self._control.fileno(), message)
        except (OSError, wire.Closed) as error:
            raise SandboxFault(f"the sandbox has gone ({error})") from None

    def _receive(self) -> dict[str, Any]:
        if self._control is None:
            raise SandboxFault("the sandbox has gone")
        try:
            message = wire.receive(self._control.fileno())
        except (OSError, wire.Closed, wire.Malformed) as error:
            raise SandboxFault(f"the sandbox has gone ({error})") from None
        if not isinstance(message, dict):
            raise SandboxFault("an unreadable report")
        return message

    # -- starting --------------------------------------------------------------------------------

    def _setup(self) -> dict[str, object]:
        listable, readable = (
            self._interpreter.readable() if self.kind is SandboxKind.LANDLOCK else ([], [])
        )
        if self.kind is SandboxKind.NONE:
            self._folder = tempfile.mkdtemp(prefix="passhat-")
        return {
            "landlock": self.kind is SandboxKind.LANDLOCK,
            "listable": listable,
            "readable": [*readable, *_DEVICES],
            "confined": self.kind is not SandboxKind.NONE,
            "private": self.kind is SandboxKind.BUBBLEWRAP,
            "scratch": self._folder or ("/tmp" if self.kind is SandboxKind.BUBBLEWRAP else ""),
        }

    def _command(self) -> list[str]:
        contained = self.kind is SandboxKind.BUBBLEWRAP
        home = "/judge" if contained else str(_INSIDE.parent)
        begin = f"import sys; sys.path.insert(0, {home!r}); from inside.server import main; "
        begin += "del sys.path[0]; main()"
        command = [*self._interpreter.command, "-c", begin]
        return [*self._bubblewrap(), *command] if contained else command

    def _bubblewrap(self) -> list[str]:
        """The container: no network, no processes, no /proc, no home; everything read-only."""
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session"]
        words += ["--uid", str(_NOBODY), "--gid", str(_NOBODY), "--hostname", "sandbox"]
        words += ["--cap-drop", "ALL"]
        for path in self._interpreter.shown:
            place = Path(path)
            if place.is_symlink():
                words += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - text as it is
            else:
                words += ["--ro-bind", path, path]
        for path in self._interpreter.hidden:
            words += ["--tmpfs", path, "--remount-ro", path]
        for path in _DEVICES:
            words += ["--dev-bind", path, path]
        words += ["--ro-bind", str(_INSIDE), "/judge/inside"]
        words += ["--size", str(self._limits.scratch), "--tmpfs", "/tmp"]
        return [*words, "--remount-ro", "/", "--chdir", "/tmp", "--"]


def sealed(content: bytes) -> int:
    """A file in memory with this content, as a descriptor at its beginning."""
    make = getattr(os, "memfd_create", None)
    if make is None:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    else:
        descriptor = make("passhat", os.MFD_CLOEXEC)
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return int(descriptor)


def _set_patience(connection: socket.socket, seconds: float) -> None:
    """Let reads and writes fail after a while; the descriptor itself stays a blocking one."""
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
