"""Servers as teams have them: TLS, one connection, few rights, read-only for a while."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest

from kept_ports import kept_port
from passhat.errors import ReadError, StoreUnavailable
from passhat.protocol import Protocol
from passhat.runner.run_spec import RunSpec, run
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.suites.base import Judgement, Task
from postgres_cluster import Cluster

RUN = RunRecord("agent", Protocol(suite="suite"), [Task("t", "?")])


def claim_and_finish(store: Store, number: int) -> None:
    store.begin(RUN, 9)
    assert store.claim(RUN.id, [("t", number)]) == [("t", number)]
    assert store.finish(RUN.id, [AttemptRecord("t", number, Judgement.passed())]) == []


@pytest.fixture
def role(postgres_address: str) -> Iterator[tuple[psycopg.Connection, str, str]]:
    """The owner's connection, a new role without rights, and its address."""
    with psycopg.connect(postgres_address, autocommit=True) as owner:
        name = f"r{secrets.token_hex(6)}"
        owner.execute(f'CREATE ROLE "{name}" LOGIN')
        yield owner, name, postgres_address.replace("//passhat@", f"//{name}@")
        owner.execute(f'DROP OWNED BY "{name}"')
        owner.execute(f'DROP ROLE "{name}"')


def test_tls_is_used_and_another_server_is_refused_at_once(own_postgres: Cluster) -> None:
    folder = own_postgres.folder
    for name in ("server", "other"):
        command = (
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt"),
        )
        subprocess.run(command, check=True, capture_output=True)
        (folder / f"{name}.key").chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(folder / f"{name}.key", "postgres", "postgres")
    own_postgres.kill()
    with kept_port() as port:
        own_postgres.options = (
            f"-c listen_addresses=127.0.0.1 -p {port} -c ssl=on "
            f"-c ssl_cert_file={folder}/server.crt -c ssl_key_file={folder}/server.key"
        )
        own_postgres.start()
        address = f"postgresql://passhat@localhost:{port}/postgres?sslmode=verify-full"
        with open_store(f"{address}&sslrootcert={folder}/server.crt") as store:
            claim_and_finish(store, 1)
            query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            assert store.read(query) == [(True,)]
        for root in (f"{folder}/other.crt", f"{folder}/absent.crt"):
            with pytest.raises(ReadError, match="certificate") as refused:
                open_store(f"{address}&sslrootcert={root}")
            assert not isinstance(refused.value, StoreUnavailable)  # which would be tried again


@pytest.mark.skipif(not shutil.which("pgbouncer"), reason="apt-get install pgbouncer")
def test_two_runners_behind_a_transaction_pooler_share_one_connection(
    postgres_server: Cluster, postgres_address: str
) -> None:
    """Every transaction may get another session, in which nothing of the last one is left."""
    folder = postgres_server.folder / secrets.token_hex(4)
    folder.mkdir()
    user = []
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"]
    (folder / "pooler.ini").write_text(
        f"[databases]\n* = host={postgres_server.folder} user=passhat\n[pgbouncer]\n"
        f"unix_socket_dir={folder}\nlisten_port=6432\nauth_type=any\npool_mode=transaction\n"
        "default_pool_size=1\n"
    )
    pooler = subprocess.Popen([*user, "pgbouncer", "-q", str(folder / "pooler.ini")], cwd=folder)
    try:
        database = psycopg.conninfo.conninfo_to_dict(postgres_address)["dbname"]
        address = f"postgresql://passhat@:6432/{database}?host={quote(str(folder), safe='')}"
        wait_for_server(address)
        with open_store(address) as one, open_store(address) as other:
            for number in range(1, 9):
                claim_and_finish(one if number % 2 else other, number)
                for store in (one, other):
                    store._beat()  # type: ignore[attr-defined]
            assert sum(1 for _ in one.verdicts(RUN.id)) == 8
            assert other.release(RUN.id) == 0
            other.remove(RUN.id, force=True)
    finally:
        pooler.terminate()
        pooler.wait()


def wait_for_server(address: str) -> None:
    for _ in range(600):
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the pooler did not start")


def test_one_connection_is_enough(role: tuple[psycopg.Connection, str, str]) -> None:
    owner, name, address = role
    owner.execute(f'ALTER ROLE "{name}" CONNECTION LIMIT 1')
    owner.execute(f'GRANT CREATE ON SCHEMA public TO "{name}"')
    with open_store(address) as store:
        store.begin(RUN, 9)
        store.claim(RUN.id, [("t", 1)])
        (beats,) = store.read("SELECT beats FROM leases")
        store._beat()  # type: ignore[attr-defined]
        assert store.read("SELECT beats FROM leases") == [(beats[0] + 1,)]
        assert store.finish(RUN.id, [AttemptRecord("t", 1, Judgement.passed())]) == []
    assert owner.execute("SELECT count(*) FROM leases").fetchone() == (0,)


def test_a_runner_needs_no_more_rights_than_the_page_grants(
    role: tuple[psycopg.Connection, str, str], postgres_address: str
) -> None:
    owner, name, address = role
    with open_store(postgres_address):  # its owner makes the tables
        pass
    owner.execute(
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "{name}"'
    )
    owner.execute(f'GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO "{name}"')
    with open_store(address) as store:
        claim_and_finish(store, 1)
        store._beat()  # type: ignore[attr-defined]
        count = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        assert owner.execute(count, (name,)).fetchone() == (2,)  # as the page says
        assert [run.passed for run in store.runs()] == [1]
        store.remove(RUN.id)


def test_a_server_that_is_read_only_for_a_while_is_waited_for(postgres_address: str) -> None:
    """As a standby is, until it becomes the main server."""
    with psycopg.connect(postgres_address, autocommit=True) as owner:
        ours = (
            "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        database = owner.info.dbname
        with open_store(postgres_address) as store:
            store.begin(RUN, 9)
            store.claim(RUN.id, [("t", 1)])
            results = [AttemptRecord("t", 1, Judgement.passed())]
            owner.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
            owner.execute(f"SELECT pg_terminate_backend(pid) {ours}")
            for reason in ("reached", "takes no writes", "takes no writes"):
                with pytest.raises(StoreUnavailable, match=reason):
                    store.finish(RUN.id, results)
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = off')
            assert store.finish(RUN.id, results) == []
            assert [run.passed for run in store.runs()] == [1]


def test_a_run_begins_when_a_standby_takes_writes(postgres_address: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_address)["dbname"]
    setting = f'ALTER DATABASE "{name}" SET default_transaction_read_only'
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        owner.execute(f"{setting} = off")

    spec = RunSpec(suite="orderdesk/retail", agent="demo:hasty", attempts=1, store=postgres_address)
    with psycopg.connect(postgres_address, autocommit=True) as owner:
        for _ in range(2):  # a new run, and one that is complete
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(f"{setting} = on")
            assert run(spec, tell=tell).left == 0
    assert len(told) == 2
    assert all("takes no writes" in line and "Trying again for 120 s" in line for line in told)
