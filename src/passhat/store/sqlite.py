"""The SQLite store: one file, write-ahead log, readers never block the writer."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from passhat.errors import InvalidValue, ReadError, StoreUnavailable
from passhat.outcomes import Verdict
from passhat.protocol import Protocol
from passhat.store import judgements
from passhat.store.owners import is_gone, this_owner
from passhat.store.records import (
    AttemptRecord,
    Ended,
    Made,
    RunRecord,
    StoredJudgement,
    StoredRun,
    protocol_from,
)
from passhat.store.schema import migrate

__all__ = ["DEFAULT_PATH", "Store"]

DEFAULT_PATH = ".passhat/passhat.db"
_WAIT_SECONDS = 30.0
_WORTH_PACKING = 400
"""Bytes; what is smaller takes longer to compress than to write."""

_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)
"""Trouble that somebody else may end: a lock is given back, room is made on the disk."""

_CLAIM = "INSERT OR IGNORE INTO attempts (run, task, number, owner) VALUES (?, ?, ?, ?)"

_LISTED = """
    SELECT r.id, r.agent, r.suite, r.planned, r.started,
        (SELECT count(*) FROM tasks t WHERE t.run = r.key),
        count(a.verdict), coalesce(sum(a.verdict = -1), 0), coalesce(sum(a.verdict = 1), 0),
        count(a.number) - count(a.verdict)
    FROM runs r LEFT JOIN judged a ON a.run = r.key GROUP BY r.key ORDER BY r.started, r.key
