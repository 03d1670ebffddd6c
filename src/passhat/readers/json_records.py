"""Records of JSON documents and JSON lines: only needed fields; broken records are lost.

A document is decoded whole, straight into small structs: fields that no reader needs (whole
conversations) are never turned into Python objects. When that fails, the records are cut out and
decoded one by one, and every one that cannot be is reported as a loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, Generic, Protocol, TypeVar

import msgspec

from passhat.errors import InvalidValue, ReadError, shorten
from passhat.protocol import Protocol as RunProtocol
from passhat.readers.parsing import Bytes, container_end, find_container, parts
from passhat.readers.sources import Source, UnpackedTooLarge, make_folder
from passhat.readers.wide_tables import is_model_name, reward_or_none
from passhat.readers.zip_members import write_lines
from passhat.stats.outcomes.columns import ALIASES, fold_name
from passhat.stats.outcomes.rewards import RewardWords

W = TypeVar("W")
T = TypeVar("T")

_BLOCK = 1 << 20
_LONG_LINE = 16 << 20
_LONGEST_TEXT = 1 << 20
_LONGEST_RECORD = 192 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Python writes NaN and Infinity where JSON has no such numbers.
_NO_NUMBER = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b', re.DOTALL)
_MARKS = (b"NaN", b"Infinity")
_LAST_COMMA = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|,(?=\s*[\]}])', re.DOTALL)
_TEXT_END = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


class LossLog(Protocol):
    """Collects the places that cannot be read."""

    def lose(self, where: str, what: str, rows: int = 1) -> None:
        """Something at a place in the source cannot be used."""


@dataclass(frozen=True, slots=True)
class Document(Generic[W]):
    """A document's own fields, and its records: (key, record), the key empty in a list."""

    head: W
    items: Iterable[tuple[str, Any]]


@cache
def _decoder(kind: object) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(data: Bytes, kind: type[T], *, marks: bool = False) -> T:
    """Decode JSON, or Python's dialect of it with NaN, into a type.

    A comma behind the last element, as editing by hand leaves it, is no error. NaN and Infinity
    become null, or with ``marks`` the text ``"NaN"``, which is no null.
    """
    decoder: msgspec.json.Decoder[T] = _decoder(kind)  # type: ignore[arg-type]
    try:
        return decoder.decode(data)
    except (msgspec.ValidationError, RecursionError):
        raise
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "trailing comma" in str(error):
            plain = _LAST_COMMA.sub(lambda m: m[0] if m[0][:1] == b'"' else b"", data)
            if len(plain) < len(data):
                return decode(plain, kind, marks=marks)
        if not any(mark in data for mark in _MARKS):
            raise
        word = b'"NaN"' if marks else b"null"
        strict = _NO_NUMBER.sub(lambda m: m[0] if m[0][:1] == b'"' else word, data)
        return decoder.decode(strict)


def decode_protocol(data: Mapping[str, object]) -> RunProtocol:
    """The protocol of a run, as its ``to_dict`` writes it."""
    try:
        return msgspec.convert(dict(data), RunProtocol)
    except msgspec.ValidationError as error:
        raise InvalidValue(f"the protocol of a run cannot be read: {error}.") from None


BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of ``decode`` for invalid content."""


def read_bytes(source: Source, log: LossLog) -> bytearray:
    """All of a file, in memory; of a truncated file, the part before its end."""
    data = bytearray()
    try:
        with source.open() as stream:
            while block := stream.read(_BLOCK):
                data += block
    except UnpackedTooLarge:
        raise
    except ReadError as error:
        if not data:
            raise
        log.lose("the end", error.reason, 0)
    if data.startswith(BYTE_ORDER_MARK):
        del data[: len(BYTE_ORDER_MARK)]
    return data


def read_sibling(source: Source, name: str, kind: type[T], log: LossLog) -> T | None:
    """Another file of the same folder, decoded; ``None`` when it is not there or not sound."""
    path = source.path.with_name(name)
    if not path.is_file():
        return None
    try:
        return decode(bytes(read_bytes(Source(str(path), path), log)), kind)
    except (ReadError, *BROKEN):
        return None


def open_document(
    data: Bytes,
    log: LossLog,
    *,
    whole: type[W],
    item: type[Any],
    items: Callable[[W], object],
    paths: Sequence[Sequence[str]],
    noun: str = "record",
) -> Document[W]:
    """Decode a document with many records.

    Parameters
    ----------
    whole, item : type
        The document and one record. Every field of ``whole`` needs a default.
    items : callable
        The records of a decoded document, as a list or a dict.
    paths : sequence of paths
        The paths of the records, for cutting them out of a broken document.
    noun : str
        The name of a record in messages about lost ones.
    """
    try:
        document = decode(data, whole)
    except BROKEN as error:
        return _piecewise(data, log, whole, item, paths, noun, error)
    return Document(document, _pairs(items(document)))


def open_list(data: Bytes, log: LossLog, item: type[T], noun: str) -> Iterator[T]:
    """The records of a document that is a list of them."""
    kind: Any = list[item]  # type: ignore[valid-type]
    document = open_document(
        data, log, whole=kind, item=item, items=lambda records: records, paths=[()], noun=noun
    )
    return (record for _, record in document.items)


def json_lines(
    source: Source, log: LossLog, kind: type[T], *, marks: bool = False
) -> Iterator[tuple[int, T]]:
    """Each line's record with its line number; a line that cannot be decoded is lost."""
    number = 0
    try:
        with source.open() as stream:
            for number, line in enumerate(short_lines(stream), 1):
                text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
                if not text.strip():
                    continue
                try:
                    record = decode(text, kind, marks=marks)
                except BROKEN as error:
                    log.lose(f"line {number}", _why(error, text))
                else:
                    yield number, record
    except UnpackedTooLarge:
        raise
    except ReadError as error:
        if number == 0:
            raise
        log.lose(f"after line {number}", error.reason, 0)


