"""What the walls of the sandbox are made of: filters, command lines, and calls of the system.

``walls.json`` has every instruction, word and call, with nothing of it carried out. The tests in a
sandbox say that the walls hold; this one says that each stone is where it was.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kept_results import check_results
from passhat.judging import commands
from passhat.judging.inside import confinement, new_root, seccomp
from passhat.judging.inside.confinement import Confinement, FolderRules
from passhat.judging.sandbox_kinds import Container, ProgramLimits

SETUP: dict[str, Any] = {
    "scratch_bytes": 4096,
    "shown": ["/usr", "/tmp/python"],
    "granted": ["/tmp/packages/one.py"],
    "hidden": ["/usr/hidden"],
    "nodes": ["/dev/null"],
    "devices": ["/dev/null"],
    "listable": ["/"],
    "readable": ["/usr"],
    "scratch": "",
    "weak": False,
    "runs_programs": True,
}


def _filters() -> dict[str, object]:
    programs: dict[str, bytes] = {}
    for machine in ("x86_64", "aarch64"):
        programs[machine] = seccomp.program_for(1234, machine)
        programs[f"{machine}, metadata"] = seccomp.program_for(1234, machine, metadata=True)
        programs[f"{machine}, all"] = seccomp.program_for(
            1234, machine, metadata=True, processes=True
        )
        programs[f"{machine}, memory"] = seccomp.guard_memory(machine)
    return {
        f"filter of {name}": "; ".join(
            " ".join(map(str, step)) for step in struct.iter_unpack("HBBI", code)
        )
        for name, code in programs.items()
    }


def _commands(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    words: dict[str, object] = {}
    monkeypatch.setattr(commands, "plain_command", lambda _: ["PLAIN"])
    interpreter: Any = None
    for user in (0, 1000):
        monkeypatch.setattr("passhat.judging.commands.os.geteuid", lambda user=user: user)
        words[f"bubblewrap of user {user}"] = commands.bubblewrap_command(interpreter)
    for engine in ("docker", "podman"):
        container = Container(engine, "image", "python3")
        command = commands.container_command(container, ProgramLimits(), "name")
        words[engine] = [word for word in command if word != commands._BOOT]
    return words


def _engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What is said about engines that answer in different ways, and how often they are asked."""
    found: dict[str, object] = {}
    good, bad = (0, ""), (1, "\nno such thing\ncannot connect\n")
    gone, busy = (1, "Error: No such container: name"), (1, "removal in progress")
    for engine in ("docker", "podman"):
        container = Container(engine, "image", "python3")
        table: dict[str, list[Any]] = {
            "absent": [None], "silent": [good, None], "stopped": [bad, bad],
            "without the image": [bad, good], "ready": [good, good],
            "remove": [good], "remove a gone one": [gone], "remove without engine": [None],
            "remove a busy one": [busy, busy, good], "remove for ever": [busy] * 99,
        }  # fmt: skip
        for name, answers in table.items():
            asked: list[str] = []
            now = [0.0]

            def answer(
                *words: str,
                asked: list[str] = asked,
                left: list[Any] = [*answers],  # noqa: B006
            ) -> subprocess.CompletedProcess[str] | None:
                asked.append(" ".join(words))
                if (said := left.pop(0)) is None:
                    return None
                return subprocess.CompletedProcess([], said[0], "", said[1])

            def sleep(seconds: float, now: list[float] = now) -> None:
                now[0] += 10 * seconds + 6

            monkeypatch.setattr(commands, "_engine_output", answer)
            clock = SimpleNamespace(monotonic=lambda now=now: now[0], sleep=sleep)
            monkeypatch.setattr(commands, "time", clock)
            if name.startswith("remove"):
                commands.remove_container(container, "name")
                found[f"{engine}, {name}"] = [len(asked), asked[0]]
            else:
                found[f"{engine}, {name}"] = [commands.engine_problem(container), asked]
    return found


class _System:
    """Stands for the operating system: notes what it is asked for, and lets it be."""

    def __init__(self, log: list[str], user: int, answers: dict[str, Any]) -> None:
        self.log, self.user, self.answers = log, user, answers
        self.environment: dict[str, str] = {}

    def note(self, name: str, result: object = 0) -> Callable[..., Any]:
        def call(*words: object, **named: object) -> Any:
            known = [_shown(word) for word in (*words, *named.values())]
            self.log.append(f"{name}({', '.join(known)})")
            answer = self.answers.get(name, result)
            return answer.pop(0) if isinstance(answer, list) else answer

        return call

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        libc = SimpleNamespace(
            **{name: self.note(name) for name in ("mount", "unshare", "setns", "umount2")},
            **{name: self.note(name) for name in ("capset", "syscall")},
        )
        monkeypatch.setattr(confinement, "_LIBC", libc)
        monkeypatch.setattr(confinement, "_PRCTL", self.note("prctl"))
        monkeypatch.setattr(new_root, "enter_root", self.note("enter_root", result=True))
        monkeypatch.setattr(confinement, "map_user", self.note("map_user", None))
        monkeypatch.setattr(confinement, "_works", lambda attempt: bool(attempt()))
        monkeypatch.setattr(confinement, "_threads_of_user", lambda: 5)
        monkeypatch.setattr(confinement, "_state", lambda path: (len(path),))
        monkeypatch.setattr(seccomp, "Filter", self._filter)
        own = {
            "geteuid": lambda: self.user,
            "getegid": lambda: self.user + 1,
            "urandom": lambda size: bytes(range(1, size + 1)),
            "getpid": lambda: 77,
            "listdir": lambda _path: ["usr", "dev", "tmp"],
            "environ": self.environment,
            "path": SimpleNamespace(isdir=lambda path: not path.endswith((".py", "null"))),
        }
        for name in ("setgroups", "setresgid", "setresuid", "chdir", "utime", "mkdir", "close"):
            own[name] = self.note(name, None)
        own |= {"open": self.note("open", 9), "fork": self.note("fork", 88)}
        own |= {"pidfd_open": self.note("pidfd_open", 8)}
        own["set_inheritable"] = self.note("set_inheritable", None)
        names = {name: getattr(os, name) for name in dir(os) if name.startswith("O_")}
        monkeypatch.setattr(confinement, "os", SimpleNamespace(**{**names, **own}))
        limits = SimpleNamespace(
            **{name: name for name in dir(resource) if name.startswith("RLIMIT")},
            RLIM_INFINITY=-1,
            getrlimit=lambda name: (0, 40 if name == "RLIMIT_NOFILE" else -1),
            setrlimit=self.note("setrlimit", None),
        )
        monkeypatch.setattr(confinement, "resource", limits)

    def _filter(self, **options: bool) -> Any:
        self.log.append(f"filter({options})")
        return SimpleNamespace(install=self.note("install"))


