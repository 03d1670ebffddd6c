"""Changes that an agent made to its workspace: found, shown as a diff, applied to a clean copy.

No git is asked: the agent could have set filters, hooks or attributes. Only plain files and links
that stay in the workspace are taken; of modes only whether a file may be executed.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from passhat.suites.workspace.definition import PROTECTED, WorkspaceTask

_SILENT = {
    *(".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__"),
    *(".pytest_cache", ".tox", ".mypy_cache", ".ruff_cache"),
}
"""Folders of tools: never applied, and not worth a note either."""
_LARGEST_FILE = 16 << 20
_LARGEST_SUM = 128 << 20
_MOST_CHANGES = 20_000
_LARGEST_DIFF_FILE = 256 * 1024
_LONGEST_DIFF = 200_000
_MOST_NAMES = 4
_MOST_NOTES = 500

Snapshot = Mapping[str, tuple[int, int]]
"""Paths of a fresh workspace, each with its inode and the time of its last change."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one path: new content, a link's target, or neither where it was deleted."""

    path: str
    content: bytes | None = None
    target: str | None = None
    executable: bool = False
    is_new: bool = False

    @property
    def is_deletion(self) -> bool:
        return self.content is None and self.target is None


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of an attempt.

    ``refused`` are paths that are left out, each with the reason. ``diff`` shows both.
    """

    changes: tuple[Change, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    diff: str = ""
    lines: tuple[int, int] = field(default=(0, 0))

    @property
    def summary(self) -> str:
        """One line: how many files and lines, and the first names."""
        if not self.changes and not self.refused:
            return "nothing changed"
        names = [change.path for change in self.changes]
        rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        first = ", ".join(map(_printable, names[:_MOST_NAMES])) + rest
        files = "1 file" if len(names) == 1 else f"{len(names)} files"
        parts = [f"{files} changed, +{self.lines[0]} -{self.lines[1]}: {first}"] if names else []
        if self.refused:
            parts.append(f"{len(self.refused)} left out")
        return "; ".join(parts)

    @property
    def notes(self) -> str:
        """The paths that were left out, a line each."""
        rows = [f"left out {_printable(path)}: {why}" for path, why in self.refused[:_MOST_NOTES]]
        if len(self.refused) > _MOST_NOTES:
            rows.append(f"and {len(self.refused) - _MOST_NOTES} more")
        return "\n".join(rows)


def take_snapshot(folder: str) -> dict[str, tuple[int, int]]:
    """The files and links of a fresh workspace."""
    return {
        path: (state.st_ino, state.st_ctime_ns)
        for path, state in _entries(folder, [])
        if not stat.S_ISDIR(state.st_mode)
    }


def _entries(
    folder: str, rejects: list[tuple[str, str]], parent: str = ""
) -> Iterator[tuple[str, os.stat_result]]:
    """Every entry with its path in the workspace; folders before what they hold.

    A folder that cannot be read, closed or nested too deep by the agent, is added to ``rejects``.
    """
    try:
        with os.scandir(f"{folder}/{parent}" if parent else folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        rejects.append((parent, f"the folder cannot be read ({error.strerror})"))
        return
    for entry in entries:
        path = f"{parent}/{entry.name}" if parent else entry.name
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if entry.name in _SILENT:
            continue
        yield path, state
        if stat.S_ISDIR(state.st_mode):
            yield from _entries(folder, rejects, path)


def find_changes(task: WorkspaceTask, base: str, work: str, snapshot: Snapshot) -> Changes:
    """Compare a workspace with its start; only files that were touched are read."""
    changes: list[Change] = []
    rejects: list[tuple[str, str]] = []
    present = set()
    room = _LARGEST_SUM
    layout = HiddenLayout.of_task(task, snapshot)
    for path, state in _entries(work, rejects):
        if stat.S_ISDIR(state.st_mode):
            continue
        present.add(path)
        if snapshot.get(path) == (state.st_ino, state.st_ctime_ns):
            continue
        if len(changes) + len(rejects) >= _MOST_CHANGES:
            rejects.append((path, f"more than {_MOST_CHANGES:,} changes"))
            break
        before = _read(base, path) if path in snapshot else None
        after = _read(work, path, state, room)
        if isinstance(after, str):
            rejects.append((path, after))
        elif after != before:
            problem = _problem(task, path) or layout.problem(path, is_new=before is None)
            if problem:
                rejects.append((path, problem))
                continue
            changes.append(
                Change(path, after.content, after.target, after.executable, before is None)
            )
            room -= len(after.content or b"")
    for path in sorted(set(snapshot) - present):
        problem = _problem(task, path) or layout.problem(path, is_new=False)
        if problem:
            rejects.append((path, problem))
        else:
            changes.append(Change(path))
    diff, lines = _diff(base, changes)
    return Changes(tuple(changes), tuple(rejects), diff, lines)


@dataclass(frozen=True, slots=True)
class _Entry:
    content: bytes | None
    target: str | None
    executable: bool


def _read(
    folder: str, path: str, state: os.stat_result | None = None, room: int = _LARGEST_SUM
) -> _Entry | str:
    """A file or link as data; why it is not taken where that is so."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    full = f"{folder}/{path}"
    try:
        state = state or os.lstat(full)
        if stat.S_ISLNK(state.st_mode):
            target = os.readlink(full)  # noqa: PTH115 - text as it is
            if not is_inside(path, target):
                return "a link that leads out of it"
            return _Entry(None, target, False)
        if not stat.S_ISREG(state.st_mode):
            return "neither a file nor a link"
        if state.st_size > min(_LARGEST_FILE, room):
            return f"it has {state.st_size:,} bytes"
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(full, flags), "rb") as file:  # noqa: PTH123 - of a descriptor
            content = file.read(_LARGEST_FILE + 1)
    except (OSError, UnicodeError) as error:
        return f"it cannot be read ({getattr(error, 'strerror', None) or error})"
    return _Entry(content, None, bool(state.st_mode & 0o100))


