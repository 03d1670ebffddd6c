"""The tables, version by version.

A store of an older version is migrated when it is opened for writing; opening it to read changes
nothing. Every step is written once, in SQLite's SQL; :func:`for_postgres` translates it to
PostgreSQL's. Use ``INTEGER`` for numbers of up to 31 bits, ``BIGINT`` for larger ones.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from passhat.errors import ReadError
from passhat.store.database import Database

APPLICATION_ID = 0x70617373
"""Marks a file as passhat's, so that another program's database is not written into."""

_JUDGED = """
    CREATE VIEW judged AS
        SELECT a.run, a.task, a.number, a.owner,
            CASE WHEN j.key IS NULL THEN a.verdict ELSE j.verdict END AS verdict,
            CASE WHEN j.key IS NULL THEN a.why ELSE j.why END AS why,
            CASE WHEN j.key IS NULL THEN a.detail ELSE j.detail END AS detail, {score}
            a.seed, a.seconds, a.steps, a.tokens, a.cost, a.retries, a.answer, a.finished
        FROM attempts a LEFT JOIN judgements j ON j.key = (
            SELECT max(n.key) FROM judgements n
            WHERE n.run = a.run AND n.task = a.task AND n.number = a.number
        );
    """

_MIGRATIONS = (
    """
    CREATE TABLE runs (
        key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
        suite TEXT NOT NULL, name TEXT NOT NULL, protocol TEXT NOT NULL,
        planned INTEGER NOT NULL, started TEXT NOT NULL
    );
    CREATE TABLE tasks (
        key INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
        position INTEGER NOT NULL, task TEXT NOT NULL, labels TEXT NOT NULL, UNIQUE (run, task)
    );
    CREATE TABLE attempts (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, owner TEXT, verdict SMALLINT, why TEXT, detail TEXT, seed BIGINT,
        seconds REAL, steps REAL, tokens REAL, cost REAL, retries INTEGER, answer TEXT,
        finished TEXT,
        PRIMARY KEY (run, task, number)
    ) WITHOUT ROWID;
    CREATE TABLE transcripts (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, task, number)
    ) WITHOUT ROWID;
    """,
    # An attempt in which the agent used the reference of another one, and of which.
    """
    ALTER TABLE attempts ADD COLUMN leak TEXT;
    """,
    # Judgements that came later, beside the first one, which stays in attempts as it was. The view
    # shows every attempt with its newest judgement.
    """
    CREATE TABLE judgements (
        key INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
        task BIGINT NOT NULL, number INTEGER NOT NULL, verdict SMALLINT NOT NULL,
        why TEXT NOT NULL, detail TEXT NOT NULL, judge_fingerprint TEXT NOT NULL,
        at TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('regrade', 'human'))
    );
    CREATE INDEX judgements_of ON judgements (run, task, number, key);
    """
    + _JUDGED.format(score=""),
    # The attempt that finished last, and whether any is open: pages query that for every run.
    """
    CREATE INDEX attempts_finished ON attempts (run, finished) WHERE finished IS NOT NULL;
    CREATE INDEX attempts_open ON attempts (run) WHERE finished IS NULL;
    """,
    # Runners on several machines: when each was last seen, by the clock of the database.
    """
    CREATE TABLE owners (owner TEXT PRIMARY KEY, seen REAL NOT NULL);
    """,
    # What counting needs, and nothing else: a pass over it reads an eighth of the table. What is
    # open, and who has it, is found without looking at what is finished; so are leaks.
    """
    CREATE INDEX attempts_ended ON attempts (run, task, verdict, why) WHERE verdict IS NOT NULL;
    DROP INDEX attempts_open;
    CREATE INDEX attempts_open ON attempts (run, finished, owner) WHERE finished IS NULL;
    CREATE INDEX attempts_leaks ON attempts (run, leak) WHERE leak IS NOT NULL;
    """,
    # Leases instead of owners: see passhat.store.leases. ``attempts.owner`` holds the token of the
    # lease that made the attempt. Claims of older runners have no lease, and are free.
    """
    DROP TABLE owners;
    CREATE TABLE leases (
        token TEXT PRIMARY KEY, clock TEXT NOT NULL, seen REAL NOT NULL, seconds REAL NOT NULL,
        beats INTEGER NOT NULL
    );
    """,
    # The calls to models in an attempt: counts for the report, and all of them in the body.
    """
    CREATE TABLE calls (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, answers INTEGER NOT NULL, cut INTEGER NOT NULL,
        cut_at INTEGER, refused INTEGER NOT NULL, filtered INTEGER NOT NULL,
        empty INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, task, number)
    ) WITHOUT ROWID;
    """,
    # Attempts that differ by task: how many in all, and as JSON how many at which task and why.
    # NULL where every task has ``planned`` attempts.
    """
    ALTER TABLE runs ADD COLUMN total BIGINT;
    ALTER TABLE runs ADD COLUMN allocation TEXT;
    """,
    # Which beginning of a run this is. A run that is removed and begun again has the same id, and
    # in SQLite perhaps the same key: claims and results of a runner of the first are refused.
    """
    ALTER TABLE runs ADD COLUMN generation TEXT;
    """,
    # Graded results beside verdicts; NULL where the verdict is all there is. A later judgement is a
    # verdict, so that the score of an earlier one no longer counts.
    """
    ALTER TABLE attempts ADD COLUMN score REAL;
    DROP VIEW IF EXISTS judged;
    """
    + _JUDGED.format(score="CASE WHEN j.key IS NULL THEN a.score END AS score,"),
    # Which models answered an attempt, as JSON pairs of name and fingerprint, and the id that the
    # agent gave to its conversation; no row where neither is known.
    """
    CREATE TABLE origins (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, served TEXT NOT NULL, conversation TEXT NOT NULL,
        PRIMARY KEY (run, task, number)
    ) WITHOUT ROWID;
    """,
    # An attempt belongs to a task that exists, by the database's own rule. SQLite adds no key to a
    # table that is there, so it is written anew; rows of no task, which older versions could leave,
    # are dropped. The index over (run, task) is the primary key's beginning.
    """
    CREATE UNIQUE INDEX tasks_of ON tasks (run, key);
    DROP VIEW judged;
    CREATE TABLE attempts_of_tasks (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, owner TEXT, verdict SMALLINT, why TEXT, detail TEXT, seed BIGINT,
        seconds REAL, steps REAL, tokens REAL, cost REAL, retries INTEGER, answer TEXT,
        finished TEXT, leak TEXT, score REAL,
        PRIMARY KEY (run, task, number),
        FOREIGN KEY (run, task) REFERENCES tasks (run, key) ON DELETE CASCADE
    ) WITHOUT ROWID;
    INSERT INTO attempts_of_tasks
        SELECT a.run, a.task, a.number, a.owner, a.verdict, a.why, a.detail, a.seed, a.seconds,
            a.steps, a.tokens, a.cost, a.retries, a.answer, a.finished, a.leak, a.score
        FROM attempts a JOIN tasks t ON t.run = a.run AND t.key = a.task;
    DROP TABLE attempts;
    ALTER TABLE attempts_of_tasks RENAME TO attempts;
    CREATE INDEX attempts_finished ON attempts (run, finished) WHERE finished IS NOT NULL;
    CREATE INDEX attempts_ended ON attempts (run, task, verdict, why) WHERE verdict IS NOT NULL;
    CREATE INDEX attempts_open ON attempts (run, finished, owner) WHERE finished IS NULL;
    CREATE INDEX attempts_leaks ON attempts (run, leak) WHERE leak IS NOT NULL;
    """
    + _JUDGED.format(score="CASE WHEN j.key IS NULL THEN a.score END AS score,"),
    # The state of the code that a run was begun with, as a commit of git or an entry of a list.
    """
    ALTER TABLE runs ADD COLUMN revision TEXT;
    """,
    # Labels: a person's verdict on an attempt (1 right, 0 wrong, -1 skipped, NULL taken back),
    # beside the judge's and never instead of it. Rows are only added; the newest one of a person
    # counts. ``label_draws`` has the attempts that were drawn to be labeled, in their order.
    """
    CREATE TABLE labels (
        key INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
        task BIGINT NOT NULL, number INTEGER NOT NULL, person TEXT NOT NULL, label SMALLINT,
        note TEXT NOT NULL, at TEXT NOT NULL
    );
    CREATE INDEX labels_of ON labels (run, task, number, key);
    CREATE TABLE label_draws (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, draw TEXT NOT NULL, place INTEGER NOT NULL, at TEXT NOT NULL,
        PRIMARY KEY (run, task, number, draw)
    ) WITHOUT ROWID;
    """,
    # Labeled attempts that the judge of a later run, ``by_run``, judged again: does it drift?
    """
    CREATE TABLE anchors (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task BIGINT NOT NULL,
        number INTEGER NOT NULL, by_run TEXT NOT NULL, verdict SMALLINT NOT NULL, at TEXT NOT NULL,
        PRIMARY KEY (run, task, number, by_run)
    ) WITHOUT ROWID;
    CREATE INDEX anchors_by ON anchors (by_run);
    """,
)

VERSION = len(_MIGRATIONS)
_IN_POSTGRES_ONLY = {
    # A new table would lose the rights that were granted on the old one.
    13: """
    CREATE UNIQUE INDEX tasks_of ON tasks (run, key);
    DELETE FROM attempts a WHERE NOT EXISTS
        (SELECT 1 FROM tasks t WHERE t.run = a.run AND t.key = a.task);
    ALTER TABLE attempts ADD FOREIGN KEY (run, task) REFERENCES tasks (run, key) ON DELETE CASCADE;
    """,
}
"""Steps that PostgreSQL takes in another way, by the version that they lead to."""
_LEAK_VERSION, _JUDGED_VERSION, _LEASE_VERSION, _CALLS_VERSION = 2, 3, 7, 8
_ALLOCATION_VERSION, _SCORE_VERSION, _ORIGIN_VERSION, _REVISION_VERSION = 9, 11, 12, 14
_LABEL_VERSION, _ANCHOR_VERSION = 15, 16
_TEMPORARY = (
    *(_JUDGED_VERSION, _LEASE_VERSION, _CALLS_VERSION, _SCORE_VERSION),
    *(_ORIGIN_VERSION, _LABEL_VERSION, _ANCHOR_VERSION),
)
"""Versions whose tables and views an older file gets in memory alone."""
_CREATED = ("CREATE TABLE", "CREATE VIEW")
INDEXED_VERSION = 6
"""From this version on there is an index over open attempts by owner."""

PER_ATTEMPT = (
    *("attempts", "transcripts", "calls", "origins", "judgements", "labels", "label_draws"),
    "anchors",
)
"""Tables with rows per (run, task, number): what is copied and merged with a run."""

_IN_POSTGRES = (
    (re.compile(r"\bINTEGER PRIMARY KEY\b"), "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    (re.compile(r"\bREAL\b"), "DOUBLE PRECISION"),
    (re.compile(r"\bBLOB\b"), "BYTEA"),
    (re.compile(r"\bWITHOUT ROWID\b"), ""),
)
_LOCK = 0x70617373
"""Only one process brings a PostgreSQL store up to date at a time."""


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Create or update the tables; refuse a foreign file or a newer version."""
    if _sqlite_version(connection, path) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been here meanwhile.
        for step in range(_sqlite_version(connection, path), VERSION):
            for statement in _statements(_MIGRATIONS[step]):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def prepare_to_read(connection: sqlite3.Connection, path: str) -> int:
    """Check a file that is opened to read, and return its version; the file stays as it is.

    Columns that an older version lacks are added by temporary views in this connection only.
    """
    version = _sqlite_version(connection, path)
    if version == 0:
        if Path(path).is_file() and Path(path).stat().st_size:
            # Tables are written right after the file's first page, at first to the log alone.
            raise ReadError(
                "has no tables: its write-ahead log is absent.",
                source=path,
                hint=f"It was copied while passhat was writing, without {path}-wal. "
                "Copy both, or use passhat store backup.",
            )
        raise ReadError("is an empty file, not a store.", source=path)
    if version < _LEAK_VERSION:
        connection.execute("CREATE TEMP VIEW attempts AS SELECT *, NULL AS leak FROM main.attempts")
    if version < _REVISION_VERSION:
        absent = (
            ("total", "allocation", "revision") if version < _ALLOCATION_VERSION else ("revision",)
        )
        columns = ", ".join(f"NULL AS {name}" for name in absent)
        connection.execute(f"CREATE TEMP VIEW runs AS SELECT *, {columns} FROM main.runs")
    for target_version in _TEMPORARY:
        for statement in (
            _statements(_MIGRATIONS[target_version - 1]) if version < target_version else ()
        ):
            # The view of the first judgements is not made: that of scores has its name.
            kinds = ("CREATE TABLE",) if target_version == _JUDGED_VERSION else _CREATED
            if statement.lstrip().startswith(kinds):
                # A view over the attempts would hide their indexes, so only this one lacks scores.
                statement = statement.replace("a.score", "NULL")
                temporary = re.sub(r"CREATE (TABLE|VIEW)", r"CREATE TEMP \1", statement)
                connection.execute(
                    re.sub(r"REFERENCES \w+\(\w+\) ON DELETE CASCADE", "", temporary)
                )
    return version


