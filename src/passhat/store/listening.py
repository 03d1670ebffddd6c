"""Hearing that somebody wrote to a PostgreSQL store, without asking it again and again."""

from __future__ import annotations

from passhat.errors import PasshatError
from passhat.store.postgres_connection import PostgresConnection

__all__ = ["CHANNEL", "Listening"]

CHANNEL = "passhat"
"""Where stores tell; what is told is the id of the run that moved."""


class Listening:
    """One connection that only listens; after trouble the next call begins anew."""

    def __init__(self, address: str) -> None:
        self._connection = PostgresConnection(address)
        self._begun = False

    def wait(self, seconds: float) -> bool:
        """Whether somebody wrote; waits for it at most so long.

        The first call, and the first one after trouble, begins to listen and is ``True``: what was
        written before is unknown.
        """
        try:
            if not self._begun:
                self._connection.execute(f"LISTEN {CHANNEL}")
                self._begun = True
                return True
            return self._connection.notifies(seconds) > 0
        except PasshatError:
            self.close()
            raise

    def close(self) -> None:
        self._begun = False
        self._connection.close()
