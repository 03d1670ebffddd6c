"""Questions that pages ask of a store, answered without reading more rows than are shown.

The store is opened for reading only. Every question is one statement of SQL that both databases
understand; where all attempts of a run must be looked at, the database counts them. What the
databases do differently is in :mod:`passhat.store.opening` and
:mod:`passhat.store.opening`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self

from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store.rows import (
    AttemptLine,
    Group,
    Place,
    PlannedAttempts,
    RunCounts,
    RunHead,
    TaskCounts,
    Wanted,
    Word,
    protocol_from,
    unpacked,
)

__all__ = [
    "AttemptLine",
    "Group",
    "Place",
    "Reading",
    "RunCounts",
    "RunHead",
    "TaskCounts",
    "Wanted",
    "Word",
]

Row = tuple[Any, ...]


class Reading(ABC):
    """A store as pages see it; open one with :func:`passhat.store.open_reading`.

    May be used from several threads; they take turns.

    Attributes
    ----------
    path : str
        Where the store is, as the user named it, without a password.
    """

    path: str
    _OPEN_ATTEMPTS: str = "attempts a"
    """Attempts, where only those that are being made are asked for."""
    _JUDGED: ClassVar[str] = "judged"
    """Attempts with the newest word on each."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- what databases do differently ---------------------------------------------------------

    @abstractmethod
    def close(self) -> None:
        """Nothing can be asked any more."""

    @abstractmethod
    def change(self) -> object:
        """A value that differs after every write."""

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Wait for a write, at most so long; returns whether there was one.

        The first call begins to watch and is ``True``: what is there has to be read once. A thread
        that waits needs a reading of its own.
        """

    @abstractmethod
    def _all(self, statement: str, *values: object) -> list[Row]:
        """Every row of the answer; trouble is one of passhat's errors."""

    # -- runs --------------------------------------------------------------------------------

    def heads(self) -> list[RunHead]:
        """Every run, the oldest first; two look-ups in an index each."""
        rows = self._all(
            "SELECT r.key, r.id, r.agent, r.suite, r.name, r.planned, r.started, "
            "coalesce((SELECT max(a.finished) FROM attempts a "
            "WHERE a.run = r.key AND a.finished IS NOT NULL), ''), "
            f"EXISTS (SELECT 1 FROM {self._OPEN_ATTEMPTS} "
            "WHERE a.run = r.key AND a.finished IS NULL), r.total "
            "FROM runs r ORDER BY r.started, r.key"
        )
        return [RunHead(*(*head, bool(is_open), total)) for *head, is_open, total in rows]

    def judged_after(self, key: int) -> dict[int, int]:
        """Runs with judgements newer than this one, and the newest of each."""
        rows = self._all("SELECT run, max(key) FROM judgements WHERE key > ? GROUP BY run", key)
        return {int(run): int(newest) for run, newest in rows}

    def counts(self, run: int | None = None) -> dict[int, RunCounts]:
        """Attempts counted for every run, or for one of them."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        tasks: dict[int, int] = dict(
            self._all(f"SELECT run, count(*) FROM tasks {where} GROUP BY run", *values)
        )
        made = self._all(
            "SELECT run, count(verdict), coalesce(sum(CASE WHEN verdict = 1 THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(CASE WHEN verdict = -1 THEN 1 ELSE 0 END), 0) "
            # So that the index over finished attempts is enough.
            f"FROM {self._attempts(run)} a {where or 'WHERE true'} AND verdict IS NOT NULL "
            "GROUP BY run",
            *values,
        )
        found = {key: RunCounts(tasks=count) for key, count in tasks.items()}
        return found | {key: RunCounts(tasks.get(key, 0), *counted) for key, *counted in made}

    def groups(self, run: int) -> list[Group]:
        """Finished attempts by verdict and word, the most frequent first."""
        rows = self._all(
            "SELECT verdict, coalesce(why, ''), count(*), sum(seconds), sum(steps), sum(tokens), "
            f"sum(cost) FROM {self._attempts(run)} a WHERE run = ? AND verdict IS NOT NULL "
            "GROUP BY verdict, coalesce(why, '')",
            run,
        )
        # Sorted here: databases do not agree on the order of words.
        found = [Group(Verdict(row[0]), *row[1:]) for row in rows]
        return sorted(found, key=lambda one: (-one.attempts, one.why, one.verdict))

    def protocol(self, run: int) -> Protocol:
        """What a run was begun with."""
        ((text,),) = self._all("SELECT protocol FROM runs WHERE key = ?", run)
        return protocol_from(json.loads(text))

    def planned(self, run: int) -> PlannedAttempts:
        """Attempts planned for the tasks of a run."""
        ((each, text),) = self._all("SELECT planned, allocation FROM runs WHERE key = ?", run)
        return PlannedAttempts.from_text(text or "", each)

    # -- tasks -------------------------------------------------------------------------------

    def task_counts(self, run: int) -> list[TaskCounts]:
        """Every task with a finished attempt, in the order of the suite."""
        rows = self._all(
            "SELECT t.key, t.task, t.labels, a.n, a.c, a.m FROM tasks t JOIN ("
            "SELECT task, sum(CASE WHEN verdict >= 0 THEN 1 ELSE 0 END) AS n, "
            "sum(CASE WHEN verdict = 1 THEN 1 ELSE 0 END) AS c, "
            "sum(CASE WHEN verdict = -1 THEN 1 ELSE 0 END) AS m "
            f"FROM {self._attempts(run)} a WHERE run = ? AND verdict IS NOT NULL GROUP BY task"
            ") a ON a.task = t.key ORDER BY t.position, t.key",
            run,
        )
        return [TaskCounts(*row) for row in rows]

    def task_key(self, run: int, task: str) -> int | None:
        """The short number of a task."""
        rows = self._all("SELECT key FROM tasks WHERE run = ? AND task = ?", run, task)
        return int(rows[0][0]) if rows else None

    def task_keys(self, run: int, tasks: Sequence[str]) -> dict[str, int]:
        """The short numbers of some tasks."""
        if not tasks:
            return {}
        holes = ", ".join("?" * len(tasks))
        rows = self._all(
            f"SELECT task, key FROM tasks WHERE run = ? AND task IN ({holes})", run, *tasks
        )
        return dict(rows)

    def task_labels(self, run: int, task: str) -> Mapping[str, str]:
        rows = self._all("SELECT labels FROM tasks WHERE run = ? AND task = ?", run, task)
        found: Mapping[str, str] = json.loads(rows[0][0]) if rows else {}
        return found

    # -- attempts ----------------------------------------------------------------------------

    def lines(self, run: int, wanted: Wanted, size: int, after: Place | None) -> list[AttemptLine]:
        """Some attempts in the order of the suite, from a place on."""
        where, values = self._where(run, wanted)
        if after is not None:
            where, values = f"{where} AND (a.task, a.number) > (?, ?)", (*values, *after)
        return self._lines(run, f"{where} ORDER BY a.task, a.number LIMIT ?", (*values, size))

    def newest(
        self, run: int, wanted: Wanted, size: int, before: tuple[str, int, int] | None = None
    ) -> list[AttemptLine]:
        """Some attempts, what finished last first; ``before`` is when and where the last one is."""
        where, values = self._where(run, wanted)
        where += " AND a.finished IS NOT NULL"  # so that the index over those is used
        if before is not None:
            where += " AND (a.finished, a.task, a.number) < (?, ?, ?)"
            values = (*values, *before)
        order = "ORDER BY a.finished DESC, a.task DESC, a.number DESC LIMIT ?"
        return self._lines(run, f"{where} {order}", (*values, size))

    def beside(self, run: int, wanted: Wanted, place: Place, *, before: bool) -> AttemptLine | None:
        """The attempt just before or after a place."""
        where, values = self._where(run, wanted)
        sign, way = ("<", "DESC") if before else (">", "ASC")
        order = f"ORDER BY a.task {way}, a.number {way} LIMIT 1"
        found = self._lines(
            run, f"{where} AND (a.task, a.number) {sign} (?, ?) {order}", (*values, *place)
        )
        return found[0] if found else None

    def line(self, run: int, place: Place) -> AttemptLine | None:
        """One finished attempt."""
        where, values = self._where(run, Wanted(task=place[0]))
        found = self._lines(run, f"{where} AND a.number = ?", (*values, place[1]))
        return found[0] if found else None

    def words(self, run: int, place: Place) -> list[Word]:
        """Everything that was said of an attempt, the first judgement first."""
        rows = self._all(
            "SELECT 'judge', verdict, coalesce(why, ''), coalesce(detail, ''), finished "
            "FROM attempts WHERE run = ? AND task = ? AND number = ? AND verdict IS NOT NULL",
            run,
            *place,
        )
        rows += self._all(
            "SELECT source, verdict, why, detail, at FROM judgements "
            "WHERE run = ? AND task = ? AND number = ? ORDER BY key",
            run,
            *place,
        )
        return [Word(source, Verdict(verdict), *others) for source, verdict, *others in rows]

    def transcript(self, run: int, place: Place) -> Sequence[Mapping[str, str]]:
        """The conversation of an attempt; empty when none was kept."""
        rows = self._all(
            "SELECT body FROM transcripts WHERE run = ? AND task = ? AND number = ?", run, *place
        )
        return unpacked(bytes(rows[0][0])) if rows else ()

    def marks(self, run: int, tasks: Sequence[int]) -> dict[int, list[tuple[int, Verdict]]]:
        """(number, verdict) of the finished attempts at some tasks."""
        if not tasks:
            return {}
        holes = ", ".join("?" * len(tasks))
        rows = self._all(
            f"SELECT task, number, verdict FROM {self._attempts(run)} a WHERE run = ? AND task IN "
            f"({holes}) AND verdict IS NOT NULL ORDER BY task, number",
            run,
            *tasks,
        )
        found: dict[int, list[tuple[int, Verdict]]] = {}
        for task, number, verdict in rows:
            place = found.setdefault(int(task), [])
            place.append((int(number), Verdict(int(verdict))))
        return found

    # -- how ---------------------------------------------------------------------------------

    def _attempts(self, run: int | None) -> str:
        """Where attempts are looked for: the view costs a look-up each, and often has none."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        found = self._all(f"SELECT EXISTS (SELECT 1 FROM judgements {where})", *values)
        return self._JUDGED if found[0][0] else "attempts"

    def _where(self, run: int, wanted: Wanted) -> tuple[str, tuple[object, ...]]:
        parts = ["a.run = ?", "a.verdict IS NOT NULL"]
        chosen: list[object] = [run]
        if wanted.verdict is not None:
            parts.append("a.verdict = ?")
            chosen.append(int(wanted.verdict))
        if wanted.why:
            parts.append("a.why = ?")
            chosen.append(wanted.why)
        if wanted.task is not None:
            parts.append("a.task = ?")
            chosen.append(wanted.task)
        return " AND ".join(parts), tuple(chosen)

    def _lines(self, run: int, rest: str, values: tuple[object, ...]) -> list[AttemptLine]:
        # The name is looked up, not joined: then only for the rows that are left in the end.
        rows = self._all(
            "SELECT a.task, (SELECT t.task FROM tasks t WHERE t.key = a.task), a.number, "
            "a.verdict, coalesce(a.why, ''), coalesce(a.detail, ''), a.steps, a.seconds, "
            f"a.tokens, a.cost, a.seed, coalesce(a.finished, '') FROM {self._attempts(run)} a "
            f"WHERE {rest}",
            *values,
        )
        return [
            AttemptLine((int(key), int(number)), task, number, Verdict(verdict), *others)
            for key, task, number, verdict, *others in rows
        ]
