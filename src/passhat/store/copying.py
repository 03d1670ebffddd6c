"""Runs from one store into another: copied, or joined with what is there.

Rows are compared with what the other store has, in blocks of tasks, and only those it lacks are
written. So a copy that was broken off goes on where it stopped, and nothing is ever overwritten: an
attempt that both stores have in different forms is a conflict, and refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from passhat.errors import ReadError, StoreConflict
from passhat.store.base import Store
from passhat.store.schema import PER_ATTEMPT

__all__ = ["Copied", "Digest", "copy_runs", "digest_of", "merge_runs"]

_BLOCK_ROWS = 5_000
_BLOCK_TASKS = 500
_OF_THE_RUN = ("agent", "suite", "name", "protocol")
_OURS = frozenset({"key", "run", "task", "owner"})
"""Columns that mean something inside one store only."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Digest:
    """Rows of a run, and a number over their content that does not depend on their order."""

    rows: int
    value: str


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of one run.

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
    source: Store,
    target: Store,
    runs: Sequence[str],
    tell: Callable[[str, int], None] = lambda _run, _rows: None,
) -> Iterator[Copied]:
    """Copy runs, each block in a transaction of its own, and verify what was written.

    Parameters
    ----------
    tell : callable
        Hears the run and how many of its attempts were looked at, after every block.
    """
    for run in runs:
        with target._transaction():
            _begin(source, target, run)
        added = seen = 0
        for block in _blocks(source, run):
            with target._transaction():
                added += _write_block(source, target, run, block)
            seen += sum(count for _, count in block)
            tell(run, seen)
        yield _verified(source, target, run, added)


def merge_runs(sources: Sequence[Store], target: Store) -> Iterator[Copied]:
    """Join the runs of several stores; a conflict anywhere leaves the target as it was."""
    added: dict[tuple[int, str], int] = {}
    with target._transaction():
        for place, source in enumerate(sources):
            for run in (one.id for one in source.runs()):
                _begin(source, target, run)
                added[place, run] = sum(
                    _write_block(source, target, run, block) for block in _blocks(source, run)
                )
    for (place, run), count in added.items():
        yield _verified(sources[place], target, run, count)


def digest_of(store: Store, run: str) -> dict[str, Digest]:
    """Digests of all that belongs to the attempts of a run, table by table."""
    found = dict.fromkeys(PER_ATTEMPT, (0, 0))
    columns = {table: _columns(store, table) for table in PER_ATTEMPT}
    for block in _blocks(store, run):
        for table in PER_ATTEMPT:
            count, total = found[table]
            for row in _rows(store, run, table, columns[table], block):
                digest = hashlib.blake2b(repr(row).encode("utf-8", "replace"), digest_size=8)
                count, total = count + 1, total + int.from_bytes(digest.digest(), "big")
            found[table] = (count, total)
    return {table: Digest(n, f"{total % 2**64:016x}") for table, (n, total) in found.items()}


