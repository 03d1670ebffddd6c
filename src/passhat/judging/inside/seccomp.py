"""A seccomp filter, assembled by hand: the system calls that a program may make.

The list says what is allowed; everything else fails with EPERM. There is no fork, no exec and no
socket in it, and a process may signal and limit only itself: the fork server beside it has the
same user id, and must survive it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct


class Unavailable(Exception):
    """The machine lacks a feature; the message names it."""


_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "arm64": (0xC00000B7, 1)}

# name: (number on x86_64, number on aarch64); None where the machine has no such call.
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    # reading, writing, looking at files
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None),
    "fstat": (5, 80), "lstat": (6, None), "lseek": (8, 62), "pread64": (17, 67),
    "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "access": (21, None),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "fsync": (74, 82),
    "fdatasync": (75, 83), "ftruncate": (77, 46), "getdents64": (217, 61),
    "fallocate": (285, 47), "sendfile": (40, 71),
    "copy_file_range": (326, 285), "link": (86, None), "linkat": (265, 37),
    "symlink": (88, None), "symlinkat": (266, 36),
    "getcwd": (79, 17), "chdir": (80, 49), "rename": (82, None), "mkdir": (83, None),
    "rmdir": (84, None), "unlink": (87, None), "readlink": (89, None), "umask": (95, 166),
    "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35), "renameat": (264, 38),
    "renameat2": (316, 276), "readlinkat": (267, 78), "faccessat": (269, 48),
    "faccessat2": (439, 439), "statfs": (137, 43),
    "fstatfs": (138, 44), "close_range": (436, 436),
    # waiting
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None),
    "epoll_pwait": (281, 22), "eventfd2": (290, 19), "pipe": (22, None), "pipe2": (293, 59),
    "pause": (34, None), "nanosleep": (35, 101), "clock_nanosleep": (230, 115),
    # memory
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "mremap": (25, 216), "madvise": (28, 233), "membarrier": (324, 283),
    # threads and signals of one's own
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "getitimer": (36, 102), "setitimer": (38, 103),
    "alarm": (37, None), "futex": (202, 98), "set_robust_list": (273, 99),
    "set_tid_address": (218, 96), "rseq": (334, 293), "sched_yield": (24, 124),
    "exit": (60, 93), "exit_group": (231, 94), "restart_syscall": (219, 128),
    "arch_prctl": (158, None),
    # questions about oneself, the clock and chance
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158),
    "getresuid": (118, 148), "getresgid": (120, 150), "getpgid": (121, 155), "getsid": (124, 156),
    "getpgrp": (111, None), "uname": (63, 160), "times": (100, 153),
    "getrusage": (98, 165), "getrlimit": (97, 163), "getpriority": (140, 141),
    "sched_getaffinity": (204, 123), "getcpu": (309, 168), "time": (201, None),
    "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "getrandom": (318, 278),
    # both ends of a connection of one's own, which an event loop wakes itself by
    "sendto": (44, 206), "recvfrom": (45, 207), "shutdown": (48, 210), "getsockname": (51, 204),
    "getpeername": (52, 205),
}  # fmt: skip

# Allowed where all that a program can reach but its own folders is mounted read-only: Landlock
# does not know of modes and times.
_METADATA: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "truncate": (76, 45),
}  # fmt: skip
# Allowed in namespaces of the program's own: other processes, and connections between them.
_PROCESSES: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "wait4": (61, 260),
    "waitid": (247, 95), "kill": (62, 129), "tgkill": (234, 131), "setpgid": (109, 154),
    "setsid": (112, 157), "socketpair": (53, 199), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "connect": (42, 203), "sendmsg": (46, 211),
    "recvmsg": (47, 212),
}  # fmt: skip
_FAMILIES = (1, 2, 10)
"""Local sockets and those of the internet, which in a network of one's own is oneself."""
_CLONE_NAMESPACES, _CLONE_PIDFD = 0x7E020080, 0x1000
"""A pidfd, like some options of sockets, has a number that counts what the machine ever started."""
_COUNTING_OPTIONS = 40
"""From here on: SO_COOKIE, SO_NETNS_COOKIE, SO_PASSPIDFD, SO_PEERPIDFD."""
_NO_ATTRIBUTES = (range(188, 200), range(5, 17))
"""Extended attributes, by machine: not supported, as on many file systems."""
_SOCKET_TYPES = (0x1, 0x801, 0x80001, 0x80801)
"""Streams only: an unconnected datagram socket could reach the sockets of others by name."""
_LIMIT_STACK = 3
_UNNAMED_FILE = 0o20000000
"""O_TMPFILE: a file that leaves no trace on its folder but the number of the next one."""
_UNIQUE_MOUNT = 0x4000
"""STATX_MNT_ID_UNIQUE: a number that the kernel counts for all mounts since it was started."""

