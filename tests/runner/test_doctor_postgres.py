"""passhat doctor, of a PostgreSQL store: what it finds, and what it says to do."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

import psycopg
import pytest

from passhat.runner import doctor
from passhat.runner.doctor import Finding, Level, examine, examine_postgres
from passhat.store import open_store
from passhat.store.schema import VERSION
from postgres_cluster import Cluster


def checks(address: str) -> list[Finding]:
    return list(examine_postgres(address))


def bad(address: str) -> list[tuple[str, str]]:
    return [(one.found, one.advice) for one in checks(address) if one.level is Level.PROBLEM]


def test_a_store_that_is_fit(postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_HEAR_SECONDS", 60.0)
    before = checks(postgres_address)
    assert [one.level for one in before] == [Level.OK] * 3
    assert before[1].found == "there are no tables yet; the first run makes them"
    open_store(postgres_address).close()
    found = [one for one in examine(postgres_address, (), (), {}) if one.what == "store"]
    assert [one.level for one in found] == [Level.OK] * 4
    assert "answers, PostgreSQL" in found[0].found
    assert found[1].found == f"tables of version {VERSION}, 0 runs"
    assert found[2].found == "passhat may write"
    assert found[3].found == "notices arrive at once (LISTEN)"
    with psycopg.connect(postgres_address) as other:
        assert other.execute("SELECT count(*) FROM runs").fetchone() == (0,)


def test_somebody_who_may_only_read(postgres_address: str) -> None:
    user = f"guest{secrets.token_hex(4)}"
    guest = postgres_address.replace("passhat@", f"{user}@", 1)
    with psycopg.connect(postgres_address, autocommit=True) as owner:
        owner.execute(f'CREATE USER "{user}"')
        ((found, advice),) = bad(guest)
        assert found == f"there are no tables yet, and {user} may not make any"
        assert advice.endswith(f'GRANT CREATE ON SCHEMA public TO "{user}"')
        open_store(postgres_address).close()
        owner.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "{user}"')
        ((found, advice),) = bad(guest)
        assert "may not write to runs, tasks, leases" in found
        owner.execute(advice.partition(": ")[2])
        assert bad(guest) == []
        open_store(guest).close()
        owner.execute(f'ALTER USER "{user}" SET default_transaction_read_only = on')
        ((found, advice),) = bad(guest)
        assert "read-only" in found
        owner.execute(f'DROP OWNED BY "{user}"')
        owner.execute(f'DROP USER "{user}"')


def test_tables_of_another_version(postgres_address: str) -> None:
    open_store(postgres_address).close()
    with psycopg.connect(postgres_address, autocommit=True) as other:
        other.execute("UPDATE passhat_store SET version = %s", (VERSION - 1,))
        old = [one for one in checks(postgres_address) if one.level is Level.WARNING]
        assert f"version {VERSION - 1}" in old[0].found
        other.execute("UPDATE passhat_store SET version = %s", (VERSION + 1,))
        ((found, advice),) = bad(postgres_address)
    assert "newer passhat" in found
    assert "Upgrade" in advice


@pytest.mark.parametrize(
    ("address", "found", "advice"),
    [
        ("postgresql://me:hidden@127.0.0.1:1/db", "cannot be reached", "Start the server"),
        ("postgresql://me:hid/den@host/db", "is not the address", "in a password"),
        ("postgresql://me:hidden@host/db?nonsense=1", "is not the address", "It reads"),
        ("SERVER/nowhere", "does not exist", "createdb"),
        ("STRANGER/postgres", "does not exist", "createuser"),
    ],
)
def test_a_store_out_of_reach(
    address: str, found: str, advice: str, postgres_server: Cluster
) -> None:
    start, _, name = address.partition("/")
    if start in ("SERVER", "STRANGER"):
        address = postgres_server.address(name)
        if start == "STRANGER":
            user = urlsplit(address).username
            address = address.replace(f"{user}@", "stranger:hidden@", 1)
    ((said, told),) = bad(address)
    assert found in said
    assert advice in told
    assert "hid" not in said + told


def test_another_kind_of_address() -> None:
    found = [one for one in examine("mysql://me:hidden@host/db", (), (), {}) if one.what == "store"]
    assert [(one.level, one.found) for one in found] == [(Level.PROBLEM, "mysql://... is none")]