def short_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; in a very long one, the texts are cut while it is read.

    A transcript of hundreds of megabytes inside one record would otherwise have to fit into memory,
    and no reader needs more of a text than its beginning.
    """
    while line := stream.readline(_LONG_LINE):
        if len(line) < _LONG_LINE or line.endswith(b"\n"):
            yield line
            continue
        cutter = _TextCutter()
        short = bytearray(cutter.feed(line))
        while block := stream.readline(_LONG_LINE):
            if len(short) < _LONGEST_RECORD:  # a longer line is lost: it has no end
                short += cutter.feed(block)
            if block.endswith(b"\n"):
                break
        yield bytes(short)


class _TextCutter:
    """Shortens the strings in JSON that comes in blocks; the result is JSON again."""

    def __init__(self) -> None:
        self._inside = False
        self._kept = 0
        self._pending = b""

    def feed(self, block: bytes) -> bytes:
        block = self._pending + block
        self._pending = b""
        out = bytearray()
        at = 0
        while at < len(block):
            if not self._inside:
                quote = block.find(b'"', at)
                stop = len(block) if quote < 0 else quote + 1
                out += block[at:stop]
                at, self._inside, self._kept = stop, quote >= 0, 0
                continue
            stop = _TEXT_END.match(block, at).end()  # type: ignore[union-attr]
            if block[stop : stop + 1] == b'"':
                self._keep(out, block[at:stop])
                out += b'"'
                at, self._inside = stop + 1, False
                continue
            # The text goes on in the next block. A character or an escape that is cut in two here
            # stays whole there: half of it must not be the last that is kept.
            if self._kept < _LONGEST_TEXT:
                stop -= _partial_bytes(block[at:stop])
            self._keep(out, block[at:stop])
            self._pending = block[stop:]
            break
        return bytes(out)

    def _keep(self, out: bytearray, text: bytes) -> None:
        room = _LONGEST_TEXT - self._kept
        self._kept += len(text)
        if room <= 0:
            return
        if len(text) > room:
            # Not in the middle of an escape or a character: at most seven bytes further back.
            cuts = (text[: room - back] for back in range(min(12, room + 1)))
            text = next((cut for cut in cuts if _is_text(cut)), b"")
        out += text


def _partial_bytes(text: bytes) -> int:
    """Bytes at the end of a text that are the beginning of a character or an escape."""
    return next((back for back in range(12) if _is_text(text[: len(text) - back])), 0)


def _is_text(content: bytes) -> bool:
    try:
        msgspec.json.decode(b'"' + content + b'"', type=str)
    except BROKEN:
        return False
    return True


def _pairs(container: object) -> Iterable[tuple[str, Any]]:
    if isinstance(container, dict):
        return container.items()
    return (("", record) for record in container) if isinstance(container, list) else ()


def _piecewise(
    data: Bytes,
    log: LossLog,
    whole: type[W],
    item: type[Any],
    paths: Sequence[Sequence[str]],
    noun: str,
    error: Exception,
) -> Document[W]:
    places = ((path, find_container(data, path)) for path in paths)
    path, opening = next(((p, at) for p, at in places if at is not None), ((), None))
    if opening is None:
        log.lose("the file", _why(error, data), 0)
        return Document(whole(), ())
    head = _head(data, opening, len(path), whole, log)
    return Document(head, _one_by_one(data, opening, item, log, noun))


def _head(data: Bytes, opening: int, depth: int, whole: type[W], log: LossLog) -> W:
    """The document without its records; reports broken parts around them."""
    empty = b"{}" if data[opening : opening + 1] == b"{" else b"[]"
    end = container_end(data, opening)
    if end is None:
        log.lose("the end", "the file ends before its records do", 0)
    else:
        try:
            return decode(data[:opening] + empty + data[end:], whole)
        except BROKEN:
            log.lose("the end", "the document around the records is broken", 0)
    try:
        return decode(data[:opening] + empty + b"}" * depth, whole)
    except BROKEN as error:
        log.lose("the head", f"the part about the whole run is broken ({error})", 0)
        return whole()


def _one_by_one(
    data: Bytes, opening: int, item: type[Any], log: LossLog, noun: str
) -> Iterator[tuple[str, Any]]:
    for number, part in enumerate(parts(data, opening), 1):
        try:
            record = decode(part.content, item)
        except BROKEN as error:
            cut = "the file ends in the middle of it"
            log.lose(
                f"{noun} {part.key or number}",
                _why(error, part.content) if part.complete else cut,
            )
        else:
            yield part.key, record


def _why(error: Exception, text: Bytes) -> str:
    if isinstance(error, msgspec.ValidationError):
        return f"is not what it should be ({shorten(str(error), 90)})"
    start = shorten(bytes(text[:60]).decode("utf-8", "replace").strip(), 30)
    return f"is not JSON ({shorten(str(error), 90)}); it starts with {start}"


_PASSES = frozenset({"pass", "passed", "success", "solved", "ok", "correct", *ALIASES["c"]})
_DEEPEST_COUNTS = 4
_OTHER_COUNTS = frozenset({*ALIASES["n"], *ALIASES["fails"]})


def count_records(
    data: Mapping[str, Any], without: Container[str], keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The objects with numbers of passes and of attempts or failures, and the keys around each.

    An object beside them that has only one of the numbers, or none, is a record, too.
    """
    inner = {
        str(key): value or {}
        for key, value in data.items()
        if (isinstance(value, dict) or value is None) and fold_name(str(key)) not in without
    }
    counts = {
        key: {fold_name(str(name)) for name, count in value.items() if type(count) is int}
        for key, value in inner.items()
    }
    is_level = any(names & _PASSES and names & _OTHER_COUNTS for names in counts.values())
    for key, value in inner.items():
        if is_level and not any(isinstance(part, dict) for part in value.values()):
            yield (*keys, key), value
        elif len(keys) < _DEEPEST_COUNTS:
            yield from count_records(value, without, (*keys, key))


def holds_records(value: Any, depth: int = _DEEPEST_COUNTS) -> bool:
    """Whether a list of objects is inside: counts beside it sum it up."""
    if isinstance(value, list):
        return any(isinstance(part, dict) for part in value)
    is_inner = isinstance(value, dict) and depth >= 0
    return is_inner and any(holds_records(part, depth - 1) for part in value.values())


# -- tables as pandas writes them ------------------------------------------------------------

_HEADERS = ("columns", "header", "headers", "column_names", "fields")
_ROWS = ("data", "rows", "values", "records")
_MOST_FRAME_BYTES = 256 << 20


_OBJECT_LINE = re.compile(rb"\s*\{[^\n]*\}[ \t\r]*\n\s*\{")