_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
"""Duplicate, flags. Not F_SETOWN: it makes the kernel signal any process one names."""
_LOCK_COMMANDS = (6, 7, 37, 38)
"""Set a lock, and wait for one. Granted without effect, as is flock: another program could see a
lock on a file that both can read, and SQLite only needs to be told that it has its own."""
_IOCTL_COMMANDS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Is it a terminal, its size, bytes to read, non-blocking, close-on-exec. Not FIOSETOWN."""
_CLONE_THREAD = 0x00010000

_LOAD, _EQUAL, _AT_LEAST, _SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_PLACEHOLDER = 0x7A5AFE01
"""Stands for the process id until it is known; no process can have it."""

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2


def _code(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def _refuse(number: int) -> bytes:
    return _code(_RETURN, _ERRNO | number)


def _if_argument(
    call: int,
    position: int,
    test: int,
    values: tuple[int, ...],
    ignored: tuple[int, ...] = (),
    flag: int = 0,
) -> bytes:
    """Allow the call when its argument equals a value (or has the bits of one) in its low word.

    With one of the ``ignored`` values the call succeeds and does nothing; never with the flag.
    """
    body = _code(_LOAD, _ARGUMENTS_AT + 8 * position)
    body += _code(_SET, flag, 0, 1) + _refuse(errno.EPERM)
    for value in ignored:
        body += _code(_EQUAL, value, 0, 1) + _refuse(0)
    for value in values:
        body += _code(test, value, 0, 1) + _code(_RETURN, _ALLOW)
    body += _refuse(errno.EPERM)
    return _code(_EQUAL, call, 0, len(body) // 8) + body


def _signal_to_self(call: int, position: int, pid: int) -> bytes:
    """Allow a signal to oneself, but not SIGKILL: a SIGKILL then came from outside."""
    body = _code(_LOAD, _ARGUMENTS_AT + 8 * position)
    body += _code(_EQUAL, 9, 0, 1) + _refuse(errno.EPERM)
    body += _code(_LOAD, _ARGUMENTS_AT)
    body += _code(_EQUAL, pid, 0, 1) + _code(_RETURN, _ALLOW) + _refuse(errno.EPERM)
    return _code(_EQUAL, call, 0, len(body) // 8) + body


def _unless(call: int, position: int, flag: int, test: int = _SET) -> bytes:
    """Allow the call unless its argument has a bit; then it is not supported."""
    body = _code(_LOAD, _ARGUMENTS_AT + 8 * position)
    body += _code(test, flag, 0, 1) + _refuse(errno.EOPNOTSUPP) + _code(_RETURN, _ALLOW)
    return _code(_EQUAL, call, 0, len(body) // 8) + body


def _if_both(call: int, first: tuple[int, int], second: tuple[int, tuple[int, ...]]) -> bytes:
    """Allow the call when one argument equals a value and another equals one of some values."""
    position, value = first
    at, values = second
    inner = _code(_LOAD, _ARGUMENTS_AT + 8 * at)
    for allowance in values:
        inner += _code(_EQUAL, allowance, 0, 1) + _code(_RETURN, _ALLOW)
    body = _code(_LOAD, _ARGUMENTS_AT + 8 * position)
    body += _code(_EQUAL, value, 0, len(inner) // 8) + inner + _refuse(errno.EPERM)
    return _code(_EQUAL, call, 0, len(body) // 8) + body


def _limits_of_self(call: int, pid: int) -> bytes:
    """Allow to read one's own limits, and to set that of the stack.

    A process that lowers its processor time would be killed by the kernel as if from outside.
    """
    body = b""
    for own in (0, pid):
        allowance = _code(_LOAD, _ARGUMENTS_AT + 8)
        allowance += _code(_EQUAL, _LIMIT_STACK, 0, 1) + _code(_RETURN, _ALLOW)
        for word in (0, 4):  # both halves of the address of the new limit, which must be none
            allowance += _code(_LOAD, _ARGUMENTS_AT + 16 + word)
            allowance += _code(_EQUAL, 0, 1, 0) + _refuse(errno.EPERM)
        allowance += _code(_RETURN, _ALLOW)
        body += _code(_LOAD, _ARGUMENTS_AT) + _code(_EQUAL, own, 0, len(allowance) // 8) + allowance
    body += _refuse(errno.EPERM)
    return _code(_EQUAL, call, 0, len(body) // 8) + body


def program_for(
    pid: int, machine: str | None = None, *, metadata: bool = False, processes: bool = False
) -> bytes:
    """The filter for a process with this id.

    With ``metadata`` it may change modes and times. With ``processes``, in namespaces of its own,
    it may start others and connect to them.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        raise Unavailable(f"no list of system calls for the machine {machine!r}")
    architecture, column = _ARCHITECTURES[machine]
    x86 = column == 0
    code = _code(_LOAD, _ARCHITECTURE_AT)
    code += _code(_EQUAL, architecture, 1, 0) + _code(_RETURN, _KILL)
    code += _code(_LOAD, _NUMBER_AT)
    groups = (_ALLOWED, *([_METADATA] if metadata else []), *([_PROCESSES] if processes else []))
    for numbers in (numbers for group in groups for numbers in group.values()):
        number = numbers[column]
        if number is not None:
            code += _code(_EQUAL, number, 0, 1) + _code(_RETURN, _ALLOW)
    # flock, and fadvise64, which could drop a file that others read from the kernel's memory
    for ignored in (73, 221) if x86 else (32, 223):
        code += _code(_EQUAL, ignored, 0, 1) + _refuse(0)
    code += _unless(257 if x86 else 56, 2, _UNNAMED_FILE)
    code += _unless(2, 1, _UNNAMED_FILE) if x86 else b""
    code += _unless(332 if x86 else 291, 3, _UNIQUE_MOUNT)
    code += _if_argument(72 if x86 else 25, 1, _EQUAL, _FCNTL_COMMANDS, _LOCK_COMMANDS)
    code += _if_argument(16 if x86 else 29, 1, _EQUAL, _IOCTL_COMMANDS)
    if processes:
        code += _unless(56 if x86 else 220, 0, _CLONE_NAMESPACES | _CLONE_PIDFD)
        code += _unless(54 if x86 else 208, 2, _COUNTING_OPTIONS, _AT_LEAST)
        code += _if_argument(41 if x86 else 198, 0, _EQUAL, _FAMILIES)
    code += _if_argument(56 if x86 else 220, 0, _SET, (_CLONE_THREAD,), flag=_CLONE_PIDFD)
    code += _unless(55 if x86 else 209, 2, _COUNTING_OPTIONS, _AT_LEAST)
    code += _signal_to_self(62 if x86 else 129, 1, pid)
    code += _signal_to_self(234 if x86 else 131, 2, pid)
    code += _limits_of_self(302 if x86 else 261, pid)
    code += _if_both(53 if x86 else 199, (0, 1), (1, _SOCKET_TYPES))
    for number in _NO_ATTRIBUTES[column]:
        code += _code(_EQUAL, number, 0, 1) + _refuse(errno.ENOTSUP)
    # Without clone3 the C library falls back to clone, whose flags can be looked at.
    code += _code(_EQUAL, 435, 0, 1) + _refuse(errno.ENOSYS)
    return code + _refuse(errno.EPERM)


