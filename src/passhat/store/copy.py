"""Copy or merge runs from one store into another.

Rows are compared with those of the other store, block by block, and only those it lacks are
written, each block in a transaction of its own. So a copy or a merge that was broken off goes on
where it stopped, and nothing is ever overwritten: an attempt that both stores have in different
forms is a conflict, and refused. A merge looks for conflicts everywhere before it writes anything.

A block is a stretch of a store's own order of attempts: several whole tasks, or part of one that
has very many attempts, so that copying a run of any size needs little memory. Another store keeps
the same tasks under other keys, so there the rows of a block are found by the names of its tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from passhat._display import counted
from passhat.errors import InvalidValue, ReadError, StoreConflict
from passhat.store.base import Store
from passhat.store.database import is_address
from passhat.store.schema import PER_ATTEMPT
from passhat.store.sqlite import SqliteStore

_OF_THE_RUN = ("agent", "suite", "name", "protocol")
_RUN_COLUMNS = ("id", *_OF_THE_RUN, "planned", "started", "total", "allocation", "revision")
_ROWS = 200
"""Rows that are held before they are written."""
_ATTEMPTS = 4_000
_ONE_PER_ATTEMPT = ("transcripts", "calls", "origins")
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
    columns = _columns(store)
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


Tell = Callable[[str, str, int], None]
"""Hears what is being done, with which run, and how many of its attempts that was done with."""


def _no_progress(_doing: str, _run: str, _attempts: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of copying a run.

    ``source`` and ``target`` are the digests of the whole run on both sides, table by table.
    """

    run: str
    attempts: int
    added: int
    source: dict[str, Digest]
    target: dict[str, Digest]

    @property
    def equal(self) -> bool:
        """Whether the run is the same on both sides; ``False`` where the target has more."""
        return self.source == self.target


def copy_runs(
    source: Store, target: Store, runs: Sequence[str], tell: Tell = _no_progress
) -> Iterator[Copied]:
    """Copy runs, each block in a transaction of its own, and verify the copies."""
    for run in runs:
        yield _verify(source, target, run, _copy(source, target, run, tell), tell)


@dataclass(frozen=True, slots=True)
class BackedUp:
    """Numbers of runs and attempts in a backup."""

    runs: int
    attempts: int


def back_up(source: Store, target: str) -> BackedUp:
    """Write everything that is in a store at one moment to a new SQLite file.

    Runners go on meanwhile. The file appears under its name when it is whole.

    Raises
    ------
    InvalidValue
        The target exists, or is an address.
    """
    if is_address(target) or Path(target).exists():
        raise InvalidValue(
            f"{target} is not a new file.",
            hint="Name a file that does not exist yet; `passhat store copy` copies into a store.",
        )
    part = Path(f"{target}.part")
    part.unlink(missing_ok=True)
    try:
        with source.snapshot(), SqliteStore(str(part)) as backup:
            for run in source.runs():
                _copy(source, backup, run.id, _no_progress)
                _verify(source, backup, run.id, 0, _no_progress)
            runs = backup.runs()
            if not backup.is_sound():
                raise ReadError("the backup cannot be read back.", source=target)
            backup.vacuum()  # and nothing is left in a write-ahead log
        part.rename(target)
    finally:
        for end in ("", "-wal", "-shm"):
            Path(f"{part}{end}").unlink(missing_ok=True)
    return BackedUp(len(runs), sum(run.attempts for run in runs))


def restore(backup: Store, target: Store, tell: Tell = _no_progress) -> Iterator[Copied]:
    """Bring everything of a backup into a store that has no runs, and compare every row."""
    if target.runs():
        raise InvalidValue(
            f"{target.path} has runs already.",
            hint="Restore into a new store; `passhat store merge` joins two.",
        )
    yield from copy_runs(backup, target, [run.id for run in backup.runs()], tell)


