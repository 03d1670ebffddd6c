"""The self-test of sandboxes, and the choice of a sandbox that passes it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passhat._serialize import Plain
from passhat.errors import SandboxUnavailable
from passhat.judging.commands import DEVICES, engine_problem
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import SandboxFault
from passhat.judging.sandbox_kinds import (
    TRIED,
    Container,
    JudgeRules,
    ProgramLimits,
    SandboxSpec,
)
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import FailureCategory, Verdict

ATTACKS = {
    "read_file": "read a file of the host",
    "write_file": "write beside it",
    "environment": "read an environment variable of the host",
    "processes": "see other processes",
    "connect": "connect to a port of the host",
    "fork": "start a process",
    "execute": "replace itself with another program",
    "kill": "signal the process that started it",
    "limit": "change the limits of the process that started it",
    "packages": "read installed packages",
    "mode": "change the mode of a file of the host",
    "owner": "change its owner",
    "times": "change its times",
    "size": "truncate it",
    "attributes": "set its extended attributes",
    "device_mode": "change the mode or the times of a device",
    "device_data": "write to a device that is for reading",
    "threads": "start any number of threads",
    "rights": "keep the rights of root",
    "note": "leave a note for the next program",
    "namespaces": "make a namespace in which it has all rights",
    "swarm": "start any number of processes",
}
"""The attacks of the self-test, in words. Every one must fail."""

_OPEN = ("fork", "execute", "ports")
"""What a program may do that gets namespaces of its own, where everything else is tried again."""

CHANNELS = {
    "counter": "the numbers of processes and threads",
    "locks": "locks on files of the library",
    "load": "the load of the machine",
    "queues": "message queues, keyrings or shared memory of the kernel",
    "ports": "sockets with a port or a name",
    "kernel": "boot id, uptime, entropy and other numbers of the kernel",
    "cache": "the question which pages of a file are in memory",
    "mounts": "the numbers of mounts",
    "lookups": "the time to look up a name, which is shorter the second time",
    "sockets": "the numbers of its sockets",
    "pipes": "the numbers of its pipes, which the kernel counts for all",
    "clock": "the clock",
}
"""Ways in which a program could tell another something, if the sandbox left them open.

They matter less than the attacks: split comes first, so that nothing is to be told about the tests
but which answers of an earlier attempt were wrong. No sandbox closes the last two, and none closes
lookups where too much would have to be copied into memory. Programs of a batch are judged in an
order that none of them knows, so that pipes and the clock say little.
"""

_THREADS = 1000
_SIMPLE = {
    "read_file": 'open(facts["secret"]).read()',
    "write_file": 'open(facts["secret"] + ".new", "w").write("x")',
    "connect": 'socket.create_connection(("127.0.0.1", facts["port"]), 2)',
    "fork": "os.fork() or os._exit(0)",
    "execute": 'os.execv(facts["python"], [facts["python"], "-c", ""])',
    "kill": "os.kill(os.getppid() or 1 << 20, 0)",
    "limit": "resource.prlimit(os.getppid() or 2, resource.RLIMIT_NOFILE)",
    "mode": 'some_of([(os.chmod, path, 0o666) for path in facts["targets"]])',
    "owner": 'some_of([(os.chown, path, os.getuid(), os.getgid()) for path in facts["targets"]])',
    "size": 'some_of([(os.truncate, path, 0) for path in facts["targets"]])',
    "attributes": 'some_of([(os.setxattr, path, "user.x", b"1") for path in facts["targets"]])',
    "device_data": 'some_of([(os.open, path, 1) for path in facts["devices"][1:]])',
    "packages": 'some_of([(open, path) for path in facts["installed"]])',
    "clock": "time.time()",
}
"""Attacks of one expression. The first process of a namespace has no parent that it could name, so
it asks about another: 0 would be itself. The first device, /dev/null, is there to be written."""
_PROBE = r"""
import os, resource, socket, time
def environment(facts):
    places = ["/proc/self/environ", *["/proc/%d/environ" % pid for pid in range(1, 4)]]
    found = "".join(os.environ.values())
    for place in places:
        try:
            found += open(place).read()
        except OSError:
            pass
    if facts["variable"] not in found:
        raise OSError
