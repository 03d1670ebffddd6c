"""The records of any file as plain dictionaries: JSON, JSON lines, CSV, Excel, Parquet, XML.

Used where a format is described by a mapping rather than by code. One record is decoded at a time:
a document of 100 MB must not become a gigabyte of Python objects.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import msgspec

from passhat._display import some
from passhat.errors import InvalidValue, ReadError, shorten
from passhat.readers.base import LogBuilder, ReadOptions
from passhat.readers.csv_blocks import find_stated_limit
from passhat.readers.formats.marks import find_spelled
from passhat.readers.formats.pages import MarkdownRows, is_markdown
from passhat.readers.json_records import (
    BROKEN,
    BYTE_ORDER_MARK,
    LossLog,
    decode,
    json_lines,
    read_bytes,
    short_lines,
)
from passhat.readers.parsing import container_end, find_container, number_or_none, parts
from passhat.readers.rows import CHUNK_ROWS, CsvRows, ParquetRows, Rows
from passhat.readers.sources import Source
from passhat.readers.zip_members import SHEET_COLUMN, drop_index, is_zip, read_sheets
from passhat.stats.outcomes.columns import ALIASES, ColumnMap, fold_name
from passhat.stats.outcomes.gathering import Chunk


def text_records(source: Source, lines: str, starts: str = "") -> Iterator[Record]:
    """A record for every line that fits ``lines``, with its named groups as fields.

    ``starts`` fits the lines that begin an attempt; one that has no verdict when the log ends is a
    record with its task alone.
    """
    verdict, start = re.compile(lines), re.compile(starts or "(?!)")
    pending: dict[str, int] = {}
    with source.open() as stream:
        for number, content in enumerate(short_lines(stream), 1):
            line = content.decode("utf-8", "replace")
            if match := verdict.search(line):
                fields = match.groupdict()
                pending.pop(str(fields.get("task")), None)
                yield Record(f"line {number}", fields, "", number - 1)
            elif match := start.search(line):
                pending.setdefault(match["task"], number)
    for task, number in pending.items():
        yield Record(f"line {number}", {"task": task}, "", number - 1)


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
            raise InvalidValue(f"{path!r} is not a path: see {path[at:]!r}")
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

    ``parent_keys`` are the keys of the objects around it, the innermost last.
    """

    where: str
    data: Any
    key: str = ""
    index: int = 0
    parents: tuple[Any, ...] = ()
    parent_keys: tuple[str, ...] = ()


@dataclass(slots=True)
class RecordFile:
    """A file whose records are read one after another; ``root`` is the document around them."""

    source: Source
    log: LossLog
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
                yield from records_below(Record(f"line {line}", row, "", line - 1), steps)
        elif kind == "XML":
            yield from self._from_xml()
        elif self.path.removeprefix("[*]") and kind != "Excel":
            raise ReadError(
                f"is a table, whose rows are the records; --records {self.path} names a place "
                "inside JSON or XML.",
                source=self.source.name,
                hint="Leave out --records.",
            )
        else:
            yield from self._from_table()

    def _from_table(self) -> Iterator[Record]:
        rows: Rows = CsvRows(self.source, self.log)
        if self.source.head.startswith(_PARQUET_MAGIC):
            rows = ParquetRows(self.source)
        elif content_kind(self.source) == "Markdown":
            rows = MarkdownRows(self.source, self.log)
        elif content_kind(self.source) == "Excel":
            rows = RecordRows(self.source, self.path, self.log)
        number = 0
        for chunk in drop_index(rows.chunks()):
            found = find_spelled(chunk, {})
            chunk = found[0](chunk, rows.lines)[0] if found else chunk
            for cells in zip(*chunk.values(), strict=True):
                number += 1
                yield Record(f"row {number}", dict(zip(chunk, cells, strict=True)), "", number - 1)

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
            yield from records_below(Record(where, value, key, number - 1), rest)

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
        opening = find_container(data, keys) if keys else None
        end = None if opening is None else container_end(data, opening)
        if opening is None or end is None:
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


def records_below(record: Record, steps: tuple[Step, ...]) -> Iterator[Record]:
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
            (*record.parent_keys, record.key),
        )
        yield from records_below(inner, steps[every + 1 :])


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
    # A README may begin with a heading in HTML.
    if text.startswith(b"<") and not source.is_markdown:
        return "XML"
    if is_markdown(head):
        return "Markdown"
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


