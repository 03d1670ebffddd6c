"""A sandbox: a container or a restricted process with a fork server in it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from passhat.judging.bridge import Bridge
from passhat.judging.commands import (
    DEVICES,
    INSIDE,
    WRITABLE_DEVICES,
    bubblewrap_command,
    container_command,
    pack_inside,
    plain_command,
    remove_container,
)
from passhat.judging.inside import wire
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import Container, ProgramLimits, SandboxKind, SandboxSpec

__all__ = ["Ended", "Sandbox", "SandboxFault", "SandboxKind", "SandboxSpec"]

_START_SECONDS = 120.0
_PATIENCE = 60.0
"""Seconds beyond the wall clock limit after which a silent fork server is broken."""


class SandboxFault(Exception):
    """The sandbox broke. Never the program's failure: the judgement is made again."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one execution ended.

    ``why`` is ``ended`` (by itself), ``stopped`` (by the judge) or the limit that was reached:
    ``cpu``, ``wall`` or ``files``. ``words`` are the frames that the child reported, and
    ``written`` all of its report; a program writes its own frames, which prove nothing.
    ``waiting`` is true for tests that were waiting for the program, or reading its messages.
    """

    why: str
    status: int
    cpu: float
    seconds: float
    waiting: bool
    words: tuple[Any, ...]
    written: bytes = b""


class Sandbox:
    """A fork server in a sandbox. Starts when first used, and again after it broke."""

    def __init__(
        self,
        kind: SandboxSpec,
        interpreter: Interpreter,
        limits: ProgramLimits,
        *,
        allow_weak: bool = False,
        runs_programs: bool = True,
    ) -> None:
        self.kind = kind
        self._allow_weak, self._runs_programs = allow_weak, runs_programs
        self._interpreter = interpreter
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._complaints: IO[bytes] | None = None
        self._folder: str | None = None
        self._bridge: Bridge | None = None
        self._name = ""
        self._abandoned = False
        self.has_namespaces = False
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
        self._refuse_if_abandoned()
        near_end, far_end = socket.socketpair()
        _set_timeout(near_end, _START_SECONDS)
        self._control = near_end
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by greet or close
        self.starts += 1
        if isinstance(self.kind, Container):
            self._launch_container(far_end)
        else:
            self._launch_process(far_end)
        self._refuse_if_abandoned()  # while it was launched

    def _refuse_if_abandoned(self) -> None:
        if self._abandoned:
            raise SandboxFault("the sandbox has been given up")

    def _launch_process(self, far_end: socket.socket) -> None:
        with far_end:
            self._process = subprocess.Popen(
                self._command(),
                stdin=far_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                env={},
                cwd="/",
                start_new_session=True,
            )

    def _launch_container(self, far_end: socket.socket) -> None:
        """Start the engine's command in our environment, which says where the engine is."""
        self._name = f"passhat-{os.getpid()}-{secrets.token_hex(8)}"
        inner, outer = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            self._command(),
            stdin=inner[0],
            stdout=outer[1],
            stderr=self._complaints,
            cwd="/",
            start_new_session=True,
        )
        os.close(inner[0])
        os.close(outer[1])
        self._bridge = Bridge(far_end, inner[1], outer[0], pack_inside())

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
                self.has_namespaces = bool(hello.get("mounted"))
                return
            complaints.seek(0)
            output = complaints.read(2000).decode("utf-8", "replace").strip()
        self.close()
        raise SandboxFault(hello.get("why") or output or "the sandbox ended without a word")

    def submit(
        self, kind: str, brief: bytes, descriptors: Sequence[int], *, processes: bool = False
    ) -> None:
        """Begin an execution; its brief goes to the child in a file, with the descriptors.

        With ``processes`` it may start others and connect to them, in namespaces of its own.
        """
        self.start()
        assert self._control is not None
        limits = self._limits
        tests = kind in ("tests", "series")
        job = {
            "kind": kind,
            # The tests outlive the program they wait for, but not by much.
            "cpu": limits.cpu_seconds + (1 if tests else 0),
            "wall": limits.wall_seconds + (1 if tests else 0),
            "idle": limits.idle_seconds + (1 if tests else 0),
            "memory": limits.memory,
            "processes": processes,
        }
        _set_timeout(self._control, limits.wall_seconds + _PATIENCE)
        file = wire.memory_file(brief)
        try:
            socket.send_fds(self._control, [b"+"], [file, *descriptors])
        except OSError as error:
            raise SandboxFault(str(error)) from None
        finally:
            os.close(file)
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
        assert self._control is not None
        try:
            written = wire.receive_bytes(self._control.fileno())
            return Ended(words=tuple(wire.frames(written)), written=written, **report)
        except (OSError, wire.Closed, wire.Malformed, TypeError) as error:
            raise SandboxFault(f"an unreadable report: {error}") from None

    def abandon(self) -> None:
        """End its processes, from another thread; none is launched afterwards."""
        self._abandoned = True
        self.kill()

    def kill(self) -> None:
        """End its processes and nothing else; another thread may be using it."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the sandbox with everything in it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self.kill()
            self._process.kill()
            self._process.wait()
        if isinstance(self.kind, Container) and self._name:
            remove_container(self.kind, self._name)
            self._name = ""
        if self._bridge is not None:
            self._bridge.close()
        if self._complaints is not None:
            self._complaints.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._control = self._complaints = self._folder = self._bridge = None

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
        landlock = self.kind is SandboxKind.LANDLOCK
        is_container = isinstance(self.kind, Container)
        listable, readable = self._interpreter.readable() if landlock else ([], [])
        if landlock:
            self._folder = tempfile.mkdtemp(prefix="passhat-")
        interpreter = self._interpreter
        granted = [INSIDE, *(part.path for part in interpreter.granted)]
        return {
            "kind": "container" if is_container else str(self.kind),
            "listable": listable,
            "readable": [*readable, *DEVICES],
            "runs_programs": self._runs_programs,
            "shown": [] if is_container else list(interpreter.shown),
            "granted": [] if is_container else granted,
            "hidden": [] if is_container else list(interpreter.hidden),
            "nodes": list(DEVICES),
            "devices": list(WRITABLE_DEVICES),
            "scratch": self._folder or ("/tmp" if is_container else ""),
            "scratch_bytes": self._limits.scratch,
            "packages": list(interpreter.granted_roots),
            "weak": self._allow_weak,
        }

    def _command(self) -> list[str]:
        if isinstance(self.kind, Container):
            return container_command(self.kind, self._limits, self._name)
        if self.kind is SandboxKind.BUBBLEWRAP:
            return bubblewrap_command(self._interpreter)
        return plain_command(self._interpreter)


def _set_timeout(connection: socket.socket, seconds: float) -> None:
    """Let reads and writes fail after a while; the descriptor itself stays a blocking one."""
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
