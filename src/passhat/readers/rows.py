"""CSV, JSON lines and Parquet as chunks of columns, each with a way back from row to line."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import IO, TYPE_CHECKING, Protocol

from passhat._display import counted, some
from passhat.errors import MissingExtra, NoRows, ReadError, shorten
from passhat.readers.csv_blocks import (
    RULE,
    cut_block,
    find_header,
    find_second_table,
    first_cells,
    join_header_lines,
    names_without_header,
)
from passhat.readers.json_records import BYTE_ORDER_MARK, LossLog, json_lines
from passhat.readers.parsing import number_or_none
from passhat.readers.sources import Source
from passhat.readers.zip_members import NO_HEADER, name_first_column
from passhat.stats.outcomes import Loss
from passhat.stats.outcomes.gathering import Chunk

if TYPE_CHECKING:
    from _csv import Reader as _CsvReader

    from _typeshed import WriteableBuffer
    from duckdb import DuckDBPyConnection

CHUNK_ROWS = 2_000
"""Small enough for a chunk to stay in the processor's cache: twice as fast as 20,000."""
_BLOCK = 1 << 18
_FAST_BLOCK = 1 << 22
LONGEST_LINE = 32 << 20
_LOSSES_KEPT = 1_000
_SURROGATE = re.compile("[\udc80-\udcff]")

# A completion may well be longer than the 131,072 characters that the module allows.
csv.field_size_limit(LONGEST_LINE)

_AS_UTF8 = "save the table as UTF-8, or: iconv -f LATIN1 -t UTF-8 FILE > NEW"


class Rows(Protocol):
    """A table that is read once, front to back."""

    kind: str
    place: str
    """The unit of a position in the file: line or row."""

    lines: Sequence[int]
    """The place of every row of the last chunk."""

    decisions: tuple[str, ...]
    """Choices that change the numbers, known once the first chunk was read."""

    def chunks(self) -> Iterator[Chunk]:
        """Columns of up to CHUNK_ROWS rows at a time."""

    def line_of(self, row: int) -> int:
        """The line number of a row (counted from 0)."""


class Losses:
    """Rows of a table that cannot be used."""

    def __init__(self) -> None:
        self._kept: list[Loss] = []
        self._more = self._more_rows = 0

    def lose(self, where: str, what: str, rows: int = 1, hint: str | None = None) -> None:
        """Note a row, or a part of the file, that cannot be used."""
        if len(self._kept) < _LOSSES_KEPT:
            self._kept.append(Loss(where, what, rows, hint))
        else:
            self._more += 1
            self._more_rows += rows

    @property
    def all(self) -> tuple[Loss, ...]:
        """The first thousand, and a count of the rest."""
        rest = Loss("", f"{self._more:,} more like these", self._more_rows)
        return (*self._kept, rest) if self._more else tuple(self._kept)