def expand_frame(source: Source) -> Source | None:
    """The table that a document holds by its form alone, as JSON lines; ``None`` for no table.

    Names beside rows of cells, rows below a row of names, or columns of cells.
    """
    if source.path.stat().st_size > _MOST_FRAME_BYTES or _OBJECT_LINE.match(source.head):
        return None
    try:
        with source.open() as stream:
            data = decode(stream.read().removeprefix(BYTE_ORDER_MARK), Any)
    except (ReadError, *BROKEN):
        return None
    rows = list(_frame_rows(data))
    if len(rows) < 2:
        return None
    path = make_folder() / f"{source.stem}.jsonl"
    write_lines(path, rows)
    return Source(source.name, path, found=source.found)


def _frame_rows(data: Any) -> Iterator[dict[str, object]]:
    names: Any = None
    rows: Any = None
    columns: dict[str, list[object]] = {}
    if isinstance(data, list) and len(data) > 1:
        names, rows = data[0], data[1:]
    elif isinstance(data, dict):
        names = next((data[name] for name in _HEADERS if name in data), None)
        rows = next((data[name] for name in _ROWS if name in data), None)
        records = list(data.values()) if _is_numbered(data) else []
        if records and all(isinstance(r, dict) and r.keys() == records[0].keys() for r in records):
            data = {name: [record[name] for record in records] for name in records[0]}
            if any(map(_is_odd_key, data.values())):
                return  # the keys are the tasks
        columns = {str(name): _cells(cells) for name, cells in data.items()}
    if _are_names(names) and isinstance(rows, list):
        if all(isinstance(row, list) and len(row) == len(names) for row in rows):
            yield from (dict(zip(names, row, strict=True)) for row in rows)
        return
    cells = list(columns.values())
    if len(cells) > 1 and all(cells) and len(set(map(len, cells))) == 1 and _holds_texts(cells):
        for row in zip(*cells, strict=True):
            yield dict(zip(columns, row, strict=True))


def _cells(column: Any) -> list[object]:
    """The plain cells of a column: a list, or an object with the numbers of the rows as keys."""
    if isinstance(column, dict) and _is_numbered(column):
        column = list(column.values())
    is_plain = isinstance(column, list) and not any(isinstance(c, dict | list) for c in column)
    return column if is_plain else []


def _is_odd_key(column: Sequence[object]) -> bool:
    """Whether few texts are there twice: no two attempts at a task."""
    is_text = all(isinstance(cell, str) for cell in column)
    return is_text and len(column) < 2 * len(set(column)) < 2 * len(column)


def _is_numbered(rows: Mapping[str, object]) -> bool:
    return list(rows) == [str(number) for number in range(len(rows))]


def _are_names(names: Any) -> bool:
    is_list = isinstance(names, list) and len(names) > 1 and all(isinstance(n, str) for n in names)
    return is_list and len(set(names)) == len(names)


def _holds_texts(columns: Sequence[list[object]]) -> bool:
    """Whether a column holds texts that are no verdicts, and one holds the same cell again.

    Lists without either are verdicts by model or by task, or ids by how they ended.
    """
    words = RewardWords()
    texts = [c for c in columns if all(isinstance(cell, str) for cell in c)]
    has_text = any(reward_or_none(words, cell) is None for c in texts for cell in c)
    return has_text and any(len(set(map(str, cells))) < len(cells) for cells in columns)


# -- documents that are tables by their keys ---------------------------------------------

WEAK_TASKS = ("id", "name", "question", "prompt", "nodeid")
FACTS = ("config", "metadata", "meta", "info", "params", "parameters", "settings")
NOT_ATTEMPTS = frozenset(
    {
        *("tests", "checks", "assertions", "steps", "turns", "tool_calls", "messages", "rubric"),
        *("criteria", "metrics", "scores", "errors", "history", "trajectory", "events", "args"),
        *("usage", *FACTS),
        *("summary", "stats", "totals", "aggregate", "aggregates", "overall", "by_category"),
        *("exact", "exact_match", "em", "f1", "bleu", "rouge", "precision", "recall", "auc"),
    }
)
_MOST_BYTES = 32 << 20


def read_object(file: Source) -> dict[str, Any] | None:
    """The object that a small file holds; ``None`` for any other content."""
    if file.is_folder or not file.head.lstrip().startswith(b"{"):
        return None
    with file.open() as stream:
        content = stream.read(_MOST_BYTES)
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _singular(name: str) -> str:
    return fold_name(name.removesuffix("s"))


