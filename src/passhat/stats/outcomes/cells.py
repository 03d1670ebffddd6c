"""Columns in little space: cells as codes and numbers, task ids in one buffer, counts of tasks.

A cell is looked up before it is parsed, so that a column of a million cells with a hundred
different values is parsed a hundred times.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, count, islice
from typing import Any, overload
from zlib import crc32

import numpy as np

from passhat._serialize import Plain
from passhat.errors import shorten
from passhat.stats.arrays import FloatArray, IntArray


class RowError(Exception):
    """A row is wrong; ``row`` counts from 0, ``other`` is a second row involved."""

    def __init__(
        self, row: int, message: str, *, other: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.row = row
        self.message = message
        self.other = other
        self.hint = hint


def is_empty(cell: object) -> bool:
    """Whether a cell holds nothing."""
    return cell is None or not str(cell).strip()


class CellCodes(Sequence[object]):
    """A column in which each different cell is kept once, with a number per row.

    A reader that finds equal cells without making a Python object of each hands over this instead
    of a list: a column of a million cells is then parsed once per different value.
    """

    __slots__ = ("_codes", "_values")

    def __init__(self, values: Sequence[object], codes: IntArray) -> None:
        self._values = values
        self._codes = codes

    @property
    def values(self) -> Sequence[object]:
        """The different cells."""
        return self._values

    @property
    def codes(self) -> IntArray:
        """For each row the place of its cell in ``values``."""
        return self._codes

    def numbers(self) -> FloatArray | None:
        """The cells as ``number_from`` reads them, where a reader has a faster way to them."""
        return None

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: Any) -> Any:
        return self.values[int(self.codes[row])]

    def __iter__(self) -> Iterator[object]:
        values = self.values
        return (values[code] for code in self.codes.tolist())


class _Codes(dict[object, int]):
    """From a cell to the number of its text; cells that read alike share a number."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, int] = {}

    def __missing__(self, cell: object) -> int:
        text = "" if cell is None else str(cell).strip()
        code = self.texts.setdefault(text, len(self.texts))
        self[cell] = code
        return code


class TextColumn:
    """A column of text, each different text kept once."""

    def __init__(self) -> None:
        self._codes = _Codes()
        self._rows = array("q")
        self._values: tuple[str, ...] = ()

    def extend(self, cells: Iterable[object]) -> None:
        """Take the next cells; a cell that is a list or an object is read as its text."""
        if isinstance(cells, CellCodes):
            lookup = self._number_texts(cells.values)
            self._rows.frombytes(lookup[cells.codes].tobytes())
            return
        cells = list(cells)
        try:
            codes = list(map(self._codes.__getitem__, cells))
        except TypeError:
            codes = [self._codes[cell if isinstance(cell, str) else str(cell)] for cell in cells]
        self._rows.extend(codes)

    def _number_texts(self, values: Sequence[object]) -> IntArray:
        """The number of each text, without a call per text: a table may have a million tasks."""
        try:
            stripped = list(map(str.strip, values))  # type: ignore[arg-type]
        except TypeError:
            return np.array([self._codes[value] for value in values], np.int64)
        texts = self._codes.texts
        new = [text for text in dict.fromkeys(stripped) if text not in texts]
        texts.update(zip(new, count(len(texts)), strict=False))
        return np.fromiter(map(texts.__getitem__, stripped), np.int64, len(stripped))

    def truncate(self, rows: int) -> None:
        """Keep only the first rows."""
        del self._rows[rows:]

    def code_of(self, text: str) -> int | None:
        """The number of a text, if it has been seen."""
        return self._codes.texts.get(text)

    @property
    def values(self) -> tuple[str, ...]:
        """Every different text, in order of first appearance."""
        if len(self._values) != len(self._codes.texts):
            self._values = tuple(self._codes.texts)
        return self._values

    @property
    def codes(self) -> IntArray:
        """For each row the place of its text in ``values``."""
        return np.frombuffer(self._rows, np.int64) if self._rows else np.zeros(0, np.int64)