class CsvRows:
    """Comma, semicolon, bar or tab separated text with a header line."""

    kind = "CSV"
    place = "line"

    def __init__(self, source: Source, losing: LossLog | None = None) -> None:
        self._source = source
        self._losing = losing or Losses()
        self.lines: Sequence[int] = ()
        self._above, self._delimiter = find_header(source.head)
        self.decisions: tuple[str, ...] = ()
        above = source.head.decode("utf-8", "replace").splitlines()[: self._above]
        self.title = next((t.strip(" \t,;|") for t in reversed(above) if t.strip(" \t,;|")), "")
        if self._above:
            lines = counted(self._above, "line")
            self.decisions = (
                f"{lines} above the header {'was' if self._above == 1 else 'were'} left out",
            )
        self._names = names_without_header(source.head, self._above, self._delimiter)
        self.decisions += (NO_HEADER,) if self._names else ()
        joined = join_header_lines(source.head, self._above, self._delimiter)
        self._joined: list[str] = []
        self._top = first_cells(source.head, self._above, self._delimiter)
        if joined is not None:
            count, self._joined = joined
            self._above += count - 1
            self.decisions += (f"{count} lines of headings were joined",)

    def chunks(self) -> Iterator[Chunk]:
        with self._source.open() as stream:
            first = stream.readline(LONGEST_LINE)
            above = self._above
            while first and (above or not first.removeprefix(BYTE_ORDER_MARK).strip()):
                above -= above > 0
                first = stream.readline(LONGEST_LINE)
            delimiter = self._delimiter
            if self._names is not None:
                yield from self._parse_chunks(
                    first, stream, delimiter, self._names, self._above + 1
                )
                return
            if b'"' in first or not first.endswith(b"\n") or not delimiter.strip(" "):
                yield from self._parse_chunks(first, stream, delimiter, line=self._above + 1)
                return
            text = first.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
            names = self._header(csv.reader([text], delimiter=delimiter, strict=True))
            line = 2 + self._above
            while block := stream.read(_FAST_BLOCK):
                if not block.endswith(b"\n"):
                    block += stream.readline(LONGEST_LINE)
                    if not block.endswith(b"\n") and len(block) < LONGEST_LINE:
                        block += b"\n"
                columns = (
                    cut_block(block, names, delimiter.encode()) if block.endswith(b"\n") else None
                )
                if columns is None:
                    yield from self._parse_chunks(block, stream, delimiter, names, line)
                    return
                self.lines = range(line, line + columns.size)
                line += columns.size
                yield columns

    def _parse_chunks(
        self,
        begun: bytes,
        stream: IO[bytes],
        delimiter: str,
        header: list[str] | None = None,
        line: int = 1,
    ) -> Iterator[Chunk]:
        """Columns by csv.reader, from a line of the file on; ``begun`` has been read already."""
        guard = _LineGuard(begun, stream, self._losing)
        buffered = io.BufferedReader(guard, _BLOCK)
        text = io.TextIOWrapper(
            buffered, encoding="utf-8-sig", errors="surrogateescape", newline=""
        )
        lines = (f"{' '.join(line.split())}\n" for line in text) if delimiter == " " else text
        if delimiter == "  ":  # a tab for the gaps between columns that are aligned
            lines = (re.sub(r"\s{2,}", "\t", line.rstrip()) + "\n" for line in text)
            delimiter = "\t"
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        header = self._header(reader) if header is None else header
        width = len(header)
        while True:
            before = reader.line_num + line - 1
            block: list[list[str]] = []
            broken = ""
            try:
                block.extend(islice(reader, CHUNK_ROWS))
            except csv.Error as error:
                broken = str(error)
            second = find_second_table(block)
            if second is not None:
                self.decisions += (f"another table from line {before + 1 + second} on is not read",)
                block = block[:second]
            rows = block
            self.lines = range(before + 1, before + 1 + len(block))
            if guard.is_broken or broken or set(map(len, block)) != {width}:
                rows = self._sound(block, before, header)
            if broken:
                where = f"line {reader.line_num + line - 1}"
                self._losing.lose(where, f"is not a CSV record ({broken})")
            if rows:
                columns = map(list, zip(*rows, strict=True))
                yield dict(zip(header, columns, strict=True))
            if second is not None or (not block and not broken):
                return

    def line_of(self, row: int) -> int:
        """Read again up to a row: only a broken table pays for this."""
        # The header is row -1.
        line, row_number = self._above + 1, 0 if self._names else -1
        with self._source.open() as stream:
            for _ in range(self._above):
                stream.readline(LONGEST_LINE)
            text = io.TextIOWrapper(
                stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
            )
            delimiter = self._delimiter[0]
            reader = csv.reader(text, delimiter=delimiter, strict=True)
            while True:
                try:
                    for record in reader:
                        if record and row_number == row:
                            return line
                        row_number += bool(record)
                        line = reader.line_num + 1 + self._above
                    return line
                except csv.Error:
                    line = reader.line_num + 1 + self._above

    def _sound(self, block: list[list[str]], before: int, header: Sequence[str]) -> list[list[str]]:
        """The rows with as many cells as the header and without broken characters."""
        sound_rows, lines, width = [], [], len(header)
        for line, (row, below) in enumerate(pairwise((*block, [])), before + 1):
            where = f"line {line}"
            if len(row) == 1 < width and row[0].strip() and below == list(header):
                row = [*row, *[""] * (width - 1)]  # the heading of another part of the table
            if not row or (len(row) < width and row[0].lstrip().startswith("#")):
                continue
            if len(row) < width and RULE.fullmatch("".join(row).strip()):
                continue
            if len(row) != width:
                cells = counted(len(row), "cell")
                columns = counted(width, "column")
                self._losing.lose(where, f"{cells} where the header has {columns}")
            elif any(_SURROGATE.search(cell) for cell in row):
                self._losing.lose(where, f"is not UTF-8 text; {_AS_UTF8}")
            else:
                sound_rows.append(row)
                lines.append(line)
        self.lines = lines
        return sound_rows

    def _header(self, reader: _CsvReader) -> list[str]:
        try:
            header = next((row for row in reader if row), None)
        except csv.Error as error:
            raise ReadError(
                f"is not a CSV record ({error}).",
                source=self._source.name,
                line=reader.line_num or 1,
                hint="Look for a quote that is not closed or a cell longer than "
                f"{csv.field_size_limit():,} characters.",
            ) from None
        if header is None:
            raise NoRows("the file is empty.", source=self._source.name)
        if self._joined:
            return self._joined
        header = name_first_column(header, self._top)
        if any(_SURROGATE.search(cell) for cell in header):
            raise ReadError(
                "is not UTF-8 text.",
                source=self._source.name,
                line=reader.line_num,
                hint=f"{_AS_UTF8[0].upper()}{_AS_UTF8[1:]}.",
            )
        if len(header) == 1 and header[0].lstrip().startswith("# "):
            raise ReadError(
                f"begins with a comment ({shorten(header[0])}) where the header should be.",
                source=self._source.name,
                line=reader.line_num,
                hint="Leave such lines out: grep -v '^#' FILE | passhat read -",
            )
        twice = [name for name, count in Counter(header).items() if count > 1]
        if (
            twice
            and header[0] not in twice
            and not any(number_or_none(name) is not None or not name for name in twice)
        ):
            named = some(twice, 4)
            self.decisions += (f"columns of the same name are numbered, as {twice[0]}.1: {named}",)
            return number_names(header)
        if twice:
            raise ReadError(
                f"column {shorten(twice[0])} is in the header twice.",
                source=self._source.name,
                line=reader.line_num,
                hint="The first line must name the columns, as in task,trial,success; a Markdown "
                "table or a bare matrix has to be written as CSV with such a line.",
            )
        return header