def expand_grid(source: Source) -> Source | None:
    """A matrix beside the lists that name its rows and columns, as rows; ``None`` for no such one.

    ``{"tasks": ["a", "b"], "results": {"model-1": [1, 0], "model-2": [0, 1]}}``, or lists in place
    of the inner object and a list of its rows' names.
    """
    data = read_object(source) or {}
    axes = {
        str(key): list(map(str, names))
        for key, names in data.items()
        if isinstance(names, list) and len(set(map(str, names))) == len(names) > 1
        if all(isinstance(name, str) for name in names) or _singular(str(key)) in ALIASES["trial"]
    }
    for key, grid in data.items():
        for inner, labels in axes.items() if isinstance(grid, list | dict) else ():
            outer = next(
                (n for n, names in axes.items() if n != inner and len(names) == len(grid)), ""
            )
            is_object = isinstance(grid, dict)
            if not (is_object or (isinstance(grid, list) and outer)) or len(grid) < 2:
                continue
            rows = list(grid.values()) if is_object else grid
            if not all(isinstance(row, list) and len(row) == len(labels) for row in rows):
                continue
            names = list(map(str, grid)) if is_object else axes[outer]
            is_task = _singular(inner) in (*ALIASES["task"], *WEAK_TASKS)
            is_trial = _singular(inner) in ALIASES["trial"]
            first, second = ("model", "task") if is_task else ("task", "model")
            second = _singular(inner) if is_trial and not is_task else second
            table = [
                {first: name, second: label, "success": cell}
                for name, row in zip(names, rows, strict=True)
                for label, cell in zip(labels, row, strict=True)
            ]
            path = make_folder() / f"{source.stem}.jsonl"
            write_lines(path, table)
            said = f"{key!r} holds a row for each {first} and a column for each of {inner!r}"
            return Source(source.name, path, found=source.found, conversion=said)
    return _expand_counts(source, data)


def _expand_counts(source: Source, data: Mapping[str, Any]) -> Source | None:
    """Counts by task, and by model around them, as rows: ``{"a": {"pass": 2, "fail": 1}}``."""
    rows = list(count_records(data, NOT_ATTEMPTS)) if not holds_records(data) else []
    if len(rows) < 2 or len({len(keys) for keys, _ in rows}) > 1:
        return None
    axes = [list(dict.fromkeys(names)) for names in zip(*(keys for keys, _ in rows), strict=True)]
    places = [place for place, names in enumerate(axes) if len(names) > 1]
    are_models = [all(map(is_model_name, axes[place])) for place in places]
    words = ("task", "model") if are_models == [False, True] else ("model", "task")[-len(places) :]
    if len(places) > 2 or are_models == [True] or any({*words} & row.keys() for _, row in rows):
        return None
    path = make_folder() / f"{source.stem}.jsonl"
    table = [dict(zip(words, (keys[p] for p in places), strict=True)) | row for keys, row in rows]
    write_lines(path, table)
    said = f"objects with numbers of passes are rows: by {' and '.join(words)}"
    return Source(source.name, path, found=source.found, conversion=said)


def is_inner(value: object) -> bool:
    """Whether a value holds others."""
    return isinstance(value, dict | list)


def gather_tasks(folder: Source, files: Sequence[Source]) -> Source | None:
    """The documents of a folder, one for each task, as JSON lines; ``None`` where they are not."""
    documents = []
    for file in files:
        data = read_object(file) if file.path.suffix.lower() == ".json" else None
        if data is None or not any(map(is_inner, data.values())):
            return None
        documents.append(data)
    shared = set.intersection(*map(set, documents)) if len(documents) > 2 else set()
    for name in shared:
        names = {str(data[name]) for data in documents if not is_inner(data[name])}
        is_task = fold_name(name) in (*ALIASES["task"], *WEAK_TASKS)
        if is_task and len(names) == len(documents):
            path = make_folder() / f"{folder.stem}.jsonl"
            write_lines(path, documents)
            said = f"{len(documents)} files are a task each, by their field {name!r}"
            return Source(folder.name, path, found=folder.found, conversion=said)
    return None
