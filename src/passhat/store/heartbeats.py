"""A sign of life in a store that several machines share.

A process on another machine cannot be looked at, so every owner of claims writes down, a few times
a minute, that it is still there. The time is the server's: clocks of the machines need not agree.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from passhat.errors import PasshatError
from passhat.store.postgres_connection import PostgresConnection

__all__ = ["GONE_SECONDS", "Heartbeat", "silent_owners"]

_BEAT_SECONDS = 5.0
GONE_SECONDS = 60.0
"""An owner that was not seen for so long is taken to be gone."""

_NOW = "extract(epoch FROM clock_timestamp())"
_BEAT = (
    f"INSERT INTO owners (owner, seen) VALUES (?, {_NOW}) "
    "ON CONFLICT (owner) DO UPDATE SET seen = excluded.seen"
)


class Heartbeat:
    """Beats from the first claim until it is stopped, in a thread with its own connection."""

    def __init__(self, address: str, owner: str, every: float = _BEAT_SECONDS) -> None:
        self._owner = owner
        self._every = every
        self._connection = PostgresConnection(address)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """The first beat is written before this returns, so that no claim is ever without one."""
        if self._thread is None:
            self._connection.execute(_BEAT, (self._owner,))
            self._thread = threading.Thread(target=self._keep, daemon=True, name="heartbeat")
            self._thread.start()

    def stop(self) -> None:
        """Nobody has to wait for this owner any more."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            with suppress(PasshatError):  # a server that is away: the beat grows old by itself
                self._connection.execute("DELETE FROM owners WHERE owner = ?", (self._owner,))
        self._connection.close()

    def _keep(self) -> None:
        pause = self._every
        while not self._over.wait(pause):
            try:
                self._connection.execute(_BEAT, (self._owner,))
                pause = self._every
            except PasshatError:
                pause = min(1.0, self._every)  # the server is away: be back as soon as it is


def silent_owners(connection: PostgresConnection, run: int, seconds: float) -> dict[str, bool]:
    """Owners of a run's open claims, and whether each was silent for too long.

    While the server itself was away nobody could be seen: time before it started does not count.
    """
    rows = connection.execute(
        f"SELECT DISTINCT a.owner, coalesce({_NOW} - "
        "greatest(o.seen, extract(epoch FROM pg_postmaster_start_time())) > ?, true) "
        "FROM attempts a LEFT JOIN owners o ON o.owner = a.owner "
        "WHERE a.run = ? AND a.finished IS NULL",
        (seconds, run),
    )
    return {owner or "": bool(silent) for owner, silent in rows}
