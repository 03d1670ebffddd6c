"""The sheets of an Excel workbook, without its merged cells: each has the value of its range."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from passhat.errors import ReadError
from passhat.readers.shape import reward_or_none
from passhat.readers.sources import Source
from passhat.readers.zip_members import BrokenMember, Members
from passhat.stats.outcomes.columns import ALIASES, fold_name
from passhat.stats.outcomes.rewards import RewardWords

__all__ = ["Sheet", "is_value", "join_headers", "read_sheets"]

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RANGE = re.compile(r"([A-Z]+)(\d+):([A-Z]+)(\d+)")
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
    except (BrokenMember, ET.ParseError) as error:
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
        cells = dict(_cell(cell, shared) for cell in row.iter(f"{_SHEET}c"))
        if any(value not in (None, "") for value in cells.values()):
            rows.append((int(row.get("r") or place), cells))
    widest = max((len(cells) for _, cells in rows), default=0)
    while rows and widest > 1 and sum(v not in (None, "") for v in rows[0][1].values()) < 2:
        del rows[0]
    if not rows:
        return Sheet(name, (), (), is_hidden)
    filled = _fill_merged(content, rows)
    width = max(max(cells, default=0) for _, cells in rows) + 1
    tops = [_texts(cells, width) for _, cells in rows[: _MOST_HEADER_ROWS + 1]]
    joined = join_headers(tops) if filled else None
    count = 1 if joined is None else joined[0]
    header = tops[0] if joined is None else joined[1]
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
    names = [name for name in rows[0] if name]
    twice = [place for place, name in enumerate(rows[0]) if names.count(name) > 1]
    for count in range(2, len(rows)):
        # Below the headings are values, and in the headings are none.
        row = rows[count - 1]
        is_numbered = fold_name(row[0]) in ALIASES["trial"]
        if is_numbered:
            row = [row[0], *(f"{row[0]} {text}" if text else "" for text in row[1:])]
            rows = [*rows[: count - 1], row, *rows[count:]]
        if not twice or any(map(is_value, row[twice[0] : twice[-1] + 1])):
            return None
        header = [_join_column(texts) for texts in zip(*rows[:count], strict=False)]
        # The first column holds names of the rows of headings; the lowest is that of its cells.
        header[0] = next((row[0] for row in reversed(rows[:count]) if row[0]), "")
        has_values = all(is_value(rows[count][place]) for place in twice)
        if has_values and "" not in header and len(set(header)) == len(header):
            return count, header
    return None


def _join_column(texts: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(text for text in texts if text))


def is_value(text: str) -> bool:
    """Whether a cell is a verdict or a score."""
    reward = reward_or_none(RewardWords(), text) if text else None
    return reward is not None and not reward > 1


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


def _cell(cell: ET.Element, shared: list[str]) -> tuple[int, object]:
    letters = re.match(r"[A-Z]+", cell.get("r") or "A")
    place = _column(letters[0] if letters else "A")
    kind, content = cell.get("t"), cell.findtext(f"{_SHEET}v")
    if kind == "inlineStr":
        return place, "".join(text.text or "" for text in cell.iter(f"{_SHEET}t"))
    if content is None:
        return place, None
    if kind == "s":
        index = int(content)
        return place, shared[index] if 0 <= index < len(shared) else None
    if kind == "b":
        return place, content == "1"
    if kind in ("str", "e"):
        return place, content
    number = float(content)
    return place, int(number) if number.is_integer() else number
