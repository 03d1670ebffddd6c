"""Landlock: reading below a few folders, writing below fewer, without any privilege."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from .seccomp import Unavailable

__all__ = ["SAFE_ABI", "Ruleset", "abi"]

SAFE_ABI = 3
"""Older versions (before Linux 6.2) cannot forbid a program to truncate files."""

_LIBC = ctypes.CDLL(None, use_errno=True)  # looked up once, and not in every child
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
"""These numbers are the same on every machine."""
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_PR_SET_NO_NEW_PRIVS = 38

# What each version of the interface can forbid about files: execute to make_sym, then refer,
# truncate, and device ioctl.
_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_FILES_LATEST = (1 << 16) - 1
_NETWORK = 0b11
_SCOPES = 0b11


def _call(number: int, *arguments: object) -> int:
    return int(_LIBC.syscall(ctypes.c_long(number), *arguments))


def abi() -> int:
    """The version that the kernel offers; 0 when it offers none."""
    none = ctypes.c_void_p(None)
    version = _call(_CREATE, none, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(version, 0)


class Ruleset:
    """File access rights of a process; made once, and applied by every child.

    Parameters
    ----------
    listable, readable : iterable of str
        Folders whose names may be read, and folders and files that may be read as well.
    devices : iterable of str
        Files that may be read and written.
    """

    def __init__(
        self, listable: Iterable[str], readable: Iterable[str], devices: Iterable[str] = ()
    ) -> None:
        version = abi()
        if version == 0:
            raise Unavailable(
                "the kernel offers no Landlock (Linux 5.13 or newer, with it enabled)"
            )
        self._files = _FILES.get(version, _FILES_LATEST)
        attributes = struct.pack("Q", self._files)
        attributes += struct.pack("Q", _NETWORK) if version >= 4 else b""
        attributes += struct.pack("Q", _SCOPES) if version >= 6 else b""
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        self._rules = _call(_CREATE, buffer, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        if self._rules < 0:
            raise Unavailable("the kernel refused a Landlock rule set")
        os.set_inheritable(self._rules, False)
        for path in listable:
            self._allow(path, _READ_DIR)
        for path in readable:
            self._allow(path, _READ_FILE | _READ_DIR)
        for path in devices:
            self._allow(path, _READ_FILE | _WRITE_FILE)

    def allow_scratch(self, folder: str) -> None:
        """Allow everything in a folder but execution; call it again when its mount is new."""
        self._allow(folder, self._files & ~_EXECUTE)

    def enforce(self) -> None:
        """Restrict this process and its children, for good."""
        zero = ctypes.c_ulong(0)
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)
        if _call(_RESTRICT, ctypes.c_int(self._rules), ctypes.c_uint32(0)) != 0:
            raise Unavailable("the kernel refused to enforce Landlock")
        os.close(self._rules)

    def _allow(self, path: str, access: int) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib is slow to import
            access &= _READ_FILE | _WRITE_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", access, place), 12)
        kind = ctypes.c_int(_PATH_BENEATH)
        _call(_ADD_RULE, ctypes.c_int(self._rules), kind, rule, ctypes.c_uint32(0))
        os.close(place)
