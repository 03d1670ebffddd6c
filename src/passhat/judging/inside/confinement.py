"""Fresh folders for every program, and the rights that a process gives up before it runs one."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import math
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any

from . import new_root, seccomp

_LIBC = ctypes.CDLL(None, use_errno=True)  # looked up once, and not in every child
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl
_PRCTL.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_NEW_MOUNTS, _NEW_USER, _NEW_PIDS = 0x00020000, 0x10000000, 0x20000000
_NEW_NETWORK, _NEW_QUEUES, _SET_INTERFACE = 0x40000000, 0x08000000, 0x8914
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXECUTION = 1, 2, 4, 8
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_MOUNT_SETATTR, _AT_RECURSIVE = 442, 0x8000
_PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 8, 47, 4
_CAPABILITY_VERSION = 0x20080522

_FILE_BYTES = 16 * 1024 * 1024
_OPEN_FILES = 64
_PROCESSES = 64
_MOST_FILES = 2000
_FRESH = ("/tmp", "/dev/shm")
"""What a program may write in; each is a new and empty mount for every program."""


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> bool:
    words = [word.encode() if word else None for word in (source, target, kind)]
    data = options.encode() if options else None
    return bool(_LIBC.mount(*words, ctypes.c_ulong(flags), data) == 0)


def _show_again(path: str, source: str) -> bool:
    """Mount a file or folder at its own path; read-only, as the mount it is on is."""
    steps = path.strip("/").split("/")
    is_folder = os.path.isdir(source)  # noqa: PTH112 - pathlib is slow to import
    folders = steps if is_folder else steps[:-1]
    try:
        for depth in range(2, len(folders) + 1):
            with contextlib.suppress(FileExistsError):
                os.mkdir("/" + "/".join(folders[:depth]), 0o755)  # noqa: PTH102
        if not is_folder:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o444))
    except OSError:
        return False
    return _mount(source, path, "", _BIND)


def _all_read_only() -> bool:
    """Make every mount read-only: data, but also modes, owners and times, of device nodes too."""
    attributes = ctypes.create_string_buffer(struct.pack("4Q", _READ_ONLY, 0, 0, 0), 32)
    result = _LIBC.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(-100),
        b"/",
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(32),
    )
    return bool(result == 0)


def map_user(user: int, group: int) -> None:
    """Keep the ids in a user namespace that this process has just made."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)


