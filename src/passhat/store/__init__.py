"""Stores of attempts: an SQLite file, or a PostgreSQL database that a team shares."""

from passhat.store.base import Store
from passhat.store.database import is_address, private_folder, without_password, write_private
from passhat.store.leases import LEASE_SECONDS
from passhat.store.opening import is_same_place, open_reading, open_store
from passhat.store.rows import (
    AttemptRecord,
    AttemptSet,
    CallCounts,
    CallRecords,
    Ended,
    JudgementSource,
    Origins,
    PlannedAttempts,
    RunRecord,
    StoredJudgement,
    StoredRun,
    damage_reported,
)
from passhat.store.sqlite import DEFAULT_PATH

__all__ = [
    "DEFAULT_PATH",
    "LEASE_SECONDS",
    "AttemptRecord",
    "AttemptSet",
    "CallCounts",
    "CallRecords",
    "Ended",
    "JudgementSource",
    "Origins",
    "PlannedAttempts",
    "RunRecord",
    "Store",
    "StoredJudgement",
    "StoredRun",
    "damage_reported",
    "is_address",
    "is_same_place",
    "open_reading",
    "open_store",
    "private_folder",
    "without_password",
    "write_private",
]
