"""Numbers that the database counts itself, so that a hundred million attempts need no memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from passhat.outcomes import MeasureSum, Verdict
from passhat.outcomes.attempts import MEASURES
from passhat.store.database import Database
from passhat.store.records import Made

__all__ = ["Counts", "Usage", "counts", "made", "used"]

_FEW = 200
"""Up to so many tasks with gaps are asked for one by one."""
_BLOCK = 10_000

_SUMMED = "".join(
    f", count({name}) AS {name}_n, sum({name}) AS {name}_sum, "
    f"count({name}) FILTER (WHERE verdict = 1) AS {name}_c"
    for name in MEASURES
)
_COUNTED = (
    f"SELECT t.task, t.labels, a.n, a.c, a.m"
    f"{''.join(f', a.{name}_n, a.{name}_sum, a.{name}_c' for name in MEASURES)} "
    "FROM tasks t JOIN (SELECT task, count(*) FILTER (WHERE verdict >= 0) AS n, "
    "count(*) FILTER (WHERE verdict = 1) AS c, "
    f"count(*) FILTER (WHERE verdict = -1) AS m{_SUMMED} FROM {{attempts}} "
    "WHERE run = ? AND verdict IS NOT NULL GROUP BY task) a ON a.task = t.key "
    "WHERE t.run = ? ORDER BY t.position, t.key"
)

Stream = Callable[[str, Sequence[Any], int], Iterator[list[tuple[Any, ...]]]]


@dataclass(frozen=True, slots=True)
class Counts:
    """A run, task by task: scored, passed and missing; and how often each reason was given.

    ``labels`` is the text of every task's labels, as it is stored.
    """

    tasks: list[str]
    labels: list[str]
    n: array[int]
    c: array[int]
    m: array[int]
    reasons: Mapping[Verdict, Mapping[str, int]]
    measures: Mapping[str, MeasureSum]


@dataclass(frozen=True, slots=True)
class Usage:
    """What attempts used: sums and the largest, and how many that was; ``unknown`` are apart."""

    tokens: float = 0.0
    cost: float = 0.0
    most_tokens: float = 0.0
    most_cost: float = 0.0
    made: int = 0
    unknown: int = 0


def used(database: Database, run: int, *, priced: bool) -> Usage:
    """Add up tokens and money. An attempt that used nothing is not counted as made."""
    known = f"tokens IS NOT NULL{' AND cost IS NOT NULL' if priced else ''}"
    row = database.execute(
        "SELECT coalesce(sum(tokens), 0), coalesce(sum(coalesce(cost, 0)), 0), "
        "coalesce(max(tokens), 0), coalesce(max(coalesce(cost, 0)), 0), "
        "count(*) FILTER (WHERE tokens > 0 OR cost > 0) "
        f"FROM attempts WHERE run = ? AND verdict IS NOT NULL AND {known}",
        (run,),
    ).fetchone()
    ((unknown,),) = database.execute(
        f"SELECT count(*) FROM attempts WHERE run = ? AND verdict IS NOT NULL AND NOT ({known})",
        (run,),
    ).fetchall()
    tokens, cost, most_tokens, most_cost = map(float, row[:4])
    return Usage(tokens, cost, most_tokens, most_cost, int(row[4]), int(unknown))


def counts(stream: Stream, database: Database, run: int) -> Counts:
    """Group the finished attempts of a run by task."""
    source = _attempts(database, run)
    reasons = _reasons(database, source, run)
    found = Counts([], [], array("q"), array("q"), array("q"), reasons, {})
    sums = {name: [0, 0.0, 0] for name in MEASURES}
    same: dict[str, str] = {}
    for block in stream(_COUNTED.format(attempts=source), (run, run), _BLOCK):
        for task, labels, n, c, m, *measured in block:
            found.tasks.append(task)
            found.labels.append(same.setdefault(labels, labels))
            found.n.append(n)
            found.c.append(c)
            found.m.append(m)
            for place, total in enumerate(sums.values()):
                recorded, amount, passed = measured[3 * place : 3 * place + 3]
                if recorded:
                    total[0] += recorded
                    total[1] += amount
                    total[2] += passed
    measures = {
        name: MeasureSum(int(recorded), total, int(passed))
        for name, (recorded, total, passed) in sums.items()
        if recorded
    }
    return replace(found, measures=measures)


def _attempts(database: Database, run: int) -> str:
    """Where attempts are counted: the view costs a look-up each, and mostly shows nothing new."""
    asked = "SELECT count(*) FROM (SELECT 1 FROM judgements WHERE run = ? LIMIT 1) AS any_of_them"
    return "judged" if database.execute(asked, (run,)).fetchone()[0] else "attempts"


def _reasons(database: Database, source: str, run: int) -> dict[Verdict, dict[str, int]]:
    found: dict[Verdict, dict[str, int]] = {}
    for verdict, why, count in database.execute(
        f"SELECT verdict, why, count(*) FROM {source} WHERE run = ? AND verdict <= 0 "
        "GROUP BY verdict, why ORDER BY count(*) DESC, why",
        (run,),
    ):
        found.setdefault(Verdict(verdict), {})[why or ""] = count
    return found


def made(database: Database, run: int) -> Made:
    """The attempts that are there; without looking at each where they stand without a gap, which
    is nearly always so.
    """
    found: dict[str, int] = {}
    gaps: list[tuple[str, int]] = []
    for task, key, count, low, high in database.execute(
        "SELECT t.task, t.key, a.count, a.low, a.high FROM tasks t JOIN ("
        "SELECT task, count(*) AS count, min(number) AS low, max(number) AS high "
        "FROM attempts WHERE run = ? GROUP BY task) a ON a.task = t.key WHERE t.run = ?",
        (run, run),
    ):
        if high - low + 1 == count:
            found[task] = (1 << high + 1) - (1 << low)
        else:
            gaps.append((task, key))
    if len(gaps) <= _FEW:
        for task, key in gaps:
            rows = database.execute(
                "SELECT number FROM attempts WHERE run = ? AND task = ?", (run, key)
            )
            found[task] = sum(1 << number for (number,) in rows)
        return Made.of_bits(found)
    rows = database.execute(
        "SELECT t.task, a.number FROM attempts a JOIN tasks t ON t.key = a.task WHERE a.run = ?",
        (run,),
    )
    return Made(rows)
