"""The tables, version by version. A file of an older version is brought up to date when opened."""

from __future__ import annotations

import sqlite3

from passhat.errors import ReadError

__all__ = ["APPLICATION_ID", "VERSION", "migrate"]

APPLICATION_ID = 0x70617373
"""Marks a file as passhat's, so that another program's database is not written into."""

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
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task INTEGER NOT NULL,
        number INTEGER NOT NULL, owner TEXT, verdict INTEGER, why TEXT, detail TEXT, seed INTEGER,
        seconds REAL, steps REAL, tokens REAL, cost REAL, retries INTEGER, answer TEXT,
        finished TEXT,
        PRIMARY KEY (run, task, number)
    ) WITHOUT ROWID;
    CREATE TABLE transcripts (
        run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE, task INTEGER NOT NULL,
        number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, task, number)
    ) WITHOUT ROWID;
    """,
    # An attempt in which the agent said the reference of another one, and of which.
    """
    ALTER TABLE attempts ADD COLUMN leak TEXT;
    """,
    # Judgements that came later, beside the first one, which stays in attempts as it was. The view
    # shows every attempt with the newest word on it.
    """
    CREATE TABLE judgements (
        key INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
        task INTEGER NOT NULL, number INTEGER NOT NULL, verdict INTEGER NOT NULL,
        why TEXT NOT NULL, detail TEXT NOT NULL, judge_fingerprint TEXT NOT NULL,
        at TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('regrade', 'human'))
    );
    CREATE INDEX judgements_of ON judgements (run, task, number, key);
    CREATE VIEW judged AS
        SELECT a.run, a.task, a.number, a.owner,
            CASE WHEN j.key IS NULL THEN a.verdict ELSE j.verdict END AS verdict,
            CASE WHEN j.key IS NULL THEN a.why ELSE j.why END AS why,
            CASE WHEN j.key IS NULL THEN a.detail ELSE j.detail END AS detail,
            a.seed, a.seconds, a.steps, a.tokens, a.cost, a.retries, a.answer, a.finished
        FROM attempts a LEFT JOIN judgements j ON j.key = (
            SELECT max(n.key) FROM judgements n
            WHERE n.run = a.run AND n.task = a.task AND n.number = a.number
        );
    """,
    # What finished last, and whether anything is open: pages ask that of every run at every look.
    """
    CREATE INDEX attempts_finished ON attempts (run, finished);
    """,
)

VERSION = len(_MIGRATIONS)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Make or update the tables; refuse a file that is not ours or that is newer than we are."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    used = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if used and application != APPLICATION_ID:
        raise ReadError("is a database, but not one of passhat.", source=path)
    if version > VERSION:
        raise ReadError(
            f"was written by a newer passhat (store version {version}, this one knows {VERSION}).",
            source=path,
            hint="Upgrade passhat: pip install --upgrade passhat",
        )
    for step in range(version, VERSION):
        connection.executescript(
            f"BEGIN; {_MIGRATIONS[step]} PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {step + 1}; COMMIT;"
        )
