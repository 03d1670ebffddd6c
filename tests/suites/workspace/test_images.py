"""Tests of a task run in an image: one that the task names, and one of a Harbor folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.judging.container_image import find_libraries
from tests.suites.workspace.conftest import (
    SHELL_FIXED,
    SHELL_START,
    SHELL_TESTS,
    Attempting,
    write_task,
)

from passhat.suites.workspace.suite import WorkspaceSuite

PROGRAMS = ("sh", "bash", "cat", "cp", "mkdir", "ls")
FIX = "sed -i 's/ - / + /' add.sh"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with the machine's own shells and nothing else."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    folder = tmp_path_factory.mktemp("image")
    paths = {name: str(shutil.which(name)) for name in PROGRAMS}
    content = repr([(path, Path(path).stat().st_mtime_ns) for path in paths.values()])
    name = f"localhost/passhat-shells:{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("runc"):
            # crun, which podman prefers, refuses machines with control groups of both versions.
            (folder / "containers.conf").write_text('[engine]\nruntime = "runc"\n')
            patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        known = subprocess.run(["podman", "image", "inspect", name], capture_output=True)
        if known.returncode:
            with tarfile.open(folder / "root.tar", "w") as archive:
                for place in ("tmp", "proc", "dev", "sys", "etc", "app", "bin"):
                    entry = tarfile.TarInfo(place)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(entry)
                for library in sorted(find_libraries(list(paths.values()))):
                    archive.add(Path(library).resolve(), library.lstrip("/"))
                for short, path in paths.items():
                    archive.add(Path(path).resolve(), f"bin/{short}")
            words = ["podman", "import", str(folder / "root.tar"), name]
            subprocess.run(words, check=True, capture_output=True)
        yield name


def problems(folder: Path) -> list[tuple[str, ...]]:
    """What ``passhat tasks --check`` finds."""

    async def check() -> list[tuple[str, ...]]:
        suite = WorkspaceSuite(str(folder))
        try:
            return [one.problems for one in await suite.check(suite.tasks)]
        finally:
            await suite.close()

    return asyncio.run(check())


def containers() -> list[str]:
    words = ["podman", "ps", "-a", "--format", "{{.Names}}"]
    names = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.startswith(f"passhat-{os.getpid()}-")]


def test_a_task_names_its_image(attempt: Attempting, tmp_path: Path, image: str) -> None:
    """The tests run there: this machine's files are not to be seen."""
    outside = tmp_path / "outside"
    outside.write_text("")
    absent = f"[ ! -e {outside} ] && [ ! -e /usr/bin/python3 ] && [ $PWD = /app ] || exit 9\n"
    write_task(
        tmp_path / "suite" / "shell",
        f'instruction = "Fix add.sh."\ntest = "sh checks/run.sh"\nresult = "tap"\n'
        f'image = "podman:{image}"\nplace = "/app"\n',
        **{
            "start__add.sh": SHELL_START,
            "solution__add.sh": SHELL_FIXED,
            "hidden__checks__run.sh": absent + SHELL_TESTS,
        },
    )
    assert problems(tmp_path / "suite") == [()]
    ended = attempt(FIX, suite=tmp_path / "suite")
    assert (ended.verdict, ended.score) == ("passed", 1.0), ended
    ended = attempt("echo 'echo 5' > add.sh", suite=tmp_path / "suite")
    assert (ended.verdict, ended.score) == ("failed", 0.5), ended
    # Hidden tests are read-only there, too.
    script = "echo 'echo 5; echo > checks/run.sh || echo stays >&2' > add.sh"
    assert "stays" in attempt(script, suite=tmp_path / "suite").texts["tests"]
    assert containers() == []


def test_a_harbor_folder_is_attempted(attempt: Attempting, tmp_path: Path, image: str) -> None:
    write_task(
        tmp_path / "suite" / "hello",
        'version = "1.0"\n[metadata]\ndifficulty = "easy"\n[verifier]\ntimeout_sec = 120.0\n'
        "[agent]\ntimeout_sec = 60.0\n[environment]\nallow_internet = false\n",
        **{
            "instruction.md": "Fix add.sh.\n",
            "environment__Dockerfile": f"FROM {image}\nWORKDIR /app\nCOPY src/ ./\n",
            "environment__src__add.sh": SHELL_START,
            "tests__test.sh": "cd /app\n[ $(sh add.sh 2 3) = 5 ] && r=1 || r=0\n"
            "echo $r > /logs/verifier/reward.txt\n",
            "solution__solve.sh": f"cp /bin/cat /tmp/x\ncat > /app/add.sh <<'E'\n{SHELL_FIXED}E\n",
        },
    )
    assert problems(tmp_path / "suite") == [()]
    for script, verdict, score in ((FIX, "passed", 1.0), ("echo >> add.sh", "failed", 0.0)):
        ended = attempt(script, "hello", tmp_path / "suite")
        assert (ended.verdict, ended.score) == (verdict, score), ended
    assert containers() == []