def merge_runs(
    sources: Sequence[Store], target: Store, tell: Tell = _no_progress
) -> Iterator[Copied]:
    """Join the runs of several stores; a conflict anywhere leaves the target as it was.

    Broken off while it writes, it leaves a part of the runs, and goes on there the next time.
    """
    runs = [[run.id for run in source.runs()] for source in sources]
    for place, source in enumerate(sources):
        for run in runs[place]:
            others = [target] if target._find_key(run) is not None else []
            others += [sources[i] for i in range(place) if run in runs[i]]
            if others:
                _refuse_conflicts(source, others, run, tell)
    added_counts = {
        (place, run): _copy(source, target, run, tell)
        for place, source in enumerate(sources)
        for run in runs[place]
    }
    for (place, run), count in added_counts.items():
        yield _verify(sources[place], target, run, count, tell)


def _refuse_conflicts(source: Store, others: Sequence[Store], run: str, tell: Tell) -> None:
    """Look at everything that a run of this store has in common with others; write nothing."""
    for other in others:
        _refuse_another_run(source, other, run)
        for task_rows in tasks(source, run):
            _new_tasks(source, other, run, task_rows)
    attempt_count = 0
    columns = _columns(source)
    for block in blocks(source, run):
        for other in others:
            keys = block.keys_in(other)
            for table in PER_ATTEMPT if keys else ():
                for _ in _lacking(source, other, table, columns[table], block, keys):
                    pass
        attempt_count += block.attempts
        tell("compared", run, attempt_count)


def _copy(source: Store, target: Store, run: str, tell: Tell) -> int:
    """Write the attempts of a run that the target lacks; returns their number."""
    with target._transaction():
        _begin(source, target, run)
    for task_rows in tasks(source, run):
        with target._transaction():
            key = target._key(run)
            target._db.executemany(
                "INSERT INTO tasks (run, position, task, labels) VALUES (?, ?, ?, ?)",
                [
                    (key, position, task, labels)
                    for task, labels, position in _new_tasks(source, target, run, task_rows)
                ],
            )
    target._task_keys.pop(run, None)
    added_count = attempt_count = 0
    columns = _columns(source)
    for block in blocks(source, run):
        with target._transaction():
            added_count += _write_block(source, target, block, columns)
        attempt_count += block.attempts
        tell("copied", run, attempt_count)
    return added_count


def _begin(source: Store, target: Store, run: str) -> None:
    """Write the run itself; an existing run must be the same."""
    source_head = _head(source, run)
    target_head = _refuse_another_run(source, target, run)
    if target_head is None:
        marks = ", ".join("?" * len(_RUN_COLUMNS))
        target._db.execute(
            f"INSERT INTO runs ({', '.join(_RUN_COLUMNS)}) VALUES ({marks})", source_head
        )
    else:
        target._db.execute(
            "UPDATE runs SET planned = ?, started = ? WHERE id = ?",
            (max(target_head[5], source_head[5]), min(target_head[6], source_head[6]), run),
        )


def _head(store: Store, run: str) -> Any:
    statement = f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs WHERE id = ?"
    return store._db.execute(statement, (run,)).fetchone()


def _refuse_another_run(source: Store, target: Store, run: str) -> Any:
    """The target's row of the run; another run with the same id is refused."""
    source_head, target_head = _head(source, run), _head(target, run)
    if target_head is not None and target_head[8] != source_head[8]:
        raise StoreConflict(
            f"run {run} has other numbers of attempts per task in {target.path}.",
            source=source.path,
            hint="Parts of one run need the same --attempts plan. Nothing was written.",
        )
    if target_head is not None and tuple(target_head[1:5]) != tuple(source_head[1:5]):
        pairs = zip(_OF_THE_RUN, target_head[1:5], source_head[1:5], strict=True)
        differing = [name for name, mine, other in pairs if mine != other]
        raise StoreConflict(
            f"run {run} has another {' and '.join(differing)} in {target.path}.",
            source=source.path,
            hint="These are different runs with one id. Nothing was written.",
        )
    return target_head


def _new_tasks(
    source: Store, target: Store, run: str, task_rows: Sequence[tuple[int, str, str, int]]
) -> list[tuple[str, str, int]]:
    """(task, labels, position) of those that the target has not; other labels are refused."""
    holes = ", ".join("?" * len(task_rows))
    labels_there: dict[str, str] = dict(
        target._db.execute(
            f"SELECT task, labels FROM tasks WHERE run = ? AND task IN ({holes})",
            (target._key(run), *(task for _, task, _, _ in task_rows)),
        ).fetchall()
    )
    for _, task, labels, _ in task_rows:
        if labels_there.get(task, labels) != labels:
            raise StoreConflict(
                f"task {task!r} of run {run} has other labels in {target.path}.",
                source=source.path,
                hint="No attempt was written.",
            )
    return [
        (task, labels, position)
        for _, task, labels, position in task_rows
        if task not in labels_there
    ]