class NumberColumn:
    """A column of numbers; NaN is "not recorded"."""

    def __init__(self) -> None:
        self._rows = array("d")

    def extend(self, numbers: Iterable[object]) -> None:
        if isinstance(numbers, CellCodes):
            lookup = np.array(numbers.values, np.float64)
            numbers = lookup[numbers.codes]
        if isinstance(numbers, np.ndarray):
            self._rows.frombytes(numbers.tobytes())
            return
        self._rows.extend(numbers)  # type: ignore[arg-type]

    def truncate(self, rows: int) -> None:
        del self._rows[rows:]

    @property
    def values(self) -> FloatArray:
        return np.frombuffer(self._rows, np.float64) if self._rows else np.zeros(0)


class HashColumn:
    """A column of answers, kept as hashes only; 0 is "not recorded"."""

    def __init__(self) -> None:
        self._rows = array("q")

    def extend(self, cells: Iterable[object]) -> None:
        if isinstance(cells, CellCodes):
            lookup = np.array([_answer_hash(value) for value in cells.values], np.int64)
            self._rows.frombytes(lookup[cells.codes].tobytes())
            return
        self._rows.extend(map(_answer_hash, cells))

    def truncate(self, rows: int) -> None:
        del self._rows[rows:]

    @property
    def values(self) -> IntArray:
        return np.frombuffer(self._rows, np.int64) if self._rows else np.zeros(0, np.int64)


def _answer_hash(cell: object) -> int:
    return 0 if cell is None or cell == "" else crc32(str(cell).encode("utf-8", "replace")) + 1


def number_from(cell: object) -> float:
    """A number, or NaN for an empty cell."""
    if cell is None or cell == "":
        return math.nan
    if isinstance(cell, str | int | float | np.integer | np.floating):
        return float(cell)
    raise ValueError(shorten(cell))


def whole_number_from(cell: object) -> float:
    """A whole number small enough for a float to hold exactly."""
    number = number_from(cell)
    if not number.is_integer() or abs(number) >= 2**53:
        raise ValueError(shorten(cell))
    return number


def parse_column(
    cells: Sequence[object],
    parse: Callable[[object], float],
    *,
    first_row: int,
    named: str,
    expected: str,
    hint: str | None = None,
) -> Sequence[float] | CellCodes:
    """Parse a column of cells; the first that cannot be parsed is an error with its row."""
    if isinstance(cells, CellCodes):
        try:
            return CellCodes([parse(value) for value in cells.values], cells.codes)
        except (ValueError, TypeError, OverflowError):
            pass  # the loop below finds the row
    if parse is number_from:
        # Most columns of numbers have no empty cell, and then float alone is three times faster.
        with suppress(ValueError, TypeError, OverflowError):
            return list(map(float, cells))  # type: ignore[arg-type]
    try:
        return list(map(parse, cells))
    except (ValueError, TypeError, OverflowError):
        for offset, cell in enumerate(cells):
            try:
                parse(cell)
            except (ValueError, TypeError, OverflowError):
                message = f"{named} should hold {expected}, not {shorten(cell)}."
                raise RowError(first_row + offset, message, hint=hint) from None
        raise


