"""Blocks of a run's attempts, so that copying a run of any size needs little memory.

A block is a stretch of a store's own order of attempts: several whole tasks, or part of one that
has very many attempts. Another store keeps the same tasks under other keys, so there the rows of a
block are found by the names of its tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from passhat.store.base import Store
from passhat.store.schema import PER_ATTEMPT

__all__ = ["Block", "Digest", "Row", "Task", "blocks", "columns_of", "digest_of", "mark", "tasks"]

_ATTEMPTS = 4_000
_AT_A_TIME = {"transcripts": 100, "calls": 100}
"""Rows that are fetched together: a conversation may be long."""
_OURS = frozenset({"key", "run", "task", "owner"})
"""Columns that mean something inside one store only."""
_BEFORE_ALL = (-1, -1)

Row = tuple[Any, ...]
Task = tuple[int, str, str, int]
"""Key, name, labels and position."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Rows of a run, and a number over their content that does not depend on their order."""

    rows: int
    value: str


@dataclass(frozen=True, slots=True)
class Block:
    """Finished attempts of a run: of the tasks ``names``, by their keys in the block's own store.

    Where it is part of a task, it is the attempts after one number, up to another.
    """

    run: str
    names: Mapping[int, str]
    attempts: int
    after: int = -1
    upto: int | None = None

    def rows(self, store: Store, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """(task, cells ...) in the store that the block was cut from."""
        ends = min(self.names), max(self.names)
        if ends[0] == ends[1]:  # then the numbers are looked up, too
            return self._rows(store, table, columns, "x.task = ?", ends[:1], self.names)
        return self._rows(store, table, columns, "x.task BETWEEN ? AND ?", ends, self.names)

    def rows_elsewhere(
        self, store: Store, table: str, columns: Sequence[str], keys: Mapping[str, int]
    ) -> Iterator[Row]:
        """The same in another store, where the tasks have the ``keys`` of :meth:`keys_in`."""
        if not keys:
            return iter(())
        condition = f"x.task IN ({', '.join('?' * len(keys))})"
        names = {key: name for name, key in keys.items()}
        return self._rows(store, table, columns, condition, tuple(names), names)

    def keys_in(self, store: Store) -> dict[str, int]:
        """The keys that another store has for these tasks, as far as it has them."""
        holes = ", ".join("?" * len(self.names))
        return dict(
            store._db.execute(
                f"SELECT task, key FROM tasks WHERE run = ? AND task IN ({holes})",
                (store._key(self.run), *self.names.values()),
            ).fetchall()
        )

    def _rows(
        self,
        store: Store,
        table: str,
        columns: Sequence[str],
        condition: str,
        values: Sequence[object],
        names: Mapping[int, str],
    ) -> Iterator[Row]:
        # Remains of an attempt that is being made again are not copied.
        is_finished = (
            "x.verdict IS NOT NULL"
            if table == "attempts"
            else "EXISTS (SELECT 1 FROM attempts a WHERE a.run = x.run AND a.task = x.task "
            "AND a.number = x.number AND a.verdict IS NOT NULL)"
        )
        upto, last = ("", ()) if self.upto is None else (" AND x.number <= ?", (self.upto,))
        rows = store._stream(
            f"SELECT x.task, {', '.join('x.' + name for name in columns)} FROM {table} x "
            f"WHERE x.run = ? AND {condition} AND x.number > ?{upto} AND {is_finished}",
            (store._key(self.run), *values, self.after, *last),
            _AT_A_TIME.get(table, _ATTEMPTS),
        )
        for task, *cells in chain.from_iterable(rows):
            # PostgreSQL's text cannot hold a zero byte. Few rows have one: looked for in all cells
            # at once, which takes a fifth of the time.
            if table not in ("transcripts", "calls") and "\\x00" in repr(cells):
                cells = [_plain(cell) for cell in cells]
            if task in names:  # an attempt without its task is a damage, and stays where it is
                yield (names[task], *cells)


def blocks(store: Store, run: str) -> Iterator[Block]:
    """All finished attempts of a run, in the order in which they lie there."""
    key = store._key(run)
    place = _BEFORE_ALL
    while True:
        page: list[tuple[int, int]] = store._db.execute(
            "SELECT task, number FROM attempts WHERE run = ? AND verdict IS NOT NULL "
            "AND (task, number) > (?, ?) ORDER BY task, number LIMIT ?",
            (key, *place, _ATTEMPTS),
        ).fetchall()
        if not page:
            return
        after = place[1] if page[0][0] == place[0] else -1
        places, whole = _cut(page, goes_on=after >= 0)
        place = places[-1]
        if names := _names(store, key, places[0][0], place[0]):
            yield Block(run, names, len(places), after, None if whole else place[1])


def _cut(page: list[tuple[int, int]], *, goes_on: bool) -> tuple[list[tuple[int, int]], bool]:
    """The places of a block, and whether it reaches the end of its last task."""
    first, last = page[0][0], page[-1][0]
    if goes_on or first == last:
        places = [place for place in page if place[0] == first]
        return places, len(places) < len(page) or len(page) < _ATTEMPTS
    if len(page) < _ATTEMPTS:
        return page, True
    return [place for place in page if place[0] != last], True


def tasks(store: Store, run: str) -> Iterator[list[Task]]:
    """Every task of a run, in the order of the keys, some at a time."""
    key = store._key(run)
    first, last = store._db.execute(
        "SELECT min(key), max(key) FROM tasks WHERE run = ?", (key,)
    ).fetchone()
    while first is not None and first <= last:
        # Through the keys, not through the names of the run: those would be sorted for every page.
        tasks: list[Task] = store._db.execute(
            "SELECT key, task, labels, position FROM tasks "
            "WHERE run + 0 = ? AND key BETWEEN ? AND ? ORDER BY key LIMIT ?",
            (key, first, last, _ATTEMPTS),
        ).fetchall()
        yield tasks
        first = tasks[-1][0] + 1


def _names(store: Store, run: int, first: int, last: int) -> dict[int, str]:
    return dict(
        store._db.execute(
            "SELECT key, task FROM tasks WHERE run + 0 = ? AND key BETWEEN ? AND ?",
            (run, first, last),
        ).fetchall()
    )


def columns_of(store: Store, table: str) -> list[str]:
    """The columns of a table to copy; both stores have the same columns."""
    description = store._db.execute(f"SELECT * FROM {table} WHERE 1 = 0").description
    return [str(column[0]) for column in description if column[0] not in _OURS]


def mark(row: Row) -> bytes:
    """A short hash of a row."""
    return hashlib.blake2b(repr(row).encode("utf-8", "replace"), digest_size=8).digest()


def digest_of(
    store: Store, run: str, tell: Callable[[int], None] = lambda _attempts: None
) -> dict[str, Digest]:
    """Digests of all that belongs to the attempts of a run, table by table.

    ``tell`` is called with the number of attempts read.
    """
    digests = dict.fromkeys(PER_ATTEMPT, (0, 0))
    columns = {table: columns_of(store, table) for table in PER_ATTEMPT}
    for block in blocks(store, run):
        for table in PER_ATTEMPT:
            count, total = digests[table]
            for row in block.rows(store, table, columns[table]):
                count, total = count + 1, total + int.from_bytes(mark(row), "big")
            digests[table] = (count, total)
        tell(digests["attempts"][0])
    return {table: Digest(n, f"{total % 2**64:016x}") for table, (n, total) in digests.items()}


def _plain(cell: object) -> object:
    return cell.replace("\x00", "�") if isinstance(cell, str) and "\x00" in cell else cell
