"""The scratch folder that tests and program share, though each has its own: changes are sent along.

Every message carries what its sender created, changed or removed since the last one. So nothing
but data of files crosses: no open file, no lock, no pipe, and no path out of the folder. Tests keep
nothing in it but what they write there themselves, for the program to read.
"""

from __future__ import annotations

import contextlib
import posix  # not os, whose functions the tests may patch
import stat
import sys
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from os import environ, fsdecode, fsencode
from typing import Any

from . import wire

_MOST_BYTES = 8 << 20
_MOST_FILES = 2000
_FILE, _FOLDER, _LINK = "-", "d", "l"
_Entry = tuple[str, int, int, bytes]
"""Kind, mode, time of the last change (of files), and content or target."""


class Folder:
    """One side's copy of the folder, with the working folder, variables and ``sys.path``."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._device = posix.lstat(root).st_dev
        self._synced: dict[str, _Entry] = {}
        self._place = _current_place()
        self._variables = dict(environ)
        self._is_lost = False

    # -- sending ---------------------------------------------------------------------------------

    def changes(self) -> list[Any]:
        """Changes since the last message either way; empty if there are none."""
        if self._is_lost:
            return []
        try:
            entries = dict(self._entries())
        except (wire.NotPlain, OSError) as error:
            self._is_lost = True
            raise wire.NotPlain(str(error)) from None
        removals = [path for path in self._synced if path not in entries]
        new = [
            [path, *entry[:3], b2a_base64(entry[3], newline=False).decode()]
            for path, entry in entries.items()
            if self._synced.get(path) != entry
        ]
        place = _current_place()
        variables = dict(environ)
        unset = [name for name in self._variables if name not in variables]
        assignments = [
            [name, value] for name, value in variables.items() if self._variables.get(name) != value
        ]
        if not (removals or new or unset or assignments or place != self._place):
            return []
        self._synced, self._place, self._variables = entries, place, variables
        return [removals, new, place, unset, assignments]

    def _entries(self) -> Iterator[tuple[str, _Entry]]:
        """Everything in the folder, by path, folders before what is in them."""
        size = count = 0
        folders = [""]
        while folders:
            above = folders.pop()
            for item in sorted(posix.listdir(f"{self._root}/{above}")):
                path = f"{above}/{item}" if above else item
                place = f"{self._root}/{path}"
                state = posix.lstat(place)
                if state.st_dev != self._device:
                    continue  # the interpreter, where it is below the folder
                entry = _read_entry(place, state, self._root)
                if entry[0] == _FOLDER:
                    folders.append(path)
                size, count = size + len(entry[3]), count + 1
                if size > _MOST_BYTES or count > _MOST_FILES:
                    raise wire.NotPlain(f"more than {_MOST_BYTES:,} bytes of files")
                yield path, entry

    # -- receiving -------------------------------------------------------------------------------

    def apply(self, changes: Any) -> None:
        """Make the other side's changes here; ValueError or OSError if they are no changes."""
        removals, new, place, unset, assignments = changes
        for path in sorted(map(str, removals), reverse=True):
            _remove(self._inner(path))
            self._synced.pop(path, None)
        folders = []
        for path, kind, mode, time, text in new:
            entry = (str(kind), int(mode) & 0o777, int(time), a2b_base64(text))
            self._write(self._inner(path), entry)
            self._synced[path] = entry
            if kind == _FOLDER:
                folders.append((path, entry[1]))
        for path, mode in reversed(folders):  # last: one may forbid to write in it
            posix.chmod(self._inner(path), mode)
        for name in unset:
            environ.pop(name, None)
        environ.update(dict(assignments))
        self._variables = dict(environ)
        working_folder, modules = place
        if working_folder is not None:
            posix.chdir(working_folder)
        sys.path[:] = modules
        self._place = _current_place()

    def _inner(self, path: str) -> str:
        """The place of a path of the other side, which must not lead out of the folder."""
        steps = path.split("/")
        if not all(steps) or "\0" in path or {".", ".."} & set(steps):
            raise ValueError(f"the path {path[:80]!r}")
        return f"{self._root}/{path}"

    def _write(self, place: str, entry: _Entry) -> None:
        kind, mode, time, content = entry
        present = _kind_at(place)
        if present and (present != kind or kind == _LINK):
            _remove(place)
            present = ""
        if kind == _FOLDER:
            if not present:
                posix.mkdir(place)
            return
        if kind == _LINK:
            target = fsdecode(content)
            if not _stays_inside(target, self._root):
                raise ValueError(f"a link to {target[:80]!r}")
            posix.symlink(target, place)
            return
        if kind != _FILE:
            raise ValueError(f"a file of kind {kind[:80]!r}")
        if present:
            posix.chmod(place, 0o600)
        # In place: a file that is open here shows the new content.
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW
        descriptor = posix.open(place, flags, 0o600)
        try:
            wire.write_all(descriptor, content)
            posix.fchmod(descriptor, mode)
        finally:
            posix.close(descriptor)
        posix.utime(place, ns=(time, time))


def _current_place() -> list[Any]:
    """The working folder, none if it was removed, and the folders of modules."""
    try:
        return [posix.getcwd(), list(sys.path)]
    except OSError:
        return [None, list(sys.path)]


def _kind_at(place: str) -> str:
    try:
        mode = posix.lstat(place).st_mode
    except OSError:
        return ""
    return _LINK if stat.S_ISLNK(mode) else _FOLDER if stat.S_ISDIR(mode) else _FILE


def _remove(place: str) -> None:
    if _kind_at(place) == _FOLDER:
        posix.chmod(place, 0o700)
        for item in posix.listdir(place):
            _remove(f"{place}/{item}")
        posix.rmdir(place)
    else:
        with contextlib.suppress(FileNotFoundError):
            posix.unlink(place)


def _read_entry(place: str, state: posix.stat_result, root: str) -> _Entry:
    mode = stat.S_IMODE(state.st_mode) & 0o777
    if stat.S_ISDIR(state.st_mode):
        return _FOLDER, mode, 0, b""
    if stat.S_ISLNK(state.st_mode):
        target = posix.readlink(place)
        if not _stays_inside(target, root):
            raise wire.NotPlain("a link that leads out of the scratch folder")
        return _LINK, 0o777, 0, fsencode(target)
    if not stat.S_ISREG(state.st_mode):
        raise wire.NotPlain("a file that is neither data, a folder nor a link")
    if state.st_size > _MOST_BYTES:
        raise wire.NotPlain(f"more than {_MOST_BYTES:,} bytes of files")
    with _readable(place, mode) as descriptor:
        content = wire.read_all(descriptor)
    return _FILE, mode, state.st_mtime_ns, content


@contextlib.contextmanager
def _readable(place: str, mode: int) -> Iterator[int]:
    """Open a file that its owner may have forbidden itself to read."""
    if not mode & 0o400:
        posix.chmod(place, mode | 0o400)
    descriptor = posix.open(place, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        posix.close(descriptor)
        if not mode & 0o400:
            posix.chmod(place, mode)


def _stays_inside(target: str, root: str) -> bool:
    """Whether a link leads nowhere else, whatever other links there are."""
    is_inside = not target.startswith("/") or f"{target}/".startswith(f"{root}/")
    return is_inside and ".." not in target.split("/")