def processes(facts):
    if not [name for name in os.listdir("/proc") if name.isdigit()]:
        raise OSError
def some_of(calls):
    for function, *arguments in calls:
        try:
            function(*arguments)
            return
        except (OSError, RuntimeError):
            pass
    raise OSError
def times(facts):
    some_of([(os.utime, path, *given) for path in facts["targets"] for given in ((), ((1, 1),))])
def device_mode(facts):
    some_of([call for path in facts["devices"] for call in (
        (os.chmod, path, 0o666), (os.utime, path), (os.utime, path, (1, 1)),
    )])
def threads(facts):
    import threading
    stop = threading.Event()
    threading.stack_size(1 << 18)  # else the limit of memory is met before that of threads
    try:
        for _ in range(facts["threads"]):
            threading.Thread(target=stop.wait, daemon=True).start()
    except RuntimeError:
        raise OSError
    finally:
        stop.set()
def rights(facts):
    if os.getuid() and os.geteuid():
        raise OSError
def note(facts):
    for place in facts["places"]:
        for leave in (
            lambda: open(place + "/" + facts["token"], "w").close(),
            lambda: os.utime(place, (facts["moment"], facts["moment"])),
            lambda: os.chmod(place, 0o1765),
            lambda: os.setxattr(place, "user." + facts["token"], b"1"),
        ):
            try:
                leave()
            except (OSError, ValueError):
                pass
    raise OSError
def namespaces(facts):
    import ctypes
    call = ctypes.CDLL(None).syscall
    clone = {"x86_64": 56}.get(os.uname().machine, 220)
    for number, flags in ((clone, 0x10000000 | 17), (97 if clone == 220 else 272, 0x10000000)):
        child = call(number, flags, 0, 0, 0, 0)
        if child == 0 and number == clone:
            os._exit(0)
        if child >= 0:
            return
    raise OSError
def swarm(facts):
    import signal
    for _ in range(facts["threads"]):
        if os.fork() == 0:
            signal.pause()
            os._exit(0)
def counter(facts):
    # The first of a namespace of its own, and so are the numbers of its threads; not of pidfds.
    if os.getpid() == 1:
        os.pidfd_open(1)
def sockets(facts):
    one = socket.socketpair()[0]
    some_of([(one.getsockopt, socket.SOL_SOCKET, cookie, 8) for cookie in (57, 71)])
def locks(facts):
    import fcntl
    for lock in (fcntl.flock, fcntl.lockf):
        one, other = open(os.__file__), open(os.__file__)
        lock(one, fcntl.LOCK_SH)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    fcntl.fcntl(one, fcntl.F_GETLK, bytes(32))
def load(facts):
    import ctypes
    if ctypes.CDLL(None).sysinfo(ctypes.create_string_buffer(256)) != 0:
        os.getloadavg()
def queues(facts):
    import ctypes
    libc = ctypes.CDLL(None)
    calls = [(libc.msgget, 1, 0o1666), (libc.shmget, 1, 64, 0o1666), (libc.semget, 1, 1, 0o1666)]
    keyctl = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine, 219)
    mq_open = {"x86_64": 240, "aarch64": 180}.get(os.uname().machine, 180)
    calls += [(libc.syscall, keyctl, 0, -4, 1), (libc.syscall, mq_open, b"q", 0o102, 0o666, None)]
    if all(function(*arguments) == -1 for function, *arguments in calls):
        raise OSError
def ports(facts):
    some_of([(bind, kind, name) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)
             for name in (("127.0.0.1", 0), "\0passhat", "/tmp/socket")])
def bind(kind, name):
    family = socket.AF_UNIX if isinstance(name, str) else socket.AF_INET
    socket.socket(family, kind).bind(name)
def kernel(facts):
    import fcntl
    names = "sys/kernel/random/boot_id sys/kernel/random/entropy_avail uptime stat self/stat locks"
    calls = [(open, "/proc/" + name) for name in names.split()]
    some_of([*calls, (lambda: fcntl.ioctl(open("/dev/random"), 0x80045200, bytes(4)),)])
