"""Where workspaces are: prepared starts that are kept, and folders of attempts that are not.

``CACHE/bases/DIGEST/tree`` is a start after its set-up. ``CACHE/attempts/RUNNER/NAME`` belongs to
one attempt: its ``work`` is a layer over the start where an overlay can be mounted, else a copy. A
runner holds a lock on its folder for as long as it lives; a folder whose lock is free was left by
one that was killed, and the next runner removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from passhat.errors import InvalidValue
from passhat.suites.workspace.changes import Snapshot, copy_over, take_snapshot
from passhat.suites.workspace.definition import Start, WorkspaceTask, run_git

_BASE_DAYS = 30
_DATE = "2000-01-01T00:00:00Z"
_COPY_SECONDS = 600
_DETACH = 2 | 8
"""MNT_DETACH and UMOUNT_NOFOLLOW."""
_BIND, _PRIVATE = 1 << 12, 1 << 18
_LAYERS = "layers"


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
    """The folders of one attempt: the workspace, a home, and ``/tmp``.

    ``layer`` is where the workspace is mounted, if it is a layer over its start.
    """

    path: Path
    layer: Path | None = None

    @property
    def work(self) -> str:
        return str(self.layer or self.path / "work")

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
        self._layers: Path | None = None
        self._lock = -1
        self._removals: set[asyncio.Task[None]] = set()
        self._snapshots: dict[str, Snapshot] = {}

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
        self._layers = _make_layers(owner / _LAYERS)
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
            unmount(folder / _LAYERS)
            remove_tree(folder)
        oldest = time.time() - _BASE_DAYS * 86_400
        for folder in (self.root / "bases").iterdir():
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < oldest:
                    remove_tree(folder)

    async def base(
        self, task: WorkspaceTask, key: str, prepare: Callable[[str, str], Awaitable[None]]
    ) -> Base:
        """The prepared start of a task; ``prepare(real, path)`` runs its set-up the first time."""
        tree = self.root / "bases" / key[:24] / "tree"
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

    async def attempt(self, base: Base) -> AttemptFolder:
        """A fresh layer over a start, or a copy of it, with an empty home."""
        name = secrets.token_hex(8)
        folder = AttemptFolder(self.open() / name)
        folder.path.mkdir(mode=0o700)
        for path in (folder.home, folder.temporary):
            Path(path).mkdir(mode=0o700)
        if self._layers is not None:
            overlay = AttemptFolder(folder.path, self._layers / name)
            if await asyncio.to_thread(mount_layer, base.tree, overlay):
                return overlay
        await copy_tree(base.tree, folder.work)
        return folder

    async def snapshot(self, base: Base, folder: AttemptFolder) -> Snapshot:
        """The files of a fresh workspace; those of a start have the same state in every layer."""
        if folder.layer is None:
            return await asyncio.to_thread(take_snapshot, folder.work)
        if base.tree not in self._snapshots:
            self._snapshots[base.tree] = await asyncio.to_thread(take_snapshot, folder.work)
        return self._snapshots[base.tree]

    def discard(self, folder: AttemptFolder) -> None:
        """Remove the folders of an attempt, beside the attempts that follow."""
        removal = asyncio.create_task(_remove(folder.path, folder.layer))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def close(self) -> None:
        """Remove everything of this runner but the prepared starts."""
        if self._removals:
            await asyncio.wait(set(self._removals))
        owner, self._owner = self._owner, None
        if owner is not None:
            await _remove(owner, self._layers)
            self._layers = None
            os.close(self._lock)


def _make_layers(folder: Path) -> Path | None:
    """A folder to mount workspaces in; ``None`` where that is not possible.

    Ordinary users could mount them in a user namespace only, where folders of the start cannot be
    renamed: they get copies.
    """
    is_possible = sys.platform == "linux" and os.geteuid() == 0
    if not is_possible or any(sign in str(folder) for sign in ",:\\"):
        return None
    folder.mkdir()
    # Private: workspaces that come and go do not do so in every sandbox that is running.
    if mount(folder, folder, "", _BIND) and mount("none", folder, "", _PRIVATE):
        return folder
    unmount(folder)
    return None


def mount_layer(tree: str, folder: AttemptFolder) -> bool:
    """Mount a writable layer over a start as the workspace; whether that was possible.

    2,000 files take 2 ms. A copy takes 0.07 s at best, and 0.7 s once many copies were removed:
    ext4 then searches long for inodes that were not freed lately.
    """
    assert folder.layer is not None
    upper, inner = (folder.path / name for name in ("upper", "inner"))
    for path in (upper, inner, folder.layer):
        path.mkdir()
    shutil.copystat(tree, upper)
    # Volatile: else to unmount it writes out all of the disk's cache.
    options = f"lowerdir={tree},upperdir={upper},workdir={inner},redirect_dir=on,volatile"
    return mount("overlay", folder.layer, "overlay", 0, options)


def mount(source: str | Path, target: Path, kind: str, flags: int, options: str = "") -> bool:
    """Call mount(2); whether it worked."""
    words = [str(word).encode() for word in (source, target, kind)]
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.mount(*words, ctypes.c_ulong(flags), options.encode()) == 0)


def unmount(path: Path) -> None:
    """Unmount what is mounted at a folder, if anything, with all that is mounted in it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).umount2(str(path).encode(), ctypes.c_int(_DETACH))


async def copy_tree(source: str, target: str) -> None:
    """Copy a folder, sharing blocks where the file system can.

    ``cp`` takes 0.07 to 0.1 s for 2,000 files on a quiet disk; ``git worktree add`` 0.9 s, an
    archive 0.7 s and Python's copytree 0.2 s (ext4, 2 processors, 18 November 2026).
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


async def _remove(path: Path, layer: Path | None = None) -> None:
    """Remove a folder; one that an agent closed to us is opened first."""
    paths = [str(path)]
    if layer is not None:
        unmount(layer)
        paths.append(str(layer))
    process = await asyncio.create_subprocess_exec(
        "rm", "-rf", *paths, stderr=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL
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
        is_into = not name_inside or name_inside.endswith("/")
        name = origin.name if is_into and origin.is_file() else ""
        copy_over(origin, target, str(Path(name_inside, name)))
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