def _begin(source: Store, target: Store, run: str) -> None:
    """The run and its tasks; what is there already must be the same."""
    columns = ("id", *_OF_THE_RUN, "planned", "started")
    asked = f"SELECT {', '.join(columns)} FROM runs WHERE id = ?"
    theirs = source._db.execute(asked, (run,)).fetchone()
    ours = target._db.execute(asked, (run,)).fetchone()
    if ours is None:
        marks = ", ".join("?" * len(columns))
        target._db.execute(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({marks})", theirs)
    elif tuple(ours[1:5]) != tuple(theirs[1:5]):
        pairs = zip(_OF_THE_RUN, ours[1:5], theirs[1:5], strict=True)
        differing = [name for name, mine, other in pairs if mine != other]
        raise StoreConflict(
            f"run {run} has another {' and '.join(differing)} in {target.path}.",
            source=source.path,
            hint="These are different runs with one id. Nothing was written.",
        )
    else:
        target._db.execute(
            "UPDATE runs SET planned = ?, started = ? WHERE id = ?",
            (max(ours[5], theirs[5]), min(ours[6], theirs[6]), run),
        )
    _begin_tasks(source, target, run)


def _begin_tasks(source: Store, target: Store, run: str) -> None:
    key = target._key(run)
    asked = "SELECT task, labels, position FROM tasks WHERE run = ?"
    known = {task: labels for task, labels, _ in target._db.execute(asked, (key,))}
    new = []
    for task, labels, position in source._db.execute(asked, (source._key(run),)):
        if task not in known:
            new.append((key, position, task, labels))
        elif known[task] != labels:
            raise StoreConflict(
                f"task {task!r} of run {run} has other labels in {target.path}.",
                source=source.path,
                hint="Nothing was written.",
            )
    target._db.executemany(
        "INSERT INTO tasks (run, position, task, labels) VALUES (?, ?, ?, ?)", new
    )
    target._task_keys.pop(run, None)


def _blocks(store: Store, run: str) -> Iterator[list[tuple[str, int]]]:
    """Tasks with how many finished attempts they have, some at a time."""
    block: list[tuple[str, int]] = []
    inside = 0
    rows = store._db.execute(
        "SELECT t.task, count(*) FROM tasks t JOIN attempts a ON a.run = t.run AND a.task = t.key "
        "WHERE t.run = ? AND a.verdict IS NOT NULL GROUP BY t.key, t.task, t.position "
        "ORDER BY t.position, t.key",
        (store._key(run),),
    )
    for task, count in rows.fetchall():
        block.append((task, count))
        inside += count
        if len(block) == _BLOCK_TASKS or inside >= _BLOCK_ROWS:
            yield block
            block, inside = [], 0
    if block:
        yield block


def _write_block(source: Store, target: Store, run: str, block: Sequence[tuple[str, int]]) -> int:
    """Write what the target lacks of a block of tasks; how many attempts were added."""
    added = 0
    key, keys = target._key(run), target._tasks(run)
    for table in PER_ATTEMPT:
        columns = _columns(source, table)
        lacking = _lacking(source, target, run, table, columns, block)
        if table == "attempts":
            added = len(lacking)
        names = ["run", "task", *columns]
        statement = (
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        )
        if table == "attempts":
            # An attempt that is being made there just now: the finished one is taken.
            changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
            statement += (
                " ON CONFLICT (run, task, number) DO UPDATE SET owner = NULL, "
                f"{changed} WHERE attempts.verdict IS NULL"
            )
        target._db.executemany(statement, [(key, keys[row[0]], *row[1:]) for row in lacking])
    target._tell(run)
    return added


def _lacking(
    source: Store,
    target: Store,
    run: str,
    table: str,
    columns: Sequence[str],
    block: Sequence[tuple[str, int]],
) -> list[Row]:
    """Rows of the source that the target has not; the same attempt in two forms is refused."""
    number = 1 + list(columns).index("number")
    there = {}
    for row in _rows(target, run, table, columns, block):
        there[row[0], row[number], *_more_of_key(table, row)] = row
    lacking = []
    for row in _rows(source, run, table, columns, block):
        same = there.get((row[0], row[number], *_more_of_key(table, row)))
        if same is None:
            lacking.append(row)
        elif same != row:
            raise StoreConflict(
                f"{row[0]}#{row[number]} of run {run} is another attempt in {target.path}.",
                source=source.path,
                hint="It was made twice, in two stores. Remove the run from one of them "
                "(passhat rm), or keep the stores apart. Nothing was overwritten.",
            )
    return lacking


def _more_of_key(table: str, row: Row) -> Row:
    """A table with several rows per attempt is compared by their whole content."""
    return () if table in ("attempts", "transcripts") else row


def _rows(
    store: Store, run: str, table: str, columns: Sequence[str], block: Sequence[tuple[str, int]]
) -> Iterator[Row]:
    """(task, cells ...) of the finished attempts of some tasks."""
    keys = store._tasks(run)
    names = {keys[task]: task for task, _ in block if task in keys}
    if not names:
        return
    done = " AND x.verdict IS NOT NULL" if table == "attempts" else ""
    found = store._db.execute(
        f"SELECT x.task, {', '.join('x.' + name for name in columns)} FROM {table} x "
        f"WHERE x.run = ? AND x.task IN ({', '.join('?' * len(names))}){done}",
        (store._key(run), *names),
    )
    for task, *cells in found:
        yield (names[task], *map(_plain, cells))


def _plain(cell: object) -> object:
    """PostgreSQL's text cannot hold a zero byte."""
    return cell.replace("\x00", "�") if isinstance(cell, str) and "\x00" in cell else cell


def _columns(store: Store, table: str) -> list[str]:
    """What there is to copy of a table; both stores have the same columns."""
    found = store._db.execute(f"SELECT * FROM {table} WHERE 1 = 0").description
    return [str(column[0]) for column in found if column[0] not in _OURS]


def _verified(source: Store, target: Store, run: str, added: int) -> Copied:
    """Read both sides again: every row must have arrived as it was."""
    there, here = digest_of(source, run), digest_of(target, run)
    # Equal digests say so; where the target has more than the source, rows are looked up.
    for block in _blocks(source, run) if there != here else ():
        for table in PER_ATTEMPT:
            columns = _columns(source, table)
            if lost := _lacking(source, target, run, table, columns, block):
                raise ReadError(
                    f"{len(lost):,} rows of {table} of run {run} did not arrive.",
                    source=target.path,
                    hint="Run the same command again.",
                )
    return Copied(run, there["attempts"].rows, added, there, here)