def _shown(word: object) -> str:
    if isinstance(word, ctypes.Array):
        return bytes(word).hex()
    if hasattr(word, "value"):
        return str(word.value)
    if callable(word):
        return str(getattr(word, "__name__", ""))
    return "SETUP" if isinstance(word, dict) else str(word)


JOB = {"memory": 1000, "cpu": 1.5, "processes": False}
CASES: dict[str, dict[str, Any]] = {
    f"{kind} of user {user}": {"kind": kind, "user": user}
    for kind in ("none", "landlock", "container", "bubblewrap")
    for user in (0, 1000)
} | {
    "landlock without mounts": {"kind": "landlock", "user": 1000, "unshare": 1},
    "landlock without mounts for root": {"kind": "landlock", "user": 0, "unshare": 1},
    "the same, weak": {"kind": "landlock", "user": 0, "unshare": 1, "weak": True},
    "an old landlock": {"kind": "landlock", "user": 1000, "unshare": 1, "version": 2},
    "the same, and weak": {
        "kind": "landlock", "user": 1000, "unshare": 1, "version": 2, "weak": True,
    },
    "the oldest landlock that is enough": {
        "kind": "landlock", "user": 1000, "unshare": 1, "version": 3,
    },
    "no landlock": {"kind": "bubblewrap", "user": 0, "version": 0},
    "a new landlock": {"kind": "bubblewrap", "user": 0, "version": 9},
    "a container that cannot mount": {"kind": "container", "user": 0, "enter_root": False},
    "a root that is too large": {"kind": "bubblewrap", "user": 0, "enter_root": [False, True]},
    "tests": {"kind": "bubblewrap", "user": 0, "runs_programs": False},
    "processes": {"kind": "bubblewrap", "user": 0, "processes": True},
    "processes without a network": {
        "kind": "landlock", "user": 1000, "unshare": [1, 1], "processes": True,
    },
    "a mount that is refused": {"kind": "bubblewrap", "user": 0, "mount": 1},
    "rights that stay": {"kind": "bubblewrap", "user": 0, "capset": 1},
}  # fmt: skip


def _confine(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    log: list[str] = []
    answers: dict[str, Any] = {
        name: case[name] for name in ("unshare", "enter_root", "mount", "capset") if name in case
    }
    setup = {**SETUP, **{name: case[name] for name in case if name in SETUP}, "kind": case["kind"]}
    with monkeypatch.context() as patched:
        system = _System(log, case["user"], answers)
        system.install(patched)
        version = case.get("version", 5)
        patched.setattr(confinement, "_landlock_version", lambda: version)
        patched.setattr(confinement, "_ignore_refusals", system.note("ignore_refusals"))
        patched.setattr(confinement.Confinement, "_leave_network", _leave_network(log))
        try:
            walls = Confinement(setup)
            log.append(f"-- {walls.mounted} {walls.scratch!r} {walls._base!r} {walls._shown_again}")
            walls.freshen()
            log.append("-- again")
            walls.freshen()
            log.append("-- changed")
            walls._untouched = []
            walls.freshen()
            log.append(f"-- fork {walls.fork()}, too much {walls.too_much()}")
            walls.enter({**JOB, "processes": case.get("processes", False)})
            log.append(f"-- {system.environment}")
        except seccomp.Unavailable as error:
            log.append(f"Unavailable: {error}")
    return log


def _leave_network(log: list[str]) -> Callable[[Confinement], None]:
    return lambda walls: log.append(f"leave the network, {walls.mounted}")


def _folder_rules(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}
    for version in (0, 1, 2, 3, 4, 5, 6, 9):
        for network in (True, False):
            log: list[str] = []
            with monkeypatch.context() as patched:
                _System(log, 1000, {}).install(patched)
                patched.setattr(confinement, "_landlock_version", lambda v=version: v)
                try:
                    rules = FolderRules(["/usr"], ["/work"], ["/dev/null"], network=network)
                    log.append(f"forbids the network: {rules.forbids_network}")
                    rules.enforce()
                except seccomp.Unavailable as error:
                    log.append(str(error))
            found[f"folders, landlock {version}, network {network}"] = log
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="walls are of Linux")
def test_every_stone_of_the_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    results = _filters()
    with monkeypatch.context() as patched:
        results |= _commands(patched)
    with monkeypatch.context() as patched:
        results |= _engines(patched)
    for name, case in CASES.items():
        results[name] = _confine(case, monkeypatch)
    results |= _folder_rules(monkeypatch)
    check_results(Path(__file__).with_name("walls.json"), results)