def number_names(names: Sequence[str]) -> list[str]:
    """The names of columns with a number behind the second and further ones that are equal."""
    counts: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append(f"{name}.{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return numbered


class _LineGuard(io.RawIOBase):
    """Passes bytes on, drops the rest of a line that would not fit into memory.

    ``is_broken`` turns true when a block is not UTF-8, before any of its text is handed over.
    """

    def __init__(self, begun: bytes, stream: IO[bytes], losing: LossLog) -> None:
        self._begun = io.BytesIO(begun)
        self._stream = stream
        self._losing = losing
        self._length = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.is_broken = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        block = self._begun.read(len(view)) or self._stream.read(len(view))
        if not block:
            return 0
        if not self.is_broken and not block.isascii():
            try:
                self._decoder.decode(block)
            except UnicodeDecodeError:
                self.is_broken = True
        newline = block.rfind(b"\n")
        self._length = self._length + len(block) if newline < 0 else len(block) - newline - 1
        if self._length > LONGEST_LINE:
            self._skip_line()
            block = block[:-1] + b"\n"
        view[: len(block)] = block
        return len(block)

    def _skip_line(self) -> None:
        """Skip the rest of the line."""
        self._length = 0
        while part := self._stream.readline(_BLOCK):
            if part.endswith(b"\n"):
                break
        self._losing.lose("a line", f"is longer than {LONGEST_LINE >> 20} MB and was cut", 0)


class JsonLinesRows:
    """A JSON object per line; an absent key is null."""

    kind = "JSON lines"
    place = "line"

    def __init__(self, source: Source, losing: LossLog | None = None) -> None:
        self._source = source
        self._losing = losing or Losses()
        self.lines: Sequence[int] = ()
        self.decisions: tuple[str, ...] = ()

    def chunks(self) -> Iterator[Chunk]:
        names: dict[str, None] = {}
        rows = json_lines(self._source, self._losing, dict[str, object])
        while numbered_rows := list(islice(rows, CHUNK_ROWS)):
            self.lines, block = zip(*numbered_rows, strict=True)
            names |= dict.fromkeys(name for row in block for name in row)
            yield {name: [row.get(name) for row in block] for name in names}

    def line_of(self, row: int) -> int:
        rows = json_lines(self._source, Losses(), dict[str, object])
        return next(islice(rows, row, None), (0, {}))[0]


class ParquetRows:
    """A Parquet file, read by DuckDB."""

    kind = "Parquet"
    place = "row"

    def __init__(self, source: Source) -> None:
        self._source = source
        self.lines: Sequence[int] = ()
        self.decisions: tuple[str, ...] = ()

    def columns(self) -> list[str]:
        """The names of the columns, without reading any row."""
        with self._query(0) as cursor:
            return [column[0] for column in cursor.description or ()]

    def count(self) -> int:
        """Number of rows, according to the file's metadata."""
        with self._query(what="count(*)") as cursor:
            row = cursor.fetchone()
            return 0 if row is None else int(row[0])

    def chunks(self) -> Iterator[Chunk]:
        with self._query() as cursor:
            names = [column[0] for column in cursor.description or ()]
            row_count = 0
            while block := cursor.fetchmany(CHUNK_ROWS):
                self.lines = range(row_count + 1, row_count + 1 + len(block))
                row_count += len(block)
                columns = zip(*block, strict=True)
                yield {name: list(cells) for name, cells in zip(names, columns, strict=True)}

    @contextmanager
    def _query(self, limit: int | None = None, what: str = "*") -> Iterator[DuckDBPyConnection]:
        """The rows as DuckDB sees them; its complaints name the file."""
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("Reading Parquet", extra="parquet") from None
        limit_clause = "" if limit is None else f" LIMIT {limit}"
        query = f"SELECT {what} FROM read_parquet(?){limit_clause}"
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
