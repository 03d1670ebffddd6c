"""The SQLite store: one file, write-ahead log, readers never block the writer."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from passhat.errors import InvalidValue, ReadError
from passhat.outcomes import Verdict
from passhat.store.owners import is_gone, this_owner
from passhat.store.records import AttemptRecord, Ended, RunRecord, StoredRun
from passhat.store.schema import migrate

__all__ = ["DEFAULT_PATH", "Store"]

DEFAULT_PATH = ".passhat/passhat.db"
_WAIT_SECONDS = 30.0

_LISTED = """
    SELECT r.id, r.agent, r.suite, r.protocol, r.planned, r.started,
        (SELECT count(*) FROM tasks t WHERE t.run = r.id),
        (SELECT count(*) FROM attempts a WHERE a.run = r.id AND a.verdict IS NOT NULL),
        (SELECT count(*) FROM attempts a WHERE a.run = r.id AND a.verdict = -1),
        (SELECT count(*) FROM attempts a WHERE a.run = r.id AND a.verdict = 1),
        (SELECT count(*) FROM attempts a WHERE a.run = r.id AND a.verdict IS NULL)
    FROM runs r ORDER BY r.started, r.id
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
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            migrate(self._db, path)
        except (sqlite3.Error, OSError) as error:
            raise ReadError(f"cannot be used as a store ({error}).", source=path) from None
        self._owner = this_owner()

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

    # -- writing -----------------------------------------------------------------------------

    def begin(self, run: RunRecord, planned: int) -> None:
        """Write a run down before its first attempt, or note that more attempts are planned."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        protocol = json.dumps(run.protocol.to_dict())
        with self._transaction():
            self._db.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET planned = max(planned, excluded.planned)",
                (run.id, run.agent, run.protocol.suite or "", run.name, protocol, planned, now),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?)",
                (
                    (run.id, position, task.id, json.dumps(dict(task.labels)))
                    for position, task in enumerate(run.tasks)
                ),
            )

    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Mark attempts as being made; returns those that nobody else has claimed."""
        got = []
        with self._transaction():
            for task, number in attempts:
                found = self._db.execute(
                    "INSERT OR IGNORE INTO attempts (run, task, number, owner) VALUES (?, ?, ?, ?)",
                    (run, task, number, self._owner),
                )
                if found.rowcount == 1:
                    got.append((task, number))
        return got

    def finish(self, run: str, attempts: Iterable[AttemptRecord]) -> None:
        """Write down what came of claimed attempts, all of them in one transaction."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        records = list(attempts)
        with self._transaction():
            self._db.executemany(
                "UPDATE attempts SET owner = NULL, verdict = ?, why = ?, detail = ?, seed = ?, "
                "seconds = ?, steps = ?, retries = ?, answer = ?, finished = ? "
                "WHERE run = ? AND task = ? AND number = ? AND verdict IS NULL",
                (
                    (
                        *(int(one.judgement.verdict), one.judgement.why, one.judgement.detail),
                        *(one.seed, one.seconds, one.steps, one.retries, one.answer_hash, now),
                        *(run, one.task, one.number),
                    )
                    for one in records
                ),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?)",
                (
                    (run, one.task, one.number, zlib.compress(json.dumps(one.transcript).encode()))
                    for one in records
                    if one.transcript
                ),
            )

    def release(self, run: str, *, missing: bool = False) -> int:
        """Forget claims of runners that are gone (and of this one); returns how many.

        With ``missing`` attempts that ended without a verdict are forgotten, too, so that they
        are made again.
        """
        open_rows = self._db.execute(
            "SELECT DISTINCT owner FROM attempts WHERE run = ? AND verdict IS NULL", (run,)
        ).fetchall()
        gone = [owner for (owner,) in open_rows if owner == self._owner or is_gone(owner or "")]
        with self._transaction():
            count = sum(
                self._db.execute(
                    "DELETE FROM attempts WHERE run = ? AND verdict IS NULL AND owner = ?",
                    (run, owner),
                ).rowcount
                for owner in gone
            )
            if missing:
                count += self._db.execute(
                    "DELETE FROM attempts WHERE run = ? AND verdict = ?",
                    (run, int(Verdict.MISSING)),
                ).rowcount
        return count

    def remove(self, run: str) -> None:
        """Delete a run with everything that belongs to it."""
        with self._transaction():
            self._db.execute("DELETE FROM runs WHERE id = ?", (run,))

    # -- reading -----------------------------------------------------------------------------

    def made(self, run: str) -> set[tuple[str, int]]:
        """The attempts that are finished or being made."""
        rows = self._db.execute("SELECT task, number FROM attempts WHERE run = ?", (run,))
        return set(rows.fetchall())

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

    def protocol(self, run: str) -> dict[str, object]:
        """The protocol of a run as plain data."""
        (text,) = self._db.execute("SELECT protocol FROM runs WHERE id = ?", (run,)).fetchone()
        data: dict[str, object] = json.loads(text)
        return data

    def rows(self, run: str, size: int = 2_000) -> Iterator[list[tuple[object, ...]]]:
        """Finished attempts in order of tasks and attempts, some at a time.

        (task, number, verdict, why, seconds, steps, answer, labels)
        """
        found = self._db.execute(
            "SELECT a.task, a.number, a.verdict, a.why, a.seconds, a.steps, a.answer, t.labels "
            "FROM attempts a JOIN tasks t ON t.run = a.run AND t.task = a.task "
            "WHERE a.run = ? AND a.verdict IS NOT NULL ORDER BY t.position, a.number",
            (run,),
        )
        while block := found.fetchmany(size):
            yield block

    def attempt(self, run: str, task: str, number: int) -> Ended | None:
        """One finished attempt with its transcript."""
        row = self._db.execute(
            "SELECT a.verdict, a.why, a.detail, a.seconds, a.steps, x.body FROM attempts a "
            "LEFT JOIN transcripts x ON x.run = a.run AND x.task = a.task AND x.number = a.number "
            "WHERE a.run = ? AND a.task = ? AND a.number = ? AND a.verdict IS NOT NULL",
            (run, task, number),
        ).fetchone()
        if row is None:
            return None
        verdict, why, detail, seconds, steps, body = row
        transcript = json.loads(zlib.decompress(body)) if body else ()
        return Ended(
            task, number, Verdict(verdict), why or "", detail or "", seconds, steps, transcript
        )

    def is_sound(self) -> bool:
        """Whether SQLite finds the file whole."""
        return bool(self._db.execute("PRAGMA integrity_check").fetchone()[0] == "ok")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise ReadError(
                f"cannot be written ({error}).",
                source=self.path,
                hint="Finished attempts are kept; run the same command again when it can.",
            ) from None


def _stored(row: tuple[str, str, str, str, int, str, int, int, int, int, int]) -> StoredRun:
    run, agent, suite, _, planned, started, tasks, made, missing, passed, open_ = row
    done = made >= planned * tasks
    status = "complete" if done else "in progress" if open_ else "stopped"
    return StoredRun(run, agent, suite, tasks, planned, made, missing, passed, started, status)
