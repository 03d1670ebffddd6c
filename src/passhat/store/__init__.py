"""Where attempts live: one SQLite file, appended to while it is read."""

from passhat.store.records import (
    AttemptRecord,
    Ended,
    JudgementSource,
    RunRecord,
    StoredJudgement,
    StoredRun,
)
from passhat.store.sqlite import DEFAULT_PATH, Store

__all__ = [
    "DEFAULT_PATH",
    "AttemptRecord",
    "Ended",
    "JudgementSource",
    "RunRecord",
    "Store",
    "StoredJudgement",
    "StoredRun",
]
