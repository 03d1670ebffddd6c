"""The command ``passhat`` for the pages, from a process that has imported it already.

Half of what a page's commands cost is the import of NumPy and SciPy, again for each of them. Here
one process per test worker imports them once. A program of a few lines that stands first on PATH
hands it words, folder, environment and the three streams; a fork of it runs the same command.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

PRELOADED = (
    "altair",
    "passhat.cli.report",
    "passhat.cli.run",
    "passhat.reporting.terminal",
    "passhat.readers.table",
    "passhat.readers.mapping",
    "passhat.reporting.build",
    "passhat.reporting.html.page",
    "passhat.runner.run_spec",
    "passhat.readers.reading",
    "passhat.store.sqlite",
    "passhat.stats.plan",
    "passhat.stats.forecast",
    "scipy.optimize",
    "scipy.stats",
)
"""What most commands import: with it comes most of the rest."""

PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({place!r})
    words = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(asked, [len(words).to_bytes(8, "big")], [0, 1, 2])
    asked.sendall(words)
    code = asked.recv(1)
os._exit(code[0] if code else 70)
"""


@contextmanager
def preloaded_command() -> Iterator[Path]:
    """A folder for PATH with a ``passhat`` that starts at once."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/socket"
        program = Path(folder, "passhat")
        program.write_text(PROGRAM.format(python=sys.executable, place=place))
        program.chmod(0o700)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place)
            listening.listen(64)
            server = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())], pass_fds=[listening.fileno()]
            )
        try:
            yield program.parent
        finally:
            server.terminate()
            server.wait()


def _serve(listening: socket.socket) -> None:
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the forks ended
    tests = os.getppid()
    listening.settimeout(5)
    while os.getppid() == tests:  # which may be killed
        try:
            asked, _ = listening.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            listening.close()
            _answer(asked)
        asked.close()


def _answer(asked: socket.socket) -> None:
    """Run the command in a fork of its own and hand back its exit code."""
    size, streams, _, _ = socket.recv_fds(asked, 8, 3)
    words, folder, environment = json.loads(asked.makefile("rb").read(int.from_bytes(size, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        asked.close()
        for at, stream in enumerate(streams):
            os.dup2(stream, at)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["passhat", *words]
        sys.path[0] = str(Path(sys.executable).parent)  # as for the installed program
        from passhat.cli import main

        code = _code_of(main)
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does at its end,
        atexit._run_exitfuncs()  # but for taking apart all that was imported, which is copied then
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, asked.fileno()], [], [])[0]:  # who asked was killed
        os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        asked.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _code_of(main: Callable[[], int]) -> int:
    try:
        return main() or 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
