"""The read model of a store: every query about its runs, tasks and attempts, once.

A store asks through its own connection, pages through one that is open for reading only. Every
question is one statement of SQL that both databases understand; where all attempts of a run must
be read, the database counts them.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

from passhat._display import counted
from passhat.errors import InvalidValue, StoreUnavailable
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.stats.outcomes.vocabulary import failure_category, missing_reason, source_words
from passhat.store.database import ReadableStore
from passhat.store.rows import (
    FRESH_PREFIXES,
    AttemptFilter,
    AttemptLine,
    CallCounts,
    Group,
    JudgementSource,
    Origins,
    Place,
    PlannedAttempts,
    RunCounts,
    RunHead,
    StoredJudgement,
    StoredRun,
    TaskCounts,
    protocol_from,
    summarize_run,
    unpack_transcript,
)

__all__ = [
    "ENDED_ROWS",
    "JUDGED_BY_JOIN",
    "NEWEST",
    "WRITE_CALLS",
    "WRITE_ORIGINS",
    "AttemptFilter",
    "AttemptLine",
    "Group",
    "Place",
    "Queries",
    "Reading",
    "RunCounts",
    "RunHead",
    "TaskCounts",
]

Row = tuple[Any, ...]

_CALL_COLUMNS = (
    *("run", "task", "number", "answers", "cut", "cut_at"),
    *("refused", "filtered", "empty", "body"),
)
_ORIGIN_COLUMNS = ("run", "task", "number", "served", "conversation")
WRITE_CALLS, WRITE_ORIGINS = (
    f"INSERT INTO {table} ({', '.join(columns)}) "
    f"VALUES ({', '.join('?' * len(columns))}) ON CONFLICT (run, task, number) DO NOTHING"
    for table, columns in (("calls", _CALL_COLUMNS), ("origins", _ORIGIN_COLUMNS))
)
"""Write the calls of an attempt and where its answers came from. The first stay, as its result
does: a runner that lost an attempt and claimed it again may make it twice."""
NEWEST = (
    "FROM judgements j JOIN attempts a ON a.run = j.run AND a.task = j.task "
    "AND a.number = j.number WHERE NOT EXISTS (SELECT 1 FROM judgements n WHERE n.run = j.run "
    "AND n.task = j.task AND n.number = j.number AND n.key > j.key) {where}"
)
"""Judgements ``j`` that count, with the attempts ``a`` they are about: what the view ``judged``
shows in another way. A sum over all attempts is quicker as a sum over the first words, and then
what these changed.
"""

JUDGED_BY_JOIN = (
    "(SELECT a.run, a.task, a.number, a.seed, a.seconds, a.steps, a.tokens, a.cost, a.finished, "
    + ", ".join(
        f"CASE WHEN j.key IS NULL THEN a.{name} ELSE j.{name} END AS {name}"
        for name in ("verdict", "why", "detail")
    )
    + " FROM attempts a LEFT JOIN (SELECT j.* FROM judgements j WHERE NOT EXISTS (SELECT 1 FROM "
    "judgements n WHERE n.run = j.run AND n.task = j.task AND n.number = j.number "
    "AND n.key > j.key)) j ON j.run = a.run AND j.task = a.task AND j.number = a.number)"
)
"""Rows of the view ``judged`` for PostgreSQL, which then joins once for all attempts instead of
looking up the newest judgement of each: a third of the time over a whole run, and a page that is
filtered comes in milliseconds.
"""

ENDED_ROWS = (
    "SELECT t.task, a.number, a.verdict, coalesce(a.why, ''), coalesce(a.detail, ''), "
    "a.seconds, a.steps, a.cost FROM tasks t "
    "JOIN judged a ON a.run = t.run AND a.task = t.key "
    "WHERE t.run = ? AND a.verdict IS NOT NULL ORDER BY t.position, t.key, a.number"
)
"""(task, number, verdict, why, detail, seconds, steps, cost) of every finished attempt of a run."""


_LOOKED_AT = 5
"""Attempts whose calls are looked at to learn something about a whole run."""
_MESSAGES = 20_000
"""Failures whose messages are counted: a page must not read the details of a million."""
_BODIES_AT_ONCE = 1_000
_FEWEST_SAME = 3
_CHOICES = frozenset(("yes", "no", "true", "false"))
"""Attempts whose calls are in memory at the same time."""


class Queries:
    """Queries about runs, tasks and attempts; ``run`` is the key of a run, not its id."""

    def __init__(self, store: ReadableStore) -> None:
        self._store = store

    def _all(self, statement: str, *values: object) -> list[Row]:
        return self._store.read(statement, values)

    # -- runs --------------------------------------------------------------------------------

    def heads(self, run: int | None = None) -> list[RunHead]:
        """Every run, the oldest first, or one of them; two look-ups in an index each."""
        where, values = ("", ()) if run is None else ("WHERE r.key = ? ", (run,))
        rows = self._all(
            "SELECT r.key, r.id, r.agent, r.suite, r.name, r.planned, r.started, "
            "coalesce((SELECT max(a.finished) FROM attempts a "
            "WHERE a.run = r.key AND a.finished IS NOT NULL), ''), "
            f"EXISTS (SELECT 1 FROM {self._store.open_attempts} "
            "WHERE a.run = r.key AND a.finished IS NULL), r.total, coalesce(r.revision, '') "
            f"FROM runs r {where}ORDER BY r.started, r.key",
            *values,
        )
        return [RunHead(*(*row[:8], bool(row[8]), *row[9:])) for row in rows]

    def newest_judgements(self, key: int) -> dict[int, int]:
        """Runs with judgements newer than this one, and the newest of each."""
        rows = self._all("SELECT run, max(key) FROM judgements WHERE key > ? GROUP BY run", key)
        return {int(run): int(newest) for run, newest in rows}

    def runs(self, run: int | None = None) -> list[StoredRun]:
        """Every run with its counts, the oldest first, or one of them."""
        counts = self.counts(run)
        where, values = ("", ()) if run is None else ("AND key = ?", (run,))
        allocations: dict[int, str] = dict(
            self._all(
                f"SELECT key, allocation FROM runs WHERE allocation IS NOT NULL {where}", *values
            )
        )
        return [
            summarize_run(head, counts.get(head.key, RunCounts()), allocations.get(head.key, ""))
            for head in self.heads(run)
        ]

    def find(self, word: str, place: str) -> StoredRun:
        """A run by its name, its id or the beginning of its id; ``place`` is for errors."""
        rows = self._all("SELECT key, id, name FROM runs ORDER BY started, key")
        keys = {run: key for key, run, _ in rows}
        ids_by_name = [run for _, run, name in rows if name == word] if word else []
        if not ids_by_name and (match := re.fullmatch(r"latest(?:~(\d+))?", word)):
            back = int(match[1] or 0)
            ids = [run for _, run, name in rows if not name.startswith(FRESH_PREFIXES)]
            if back < len(ids):
                return self.runs(keys[ids[-1 - back]])[0]
            raise InvalidValue(
                f"{place}: there is no run {word!r}, only {counted(len(ids), 'run')}.",
                hint="passhat runs lists them." if ids else "passhat run makes one.",
            )
        matches = ids_by_name or [run for run in keys if run.startswith(word)]
        if len(matches) == 1:
            return self.runs(keys[matches[0]])[0]
        listing = ", ".join((matches or list(keys))[-10:])
        what = "there is no run"
        if matches:
            what = f"{len(matches)} runs {'are named' if ids_by_name else 'start with'}"
        raise InvalidValue(f"{place}: {what} {word!r}.", hint=f"Runs here: {listing or 'none'}.")

    def counts(self, run: int | None = None) -> dict[int, RunCounts]:
        """Attempts counted for every run, or for one of them."""
        where, values = ("", ()) if run is None else ("AND {} = ?", (run,))
        tasks = self._all(
            f"SELECT run, count(*) FROM tasks WHERE true {where.format('run')} GROUP BY run",
            *values,
        )
        # So that the index over finished attempts is enough. FILTER needs SQLite 3.30 (2019).
        finished_rows = self._all(
            "SELECT run, count(*), count(*) FILTER (WHERE verdict = 1), "
            "count(*) FILTER (WHERE verdict = -1) FROM attempts "
            f"WHERE verdict IS NOT NULL {where.format('run')} GROUP BY run",
            *values,
        )
        counts = {key: [count, 0, 0, 0] for key, count in tasks}
        for key, *numbers in finished_rows:
            counts[key] = [counts.get(key, [0])[0], *numbers]
        # Judgements that came later are few: what they changed is added, rather than looked up for
        # every attempt there is.
        changes = self._all(
            f"SELECT j.run, a.verdict, j.verdict, count(*) "
            f"{NEWEST.format(where=where.format('j.run'))} GROUP BY j.run, a.verdict, j.verdict",
            *values,
        )
        for key, first, newest, count in changes:
            totals = counts.setdefault(key, [0, 0, 0, 0])
            for verdict, delta in ((first, -count), (newest, count)):
                if verdict is not None:
                    totals[1] += delta
                    totals[2] += delta * (verdict == Verdict.PASSED)
                    totals[3] += delta * (verdict == Verdict.MISSING)
        return {key: RunCounts(*totals) for key, totals in counts.items()}

    def groups(self, run: int) -> list[Group]:
        """Finished attempts by verdict and category, the most frequent first."""
        rows = self._all(
            "SELECT verdict, coalesce(why, ''), count(*), sum(seconds), sum(steps), sum(tokens), "
            f"sum(cost) FROM {self._attempts(run)} a WHERE run = ? AND verdict IS NOT NULL "
            "GROUP BY verdict, coalesce(why, '')",
            run,
        )
        # Sorted here: databases do not agree on the order of text.
        groups = [Group(Verdict(row[0]), *row[1:]) for row in rows]
        return sorted(groups, key=lambda group: (-group.attempts, group.why, group.verdict))

    def protocol(self, run: int) -> Protocol:
        """The protocol of a run."""
        ((text,),) = self._all("SELECT protocol FROM runs WHERE key = ?", run)
        return protocol_from(json.loads(text))

    def plan_of(self, run: int) -> PlannedAttempts:
        """Attempts planned for the tasks of a run."""
        ((count, text),) = self._all("SELECT planned, allocation FROM runs WHERE key = ?", run)
        return PlannedAttempts.from_text(text or "", count)

    # -- tasks -------------------------------------------------------------------------------

    def labels(self, run: int) -> list[str]:
        """The different labels that tasks with a finished attempt carry, in their order."""
        rows = self._all(
            "SELECT labels FROM tasks t WHERE run = ? AND EXISTS (SELECT 1 FROM attempts a "
            "WHERE a.run = t.run AND a.task = t.key AND a.verdict IS NOT NULL) "
            "GROUP BY labels ORDER BY min(position)",
            run,
        )
        return [text for (text,) in rows]

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
        labels: Mapping[str, str] = json.loads(rows[0][0]) if rows else {}
        return labels

    # -- attempts ----------------------------------------------------------------------------

    def lines(
        self, run: int, wanted: AttemptFilter, size: int, after: Place | None
    ) -> list[AttemptLine]:
        """Some attempts in the order of the suite, from a place on."""
        where, values = self._where(run, wanted)
        if after is not None:
            # A row value compares in the order of the primary key: a page begins where the last
            # one ended, while OFFSET would read all rows before it.
            where, values = f"{where} AND (a.task, a.number) > (?, ?)", (*values, *after)
        return self._lines(run, f"{where} ORDER BY a.task, a.number LIMIT ?", (*values, size))

    def newest(
        self, run: int, wanted: AttemptFilter, size: int, before: tuple[str, int, int] | None = None
    ) -> list[AttemptLine]:
        """A page of attempts, newest first; ``before`` is the position of the last one seen."""
        where, values = self._where(run, wanted)
        where += " AND a.finished IS NOT NULL"  # so that the index over those is used
        if before is not None:
            where += " AND (a.finished, a.task, a.number) < (?, ?, ?)"
            values = (*values, *before)
        order = "ORDER BY a.finished DESC, a.task DESC, a.number DESC LIMIT ?"
        return self._lines(run, f"{where} {order}", (*values, size))

    def neighbor(
        self, run: int, wanted: AttemptFilter, place: Place, *, before: bool
    ) -> AttemptLine | None:
        """The attempt just before or after a place."""
        where, values = self._where(run, wanted)
        sign, way = ("<", "DESC") if before else (">", "ASC")
        order = f"ORDER BY a.task {way}, a.number {way} LIMIT 1"
        lines = self._lines(
            run, f"{where} AND (a.task, a.number) {sign} (?, ?) {order}", (*values, *place)
        )
        return lines[0] if lines else None

    def line(self, run: int, place: Place) -> AttemptLine | None:
        """A finished attempt."""
        where, values = self._where(run, AttemptFilter(task=place[0]))
        lines = self._lines(run, f"{where} AND a.number = ?", (*values, place[1]))
        return lines[0] if lines else None

    def judgements(self, run: int, place: Place) -> tuple[StoredJudgement, ...]:
        """Every judgement of an attempt, oldest first; the last counts."""
        rows = self._all(
            "SELECT verdict, coalesce(why, ''), coalesce(detail, ''), 'judge', finished, '' "
            "FROM attempts WHERE run = ? AND task = ? AND number = ? AND verdict IS NOT NULL",
            run,
            *place,
        )
        # By the key, which the database hands out; times come from the clocks of several machines.
        rows += self._all(
            "SELECT verdict, why, detail, source, at, judge_fingerprint FROM judgements "
            "WHERE run = ? AND task = ? AND number = ? ORDER BY key",
            run,
            *place,
        )
        return tuple(
            StoredJudgement(
                Verdict(verdict), why, detail, JudgementSource(source), at or "", fingerprint
            )
            for verdict, why, detail, source, at, fingerprint in rows
        )

    def transcript(self, run: int, place: Place) -> Sequence[Mapping[str, str]]:
        """The conversation of an attempt; empty when none was kept."""
        rows = self._all(
            "SELECT body FROM transcripts WHERE run = ? AND task = ? AND number = ?", run, *place
        )
        return unpack_transcript(bytes(rows[0][0])) if rows else ()

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
        marks: dict[int, list[tuple[int, Verdict]]] = {}
        for task, number, verdict in rows:
            place = marks.setdefault(int(task), [])
            place.append((int(number), Verdict(int(verdict))))
        return marks

    def calls(self, run: int, place: Place) -> list[dict[str, Any]]:
        """The calls to models in an attempt, as plain data; empty where none are recorded."""
        rows = self._all(
            "SELECT body FROM calls WHERE run = ? AND task = ? AND number = ?", run, *place
        )
        calls: list[dict[str, Any]] = json.loads(zlib.decompress(bytes(rows[0][0]))) if rows else []
        return calls

    def call_counts(self, run: int | None) -> CallCounts:
        """How the answers of a run's models ended."""
        ((answers, cut, low, high, refused, filtered, empty),) = self._all(
            "SELECT sum(answers), sum(cut), min(cut_at), max(cut_at), sum(refused), sum(filtered), "
            "sum(empty) FROM calls WHERE run = ?",
            run,
        )
        return CallCounts(
            *(int(answers or 0), int(cut or 0), low, high),
            *(int(refused or 0), int(filtered or 0), int(empty or 0)),
        )

    def origins(self, run: int | None) -> Origins:
        """Which models answered a run's attempts, and what tells their conversations apart."""
        served = self._all(
            "SELECT served, count(*) FROM origins WHERE run = ? GROUP BY served ORDER BY served",
            run,
        )
        ((contexts, distinct, references),) = self._all(
            "SELECT count(*) FILTER (WHERE conversation NOT LIKE 'ref-%'), count(DISTINCT "
            "CASE WHEN conversation LIKE 'ref-%' THEN NULL ELSE conversation END), "
            "count(*) FILTER (WHERE conversation LIKE 'ref-%') FROM origins "
            "WHERE run = ? AND conversation <> ''",
            run,
        )
        models = {tuple(map(tuple, json.loads(text))): int(count) for text, count in served if text}
        return Origins(models, int(contexts), int(distinct), int(references))

    def price_sources(self, run: int | None) -> list[str]:
        """The price tables that costs of a run come from: of its first and its last attempt."""
        sources: dict[str, None] = {}
        for order in ("", " DESC"):
            rows = self._all(
                "SELECT body FROM calls WHERE run = ? "
                f"ORDER BY task{order}, number{order} LIMIT {_LOOKED_AT}",
                run,
            )
            for (body,) in rows:
                calls = json.loads(zlib.decompress(bytes(body)))
                sources |= dict.fromkeys(call["priced"] for call in calls if call.get("priced"))
        return list(sources)

    def leaks(self, run: int) -> list[tuple[str, int, str]]:
        """(task, number, the attempt whose reference leaked), in order."""
        return self._all(
            "SELECT t.task, a.number, a.leak FROM attempts a JOIN tasks t ON t.key = a.task "
            "WHERE a.run = ? AND a.leak IS NOT NULL ORDER BY t.position, a.number",
            run,
        )

    def first_failure(self, run: int, task: int) -> int | None:
        """The number of the first failed attempt at a task."""
        ((number,),) = self._all(
            "SELECT min(number) FROM judged WHERE run = ? AND task = ? AND verdict = 0", run, task
        )
        return None if number is None else int(number)

    def failure_messages(
        self, run: int | None, verdict: Verdict = Verdict.FAILED, task: int | None = None
    ) -> dict[str, dict[str, int]]:
        """How often each message came with a category of failure, among the first failures.

        With the verdict missing, with a reason among the first missing attempts; with a task, at
        it alone.
        """
        if run is None:
            return {}
        where, values = ("", ()) if task is None else ("AND task = ? ", (task,))
        # The inner query stops at its limit. It has a name, since PostgreSQL asks for one.
        rows = self._all(
            f"SELECT why, detail, count(*) FROM (SELECT why, detail FROM {self._attempts(run)} a "
            f"WHERE run = ? {where}AND verdict = {int(verdict)} LIMIT {_MESSAGES}) AS failures "
            "GROUP BY why, detail",
            run,
            *values,
        )
        category_of = missing_reason if verdict is Verdict.MISSING else failure_category
        messages: dict[str, dict[str, int]] = {}
        for why, detail, count in rows:
            category = str(category_of(why or ""))
            messages.setdefault(category, {})[detail or source_words(why or "")] = count
        return messages

    def find_same_answer(self, run: int | None) -> str:
        """The text that every attempt gave, where it cannot be an answer to every question.

        Empty unless all attempts at three or more tasks have a verdict, none passed, and the right
        answers differ. One letter, yes or no may be meant as an answer.
        """
        ((lowest, highest, tasks, passed, unknown),) = self._all(
            "SELECT min(answer), max(answer), count(DISTINCT task), max(verdict), "
            "count(*) - count(nullif(answer, '')) FROM judged "
            "WHERE run = ? AND verdict IS NOT NULL",
            run,
        )
        if lowest is None or lowest != highest or tasks < _FEWEST_SAME or passed or unknown:
            return ""
        rows = self._all(
            "SELECT body FROM transcripts WHERE run = ? AND number = "
            "(SELECT min(number) FROM attempts WHERE run = ?) ORDER BY task LIMIT "
            f"{_BODIES_AT_ONCE}",
            run,
            run,
        )
        texts = [
            {entry["role"]: entry["text"] for entry in unpack_transcript(bytes(body))}
            for (body,) in rows
        ]
        answers = {words.get("agent", "").strip() for words in texts}
        expected = {words.get("expected", "") for words in texts}
        if len(answers) != 1 or (len(texts) > 1 and len(expected) == 1 and "" not in expected):
            return ""
        (answer,) = answers
        return "" if len(answer) < 2 or answer.lower() in _CHOICES else answer

    # -- how ---------------------------------------------------------------------------------

    def _attempts(self, run: int | None) -> str:
        """The table of attempts, or a slower view if there are later judgements."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        rows = self._all(f"SELECT EXISTS (SELECT 1 FROM judgements {where})", *values)
        return self._store.judged_attempts if rows[0][0] else "attempts"

    def _where(self, run: int, wanted: AttemptFilter) -> tuple[str, tuple[object, ...]]:
        parts = ["a.run = ?", "a.verdict IS NOT NULL"]
        parameters: list[object] = [run]
        if wanted.verdict is not None:
            parts.append("a.verdict = ?")
            parameters.append(int(wanted.verdict))
        if wanted.why:
            parts.append("a.why = ?")
            parameters.append(wanted.why)
        if wanted.task is not None:
            parts.append("a.task = ?")
            parameters.append(wanted.task)
        return " AND ".join(parts), tuple(parameters)

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


class Reading(Queries):
    """A read-only view of a store for pages; see :func:`passhat.store.open_reading`.

    May be used from several threads; they take turns. ``path`` is where the store is, as the user
    named it, without a password.
    """

    def __init__(self, store: ReadableStore) -> None:
        super().__init__(store)
        self.path = store.path
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; later queries fail."""
        with self._lock:
            self._store.close()

    def change(self) -> object:
        """Return a value that differs after every write."""
        with self._lock:
            return self._store.data_version()

    def wait(self, seconds: float) -> bool:
        """Wait for a write, at most so long; return whether there was one.

        The first call begins to watch and is ``True``: existing data have to be read once. A thread
        that waits needs a reading of its own.
        """
        return self._store.changes(seconds)

    def _all(self, statement: str, *values: object) -> list[Row]:
        with self._lock:
            try:
                return super()._all(statement, *values)
            except StoreUnavailable as error:
                error.hint = "The page looks again by itself."
                raise
