"""Numbers counted by the database itself, so that a hundred million attempts need no memory."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passhat.stats.arrays import IntArray
from passhat.stats.outcomes import MeasureSum, Verdict
from passhat.stats.outcomes.attempts import MEASURES, MeasureColumns
from passhat.stats.outcomes.cells import PackedNames
from passhat.stats.outcomes.rewards import REWARD_TOLERANCE
from passhat.store.database import Database
from passhat.store.queries import NEWEST
from passhat.store.rows import AttemptSet

_FEW = 200
"""Up to so many tasks with gaps are asked for one by one."""
_BLOCK = 10_000
_NAN = float("nan")

_TASKS = "SELECT key, task, labels FROM tasks WHERE run = ? ORDER BY position, key"
# In the order of the index attempts_ended: one pass over it, no sorting, and never the table.
_ENDED = (
    "SELECT task, verdict, why, count(*) FROM attempts WHERE run = ? AND verdict IS NOT NULL "
    "GROUP BY task, verdict, why"
)
_IN_THIS_RUN = NEWEST.format(where="AND j.run = ?")
_CHANGED = (
    f"SELECT j.task, a.verdict, a.why, j.verdict, j.why, count(*) {_IN_THIS_RUN} "
    "GROUP BY j.task, a.verdict, a.why, j.verdict, j.why"
)
_SUMMED = (
    "SELECT "
    + ", ".join(
        f"count({name}), sum({name}), count({name}) FILTER (WHERE verdict = 1)" for name in MEASURES
    )
    + " FROM attempts WHERE run = ? AND verdict IS NOT NULL"
)
_SUMMED_CHANGED = (
    f"SELECT a.verdict, j.verdict, {', '.join(f'count(a.{name})' for name in MEASURES)} "
    f"{_IN_THIS_RUN} AND a.verdict IS NOT NULL GROUP BY a.verdict, j.verdict"
)
_ALIKE = (
    "SELECT count(*), coalesce(sum(CASE WHEN low = high THEN 1 ELSE 0 END), 0) FROM ("
    "SELECT count(*) AS made, count(nullif(answer, '')) AS known, min(answer) AS low, "
    "max(answer) AS high FROM attempts WHERE run = ? AND verdict IS NOT NULL GROUP BY task"
    ") AS tasks_of_it WHERE made >= 2 AND known = made"
)

_JUDGED = "SELECT 1 FROM judgements WHERE run = ? LIMIT 1"
_SCORED = "SELECT 1 FROM attempts WHERE run = ? AND score IS NOT NULL LIMIT 1"
_TAKEN = (
    "SELECT task, verdict, {names} FROM {attempts} "
    "WHERE run = ? AND verdict IS NOT NULL ORDER BY task, number"
)

Stream = Callable[[str, Sequence[Any], int], Iterator[list[tuple[Any, ...]]]]
_ROWS = (
    "SELECT t.task, a.number, a.verdict, a.why, a.seconds, a.steps, a.tokens, a.cost, a.seed, "
    "a.answer, a.score, t.labels{columns} FROM tasks t JOIN {attempts} a ON a.run = t.run AND "
    "a.task = t.key {joins}WHERE t.run = ? AND a.run = ? AND a.verdict IS NOT NULL "
    "ORDER BY {order}"
)
_SCORES = (
    "SELECT min(score), max(score), max(CASE WHEN score = -1 OR (score IN (0, 1) AND "
    "score = verdict) THEN 0 ELSE 1 END) FROM judged WHERE run = ? AND verdict >= 0 "
    "AND score IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """A run, task by task: scored, passed and missing; and how often each reason was given.

    ``labels`` is the text of every task's labels, as it is stored.
    """

    tasks: PackedNames
    labels: list[str]
    n: IntArray
    c: IntArray
    m: IntArray
    reasons: Mapping[Verdict, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Usage of attempts: sums, largest values and number; ``unknown`` are counted apart."""

    tokens: float = 0.0
    cost: float = 0.0
    most_tokens: float = 0.0
    most_cost: float = 0.0
    attempt_count: int = 0
    unknown: int = 0


def load_usage(database: Database, run: int, *, priced: bool) -> RunUsage:
    """Add up tokens and money. An attempt that used nothing is not counted as made."""
    is_recorded = f"tokens IS NOT NULL{' AND cost IS NOT NULL' if priced else ''}"
    row = database.execute(
        "SELECT coalesce(sum(tokens), 0), coalesce(sum(coalesce(cost, 0)), 0), "
        "coalesce(max(tokens), 0), coalesce(max(coalesce(cost, 0)), 0), "
        "count(*) FILTER (WHERE tokens > 0 OR cost > 0) "
        f"FROM attempts WHERE run = ? AND verdict IS NOT NULL AND {is_recorded}",
        (run,),
    ).fetchone()
    ((unknown,),) = database.execute(
        "SELECT count(*) FROM attempts WHERE run = ? AND verdict IS NOT NULL "
        f"AND NOT ({is_recorded})",
        (run,),
    ).fetchall()
    tokens, cost, most_tokens, most_cost = map(float, row[:4])
    return RunUsage(tokens, cost, most_tokens, most_cost, int(row[4]), int(unknown))