def number_by_appearance(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Codes numbered from 0 in order of first appearance, and the code behind each number."""
    if not len(codes):
        return codes, codes
    size = int(codes.max()) + 1
    if size > 4 * len(codes) + 1_000:
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        distinct = codes[np.sort(first)]
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse], distinct
    # Without sorting: written backwards, the first row of a code is written last and stays.
    first = np.full(size, len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    distinct = np.argsort(first, kind="stable")[: int((first < len(codes)).sum())]
    rank = np.zeros(size, np.int64)
    rank[distinct] = np.arange(len(distinct))
    return rank[codes], distinct


def sort_rows(task: IntArray, rank: IntArray | None) -> IntArray:
    """The order by task, then by rank; most tables are in it already."""
    steps = np.diff(task)
    is_sorted = steps >= 0 if rank is None else (steps > 0) | ((steps == 0) & (np.diff(rank) >= 0))
    if is_sorted.all():
        return np.arange(len(task))
    if rank is None:
        return _argsort(task)
    by_rank = _argsort(rank)
    return by_rank[_argsort(task[by_rank])]


def _argsort(codes: IntArray) -> IntArray:
    """The stable order; NumPy sorts numbers of two bytes by their digits, which is linear."""
    least = codes.min()
    if int(codes.max()) - int(least) < 1 << 16:
        return np.argsort((codes - least).astype(np.uint16), kind="stable")
    return np.argsort(codes, kind="stable")


# -- task ids in one buffer ------------------------------------------------------------------

_BLOCK = 10_000


class PackedNames(Sequence[str]):
    """Strings that are decoded when they are read.

    Parameters
    ----------
    names : iterable of str
        Taken one after the other; none is kept as it is.
    """

    __slots__ = ("_bytes", "_ends")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("q")
        self.extend(names)

    def extend(self, names: Iterable[str]) -> None:
        """Add more names; call before any is read."""
        rest = iter(names)
        # An agent's log may hold half a character; it comes back as it was.
        while block := [name.encode("utf-8", "surrogatepass") for name in islice(rest, _BLOCK)]:
            ends = accumulate(map(len, block), initial=len(self._bytes))
            self._ends.extend(islice(ends, 1, None))
            self._bytes += b"".join(block)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        place = range(len(self))[index]
        start = self._ends[place - 1] if place else 0
        return self._bytes[start : self._ends[place]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends:
            yield self._bytes[start:end].decode("utf-8", "surrogatepass")
            start = end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedNames):
            return NotImplemented
        return self._ends == other._ends and self._bytes == other._bytes

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} task ids>"

    def take(self, places: IntArray) -> PackedNames:
        """Some of them, in this order; no text is made of them on the way."""
        selection = PackedNames()
        signs = np.frombuffer(self._bytes, np.uint8)
        ends = np.frombuffer(self._ends, np.int64)
        for start in range(0, len(places), _BLOCK):
            block = places[start : start + _BLOCK]
            begin = np.where(block > 0, ends[block - 1], 0)
            lengths = ends[block] - begin
            closing = np.cumsum(lengths)
            # Where each sign lies here: as far from the start of its name as it will lie there.
            here = np.arange(closing[-1]) + np.repeat(begin - closing + lengths, lengths)
            selection._ends.frombytes((closing + len(selection._bytes)).tobytes())
            selection._bytes += signs[here].tobytes()
        return selection


def whole_numbers_of(places: IntArray) -> Iterator[int]:
    """Plain numbers, some at a time: a million of them in a list take more room than the names."""
    for start in range(0, len(places), _BLOCK):
        yield from places[start : start + _BLOCK].tolist()


def same_names(names: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of task ids are the same, in the same order."""
    if len(names) != len(other):
        return False
    if isinstance(names, PackedNames) and isinstance(other, PackedNames):
        return names == other
    return all(a == b for a, b in zip(names, other, strict=True))


# -- how many tasks share the same (n, c) ----------------------------------------------------

_FEW_TASKS = 30
"""Up to here the filling of a single task moves an interval by half a point or more."""
_DENSE_CELLS = 4_000_000
"""Up to here counting into a dense table beats sorting, at 32 MB for the table."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Plain):
    """Unique pairs (n, c), sorted, and the number of tasks at each."""

    n: IntArray
    c: IntArray
    tasks: IntArray

    @property
    def size(self) -> int:
        """How many tasks there are in all."""
        return int(self.tasks.sum())

    def places(self, n: IntArray, c: IntArray) -> IntArray:
        """Which cell each task is in, for the tasks that were counted."""
        low, high, width = int(self.n[0]), int(self.n[-1]), int(self.c.max()) + 1
        if not _is_dense(low, high, width, len(n)):
            return np.unique(np.stack((n, c), axis=1), axis=0, return_inverse=True)[1].ravel()
        table = np.zeros((high - low + 1) * width, np.int64)
        table[(self.n - low) * width + self.c] = np.arange(len(self.n))
        places: IntArray = table[(n - low) * width + c]
        return places


def cells_of(n: IntArray, c: IntArray) -> Histogram:
    """Count tasks per (n, c); both one-dimensional and equally long. ValueError if c < 0."""
    low, high, width = int(n.min()), int(n.max()), int(c.max()) + 1
    if not _is_dense(low, high, width, len(n)):
        return _sort_cells(n, c)
    if low == high:
        counts = np.bincount(c)  # refuses c < 0 by itself
        cells = np.flatnonzero(counts)
        return Histogram(np.full(len(cells), low, np.int64), cells, counts[cells])
    if c.min() < 0:
        raise ValueError("c < 0")
    counts = np.bincount((n - low) * width + c)
    cells = np.flatnonzero(counts)
    return Histogram(cells // width + low, cells % width, counts[cells])


def fillings_between(n: IntArray, c: IntArray, missing: IntArray) -> list[Histogram]:
    """Ways to fill in missing attempts between all failed and all passed.

    Methods that use likelihoods have ends that are not monotone in the passes: a task with 1 pass
    of 2 makes low rates of the others more likely than one with none. Near the two extremes, with
    one attempt at all tasks or at one filled in the other way, they reach furthest out; with half
    of the tasks filled in, tasks are the least alike.
    """
    order = np.lexsort((missing, c, n))  # the order of tasks leaves no trace
    n, c, missing = n[order], c[order], missing[order]
    places = np.flatnonzero(missing)
    half, ways = np.zeros_like(missing), [np.minimum(missing, 1), np.maximum(missing - 1, 0)]
    half[places[::2]] = missing[places[::2]]
    ways.append(half)
    if len(n) <= _FEW_TASKS:
        for place in {places[c[places].argmax()], places[c[places].argmin()]}:
            single = np.zeros_like(missing)
            single[place] = 1
            ways += [single, missing - single]
    between = {tuple(way.tolist()): way for way in ways}
    for extreme in (np.zeros_like(missing), missing):
        between.pop(tuple(extreme.tolist()), None)
    return [cells_of(n, c + way) for way in between.values()]


def _is_dense(low: int, high: int, width: int, tasks: int) -> bool:
    """Whether a table of all cells there could be is small; Python's numbers never overflow."""
    return (high - low + 1) * width <= max(_DENSE_CELLS, tasks)


def _sort_cells(n: IntArray, c: IntArray) -> Histogram:
    """The same by sorting, for numbers too large to count into a table."""
    if c.min() < 0:
        raise ValueError("c < 0")
    pairs, tasks = np.unique(np.stack((n, c), axis=1), axis=0, return_counts=True)
    return Histogram(pairs[:, 0], pairs[:, 1], tasks)


_SPREAD = re.compile(r"(?<=[\d%])\s*(?:±|\+/?-)\s*[\d.,]+\s*(?=%?$)")
_COUNT_UNIT = re.compile(
    r"(?<=\d)\s*(?:runs?|attempts?|trials?|tries|samples?|x|×)$", re.IGNORECASE
)
# A share, or an interval, behind a number: 38 (72%), 60.0% [40.7%; 76.6%].
_ASIDE = re.compile(
    r"(?<=[\d%*])\s*(?:\(\s*[\d.,]+\s*%\s*\)|"
    r"[\[(]\s*[\d.,]+\s*%?\s*(?:[;,–-]|to)\s*[\d.,]+\s*%?\s*[\])])$"
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[,' \u202f\u00a0]\d{3})+")


def parse_number(cell: object) -> float | None:
    """A number as tables write it: 66.7%, 1,000, 0,5, 38 (72%) and 40.0 ± 5.5 included."""
    text = _SPREAD.sub("", str(cell).strip())
    text = _ASIDE.sub("", text).strip("*") if text.endswith((")", "]")) else text
    scale = 100 if text.endswith("%") else 1
    text = _COUNT_UNIT.sub("", text.removesuffix("%").strip())
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"\D", "", text)
    elif re.fullmatch(r"-?\d*,\d+", text):
        text = text.replace(",", ".")
    try:
        number = float(text) / scale
    except ValueError:
        return None
    return number if math.isfinite(number) else None
