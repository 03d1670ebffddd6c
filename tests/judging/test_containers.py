"""Containers by docker or podman: what is asked of the engine, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import InvalidValue, SandboxUnavailable
from passhat.judging.bench import JudgingChoice, judge_all
from passhat.judging.commands import container_command, remove_container
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_check import choose_sandbox, examine_machine
from passhat.judging.sandbox_kinds import Container, ProgramLimits, SandboxKind, read_sandbox
from passhat.judging.tasks import Case, CodeSuite, CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

TASK = CodeTask(
    "t",
    entry_point="f",
    tests="def check(f):\n    assert [f(i) for i in range(20)] == list(range(20))",
)
SCRIPT = CodeTask("s", cases=(Case(b"1 2\n", b"3\n"), Case(b"4 5\n", b"9\n")))
WORK = [
    (TASK, "def f(x): return x", ""),
    (TASK, "def f(x): return -x", "wrong_answer"),
    (TASK, "import os\ndef f(x): os._exit(0)", "exception"),
    (TASK, "def f(x):\n    while True: pass", "timeout"),
    (TASK, "def f(x): return 'y' * 2**20 if x else x", "wrong_answer"),
    (SCRIPT, "print(sum(map(int, input().split())))", ""),
    (SCRIPT, "while True: print('x' * 1000)", "wrong_answer"),
    (SCRIPT, "print(1 / 0)", "exception"),
]


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_the_engine_is_asked_for_every_wall(engine: str) -> None:
    limits = ProgramLimits(memory=512 << 20, scratch=8 << 20)
    words = container_command(Container(engine, "some/image:1", "/opt/python"), limits, "me")
    assert words[:2] == [engine, "run"]
    memory = (512 + 2 * 8 + 256 + 256) << 20
    assert {
        *("--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        *("--user=0:0", "--ipc=none", "--pids-limit=72", "--cpus=1", "--pull=never"),
        *(f"--memory={memory}", f"--memory-swap={memory}", "--rm", "--interactive"),
    } <= set(words)
    scratch = f"--tmpfs=/tmp:rw,noexec,nosuid,nodev,size={8 << 20},mode=1777"
    assert any(word.startswith(scratch) for word in words)
    # No folder of the host is shown, and what follows the image goes to its Python.
    assert not any(word.startswith(("-v", "--volume", "--mount", "--env")) for word in words)
    image = words.index("some/image:1")
    assert words[image - 2 : image] == ["--entrypoint", "/opt/python"]
    assert words[image + 1 : image + 4] == ["-I", "-B", "-c"]


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_an_absent_engine_is_said_with_what_helps(
    engine: str, monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        SandboxUnavailable, match=f"the command {engine} is not installed"
    ) as caught:
        choose_sandbox(interpreter, Container(engine, "python:3.12-slim"))
    assert "apt-get install" in str(caught.value)


def test_an_engine_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter, tmp_path: Path
) -> None:
    engine = tmp_path / "docker"
    engine.write_text("#!/bin/sh\necho Cannot connect to the daemon >&2\nexit 1\n")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = examine_machine(interpreter, Container("docker", "x"))
    assert "Cannot connect to the daemon" in found.problem
    assert "systemctl start docker" in found.problem


def test_an_engine_that_is_removing_a_container_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = tmp_path / "podman"
    engine.write_text(
        "#!/bin/sh\necho x >> asked\n[ $(wc -l < asked) = 3 ] && exit 0\n"
        "echo container is being removed >&2\nexit 125\n"
    )
    engine.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    remove_container(Container("podman", "x"), "name")
    assert (tmp_path / "asked").read_text() == "x\n" * 3


def test_words_that_name_no_sandbox() -> None:
    assert read_sandbox("auto") is None
    assert read_sandbox("landlock") is SandboxKind.LANDLOCK
    assert str(read_sandbox("docker:python:3.12-slim")) == "docker:python:3.12-slim"
    for word in ("docker", "podman:", "docker:--privileged", "none", "chroot"):
        with pytest.raises(InvalidValue, match="--sandbox"):
            read_sandbox(word)
    with pytest.raises(InvalidValue, match="packages come with the image"):
        JudgingChoice("podman:x", packages=("numpy",)).bench(CodeSuite.of("s", [TASK]))


def test_podman_judges_and_leaves_nothing(podman: Container, interpreter: Interpreter) -> None:
    work = [(task, program) for task, program, _ in WORK]
    limits = ProgramLimits(cpu_seconds=2, wall=120)
    found = dict(judge_all(work, kind=podman, interpreter=interpreter, limits=limits, jobs=2))
    assert [found[i].category for i in range(len(WORK))] == [why for *_, why in WORK]
    assert _containers() == []


def test_a_killed_container_is_replaced(podman: Container, interpreter: Interpreter) -> None:
    examiner = Examiner(podman, interpreter, ProgramLimits())
    try:
        examiner.start()
        assert len(_containers()) == 2
        for sandbox in (examiner.programs, examiner.tests):
            assert sandbox.pid is not None
            killer = threading.Timer(0.05, os.killpg, (sandbox.pid, signal.SIGKILL))
            killer.start()
            judged = [examiner.judge(TASK, "def f(x): return x").verdict for _ in range(15)]
            killer.join()  # perhaps only now has it killed anything
            judged.append(examiner.judge(TASK, "def f(x): return x").verdict)
            assert judged == [Verdict.PASSED] * 16
            assert sandbox.starts >= 2
    finally:
        examiner.close()
    assert _containers() == []


def test_the_command_line_uses_podman(
    podman: Container, passhat: Callable[..., Any], tmp_path: Path
) -> None:
    checked = passhat("sandbox", "check", "--sandbox", str(podman))
    assert checked.code == 0, checked.out
    assert f"passhat judge uses {podman}" in checked.out
    (tmp_path / "s.jsonl").write_text('{"task_id": "ordercode/late_credit", "completion": ""}\n')
    judged = passhat(
        "judge", tmp_path / "s.jsonl", "-s", "code:ordercode", "--sandbox", str(podman), "--json"
    )
    assert judged.code == 0, judged.err
    assert f"plain and split judge ({podman})" in judged.out


def _containers() -> list[str]:
    """Containers of this process's tests that are still there."""
    call = ["podman", "ps", "--all", "--format", "{{.Names}}"]
    while True:  # it fails when a container of somebody else goes away under its eyes
        said = subprocess.run(call, capture_output=True, text=True)
        if said.returncode == 0 or "no such container" not in said.stderr.lower():
            break
    assert said.returncode == 0, said.stderr
    own = f"passhat-{os.getpid()}-"  # others test at the same time
    return [name for name in said.stdout.split() if name.startswith(own)]