def _write_block(
    source: Store, target: Store, block: Block, columns: Mapping[str, Sequence[str]]
) -> int:
    """Write the rows of a block that the target lacks; returns the number of attempts added."""
    added_count = 0
    key, keys = target._key(block.run), block.keys_in(target)
    for table in PER_ATTEMPT:
        statement = _insertion(table, columns[table])
        lacking = _lacking(source, target, table, columns[table], block, keys)
        while rows := list(islice(lacking, _ROWS)):
            added_count += len(rows) if table == "attempts" else 0
            target._db.executemany(statement, [(key, keys[row[0]], *row[1:]) for row in rows])
    target._tell(block.run)
    return added_count


def _insertion(table: str, columns: Sequence[str]) -> str:
    names = ["run", "task", *columns]
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    assignments = ", ".join(f"{name} = excluded.{name}" for name in columns)
    if table == "attempts":
        # An attempt that is being made there just now: the finished one is taken.
        return (
            f"{statement} ON CONFLICT (run, task, number) DO UPDATE SET owner = NULL, "
            f"{assignments} WHERE attempts.verdict IS NULL"
        )
    if table in _ONE_PER_ATTEMPT:
        # Remains of an attempt that is to be made again: those of the finished one are taken.
        return f"{statement} ON CONFLICT (run, task, number) DO UPDATE SET {assignments}"
    return statement


def _lacking(
    source: Store,
    target: Store,
    table: str,
    columns: Sequence[str],
    block: Block,
    keys: Mapping[str, int],
) -> Iterator[Row]:
    """Rows of the source that the target has not; the same attempt in two forms is refused.

    A few bytes per row of the target are held.
    """
    number = 1 + list(columns).index("number")
    existing = {
        (row[0], row[number], *_extra_key(table, row)): mark(row)
        for row in block.rows_elsewhere(target, table, columns, keys)
    }
    for row in block.rows(source, table, columns):
        same = existing.get((row[0], row[number], *_extra_key(table, row)))
        if same is None:
            yield row
        elif same != mark(row):
            raise StoreConflict(
                f"{row[0]}#{row[number]} of run {block.run} is another attempt in {target.path}.",
                source=source.path,
                hint="It was made twice, in two stores. Remove the run from one of them "
                "(passhat rm), or keep the stores apart. Nothing was overwritten.",
            )


def _columns(store: Store) -> dict[str, list[str]]:
    """The columns to copy of each table; both stores have the same columns."""
    heads = {table: f"SELECT * FROM {table} WHERE 1 = 0" for table in PER_ATTEMPT}
    return {
        table: [str(name) for name, *_ in store._db.execute(head).description if name not in _OURS]
        for table, head in heads.items()
    }


def _extra_key(table: str, row: Row) -> tuple[bytes, ...]:
    """A table with several rows per attempt is compared by their whole content."""
    return () if table in ("attempts", *_ONE_PER_ATTEMPT) else (mark(row),)


def _verify(source: Store, target: Store, run: str, added_count: int, tell: Tell) -> Copied:
    """Read both sides again: every row must have arrived as it was."""
    source_digests, target_digests = (
        digest_of(store, run, lambda attempts: tell("read again", run, attempts))
        for store in (source, target)
    )
    columns = _columns(source)
    # Equal digests say so; where the target has more than the source, rows are looked up.
    for block in blocks(source, run) if source_digests != target_digests else ():
        keys = block.keys_in(target)
        for table in PER_ATTEMPT:
            lacking = _lacking(source, target, table, columns[table], block, keys)
            if lost_rows := sum(1 for _ in lacking):
                raise ReadError(
                    f"{counted(lost_rows, 'row')} of {table} of run {run} did not arrive.",
                    source=target.path,
                    hint="Run the same command again.",
                )
    return Copied(run, source_digests["attempts"].rows, added_count, source_digests, target_digests)
