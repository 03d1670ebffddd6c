"""The common base of both stores: runs, claims, finished attempts.

A query that all databases understand is written here, once. Their differences are in
:mod:`passhat.store.sqlite`, :mod:`passhat.store.postgres`, and backends of other packages.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, ClassVar, Self

from passhat._display import counted
from passhat.errors import InvalidValue, PasshatError, RunStopped
from passhat.protocol import Protocol
from passhat.stats.outcomes import MeasureColumns, MeasureSum, MissingReason, Verdict
from passhat.store import counting
from passhat.store.database import Database, LogProblem
from passhat.store.leases import Heartbeat, HeldClaims, new_token
from passhat.store.queries import ENDED_ROWS, WRITE_CALLS, WRITE_ORIGINS, Queries
from passhat.store.rows import (
    AttemptRecord,
    AttemptSet,
    CallCounts,
    Ended,
    Origins,
    Place,
    PlannedAttempts,
    RunRecord,
    StoredJudgement,
    StoredRun,
    call_cells,
    finished_cells,
    origin_cells,
)

FINISHED_COLUMNS = (
    *("verdict", "why", "detail", "seed", "seconds", "steps", "tokens", "cost"),
    *("retries", "answer", "finished", "leak", "score"),
)
"""Columns of a finished attempt, in the order in which they are written."""
_POLL_SECONDS = 0.1

Row = tuple[Any, ...]


class Store(ABC):
    """Runs and their attempts; open one with :func:`passhat.store.open_store`.

    The base of every backend: a class derived from this one, and an entry point in the group
    ``passhat.stores`` under the scheme of its addresses (``postgresql://...``). It is called with
    the place and the options of :func:`passhat.store.open_store`, and sets ``_db``, ``_heart`` and
    ``path``.

    Attributes
    ----------
    path : str
        Where it is, as the user named it, without a password.
    open_attempts : str
        SQL of the attempts ``a``, where only those that are being made are asked for.
    judged_attempts : str
        SQL of the attempts with the newest judgement of each.
    """

    path: str
    open_attempts: str = "attempts a"
    judged_attempts: str = "judged"
    _db: Database
    _heart: Heartbeat
    _BEGIN: ClassVar[str] = "BEGIN"
    _SNAPSHOT: ClassVar[str] = "BEGIN"
    # End of a query of a run: until the transaction ends it is not removed, or not claimed from.
    _KEEP_RUN, _LOCK_RUN = "", ""
    # A statement after which no lease of a run is renewed until the transaction ends.
    _LOCK_LEASES = ""

    def __init__(self) -> None:
        self._task_keys: dict[str, dict[str, int]] = {}
        self._generations: dict[str, str] = {}
        # Two stores of one process are two runners.
        self._token = new_token()
        self._queries = Queries(self)
        self._seen_version: object = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._heart.stop()
        self._db.close()

    # -- differences between the databases -----------------------------------------------------

    def wait_at_most(self, seconds: float) -> None:
        """Set how long a statement may wait for a lock of another process; no limit by default."""
        del seconds

    @abstractmethod
    def interrupt(self) -> None:
        """Make a statement that another thread waits for fail, as if the connection broke."""

    @abstractmethod
    def claim(self, run: str, attempts: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Mark attempts as being made; return those that no other runner has.

        Renews the lease in the same transaction, so that no claim is ever without one.
        """

    @abstractmethod
    def list_claims(self, run: str) -> list[HeldClaims]:
        """Open claims of other runners."""

    @abstractmethod
    def data_version(self) -> object:
        """Return a value that differs after every write."""

    def changes(self, seconds: float) -> bool:
        """Wait for a write, at most so long; return whether there was one.

        The first call begins to watch and is ``True``: existing data have to be read once. By
        default the version of the data is polled.
        """
        end = time.monotonic() + seconds
        while (version := self.data_version()) == self._seen_version:
            if time.monotonic() >= end:
                return False
            time.sleep(min(_POLL_SECONDS, seconds))
        self._seen_version = version
        return True

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        return self._db.execute(statement, values).fetchall()

    @abstractmethod
    def is_sound(self) -> bool:
        """Whether the database finds its own data whole."""

    def log_problem(self, *, sound: bool) -> LogProblem | None:
        """The problem with the write-ahead log of a file; ``sound`` is what is_sound said."""
        del sound
        return None

    def vacuum(self) -> None:
        """Free the space of deleted data."""
        self._db.execute("VACUUM")

    @abstractmethod
    def size(self) -> int:
        """Bytes that the store takes."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read a consistent snapshot of the store while the block is open."""
        self._db.execute(self._SNAPSHOT)
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    @abstractmethod
    def _stream(
        self, sql: str, parameters: Sequence[Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Rows some at a time, however many there are."""

    @abstractmethod
    def _write(self, rows: Sequence[Row]) -> set[tuple[int, int]]:
        """Write results with their transcripts, if the claim is still ours.

        Rows of ``FINISHED_COLUMNS``, run, task, number, body. Returns (task, number) of the rows
        whose claim is not ours any more; of these nothing was written.
        """

    def _tell(self, run: str) -> None:
        """Notify listeners that a run has changed; part of the transaction.

        By default there are none: :meth:`changes` polls.
        """
        del run

    # -- writing -------------------------------------------------------------------------------

    def begin(self, run: RunRecord, planned: int | PlannedAttempts) -> str:
        """Write a run down before its first attempt, or note that more attempts are planned.

        Returns its generation: see :meth:`load_generation`. A run whose attempts differ by task
        keeps the numbers that it was begun with.
        """
        if isinstance(planned, int):
            planned = PlannedAttempts(planned)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        protocol = json.dumps(run.protocol.to_dict())
        with self._transaction():
            self._db.execute(
                "INSERT INTO runs (id, agent, suite, name, protocol, planned, started, total, "
                "allocation, revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) "
                "DO UPDATE SET planned = excluded.planned, total = excluded.total, "
                "allocation = excluded.allocation "
                "WHERE excluded.planned > runs.planned OR excluded.allocation IS NOT NULL",
                (
                    *(run.id, run.agent, run.protocol.suite or "", run.name, protocol),
                    *(planned.each, run.started or now),
                    planned.total(task.id for task in run.tasks) if planned.by_task else None,
                    *(planned.text or None, run.revision or None),
                ),
            )
            self._db.execute(
                "UPDATE runs SET generation = ? WHERE id = ? AND generation IS NULL",
                (new_token(), run.id),
            )
            key, generation = self._db.execute(
                "SELECT key, generation FROM runs WHERE id = ?", (run.id,)
            ).fetchone()
            self._task_keys.pop(run.id, None)
            self._db.executemany(
                "INSERT INTO tasks (run, position, task, labels) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (run, task) DO NOTHING",
                (
                    (key, position, task.id, json.dumps(dict(task.labels)))
                    for position, task in enumerate(run.tasks)
                ),
            )
            self._tell(run.id)
        self._generations[run.id] = generation
        return str(generation)

    def load_generation(self, run: str) -> str | None:
        """Which beginning of a run this is: another one after it was removed and begun again."""
        rows = self.read("SELECT generation FROM runs WHERE id = ?", (run,))
        return rows[0][0] if rows else None

    def finish(self, run: str, attempts: Iterable[AttemptRecord]) -> list[AttemptRecord]:
        """Write the results of claimed attempts, all of them in one transaction.

        Returns the attempts that were dropped: their claims were taken over, because this runner
        was not seen for longer than its lease. Nothing of them is written. A result that is
        already there from an earlier call (its answer was lost with the connection) is kept.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        records = list(attempts)
        with self._transaction():
            key, tasks = self._own_key(run), self._tasks(run)
            rows = [finished_cells(record, now, key, tasks[record.task]) for record in records]
            rows.sort(key=itemgetter(-3, -2))  # in the order of the tables: fewer pages at a time
            lost_keys = self._write(rows)
            places = [
                ((key, tasks[record.task], record.number), record)
                for record in records
                if (record.calls is not None or record.conversation)
                and (tasks[record.task], record.number) not in lost_keys
            ]
            for statement, more in ((WRITE_CALLS, call_cells), (WRITE_ORIGINS, origin_cells)):
                cells = [(*place, *row) for place, one in places if (row := more(one))]
                if cells:
                    self._db.executemany(statement, cells)
            self._tell(run)
        if not lost_keys:
            return []
        return [record for record in records if (tasks[record.task], record.number) in lost_keys]

    def release_expired(self, run: str) -> int:
        """Free claims of other runners whose lease has expired; return how many."""
        return self.release(run, ours=False)

    def release(
        self, run: str, *, missing: bool = False, account: bool = False, ours: bool = True
    ) -> int:
        """Free claims whose lease has expired, and those of this store; return how many.

        With ``missing`` attempts that ended without a verdict are deleted, too, so that they are
        made again; with ``account`` only those that an empty account or a wrong key ended.
        """
        key = self._find_key(run)
        if key is None:
            return 0
        expired_leases = [
            (claims.token, claims.beats) for claims in self.list_claims(run) if claims.expired
        ]
        count = 0
        with self._transaction():
            for token, beats in [(self._token, None)] * ours + expired_leases:
                # Renewed since we looked: its runner lives, and keeps its claims.
                if (
                    beats is not None
                    and not self._db.execute(
                        "DELETE FROM leases WHERE token = ? AND beats = ?", (token, beats)
                    ).rowcount
                ):
                    continue
                count += self._db.execute(
                    "DELETE FROM attempts WHERE run = ? AND finished IS NULL "
                    "AND coalesce(owner, '') = ?",
                    (key, token),
                ).rowcount
            if missing:
                count += self._delete_missing(key)
            elif account:
                count += self._delete_missing(key, MissingReason.ACCOUNT)
            if count:
                self._tell(run)
        return count

    def _delete_missing(self, run: int, reason: MissingReason | None = None) -> int:
        # Attempts that a later judgement settled are not missing any more. Made again, they would
        # be counted by the judgement of the attempt before.
        missing = int(Verdict.MISSING)
        of_reason, values = ("", ()) if reason is None else (" AND a.why = ?", (str(reason),))
        condition = (
            "run = ? AND (task, number) IN (SELECT a.task, a.number FROM attempts a "
            "JOIN judged j ON j.run = a.run AND j.task = a.task AND j.number = a.number "
            f"WHERE a.run = ? AND a.verdict = ? AND j.verdict = ?{of_reason})"
        )
        parameters = (run, run, missing, missing, *values)
        # With transcript and calls: the next attempt may end without, and must not show these.
        for table in ("transcripts", "calls", "origins"):
            self._db.execute(f"DELETE FROM {table} WHERE {condition}", parameters)
        return self._db.execute(f"DELETE FROM attempts WHERE {condition}", parameters).rowcount

    def add_judgement(self, run: str, task: str, number: int, judgement: StoredJudgement) -> None:
        """Add a later judgement of a finished attempt; earlier judgements stay."""
        if judgement.verdict is Verdict.MISSING:
            raise InvalidValue("a later judgement must say passed or failed, not missing.")
        if not self.judgements(run, task, number):
            raise InvalidValue(f"run {run} has no finished attempt {task}#{number}.")
        now = judgement.at or datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction():
            place = self._key(run), self._tasks(run)[task], number
            self._db.execute(
                "INSERT INTO judgements (run, task, number, verdict, why, detail, "
                "judge_fingerprint, at, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(*place, int(judgement.verdict), judgement.why, judgement.detail),
                    *(judgement.judge_fingerprint, now, str(judgement.source)),
                ),
            )
            self._tell(run)

    def remove(self, run: str, *, force: bool = False) -> None:
        """Delete a run with everything that belongs to it.

        Raises
        ------
        InvalidValue
            A runner is making attempts of it. With ``force`` it is deleted all the same; the
            runner then ends, and nothing of it is mixed with a run that is begun later.
        """
        with self._transaction():
            # Deleted by its key: one that another runner begins after this look is not meant.
            query = f"SELECT key FROM runs WHERE id = ?{self._LOCK_RUN}"
            row = self._db.execute(query, (run,)).fetchone()
            if row and self._LOCK_LEASES:
                self._db.execute(self._LOCK_LEASES, row)
            claims = sum(held.claims for held in self.list_claims(run) if not held.expired)
            if claims and not force:
                raise InvalidValue(
                    f"run {run} is being made: another runner has claimed "
                    f"{counted(claims, 'attempt')}.",
                    hint="Stop that runner first, or delete the run all the same with --force.",
                )
            self._db.execute("DELETE FROM runs WHERE key = ?", row or (None,))
            self._tell(run)
        self._task_keys.pop(run, None)
        self._generations.pop(run, None)

    # -- reading -------------------------------------------------------------------------------

    def load_attempts(self, run: str, **which: bool) -> AttemptSet:
        """The attempts that are finished or being made; none for a run that is not there.

        With ``finished`` those with a verdict, passed or failed; with ``ended`` missing ones, too.
        """
        key = self._find_key(run)
        return AttemptSet() if key is None else counting.load_attempts(self._db, key, **which)

    def load_allocation(self, run: str) -> str | None:
        """Attempts by task, as JSON, of a run that has attempts; empty where all have as many."""
        row = self._db.execute(
            "SELECT coalesce(allocation, '') FROM runs WHERE id = ? "
            "AND EXISTS (SELECT 1 FROM attempts WHERE run = runs.key)",
            (run,),
        ).fetchone()
        return None if row is None else str(row[0])

    def counts(self, run: str) -> counting.Counts:
        """n, c and missing of every task, counted by the database: no attempt is loaded."""
        return counting.counts(self._stream, self._key(run))

    def labels(self, run: str) -> list[str]:
        """The different labels that tasks with a finished attempt carry, in their order."""
        return self._queries.labels(self._key(run))

    def measure_sums(self, run: str) -> dict[str, MeasureSum]:
        """Seconds, steps, tokens and cost of all attempts together, summed by the database."""
        return counting.measure_sums(self._db, self._key(run))

    def load_measures(self, run: str) -> MeasureColumns:
        """Seconds, steps, tokens and cost of every finished attempt, as numbers."""
        return counting.load_measures(self._stream, self._key(run))

    def load_scores(self, run: str) -> MeasureColumns | None:
        """The score of every finished attempt, as numbers; ``None`` where none was recorded."""
        return counting.load_scores(self._stream, self._key(run))

    def count_same_answers(self, run: str) -> tuple[int, int]:
        """Tasks with several answers, and those where every attempt gave the same one."""
        return counting.count_same_answers(self._db, self._key(run))

    def load_usage(self, run: str, *, priced: bool) -> counting.RunUsage:
        """Tokens and money of the finished attempts; nothing for a run that is not there.

        ``priced`` is whether an attempt without a cost counts as one whose use is not known.
        """
        if (key := self._find_key(run)) is None:
            return counting.RunUsage()
        return counting.load_usage(self._db, key, priced=priced)

    def leaks(self, run: str) -> list[tuple[str, int, str]]:
        """(task, number, the attempt whose reference leaked), in order."""
        return self._queries.leaks(self._key(run))

    def runs(self) -> list[StoredRun]:
        """Every run, the oldest first."""
        return self._queries.runs()

    def find(self, word: str) -> StoredRun:
        """A run by its name (``passhat run --name``), its id, or the beginning of its id.

        ``latest`` is the newest run, ``latest~1`` the one before, unless a run has that name;
        fresh attempts of a gate do not count.
        """
        return self._queries.find(word, self.path)

    def protocol(self, run: str) -> Protocol:
        """The protocol that a run was begun with."""
        return self._queries.protocol(self._key(run))

    def rows(
        self, run: str, size: int = 2_000, *, details: bool = False
    ) -> Iterator[list[tuple[object, ...]]]:
        """Finished attempts in order of tasks and attempts, some at a time.

        (task, number, verdict, why, seconds, steps, tokens, cost, seed, answer, score, labels), and
        with ``details`` the judge's words, retries, the packed transcript and the number of answers
        that were cut, if any calls are recorded.
        """
        yield from counting.load_rows(self._stream, self._key(run), size, details=details)

    def verdicts(self, run: str) -> Iterator[tuple[str, int, Verdict]]:
        """(task, number, verdict) of every finished attempt."""
        for block in self.rows(run):
            yield from ((str(t), int(str(n)), Verdict(int(str(v)))) for t, n, v, *_ in block)

    def attempt(self, run: str, task: str, number: int) -> Ended | None:
        """A finished attempt with its transcript and all judgements."""
        key, place = self._place(run, task, number)
        line = self._queries.line(key, place)
        if line is None:
            return None
        return Ended(
            *(task, number, line.verdict, line.why, line.detail, line.seconds, line.steps),
            transcript=self._queries.transcript(key, place),
            said=self._queries.judgements(key, place),
            seed=line.seed,
        )

    def calls(self, run: str, task: str, number: int) -> list[dict[str, Any]]:
        """The calls to models in an attempt, as plain data; empty where none are recorded."""
        return self._queries.calls(*self._place(run, task, number))

    def call_counts(self, run: str) -> CallCounts:
        """How the answers of a run's models ended."""
        return self._queries.call_counts(self._find_key(run))

    def origins(self, run: str) -> Origins:
        """Which models answered a run, and what tells its conversations apart."""
        return self._queries.origins(self._find_key(run))

    def price_sources(self, run: str) -> list[str]:
        """The price tables that costs of a run come from."""
        return self._queries.price_sources(self._find_key(run))

    def judgements(self, run: str, task: str, number: int) -> tuple[StoredJudgement, ...]:
        """Every judgement of an attempt, oldest first; the last counts."""
        return self._queries.judgements(*self._place(run, task, number))

    def iterate_results(self, run: str) -> Iterator[tuple[object, ...]]:
        """Finished attempts: (task, number, verdict, why, detail, seconds, steps, cost)."""
        for block in self._stream(ENDED_ROWS, (self._key(run),), 2_000):
            yield from block

    def first_failure(self, run: str, task: str) -> int | None:
        """The number of the first failed attempt at a task."""
        return self._queries.first_failure(self._key(run), self._tasks(run).get(task, -1))

    def failure_messages(self, run: str, task: str | None = None) -> dict[str, dict[str, int]]:
        """How often each message came with a category of failure, in a run or at one task."""
        place = None if task is None else self._tasks(run).get(task, -1)
        return self._queries.failure_messages(self._find_key(run), task=place)

    def missing_messages(self, run: str) -> dict[str, dict[str, int]]:
        """How often each message came with a reason of missing attempts."""
        return self._queries.failure_messages(self._find_key(run), Verdict.MISSING)

    def measures(
        self, agent: str, suite: str, most: int = 10_000
    ) -> list[tuple[float | None, float | None, float | None]]:
        """(seconds, steps, cost) of an agent's attempts at a suite, newest runs first."""
        return self.read(
            "SELECT a.seconds, a.steps, a.cost FROM runs r JOIN attempts a ON a.run = r.key "
            "WHERE r.agent = ? AND r.suite = ? AND a.verdict IN (0, 1) ORDER BY r.key DESC LIMIT ?",
            (agent, suite, most),
        )

    # -- inside --------------------------------------------------------------------------------

    def _place(self, run: str, task: str, number: int) -> tuple[int, Place]:
        return self._key(run), (self._tasks(run).get(task, -1), number)

    def _find_key(self, run: str) -> int | None:
        row = self._db.execute("SELECT key FROM runs WHERE id = ?", (run,)).fetchone()
        return None if row is None else int(row[0])

    def _key(self, run: str) -> int:
        """The integer key of a run inside the store."""
        key = self._find_key(run)
        if key is None:
            raise InvalidValue(f"{self.path}: there is no run {run!r}.")
        return key

    def _own_key(self, run: str) -> int:
        """The key of the run that this store has begun; refuses a run that was begun anew.

        In a transaction the run cannot be removed before its end.
        """
        generation = self._generations.get(run)
        if generation is None:
            return self._key(run)
        row = self._db.execute(
            f"SELECT key FROM runs WHERE id = ? AND generation = ?{self._KEEP_RUN}",
            (run, generation),
        ).fetchone()
        if row is None:
            raise RunStopped(
                f"run {run} was removed from {self.path} while this runner was at work.",
                hint="Its attempts are gone. The same command begins the run anew.",
            )
        return int(row[0])

    def _tasks(self, run: str) -> dict[str, int]:
        """The short number of every task of a run; tasks are only ever added."""
        if run not in self._task_keys:
            rows = self._db.execute("SELECT task, key FROM tasks WHERE run = ?", (self._key(run),))
            self._task_keys[run] = dict(rows.fetchall())
        return self._task_keys[run]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute(self._BEGIN)
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                with suppress(PasshatError):  # the first error has the cause
                    self._db.execute("ROLLBACK")
            raise