def cache(facts):
    import ctypes, mmap
    libc, size = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
    libc.mmap.restype = ctypes.c_void_p
    page = ctypes.c_void_p(libc.mmap(None, size, 1, 1, open(os.__file__).fileno(), 0))
    if libc.mincore(page, size, ctypes.create_string_buffer(1)) == -1:
        raise OSError
def mounts(facts):
    import ctypes
    answer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).statx(-100, b"/tmp", 0, 0x4000, answer) == 0:
        if int.from_bytes(answer.raw[:4], "little") & 0x4000:
            return
    raise OSError
def lookups(facts):
    # What is in memory alone keeps no record of names that it lacks; a disk does.
    import ctypes
    answer = ctypes.create_string_buffer(256)
    for path in ("/", "/dev", os.path.expanduser("~"), os.getcwd(), os.__file__, facts["python"]):
        if ctypes.CDLL(None).statfs(path.encode(), answer) == 0:
            if int.from_bytes(answer.raw[:4], "little") != 0x01021994:
                return
    raise OSError
def pipes(facts):
    first, second = os.fstat(os.pipe()[0]).st_ino, os.fstat(os.pipe()[0]).st_ino
    if first == second:
        raise OSError
def probe(facts):
    through = []
    for attack in facts["attacks"]:
        try:
            globals()[attack](facts)
        except OSError:
            continue
        through.append(attack)
    return through
def found(facts):
    for place in facts["places"]:
        try:
            state = os.stat(place)
        except OSError:
            continue
        if int(state.st_mtime) == facts["moment"] or state.st_mode & 0o7777 == 0o1765:
            return ["note"]
        try:
            if facts["token"] in os.listdir(place) or os.listxattr(place):
                return ["note"]
        except OSError:
            pass
    return []
