"""Where workspaces are: prepared starts that are kept, and folders of attempts that are not.

``CACHE/bases/DIGEST/tree`` is a start after its set-up. ``CACHE/attempts/RUNNER/NAME`` belongs to
one attempt. A runner holds a lock on its folder for as long as it lives; a folder whose lock is
free was left by one that was killed, and the next runner removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from passhat.errors import InvalidValue
from passhat.suites.workspace.changes import Snapshot, take_snapshot
from passhat.suites.workspace.definition import Start, WorkspaceTask, run_git

__all__ = ["AttemptFolder", "Base", "Places", "copy_tree", "remove_tree"]

_BASE_DAYS = 30
_DATE = "2000-01-01T00:00:00Z"
_COPY_SECONDS = 600


def cache_root() -> Path:
    """The folder of all workspaces of this user."""
    setting = os.environ.get("XDG_CACHE_HOME")
    root = Path(setting) if setting else Path.home() / ".cache"
    return root.resolve() / "passhat" / "workspaces"


@dataclass(frozen=True, slots=True)
class Base:
    """A prepared start."""

    tree: str


@dataclass(frozen=True, slots=True)
class AttemptFolder:
    """The folders of one attempt: the workspace, a home, and ``/tmp``."""

    path: Path

    @property
    def work(self) -> str:
        return str(self.path / "work")

    @property
    def home(self) -> str:
        return str(self.path / "home")

    @property
    def temporary(self) -> str:
        return str(self.path / "tmp")


class Places:
    """The workspaces of one runner."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()
        self._owner: Path | None = None
        self._lock = -1
        self._removals: set[asyncio.Task[None]] = set()

    def open(self) -> Path:
        """The folder of this runner; made, and others' remains removed, when first asked for."""
        if self._owner is not None:
            return self._owner
        attempts = self.root / "attempts"
        for folder in (attempts, self.root / "bases"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root.chmod(0o700)
        self._sweep(attempts)
        owner = attempts / f"{os.getpid()}-{secrets.token_hex(6)}"
        owner.mkdir(mode=0o700)
        self._lock = os.open(owner / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._owner = owner
        return owner

    def _sweep(self, attempts: Path) -> None:
        """Remove folders of runners that are gone, and starts that were not used for a month."""
        for folder in attempts.iterdir():
            lock = -1
            try:
                lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            except FileNotFoundError:  # made by a runner that has no lock yet, or had no time to
                with contextlib.suppress(OSError):
                    if time.time() - folder.stat().st_mtime < 60:
                        continue
            except OSError:
                continue
            finally:
                if lock >= 0:
                    os.close(lock)
            remove_tree(folder)
        oldest = time.time() - _BASE_DAYS * 86_400
        for folder in (self.root / "bases").iterdir():
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < oldest:
                    remove_tree(folder)

    def base_path(self, key: str) -> Path:
        """Where the start with this digest is, or will be."""
        return self.root / "bases" / key[:24] / "tree"

    async def base(
        self, task: WorkspaceTask, key: str, prepare: Callable[[str, str], Awaitable[None]]
    ) -> Base:
        """The prepared start of a task; ``prepare(real, path)`` runs its set-up the first time."""
        tree = self.base_path(key)
        if not tree.is_dir():
            new = self.open() / f"new-{secrets.token_hex(6)}"
            work = new / "tree"
            await asyncio.to_thread(extract_start, task.start, work)
            await asyncio.to_thread(_commit_start, work)
            await prepare(str(work), str(tree))
            _ignore_untracked(work)
            with contextlib.suppress(OSError):  # another runner was faster
                new.rename(tree.parent)
            remove_tree(new)
        with contextlib.suppress(OSError):
            os.utime(tree.parent)
        return Base(str(tree))

    async def attempt(self, base: Base) -> tuple[AttemptFolder, Snapshot]:
        """A fresh copy of a start with an empty home, and the snapshot of its files."""
        folder = AttemptFolder(self.open() / secrets.token_hex(8))
        folder.path.mkdir(mode=0o700)
        for path in (folder.home, folder.temporary):
            Path(path).mkdir(mode=0o700)
        await copy_tree(base.tree, folder.work)
        return folder, await asyncio.to_thread(take_snapshot, folder.work)

    def discard(self, folder: AttemptFolder) -> None:
        """Remove the folders of an attempt, beside the attempts that follow."""
        removal = asyncio.create_task(_remove(folder.path))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def close(self) -> None:
        """Remove everything of this runner but the prepared starts."""
        if self._removals:
            await asyncio.wait(set(self._removals))
        owner, self._owner = self._owner, None
        if owner is not None:
            await _remove(owner)
            os.close(self._lock)


async def copy_tree(source: str, target: str) -> None:
    """Copy a folder, sharing blocks where the file system can.

    ``cp`` takes 0.07 to 0.1 s for 2,000 files; ``git worktree add`` 0.9 s, an archive 0.7 s and
    Python's copytree 0.2 s (ext4, 2 processors, 18 November 2026).
    """
    words = ["cp", "-a", "--reflink=auto", source, target]
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    if process.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines() or ["cp failed"]
        raise OSError(f"the workspace could not be copied: {lines[-1]}")


async def _remove(path: Path) -> None:
    """Remove a folder; one that an agent closed to us is opened first."""
    process = await asyncio.create_subprocess_exec(
        "rm", "-rf", str(path), stderr=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL
    )
    await process.wait()
    if os.path.lexists(path):
        await asyncio.to_thread(remove_tree, path)


def remove_tree(path: Path) -> None:
    """Remove a folder whatever modes its folders have."""
    for root, folders, _ in os.walk(path):
        for name in folders:
            with contextlib.suppress(OSError):
                place = os.path.join(root, name)  # noqa: PTH118 - many thousand times
                if not os.path.islink(place):  # noqa: PTH114
                    os.chmod(place, 0o700)  # noqa: PTH101
    shutil.rmtree(path, ignore_errors=True)


def extract_start(start: Start, target: Path) -> None:
    """Write a starting point to a new folder.

    Raises
    ------
    InvalidValue
        It cannot be read.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if start.image:
        _take_from_image(start, target)
    elif start.commit:
        _check_out(start, target)
    elif start.path.is_dir():
        words = ["cp", "-a", "--reflink=auto", str(start.path), str(target)]
        answer = subprocess.run(words, capture_output=True, timeout=_COPY_SECONDS)
        if answer.returncode:
            error = answer.stderr.decode("utf-8", "replace").strip()
            raise InvalidValue(f"the start cannot be copied: {error}")
        # A history may hold the very fix that the agent is to find.
        remove_tree(target / ".git")
        (target / ".git").unlink(missing_ok=True)
    else:
        _unpack(start.path, target)


def _check_out(start: Start, target: Path) -> None:
    target.mkdir()
    index = target.parent / "index"
    tree = start.find_tree()
    environment = {**os.environ, "GIT_INDEX_FILE": str(index)}
    for words in (["read-tree", tree], ["checkout-index", "-a", f"--prefix={target}/"]):
        answer = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(start.path), *words],
            capture_output=True,
            env=environment,
            timeout=_COPY_SECONDS,
        )
        if answer.returncode:
            error = answer.stderr.decode("utf-8", "replace").strip()
            raise InvalidValue(f"git cannot check out {start.commit}: {error}")
    index.unlink(missing_ok=True)


def _take_from_image(start: Start, target: Path) -> None:
    """Copy the working folder of an image, then the files that its recipe adds."""
    engine, _, image = start.image.partition(":")
    target.mkdir()
    name = f"passhat-{os.getpid()}-{secrets.token_hex(6)}"
    answer = _engine(engine, "create", "--pull=never", "--name", name, image, "true")
    if answer.returncode:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no answer"]
        raise InvalidValue(f"the image {image} is not at hand: {lines[-1]}")
    # A folder that the image does not have is an empty one, as WORKDIR would make it.
    _engine(engine, "cp", f"{name}:{start.place}/.", str(target))
    _engine(engine, "rm", "--force", name)
    for source, name_inside in start.copies:
        origin = (start.path / source).resolve()
        if not origin.is_relative_to(start.path.resolve()) or not origin.exists():
            raise InvalidValue(f"its Dockerfile copies {source!r}, and there is no such file")
        goal = target / name_inside
        if origin.is_dir():
            shutil.copytree(origin, goal, symlinks=True, dirs_exist_ok=True)
            continue
        place = goal / origin.name if not name_inside or name_inside.endswith("/") else goal
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(origin, place)
    if any(origin in (".", "./") for origin, _ in start.copies):
        (target / "Dockerfile").unlink(missing_ok=True)


def _engine(engine: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run([engine, *words], capture_output=True, timeout=_COPY_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess([], 1, b"", str(error).encode())


def _unpack(archive: Path, target: Path) -> None:
    place = target.with_name("unpacked")
    place.mkdir()
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                file.extractall(place)
        else:
            with tarfile.open(archive) as file:
                file.extractall(place, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
        raise InvalidValue(f"the archive {archive.name} cannot be unpacked: {error}") from None
    names = list(place.iterdir())
    # Archives of a release have one folder with everything in it.
    whole = names[0] if len(names) == 1 and names[0].is_dir() else place
    whole.rename(target)
    remove_tree(target / ".git")
    remove_tree(place)


def apply_patch(patch: str, folder: Path) -> None:
    """Apply a patch with git, which needs no repository for that.

    Raises
    ------
    InvalidValue
        It does not fit.
    """
    file = folder.parent / "patch"
    file.write_text(patch if patch.endswith("\n") else f"{patch}\n", encoding="utf-8")
    answer = run_git(folder, "apply", "--whitespace=nowarn", str(file))
    file.unlink()
    if answer.returncode:
        error = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["git failed"]
        raise InvalidValue(f"the patch does not apply: {error[0]}")


def _commit_start(folder: Path) -> None:
    """Make a repository with one commit of the start: agents look at it and at their own diff."""
    if shutil.which("git") is None:
        return
    who = ("-c", "user.name=start", "-c", "user.email=start@localhost")
    steps = (
        ("init", "-q", "-b", "main"),
        ("config", "core.checkStat", "minimal"),
        ("config", "core.trustctime", "false"),
        ("config", "core.fsyncMethod", "writeout-only"),
        ("add", "-A", "-f"),
        (*who, "commit", "-q", "--allow-empty", "-m", "Start", f"--date={_DATE}"),
        ("repack", "-adq"),  # one file to copy instead of one for every file of the start
        ("prune-packed", "-q"),
    )
    for words in steps:
        run_git(folder, *words)
    for name in ("hooks", "branches", "logs"):
        remove_tree(folder / ".git" / name)


def _ignore_untracked(folder: Path) -> None:
    """Keep products of the set-up out of ``git status``."""
    if not (folder / ".git").is_dir():
        return
    answer = run_git(folder, "status", "--porcelain", "-z", "--untracked-files=normal")
    names = [entry[3:] for entry in answer.stdout.split(b"\0") if entry.startswith(b"?? ")]
    if names:
        (folder / ".git" / "info").mkdir(exist_ok=True)
        rows = b"".join(b"/" + name + b"\n" for name in names if b"\n" not in name)
        (folder / ".git" / "info" / "exclude").write_bytes(rows)
