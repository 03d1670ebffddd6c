"""A root that has what programs need, and nothing else of the machine.

It is in memory. A disk's file system remembers each name that was looked up, found or not, and each
page that was read: the second time is faster, so that programs could leave notes for later ones. A
tmpfs keeps no record of names that it lacks, and its names and pages are in memory from the start.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Set
from typing import Any

MOST_BYTES = 256 << 20
"""Above this, packages of hundreds of megabytes, files are shown where they are: each worker would
have a copy of its own."""
BELOW = "/below"
"""Where the new root has what is below ``/tmp``: programs get a new one, and see it there again."""
_PLACE = "/dev/shm"
_ENGINES_OWN = {"/proc", "/sys", "/dev", "/run", "/tmp"}
_LEFT_OUT = ("test", "idlelib", "ensurepip", "turtledemo")
_USELESS = (".opt-1.pyc", ".opt-2.pyc", ".a")
_CHUNK = 1 << 24
_BIND, _RECURSIVE, _DETACH, _NO_SUID, _NO_DEVICES = 4096, 16384, 2, 2, 4
_PIVOT_ROOT = {"x86_64": 155}.get(os.uname().machine, 41)


def enter_root(setup: dict[str, Any], mount: Callable[..., bool], *, copies: bool) -> bool:
    """Make a root of ``shown``, without ``hidden``, with ``granted``, and leave the old one.

    With ``copies`` they are copied to memory. Of a container all is shown. False, with nothing
    changed, if there is too much of it or the machine forbids it.
    """
    libc = ctypes.CDLL(None)
    options = f"size={MOST_BYTES},mode=755"
    if not mount("tmpfs", _PLACE, "tmpfs", _NO_SUID | _NO_DEVICES, options):
        return False
    os.umask(0o022)
    try:
        _fill(setup, mount, copies=copies)
        os.chdir(_PLACE)
        if libc.syscall(ctypes.c_long(_PIVOT_ROOT), b".", b".") == 0:
            libc.umount2(b".", ctypes.c_int(_DETACH))  # the old root, which is on top now
        else:
            os.chroot(".")  # Docker's filter allows nothing else
    except OSError:
        os.chdir("/")
        libc.umount2(_PLACE.encode(), ctypes.c_int(_DETACH))
        return False
    os.chdir("/")
    return True


def _fill(setup: dict[str, Any], mount: Callable[..., bool], *, copies: bool) -> None:
    stdlib = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is slow to import
    omitted = {*setup["hidden"], *(f"{stdlib}/{name}" for name in _LEFT_OUT)}
    show = _copy if copies else _bind(mount)
    for path in setup["shown"]:
        show(path, _make_parents(path), omitted)
    for path in setup["hidden"] if not copies else ():
        if os.path.isdir(f"{_PLACE}{path}"):  # noqa: PTH112
            mount("tmpfs", f"{_PLACE}{path}", "tmpfs", _NO_SUID | _NO_DEVICES)
    for path in setup["granted"]:  # after what hides them
        show(path, _make_parents(path), omitted)
    if not setup["shown"]:
        _copy_entries("/", _PLACE, omitted | _ENGINES_OWN, show)
    for path in ("/tmp/x", "/dev/shm/x"):
        _make_parents(path, "")
    for path in setup["nodes"]:
        _bind(mount)(path, f"{_PLACE}{path}", omitted)


def _make_parents(path: str, below: str = BELOW) -> str:
    """The place of a path in the new root, whose folder is made."""
    target = f"{_PLACE}{below if path.startswith('/tmp/') else ''}{path}"
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
    return target


def _bind(mount: Callable[..., bool]) -> Callable[[str, str, Set[str]], None]:
    def show(source: str, target: str, _omitted: Set[str]) -> None:
        if os.path.isdir(source):  # noqa: PTH112
            os.makedirs(target, exist_ok=True)  # noqa: PTH103
        elif not os.path.exists(target):  # noqa: PTH110
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
        if not mount(source, target, "", _BIND | _RECURSIVE):
            raise OSError(source)

    return show


def _copy(source: str, target: str, omitted: Set[str]) -> None:
    """Copy a file or a folder; what this process may not read is not there."""
    with contextlib.suppress(PermissionError, FileExistsError):
        if os.path.isdir(source):  # noqa: PTH112
            os.makedirs(target, exist_ok=True)  # noqa: PTH103
            _copy_entries(source, target, omitted, _copy)
            return
        with open(source, "rb") as file:  # noqa: PTH123
            mode = os.fstat(file.fileno()).st_mode & 0o111 | 0o444
            copy = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            try:
                while os.sendfile(copy, file.fileno(), None, _CHUNK):
                    pass
            finally:
                os.close(copy)


def _copy_entries(
    source: str, target: str, omitted: Set[str], show: Callable[[str, str, Set[str]], None]
) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            place = f"{target}/{entry.name}"
            if entry.path in omitted or entry.name.endswith(_USELESS):
                continue
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)  # noqa: PTH115, PTH211
            elif entry.is_dir() or entry.is_file():
                show(entry.path, place, omitted)
