"""What only a server has: other machines, restarts, passwords, other people's tables."""

from __future__ import annotations

import psycopg
import pytest

from passhat.errors import InvalidValue, ReadError, StoreUnavailable
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, open_reading, open_store, without_password
from passhat.store.database import is_well_formed
from passhat.store.postgres import PostgresStore
from passhat.store.schema import VERSION
from passhat.suites.base import Judgement, Task
from postgres_cluster import Cluster

RUN = RunRecord("agent", Protocol(suite="suite"), [Task("a", "?"), Task("b", "?")])
DONE = [AttemptRecord("a", 1, Judgement(Verdict.PASSED))]


def _elsewhere(address: str, token: str, seconds_ago: float | None) -> None:
    """Attempt a#1 is claimed by another runner, whose lease of 1 s was renewed so long ago."""
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("UPDATE attempts SET owner = %s", (token,))
        if seconds_ago is not None:
            other.execute(
                "INSERT INTO leases VALUES "
                "(%s, '', extract(epoch FROM clock_timestamp()) - %s, 1.0, 3)",
                (token, seconds_ago),
            )


# Seen an hour ahead stands for "just now", however slow this machine is.
@pytest.mark.parametrize(("seconds_ago", "freed"), [(-3600.0, 0), (3600.0, 1), (None, 1)], ids=str)
def test_claims_are_free_once_their_lease_has_expired(
    postgres_address: str, seconds_ago: float | None, freed: int
) -> None:
    with PostgresStore(postgres_address) as store:
        store.begin(RUN, 1)
        store.claim(RUN.id, [("a", 1)])
        _elsewhere(postgres_address, "other", seconds_ago)
        with psycopg.connect(postgres_address) as other:  # the server is old enough
            other.execute(
                "SELECT pg_sleep(greatest(0, 1.5 - extract(epoch FROM "
                "clock_timestamp() - pg_postmaster_start_time())))"
            )
        assert store.release(RUN.id) == freed


def test_a_lease_does_not_expire_while_the_server_is_away(own_postgres: Cluster) -> None:
    address = own_postgres.make_database("team")
    with PostgresStore(address) as store:
        store.begin(RUN, 1)
        store.claim(RUN.id, [("a", 1)])
        _elsewhere(address, "other", 36_000.0)
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("UPDATE leases SET seconds = 3600")
        # The server has run for a few seconds only: no lease could be renewed before.
        assert store.release(RUN.id) == 0


def test_a_store_comes_back_with_its_server(own_postgres: Cluster) -> None:
    address = own_postgres.make_database("team")
    with open_store(address) as store, open_reading(address) as reading:
        store.begin(RUN, 2)
        store.claim(RUN.id, [("a", 1)])
        store.changes(0)
        reading.wait(0)
        own_postgres.kill()
        for question in (reading.heads, reading.change, lambda: reading.wait(5)):
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                question()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.finish(RUN.id, DONE)
        with pytest.raises(StoreUnavailable):
            store.finish(RUN.id, DONE)
        with pytest.raises(StoreUnavailable):
            store.changes(5)
        own_postgres.start()
        (head,) = reading.heads()
        assert reading.wait(0) is True  # what came meanwhile is unknown
        assert not head.last
        store.finish(RUN.id, DONE)
        assert store.changes(0) is True
        assert reading.wait(60) is True
        assert reading.heads()[0].last
        own_postgres.kill()
        own_postgres.start()
        assert reading.heads()[0].last  # the broken connection is not even noticed
        assert len(store.runs()) == 1  # a query is repeated over a new connection
        # What was claimed before the answer was lost is still ours, and nobody else's.
        assert store.claim(RUN.id, [("b", 1)]) == [("b", 1)]
        assert store.claim(RUN.id, [("b", 1), ("a", 1)]) == [("b", 1)]
        with open_store(address) as other:
            assert other.claim(RUN.id, [("b", 1), ("b", 2)]) == [("b", 2)]
            assert list(other.verdicts(RUN.id)) == [("a", 1, Verdict.PASSED)]


def test_a_password_is_never_shown() -> None:
    shown = without_password("postgresql://me:secret@host:5/db?password=secret&sslmode=require")
    assert shown == "postgresql://me@host:5/db?password=...&sslmode=require"
    assert without_password("some/path.db") == "some/path.db"
    with pytest.raises(StoreUnavailable) as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "secret", ["se/cret", "s@cret", "se?cret", "se#cret", "12?3", "se%", "%00"]
)
def test_a_password_that_would_be_taken_for_something_else_is_refused(secret: str) -> None:
    address = f"postgresql://me:{secret}@host/db?sslmode=require"
    assert without_password(address) == "postgresql://..."
    with pytest.raises(InvalidValue, match="are written as %40") as caught:
        open_store(address)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        *("postgresql:///db", "postgres://h1:1,h2:2/db?application_name=a@b", "postgresql://"),
        *("postgresql://me@[::1]:5432/db#3ed9", "postgresql://me@/db?host=%2Ftmp%2Fx"),
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert without_password(address) == address
    assert is_well_formed(address)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match="is not the address of a database"):
        open_store("postgresql://host:port/db?nonsense=1")


def test_a_database_that_is_not_there_is_not_waited_for(postgres_server: Cluster) -> None:
    with pytest.raises(ReadError, match="does not exist") as caught:
        open_store(postgres_server.address("nowhere"))
    assert not isinstance(caught.value, StoreUnavailable)


def test_other_peoples_tables_are_not_written_into(postgres_address: str) -> None:
    with psycopg.connect(postgres_address, autocommit=True) as other:
        other.execute("CREATE TABLE attempts (mine TEXT)")
    with pytest.raises(ReadError, match="not one of passhat"):
        open_store(postgres_address)


def test_a_store_of_a_newer_version_is_refused_and_an_older_one_brought_up(
    postgres_address: str,
) -> None:
    open_store(postgres_address).close()
    with psycopg.connect(postgres_address, autocommit=True) as other:
        other.execute("UPDATE passhat_store SET version = %s", (VERSION + 1,))
        with pytest.raises(ReadError, match="newer passhat"):
            open_store(postgres_address)
        other.execute("DROP TABLE leases, calls, origins, labels, label_draws, anchors")
        other.execute("DROP INDEX tasks_of CASCADE")
        other.execute(
            "ALTER TABLE runs DROP COLUMN total, DROP COLUMN allocation, "
            "DROP COLUMN generation, DROP COLUMN revision"
        )
        other.execute("ALTER TABLE attempts DROP COLUMN score CASCADE")
        other.execute("CREATE TABLE owners (owner TEXT PRIMARY KEY, seen DOUBLE PRECISION)")
        other.execute("UPDATE passhat_store SET version = 6")  # that of passhat 0.1.0
        with pytest.raises(ReadError, match="has store version 6"):
            open_store(postgres_address, read_only=True)
        open_store(postgres_address).close()
        row = other.execute("SELECT version FROM passhat_store").fetchone()
        assert row == (VERSION,)
