"""Landlock: reading below a few folders, and nothing else, without any privilege."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from .seccomp import Unavailable

__all__ = ["abi", "restrict"]

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
"""These numbers are the same on every machine."""
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_DIR = 1, 1 << 2, 1 << 3
_PR_SET_NO_NEW_PRIVS = 38

# What each version of the interface can forbid about files: execute to make_sym, then refer,
# truncate, and device ioctl.
_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_FILES_LATEST = (1 << 16) - 1
_NETWORK = 0b11
_SCOPES = 0b11


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(ctypes.c_long(number), *arguments))


def abi() -> int:
    """The version that the kernel offers; 0 when it offers none."""
    none = ctypes.c_void_p(None)
    found = _call(_CREATE, none, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(found, 0)


def restrict(
    listable: Iterable[str], readable: Iterable[str], writable: Iterable[str] = ()
) -> None:
    """Leave this process and its children the listing of some folders, the reading of others.

    In ``writable`` folders everything stays allowed but to execute.
    """
    version = abi()
    if version == 0:
        raise Unavailable("the kernel offers no Landlock (Linux 5.13 or newer, with it enabled)")
    files = _FILES.get(version, _FILES_LATEST)
    attributes = struct.pack("Q", files)
    attributes += struct.pack("Q", _NETWORK) if version >= 4 else b""
    attributes += struct.pack("Q", _SCOPES) if version >= 6 else b""
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    rules = _call(_CREATE, buffer, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if rules < 0:
        raise Unavailable("the kernel refused a Landlock rule set")
    for path in listable:
        _allow(rules, path, _READ_DIR)
    for path in readable:
        _allow(rules, path, _READ_FILE | _READ_DIR)
    for path in writable:
        _allow(rules, path, files & ~_EXECUTE)
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)
    if _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0)) != 0:
        raise Unavailable("the kernel refused to enforce Landlock")
    os.close(rules)


def _allow(rules: int, path: str, access: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib is slow to import
        access &= _READ_FILE
    rule = ctypes.create_string_buffer(struct.pack("=Qi", access, folder), 12)
    kind = ctypes.c_int(_PATH_BENEATH)
    _call(_ADD_RULE, ctypes.c_int(rules), kind, rule, ctypes.c_uint32(0))
    os.close(folder)
