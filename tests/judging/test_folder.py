"""Two copies of a scratch folder stay alike, whichever side changes what."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.judging.inside import folder as module
from passhat.judging.inside import wire
from passhat.judging.inside.folder import Folder

PLACES = st.sampled_from(["a", "b", "d/a", "d/e/a", "d", "d/e"])
STEP = st.tuples(
    st.booleans(),
    st.sampled_from(["write", "append", "folder", "link", "remove", "mode"]),
    PLACES,
    st.binary(max_size=3),
)


def _change(root: Path, what: str, place: str, content: bytes) -> None:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "remove" and path.is_dir() and not path.is_symlink():
        for inner in sorted(path.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() and not inner.is_symlink() else inner.unlink()
        path.rmdir()
    elif what == "remove":
        path.unlink(missing_ok=True)
    elif what == "folder":
        path.mkdir(exist_ok=True)
    elif what == "link":
        path.symlink_to("a")
    elif what == "mode":
        path.chmod(0o750)
    else:
        path.write_bytes(content + (path.read_bytes() if what == "append" else b""))


def _tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Kind, mode, target or content and time of everything in a folder, by its path."""

    def content(path: Path) -> object:
        if path.is_symlink():
            return path.readlink()
        return None if path.is_dir() else (path.read_bytes(), path.stat().st_mtime_ns)

    return {str(p.relative_to(root)): (p.lstat().st_mode, content(p)) for p in root.rglob("*")}


