"""CSV, JSON lines and Parquet as chunks of columns, each with a way back from row to line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec

from passhat._display import counted
from passhat.errors import MissingExtra, NoRows, ReadError, shorten
from passhat.readers.sources import Source
from passhat.stats.outcomes.gathering import Chunk

if TYPE_CHECKING:
    from _csv import Reader as _CsvReader

    from duckdb import DuckDBPyConnection

__all__ = ["CsvRows", "JsonLinesRows", "ParquetRows", "Rows"]

CHUNK_ROWS = 2_000
"""Small enough for a chunk to stay in the processor's cache: twice as fast as 20,000."""
_DELIMITERS = (",", "\t", ";", "|")


class Rows(Protocol):
    """A table that is read once, front to back."""

    kind: str
    place: str
    """What a position in the file is called: line or row."""

    def chunks(self) -> Iterator[Chunk]:
        """Columns of up to CHUNK_ROWS rows at a time."""

    def line_of(self, row: int) -> int:
        """The line of the file that a row (counted from 0) stands on."""


class CsvRows:
    """Comma, semicolon, bar or tab separated text with a header line."""

    kind = "CSV"
    place = "line"

    def __init__(self, source: Source) -> None:
        self._source = source

    def chunks(self) -> Iterator[Chunk]:
        with self._reader() as reader:
            header = self._header(reader)
            done = 0
            while block := list(islice(reader, CHUNK_ROWS)):
                rows = [row for row in block if row]
                if not set(map(len, rows)) <= {len(header)}:
                    self._refuse_ragged(rows, done, len(header))
                done += len(rows)
                if rows:
                    columns = map(list, zip(*rows, strict=True))
                    yield dict(zip(header, columns, strict=True))

    def line_of(self, row: int) -> int:
        """Read again up to a row: only a broken table pays for this."""
        line, seen = 1, -1  # the header is row -1
        with self._reader() as reader:
            for record in reader:
                if record and seen == row:
                    return line
                seen += bool(record)
                line = reader.line_num + 1
        return line

    @contextmanager
    def _reader(self) -> Iterator[_CsvReader]:
        """A CSV reader whose complaints name file and line."""
        with self._source.open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            reader = csv.reader(text, delimiter=_delimiter(self._source.head), strict=True)
            try:
                yield reader
            except csv.Error as error:
                raise ReadError(
                    f"is not a CSV record ({error}).",
                    source=self._source.name,
                    line=reader.line_num or 1,
                    hint="Look for a quote that is not closed or a cell longer than "
                    f"{csv.field_size_limit():,} characters.",
                ) from None
            except UnicodeDecodeError:
                raise _not_text(self._source) from None

    def _header(self, reader: _CsvReader) -> list[str]:
        header = next((row for row in reader if row), None)
        if header is None:
            raise NoRows("the file is empty.", source=self._source.name)
        twice = [name for name, count in Counter(header).items() if count > 1]
        if twice:
            raise ReadError(
                f"column {shorten(twice[0])} stands in the header twice.",
                source=self._source.name,
                line=reader.line_num,
            )
        return header

    def _refuse_ragged(self, rows: list[list[str]], before: int, width: int) -> None:
        at, row = next((at, row) for at, row in enumerate(rows) if len(row) != width)
        raise ReadError(
            f"{counted(len(row), 'cell')} where the header has {counted(width, 'column')}.",
            source=self._source.name,
            line=self.line_of(before + at),
            hint="Quote cells that contain the delimiter.",
        )


class JsonLinesRows:
    """One JSON object per line; a key that is absent is null."""

    kind = "JSON lines"
    place = "line"

    def __init__(self, source: Source) -> None:
        self._source = source

    def chunks(self) -> Iterator[Chunk]:
        names: dict[str, None] = {}
        rows = self._rows()
        while block := [row for _, row in islice(rows, CHUNK_ROWS)]:
            names |= dict.fromkeys(name for row in block for name in row)
            yield {name: [row.get(name) for row in block] for name in names}

    def line_of(self, row: int) -> int:
        return next(islice(self._rows(), row, None))[0]

    def _rows(self) -> Iterator[tuple[int, dict[str, object]]]:
        with self._source.open() as stream:
            for line, text in enumerate(_lines(stream), 1):
                if not text.strip():
                    continue
                try:
                    row = msgspec.json.decode(text)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise self._refuse(line, f"({error})", text) from None
                if not isinstance(row, dict):
                    raise self._refuse(line, f"but {shorten(row)}", text)
                yield line, row

    def _refuse(self, line: int, why: str, text: bytes) -> ReadError:
        start = shorten(text.decode("utf-8", "replace").strip())
        return ReadError(
            f"is not one JSON object {why}; it starts with {start}.",
            source=self._source.name,
            line=line,
            hint="A JSON lines table has one object per line, such as "
            '{"task": "a", "trial": 0, "success": 1}.',
        )


class ParquetRows:
    """A Parquet file, read by DuckDB."""

    kind = "Parquet"
    place = "row"

    def __init__(self, source: Source) -> None:
        self._source = source

    def columns(self) -> list[str]:
        """The names of the columns, without reading any row."""
        with self._found(0) as found:
            return [column[0] for column in found.description or ()]

    def count(self) -> int:
        """How many rows there are, by the file's own word."""
        with self._found(what="count(*)") as found:
            row = found.fetchone()
            return 0 if row is None else int(row[0])

    def chunks(self) -> Iterator[Chunk]:
        with self._found() as found:
            names = [column[0] for column in found.description or ()]
            while block := found.fetchmany(CHUNK_ROWS):
                columns = zip(*block, strict=True)
                yield {name: list(cells) for name, cells in zip(names, columns, strict=True)}

    @contextmanager
    def _found(self, limit: int | None = None, what: str = "*") -> Iterator[DuckDBPyConnection]:
        """The rows as DuckDB sees them; its complaints name the file."""
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("Reading Parquet", extra="parquet") from None
        few = "" if limit is None else f" LIMIT {limit}"
        query = f"SELECT {what} FROM read_parquet(?){few}"
        try:
            with duckdb.connect() as database:
                database.execute("SET enable_progress_bar = false")
                yield database.execute(query, [str(self._source.path)])
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise ReadError(
                f"cannot be read as Parquet ({shorten(first, 120)}).", source=self._source.name
            ) from None

    def line_of(self, row: int) -> int:
        return row + 1


def _delimiter(head: bytes) -> str:
    """The delimiter that the header line uses most."""
    first = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(_DELIMITERS, key=first.count)


def _lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without a byte order mark."""
    for index, line in enumerate(stream):
        yield line.removeprefix(b"\xef\xbb\xbf") if index == 0 else line


def _not_text(source: Source) -> ReadError:
    """Name the first line that is not UTF-8."""
    with source.open() as stream:
        for line, content in enumerate(stream, 1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                return ReadError(
                    f"is not UTF-8 text (byte 0x{content[error.start]:02x}).",
                    source=source.name,
                    line=line,
                    hint="Save the table as UTF-8.",
                )
    return ReadError("is not UTF-8 text.", source=source.name)