class Confinement:
    """Confinement of programs from inside: prepared once, applied to every child.

    ``setup`` is what the judge wants: ``landlock``, ``container`` or ``bubblewrap`` by ``kind``,
    the folders to show, the size of the scratch folder, and ``weak`` where that is allowed.
    """

    def __init__(self, setup: dict[str, Any]) -> None:
        self._setup = setup
        self._kind = setup["kind"]
        self._bytes = setup["scratch_bytes"]
        self.confined = self._kind != "none"
        self._allowed = False
        root = os.geteuid() == 0
        # A user id of its own: limits count no other user's threads, and no file is its own. By
        # chance, as the process id behind bubblewrap is the same in every sandbox.
        suffix = int.from_bytes(os.urandom(3), "big")
        self._uid = 0x60000000 + suffix if root and self.confined else 0
        # An interpreter or a package below /tmp (a checkout there) would vanish under a new /tmp.
        below = [path for path in (*setup["shown"], *setup["granted"]) if path[:5] == "/tmp/"]
        self._shown_again = [(path, f"{new_root.BELOW}{path}") for path in below]
        self.mounted = self.confined and self._prepare_mounts()
        parts = (struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24))
        self._rights = [ctypes.create_string_buffer(part, len(part)) for part in parts]
        self.scratch = _FRESH[0] if self.mounted else setup["scratch"]
        self._base = "" if self.mounted else setup["scratch"]
        self._rules = self._ruleset() if self.confined else None
        self._filter = seccomp.Filter(metadata=self.mounted) if self.confined else None
        self._threads = 0 if root or self.mounted else _threads_of_user()

    # -- once ------------------------------------------------------------------------------------

    def _prepare_mounts(self) -> bool:
        """Whether this process may mount; unshares the host's mounts first if necessary."""
        if self._kind == "landlock":
            # Tried in a child first: a machine may allow the first step and forbid the second.
            if not _works(lambda: self._leave_mounts() and self._make_root(copies=False)):
                return False
            self._leave_mounts()
        if self._setup["runs_programs"] and self._make_root(copies=True):
            return True
        if not self._make_root(copies=False):
            raise seccomp.Unavailable("no root of its own could be mounted")
        return True

    def _make_root(self, *, copies: bool) -> bool:
        for path in _FRESH if self._kind == "container" else ():
            with contextlib.suppress(OSError):
                os.mkdir(path)  # noqa: PTH102 - pathlib is slow to import
        is_new = new_root.enter_root(self._setup, _mount, copies=copies)
        return is_new and _all_read_only() and self._mount_fresh()

    def _leave_mounts(self) -> bool:
        user, group = os.geteuid(), os.getegid()
        flags = _NEW_MOUNTS | (0 if user == 0 else _NEW_USER)
        if _LIBC.unshare(ctypes.c_int(flags)) != 0:
            return False
        if user != 0:
            try:
                map_user(user, group)
            except OSError:
                return False
        return _mount("", "/", "", _RECURSIVE | _PRIVATE)

    def _ruleset(self, *, processes: bool = False) -> _LandlockRules | None:
        setup = self._setup
        if self._kind == "landlock":
            if _landlock_version() < _SAFE_ABI and not setup["weak"]:
                raise seccomp.Unavailable(
                    f"Landlock is of version {_landlock_version()} here, and versions before "
                    f"{_SAFE_ABI} (Linux 6.2) let programs truncate files"
                )
            if os.geteuid() == 0 and not self.mounted and not setup["weak"]:
                raise seccomp.Unavailable(
                    "Landlock alone does not keep root from changing modes, owners and times, and "
                    "this machine forbids mounts of our own"
                )
            if not self.mounted:
                return _LandlockRules(
                    setup["listable"], setup["readable"], setup["devices"], processes=processes
                )
        if not _landlock_version():
            # Where a container has none, the self-test finds that other processes can be seen.
            return None
        visible = [f"/{name}" for name in os.listdir("/") if name != "dev"]  # noqa: PTH208
        return _LandlockRules(
            [], [*visible, *setup["nodes"]], setup["devices"], processes=processes
        )

    # -- before and after every program ----------------------------------------------------------

    def freshen(self) -> None:
        """Give the next program empty folders, with nothing in them or on them of the last one."""
        if self.mounted:
            # A mount takes longer than most programs; one that nothing was done to is still fresh.
            if self._untouched == [_state(path) for path in _FRESH]:
                self._date_fresh()
                if self._allowed:
                    return
            elif not self._mount_fresh():
                raise seccomp.Unavailable("no new scratch folder could be mounted")
        elif self._base:
            import shutil  # only here: whatever is loaded makes every fork slower
            import tempfile

            shutil.rmtree(self.scratch, ignore_errors=True) if self.scratch != self._base else None
            self.scratch = tempfile.mkdtemp(prefix="p", dir=self._base)
        if self._rules is not None:
            for path in _FRESH if self.mounted else [self.scratch] if self._base else []:
                self._rules.allow_scratch(path)
        self._allowed = True

    def _date_fresh(self) -> None:
        """Make whatever is done in the folders show, and hide since when they are there.

        Else the time of the mount would say when the last program ended that wrote something.
        """
        for path in _FRESH:
            os.utime(path, (0, 0))
        self._untouched: list[tuple[int, ...]] = [_state(path) for path in _FRESH]

    def _mount_fresh(self) -> bool:
        self._untouched = []
        flags = _NO_SUID | _NO_DEVICES | _NO_EXECUTION
        options = f"size={self._bytes},nr_inodes={_MOST_FILES},mode=1777"
        for path in _FRESH:
            _LIBC.umount2(path.encode(), ctypes.c_int(_DETACH))
            if not _mount("tmpfs", path, "tmpfs", flags, options):
                return False
        if not all(_show_again(path, place) for path, place in self._shown_again):
            return False
        self._date_fresh()
        return True

    def fork(self) -> int:
        """Fork a child that is the first process of a process-id namespace of its own.

        Its ids, and those of its threads, then say nothing about what ran before it.
        """
        if self.mounted:
            # Back to our own namespace first: that of the last child died with it.
            itself = os.pidfd_open(os.getpid())
            _LIBC.setns(ctypes.c_int(itself), ctypes.c_int(_NEW_PIDS))
            os.close(itself)
            if _LIBC.unshare(ctypes.c_int(_NEW_PIDS)) != 0:
                raise seccomp.Unavailable("no process-id namespace could be made")
        return os.fork()

    def too_much(self) -> bool:
        """Whether a program has filled a scratch folder that has no limit of its own."""
        if self.mounted or not self._base:
            return False
        size = files = 0
        for root, folders, names in os.walk(self.scratch):
            files += len(names) + len(folders)
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118
            if size > self._bytes or files > _MOST_FILES:
                return True
        return False

    def enter(self, job: dict[str, Any]) -> None:
        """Give up everything that a program must not have. In the child, for good."""
        self._apply_limits(job)
        if self.scratch:
            os.chdir(self.scratch)
            os.environ["TMPDIR"] = self.scratch
        if not self.confined:
            return
        if not self.mounted:
            _ignore_refusals(self.scratch)
        rules, calls = self._rules, self._filter
        if job["processes"]:
            self._leave_network()
            rules = self._ruleset(processes=True)
            calls = seccomp.Filter(metadata=True, processes=True)
            for path in _FRESH if rules is not None else ():
                assert rules is not None
                rules.allow_scratch(path)
        self._drop_rights()
        if rules is not None:
            rules.enforce()
        assert calls is not None
        calls.install(os.getpid())

    def _leave_network(self) -> None:
        """Enter a network of one's own, in which there is nothing but the way to oneself."""
        if not self.mounted or _LIBC.unshare(ctypes.c_int(_NEW_NETWORK | _NEW_QUEUES)) != 0:
            raise seccomp.Unavailable("no network namespace could be made")
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, _SET_INTERFACE, struct.pack("16sH14x", b"lo", 1))

    def _drop_rights(self) -> None:
        if self._uid:
            _PRCTL(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
            os.setgroups([])
            os.setresgid(self._uid, self._uid, self._uid)
            os.setresuid(self._uid, self._uid, self._uid)
        _PRCTL(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
        if _LIBC.capset(*self._rights) != 0:
            raise seccomp.Unavailable("the process could not give up its capabilities")

    def _apply_limits(self, job: dict[str, Any]) -> None:
        """Memory, processor time, file size, open files, processes; no core file."""
        _limit(resource.RLIMIT_AS, int(job["memory"]))
        # The fork server judges by the processor clock; this is for the day it cannot.
        _limit(resource.RLIMIT_CPU, math.ceil(job["cpu"]) + 2)
        _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
        _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
        _limit(resource.RLIMIT_CORE, 0)
        if self.confined:
            # Counts threads of the user id, which is this sandbox's own but for plain Landlock.
            _limit(resource.RLIMIT_NPROC, _PROCESSES + self._threads)


def _state(folder: str) -> tuple[int, ...]:
    """Everything that a program leaves on a mount, even by a file that it has removed again."""
    state, space = os.stat(folder), os.statvfs(folder)  # noqa: PTH116
    return (
        *(state.st_dev, state.st_mode, state.st_uid, state.st_gid, state.st_nlink),
        *(state.st_size, state.st_atime_ns, state.st_mtime_ns, state.st_ctime_ns),
        *(space.f_bfree, space.f_ffree),
    )


def _ignore_refusals(scratch: str) -> None:
    """Let a program go on that changes mode or times of its own files, as shutil.copy does.

    Where mounts are forbidden the filter refuses these calls for all files.
    """
    for name in ("chmod", "utime"):
        setattr(os, name, _forgiving(getattr(os, name), scratch))


def _forgiving(call: Callable[..., None], scratch: str) -> Callable[..., None]:
    def result(path: Any, *arguments: Any, **named: Any) -> None:
        try:
            call(path, *arguments, **named)
        except PermissionError:
            if isinstance(path, int) or not os.path.realpath(path).startswith(scratch):
                raise

    return result


def _works(attempt: Callable[[], bool]) -> bool:
    """Whether something works, tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        success = False
        try:
            success = attempt()
        finally:
            os._exit(0 if success else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def _threads_of_user() -> int:
    """Threads that the user has already, where a limit counts them too."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():  # noqa: PTH116
                    count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
    return count


# -- Landlock: reading below a few folders, writing below fewer, without any privilege -------------

_SAFE_ABI = 3
"""Older versions (before Linux 6.2) cannot forbid a program to truncate files."""

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


def _landlock_version() -> int:
    """The version that the kernel offers; 0 when it offers none."""
    none = ctypes.c_void_p(None)
    version = _call(_CREATE, none, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(version, 0)


class _LandlockRules:
    """File access rights of a process; made once, and applied by every child.

    Names in ``listable`` folders may be read, ``readable`` folders and files as well, ``devices``
    read and written. With ``processes`` what may be read may be executed, in a network of the
    process's own; ``network`` leaves TCP open, by default where there are ``processes``.
    """

    def __init__(
        self,
        listable: Iterable[str],
        readable: Iterable[str],
        devices: Iterable[str] = (),
        *,
        processes: bool = False,
        network: bool | None = None,
    ) -> None:
        version = _landlock_version()
        if version == 0:
            raise seccomp.Unavailable(
                "the kernel offers no Landlock (Linux 5.13 or newer, with it enabled)"
            )
        self._files = _FILES.get(version, _FILES_LATEST)
        attributes = struct.pack("Q", self._files)
        has_network = processes if network is None else network
        attributes += struct.pack("Q", 0 if has_network else _NETWORK) if version >= 4 else b""
        attributes += struct.pack("Q", _SCOPES) if version >= 6 else b""
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        self._rules = _call(_CREATE, buffer, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        if self._rules < 0:
            raise seccomp.Unavailable("the kernel refused a Landlock rule set")
        os.set_inheritable(self._rules, False)
        for path in listable:
            self._allow(path, _READ_DIR)
        for path in readable:
            self._allow(path, _READ_FILE | _READ_DIR | (_EXECUTE if processes else 0))
        for path in devices:
            self._allow(path, _READ_FILE | _WRITE_FILE)

    def allow_scratch(self, folder: str) -> None:
        """Allow everything in a folder but execution; call it again when its mount is new."""
        self._allow(folder, self._files & ~_EXECUTE)

    def enforce(self) -> None:
        """Restrict this process and its children, for good."""
        _PRCTL(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _call(_RESTRICT, ctypes.c_int(self._rules), ctypes.c_uint32(0)) != 0:
            raise seccomp.Unavailable("the kernel refused to enforce Landlock")
        os.close(self._rules)

    def _allow(self, path: str, access: int) -> None:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib is slow to import
            access &= _READ_FILE | _WRITE_FILE | _EXECUTE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", access, place), 12)
        kind = ctypes.c_int(_PATH_BENEATH)
        _call(_ADD_RULE, ctypes.c_int(self._rules), kind, rule, ctypes.c_uint32(0))
        os.close(place)


class FolderRules(_LandlockRules):
    """Rights of a command that may run programs and write below a few folders.

    ``forbids_network`` says whether it is kept from TCP as well.
    """

    def __init__(
        self,
        readable: Iterable[str],
        writable: Iterable[str],
        devices: Iterable[str],
        *,
        network: bool,
    ) -> None:
        version = _landlock_version()
        if 0 < version < _SAFE_ABI:
            raise seccomp.Unavailable(
                f"Landlock is of version {version} here, and versions before {_SAFE_ABI} "
                "(Linux 6.2) let programs truncate files"
            )
        self.forbids_network = version >= 4 and not network
        super().__init__([], readable, devices, processes=True, network=network)
        for path in writable:
            self._allow(path, self._files)
