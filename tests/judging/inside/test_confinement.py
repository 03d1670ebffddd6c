"""The parts of walls that need no privilege: filters put on, limits, and what is forgiven."""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging.inside import confinement, seccomp
from passhat.judging.inside.confinement import Confinement


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_filter_is_put_on_with_the_id_of_its_process(
    monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    code = seccomp.program_for(seccomp._PLACEHOLDER)
    worn = seccomp.Filter()
    calls: list[tuple[int, ...]] = []
    programs: list[bytes] = []

    def control(option: int, *words: int) -> int:
        calls.append((option, words[0], *words[2:]))
        if option == 22:
            length, address = struct.unpack("H6xQ", ctypes.string_at(words[1], 16))
            programs.append(ctypes.string_at(address, 8 * length))
        return -1 if is_refused and option == 22 else 0

    monkeypatch.setattr(worn, "_prctl", control)
    for pid in (4321, 4321):
        if is_refused:
            with pytest.raises(seccomp.Unavailable, match="refused the seccomp filter: "):
                worn.install(pid)
        else:
            worn.install(pid)
    assert calls == [(38, 1, 0, 0), (22, 2, 0, 0)] * 2
    expected = seccomp.program_for(4321)
    assert programs == [expected] * 2
    assert code != expected
    assert len(code) == len(expected)


def test_a_filter_may_be_given_and_a_machine_must_be_known() -> None:
    code = seccomp.guard_memory("x86_64")
    given = seccomp.Filter(code)
    assert (given._program.length, given._places) == (len(code) // 8, [])
    assert bytes(given._buffer) == code
    for make in (seccomp.guard_memory, lambda machine: seccomp.program_for(1, machine)):
        with pytest.raises(seccomp.Unavailable, match="for the machine 'vax'"):
            make("vax")
    assert seccomp.program_for(5) == seccomp.program_for(5, os.uname().machine)
    assert seccomp.guard_memory() == seccomp.guard_memory(os.uname().machine)


def _bare(**parts: Any) -> Any:
    """Walls of which only these parts were made."""
    walls: Any = object.__new__(Confinement)
    vars(walls).update({"mounted": False, "_base": "x", "_bytes": 10, **parts})
    return walls


@pytest.mark.parametrize(
    ("files", "size", "most", "is_too_much"),
    [(2, 5, 3, False), (2, 6, 3, True), (3, 1, 3, True), (2, 0, 3, False)],
)
def test_a_folder_without_a_limit_of_its_own_is_looked_through(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: int,
    size: int,
    most: int,
    is_too_much: bool,
) -> None:
    monkeypatch.setattr(confinement, "_MOST_FILES", most)
    (tmp_path / "deep").mkdir()
    for number in range(files):
        (tmp_path / "deep" / str(number)).write_bytes(bytes(size))
    assert _bare(scratch=str(tmp_path)).too_much() is is_too_much
    assert not _bare(scratch=str(tmp_path), mounted=True).too_much()
    assert not _bare(scratch=str(tmp_path), _base="").too_much()


def test_every_program_gets_an_empty_folder(tmp_path: Path) -> None:
    allowed: list[str] = []
    rules = SimpleNamespace(allow_scratch=allowed.append)
    walls = _bare(_base=str(tmp_path), scratch=str(tmp_path), _rules=rules)
    made = []
    for _ in range(3):
        walls.freshen()
        made.append(walls.scratch)
        assert [str(path) for path in tmp_path.iterdir()] == [walls.scratch]
        (Path(walls.scratch) / "left").write_text("by a program")
    assert allowed == made
    assert len(set(made)) == 3
    assert walls._allowed


@pytest.mark.parametrize(
    ("success", "expected"), [(True, True), (False, False), (ValueError("x"), False)]
)
def test_what_works_is_tried_in_a_process_of_its_own(success: object, expected: bool) -> None:
    def attempt() -> bool:
        here.append(os.getpid())
        if isinstance(success, BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            raise success
        return bool(success)

    here: list[int] = []
    assert confinement._works(attempt) is expected
    assert here == []


@pytest.mark.parametrize(("hard", "expected"), [(-1, 50), (40, 40), (60, 50)])
def test_a_limit_is_never_raised(monkeypatch: pytest.MonkeyPatch, hard: int, expected: int) -> None:
    made: list[object] = []
    own = SimpleNamespace(
        RLIM_INFINITY=-1,
        getrlimit=lambda _: (0, hard),
        setrlimit=lambda what, pair: made.append((what, pair)),
    )
    monkeypatch.setattr(confinement, "resource", own)
    confinement._limit(resource.RLIMIT_CORE, 50)
    assert made == [(resource.RLIMIT_CORE, (expected, expected))]


def test_refusals_about_its_own_files_are_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, other = tmp_path / "scratch", tmp_path / "other"
    scratch.mkdir()
    (scratch / "out").symlink_to(other)
    seen: list[object] = []

    def refuse(path: object, *words: object, **named: object) -> None:
        seen.append((path, *words, *named.values()))
        raise PermissionError

    for name in ("chmod", "utime"):
        monkeypatch.setattr(os, name, refuse)
    confinement._ignore_refusals(str(scratch))
    os.chmod(scratch / "a", 0o700)  # noqa: PTH101 - what is replaced
    os.utime(str(scratch), times=None)
    assert seen == [(scratch / "a", 0o700), (str(scratch), None)]
    for path in (other, scratch / "out", 7):
        with pytest.raises(PermissionError):
            os.chmod(path, 0o700)  # noqa: PTH101
    done: list[object] = []
    forgiving: Callable[..., None] = confinement._forgiving(done.append, str(scratch))
    forgiving(5)
    assert done == [5]


def test_threads_of_a_user_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {"/proc/10": 5, "/proc/11": 6, "/proc/12": 5}
    tasks = {"/proc/10/task": ["10", "13"], "/proc/11/task": ["11"], "/proc/12/task": ["12"] * 3}

    def find_owner(path: str) -> Any:
        if path not in owners:
            raise FileNotFoundError
        return SimpleNamespace(st_uid=owners[path])

    folders = {"/proc": ["10", "self", "11", "12", "14"], **tasks}
    own = SimpleNamespace(listdir=folders.__getitem__, stat=find_owner, geteuid=lambda: 5)
    monkeypatch.setattr(confinement, "os", own)
    assert confinement._threads_of_user() == 5


@pytest.mark.parametrize("case", ["fine", "not mounted", "refused"])
def test_a_network_of_ones_own_has_only_the_way_to_oneself(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    log: list[object] = []

    def unshare(flags: Any) -> int:
        log.append(flags.value)
        return -1 if case == "refused" else 0

    monkeypatch.setattr(confinement, "_LIBC", SimpleNamespace(unshare=unshare))
    monkeypatch.setattr(
        confinement,
        "fcntl",
        SimpleNamespace(ioctl=lambda _, *words: log.append(words)),
    )
    walls = _bare(mounted=case != "not mounted")
    if case == "fine":
        walls._leave_network()
        assert log == [0x48000000, (0x8914, b"lo".ljust(16, b"\0") + b"\1\0".ljust(16, b"\0"))]
    else:
        with pytest.raises(seccomp.Unavailable, match="no network namespace"):
            walls._leave_network()


def test_all_that_a_program_leaves_on_a_mount_shows(tmp_path: Path) -> None:
    state, space = tmp_path.stat(), os.statvfs(tmp_path)
    found = confinement._state(str(tmp_path))
    assert found[:8] == (
        *(state.st_dev, state.st_mode, state.st_uid, state.st_gid, state.st_nlink),
        *(state.st_size, state.st_atime_ns, state.st_mtime_ns),
    )
    assert found[8] == state.st_ctime_ns
    assert len(found) == 11
    assert abs(found[9] - space.f_bfree) < 1 << 20