@settings(max_examples=25)
@given(steps=st.lists(STEP, max_size=12))
def test_after_every_message_both_sides_are_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, str, str, bytes]]
) -> None:
    roots = [tmp_path_factory.mktemp("side") for _ in range(2)]
    sides = [Folder(str(root)) for root in roots]
    for is_far, what, place, content in steps:
        with suppress(OSError):  # a file where a folder is wanted, and the like
            _change(roots[is_far], what, place, content)
        if changes := sides[is_far].changes():
            sides[not is_far].apply(changes)
        assert _tree(roots[0]) == _tree(roots[1])
        assert sides[0].changes() == sides[1].changes() == []


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Folder, Folder]]:
    """The folder of the near side and both sides; the working folder and variables stay ours."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASSHAT_FOLDER", "")
    modules = list(sys.path)
    yield tmp_path / "one", Folder(str(tmp_path / "one")), Folder(str(tmp_path / "other"))
    sys.path[:] = modules


def test_variables_modules_and_the_working_folder_go_along(
    sides: tuple[Path, Folder, Folder], tmp_path: Path
) -> None:
    _, near, far = sides
    here = os.getcwd()  # noqa: PTH109 - as text, as it is sent
    os.environ["PASSHAT_FOLDER"] = "set"
    removals, new, place, unset, assignments = near.changes()
    assert (removals, new, unset) == ([], [], [])
    assert ["PASSHAT_FOLDER", "set"] in assignments
    assert place == [here, sys.path]
    far.apply([[], [], [str(tmp_path / "one"), ["m"]], [], [["PASSHAT_FOLDER", "far"]]])
    assert (os.getcwd(), sys.path) == (str(tmp_path / "one"), ["m"])  # noqa: PTH109
    assert os.environ["PASSHAT_FOLDER"] == "far"
    assert far.changes() == []  # what came is nothing new
    far.apply([[], [], [None, ["m"]], ["PASSHAT_FOLDER", "PASSHAT_FOLDER_GONE"], []])
    assert "PASSHAT_FOLDER" not in os.environ
    assert os.getcwd() == str(tmp_path / "one")  # noqa: PTH109


def test_a_working_folder_that_was_removed_is_none(sides: tuple[Path, Folder, Folder]) -> None:
    root, near, _ = sides
    (root / "gone").mkdir()
    os.chdir(root / "gone")
    (root / "gone").rmdir()
    assert near.changes()[2][0] is None


@pytest.mark.parametrize(
    ("names", "size", "fits"), [(3, 0, True), (4, 0, False), (1, 10, True), (1, 11, False)]
)
def test_so_many_files_and_bytes_fit(
    sides: tuple[Path, Folder, Folder],
    monkeypatch: pytest.MonkeyPatch,
    names: int,
    size: int,
    fits: bool,
) -> None:
    root, near, _ = sides
    monkeypatch.setattr(module, "_MOST_FILES", 3)
    monkeypatch.setattr(module, "_MOST_BYTES", 10)
    for name in range(names):
        (root / str(name)).write_bytes(bytes(size))
    if fits:
        assert len(near.changes()[1]) == names
    else:
        with pytest.raises(wire.NotPlain, match="bytes of files"):
            near.changes()


@pytest.mark.parametrize("entry", [["x", "?", 0o600, 0, ""], ["x", "-", "y", 0, ""], ["x"]])
def test_what_is_no_change_is_refused(
    sides: tuple[Path, Folder, Folder], entry: list[object]
) -> None:
    with pytest.raises(ValueError, match=r"."):
        sides[2].apply([[], [entry], [None, []], [], []])


def test_a_pipe_does_not_cross(sides: tuple[Path, Folder, Folder]) -> None:
    root, near, _ = sides
    os.mkfifo(root / "pipe")
    with pytest.raises(wire.NotPlain, match="neither data"):
        near.changes()


def test_what_is_on_another_device_stays_where_it_is(sides: tuple[Path, Folder, Folder]) -> None:
    """The interpreter is mounted below the folder, where there is no sandbox of its own."""
    root, near, _ = sides
    (root / "d").mkdir()
    (root / "d" / "a").write_bytes(b"1")
    assert sorted(dict(near._entries())) == ["d", "d/a"]
    near._device += 1
    assert list(near._entries()) == []


@pytest.mark.parametrize(
    ("target", "is_inside"),
    [
        ("a", True),
        ("d/a", True),
        ("..a", True),
        ("..", False),
        ("d/../a", False),
        ("/root", True),
        ("/root/a", True),
        ("/rooted", False),
        ("/root/../a", False),
        ("/", False),
    ],
)
def test_a_link_leads_nowhere_else(target: str, is_inside: bool) -> None:
    assert module._stays_inside(target, "/root") is is_inside


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "a\0"])
def test_a_path_out_of_the_folder_is_refused(sides: tuple[Path, Folder, Folder], path: str) -> None:
    root, _, far = sides
    with pytest.raises(ValueError, match="the path"):
        far._inner(path)
    assert far._inner("a/b..") == f"{far._root}/a/b.."
    assert root.name == "one"


@pytest.mark.parametrize("before", ["", "file", "folder", "link"])
@pytest.mark.parametrize("kind", ["-", "d", "l"])
def test_an_entry_takes_the_place_of_another(
    sides: tuple[Path, Folder, Folder], tmp_path: Path, before: str, kind: str
) -> None:
    _, _, far = sides
    place = tmp_path / "other" / "x"
    if before:
        _change(tmp_path / "other", {"file": "write"}.get(before, before), "x", b"old and longer")
    content = {"-": b"new", "d": b"", "l": b"a"}[kind]
    far._write(str(place), (kind, 0o640, 5_000_000_000, content))
    assert module._kind_at(str(place)) == kind
    if kind == "-":
        assert place.read_bytes() == b"new"
        state = place.stat()
        assert (state.st_mode & 0o777, state.st_mtime_ns) == (0o640, 5_000_000_000)
    elif kind == "l":
        assert str(place.readlink()) == "a"
    module._remove(str(place))
    assert module._kind_at(str(place)) == ""
    module._remove(str(place))


def test_a_file_that_cannot_be_read_is_sent_and_stays_as_it_is(
    sides: tuple[Path, Folder, Folder],
) -> None:
    root, near, _ = sides
    file = root / "x"
    file.write_bytes(b"1")
    file.chmod(0o200)
    assert dict(near._entries())["x"][1:2] == (0o200,)
    assert file.stat().st_mode & 0o777 == 0o200


def test_after_a_file_that_cannot_be_sent_nothing_is(sides: tuple[Path, Folder, Folder]) -> None:
    root, near, _ = sides
    os.mkfifo(root / "pipe")
    with pytest.raises(wire.NotPlain):
        near.changes()
    (root / "pipe").unlink()
    (root / "a").write_bytes(b"1")
    assert near.changes() == []