"""


class Store:
    """Runs and their attempts in one file.

    Parameters
    ----------
    path : str
        Made if it is not there, unless ``must_exist``.
    """

    def __init__(self, path: str = DEFAULT_PATH, *, must_exist: bool = False) -> None:
        self.path = path
        if must_exist and not Path(path).is_file():
            raise ReadError(
                "there is no store.",
                source=path,
                hint="Make one with passhat run, or name it with --store PATH.",
            )
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise ReadError(f"cannot be used as a store ({error}).", source=path) from None
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            migrate(self._db, path)
        except sqlite3.Error as error:
            self._db.close()
            raise ReadError(f"cannot be used as a store ({error}).", source=path) from None
        except ReadError:
            self._db.close()
            raise
        self._owner = this_owner()
        self._task_keys: dict[str, dict[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def wait_at_most(self, seconds: float) -> None:
        """How long a lock of somebody else is waited for; meanwhile nothing else can go on."""
        self._db.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    # -- writing -----------------------------------------------------------------------------

    def begin(self, run: RunRecord, planned: int) -> None:
        """Write a run down before its first attempt, or note that more attempts are planned."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        protocol = json.dumps(run.protocol.to_dict())
        with self._transaction():
            self._db.execute(
                "INSERT INTO runs (id, agent, suite, name, protocol, planned, started) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET planned = max(planned, excluded.planned)",
                (run.id, run.agent, run.protocol.suite or "", run.name, protocol, planned, now),
            )
            key = self._key(run.id)
            self._task_keys.pop(run.id, None)
            self._db.executemany(
                "INSERT OR IGNORE INTO tasks (run, position, task, labels) VALUES (?, ?, ?, ?)",
                (
                    (key, position, task.id, json.dumps(dict(task.labels)))
                    for position, task in enumerate(run.tasks)
                ),
            )

    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Mark attempts as being made; returns those that nobody else has claimed."""
        key, tasks = self._key(run), self._tasks(run)
        rows = [(key, tasks[task], number, self._owner) for task, number in attempts]
        before = self._db.total_changes
        with self._transaction():
            self._db.executemany(_CLAIM, rows)
            if self._db.total_changes - before == len(rows):
                return list(attempts)
            # Somebody else is here: take them back, and see which are still to be had.
            self._db.execute("ROLLBACK")
            self._db.execute("BEGIN IMMEDIATE")
            got = [self._db.execute(_CLAIM, row).rowcount for row in rows]
        return [one for one, mine in zip(attempts, got, strict=True) if mine]

    def finish(self, run: str, attempts: Iterable[AttemptRecord]) -> None:
        """Write down what came of claimed attempts, all of them in one transaction."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        key, tasks = self._key(run), self._tasks(run)
        records = list(attempts)
        with self._transaction():
            self._db.executemany(
                "UPDATE attempts SET owner = NULL, verdict = ?, why = ?, detail = ?, seed = ?, "
                "seconds = ?, steps = ?, tokens = ?, cost = ?, retries = ?, answer = ?, "
                "finished = ?, leak = ? "
                "WHERE run = ? AND task = ? AND number = ? AND verdict IS NULL",
                (
                    (
                        *(int(one.judgement.verdict), one.judgement.why, one.judgement.detail),
                        *(one.seed, one.seconds, one.steps, one.tokens, one.cost),
                        *(one.retries, one.answer_hash, now, one.leak or None),
                        *(key, tasks[one.task], one.number),
                    )
                    for one in records
                ),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?)",
                (
                    (key, tasks[one.task], one.number, _packed(one))
                    for one in records
                    if one.transcript
                ),
            )

    def release(self, run: str, *, missing: bool = False) -> int:
        """Forget claims of runners that are gone (and of this one); returns how many.

        With ``missing`` attempts that ended without a verdict are forgotten, too, so that they
        are made again.
        """
        if self._found_key(run) is None:
            return 0
        key = self._key(run)
        open_rows = self._db.execute(
            "SELECT DISTINCT owner FROM attempts WHERE run = ? AND verdict IS NULL", (key,)
        ).fetchall()
        gone = [owner for (owner,) in open_rows if owner == self._owner or is_gone(owner or "")]
        with self._transaction():
            count = sum(
                self._db.execute(
                    "DELETE FROM attempts WHERE run = ? AND verdict IS NULL AND owner = ?",
                    (key, owner),
                ).rowcount
                for owner in gone
            )
            if missing:
                # What a later judgement settled is not missing any more.
                count += self._db.execute(
                    "DELETE FROM attempts WHERE run = ? AND verdict = ? AND (task, number) IN "
                    "(SELECT task, number FROM judged WHERE run = ? AND verdict = ?)",
                    (key, int(Verdict.MISSING), key, int(Verdict.MISSING)),
                ).rowcount
        return count

    def add_judgement(self, run: str, task: str, number: int, judgement: StoredJudgement) -> None:
        """Write down a later word on a finished attempt; earlier ones stay."""
        if judgement.verdict is Verdict.MISSING:
            raise InvalidValue("a later judgement must say passed or failed, not missing.")
        if not self.judgements(run, task, number):
            raise InvalidValue(f"run {run} has no finished attempt {task}#{number}.")
        now = judgement.at or datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction():
            place = self._key(run), self._tasks(run)[task], number
            judgements.add(self._db, *place, replace(judgement, at=now))

    def remove(self, run: str) -> None:
        """Delete a run with everything that belongs to it."""
        with self._transaction():
            self._db.execute("DELETE FROM runs WHERE id = ?", (run,))
        self._task_keys.pop(run, None)

    # -- reading -----------------------------------------------------------------------------

    def made(self, run: str) -> Made:
        """The attempts that are finished or being made."""
        rows = self._db.execute(
            "SELECT t.task, a.number FROM attempts a JOIN tasks t ON t.key = a.task "
            "WHERE a.run = (SELECT key FROM runs WHERE id = ?)",
            (run,),
        )
        return Made(rows)

    def leaks(self, run: str) -> list[tuple[str, int, str]]:
        """(task, number, the attempt whose reference was said), in order."""
        rows = self._db.execute(
            "SELECT t.task, a.number, a.leak FROM attempts a JOIN tasks t ON t.key = a.task "
            "WHERE a.run = ? AND a.leak IS NOT NULL ORDER BY t.position, a.number",
            (self._key(run),),
        )
        return rows.fetchall()

    def runs(self) -> list[StoredRun]:
        """Every run, the oldest first."""
        return [_stored(row) for row in self._db.execute(_LISTED)]

    def find(self, word: str) -> StoredRun:
        """A run by its id or the beginning of it."""
        found = [run for run in self.runs() if run.id.startswith(word)]
        if len(found) == 1:
            return found[0]
        known = ", ".join(run.id for run in (found or self.runs())[-10:])
        what = f"{len(found)} runs start with" if found else "there is no run"
        raise InvalidValue(f"{self.path}: {what} {word!r}.", hint=f"Runs here: {known or 'none'}.")

    def protocol(self, run: str) -> Protocol:
        """The protocol that a run was begun with."""
        (text,) = self._db.execute("SELECT protocol FROM runs WHERE id = ?", (run,)).fetchone()
        return protocol_from(json.loads(text))

    def rows(self, run: str, size: int = 2_000) -> Iterator[list[tuple[object, ...]]]:
        """Finished attempts in order of tasks and attempts, some at a time.

        (task, number, verdict, why, seconds, steps, tokens, cost, answer, labels)
        """
        found = self._db.execute(
            "SELECT t.task, a.number, a.verdict, a.why, a.seconds, a.steps, a.tokens, a.cost, "
            "a.answer, t.labels "
            "FROM tasks t JOIN judged a ON a.run = t.run AND a.task = t.key "
            "WHERE t.run = ? AND a.verdict IS NOT NULL ORDER BY t.position, t.key, a.number",
            (self._key(run),),
        )
        while block := found.fetchmany(size):
            yield block

    def verdicts(self, run: str) -> Iterator[tuple[str, int, Verdict]]:
        """(task, number, verdict) of every finished attempt."""
        for block in self.rows(run):
            yield from ((str(t), int(str(n)), Verdict(int(str(v)))) for t, n, v, *_ in block)

    def attempt(self, run: str, task: str, number: int) -> Ended | None:
        """One finished attempt with its transcript and every word on it."""
        place = (self._key(run), self._tasks(run).get(task, -1), number)
        row = self._db.execute(
            "SELECT a.seconds, a.steps, a.seed, x.body FROM attempts a "
            "LEFT JOIN transcripts x ON x.run = a.run AND x.task = a.task AND x.number = a.number "
            "WHERE a.run = ? AND a.task = ? AND a.number = ? AND a.verdict IS NOT NULL",
            place,
        ).fetchone()
        if row is None:
            return None
        seconds, steps, seed, body = row
        said = judgements.of(self._db, *place)
        newest = said[-1]
        return Ended(
            *(task, number, newest.verdict, newest.why, newest.detail, seconds, steps),
            transcript=_unpacked(body) if body else (),
            said=said,
            seed=seed,
        )

    def judgements(self, run: str, task: str, number: int) -> tuple[StoredJudgement, ...]:
        """Every word on an attempt, the first one first, the one that counts last."""
        key = self._tasks(run).get(task, -1)
        return judgements.of(self._db, self._key(run), key, number)

    def ended(self, run: str) -> Iterator[tuple[object, ...]]:
        """Finished attempts: (task, number, verdict, why, detail, seconds, steps, cost)."""
        return judgements.ended_rows(self._db, self._key(run))

    def measures(
        self, agent: str, suite: str, most: int = 10_000
    ) -> list[tuple[float | None, float | None, float | None]]:
        """(seconds, steps, cost) of what an agent did at a suite so far."""
        return judgements.measures(self._db, agent, suite, most)

    def is_sound(self) -> bool:
        """Whether SQLite finds the file whole."""
        return bool(self._db.execute("PRAGMA integrity_check").fetchone()[0] == "ok")

    def _found_key(self, run: str) -> int | None:
        row = self._db.execute("SELECT key FROM runs WHERE id = ?", (run,)).fetchone()
        return None if row is None else int(row[0])

    def _key(self, run: str) -> int:
        """The short number that stands for a run inside the file."""
        key = self._found_key(run)
        if key is None:
            raise InvalidValue(f"{self.path}: there is no run {run!r}.")
        return key

    def _tasks(self, run: str) -> dict[str, int]:
        """The short number of every task of a run; tasks are only ever added."""
        if run not in self._task_keys:
            rows = self._db.execute("SELECT task, key FROM tasks WHERE run = ?", (self._key(run),))
            self._task_keys[run] = dict(rows.fetchall())
        return self._task_keys[run]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            passing = getattr(error, "sqlite_errorcode", None) in _PASSING
            raise (StoreUnavailable if passing else ReadError)(
                f"cannot be written ({error}).",
                source=self.path,
                hint="Finished attempts are kept; run the same command again when it can.",
            ) from None


def _packed(record: AttemptRecord) -> bytes:
    """JSON; compressed, as lightly as SQLite's own pages make sensible, when it is not small."""
    body = msgspec.json.encode(record.transcript)
    return body if len(body) < _WORTH_PACKING else zlib.compress(body, level=1)


def _unpacked(body: bytes) -> Sequence[Mapping[str, str]]:
    text = body if body.startswith(b"[") else zlib.decompress(body)
    transcript: Sequence[Mapping[str, str]] = json.loads(text)
    return transcript


def _stored(row: tuple[str, str, str, int, str, int, int, int, int, int]) -> StoredRun:
    run, agent, suite, planned, started, tasks, made, missing, passed, open_ = row
    status = "complete" if made >= planned * tasks else "in progress" if open_ else "stopped"
    return StoredRun(run, agent, suite, tasks, planned, made, missing, passed, started, status)