def _sqlite_version(connection: sqlite3.Connection, path: str) -> int:
    # In this order: tables and marks are written together, perhaps at this very moment.
    table_count = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if table_count and application != APPLICATION_ID:
        raise ReadError("is a database, but not one of passhat.", source=path)
    _refuse_newer(version, path)
    return version


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: a whole script would end the transaction."""
    statement = ""
    for part in script.split(";")[:-1]:
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def migrate_postgres(
    database: Database, name: str, *, must_exist: bool, read_only: bool = False
) -> None:
    """The same in PostgreSQL, where a table of our own holds the version."""
    if must_exist or read_only:
        refuse_unless_there(database, name)
    version = postgres_version(database, name)
    if version == VERSION:
        return
    if read_only:
        raise ReadError(
            f"has store version {version}, and this passhat reads version {VERSION}.",
            source=name,
            hint="Reading changes nothing. Update it, when no older runner is at work, with: "
            "passhat store vacuum --store URL",
        )
    database.execute("BEGIN")
    try:
        # A lock of the transaction, not of the session: a pooler may hand the session to others.
        database.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        # Reading a table takes note of what others changed in the catalog during the wait;
        # to_regclass alone would still find no tables.
        database.execute("SELECT 1 FROM pg_class LIMIT 1")
        version = postgres_version(database, name)
        if version is None:
            database.execute("CREATE TABLE passhat_store (version INTEGER NOT NULL)")
            database.execute("INSERT INTO passhat_store VALUES (0)")
        for step in range(version or 0, VERSION):
            script = _IN_POSTGRES_ONLY.get(step + 1, _MIGRATIONS[step])
            database.execute(for_postgres(script))
        database.execute(f"UPDATE passhat_store SET version = {VERSION}")
        database.execute("COMMIT")
    except BaseException:
        database.close()  # which releases the lock, and rolls back
        raise


def refuse_unless_there(database: Database, name: str) -> None:
    """Opening to read creates no tables."""
    if postgres_version(database, name) is None:
        raise ReadError(
            "there is no store in this database.",
            source=name,
            hint="Make one with passhat run --store URL, or name another database.",
        )


def for_postgres(statements: str) -> str:
    """Statements that create tables, translated for PostgreSQL."""
    for pattern, words in _IN_POSTGRES:
        statements = pattern.sub(words, statements)
    return statements


def postgres_version(database: Database, name: str) -> int | None:
    """Which version the tables have; ``None`` before they are made. A newer one is refused."""
    own_tables, other_tables = database.execute(
        "SELECT to_regclass('passhat_store') IS NOT NULL, to_regclass('attempts') IS NOT NULL"
    ).fetchone()
    if not own_tables:
        if other_tables:
            raise ReadError(
                "is a database with a table 'attempts' that is not one of passhat.",
                source=name,
                hint="Make a database of its own: createdb passhat",
            )
        return None
    version = int(database.execute("SELECT version FROM passhat_store").fetchone()[0])
    _refuse_newer(version, name)
    return version


def _refuse_newer(version: int, name: str) -> None:
    if version > VERSION:
        raise ReadError(
            f"was written by a newer passhat (store version {version}; supported: {VERSION}).",
            source=name,
            hint="Upgrade passhat: pip install --upgrade passhat",
        )