# -- XML ---------------------------------------------------------------------------


def elements(source: Source, log: LossLog) -> Iterator[tuple[list[str], ET.Element]]:
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


class RecordRows:
    """The records of a JSON document, or the sheets of a workbook, as a table."""

    place = "row"

    def __init__(self, source: Source, path: str, losing: LossLog) -> None:
        self._source = source
        self._path = path
        self._losing = losing
        self.kind = content_kind(source)
        self.place = "row" if self.kind == "Excel" else "record"
        self.lines: Sequence[int] = ()
        self.decisions: tuple[str, ...] = ()

    def chunks(self) -> Iterator[Chunk]:
        if self.kind == "Excel":
            yield from self._sheets()
            return
        names: dict[str, None] = {}
        records = RecordFile(self._source, self._losing, self._path).records()
        while block := list(islice(records, CHUNK_ROWS)):
            rows = []
            for record in block:
                if not self._path and isinstance(record.data, dict):
                    yield from self._columns(record.data)
                    return
                elif isinstance(record.data, dict):
                    rows.append((record.index + 1, record.data))
                else:
                    self._losing.lose(record.where, f"is not an object but {shorten(record.data)}")
            self.lines = [number for number, _ in rows]
            names |= dict.fromkeys(name for _, row in rows for name in row)
            yield {name: [row.get(name) for _, row in rows] for name in names}

    def _columns(self, data: dict[str, Any]) -> Iterator[Chunk]:
        """A document that holds columns: lists of cells, or cells by the name of their row."""
        columns = data
        if is_frame(data):
            index = list(next(iter(data.values())))
            columns = {name: [cells[key] for key in index] for name, cells in data.items()}
            if not all(map(str.isdigit, index)):
                columns.setdefault("task", index)
        lists = {name: cells for name, cells in columns.items() if isinstance(cells, list)}
        if len(lists) > 1 and len(lists) == len(columns) and len({*map(len, lists.values())}) == 1:
            self.lines = range(1, len(next(iter(lists.values()))) + 1)
            yield {_name_in_singular(name): cells for name, cells in lists.items()}

    def _sheets(self) -> Iterator[Chunk]:
        """Sheets with the same columns: each is a model, unless a column says which."""
        sheets = read_sheets(self._source)
        chosen = [sheet for sheet in sheets if self._path in ("", sheet.name)]
        aside = [sheet for sheet in chosen if sheet.is_aside] if not self._path else []
        if len(aside) < len(chosen):
            chosen = [sheet for sheet in chosen if not sheet.is_aside or self._path]
        if not chosen:
            names = ", ".join(sheet.name for sheet in sheets)
            raise ReadError(
                f"has no sheet called {self._path!r}." if self._path else "has no rows.",
                source=self._source.name,
                hint=f"Its sheets are: {names}." if names else None,
            )
        first = max(chosen, key=lambda sheet: _rank_header(sheet.header))
        alike = [sheet for sheet in chosen if sheet.header == first.header]
        others = [sheet.name for sheet in chosen if sheet.header != first.header]
        summaries = [sheet.name for sheet in aside if sheet not in chosen]
        if len(alike) > 1:
            names = some([sheet.name for sheet in alike], 6)
            self.decisions = (f"{len(alike)} sheets with the same columns: {names}",)
        if others:
            left_out = some(others, 4)
            self.decisions += (f"sheets with other columns are not read: {left_out}",)
        if summaries:
            self.decisions += (f"hidden sheets and summaries are not read: {some(summaries, 4)}",)
        self.decisions += tuple(dict.fromkeys(note for sheet in alike for note in sheet.notes))
        for sheet in alike:
            rows = list(sheet.records())
            self.lines = [number for number, _ in rows]
            chunk = {name: [data[name] for _, data in rows] for name in sheet.header if name}
            if len(alike) > 1:
                chunk.setdefault(SHEET_COLUMN, [sheet.name] * len(rows))
            yield chunk

    def line_of(self, row: int) -> int:
        return row + 1


def is_frame(data: object) -> bool:
    """Whether a document is columns whose cells are named by their row, as pandas writes a frame.

    ``{"task": {"0": "sort", "1": "find"}, "passed": {"0": true, "1": false}}``
    """
    if not isinstance(data, dict) or len(data) < 2:
        return False
    columns = list(data.values())
    if not all(isinstance(cells, dict) for cells in columns):
        return False
    meaning = ColumnMap.resolve(list(map(str, data))).meaning
    return (
        ("success" in meaning or {"n", "c"} <= meaning.keys())
        and all(cells.keys() == columns[0].keys() for cells in columns)
        and not any(isinstance(cell, dict | list) for cells in columns for cell in cells.values())
    )


