"""A sandbox: a container or a restricted process with a fork server in it."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from _typeshed import HasFileno

_START_SECONDS = 120.0
_PATIENCE = 60.0
"""Seconds beyond the wall clock limit after which a silent fork server is broken."""
_SHORTEST_PAUSE, _LONGEST_PAUSE, _SLACK = 0.05, 0.25, 5.0
_IN_PROCESSES = 4
"""How many times as long as one of them all processes of a program may work together."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


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
        allow_weak: bool,
        runs_programs: bool,
    ) -> None:
        self.kind = kind
        self._allow_weak, self._runs_programs = allow_weak, runs_programs
        self._interpreter = interpreter
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._root: int | None = None
        self._submitted = 0.0
        self._delays: dict[int, float] = {}
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
        self._root = self._process.pid

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
        self._submitted, self._delays = time.clock_gettime(time.CLOCK_BOOTTIME), {}
        limits = self._limits
        tests = kind in ("tests", "series")
        job = {
            "kind": kind,
            # The tests outlive the program they wait for, but not by much.
            "cpu": limits.cpu_seconds + (1 if tests else 0),
            "wall": limits.wall_seconds + (1 if tests else 0),
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

    def stop(self, *, ending: bool = False, waited: bool = False) -> None:
        """Ask for the end of the present execution; too late is no harm.

        One that is ``ending`` by itself gets a moment to do so; one that ``waited`` has reached
        its limit of that.
        """
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send(b"?" if ending else b"w" if waited else b"-")

    def fileno(self) -> int:
        """The descriptor on which :meth:`wait` waits."""
        if self._control is None:
            raise SandboxFault("the sandbox has gone")
        return self._control.fileno()

    def busy_seconds(self) -> tuple[float, float]:
        """How long the present execution worked, and how long it stood in the queue to work.

        The second is infinite where neither can be seen, as with an engine on another machine.
        """
        if self._process is None:
            return 0.0, 0.0
        if self._root is None and isinstance(self.kind, Container):
            self._root = _find_container(self._name)
        if self._root is None or not _keeps_records():
            return 0.0, math.inf
        worked = _look(self._root, self._submitted, self._delays)
        return worked, sum(self._delays.values())

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
        self._root = None

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


def _find_container(name: str) -> int | None:
    """The first process of a container: its command ends in the name, as the engine's does."""
    found: list[tuple[int, int]] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[-2:-1] == [name.encode()]:
                found.append((len(words), int(path.parent.name)))
    return min(found)[1] if found else None


class Patience:
    """How long an execution may only wait, made before it begins.

    Time in which the program or its tests worked, or stood in the queue for a processor, was not
    spent waiting, nor was time in which the whole machine stood still. What works for very long in
    many processes, of which each stays below its limit, is ended as well.
    """

    def __init__(self, sandboxes: Sequence[Sandbox], limits: ProgramLimits) -> None:
        self._sandboxes, self._limits = sandboxes, limits
        self._passed, self._next_look = 0.0, limits.idle_seconds
        self._is_over = False

    def wait(self, awaited: Sandbox | HasFileno | int, ended: Sandbox) -> None:
        """Wait until there is something to read; an execution that only waits is ended then."""
        waiting = select.poll()
        waiting.register(awaited, select.POLLIN)
        is_ready = False
        while not (is_ready or self._is_over):
            start, pause = time.monotonic(), self._next_look - self._passed
            is_ready = bool(waiting.poll(pause * 1000))
            self._passed += min(time.monotonic() - start, pause)
            if self._passed >= self._next_look:
                self._end_if_idle(ended)
        if not (is_ready or waiting.poll((self._limits.wall_seconds + _SLACK) * 1000)):
            raise SandboxFault("the execution neither answers nor ends")

    def _end_if_idle(self, ended: Sandbox) -> None:
        times = [sandbox.busy_seconds() for sandbox in self._sandboxes]
        rest = self._limits.idle_seconds - (self._passed - sum(map(sum, times)))
        if rest <= 0 or times[0][0] > _IN_PROCESSES * (self._limits.cpu_seconds + 1):
            ended.stop(waited=True)
            rest = math.inf
        self._next_look = self._passed + min(max(rest, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        self._is_over = rest == math.inf


@cache
def _keeps_records() -> bool:
    """Whether the kernel says who a process's children are and how long it was kept waiting."""
    folder = Path("/proc/self/task", str(os.getpid()))
    try:
        _, _, slices = (folder / "schedstat").read_text().split()
    except (OSError, ValueError):
        return False
    return slices != "0" and (folder / "children").exists()


def _look(pid: int, since: float, delays: dict[int, float]) -> float:
    """Processor time of a process and its descendants; their time in the queue for it is kept.

    Of those only that were started since then, in seconds from the start of the machine.
    """
    folder, worked = Path(f"/proc/{pid}"), 0.0
    with contextlib.suppress(OSError):  # the processor time of what has ended is its parent's
        fields = list(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[2:20]))
        is_counted = fields[17] >= int(since * _TICKS_PER_SECOND)
        worked += is_counted * sum(fields[9:13]) / _TICKS_PER_SECOND
        for task in (folder / "task").iterdir():
            with contextlib.suppress(OSError):
                delay = int((task / "schedstat").read_text().split()[1]) / 1e9
                delays[int(task.name)] = is_counted * delay
                children = (task / "children").read_text().split()
                worked += sum(_look(int(child), since, delays) for child in children)
    return worked


def _set_timeout(connection: socket.socket, seconds: float) -> None:
    """Let reads and writes fail after a while; the descriptor itself stays a blocking one."""
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