# Calls by which a process reads or writes another's memory, or takes its open files.
_FOREIGN_MEMORY = {
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "perf_event_open": (298, 241), "process_madvise": (440, 440),
}  # fmt: skip
_PTRACE = (101, 117)
_PTRACE_ATTACH, _PTRACE_SEIZE = 16, 0x4206
_X32 = 0x40000000


def guard_memory(machine: str | None = None) -> bytes:
    """A filter that allows everything but a look into another process, or a change there.

    A debugger can still start a program of its own, which asks to be traced.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        raise Unavailable(f"no list of system calls for the machine {machine!r}")
    architecture, column = _ARCHITECTURES[machine]
    code = _code(_LOAD, _ARCHITECTURE_AT)
    # Calls of a 32-bit program have other numbers: they are not supported.
    code += _code(_EQUAL, architecture, 1, 0) + _refuse(errno.ENOSYS)
    code += _code(_LOAD, _NUMBER_AT)
    code += _code(_AT_LEAST, _X32, 0, 1) + _refuse(errno.ENOSYS)
    for numbers in _FOREIGN_MEMORY.values():
        code += _code(_EQUAL, numbers[column], 0, 1) + _refuse(errno.EPERM)
    body = _code(_LOAD, _ARGUMENTS_AT)
    for request in (_PTRACE_ATTACH, _PTRACE_SEIZE):
        body += _code(_EQUAL, request, 0, 1) + _refuse(errno.EPERM)
    body += _code(_RETURN, _ALLOW)
    code += _code(_EQUAL, _PTRACE[column], 0, len(body) // 8) + body
    return code + _code(_RETURN, _ALLOW)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class Filter:
    """The filter, assembled once; a child puts it on with its own id filled in."""

    def __init__(
        self, code: bytes = b"", *, metadata: bool = False, processes: bool = False
    ) -> None:
        code = code or program_for(_PLACEHOLDER, metadata=metadata, processes=processes)
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        self._prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        self._buffer = ctypes.create_string_buffer(code, len(code))
        address = ctypes.addressof(self._buffer)
        self._program = _Program(len(code) // 8, address)
        mark = struct.pack("I", _PLACEHOLDER)
        self._places = [at + 4 for at in range(0, len(code), 8) if code[at + 4 : at + 8] == mark]

    def install(self, pid: int) -> None:
        """Put the filter on the calling process, whose id this is, for good."""
        for place in self._places:
            struct.pack_into("I", self._buffer, place, pid)
        self._prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        program = ctypes.addressof(self._program)
        if self._prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise Unavailable(f"the kernel refused the seccomp filter: {reason}")