def counts(stream: Stream, run: int) -> Counts:
    """Counts of the finished attempts of a run by task, each with its newest judgement."""
    tasks = PackedNames()
    labels: list[str] = []
    keys = array("q")
    same: dict[str, str] = {}
    for block in stream(_TASKS, (run,), _BLOCK):
        tasks.extend(task for _, task, _ in block)
        keys.extend(key for key, _, _ in block)
        labels.extend(same.setdefault(text, text) for _, _, text in block)
    tally = _Tally(np.frombuffer(keys, np.int64) if keys else np.zeros(0, np.int64))
    for block in stream(_ENDED, (run,), _BLOCK):
        tally.add(block)
    for block in stream(_CHANGED, (run,), _BLOCK):
        before = [(task, first, why, -count) for task, first, why, _, _, count in block]
        tally.add([row for row in before if row[1] is not None])
        tally.add([(task, newest, why, count) for task, _, _, newest, why, count in block])
    m, n, c = tally.by_verdict
    n += c
    rows = np.flatnonzero(n + m)
    if len(rows) == len(tasks):
        return Counts(tasks, labels, n, c, m, tally.reasons())
    return Counts(
        tasks.take(rows),
        [labels[row] for row in rows],
        *(n[rows], c[rows], m[rows]),
        tally.reasons(),
    )


