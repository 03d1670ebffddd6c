"""Files, globs and examples."""

from __future__ import annotations

from collections.abc import Callable
from errno import EACCES
from pathlib import Path

import pytest

from passhat import read
from passhat.errors import ReadError
from passhat.readers.sources import examples, expand


def test_a_glob_and_a_path_name_each_file_once(table: Callable[..., Path]) -> None:
    one, two = table("task,success\na,1\n", "one.csv"), table("task,success\na,1\n", "two.csv")
    found = expand([str(one.parent / "*.csv"), str(one)])
    assert [source.path for source in found] == [one, two]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(ReadError, match="no such file"):
        read(str(tmp_path / "*.csv"))
    with pytest.raises(ReadError, match="is a folder"):
        read(tmp_path)


def test_examples_are_read_by_name() -> None:
    assert "helpdesk" in examples()
    runs = read("example:helpdesk")
    assert [run.name for run in runs] == ["careful", "hasty"]
    assert [len(run.outcomes) for run in runs] == [24, 24]
    with pytest.raises(ReadError, match=r"no such example.*helpdesk"):
        read("example:nothing")


def test_a_file_that_may_not_be_read(
    table: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table("task,success\na,1\n")

    def refuse(
        *_: object, **__: object
    ) -> None:  # root may read everything, so a mode of 000 would not do
        raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ReadError, match="cannot be read: Permission denied"):
        read(path)


def test_a_pointer_of_git_lfs_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 12\n")
    with pytest.raises(ReadError, match="a pointer of Git LFS"):
        read(path)
