"""Commands of any language in a sandbox: a few folders to write in, the rest to read or hidden.

A coding agent and the tests of its work run here. Bubblewrap shows the machine read-only, with the
folders of the attempt mounted where the command expects them and everything private hidden. Where
there is no bubblewrap, ``launch.py`` beside this module does the same with Landlock, without
mounts: the folders then have their real paths. An engine runs the command in an image.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import secrets
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from passhat.errors import SandboxUnavailable
from passhat.judging.commands import engine_problem, remove_container
from passhat.judging.inside.seccomp import Unavailable, guard_memory
from passhat.judging.sandbox import SandboxFault
from passhat.judging.sandbox_kinds import Container, SandboxKind, SandboxSpec

_PASSHAT = Path(__file__).parents[2]
_LAUNCH = [str(Path(__file__).with_name("launch.py")), str(_PASSHAT / "judging")]
_LOOK_SECONDS = 1.0
_KEPT_OUTPUT = 128 * 1024
_OUTPUT_SECONDS = 2.0
"""How long output may still arrive when the command has ended."""
_STARTS = 20
_MOST_FILES = 65_536
"""Open files of a process in a container."""
_FULL_BYTES = 256 * 1024
"""A disk with less room is full."""
_OWN_BYTES = 32 << 20
"""A disk that is full is the command's own doing from here on."""
_NO_SANDBOX = 125
"""Exit status of our own launcher where the sandbox could not be set up."""
_LIMITS = 'ulimit -c 0; {} exec "$@"'
_FRESH = ("/tmp", "/var/tmp")
_OF_HOME = ("bin", "lib", "share/pipx", "share/uv")
"""Folders below ~/.local that hold programs, not what they remember."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of a command: seconds, bytes of memory per process, bytes and files on disk."""

    seconds: float = 600.0
    memory: int = 4 << 30
    disk: int = 2 << 30
    files: int = 200_000


@dataclass(frozen=True, slots=True)
class Walls:
    """Folders as a command sees them.

    Parameters
    ----------
    folders : mapping of str to str
        Folders to write in: the path in the sandbox, and the real one.
    temporary : str
        The real folder behind ``/tmp``.
    frozen : tuple of str
        Paths in the sandbox that are read-only although a folder to write in holds them.
    hidden : tuple of str
        Real paths that are shown empty.
    visible : tuple of str
        Real paths that are shown, read-only, although they are in a hidden or fresh folder.
    shown : tuple of str
        The same for paths that a container needs as well.
    network : bool
        Whether the command reaches the network.
    guarded : bool
        Keep its processes out of each other's memory: no tracer, and ``/proc`` read-only. Not in
        containers, whose engine decides about that.
    """

    folders: Mapping[str, str]
    temporary: str
    frozen: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    network: bool = False
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command and what it is given.

    ``folder`` is a path in the sandbox, ``given`` the standard input, and ``kept`` how many bytes
    of the output are kept.
    """

    words: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    limits: CommandLimits
    given: bytes = b""
    kept: int = _KEPT_OUTPUT


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended; ``over`` names the limit that ended it: ``time`` or ``disk``."""

    status: int
    output: str
    errors: str
    seconds: float
    over: str = ""


def choose_walls(only: SandboxSpec | None, *, unsafe: bool = False) -> SandboxSpec:
    """The sandbox for commands: the one named, else bubblewrap, else Landlock.

    Raises
    ------
    SandboxUnavailable
        There is none on this machine, or not the one that was named.
    """
    if unsafe:
        return SandboxKind.NONE
    if isinstance(only, Container):
        if problem := engine_problem(only):
            raise SandboxUnavailable(f"{only}: {problem}.")
        return only
    problems = []
    for kind in (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK):
        if only not in (None, kind):
            continue
        problem = _problem(kind)
        if not problem:
            return kind
        problems.append(f"{kind}: {problem}")
    raise SandboxUnavailable(
        f"no sandbox for the agent and its tests ({'; '.join(problems)}).",
        hint="Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap).",
    )


