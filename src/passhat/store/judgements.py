"""Later judgements of attempts: the judge again, or a person.

The first judgement stays as it was written. The newest judgement counts, which the view
``judged`` of the database shows.
"""

from __future__ import annotations

from passhat.store.database import Database
from passhat.store.rows import StoredJudgement

__all__ = ["ENDED_ROWS", "JUDGED_BY_JOIN", "NEWEST", "add", "measures"]

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


def add(db: Database, run: int, task: int, number: int, judgement: StoredJudgement) -> None:
    """Store a judgement in addition to earlier ones."""
    db.execute(
        "INSERT INTO judgements (run, task, number, verdict, why, detail, judge_fingerprint, at, "
        "source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(run, task, number, int(judgement.verdict), judgement.why, judgement.detail),
            *(judgement.judge_fingerprint, judgement.at, str(judgement.source)),
        ),
    )


def measures(
    db: Database, agent: str, suite: str, most: int
) -> list[tuple[float | None, float | None, float | None]]:
    """(seconds, steps, cost) of attempts of an agent at a suite, those of the newest runs first."""
    return db.execute(
        "SELECT a.seconds, a.steps, a.cost FROM runs r JOIN attempts a ON a.run = r.key "
        "WHERE r.agent = ? AND r.suite = ? AND a.verdict IN (0, 1) ORDER BY r.key DESC LIMIT ?",
        (agent, suite, most),
    ).fetchall()
