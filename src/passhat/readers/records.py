"""The records of any file as plain dictionaries: JSON, JSON lines, CSV, Excel, Parquet, XML.

Used where a format is described by a mapping rather than by code. One record is decoded at a time:
a document of 100 MB must not become a gigabyte of Python objects.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.readers.base import LogBuilder, ReadOptions
from passhat.readers.json_records import (
    BROKEN,
    BYTE_ORDER_MARK,
    decode,
    json_lines,
    read_bytes,
    short_lines,
)
from passhat.readers.parsing import container_end, find_container, parts
from passhat.readers.rows import CsvRows, ParquetRows
from passhat.readers.sources import Source
from passhat.readers.zip_members import BrokenMember, Members, is_zip

__all__ = ["Record", "RecordFile", "Step", "content_kind", "elements", "steps_of", "value_at"]

_PARQUET_MAGIC = b"PAR1"
_DEEPEST = 40
_PEEK = 4096
_LONGEST_SECOND = 1 << 20

# -- paths -----------------------------------------------------------------------------------

# A name, a quoted name, [*], [3], [name=value], or * for all values of an object.
_STEP = re.compile(r'\s*(?:"([^"]*)"|\[(\*|-?\d+|[^\]=]+=[^\]]*)\]|(\*)|([^.\[\]"]+))\s*\.?')


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a path: a key, an index, all elements, or the element with a given field."""

    key: str = ""
    index: int | None = None
    every: bool = False
    where: tuple[str, str] | None = None