def is_inside(path: str, target: str) -> bool:
    """Whether a link stays in the workspace.

    ``..`` may only come first: after the name of a folder, which may be a link itself, it leads
    anywhere.
    """
    if not target or target.startswith("/"):
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((i for i, part in enumerate(parts) if part != ".."), len(parts))
    rest = parts[up:]
    return up <= path.count("/") and ".." not in rest and ".git" not in rest


def _problem(task: WorkspaceTask, path: str) -> str:
    """Why a change of a path is left out; empty if it is taken."""
    if any(matches(path, pattern) for pattern in (".git", *task.protect)):
        return "the task protects it"
    is_named = any(_is_named(path, pattern) for pattern in task.allow)
    if not is_named and any(matches(path, pattern) for pattern in PROTECTED):
        return "it steers the tests; allow it by name if agents should change it"
    if task.allow and not any(matches(path, pattern) for pattern in task.allow):
        return "the task does not allow it"
    return ""


@dataclass(frozen=True, slots=True)
class HiddenLayout:
    """Where the hidden tests will be, and what an agent may therefore not put there.

    A folder that only the tests use holds nothing of the agent's. Where they share one with the
    program, such as its top, no new file may win over theirs: a package, an extension module or a
    name without a suffix is imported in place of ``helper.py`` or ``helper.js``.
    """

    folders: frozenset[str]
    names: Mapping[str, frozenset[str]]
    exempt: frozenset[str]

    @classmethod
    def of_task(cls, task: WorkspaceTask, snapshot: Snapshot) -> HiddenLayout:
        """Lay out the hidden files of a task over a start with the files of ``snapshot``."""
        files, reference = task.hidden_files(), task.reference_files()
        start = {parent for path in snapshot for parent in _parents(path)}
        program = {parent for path in reference for parent in _parents(path)}
        program |= {pattern.strip("/").removesuffix("/**") for pattern in task.allow}
        folders: set[str] = set()
        names: dict[str, set[str]] = {}
        for path in files:
            parents = _parents(path)
            # With a reference, a folder of tests that it leaves alone is not the program's.
            holder = {parents[0]} if parents and reference else set()
            folders |= {one for one in parents if one not in start} | holder
            for entry in (path, *parents):
                folder, _, name = entry.rpartition("/")
                names.setdefault(folder, set()).add(
                    name.rpartition(".")[0] or name if entry == path else name
                )
        return cls(
            frozenset(folders - program),
            {folder: frozenset(stems) for folder, stems in names.items()},
            frozenset((*reference, *files)),
        )

    def problem(self, path: str, *, is_new: bool) -> str:
        """Why a change of a path is left out; empty if it is taken."""
        places = (path, *_parents(path))
        if any(place in self.folders for place in places):
            return "its folder is the hidden tests' own"
        if not is_new or path in self.exempt:
            return ""
        for place in places:
            folder, _, name = place.rpartition("/")
            stems = self.names.get(folder, frozenset())
            dots = [i for i, sign in enumerate(name) if sign == "."]
            is_hidden_folder = place != path and any(
                one.startswith(f"{place}/") for one in self.exempt
            )
            if not is_hidden_folder and any(name[:i] in stems for i in (*dots, len(name))):
                return "it would take the place of a hidden test's file"
        return ""


