"""Sandboxes for the tests. Where one can be installed, its absence fails: it is not skipped."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter, find_interpreter
from passhat.judging.sandbox_check import examine_machine
from passhat.judging.sandbox_kinds import Container, ProgramLimits, SandboxKind, SandboxSpec


@pytest.fixture(scope="session")
def interpreter() -> Interpreter:
    return find_interpreter()


def _require(kind: SandboxKind, interpreter: Interpreter) -> None:
    finding = examine_machine(interpreter, kind)
    if finding.holds:
        return
    assert not finding.through, str(finding)
    if kind is SandboxKind.BUBBLEWRAP:
        _require_command("bwrap")
    pytest.skip(str(finding))


def _require_command(name: str) -> None:
    """A command that ``tools/setup dev`` installs where it may."""
    if shutil.which(name) is not None:
        return
    if shutil.which("apt-get") and (os.geteuid() == 0 or shutil.which("sudo")):
        pytest.fail(f"{name} is not installed; tools/setup dev installs it")
    pytest.skip(f"{name} is not installed, and this user may not install it")


@pytest.fixture(scope="session")
def podman(
    interpreter: Interpreter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    """A container by podman, of an image made here."""
    _require_command("podman")
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("runc"):
            # crun, which podman prefers, refuses machines with control groups of both versions.
            chosen = tmp_path_factory.mktemp("podman") / "containers.conf"
            chosen.write_text('[engine]\nruntime = "runc"\n')
            patch.setenv("CONTAINERS_CONF", str(chosen))
        build = runpy.run_path(str(Path(__file__).with_name("container_image.py")))["build_image"]
        made = Container("podman", build("podman", interpreter))
        finding = examine_machine(interpreter, made)
        assert not finding.through, str(finding)
        if not finding.holds and os.geteuid() != 0:
            # Limits of memory and processes need control groups that were handed to this user.
            pytest.skip(str(finding))
        assert finding.holds, str(finding)
        yield made


@pytest.fixture(scope="session", params=[SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK, "podman"])
def kind(request: pytest.FixtureRequest, interpreter: Interpreter) -> SandboxSpec:
    """Every kind of sandbox that this machine offers."""
    if request.param == "podman":
        container: Container = request.getfixturevalue("podman")
        return container
    chosen = SandboxKind(request.param)
    _require(chosen, interpreter)
    return chosen


@pytest.fixture(scope="session")
def best(interpreter: Interpreter) -> SandboxKind:
    """Bubblewrap."""
    _require(SandboxKind.BUBBLEWRAP, interpreter)
    return SandboxKind.BUBBLEWRAP


@pytest.fixture(scope="module")
def examiner(kind: SandboxSpec, interpreter: Interpreter) -> Iterator[Examiner]:
    # Programs that work too long are soon over; no right one is, however slow the machine is.
    limits = ProgramLimits(cpu_seconds=0.5, memory=192 << 20, wall=120)
    made = Examiner(kind, interpreter, limits)
    yield made
    made.close()


@pytest.fixture(scope="module")
def contained(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    """An examiner in bubblewrap alone, for what does not depend on the kind of wall."""
    made = Examiner(best, interpreter, ProgramLimits(cpu_seconds=2, wall=120))
    yield made
    made.close()
