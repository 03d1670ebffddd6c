"""Task ids in one buffer: a million of them take the space of a hundred thousand strings."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import overload

import numpy as np

from passhat.stats.arrays import IntArray

_BLOCK = 10_000


class PackedNames(Sequence[str]):
    """Strings that are decoded when they are read.

    Takes names one after the other; none is kept as it is.
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
