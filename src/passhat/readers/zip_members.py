"""The members of a zip file, one at a time, also with zstd and also when the file is cut off.

Python's zipfile does not support method 93 (zstd) before 3.14, so members are unpacked here. A zip
file ends with its table of contents: when that is gone, the members are found by walking from one
local header to the next.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from passhat.errors import ReadError
from passhat.readers.sources import Source, UnpackedTooLarge, limit_unpacked, make_folder

__all__ = ["BrokenMember", "Members", "is_excel", "is_zip", "unpack"]

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_LOCAL_SIGN = b"PK\x03\x04"
_DESCRIPTOR_SIGN = b"PK\x07\x08"
_SIZES_FOLLOW = 0x08
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_BLOCK = 1 << 20


class BrokenMember(Exception):
    """A member cannot be unpacked."""


@dataclass(frozen=True, slots=True)
class _Entry:
    offset: int
    size: int
    method: int
    crc: int | None
    unpacked: int | None = None


def is_zip(head: bytes) -> bool:
    """Whether a file begins as a zip file does."""
    return head.startswith(_LOCAL_SIGN)


def is_excel(head: bytes) -> bool:
    """Whether a file begins as an Excel workbook does."""
    return is_zip(head) and (b"xl/" in head or b"[Content_Types].xml" in head)


def unpack(source: Source) -> Source:
    """The members of a zip file in a temporary folder, removed when the process ends."""
    members = Members(source)
    folder = make_folder()
    for name in members.names():
        parts = PurePosixPath(name).parts
        # A name may not lead out of the folder; systems add hidden members of their own.
        if name.endswith("/") or ".." in parts or parts[:1] in ((), ("/",), ("__MACOSX",)):
            continue
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.write_bytes(members.read(name))
        except BrokenMember as error:
            raise ReadError(f"{name}: {error}.", source=source.name) from None
    return Source(source.name, folder, max_unpacked=source.max_unpacked)


class Members:
    """The members of a zip file.

    Attributes
    ----------
    cut_off : bool
        Whether the table of contents is gone and the members were found by walking.
    """

    def __init__(self, source: Source) -> None:
        self._path = source.path
        self._name = source.name
        self.cut_off = False
        try:
            self._entries = self._find_entries()
            # One budget for all members: overlapping members unpack the same bytes many times.
            self._limit = limit_unpacked(source.path.stat().st_size, source.max_unpacked)
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}."
            raise ReadError(message, source=source.name) from None
        self._left = self._limit

    def _find_entries(self) -> dict[str, _Entry]:
        try:
            return _from_contents(self._path)
        except (zipfile.BadZipFile, struct.error, ValueError, OverflowError, NotImplementedError):
            self.cut_off = True
            with self._path.open("rb") as stream:
                return dict(_by_walking(stream))

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self, prefix: str = "") -> list[str]:
        """The members whose name starts with a prefix, in the order of the file."""
        return [name for name in self._entries if name.startswith(prefix)]

    def read(self, name: str) -> bytes:
        """Unpack one member and check it; raises BrokenMember, or UnpackedTooLarge."""
        entry = self._entries[name]
        if entry.unpacked is not None and entry.unpacked > self._left:
            raise UnpackedTooLarge(self._name, self._limit)
        try:
            with self._path.open("rb") as stream:
                content = _read_packed(stream, entry)
            data = _unpack(content, entry.method, self._left)
        except (zlib.error, struct.error, EOFError, OSError, OverflowError, MemoryError) as error:
            raise BrokenMember(f"cannot be unpacked ({error})") from None
        self._left -= len(data)
        if self._left < 0:
            raise UnpackedTooLarge(self._name, self._limit)
        if entry.crc is not None and zlib.crc32(data) != entry.crc:
            raise BrokenMember("its checksum is wrong")
        return data


def _from_contents(path: Path) -> dict[str, _Entry]:
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: _Entry(
                info.header_offset,
                info.compress_size,
                info.compress_type,
                info.CRC,
                info.file_size,
            )
            for info in archive.infolist()
        }


def _by_walking(stream: IO[bytes]) -> Iterator[tuple[str, _Entry]]:
    """From one local header to the next, as far as they go."""
    offset = 0
    while True:
        stream.seek(offset)
        header = stream.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(_LOCAL_SIGN):
            return
        _, _, flags, method, _, _, crc, size, _, name_size, extra_size = _LOCAL.unpack(header)
        name = stream.read(name_size).decode("utf-8", "replace")
        start = offset + _LOCAL.size + name_size + extra_size
        checksum: int | None = crc
        following = start + size
        if flags & _SIZES_FOLLOW and size == 0:
            size, following = _until_descriptor(stream, start)
            checksum = None
        yield name, _Entry(offset, size, method, checksum)
        offset = following


def _until_descriptor(stream: IO[bytes], start: int) -> tuple[int, int]:
    """The size of a member that was written as a stream, and where the next one begins."""
    stream.seek(start)
    data = bytearray()
    while block := stream.read(_BLOCK):
        start_at = max(0, len(data) - len(_DESCRIPTOR_SIGN))
        data += block
        at = data.find(_DESCRIPTOR_SIGN, start_at)
        if at >= 0:
            return at, start + at + 16
    return len(data), start + len(data)


def _read_packed(stream: IO[bytes], entry: _Entry) -> bytes:
    stream.seek(entry.offset)
    header = stream.read(_LOCAL.size)
    fields = _LOCAL.unpack(header)
    if fields[0] != _LOCAL_SIGN:
        raise BrokenMember("is not at the place given in the table of contents")
    stream.seek(fields[9] + fields[10], 1)
    content = stream.read(entry.size)
    if len(content) < entry.size:
        raise BrokenMember("the file ends in the middle of it")
    return content


def _unpack(packed: bytes, method: int, limit: int) -> bytes:
    """The content of a member, at most one byte more than the limit."""
    if method == _STORED:
        return packed
    if method == _DEFLATED:
        unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
        data = unpacking.decompress(packed, limit + 1)
        if not unpacking.eof and len(data) <= limit:
            raise BrokenMember("the file ends in the middle of it")
        return data
    if method != _ZSTD:
        raise BrokenMember(f"is packed with a method that is not known here ({method})")
    import zstandard

    try:
        decompressor = zstandard.ZstdDecompressor(max_window_size=2**27)
        with decompressor.stream_reader(packed, read_across_frames=True) as reader:
            return reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise BrokenMember(f"cannot be unpacked ({error})") from None
