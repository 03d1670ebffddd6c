"""Run a command behind Landlock, or with no walls at all, and end everything that it started.

A script of its own with the standard library alone: ``launch.py JUDGING RULES WORD...``, where the
first is the folder that holds ``inside``. Rules are JSON:
``readable`` and ``writable`` paths, ``network``, the ``folder`` to run in, ``guarded`` to keep
processes out of each other's memory, and ``open`` for no walls. The command's exit status is passed
on; 125 says that the walls could not be set up.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING or __name__ != "__main__":
    from passhat.judging.inside import confinement, seccomp
else:
    sys.path.insert(0, sys.argv.pop(1))
    from inside import confinement, seccomp

    del sys.path[0]

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_USER, _NEW_PIDS, _NEW_NETWORK, _NEW_QUEUES = 0x10000000, 0x20000000, 0x40000000, 0x08000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_NO_WALLS = 125


def main() -> NoReturn:
    """Set up the walls and run the command of ``sys.argv``."""
    rules, words = json.loads(sys.argv[1]), sys.argv[2:]
    for option, value in ((_PR_SET_PDEATHSIG, signal.SIGTERM), (_PR_SET_CHILD_SUBREAPER, 1)):
        _LIBC.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, (value, 0, 0, 0)))
    signal.signal(signal.SIGTERM, _give_up)
    try:
        os.chdir(rules["folder"])
        if not rules.get("open"):
            _close_walls(rules)
    except (OSError, seccomp.Unavailable) as error:
        os.write(2, f"{error}\n".encode())
        os._exit(_NO_WALLS)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            os.execvp(words[0], words)
        except OSError as error:
            os.write(2, f"{words[0]}: {error.strerror}\n".encode())
        os._exit(127)
    status = _await(pid)
    _kill_descendants()
    os._exit(status)


def _close_walls(rules: dict[str, Any]) -> None:
    """Leave the network and other processes where that is allowed, then restrict file access."""
    flags = _NEW_PIDS | _NEW_QUEUES
    user, group = os.geteuid(), os.getegid()
    flags |= 0 if user == 0 else _NEW_USER
    has_network_wall = False
    for more in (_NEW_NETWORK, 0) if not rules["network"] else (0,):
        if _LIBC.unshare(ctypes.c_int(flags | more)) == 0:
            has_network_wall = bool(more)
            if user != 0:
                with contextlib.suppress(OSError):
                    confinement.map_user(user, group)
            break
    walls = confinement.FolderRules(
        rules["readable"], rules["writable"], _DEVICES, network=rules["network"]
    )
    if not rules["network"] and not has_network_wall and not walls.forbids_network:
        raise seccomp.Unavailable("neither a namespace nor Landlock keeps the network out here")
    walls.enforce()
    if rules["guarded"]:
        seccomp.Filter(seccomp.guard_memory()).install(os.getpid())


def _await(pid: int) -> int:
    """The exit status of the command; everything else that ends is only collected."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _give_up(*_: object) -> None:
    _kill_descendants()
    os._exit(128 + signal.SIGTERM)


def _kill_descendants() -> None:
    """Kill all that this process is the parent of; orphans become its children."""
    while True:
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
                children = [int(word) for word in file.read().split()]
            for child in children:
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
