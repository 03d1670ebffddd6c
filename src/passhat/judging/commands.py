"""The command lines that start a fork server in a sandbox."""

from __future__ import annotations

import io
import os
import subprocess
import time
import zipfile
from compileall import compile_dir
from functools import lru_cache
from pathlib import Path

from passhat.judging.inside.new_root import MOST_BYTES
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import Container, ProgramLimits

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
WRITABLE_DEVICES = ("/dev/null",)
INSIDE = str(Path(__file__).parent / "inside")
_NOBODY = 65534
_OVERHEAD = 256 << 20
"""Memory of the fork server and of Python itself, beside what one program may use."""
_MOST_PROCESSES, _MOST_FILES = 72, 256
_RIGHTS = ("SYS_ADMIN", "SETUID", "SETGID", "KILL", "NET_ADMIN", "SYS_CHROOT")
_ENGINE_SECONDS = 60
_REMOVE_SECONDS = 60.0
"""How long an engine may be at removing a container; it takes seconds on a busy machine."""
_REMOVE_PAUSE = 0.1
# The judge's own modules arrive on standard input: no folder of the host has to be shown, and an
# engine on another machine works as well.
_BOOT = """
import os, sys
def take(size):
    parts = b""
    while len(parts) < size:
        part = os.read(0, size - len(parts))
        if not part:
            sys.exit("the judge has gone")
        parts += part
    return parts
kept = os.memfd_create("judge")
with open(kept, "wb", closefd=False) as file:
    file.write(take(int.from_bytes(take(4), "big")))
sys.path.insert(0, "/proc/self/fd/%d" % kept)
from inside.relay import main
del sys.path[0]
os.close(kept)
main()
"""


def plain_command(interpreter: Interpreter, home: str = str(Path(INSIDE).parent)) -> list[str]:
    """The fork server alone; ``home`` is the folder that holds ``inside``."""
    # The server writes no bytecode, and without it takes twice as long to start.
    compile_dir(INSIDE, quiet=2)
    begin = f"import sys; sys.path.insert(0, {home!r}); from inside.server import main; "
    return [*interpreter.command, "-c", f"{begin}del sys.path[0]; main()"]


def bubblewrap_command(interpreter: Interpreter) -> list[str]:
    """Namespaces: no network, no other processes.

    The fork server keeps the rights to mount and to set up a network, since every program gets
    folders of its own and may need a network of its own; programs keep no right at all. For root
    the server also keeps the right to take another user id, and no user namespace is needed;
    limits on threads would not bind if programs were root's.
    """
    words = ["bwrap", "--die-with-parent", "--new-session", "--hostname", "sandbox"]
    words += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_NET_ADMIN"]
    if os.geteuid() == 0:
        words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        words += ["--unshare-cgroup-try", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        words += ["--cap-add", "CAP_KILL", "--cap-add", "CAP_DAC_READ_SEARCH"]
    else:
        words += ["--unshare-all", "--uid", str(_NOBODY), "--gid", str(_NOBODY)]
    # The fork server makes the root that programs see, as everywhere, before any of them runs.
    words += ["--dev-bind", "/", "/", "--chdir", "/", "--"]
    return [*words, *plain_command(interpreter)]


def container_command(container: Container, limits: ProgramLimits, name: str) -> list[str]:
    """The same with an engine's means; standard input and output are the only way in or out.

    As behind bubblewrap, the fork server may mount and change its user id, and programs may not.
    """
    memory = str(limits.memory + 2 * limits.scratch + MOST_BYTES + _OVERHEAD)
    words = [container.engine, "run", "--rm", "--interactive", "--pull=never", "--name", name]
    words += ["--network=none", "--ipc=none", "--hostname=sandbox", "--log-driver=none"]
    words += ["--cap-drop=ALL", "--security-opt=no-new-privileges"]
    words += [f"--cap-add={capability}" for capability in _RIGHTS]
    words += ["--user=0:0", "--read-only", "--workdir=/"]
    scratch = f"--tmpfs=/tmp:rw,noexec,nosuid,nodev,size={limits.scratch},mode=1777"
    if container.engine == "podman":
        # Else /run and others could be written, and the image's own /tmp would be copied in.
        words += ["--read-only-tmpfs=false", f"{scratch},notmpcopyup"]
    else:
        # Docker's profile for AppArmor forbids every mount, with any capabilities.
        words += [scratch, "--security-opt=apparmor=unconfined"]
    words += [f"--memory={memory}", f"--memory-swap={memory}", "--cpus=1"]
    words += [f"--pids-limit={_MOST_PROCESSES}", "--ulimit=core=0:0"]
    words += [f"--ulimit=nofile={_MOST_FILES}:{_MOST_FILES}", "--ulimit=nproc=4096:4096"]
    # An image's own entry point would run unwanted code.
    words += ["--entrypoint", container.python, container.image]
    return [*words, "-I", "-B", "-c", _BOOT, name]  # by which its process is found


@lru_cache(maxsize=1)
def pack_inside() -> bytes:
    """The judge's modules as an archive, its length before it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(Path(INSIDE).glob("*.py")):
            archive.writestr(f"inside/{path.name}", path.read_bytes())
    content = buffer.getvalue()
    return len(content).to_bytes(4, "big") + content


def remove_container(container: Container, name: str) -> None:
    """End a container that may still be there.

    The engine removes it by itself, too, when its first process has ended; an engine that is at it
    does not answer.
    """
    at_once = ["--time", "0"] if container.engine == "podman" else []
    end = time.monotonic() + _REMOVE_SECONDS
    while True:
        answer = _engine_output(container.engine, "rm", "--force", *at_once, name)
        if answer is None or answer.returncode == 0 or "no such container" in answer.stderr.lower():
            return
        if time.monotonic() > end:
            return
        time.sleep(_REMOVE_PAUSE)


def engine_problem(container: Container) -> str:
    """Why the engine cannot run the image, with a remedy; empty when none is known."""
    engine, image = container.engine, container.image
    image_info = _engine_output(engine, "image", "inspect", image)
    if image_info is None:
        return (
            f"the command {engine} is not installed (Debian, Ubuntu: apt-get install "
            f"{'docker.io' if engine == 'docker' else 'podman'})"
        )
    info = _engine_output(engine, "info")
    if info is None or info.returncode:
        error = _last_line(info)
        start = "systemctl start docker" if engine == "docker" else "podman info"
        return f"the engine does not answer ({error}); start it or check it with: {start}"
    if image_info.returncode:
        return f"there is no image {image} on this machine; fetch it with: {engine} pull {image}"
    return ""


def _engine_output(engine: str, *words: str) -> subprocess.CompletedProcess[str] | None:
    """The engine's output; ``None`` when there is no such command, or no answer."""
    try:
        return subprocess.run(
            [engine, *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ENGINE_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _last_line(answer: subprocess.CompletedProcess[str] | None) -> str:
    lines = answer.stderr.strip().splitlines() if answer is not None else []
    return lines[-1][:200] if lines else "no answer"
