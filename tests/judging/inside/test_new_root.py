"""The root that programs see: what is in it, and which calls of the system put it in place."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Set
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging.inside import new_root

SETUP: dict[str, Any] = {"shown": [], "granted": [], "hidden": [], "nodes": []}


class _Mounts:
    """Mounts that are only noted; a refusal names the target that cannot be mounted."""

    def __init__(self, place: Path, refused: str = "") -> None:
        self.place, self.refused = str(place), refused
        self.log: list[str] = []

    def __call__(self, source: str, target: str, kind: str, flags: int, options: str = "") -> bool:
        words = [source, target.replace(self.place, "NEW"), kind, str(flags), options]
        self.log.append(" ".join(filter(None, words)))
        return not (self.refused and target.endswith(self.refused))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the new root is made."""
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.setattr(new_root, "_PLACE", str(folder))
    return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few files and folders, outside of /tmp by name."""
    folder = tmp_path / "machine"
    for name in ("lib/one.py", "lib/one.opt-1.pyc", "lib/test/x.py", "lib/deep/two.so", "lib/x.a"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "lib" / "one.py").chmod(0o640)
    (folder / "lib" / "deep" / "two.so").chmod(0o750)
    (folder / "lib" / "link").symlink_to("one.py")
    (folder / "hidden").mkdir()
    (folder / "node").write_text("")
    monkeypatch.setattr(os, "__file__", str(folder / "lib" / "os.py"))
    return folder


def _tree(folder: Path) -> dict[str, str]:
    """Content, target or mode of everything below."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = f"{path.read_text()} {path.stat().st_mode & 0o777:o}"
        elif not any(path.iterdir()):
            found[name] = "empty"
    return found


def _below(machine: Path) -> str:
    """Where the machine is in the new root: what is below /tmp has a place of its own."""
    name = str(machine).lstrip("/")
    return f"below/{name}" if str(machine).startswith("/tmp/") else name


def test_files_are_copied_without_what_is_left_out(place: Path, machine: Path) -> None:
    setup = {**SETUP, "shown": [f"{machine}/lib"], "hidden": [f"{machine}/lib/deep"]}
    setup |= {"granted": [f"{machine}/lib/deep/two.so"], "nodes": ["/dev/null"]}
    mounts = _Mounts(place)
    before = os.umask(0o022)
    try:
        new_root._fill(setup, mounts, copies=True)
    finally:
        os.umask(before)
    lib = f"{_below(machine)}/lib"
    assert _tree(place) == {
        f"{lib}/deep/two.so": "lib/deep/two.so 554",
        f"{lib}/link": "-> one.py",
        f"{lib}/one.py": "lib/one.py 444",
        "dev/null": " 444",
        "dev/shm": "empty",
        "tmp": "empty",
    }
    assert mounts.log == [f"/dev/null NEW/dev/null {4096 | 16384}"]


def test_files_are_shown_where_they_are_and_what_is_hidden_is_covered(
    place: Path, machine: Path
) -> None:
    setup = {**SETUP, "shown": [f"{machine}/lib", f"{machine}/node"]}
    setup |= {"hidden": [f"{machine}/lib", f"{machine}/hidden"], "granted": [f"{machine}/hidden"]}
    mounts = _Mounts(place)
    new_root._fill(setup, mounts, copies=False)
    where = f"NEW/{_below(machine)}"
    covered = f"tmpfs NEW{machine}/lib tmpfs 6"
    expected = [
        f"{machine}/lib {where}/lib {4096 | 16384}",
        f"{machine}/node {where}/node {4096 | 16384}",
        *([covered] if not str(machine).startswith("/tmp/") else []),
        f"{machine}/hidden {where}/hidden {4096 | 16384}",
    ]
    assert mounts.log == expected
    root = place / _below(machine)
    assert (root / "lib").is_dir()
    assert (root / "node").read_text() == ""
    assert (root / "node").stat().st_mode & 0o777 & ~0o444 == 0
    assert sorted(path.name for path in place.iterdir()) == sorted(
        {"tmp", "dev", Path(_below(machine)).parts[0]}
    )


def test_of_a_container_all_is_shown_but_what_the_engine_made(
    place: Path, monkeypatch: pytest.MonkeyPatch, machine: Path
) -> None:
    omitted: list[set[str]] = []

    def copy(source: str, target: str, left_out: set[str], show: Callable[..., None]) -> None:
        omitted.append(set(left_out))
        assert (source, target) == ("/", str(place))
        assert callable(show)

    monkeypatch.setattr(new_root, "_copy_entries", copy)
    new_root._fill({**SETUP, "hidden": ["/srv"]}, _Mounts(place), copies=True)
    lib = f"{machine}/lib"
    parts = {f"{lib}/{name}" for name in ("test", "idlelib", "ensurepip", "turtledemo")}
    assert omitted == [{"/srv", "/proc", "/sys", "/dev", "/run", "/tmp", *parts}]


