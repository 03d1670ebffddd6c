"""The members of a zip file, one at a time, also with zstd and also when the file is cut off.

Python's zipfile does not support method 93 (zstd) before 3.14, so members are unpacked here. A zip
file ends with its table of contents: when that is gone, the members are found by walking from one
local header to the next.
"""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from passhat.errors import ReadError
from passhat.readers.sources import Source, UnpackedTooLarge, limit_unpacked, make_folder
from passhat.readers.wide_tables import reward_or_none
from passhat.stats.outcomes.cells import parse_number
from passhat.stats.outcomes.columns import ALIASES, fold_name
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_LETTERS = re.compile(r"[A-Z]{1,3}(?![A-Z])")
"""The column of a cell: a sheet has 16,384 of them, up to XFD."""
_RANGE = re.compile(r"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_SUMMARY = re.compile(
    r"(summary|totals?|overview|leaderboard|averages?|legend|notes?|read ?me|info|about|charts?)"
    r"|.*\b(summary|overview)",
    re.IGNORECASE,
)
_MOST_HEADER_ROWS = 3
_HIDDEN = ("hidden", "veryHidden")
_Row = tuple[int, dict[int, object]]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A worksheet: its name, the names of its columns, and its rows with their numbers."""

    name: str
    header: tuple[str, ...]
    rows: tuple[_Row, ...]
    is_hidden: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_aside(self) -> bool:
        """Whether it is hidden, or a summary of the others by its name."""
        return self.is_hidden or _SUMMARY.fullmatch(self.name.strip()) is not None

    def records(self) -> Iterator[tuple[int, dict[str, object]]]:
        """The number of every row, and its cells by the names of the columns."""
        for number, cells in self.rows:
            yield number, {name: cells.get(i) for i, name in enumerate(self.header) if name}


def read_sheets(source: Source) -> list[Sheet]:
    """The worksheets that hold a table, in the order of the workbook."""
    members = Members(source)
    files = sorted(members.names("xl/worksheets/sheet"), key=lambda name: (len(name), name))
    if not files:
        raise ReadError("is a zip file without a worksheet.", source=source.name)
    try:
        shared = _shared_strings(members)
        names = _sheet_names(members, files)
        sheets = [
            _sheet(name, hidden, ET.fromstring(_no_document_type(members.read(file))), shared)
            for file, (name, hidden) in names.items()
        ]
    except (BrokenMember, ET.ParseError, ValueError, LookupError) as error:
        raise ReadError(f"cannot be read as Excel ({error}).", source=source.name) from None
    return [sheet for sheet in sheets if sheet.rows]


def _sheet_names(members: Members, files: list[str]) -> dict[str, tuple[str, bool]]:
    """Name of the sheet in each file, and whether it is hidden, in the order of the workbook."""
    workbook, relations = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    numbered = {file: (f"sheet {number}", False) for number, file in enumerate(files, 1)}
    if workbook not in members or relations not in members:
        return numbered
    targets = {
        element.get("Id"): f"xl/{(element.get('Target') or '').removeprefix('/xl/')}"
        for element in ET.fromstring(_no_document_type(members.read(relations)))
    }
    content = ET.fromstring(_no_document_type(members.read(workbook)))
    names = {
        targets.get(value, ""): (sheet.get("name") or "", sheet.get("state") in _HIDDEN)
        for sheet in content.iter(f"{_SHEET}sheet")
        for key, value in sheet.attrib.items()
        if key.endswith("}id")
    }
    return {file: entry for file, entry in names.items() if file in files} or numbered


def _sheet(name: str, is_hidden: bool, content: ET.Element, shared: list[str]) -> Sheet:
    """A sheet without the rows above its header, which have a single cell or none."""
    rows: list[_Row] = []
    for place, row in enumerate(content.iter(f"{_SHEET}row"), 1):
        cells = _cells(row, shared)
        if any(value not in (None, "") for value in cells.values()):
            number = row.get("r") or ""
            rows.append((int(number) if re.fullmatch(r"\d{1,7}", number) else place, cells))
    widest = max((len(cells) for _, cells in rows), default=0)
    while rows and widest > 1 and sum(v not in (None, "") for v in rows[0][1].values()) < 2:
        del rows[0]
    if not rows:
        return Sheet(name, (), (), is_hidden)
    filled = _fill_merged(content, rows)
    width = max(max(cells, default=0) for _, cells in rows) + 1
    tops = [_texts(cells, width) for _, cells in rows[: _MOST_HEADER_ROWS + 1]]
    joined = join_headers(tops)
    count = 1 if joined is None else joined[0]
    header = tops[0] if joined is None else joined[1]
    header = name_first_column(header, (cells.get(0) for _, cells in rows[count:]))
    notes = () if joined is None else (f"{count} rows of headings were joined",)
    if any(number > rows[count - 1][0] for number in filled):
        notes = (*notes, "merged cells are filled with the value of their range")
    return Sheet(name, tuple(header), tuple(rows[count:]), is_hidden, notes)


def _texts(cells: dict[int, object], width: int) -> list[str]:
    values = [cells.get(place) for place in range(width)]
    return ["" if value is None else str(value).strip() for value in values]


def _fill_merged(content: ET.Element, rows: list[_Row]) -> set[int]:
    """Write the value of every merged range into all its cells; the numbers of rows changed."""
    by_number = dict(rows)
    changed: set[int] = set()
    for merge in content.iter(f"{_SHEET}mergeCell"):
        match = _RANGE.fullmatch(merge.get("ref") or "")
        if match is None:
            continue
        left, right = _column(match[1]), _column(match[3])
        top, bottom = int(match[2]), int(match[4])
        value = by_number.get(top, {}).get(left)
        if value in (None, ""):
            continue
        for number in (number for number, _ in rows if top <= number <= bottom):
            for place in range(left, right + 1):
                if by_number[number].get(place) in (None, ""):
                    by_number[number][place] = value
                    changed.add(number)
    return changed


def join_headers(rows: Sequence[Sequence[str]]) -> tuple[int, list[str]] | None:
    """The number of rows of headings, and their texts joined column by column.

    ``None`` where the names in the first row differ already: it is the only one.
    """
    rows = [_fill_right(rows[0], rows[1]) if len(rows) > 2 else rows[0], *rows[1:]]
    twice = [place for place, name in enumerate(rows[0]) if name and rows[0].count(name) > 1]
    for count in range(2, len(rows)):
        # Below the headings are values, and in the headings are none.
        row = rows[count - 1]
        is_numbered = fold_name(row[0]) in ALIASES["trial"]
        if is_numbered:
            row = [row[0], *(f"{row[0]} {text}" if text else "" for text in row[1:])]
            rows = [*rows[: count - 1], row, *rows[count:]]
        groups: dict[str, list[str]] = {}
        for place in twice:
            groups.setdefault(rows[0][place], []).append(row[place])
        texts = [text for group in groups.values() for text in group]
        # "passed, cost" below each of two models are headings, though passed is a verdict.
        is_heading = len(groups) > 1 and len(set(map(tuple, groups.values()))) == 1
        if not twice or (any if not is_heading else all)(map(is_value, texts)):
            return None
        header = [_join_column(texts) for texts in zip(*rows[:count], strict=False)]
        # The first column holds names of the rows of headings; the lowest is that of its cells.
        header[0] = next((row[0] for row in reversed(rows[:count]) if row[0]), "")
        below = [rows[count][place] for place in twice]
        odd = [text for text in below if not is_value(text) and parse_number(text) is None]
        has_values = len(odd) < len(below) and (is_heading or not any(odd))
        if has_values and "" not in header and len(set(header)) == len(header):
            return count, header
    return None


def _fill_right(names: Sequence[str], below: Sequence[str]) -> list[str]:
    """Names in the cells behind them that are empty, above other headings: merged cells."""
    filled, last, is_header = [], "", False
    for name, heading in zip(names, below, strict=False):
        # "passed" behind "runs" is a heading.
        is_header = bool(heading) and (not is_value(heading) or (is_header and not name))
        last = name or (last if is_header else "")
        filled.append(last)
    return filled


def _join_column(texts: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(text for text in texts if text))


def is_value(text: str) -> bool:
    """Whether a cell is a verdict or a score."""
    reward = reward_or_none(RewardWords(), text) if text else None
    return reward is not None and not reward > 1


SHEET_COLUMN = "sheet"
"""The column that names the sheet of a row, where several sheets are read."""
NO_HEADER = "the table has no heading: its first line is a row"
_KNOWN_HEADINGS = frozenset(
    alias
    for word, aliases in ALIASES.items()
    if word not in ("success", "fails", "rate")
    for alias in aliases
)


def name_without_header(rows: Sequence[Sequence[str]]) -> list[str] | None:
    """Names for the columns of a table whose first row is none of headings; ``None`` for others.

    It is a row like the others where it holds a verdict in words that the column holds below, too,
    and no known heading. One other column of texts is the task, and of numbers the attempt.
    """
    if len(rows) < 3 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return None
    first, *below = [[cell.strip() for cell in row] for row in rows]
    if any(fold_name(cell) in _KNOWN_HEADINGS for cell in first) or "" in first:
        return None
    columns = list(zip(*below, strict=True))
    verdicts = [
        place
        for place, cell in enumerate(first)
        if is_value(cell) and not _is_number(cell) and cell in columns[place]
        if all(is_value(text) or not text for text in columns[place])
    ]
    if len(verdicts) != 1:
        return None
    names = [f"column {place}" for place in range(1, len(first) + 1)]
    names[verdicts[0]] = "result"
    others = [place for place in range(len(first)) if place not in verdicts]
    texts = [p for p in others if not any(map(_is_number, columns[p])) and not _is_number(first[p])]
    if len(texts) == 1:
        names[texts[0]] = "task"
        numbers = [p for p in others if all(map(str.isdigit, (first[p], *columns[p])))]
        if len(numbers) == 1 and len(others) == 2:
            pairs = [(row[texts[0]], row[numbers[0]]) for row in (first, *below)]
            names[numbers[0]] = "trial" if len(set(pairs)) == len(pairs) else names[numbers[0]]
    return names


def name_first_column(header: Sequence[str], cells: Iterable[object]) -> list[str]:
    """The header, with a name for a first column of texts that has none, as an index has none."""
    first, *others = header or [""]
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    is_index = not texts or any(not text or _is_number(text) for text in texts)
    if not others or first.strip() or is_index or _TASKS & set(map(fold_name, others)):
        return list(header)
    return ["task", *others]


_TASKS = frozenset(ALIASES["task"])


_LONGEST_INDEX = 40
_INDEX = re.compile(r"Unnamed: ?\d{1,9}(_level_\d{1,9})?|__index_level_\d{1,9}__|level_0")


def drop_index(chunks: Iterable[Chunk], stated: Collection[str] = ()) -> Iterator[Chunk]:
    """The columns that have a name, without the numbers that a data frame writes before rows.

    The first rows decide; a column that is ``stated`` stays.
    """
    dropped: list[str] | None = None
    for chunk in chunks:
        if dropped is None:
            dropped = [name for name in chunk if name not in stated and _is_index(name, chunk)]
            dropped = dropped if len(dropped) < len(chunk) else []
        yield {n: chunk[n] for n in chunk if n not in dropped} if dropped else chunk


def _is_index(name: str, chunk: Chunk) -> bool:
    if len(name) > _LONGEST_INDEX or not _INDEX.fullmatch(name):
        return not name.strip()
    return all(re.fullmatch(r"\d+(\.0+)?", str(cell).strip()) for cell in chunk[name])


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?[\d.,]+%?", text) is not None


def _no_document_type(content: bytes) -> bytes:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise BrokenMember("holds XML with a document type, which is not read")
    return content


def _shared_strings(members: Members) -> list[str]:
    name = "xl/sharedStrings.xml"
    if name not in members:
        return []
    strings = ET.fromstring(_no_document_type(members.read(name))).iter(f"{_SHEET}si")
    return ["".join(text.text or "" for text in item.iter(f"{_SHEET}t")) for item in strings]


def _column(letters: str) -> int:
    """The place of a column, from 0: A, B, ..., AA."""
    place = 0
    for letter in letters:
        place = place * 26 + ord(letter) - ord("A") + 1
    return place - 1


def _cells(row: ET.Element, shared: list[str]) -> dict[int, object]:
    """The values of a row by their places; a cell without one follows the cell before it."""
    cells: dict[int, object] = {}
    place = -1
    for cell in row.iter(f"{_SHEET}c"):
        letters = _LETTERS.match(cell.get("r") or "")
        place = _column(letters[0]) if letters else place + 1
        cells[place] = _cell_value(cell, shared)
    return cells


def _cell_value(cell: ET.Element, shared: list[str]) -> object:
    """A number, a text or a verdict; ``None`` for a formula without a value, and for no cell."""
    kind, content = cell.get("t"), cell.findtext(f"{_SHEET}v")
    if kind == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{_SHEET}t"))
    if not content:
        return None
    if kind == "b":
        return content == "1"
    if kind in ("str", "e"):
        return content
    try:
        number = float(content)
    except ValueError:
        return None if kind == "s" else content  # a date is written as a text
    if kind == "s":
        return shared[int(number)] if 0 <= number < len(shared) else None
    return int(number) if number.is_integer() else number


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


def write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Write rows as JSON lines."""
    with path.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, default=str) + "\n")
