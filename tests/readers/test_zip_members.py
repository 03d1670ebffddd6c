"""Members of zip files, against Python's own zipfile; also of files that were cut off."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.readers.sources import Source, UnpackedTooLarge
from passhat.readers.zip_members import BrokenMember, Members, is_excel, is_zip

CONTENT = {
    "a.json": b'{"a": 1}',
    "folder/b.json": bytes(range(256)) * 40,
    "empty": b"",
    "ünï 漢.json": "é".encode() * 500,
}


class _Stream(io.RawIOBase):
    """A file that cannot seek: then zipfile writes sizes after the content."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def _zipped(method: int = zipfile.ZIP_DEFLATED, *, streamed: bool = False) -> bytes:
    target = _Stream() if streamed else io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in CONTENT.items():
            archive.writestr(name, data)
    return bytes(target.data) if isinstance(target, _Stream) else target.getvalue()


def _members(folder: Path, data: bytes, *, limit: int | None = None) -> Members:
    path = folder / "log.zip"
    path.write_bytes(data)
    return Members(Source(str(path), path, max_unpacked=limit))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("streamed", [False, True])
def test_members_are_what_was_written(tmp_path: Path, method: int, streamed: bool) -> None:
    members = _members(tmp_path, _zipped(method, streamed=streamed))
    assert members.names() == list(CONTENT)
    assert {name: members.read(name) for name in members.names()} == CONTENT
    assert members.names("folder/") == ["folder/b.json"]
    assert "empty" in members
    assert "c.json" not in members
    assert not members.cut_off


@pytest.mark.parametrize("streamed", [False, True])
def test_without_the_table_of_contents_the_members_are_found(
    tmp_path: Path, streamed: bool
) -> None:
    data = _zipped(streamed=streamed)
    members = _members(tmp_path, data[: data.index(b"PK\x01\x02")])
    assert members.cut_off
    assert {name: members.read(name) for name in members.names()} == CONTENT


def test_a_member_that_the_file_ends_in_is_broken_and_those_before_are_not(tmp_path: Path) -> None:
    data = _zipped(zipfile.ZIP_STORED)
    end = data.index(b"folder/b.json") + len("folder/b.json") + 100
    members = _members(tmp_path, data[:end])
    assert members.read("a.json") == CONTENT["a.json"]
    with pytest.raises(BrokenMember, match="ends in the middle"):
        members.read("folder/b.json")


def test_a_changed_byte_is_found_by_the_checksum(tmp_path: Path) -> None:
    data = bytearray(_zipped(zipfile.ZIP_STORED))
    data[data.index(b'{"a": 1}') + 6] = ord("2")
    members = _members(tmp_path, bytes(data))
    with pytest.raises(BrokenMember, match="checksum"):
        members.read("a.json")
    assert members.read("folder/b.json") == CONTENT["folder/b.json"]


def test_a_method_that_is_not_known_is_named(tmp_path: Path) -> None:
    members = _members(tmp_path, _zipped(zipfile.ZIP_LZMA))
    with pytest.raises(BrokenMember, match=r"not known here \(14\)"):
        members.read("a.json")


def test_one_limit_for_all_members_together(tmp_path: Path) -> None:
    """Each fits alone; a member read again and again does not fit for ever."""
    members = _members(tmp_path, _zipped(), limit=25_000)
    for _ in range(2):
        assert members.read("folder/b.json") == CONTENT["folder/b.json"]
    with pytest.raises(UnpackedTooLarge):
        members.read("folder/b.json")


def test_what_begins_like_a_zip_file() -> None:
    assert is_zip(_zipped())
    assert not is_zip(b"PK")
    assert not is_excel(_zipped())
    assert is_excel(b"PK\x03\x04........[Content_Types].xml")
    assert not is_excel(b"text about xl/ files")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.zip"
    with pytest.raises(ReadError, match="cannot be read"):
        Members(Source(str(path), path))
