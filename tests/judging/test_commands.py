"""The command lines of sandboxes, and what is said of an engine that cannot run an image."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import zipfile
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging import commands
from passhat.judging.inside.new_root import MOST_BYTES
from passhat.judging.sandbox_kinds import Container, ProgramLimits

LIMITS = ProgramLimits(memory=1000, scratch=10)


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_may_do_no_more_than_a_program_needs(engine: str) -> None:
    words = commands.container_command(Container(engine, "img", "py"), LIMITS, "name")
    assert words[:3] == [engine, "run", "--rm"]
    assert words[words.index("--name") + 1] == "name"
    memory = 1000 + 2 * 10 + MOST_BYTES + (256 << 20)
    expected = {
        *("--interactive", "--pull=never", "--network=none", "--ipc=none", "--cap-drop=ALL"),
        *("--security-opt=no-new-privileges", "--user=0:0", "--read-only", "--cpus=1"),
        *(f"--memory={memory}", f"--memory-swap={memory}", "--pids-limit=72"),
        *("--ulimit=nofile=256:256", "--ulimit=core=0:0", "--ulimit=nproc=4096:4096"),
    }
    assert expected <= set(words)
    capabilities = [word for word in words if word.startswith("--cap-add=")]
    assert [word.partition("=")[2] for word in capabilities] == list(commands._RIGHTS)
    assert words[words.index("--entrypoint") :] == [
        *("--entrypoint", "py", "img", "-I", "-B", "-c", commands._BOOT, "name"),
    ]
    scratch = "--tmpfs=/tmp:rw,noexec,nosuid,nodev,size=10,mode=1777"
    if engine == "podman":
        assert {"--read-only-tmpfs=false", f"{scratch},notmpcopyup"} <= set(words)
        assert "--security-opt=apparmor=unconfined" not in words
    else:
        assert {scratch, "--security-opt=apparmor=unconfined"} <= set(words)


@pytest.mark.parametrize("user", [0, 1000])
def test_bubblewrap_keeps_rights_for_root_alone(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(commands, "plain_command", lambda _: ["plain"])
    interpreter: Any = None
    words = commands.bubblewrap_command(interpreter)
    assert words[0] == "bwrap"
    assert words[-2:] == ["--", "plain"]
    added = {after for word, after in itertools.pairwise(words) if word == "--cap-add"}
    rights = {"CAP_SYS_ADMIN", "CAP_NET_ADMIN"}
    if user == 0:
        rights |= {"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_READ_SEARCH"}
        assert {"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"} <= set(words)
        assert "--uid" not in words
    else:
        assert words[words.index("--uid") + 1] == words[words.index("--gid") + 1] == "65534"
        assert "--unshare-all" in words
    assert added == rights


def test_the_server_alone_is_called_by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    monkeypatch.setattr(
        commands, "compile_dir", lambda *words, **more: compiled.append([words, more])
    )
    interpreter: Any = SimpleNamespace(command=["python", "-I"])
    words = commands.plain_command(interpreter, "/home")
    assert words == [
        *("python", "-I", "-c"),
        "import sys; sys.path.insert(0, '/home'); from inside.server import main; "
        "del sys.path[0]; main()",
    ]
    assert compiled == [[(commands.INSIDE,), {"quiet": 2}]]


def test_the_archive_has_every_module_and_its_length_before_it() -> None:
    content = commands.pack_inside()
    assert int.from_bytes(content[:4], "big") == len(content) - 4
    names = zipfile.ZipFile(io.BytesIO(content[4:])).namelist()
    assert {"inside/server.py", "inside/relay.py", "inside/__init__.py"} <= set(names)
    assert names == sorted(names)


# -- engines ---------------------------------------------------------------------------------------


def _answer(code: int = 0, error: str = "") -> Any:
    return SimpleNamespace(returncode=code, stderr=error)


INSTALL = "the command {0} is not installed (Debian, Ubuntu: apt-get install {1})"
START = "the engine does not answer ({0}); start it or check it with: {1}"


@pytest.mark.parametrize(
    ("engine", "image", "info", "problem"),
    [
        ("docker", _answer(), _answer(), ""),
        ("docker", None, None, INSTALL.format("docker", "docker.io")),
        ("podman", None, None, INSTALL.format("podman", "podman")),
        ("docker", _answer(1), None, START.format("no answer", "systemctl start docker")),
        ("docker", _answer(), _answer(1), START.format("no answer", "systemctl start docker")),
        ("podman", _answer(1), _answer(2, "a\nb \n"), START.format("b", "podman info")),
        ("podman", _answer(1), _answer(2, "x" * 201), START.format("x" * 200, "podman info")),
        (
            *("podman", _answer(1), _answer()),
            "there is no image img on this machine; fetch it with: podman pull img",
        ),
    ],
)
def test_why_an_engine_cannot_run_an_image(
    monkeypatch: pytest.MonkeyPatch, engine: str, image: Any, info: Any, problem: str
) -> None:
    answers = {"image": image, "info": info}
    monkeypatch.setattr(commands, "_engine_output", lambda _, word, *__: answers[word])
    assert commands.engine_problem(Container(engine, "img")) == problem


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        ([None], 1),
        ([_answer(0)], 1),
        ([_answer(1, "Error: No such container: x")], 1),
        ([_answer(1, "busy"), _answer(1, "busy"), _answer(0)], 3),
        ([_answer(1, "busy")] * 9, 4),  # the time is over
    ],
)
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_is_removed_again_until_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, answers: Sequence[Any], calls: int, engine: str
) -> None:
    now = [0.0]
    asked: list[tuple[str, ...]] = []
    left = list(answers)

    def output(*words: str) -> Any:
        asked.append(words)
        now[0] += 20.0
        return left.pop(0)

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None)
    monkeypatch.setattr(commands, "time", clock)
    monkeypatch.setattr(commands, "_engine_output", output)
    commands.remove_container(Container(engine, "img"), "name")
    at_once = ["--time", "0"] if engine == "podman" else []
    assert asked == [(engine, "rm", "--force", *at_once, "name")] * calls


@pytest.mark.parametrize("error", [OSError("gone"), subprocess.TimeoutExpired("x", 60)])
def test_an_engine_that_is_not_there_says_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(words: list[str], **options: object) -> object:
        assert words == ["docker", "info"]
        assert options["timeout"] == 60
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    assert commands._engine_output("docker", "info") is None