""" + "".join(f"def {name}(facts): {code}\n" for name, code in _SIMPLE.items())


def breaches(kind: SandboxSpec, interpreter: Interpreter, *, allow_weak: bool = False) -> list[str]:
    """The attacks that got through; raises SandboxFault when the sandbox does not even start."""
    limits = ProgramLimits(cpu_seconds=5)
    examiner = Examiner(kind, interpreter, limits, JudgeRules("split", allow_weak=allow_weak))
    try:
        examiner.start()
        with _bait(interpreter) as facts:
            through = _run_attack(examiner, "probe", facts)
            if examiner.programs.has_namespaces:
                examiner.open_at_once = True
                facts["attacks"] = [*(ATTACKS.keys() | CHANNELS.keys()) - set(_OPEN)]
                facts["attacks"].sort(key="swarm".__eq__)  # last: it leaves no room for threads
                through += _run_attack(examiner, "probe", facts)
            through += _run_attack(examiner, "found", facts)
            return list(dict.fromkeys(through))
    finally:
        examiner.close()


def _run_attack(examiner: Examiner, probe: str, facts: dict[str, Any]) -> list[str]:
    tests = f"through = {probe}({facts!r})\nassert not through, ','.join(through)"
    verdict = examiner.judge(CodeTask("canary", entry_point=probe, tests=tests), _PROBE)
    if verdict.verdict is Verdict.PASSED:
        return []
    if verdict.why == FailureCategory.WRONG_ANSWER and verdict.detail:
        return verdict.detail.split(",")
    raise SandboxFault(f"the self-test ended {verdict.verdict} ({verdict.why}): {verdict.detail}")


@contextmanager
def _bait(interpreter: Interpreter) -> Iterator[dict[str, Any]]:
    """A secret file, a variable in our environment and an open port, gone afterwards."""
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="passhat-") as folder, socket.socket() as listener:
        secret = Path(folder) / "secret"
        secret.write_text(token)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        hidden = (*interpreter.hidden, *interpreter.granted_roots)
        visible = tuple(f"{granted.path}" for granted in interpreter.granted)
        package_files = [
            path
            for folder in hidden
            for path in Path(folder).glob("*/*.py")
            if not str(path).startswith(visible or ("\0",))
        ]
        yield json.loads(
            json.dumps(
                {
                    "secret": str(secret),
                    # A variable that any process has; a token set now would not be in /proc.
                    "token": token,
                    "variable": os.environ.get("PATH", token),
                    "port": listener.getsockname()[1],
                    "python": interpreter.executable,
                    "installed": [str(path) for path in package_files[:50]],
                    "attacks": [*ATTACKS, *CHANNELS],
                    "targets": [str(secret), str(Path(folder)), os.__file__],
                    "devices": list(DEVICES),
                    "threads": _THREADS,
                    "places": ["/", "/tmp", "/dev", "/dev/shm", "/var/tmp", "/run", *DEVICES],
                    "moment": 1_000_000_000 + secrets.randbelow(10**8),
                }
            )
        )


_HINT = (
    "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap) and allow user namespaces "
    "(sysctl user.max_user_namespaces; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), "
    "or use Linux 6.2 or newer with Landlock. `passhat sandbox check` shows what is there. "
    "Only for programs you trust: --set allow_weak_sandbox=yes, or --sandbox none."
)
_CONTAINER_HINT = (
    "The engine must run here, the image must hold Python 3.9 or newer and a libc with "
    "memfd_create, and the kernel must offer Landlock (Linux 5.13 or newer). Without an image: "
    "--sandbox auto uses bubblewrap or Landlock."
)


@dataclass(frozen=True, slots=True)
class Finding(Plain):
    """Result of the self-test for a kind of sandbox on this machine.

    ``through`` are the attacks that were not held, ``channels`` the ways that are open from one
    program to another; ``problem`` is why it could not be tried.
    """

    kind: SandboxSpec
    through: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    problem: str = ""

    @property
    def holds(self) -> bool:
        return not self.problem and not self.through

    def __str__(self) -> str:
        if self.problem:
            return f"{self.kind}: not available ({self.problem})"
        if self.through:
            words = "; ".join(ATTACKS.get(attack, attack) for attack in self.through)
            return f"{self.kind}: NOT SAFE, a program could {words}"
        closed = len(CHANNELS) - len(self.channels)
        ways = ", ".join(CHANNELS[name] for name in self.channels)
        return (
            f"{self.kind}: holds all {len(ATTACKS)} attacks of the self-test and closes {closed} "
            f"of {len(CHANNELS)} channels between programs (open: {ways or 'none'})"
        )

    def _as_dict(self) -> dict[str, object]:
        return {
            "kind": str(self.kind),
            "holds": self.holds,
            "through": list(self.through),
            "channels": list(self.channels),
            "problem": self.problem or None,
        }


def examine_machine(
    interpreter: Interpreter, kind: SandboxSpec, *, allow_weak: bool = False
) -> Finding:
    """Try one kind of sandbox with the self-test."""
    program = None if isinstance(kind, Container) else kind.program
    if program is not None and shutil.which(program) is None:
        return Finding(kind, problem=f"the command {program} is not installed")
    if isinstance(kind, Container) and (problem := engine_problem(kind)):
        return Finding(kind, problem=problem)
    try:
        open_ways = breaches(kind, interpreter, allow_weak=allow_weak)
        channels = tuple(name for name in open_ways if name in CHANNELS)
        return Finding(kind, tuple(name for name in open_ways if name not in CHANNELS), channels)
    except SandboxFault as error:
        return Finding(kind, problem=str(error).strip().splitlines()[-1][:300])


def choose_sandbox(
    interpreter: Interpreter, only: SandboxSpec | None = None, *, allow_weak: bool = False
) -> SandboxSpec:
    """The first kind that withstands the self-test, in the order of ``TRIED``.

    With ``allow_weak``, where none does, the first that starts at all.

    Raises
    ------
    SandboxUnavailable
        When there is none. Comes before any program is run.
    """
    kinds: list[SandboxSpec] = [only] if only else [*TRIED]
    findings = []
    for kind in kinds:
        finding = examine_machine(interpreter, kind, allow_weak=allow_weak)
        if finding.holds:
            return kind
        findings.append(finding)
    startable = [finding.kind for finding in findings if not finding.problem]
    if allow_weak and startable:
        return startable[0]
    raise SandboxUnavailable(
        f"no sandbox holds on this machine: {'; '.join(map(str, findings))}.",
        hint=_CONTAINER_HINT if isinstance(only, Container) else _HINT,
    )