class _Tally:
    """Counts by verdict and task: four numbers per task, in arrays."""

    def __init__(self, keys: IntArray) -> None:
        # Tasks are mostly written down in their order, and then their keys ascend already.
        self._places = None if (np.diff(keys) > 0).all() else np.argsort(keys)
        self._keys = keys if self._places is None else keys[self._places]
        self.by_verdict = np.zeros((3, len(keys)), np.int64)
        self._reasons: Counter[tuple[int, str]] = Counter()

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take (task, verdict, why, count)."""
        if not rows or not len(self._keys):
            return
        tasks, verdicts, words, increments = zip(*rows, strict=True)
        keys = np.array(tasks, np.int64)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        has_task = (
            self._keys[places] == keys
        )  # an attempt without its task is a damage, not a count
        places = places if self._places is None else self._places[places]
        columns = np.array(verdicts, np.int64) + 1
        np.add.at(
            self.by_verdict,
            (columns[has_task], places[has_task]),
            np.array(increments, np.int64)[has_task],
        )
        for verdict, why, count in zip(verdicts, words, increments, strict=True):
            if verdict != Verdict.PASSED:
                self._reasons[verdict, why or ""] += count

    def reasons(self) -> dict[Verdict, dict[str, int]]:
        """How often each category or reason occurs, the most frequent first."""
        reasons: dict[Verdict, dict[str, int]] = {}
        for (verdict, why), count in sorted(
            self._reasons.items(), key=lambda item: (-item[1], item[0][1])
        ):
            if count:
                reasons.setdefault(Verdict(verdict), {})[why] = count
        return reasons


def measure_sums(database: Database, run: int) -> dict[str, MeasureSum]:
    """Seconds, steps, tokens and cost, where they were recorded, all attempts together."""
    sums = database.execute(_SUMMED, (run,)).fetchone()
    passed = [int(count) for count in sums[2::3]]
    for first, newest, *counts in database.execute(_SUMMED_CHANGED, (run,)):
        sign = (newest == Verdict.PASSED) - (first == Verdict.PASSED)
        passed = [total + sign * int(count) for total, count in zip(passed, counts, strict=True)]
    return {
        name: MeasureSum(int(sums[3 * place]), float(sums[3 * place + 1]), passed[place])
        for place, name in enumerate(MEASURES)
        if sums[3 * place]
    }


def load_measures(stream: Stream, run: int) -> MeasureColumns:
    """Measures of every finished attempt, with its newest verdict; in the order of the tasks."""
    return _load_columns(stream, run, MEASURES)


def load_rows(
    stream: Stream, run: int, size: int, *, details: bool
) -> Iterator[list[tuple[Any, ...]]]:
    """Finished attempts in order of tasks and attempts: see :meth:`passhat.store.Store.rows`."""
    joins = "".join(
        f"LEFT JOIN {table} {x} ON {x}.run = a.run AND {x}.task = a.task AND {x}.number = a.number "
        for table, x in (("transcripts", "x"), ("calls", "c"))
        if details
    )
    keys = [key for block in stream(_TASKS, (run,), _BLOCK) for key, *_ in block]
    # Tasks are nearly always stored in their order: the primary key of attempts then has it, too.
    # Any other order is sorted by the database, conversations included.
    order = "a.task, a.number" if keys == sorted(keys) else "t.position, t.key, a.number"
    statement = _ROWS.format(
        columns=", a.detail, a.retries, x.body, c.cut" if details else "",
        attempts=_attempts_table(stream, run),
        joins=joins,
        order=order,
    )
    yield from stream(statement, (run, run), size)


def has_graded_scores(stream: Stream, run: int) -> bool:
    """Whether scores say more than the verdicts, all of them on [0, 1]; without sorting.

    The same as :func:`passhat.stats.outcomes.rewards.grade`, which needs all of them at once.
    """
    if not any(True for _ in stream(_SCORED, (run,), 1)):
        return False
    (((low, high, is_graded),),) = stream(_SCORES, (run,), 1)
    return bool(is_graded) and low >= -REWARD_TOLERANCE and high <= 1 + REWARD_TOLERANCE


def _attempts_table(stream: Stream, run: int) -> str:
    """The view of judged attempts, or the table: the view costs a look-up for each attempt."""
    return "judged" if any(True for _ in stream(_JUDGED, (run,), 1)) else "attempts"


def load_scores(stream: Stream, run: int) -> MeasureColumns | None:
    """The score of every finished attempt, in the order of the tasks; ``None`` without any."""
    has_scores = any(True for _ in stream(_SCORED, (run,), 1))
    return _load_columns(stream, run, ("score",)) if has_scores else None


def _load_columns(stream: Stream, run: int, names: Sequence[str]) -> MeasureColumns:
    keys, verdicts = array("q"), array("b")
    columns = [array("d") for _ in names]
    statement = _TAKEN.format(names=", ".join(names), attempts=_attempts_table(stream, run))
    for block in stream(statement, (run,), _BLOCK):
        task, verdict, *cells = zip(*block, strict=True)
        keys.extend(task)
        verdicts.extend(verdict)
        for column, numbers in zip(columns, cells, strict=True):
            column.extend(_NAN if number is None else number for number in numbers)
    task_keys = array("q")
    for block in stream(
        "SELECT key FROM tasks WHERE run = ? ORDER BY position, key", (run,), _BLOCK
    ):
        task_keys.extend(key for (key,) in block)
    # The place of each attempt's task in the order of the suite; -1 is a damage, not an attempt.
    sorting = np.argsort(_array(task_keys, np.int64))
    places = np.searchsorted(_array(task_keys, np.int64), _array(keys, np.int64), sorter=sorting)
    places = np.minimum(places, len(task_keys) - 1)
    rank = np.where(_array(task_keys, np.int64)[sorting[places]] == keys, sorting[places], -1)
    rows = np.argsort(rank, kind="stable")[int((rank < 0).sum()) :]
    _, starts = np.unique(rank[rows], return_index=True)
    return MeasureColumns(
        np.append(starts, len(rows)),
        _array(verdicts, np.int8)[rows],
        {
            name: _array(column, np.float64)[rows]
            for name, column in zip(names, columns, strict=True)
        },
    )


def _array(numbers: array[Any], kind: type[Any]) -> Any:
    return np.frombuffer(numbers, kind) if numbers else np.zeros(0, kind)


def count_same_answers(database: Database, run: int) -> tuple[int, int]:
    """Number of tasks with several recorded answers, and of those where all answers are equal."""
    several, same = database.execute(_ALIKE, (run,)).fetchone()
    return int(several), int(same)


def load_attempts(
    database: Database, run: int, *, finished: bool = False, ended: bool = False
) -> AttemptSet:
    """The attempts that are there; those with a verdict; or those that have ended.

    Where a task's attempts have no gap, which is nearly always so, they are not looked at one by
    one.
    """
    bits: dict[str, int] = {}
    source = "judged" if finished else "attempts"
    where = " AND verdict >= 0" if finished else " AND verdict IS NOT NULL" if ended else ""
    gaps: list[tuple[str, int]] = []
    for task, key, count, low, high in database.execute(
        "SELECT t.task, t.key, a.count, a.low, a.high FROM tasks t JOIN ("
        "SELECT task, count(*) AS count, min(number) AS low, max(number) AS high "
        f"FROM {source} WHERE run = ?{where} GROUP BY task) a ON a.task = t.key WHERE t.run = ?",
        (run, run),
    ):
        if high - low + 1 == count:
            bits[task] = (1 << high + 1) - (1 << low)
        else:
            gaps.append((task, key))
    if len(gaps) <= _FEW:
        for task, key in gaps:
            rows = database.execute(
                f"SELECT number FROM {source} WHERE run = ? AND task = ?{where}", (run, key)
            )
            bits[task] = sum(1 << number for (number,) in rows)
        return AttemptSet.of_bits(bits)
    rows = database.execute(
        f"SELECT t.task, a.number FROM {source} a JOIN tasks t ON t.key = a.task "
        f"WHERE a.run = ?{where.replace('verdict', 'a.verdict')}",
        (run,),
    )
    return AttemptSet(rows)
