"""A store backend is a plug-in: a class and an entry point under the scheme of its addresses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from passhat.errors import InvalidValue
from passhat.runner.run_spec import RunSpec, run
from passhat.store import is_address, open_reading, open_store

BACKEND = """
from pathlib import Path
from passhat.store.sqlite import SqliteStore

class ShelfStore(SqliteStore):
    '''One file per shelf, in a folder.'''

    def __init__(self, address, **options):
        super().__init__(str(Path(__file__).parent / address.removeprefix("shelf://")), **options)
        self.path = address

class NoStore:
    pass
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with two entry points, one of which names no store."""
    folder = tmp_path / "site"
    info = folder / "shelf-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[passhat.stores]\nshelf = shelf_backend:ShelfStore\nempty = shelf_backend:NoStore\n"
    )
    (folder / "shelf_backend.py").write_text(BACKEND)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "shelf_backend", raising=False)
    return folder


def test_a_run_in_the_store_of_a_plugin(shelf: Path) -> None:
    assert is_address("shelf://b.db")
    result = run(
        RunSpec(agent="demo:careful", suite="orderdesk/retail", tasks=("0", "1"), attempts=2,
                store="shelf://b.db")
    )  # fmt: skip
    assert (result.store, result.left) == ("shelf://b.db", 0)
    assert (shelf / "b.db").is_file()
    with open_reading("shelf://b.db") as reading:
        (stored,) = reading.runs()
    assert (stored.id, stored.attempts) == (result.id, 4)


def test_an_entry_point_that_is_no_store_is_refused(shelf: Path) -> None:
    del shelf
    with pytest.raises(InvalidValue, match="entry point empty"):
        open_store("empty://x")


def test_an_unknown_scheme_is_refused_without_its_password() -> None:
    assert not is_address("mysql://u:secret@h/d")
    with pytest.raises(InvalidValue, match=r"mysql://\.\.\.") as caught:
        open_store("mysql://u:secret@h/d")
    assert "secret" not in str(caught.value)