def _name_in_singular(name: str) -> str:
    """``task_id`` for ``task_ids``: a list of a document is named after all of its cells."""
    one = name.removesuffix("s")
    return one if fold_name(one) in (*ALIASES["task"], *ALIASES["model"]) else name


def _rank_header(header: Sequence[str]) -> int:
    """2 for a table of attempts or counts, 1 for another one about tasks."""
    columns = ColumnMap.resolve(filter(None, header))
    return 2 if columns.holds_attempts or columns.holds_counts else int("task" in columns.meaning)


def plain_log(source: Source) -> LogBuilder:
    """A builder for inspecting a file; its losses are not reported."""
    return LogBuilder(source, "file", ReadOptions())


# -- what a document states beside its records --------------------------------------------------


def find_facts(source: Source) -> tuple[str | None, float | None]:
    """The model and the share of passes that a JSON document states at its top."""
    names = {*ALIASES["model"], *ALIASES["rate"], *_TOTALS, *_SUMMARIES}
    if not any(fold_name(key) in names for key in source.outline.keys):
        return None, None
    whole = next(iter(RecordFile(source, plain_log(source)).records()), None)
    data = whole.data if whole is not None and isinstance(whole.data, dict) else {}
    top = {fold_name(str(key)): value for key, value in data.items()}
    model = next((top[a] for a in ALIASES["model"] if isinstance(top.get(a), str) and top[a]), None)
    inner = [top[name] for name in _SUMMARIES if isinstance(top.get(name), dict)]
    tables = [top, *({fold_name(str(key)): cell for key, cell in t.items()} for t in inner)]
    return model, next((rate for rate in map(_stated_rate, tables) if rate is not None), None)


_SUMMARIES = ("summary", "stats", "statistics", "totals", "overall", "aggregate", "metrics")
_TOTALS = ("total", "total_tasks", "num_tasks", "total_tests", "tests", *ALIASES["n"])
_PASSES = ("passed", "resolved", "solved", "correct", "passes", *ALIASES["c"])


def _stated_rate(fields: Mapping[str, object]) -> float | None:
    """The share of passes among some fields, or the passes by the total."""
    rate, passes, total = (
        next((x for name in names if (x := number_or_none(fields.get(name))) is not None), None)
        for names in (ALIASES["rate"], _PASSES, _TOTALS)
    )
    if rate is not None and 0 <= rate <= 100:
        return rate if rate <= 1 else rate / 100
    is_share = passes is not None and total is not None and 0 <= passes <= total and total > 1
    return passes / total if is_share else None  # type: ignore[operator]


_THRESHOLDS = re.compile(
    r"(pass(ing)?|success|solved?|reward|score)_(threshold|mark|at|limit|cutoff|cut_off)|"
    r"(min(imum)?|threshold)_(passing_|pass_)?(score|reward|grade)|passing_(score|grade|reward)"
)
_MOST_SETTINGS = 16 << 20  # larger documents are not decoded as a whole
_SETTINGS = frozenset({"config", "settings", "params", "args", "options", "meta", "metadata"})


def find_threshold(source: Source) -> tuple[str, float] | None:
    """The reward from which an attempt passes, as a document or a comment states it at the top."""
    if content_kind(source) != "JSON":
        return find_stated_limit(source.head)
    is_small = source.path.stat().st_size <= _MOST_SETTINGS
    if not any(_is_threshold(k) or (is_small and k in _SETTINGS) for k in source.outline.keys):
        return None
    whole = next(iter(RecordFile(source, plain_log(source)).records()), None)
    data = whole.data if whole is not None and isinstance(whole.data, dict) else {}
    settings = [v for k, v in data.items() if k in _SETTINGS and isinstance(v, dict)]
    found = [
        (str(key), float(value))
        for part in (data, *settings)
        for key, value in part.items()
        if _is_threshold(str(key)) and type(value) in (int, float) and value > 0
    ]
    return found[0] if len(found) == 1 else None


def _is_threshold(key: str) -> bool:
    return _THRESHOLDS.fullmatch(fold_name(key[:60])) is not None