def test_entries_are_shown_by_kind(place: Path, machine: Path) -> None:
    os.mkfifo(machine / "lib" / "pipe")
    shown: list[str] = []

    def show(source: str, target: str, omitted: Set[str]) -> None:
        assert omitted == {f"{machine}/lib/test"}
        assert target == f"{place}/{Path(source).name}"
        shown.append(Path(source).name)

    new_root._copy_entries(f"{machine}/lib", str(place), {f"{machine}/lib/test"}, show)
    assert sorted(shown) == ["deep", "one.py"]
    assert (place / "link").readlink() == Path("one.py")


def test_what_may_not_be_read_or_is_there_is_left(place: Path, machine: Path) -> None:
    (place / "there").write_text("before")
    new_root._copy(f"{machine}/node", f"{place}/there", set())
    assert (place / "there").read_text() == "before"
    large = machine / "large"
    large.write_bytes(os.urandom(70_000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_root, "_CHUNK", 30_000)
        new_root._copy(str(large), f"{place}/large", set())
    assert (place / "large").read_bytes() == large.read_bytes()
    with pytest.raises(FileNotFoundError):
        new_root._copy(f"{machine}/absent", f"{place}/absent", set())


def test_a_path_below_tmp_has_a_place_beside_it(place: Path) -> None:
    assert new_root._make_parents("/tmp/a/b") == f"{place}/below/tmp/a/b"
    assert new_root._make_parents("/usr/a") == f"{place}/usr/a"
    assert new_root._make_parents("/tmp/x", "") == f"{place}/tmp/x"
    assert (place / "below" / "tmp" / "a").is_dir()
    assert not (place / "usr" / "a").exists()


def test_a_mount_that_is_refused_is_an_error(place: Path, machine: Path) -> None:
    mounts = _Mounts(place, refused="/node")
    with pytest.raises(OSError, match="node"):
        new_root._bind(mounts)(f"{machine}/node", f"{place}/node", set())
    (place / "there").write_text("kept")
    new_root._bind(mounts)(f"{machine}/node", f"{place}/there", set())
    assert (place / "there").read_text() == "kept"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of the system, which are only noted."""
    log: list[str] = []
    monkeypatch.setattr(os, "chdir", lambda path: log.append(f"chdir {path}"))
    monkeypatch.setattr(os, "chroot", lambda path: log.append(f"chroot {path}"))
    monkeypatch.setattr(os, "umask", lambda mask: log.append(f"umask {mask:o}"))
    return log


@pytest.mark.parametrize("case", ["pivots", "changes its root", "is too large", "cannot mount"])
def test_a_root_is_entered_or_nothing_is_changed(
    monkeypatch: pytest.MonkeyPatch, place: Path, calls: list[str], case: str
) -> None:
    def unmount(path: bytes, flags: Any) -> int:
        calls.append(f"unmount {path.decode()} {flags.value}")
        return 0

    def call(number: Any, *words: bytes) -> int:
        calls.append(f"call {number.value} {words}")
        return 0 if case == "pivots" else -1

    def fill(setup: object, mount: object, *, copies: bool) -> None:
        calls.append(f"fill {setup} {copies}")
        assert mount is mounts
        if case == "is too large":
            raise OSError("no space")

    mounts = _Mounts(place, refused=str(place) if case == "cannot mount" else "")
    libc = SimpleNamespace(umount2=unmount, syscall=call)
    monkeypatch.setattr(new_root, "ctypes", SimpleNamespace(
        CDLL=lambda _: libc, c_int=ctypes.c_int, c_long=ctypes.c_long,
    ))  # fmt: skip
    monkeypatch.setattr(new_root, "_fill", fill)
    setup: Any = "SETUP"
    entered = new_root.enter_root(setup, mounts, copies=True)
    assert entered is (case in ("pivots", "changes its root"))
    assert mounts.log == ["tmpfs NEW tmpfs 6 size=268435456,mode=755"]
    pivot = 155 if os.uname().machine == "x86_64" else 41
    begin = ["umask 22", "fill SETUP True"]
    enter = [f"chdir {place}", f"call {pivot} (b'.', b'.')"]
    assert (
        calls
        == {
            "pivots": [*begin, *enter, "unmount . 2", "chdir /"],
            "changes its root": [*begin, *enter, "chroot .", "chdir /"],
            "is too large": [*begin, "chdir /", f"unmount {place} 2"],
            "cannot mount": [],
        }[case]
    )