def _parents(path: str) -> list[str]:
    """The folders that hold a path, innermost first."""
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]


def _is_named(path: str, pattern: str) -> bool:
    """Whether a pattern matches with a last part, or a folder, that is no wildcard alone."""
    words = [word for word in pattern.strip("/").split("/") if word not in ("*", "**")]
    return matches(path, pattern) and any(
        matches(word, name) for word in words for name in PROTECTED
    )


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches ``src/**``, or a name such as ``*.py`` anywhere."""
    return _regex(pattern).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _regex(pattern: str) -> re.Pattern[str]:
    text = pattern.strip("/")
    words = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", text)
    parts = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(parts.get(word, re.escape(word)) for word in words)
    lead = "" if "/" in text else "(?:.*/)?"
    return re.compile(f"{lead}{body}(?:/.*)?", re.DOTALL)


# -- the diff --------------------------------------------------------------------------------------


def _diff(base: str, changes: Sequence[Change]) -> tuple[str, tuple[int, int]]:
    """A unified diff of all changes, and how many lines were added and removed."""
    parts: list[str] = []
    plus = minus = length = 0
    for change in changes:
        entry = _read(base, change.path) if not change.is_new else None
        before = entry.content if isinstance(entry, _Entry) else None
        rows = list(_file_diff(change, before or b""))
        plus += sum(row.startswith("+") and not row.startswith("+++") for row in rows)
        minus += sum(row.startswith("-") and not row.startswith("---") for row in rows)
        text = "\n".join(rows)
        if length <= _LONGEST_DIFF:
            parts.append(text[:_LONGEST_DIFF] + ("\n[...]" if len(text) > _LONGEST_DIFF else ""))
        length += len(text)
    if length > _LONGEST_DIFF:
        parts.append(f"[...] the whole diff has {length:,} characters")
    return "\n".join(parts), (plus, minus)


def _file_diff(change: Change, before: bytes) -> Iterator[str]:
    name = _printable(change.path)
    after = change.content or b""
    old = "/dev/null" if change.is_new else f"a/{name}"
    new = "/dev/null" if change.is_deletion else f"b/{name}"
    if change.target is not None:
        what = f"+link to {_printable(change.target)}"
    elif max(len(before), len(after)) > _LARGEST_DIFF_FILE or b"\0" in before + after:
        what = f"[binary or large: {len(before):,} to {len(after):,} bytes]"
    else:
        a, b = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
        rows = list(difflib.unified_diff(a, b, old, new, lineterm=""))
        if rows:
            yield from rows
            return
        is_empty = change.is_new or change.is_deletion
        what = "[an empty file]" if is_empty else "[only the mode changed]"
    yield from (f"--- {old}", f"+++ {new}", what)


def _printable(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if text.isprintable() else repr(text)[1:-1]


# -- applying --------------------------------------------------------------------------------------


def apply_changes(changes: Sequence[Change], folder: str) -> None:
    """Apply changes to a clean copy; nothing outside of it is written, whatever they are."""
    root = Path(folder)
    for change in changes:
        if change.is_deletion:
            path = root / change.path
            if _has_plain_parents(root, change.path) and path.is_symlink() | path.is_file():
                path.unlink()
    for change in changes:
        if not change.is_deletion:
            write_entry(root, change)


def write_entry(root: Path, change: Change) -> None:
    """Write a file or a link in place of whatever is there."""
    parts = change.path.split("/")
    place = root
    for part in parts[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
    place = place / parts[-1]
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)
    if change.target is not None:
        place.symlink_to(change.target)
        return
    place.write_bytes(change.content or b"")
    place.chmod(0o755 if change.executable else 0o644)


def copy_over(source: Path, target: Path, below: str = "") -> None:
    """Copy a file, or the files and links of a folder, to a path below ``target``.

    They take the place of whatever is there; no link is followed.
    """
    is_folder = source.is_dir()
    paths = [Path(root, name) for root, _, names in os.walk(source) for name in names]
    for path in paths if is_folder else [source]:
        name = str(Path(below, path.relative_to(source)) if is_folder else below)
        if path.is_symlink():
            link = os.readlink(path)  # noqa: PTH115 - text as it is
            write_entry(target, Change(name, target=link))
            continue
        is_executable = bool(path.stat().st_mode & stat.S_IXUSR)
        write_entry(target, Change(name, path.read_bytes(), executable=is_executable))


def _has_plain_parents(root: Path, path: str) -> bool:
    place = root
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink() or not place.is_dir():
            return False
    return True
