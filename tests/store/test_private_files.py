"""Stores and reports hold conversations: new ones are readable by their owner alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passhat.store import open_store, private_folder, write_private

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of files")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The most generous umask: what is private then is private always."""
    old = os.umask(0)
    yield
    os.umask(old)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_store_its_log_and_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "store.db"
    with open_store(str(path)) as store:
        store.runs()
        files = list(path.parent.iterdir())
        assert len(files) == 3  # with the write-ahead log
        assert {mode(one) for one in files} == {0o600}
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    folder, path = tmp_path / "shared", tmp_path / "shared" / "store.db"
    folder.mkdir(mode=0o775)
    path.touch(mode=0o664)
    open_store(str(path)).close()
    write_private(folder / "new", "x")
    path.with_suffix(".md").touch(mode=0o664)
    write_private(path.with_suffix(".md"), "x")
    private_folder(folder)
    assert (mode(folder), mode(path), mode(path.with_suffix(".md"))) == (0o775, 0o664, 0o664)
    assert mode(folder / "new") == 0o600
    with pytest.raises(FileExistsError):
        private_folder(path)


def test_reports_figures_exports_and_backups(
    passhat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("run", "-a", "demo:careful", "-s", "orderdesk/retail", "-n", 2, "--random", 2)
    assert passhat(*run).code == 0
    store = ".passhat/passhat.db"
    for arguments in (
        ("report", store, "-o", "r.html", "-o", "r.md", "-o", "r.csv"),
        ("export", store, "-o", "r.parquet"),
        ("figure", "curves", store, "-o", "r.svg"),
        ("store", "backup", "copies/backup.db"),
    ):
        ended = passhat(*arguments)
        assert ended.code == 0, ended.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 7
    assert {mode(path) for path in files} == {0o600}
    assert mode(tmp_path / "copies") == mode(tmp_path / ".passhat") == 0o700
