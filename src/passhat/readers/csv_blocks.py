"""Blocks of plain CSV cut into columns by NumPy, without a Python object per cell.

csv.reader makes a list of strings of every row, and most of the time of reading a table goes into
those objects. Where a block of lines has no quotes, the cells lie between delimiters and line ends:
their places are found by NumPy, and equal cells are found by comparing eight bytes at a time.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passhat.readers.json_records import BYTE_ORDER_MARK
from passhat.readers.zip_members import is_value, join_headers, name_without_header
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.outcomes.cells import CellCodes

_Words = np.ndarray[tuple[int], np.dtype[np.uint64]]

_NEWLINE = 10
_RETURN = 13
_WORD = 8
_LONGEST = 64
"""Cells up to this length are compared as whole words; longer ones one by one."""
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(_WORD)] + [2**64 - 1], np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FEW = 1 << 16
_SLOT_BITS = 18
_MOST_DIGITS = 15
_INT32_DIGITS = 10
_POWERS = 10.0 ** np.arange(_MOST_DIGITS + 1)


class CsvBlock(Mapping[str, Sequence[object]]):
    """The columns of a block of lines; a column is decoded when it is first used."""

    def __init__(self, names: Sequence[str], data: bytes, starts: IntArray, ends: IntArray) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._data = data
        self._starts = starts
        self._ends = ends
        # Eight bytes from every place on, and as many behind the end.
        padded = data + bytes(_WORD)
        self._words = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))
        # A slice of a text is made faster than one of bytes that is decoded afterwards.
        self._text = data.decode("ascii") if data.isascii() else ""
        self._columns: dict[int, CellCodes] = {}

    @property
    def size(self) -> int:
        """The number of lines."""
        return len(self._starts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> CellCodes:
        # Not kept: block and cells would refer to each other, and stay until the collector runs.
        return _BlockCells(self, self._places[name])

    def find_cells(self, place: int) -> CellCodes:
        """The different cells of a column, and which of them each line has."""
        if place not in self._columns:
            self._columns[place] = self._compare_cells(place)
        return self._columns[place]

    def _compare_cells(self, place: int) -> CellCodes:
        starts, ends = self._starts[:, place], self._ends[:, place]
        firsts, codes = self._same(starts, ends - starts)
        places = zip(starts[firsts].tolist(), ends[firsts].tolist(), strict=True)
        if self._text:
            text = self._text
            return CellCodes([text[start:end] for start, end in places], codes)
        data = self._data
        return CellCodes([data[start:end].decode() for start, end in places], codes)

    def parse_numbers(self, place: int) -> FloatArray | None:
        """The decimal numbers of a column, NaN for an empty cell; ``None`` for any other form.

        With at most 15 digits both the digits and the power of ten are exact, so that their
        quotient is the number that ``float`` makes of the text.
        """
        starts = self._starts[:, place]
        lengths = self._ends[:, place] - starts
        shortest, longest = int(lengths.min()), int(lengths.max())
        if longest > _MOST_DIGITS:
            return None
        signs = np.frombuffer(self._data + bytes(longest), np.uint8)
        kind = np.int32 if longest < _INT32_DIGITS else np.int64
        digits: np.ndarray[Any, Any] = np.zeros(len(starts), kind)
        decimals = np.zeros(len(starts), np.uint8)
        has_point = np.zeros(len(starts), np.bool_)
        places = starts.copy()
        for offset in range(longest):
            sign = signs.take(places)
            places += 1
            digit = sign - np.uint8(ord("0"))  # a sign below it becomes a large number
            is_digit, is_point = digit < 10, sign == ord(".")
            is_known = is_digit | (is_point & ~has_point)
            if offset >= shortest:
                is_inside = lengths > offset
                is_known |= ~is_inside
                is_digit &= is_inside
                is_point &= is_inside
            if not is_known.all():
                return None
            weight = is_digit.view(np.uint8)
            digits *= weight * np.uint8(9) + np.uint8(1)
            digits += digit * weight
            decimals += weight & has_point.view(np.uint8)
            has_point |= is_point
        if (has_point & (lengths == 1)).any():
            return None
        return np.where(lengths == 0, np.nan, digits / _POWERS[decimals])

    def _same(self, starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """A row of every distinct cell, and for each row the index of its cell among them."""
        longest = int(lengths.max())
        if longest > _LONGEST:
            return self._same_texts(starts, lengths)
        key = self._word(starts, lengths, 0)
        words = [key]
        for offset in range(_WORD, longest, _WORD):
            word = self._word(starts, lengths, offset)
            words.append(word)
            key = (key ^ (key >> np.uint64(29))) * _MIX + word
        firsts, codes = _number_keys(key)
        if len(words) > 1 and not all((w == w[firsts][codes]).all() for w in words):
            return self._same_texts(starts, lengths)  # two cells with one hash
        return firsts, codes

    def _word(self, starts: IntArray, lengths: IntArray, offset: int) -> _Words:
        at = starts if offset == 0 else np.minimum(starts + offset, len(self._data))
        size = np.clip(lengths - offset, 0, _WORD) if offset else np.minimum(lengths, _WORD)
        words: _Words = self._words[at] & _MASKS[size]
        return words

    def _same_texts(self, starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
        codes_by_cell: dict[bytes, int] = {}
        firsts: list[int] = []
        codes = np.empty(len(starts), np.int64)
        places = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        for row, (start, end) in enumerate(places):
            code = codes_by_cell.setdefault(self._data[start:end], len(codes_by_cell))
            if code == len(firsts):
                firsts.append(row)
            codes[row] = code
        return np.array(firsts, np.int64), codes


class _BlockCells(CellCodes):
    """A column of a block; its cells are compared when they are first used."""

    __slots__ = ("_block", "_place")

    def __init__(self, block: CsvBlock, place: int) -> None:
        self._block = block
        self._place = place

    def __len__(self) -> int:
        return self._block.size

    @property
    def values(self) -> Sequence[object]:
        return self._block.find_cells(self._place).values

    @property
    def codes(self) -> IntArray:
        return self._block.find_cells(self._place).codes

    def numbers(self) -> FloatArray | None:
        return self._block.parse_numbers(self._place)


def _number_keys(
    key: _Words,
) -> tuple[IntArray, IntArray]:
    """A row of every distinct key, and for each row the number of its key."""
    changes = np.flatnonzero(key[1:] != key[:-1]) + 1
    if len(changes) * 4 < len(key):
        # Equal cells follow each other, as tasks do in most tables: look at each run of them once.
        begins = np.concatenate(([0], changes))
        firsts, codes = _number_sorted(key[begins])
        return begins[firsts], np.repeat(codes, np.diff(np.append(begins, len(key))))
    return _number_sorted(key)


def _number_sorted(
    key: _Words,
) -> tuple[IntArray, IntArray]:
    if int(key.max()) < _FEW:  # cells of one or two bytes: no sorting is needed
        first = np.full(_FEW, -1, np.int64)
        first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
        present = np.flatnonzero(first >= 0)
        number = np.zeros(_FEW, np.int64)
        number[present] = np.arange(len(present))
        return first[present], number[key]
    # Every key has a slot of a table, and the first row of a slot keeps it; sorting is ten times as
    # slow. Only keys that share their slot with another are sorted.
    slot = ((key * _MIX) >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    keeper = np.empty(1 << _SLOT_BITS, np.int64)
    keeper[slot[::-1]] = np.arange(len(key) - 1, -1, -1)
    row = keeper[slot]
    firsts = np.flatnonzero(row == np.arange(len(key)))
    number = np.empty(1 << _SLOT_BITS, np.int64)
    number[slot[firsts]] = np.arange(len(firsts))
    codes = number[slot]
    others = np.flatnonzero(key[row] != key)
    if len(others):
        _, more, rest = np.unique(key[others], return_index=True, return_inverse=True)
        codes[others] = len(firsts) + rest
        firsts = np.append(firsts, others[more])
    return firsts, codes


def cut_block(data: bytes, names: Sequence[str], delimiter: bytes) -> CsvBlock | None:
    """The columns of whole lines; ``None`` where a CSV parser has to look at them.

    That is where there are quotes, other line ends, text that is not UTF-8, empty lines, or lines
    with more or fewer cells than the header.
    """
    if b'"' in data or b"\x00" in data:
        return None
    returns = data.count(b"\r")
    if not (data.isascii() or _is_text(data)):
        return None
    signs = np.frombuffer(data, np.uint8)
    places = np.flatnonzero((signs == ord(delimiter)) | (signs == _NEWLINE))
    width = len(names)
    rows = data.count(b"\n")
    if rows == 0 or len(places) != rows * width:
        return None
    ends = places.reshape(rows, width)
    if returns not in (0, rows) or not (signs[ends[:, -1]] == _NEWLINE).all():
        return None
    starts = np.empty_like(ends)
    starts[0, 0] = 0
    starts[1:, 0] = ends[:-1, -1] + 1
    starts[:, 1:] = ends[:, :-1] + 1
    if returns:
        if not (signs[ends[:, -1] - 1] == _RETURN).all():
            return None
        ends[:, -1] -= 1
    if width == 1 and (starts == ends).any():
        return None  # an empty line is not a row
    return CsvBlock(names, data, starts, ends)


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# -- the header of a table ------------------------------------------------------------

RULE = re.compile(r"[-=_–—─ ]{3,}")
_DELIMITERS = (",", "\t", ";", "|")
_LINES_LOOKED_AT = 40


def find_header(head: bytes) -> tuple[int, str]:
    """How many lines with a title or a comment are above the header, and the delimiter."""
    text = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    lines = text.splitlines()[:_LINES_LOOKED_AT]
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    if (
        first.count(delimiter)
        and not first.lstrip().startswith("#")
        and _filled(first, delimiter) > 1
    ):
        return 0, delimiter  # nearly always
    widths: Counter[tuple[str, int]] = Counter()
    for sign in _DELIMITERS:
        widths.update((sign, len(row)) for row in csv.reader(lines, delimiter=sign) if len(row) > 1)
    if not widths:
        sizes = {len(line.split()) for line in lines if line.strip()}
        is_aligned = len(sizes) == 1 and max(sizes) > 1 and len(lines) > 1
        if is_aligned:
            first_cells, second_cells = (
                line.split() for line in list(filter(str.strip, lines))[:2]
            )
            # A heading shares no word with the row below it: these lines are sentences.
            is_aligned = not set(first_cells) & set(second_cells)
        filled = [line.strip() for line in lines if line.strip()]
        is_indented = [line[:1].isspace() for line in lines if line.strip()]
        if is_indented and is_indented[0] and not any(is_indented[1:]):
            filled[0] = f"  {filled[0]}"  # no name above the first column
        columns = [len(re.split(r"\s{2,}", line)) for line in filled if not RULE.fullmatch(line)]
        titles = next((at for at, count in enumerate(columns) if count > 1), 0)
        gaps = set(columns[titles:])
        if not is_aligned and len(gaps) == 1 and max(gaps) > 1 and len(columns) - titles > 2:
            title = filled[titles - 1] if titles else ""
            return next((at + 1 for at, line in enumerate(lines) if line.strip() == title), 0), "  "
        return 0, " " if is_aligned else delimiter
    (delimiter, width), count = max(widths.items(), key=lambda item: (item[1], item[0][1]))
    if count < 2:
        return 0, max(_DELIMITERS, key=first.count)
    for above, line in enumerate(lines):
        cells = len(next(csv.reader([line], delimiter=delimiter), []))
        is_title = line.strip() and _filled(line, delimiter) < 2
        is_title = is_title or re.match(r"\s*#\s.*[=:]", line[:200]) is not None  # a remark
        if line.strip() and not is_title and not (line.lstrip().startswith("#") and cells != width):
            return above, delimiter
    return 0, delimiter


_STATED_LIMIT = re.compile(
    r"(?i)\s*(?:#|//|;).*\b(?:pass(?:es|ed|ing)?|success(?:ful)?|solved|correct|counts?)\b"
    r".*?(?:>=|≥|\bat least|\bfrom)\s*(\d*\.?\d+)(?!\d|\.\d|\s*%)"
)


def find_stated_limit(head: bytes) -> tuple[str, float] | None:
    """The reward from which an attempt passes, as a comment above a table states it."""
    for line in head.decode("utf-8", "replace").splitlines()[:10]:
        if (match := _STATED_LIMIT.match(line[:300])) is not None:
            return line.strip(" \t#/;"), float(match[1])
    return None


def find_second_table(block: list[list[str]]) -> int | None:
    """The row of another header: below an empty line, words where the rows above have values."""
    above: list[str] = []
    for row in range(1, len(block)):
        above = block[row - 1] or above
        if block[row - 1] or not block[row]:
            continue
        if any(map(is_value, block[row])) or not any(map(is_value, above)):
            continue
        if len(block[row]) > 1 and row + 1 < len(block) and any(map(is_value, block[row + 1])):
            return row
    return None


def join_header_lines(head: bytes, above: int, delimiter: str) -> tuple[int, list[str]] | None:
    """The names of columns that several lines give together, as pandas writes them."""
    text = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    lines = text.splitlines()[above : above + 4]
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter[0])]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return None
    return join_headers(rows)


def first_cells(head: bytes, above: int, delimiter: str) -> list[str]:
    """The first cells of the rows below a header whose first name is empty; else nothing."""
    lines = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").splitlines()
    header, *below = [line for line in lines[above : above + _LINES_LOOKED_AT] if line] or [""]
    if delimiter == "  ":
        return [re.split(r"\s{2,}", line)[0] for line in below] if header[:1].isspace() else []
    if not header.startswith((delimiter, '""')):
        return []
    return [line.split(delimiter)[0].strip('"') for line in below[:-1] or below]


def names_without_header(head: bytes, above: int, delimiter: str) -> list[str] | None:
    """Names for the columns of a table without a header; ``None`` for any other."""
    lines = head.decode("utf-8", "replace").splitlines()[above : above + _LINES_LOOKED_AT]
    if not delimiter.strip(" ") or not any(
        map(is_value, lines[0].split(delimiter) if lines else ())
    ):
        return None  # nearly always
    try:
        return name_without_header([row for row in csv.reader(lines, delimiter=delimiter) if row])
    except csv.Error:
        return None


def _filled(line: str, delimiter: str) -> int:
    """How many cells of a line are not empty."""
    return sum(bool(cell.strip()) for cell in next(csv.reader([line], delimiter=delimiter), []))


# -- tables among texts ---------------------------------------------------------------------

STAMP = (
    r"[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?"
    r"|[\[(]?\b\d\d:\d\d:\d\d(?:[.,]\d+)?[\])]?"
)
_LEADING_STAMP = re.compile(rf'"?(?:{STAMP})"?'.encode())
_MARK_LINE = re.compile(r" *[✓✔✅✗✘✖✕❌]\ufe0f? ")


def is_delimited(head: bytes) -> bool:
    """Whether the first two lines have as many commas, tabs, semicolons or bars: a table."""
    if b'"' in head and _has_long_cells(head):
        return True
    lines = [line for line in head.split(b"\n")[:40] if line.strip() and line[:1] != b"#"]
    rests = [line[match.end() :] for line in lines if (match := _LEADING_STAMP.match(line))]
    if 2 * sum(rest[:1] not in (b",", b"\t", b";", b"|") for rest in rests) > len(lines):
        return False  # the comma before the milliseconds of a log
    if 2 * sum(
        map(bool, map(_MARK_LINE.match, head.decode("utf-8", "replace").splitlines()))
    ) > len(lines):
        return False  # the comma between a time and a cost
    counts = [Counter(line.count(sign) for line in lines) for sign in (b",", b"\t", b";", b"|")]
    return (
        len(lines) < 2
        or any(
            0 < lines[0].count(sign) == lines[1].count(sign) for sign in (b",", b"\t", b";", b"|")
        )
        or any(
            (number and 4 * count > 3 * len(lines))
            # Titles and headings of parts are lines without a delimiter.
            or (number > 1 and 2 * count > len(lines) and 4 * count > 3 * (len(lines) - counter[0]))
            for counter in counts
            for number, count in counter.most_common(1)
        )
    )


def _has_long_cells(head: bytes) -> bool:
    """Whether a text is CSV with cells of several lines in quotes."""
    text = head.decode("utf-8", "replace")
    for sign in ",;\t":
        try:
            rows = list(csv.reader(io.StringIO(text), delimiter=sign))[:20]
        except csv.Error:
            continue
        is_even = len({len(row) for row in rows[:-1]}) == 1 < len(rows[0])
        if len(rows) > 3 and is_even and any("\n" in cell for row in rows for cell in row):
            return True
    return False
