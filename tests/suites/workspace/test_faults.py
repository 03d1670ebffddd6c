"""A full disk, a killed runner, a paused runner; and layers that are as good as copies."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.faults.test_two_runners import in_session, pause
from tests.suites.workspace.conftest import remains, write_tasks

from passhat.runner.run_spec import RunSpec, run
from passhat.store import AttemptRecord, open_store
from passhat.suites.workspace import places
from passhat.suites.workspace.changes import Changes, find_changes
from passhat.suites.workspace.definition import digest_of_tree
from passhat.suites.workspace.loading import load_folder
from passhat.suites.workspace.places import Base, Places

ATTEMPTS = 3
PATIENCE = 300.0
# It tells the test that it works, and goes on when it is told to.
AGENT = """
if [ $WHO = A ]; then exec 3<>/dev/tcp/127.0.0.1/$PORT; read answer <&3; fi
sed -i "s/ - / + /; s/sh$/sh by $WHO/" add.sh
"""
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
LAYERS = [pytest.param(True, marks=NEEDS_ROOT, id="layers"), pytest.param(False, id="copies")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tasks and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_tasks(tmp_path / "tasks")
    return tmp_path


def use_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_make_layers", lambda _: None)


# -- layers and copies -----------------------------------------------------------------------------


def change_much(base: Base, root: Path) -> tuple[Changes, bool]:
    """Changes by renames, deletions, links and modes; and whether the workspace is a mount."""
    (task,) = (one for one in load_folder("tasks") if one.id == "shell")
    script = (
        "mv lib moved && rm -r gone && rm file && mkdir file && echo 1 > file/new && "
        "rm -r folder && echo 2 > folder && chmod +x README.md && ln -s add.sh link && "
        "ln add.sh hard && echo 3 >> add.sh && cp -p same copy && mv copy same && touch old"
    )

    async def work() -> tuple[Changes, bool]:
        mine = Places(root)
        folder = await mine.attempt(base)
        snapshot = await mine.snapshot(base, folder)
        is_mounted = os.path.ismount(folder.work)
        subprocess.run(["sh", "-c", script], cwd=folder.work, check=True)
        changes = find_changes(task, base.tree, folder.work, snapshot)
        again = await mine.attempt(base)
        await mine.snapshot(base, again)
        assert not find_changes(task, base.tree, again.work, snapshot).changes or not is_mounted
        mine.discard(folder)
        await mine.close()
        return changes, is_mounted

    return asyncio.run(work())


@NEEDS_ROOT
def test_a_layer_is_as_good_as_a_copy(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = place / "start"
    for name in ("lib/a", "lib/deep/b", "gone/c", "file", "folder/d", "same", "old", "README.md"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"{name}\n")
    (tree / "add.sh").write_text("echo\n")
    before = digest_of_tree(tree)
    layered, is_mounted = change_much(Base(str(tree)), place / "one")
    use_copies(monkeypatch)
    copied, is_copy_mounted = change_much(Base(str(tree)), place / "two")
    assert (is_mounted, is_copy_mounted) == (True, False)
    assert layered == copied
    assert {change.path for change in layered.changes} == {
        *("README.md", "add.sh", "hard", "link", "file", "file/new", "folder", "folder/d"),
        *("gone/c", "lib/a", "lib/deep/b", "moved/a", "moved/deep/b"),
    }
    assert digest_of_tree(tree) == before
    assert not list((place / "one" / "attempts").iterdir())


# -- runners ---------------------------------------------------------------------------------------


@contextmanager
def runner(who: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """``passhat run`` in a process of its own, all attempts at once."""
    command = [
        *(sys.executable, "-m", "passhat", "run", "-s", "workspace:tasks", "--task", "shell"),
        *("-a", "command:bash agent.sh", "-n", str(ATTEMPTS), "--jobs", str(ATTEMPTS)),
        *("--set", "lease=2", "--store", "s.db", "--pass-env", "WHO,PORT"),
    ]
    with in_session(command, {"WHO": who, "PORT": str(port)}) as process:
        yield process


def workspaces(cache: Path) -> list[str]:
    """Folders of attempts and mounts that are left."""
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    return [*remains(cache), *(row for row in rows if str(cache) in row)]


@pytest.mark.parametrize("event", ["killed", "paused"])
def test_a_runner_that_was_taken_over(place: Path, event: str) -> None:
    """Nothing lost, nothing mixed, and no workspace is left."""
    (place / "agent.sh").write_text(AGENT)
    cache = place / "cache" / "passhat" / "workspaces"
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.settimeout(PATIENCE)
        port = server.getsockname()[1]
        first = stack.enter_context(runner("A", port))
        agents = [stack.enter_context(server.accept()[0]) for _ in range(ATTEMPTS)]
        if event == "killed":
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
        else:
            pause(first, "s.db")
        with runner("B", port) as other:
            out, _ = other.communicate(timeout=PATIENCE)
            assert other.returncode == 0, out
        if event == "paused":
            assert len(remains(cache)) == 1  # those of a runner that lives are not touched
            for agent in agents:
                agent.sendall(b"go\n")
            os.killpg(first.pid, signal.SIGCONT)
            first.communicate(timeout=PATIENCE)
    with open_store("s.db") as store:
        (record,) = store.runs()
        verdicts = list(store.verdicts(record.id))
        assert [int(verdict) for _, _, verdict in verdicts] == [1] * ATTEMPTS
        for task, number, _ in verdicts:
            attempt = store.attempt(record.id, task, number)
            assert attempt is not None
            (diff,) = [entry["text"] for entry in attempt.transcript if entry["role"] == "diff"]
            assert "sh by B" in diff
    assert workspaces(cache) == []


# -- disks -----------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "passhat-test", str(folder)]
    subprocess.run(words, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def attempt(script: str, attempts: int) -> list[AttemptRecord]:
    """Make the attempts of a run that are not there yet, or are missing."""
    Path("agent.sh").write_text(script)
    spec = RunSpec(
        agent="command:sh agent.sh",
        suite="workspace:tasks",
        tasks=("shell",),
        attempts=attempts,
        store="s.db",
        keep_going=True,
        only_missing=True,
    )
    records: list[AttemptRecord] = []
    run(spec, progress=lambda record, _: records.append(record))
    return records


@NEEDS_ROOT
@pytest.mark.parametrize("is_layered", LAYERS)
def test_a_full_disk_is_no_failure_of_the_agent(
    place: Path, monkeypatch: pytest.MonkeyPatch, is_layered: bool
) -> None:
    if not is_layered:
        use_copies(monkeypatch)
    fix = "sed -i 's/ - / + /' add.sh"
    cache = place / "cache"
    with small_disk(cache, "4m"):
        (first,) = attempt(fix, 1)
        assert str(first.judgement.verdict) == "passed"
        ballast = cache / "ballast"
        subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=4k"], capture_output=True)
        full = attempt(fix, 3)
        assert {str(record.judgement.verdict) for record in full} == {"missing"}
        assert {record.judgement.why for record in full} <= {"sandbox_error", "infrastructure"}
        ballast.unlink()
        again = attempt(fix, 3)
        assert [str(record.judgement.verdict) for record in again] == ["passed", "passed"]
        assert workspaces(cache / "passhat" / "workspaces") == []


@NEEDS_ROOT
def test_an_agent_that_fills_the_disk_itself_fails(place: Path) -> None:
    with small_disk(place / "cache", "48m"):
        (record,) = attempt("head -c 100M /dev/zero > big; echo full", 1)
        assert str(record.judgement.verdict) == "failed"
        assert not remains(place / "cache" / "passhat" / "workspaces")