@lru_cache(maxsize=4)
def _problem(kind: SandboxKind) -> str:
    """Why a kind of sandbox does not work here; empty if it does."""
    if kind is SandboxKind.BUBBLEWRAP and shutil.which("bwrap") is None:
        return "the command bwrap is not installed"
    walls = Walls({}, "/tmp")
    words = wrap_command(kind, walls, ["/bin/sh", "-c", "exit 7"], "/")
    try:
        ended = subprocess.run(words, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if ended.returncode == 7 else (lines[-1] if lines else f"exit {ended.returncode}")


# -- command lines ---------------------------------------------------------------------------------


def wrap_command(
    kind: SandboxSpec,
    walls: Walls,
    words: Sequence[str],
    folder: str,
    limits: CommandLimits | None = None,
    name: str = "",
) -> list[str]:
    """The command line that runs a command in the sandbox, in ``folder``.

    ``folder`` is a path in the sandbox; without mounts the real one behind it is taken. ``name`` is
    the container's, where there is one.
    """
    words = _with_limits(words, limits)
    if isinstance(kind, Container):
        return _container_words(kind, walls, words, folder, name)
    if kind is SandboxKind.BUBBLEWRAP:
        return [*_bubblewrap_words(walls), "--chdir", folder, "--", *words]
    place = real_path(walls, folder)
    if kind is SandboxKind.LANDLOCK:
        rules = {
            "readable": readable_paths(walls),
            "writable": [*walls.folders.values(), walls.temporary],
            "network": walls.network,
            "guarded": walls.guarded,
            "folder": place,
        }
    else:
        rules = {"folder": place, "open": True}
    return [sys.executable, "-I", "-S", "-B", *_LAUNCH, json.dumps(rules), *words]


def real_path(walls: Walls, path: str) -> str:
    """The real path behind one in the sandbox."""
    for inside, outside in walls.folders.items():
        if path == inside or path.startswith(f"{inside}/"):
            return outside + path[len(inside) :]
    return path


def _with_limits(words: Sequence[str], limits: CommandLimits | None) -> list[str]:
    if limits is None:
        return list(words)
    # Address space would be the wrong measure: JavaScript engines reserve far more than they use.
    script = _LIMITS.format(f"ulimit -d {limits.memory >> 10}; ulimit -f {limits.disk >> 9};")
    return ["/bin/sh", "-c", script, "sh", *words]


def _bubblewrap_words(walls: Walls) -> list[str]:
    words = ["bwrap", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += [] if walls.network else ["--unshare-net"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    fresh = [path for path in _FRESH if Path(path).is_dir() and not Path(path).is_symlink()]
    for path in fresh:
        words += ["--bind", walls.temporary, path]
    masked = [path for path in walls.hidden if os.path.lexists(path)]
    # A hidden folder may hold a visible one that holds a hidden one: from the outside in.
    layers = [(path, "hidden") for path in masked] + [
        (path, "shown") for path in (*walls.visible, *walls.shown)
    ]
    for path, how in sorted(layers, key=lambda layer: (layer[0].count("/"), layer[0])):
        if how == "hidden":
            is_folder = Path(path).is_dir()
            words += ["--tmpfs", path] if is_folder else ["--ro-bind", "/dev/null", path]
        elif _is_below(path, (*fresh, *masked)) and Path(path).exists():
            words += ["--ro-bind", path, path]
    for inside, outside in walls.folders.items():
        words += ["--bind", outside, inside]
    for path in walls.frozen:
        words += ["--ro-bind", real_path(walls, path), path]
    # /proc/PID/mem of a process of the same user can be written wherever /proc can.
    return [*words, *(["--remount-ro", "/proc"] if walls.guarded else [])]


def _filter_file() -> int:
    """An open file with the filter that keeps processes out of each other's memory."""
    try:
        code = guard_memory()
    except Unavailable:  # another processor: /proc is read-only all the same
        return -1
    file = os.memfd_create("filter", 0)
    os.write(file, code)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _container_words(
    kind: Container, walls: Walls, words: Sequence[str], folder: str, name: str
) -> list[str]:
    command = [kind.engine, "run", "--rm", "--interactive", "--pull=never", "--log-driver=none"]
    command += ["--name", name, "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    command += ["--hostname=sandbox", "--pids-limit=4096", f"--workdir={folder}"]
    # Without these an engine asks for its own defaults, which may be more than it is allowed.
    files = min(_MOST_FILES, *(n for n in resource.getrlimit(resource.RLIMIT_NOFILE) if n > 0))
    command += [f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=4096:4096"]
    command += [] if walls.network else ["--network=none"]
    for inside, outside in walls.folders.items():
        if inside not in walls.frozen:  # an engine mounts nothing twice
            command += ["--volume", f"{outside}:{inside}:rw"]
    for path in walls.frozen:
        command += ["--volume", f"{real_path(walls, path)}:{path}:ro"]
    for path in walls.shown:
        command += ["--volume", f"{path}:{path}:ro"]
    command += ["--volume", f"{walls.temporary}:/tmp:rw", "--entrypoint", words[0], kind.image]
    return [*command, *words[1:]]


def readable_paths(walls: Walls) -> list[str]:
    """Everything that may be read, for Landlock, which has no rule that takes something away."""
    masked = [*(path for path in walls.hidden if os.path.lexists(path)), *_FRESH]
    roots = [*walls.visible, *walls.shown, *walls.folders.values(), walls.temporary]
    return [*_without("/", [os.path.realpath(path) for path in masked]), *roots]


def _without(folder: str, masked: Sequence[str]) -> list[str]:
    """The paths below a folder that lead to nothing masked."""
    inner = [path for path in masked if path.startswith(f"{folder.rstrip('/')}/")]
    if folder in masked:
        return []
    if not inner:
        return [folder]
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names
    except OSError:
        return []
    paths = [f"{folder.rstrip('/')}/{name}" for name in names]
    return [shown for path in paths for shown in _without(path, masked)]


def visible_programs(extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Folders of programs that are shown although a home or a temporary folder holds them."""
    home = str(Path.home())
    paths = [sys.prefix, sys.base_prefix, str(_PASSHAT), *extra]
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        if not entry.startswith("/"):
            continue
        parent = str(Path(entry).parent)
        if parent == f"{home}/.local":
            paths += [f"{parent}/{name}" for name in _OF_HOME]
        else:
            # node and its packages, or a virtual environment, are beside their bin.
            whole = entry.endswith("/bin") and parent not in (home, "/")
            paths.append(parent if whole else entry)
    return tuple(path for path in dict.fromkeys(paths) if path not in ("/", home))


# -- running ---------------------------------------------------------------------------------------


def disk_use(folders: Sequence[str]) -> tuple[int, int]:
    """Bytes that folders take on disk, and how many entries they hold; mounts in them apart."""
    size = count = 0
    pending = [(folder, os.lstat(folder).st_dev) for folder in folders if os.path.lexists(folder)]
    while pending:
        folder, device = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(OSError):
                        state = entry.stat(follow_symlinks=False)
                        size += state.st_blocks * 512
                        if stat.S_ISDIR(state.st_mode) and state.st_dev == device:
                            pending.append((entry.path, device))
        except OSError:  # gone, or closed to us
            continue
    return size, count


def _check_room(folder: Path) -> None:
    """Raise SandboxFault if the disk of an attempt is full, and not by what the attempt wrote."""
    state = os.statvfs(folder)
    has_inodes = not state.f_files or state.f_favail > 0
    has_room = state.f_bavail * state.f_frsize >= _FULL_BYTES and has_inodes
    if not has_room and disk_use([str(folder)])[0] < _OWN_BYTES:
        raise SandboxFault(f"the disk is full: {folder.parent} has no room for workspaces")


class _Unmounted(SandboxFault):
    """Bubblewrap met a mount that went away; it can be started again."""


@dataclass(slots=True)
class _Tail:
    """The beginning and the end of an output of any length."""

    kept: int = _KEPT_OUTPUT
    head: bytes = b""
    tail: bytes = b""
    cut: bool = False

    def add(self, data: bytes) -> None:
        room = self.kept // 4 - len(self.head)
        self.head += data[: max(room, 0)]
        self.tail += data[max(room, 0) :]
        if len(self.tail) > self.kept:
            self.cut, self.tail = True, self.tail[-self.kept :]

    def text(self) -> str:
        gap = b"\n[...]\n" if self.cut else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


async def run_command(kind: SandboxSpec, walls: Walls, command: Command) -> CommandEnd:
    """Run a command in the sandbox until it ends or a limit is reached; nothing of it goes on.

    Raises
    ------
    SandboxFault
        The sandbox could not be set up, or its disk is full: not the command's fault.
    """
    for _ in range(_STARTS):
        with contextlib.suppress(_Unmounted):
            return await _run_once(kind, walls, command)
    raise SandboxFault(f"workspaces of other attempts were unmounted at each of {_STARTS} starts")


def is_unmounted(errors: str) -> bool:
    """Whether bubblewrap ended before its command, by a mount that went away while it started.

    It shows the whole machine, with the workspaces that other attempts have at the moment.
    """
    return errors.startswith("bwrap: Can't bind mount /oldroot/ on /newroot/: Unable to apply")


async def _run_once(kind: SandboxSpec, walls: Walls, command: Command) -> CommandEnd:
    """Run a command, or raise _Unmounted before it begins."""
    loop = asyncio.get_running_loop()
    name = f"passhat-{os.getpid()}-{secrets.token_hex(8)}" if isinstance(kind, Container) else ""
    status_end, far_end = os.pipe()
    line = wrap_command(kind, walls, command.words, command.folder, command.limits, name)
    guard = -1
    if kind is SandboxKind.BUBBLEWRAP:
        line[1:1] = ["--json-status-fd", str(far_end)]
        guard = _filter_file() if walls.guarded else -1
        line[1:1] = ["--seccomp", str(guard)] if guard >= 0 else []
    if isinstance(kind, Container):
        at = line.index("--name")
        line[at:at] = [f"--env={key}={value}" for key, value in command.environment.items()]
    began = loop.time()
    try:
        process = await asyncio.create_subprocess_exec(
            *line,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(os.environ if isinstance(kind, Container) else command.environment),
            start_new_session=True,
            pass_fds=[end for end in (far_end, guard) if end >= 0]
            if kind is SandboxKind.BUBBLEWRAP
            else (),
        )
    except (OSError, ValueError) as error:
        os.close(status_end)
        raise SandboxFault(f"the command could not be started ({error})") from None
    finally:
        for end in (far_end, guard):
            if end >= 0:
                os.close(end)
    outputs = (_Tail(command.kept), _Tail())
    streams = [asyncio.create_task(_feed(process, command.given))]
    for stream, tail in zip((process.stdout, process.stderr), outputs, strict=True):
        assert stream is not None
        streams.append(asyncio.create_task(_read(stream, tail)))
    over = ""
    try:
        over = await _wait(process, walls, command.limits, began)
    finally:
        await _end(process, streams, is_patient=kind is not SandboxKind.BUBBLEWRAP)
        if isinstance(kind, Container):
            await asyncio.to_thread(remove_container, kind, name)
        with open(status_end, "rb") as file:  # noqa: PTH123 - of a descriptor
            status_text = file.read()
    output, errors = (tail.text() for tail in outputs)
    status = process.returncode or 0
    failed_start = status == _NO_SANDBOX
    if kind is SandboxKind.BUBBLEWRAP:
        failed_start = b"exit-code" not in status_text and errors.startswith("bwrap: ")
    if failed_start and not over:
        fault = _Unmounted if is_unmounted(errors) else SandboxFault
        raise fault(errors.strip()[-500:] or "the sandbox ended without a word")
    await asyncio.to_thread(_check_room, Path(walls.temporary).parent)
    return CommandEnd(status, output, errors, loop.time() - began, over)


async def _feed(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader, tail: _Tail) -> None:
    while data := await stream.read(1 << 16):
        tail.add(data)


async def _wait(
    process: asyncio.subprocess.Process, walls: Walls, limits: CommandLimits, began: float
) -> str:
    """Wait for the end of a command, or for a limit that it reaches; return which."""
    loop = asyncio.get_running_loop()
    folders = [*walls.folders.values(), walls.temporary]
    while True:
        left = began + limits.seconds - loop.time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(_LOOK_SECONDS, left))):
                await process.wait()
                return ""
        if loop.time() - began >= limits.seconds:
            return "time"
        size, count = await asyncio.to_thread(disk_use, folders)
        if size > limits.disk or count > limits.files:
            return "disk"


async def _end(
    process: asyncio.subprocess.Process, streams: Sequence[asyncio.Task[None]], *, is_patient: bool
) -> None:
    """Kill the command with everything it started, and take the output that is left."""
    try:
        if process.returncode is None and is_patient:
            # Our own launcher ends what it started on this signal; bubblewrap needs no time.
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_OUTPUT_SECONDS):
                    await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    _, pending = await asyncio.wait(streams, timeout=_OUTPUT_SECONDS)
    for stream in pending:
        stream.cancel()
    await asyncio.gather(*streams, return_exceptions=True)
    # A process that got away may hold the pipes: they are closed with the transport.
    process._transport.close()  # type: ignore[attr-defined]