def steps_of(path: str) -> tuple[Step, ...]:
    """Split a path such as ``results[*].report.resolved`` into its steps."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or match.end() == at:
            raise ValueError(f"{path!r} is not a path: see {path[at:]!r}")
        quoted_name, bracket, star, name = match.groups()
        if quoted_name is not None or name is not None:
            steps.append(Step(quoted_name if quoted_name is not None else name.strip()))
        elif star or bracket == "*":
            steps.append(Step(every=True))
        elif "=" in bracket:
            field_name, _, value = bracket.partition("=")
            steps.append(Step(where=(field_name.strip(), value.strip().strip("'\""))))
        else:
            steps.append(Step(index=int(bracket)))
        at = match.end()
    return tuple(steps)


def value_at(data: object, steps: tuple[Step, ...]) -> object:
    """The value at a path without wildcards, or ``None``."""
    for place, step in enumerate(steps):
        if step.every:
            rest = steps[place + 1 :]
            values = list(data.values()) if isinstance(data, dict) else data
            return [value_at(v, rest) for v in values] if isinstance(values, list) else None
        if isinstance(data, dict) and step.key and step.key not in data:
            # A table may write a path as the name of one column: feedback.correct
            keys = [rest.key for rest in steps[place:]]
            return data.get(".".join(keys)) if all(keys) else None
        data = _follow(data, step)
        if data is None:
            return None
    return data


def _follow(data: object, step: Step) -> object:
    if step.where is not None:
        name, value = step.where
        rows = data if isinstance(data, list) else ()
        return next((r for r in rows if str(value_at(r, steps_of(name))) == value), None)
    if step.index is not None:
        in_range = isinstance(data, list) and -len(data) <= step.index < len(data)
        return data[step.index] if in_range and isinstance(data, list) else None
    if isinstance(data, dict):
        return data.get(step.key)
    if isinstance(data, str) and data[:1] in ("{", "["):
        # Exports to CSV write nested fields as JSON inside a cell.
        try:
            return _follow(decode(data.encode(), Any), step)
        except BROKEN:
            return None
    return None


# -- records ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """A record: its fields, its key or place among its siblings, and its parents.

    ``parent_key`` is the key of the object around it.
    """

    where: str
    data: Any
    key: str = ""
    index: int = 0
    parents: tuple[Any, ...] = ()
    parent_key: str = ""


@dataclass(slots=True)
class RecordFile:
    """A file whose records are read one after another; ``root`` is the document around them."""

    source: Source
    log: LogBuilder
    path: str = ""
    root: dict[str, Any] = field(default_factory=dict)

    def records(self) -> Iterator[Record]:
        """Every record; a record that cannot be decoded is lost."""
        kind = content_kind(self.source)
        if kind == "JSON":
            yield from self._from_document()
        elif kind == "JSON lines":
            # The elements of a list are the lines here: a mapping for a JSON list fits both.
            steps = steps_of(self.path.removeprefix("[*]").removeprefix("."))
            for line, row in json_lines(self.source, self.log, Any):
                yield from _records_below(Record(f"line {line}", row, "", line - 1), steps)
        elif kind == "XML":
            yield from self._from_xml()
        elif self.path.removeprefix("[*]"):
            raise ReadError(
                f"is a table, whose rows are the records; --records {self.path} names a place "
                "inside JSON or XML.",
                source=self.source.name,
                hint="Leave out --records.",
            )
        elif kind == "Excel":
            yield from _excel_rows(self.source)
        else:
            yield from self._from_table()

    def _from_table(self) -> Iterator[Record]:
        parquet = self.source.head.startswith(_PARQUET_MAGIC)
        rows = ParquetRows(self.source) if parquet else CsvRows(self.source, self.log)
        number = 0
        for chunk in rows.chunks():
            names = list(chunk)
            for cells in zip(*chunk.values(), strict=True):
                number += 1
                yield Record(f"row {number}", dict(zip(names, cells, strict=True)), "", number - 1)

    def _from_document(self) -> Iterator[Record]:
        data = bytes(read_bytes(self.source, self.log))
        steps = steps_of(self.path)
        first_star = next((i for i, step in enumerate(steps) if step.every), len(steps))
        keys = [step.key for step in steps[:first_star]]
        if any(step.index is not None or step.where for step in steps[:first_star]):
            first_star, keys = 0, []
        rest = steps[first_star + 1 :]
        if first_star == len(steps):  # the document, or one object in it, is the only record
            whole = self._decode_whole(data)
            value = value_at(whole, steps)
            if value is not None:
                yield Record("the document", value)
            return
        for number, (key, content) in enumerate(self._elements(data, keys), 1):
            where = f"record {key or number}"
            try:
                value = decode(content, Any)
            except BROKEN as error:
                self.log.lose(where, f"cannot be read ({error})")
                continue
            yield from _records_below(Record(where, value, key, number - 1), rest)

    def _elements(self, data: bytes, keys: list[str]) -> Iterator[tuple[str, bytes]]:
        """The raw elements of the container at a path of keys; cut out by hand if it is broken."""
        raw: Any = data
        try:
            for key in keys:
                raw = decode(bytes(raw), dict[str, msgspec.Raw])[key]
            self.root = self._document_around(data, keys)
            content = bytes(raw).lstrip()
            if content.startswith(b"{"):
                for name, value in decode(content, dict[str, msgspec.Raw]).items():
                    yield name, bytes(value)
            else:
                for value in decode(content, list[msgspec.Raw]):
                    yield "", bytes(value)
        except KeyError:
            return
        except BROKEN as error:
            opening = find_container(data, keys)
            if opening is None:
                self.log.lose("the file", f"cannot be read ({error})", 0)
                return
            self.log.lose("the file", "is broken or ends too early", 0)
            for part in parts(data, opening):
                if part.complete:
                    yield part.key, part.content
                else:
                    self.log.lose(f"record {part.key}".strip(), "the file ends in the middle of it")

    def _document_around(self, data: bytes, keys: list[str]) -> dict[str, Any]:
        """The document without its records."""
        opening = find_container(data, keys)
        end = None if opening is None else container_end(data, opening)
        if not keys or opening is None or end is None:
            return {}
        whole = self._decode_whole(data[:opening] + b"null" + data[end:])
        return whole if isinstance(whole, dict) else {}

    def _decode_whole(self, data: bytes) -> object:
        try:
            return decode(data, Any)
        except BROKEN as error:
            self.log.lose("the file", f"cannot be read ({error})", 0)
            return None

    def _from_xml(self) -> Iterator[Record]:
        keys = [step.key for step in steps_of(self.path) if step.key]
        number = 0
        for path, element in elements(self.source, self.log):
            if keys and path[-len(keys) :] == keys:
                number += 1
                yield Record(f"<{element.tag}> {number}", _as_dict(element), "", number - 1)
                element.clear()


def _records_below(record: Record, steps: tuple[Step, ...]) -> Iterator[Record]:
    """The records at the rest of a path inside one element."""
    every = next((i for i, step in enumerate(steps) if step.every), None)
    if every is None:
        value = value_at(record.data, steps) if steps else record.data
        if value is not None:
            yield replace(record, data=value)
        return
    container = value_at(record.data, steps[:every])
    pairs: list[tuple[str, object]] = []
    if isinstance(container, dict):
        pairs = list(container.items())
    elif isinstance(container, list):
        pairs = [("", value) for value in container]
    for number, (key, value) in enumerate(pairs, 1):
        inner = Record(
            f"{record.where}.{key or number}",
            value,
            key,
            number - 1,
            (*record.parents, record.data),
            record.key,
        )
        yield from _records_below(inner, steps[every + 1 :])


def content_kind(source: Source) -> str:
    """JSON, JSON lines, XML, Excel, Parquet or CSV, by the content."""
    # Kept with the source: telling lines from a document may take reading a long first line.
    kind = source.__dict__.get("_kind")
    if kind is None:
        kind = source.__dict__["_kind"] = _content_kind(source)
    return str(kind)


def _content_kind(source: Source) -> str:
    head = source.head
    if head.startswith(_PARQUET_MAGIC):
        return "Parquet"
    if is_zip(head):
        return "Excel"
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"<"):
        return "XML"
    if not text.startswith((b"{", b"[")):
        return "CSV"
    return "JSON lines" if text.startswith(b"{") and _has_lines(source) else "JSON"


def _has_lines(source: Source) -> bool:
    """Whether the first line is a whole object and another line follows."""
    try:
        with source.open() as stream:
            first = next((line for line in short_lines(stream) if line.strip()), b"")
            if _is_object(first.removeprefix(BYTE_ORDER_MARK)):
                return any(stream.read(_PEEK).strip() for _ in range(8))
            # A first line that is broken, before one that is not: lines all the same.
            return _is_object(stream.readline(_LONGEST_SECOND))
    except ReadError:
        return False


def _is_object(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(decode(line, Any), dict)
    except BROKEN:
        return False


# -- XML and Excel ---------------------------------------------------------------------------


def elements(source: Source, log: LogBuilder) -> Iterator[tuple[list[str], ET.Element]]:
    """Every element of an XML file as it ends, with the tags on the way to it.

    A document type is refused: entities that expand into each other fill any memory.
    """
    if b"<!DOCTYPE" in source.head or b"<!ENTITY" in source.head:
        raise ReadError(
            "has a document type (<!DOCTYPE ...>), which is not read.",
            source=source.name,
            hint="Remove the line with <!DOCTYPE, if you trust the file.",
        )
    path: list[str] = []
    try:
        with source.open() as stream:
            for event, element in ET.iterparse(stream, ("start", "end")):
                if event == "start":
                    element.tag = str(element.tag).rpartition("}")[2]
                    path.append(element.tag)
                    if len(path) > _DEEPEST:
                        raise ReadError("is nested too deeply.", source=source.name)
                else:
                    yield path.copy(), element
                    path.pop()
    except (ET.ParseError, ValueError, LookupError) as error:
        log.lose("the end", f"is not well-formed XML ({error})", 0)


def _as_dict(element: ET.Element) -> dict[str, Any]:
    """Attributes and children as fields; a child that repeats is a list, text is ``#text``."""
    data: dict[str, Any] = dict(element.attrib)
    for child in element:
        value: Any = _as_dict(child) if len(child) or child.attrib else (child.text or "").strip()
        if child.tag in data:
            earlier = data[child.tag]
            data[child.tag] = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
        else:
            data[child.tag] = value
    if element.text and element.text.strip():
        data["#text"] = element.text.strip()
    return data


def _excel_rows(source: Source) -> Iterator[Record]:
    """The rows of the first sheet, by the names in its first row."""
    members = Members(source)
    sheets = sorted(members.names("xl/worksheets/sheet"), key=lambda name: (len(name), name))
    if not sheets:
        raise ReadError("is a zip file without a worksheet.", source=source.name)
    try:
        shared = _shared_strings(members)
        sheet = ET.fromstring(_no_document_type(members.read(sheets[0]), source))
    except (BrokenMember, ET.ParseError) as error:
        raise ReadError(f"cannot be read as Excel ({error}).", source=source.name) from None
    header: list[str] | None = None
    for row in sheet.iter(f"{_SHEET}row"):
        cells = dict(_cell(cell, shared) for cell in row.iter(f"{_SHEET}c"))
        if header is None:
            width = max(cells, default=-1) + 1
            header = [str(cells.get(i, "") or "") for i in range(width)]
            continue
        if any(value not in (None, "") for value in cells.values()):
            number = int(row.get("r") or 0)
            data = {name: cells.get(i) for i, name in enumerate(header) if name}
            yield Record(f"row {number}", data, "", number - 2)


_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def _no_document_type(content: bytes, source: Source) -> bytes:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ReadError("holds XML with a document type, which is not read.", source=source.name)
    return content


def _shared_strings(members: Members) -> list[str]:
    name = "xl/sharedStrings.xml"
    if name not in members:
        return []
    content = members.read(name)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise BrokenMember("has a document type")
    strings = ET.fromstring(content).iter(f"{_SHEET}si")
    return ["".join(text.text or "" for text in item.iter(f"{_SHEET}t")) for item in strings]


def _cell(cell: ET.Element, shared: list[str]) -> tuple[int, object]:
    letters = re.match(r"[A-Z]+", cell.get("r") or "A")
    column = 0
    for letter in letters[0] if letters else "A":
        column = column * 26 + ord(letter) - ord("A") + 1
    kind, content = cell.get("t"), cell.findtext(f"{_SHEET}v")
    if kind == "inlineStr":
        return column - 1, "".join(text.text or "" for text in cell.iter(f"{_SHEET}t"))
    if content is None:
        return column - 1, None
    if kind == "s":
        place = int(content)
        return column - 1, shared[place] if 0 <= place < len(shared) else None
    if kind == "b":
        return column - 1, content == "1"
    if kind in ("str", "e"):
        return column - 1, content
    number = float(content)
    return column - 1, int(number) if number.is_integer() else number


def plain_log(source: Source) -> LogBuilder:
    """A builder for inspecting a file; its losses are not reported."""
    return LogBuilder(source, "file", ReadOptions())
