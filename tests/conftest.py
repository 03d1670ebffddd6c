"""What many tests need: the shared data, and a command line that can be called."""

from __future__ import annotations

import fcntl
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from passhat.cli import main
from postgres_cluster import Cluster, binaries

# The machines that run this are shared and noisy: an example is never too slow to be right.
settings.register_profile("passhat", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("passhat")


def shared(name: str) -> Path | None:
    """A folder of files that lie beside the checkout, or beside the folder it is in."""
    above = Path(__file__).resolve().parents[2:5]
    return next((path for at in above if (path := at / "shared" / name).is_dir()), None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real repeated-attempt data beside the checkout; never part of the project."""
    folder = shared("data")
    if folder is None:
        pytest.skip("the folder shared/data is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def shared_formats() -> Path:
    """Raw logs as other tools wrote them, beside the checkout; never part of the project."""
    folder = shared("formats")
    if folder is None:
        pytest.skip("the folder shared/formats is not beside this checkout")
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def passhat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Call the command line in this process: ``passhat("report", "table.csv")``."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(int(code), captured.out, captured.err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    """Write a table and return its path: ``table("task,success\\na,1\\n")``."""

    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@contextmanager
def _shared_server(notes: Path) -> Iterator[Cluster]:
    """One server for all processes of a test session: the first starts it, the last stops it."""

    @contextmanager
    def locked() -> Iterator[dict[str, object]]:
        with notes.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            said = json.loads(file.read() or '{"users": 0}')
            yield said
            file.seek(0)
            file.truncate()
            file.write(json.dumps(said))

    with locked() as said:
        if not said["users"]:
            cluster = Cluster()
            cluster.start()
            said["folder"] = str(cluster.folder)
        said["users"] = int(str(said["users"])) + 1
        cluster = Cluster(Path(str(said["folder"])))
    try:
        yield cluster
    finally:
        with locked() as said:
            said["users"] = int(str(said["users"])) - 1
            if not said["users"]:
                cluster.stop()


@pytest.fixture(scope="session")
def needs_postgres() -> None:
    """For tests that start a server themselves."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed on this machine: apt-get install postgresql")


@pytest.fixture(scope="session")
def postgres_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A real PostgreSQL server, started for this test session."""
    request.getfixturevalue("needs_postgres")
    alone = not hasattr(request.config, "workerinput")
    folder = tmp_path_factory.getbasetemp()
    with _shared_server((folder if alone else folder.parent) / "postgres") as one:
        yield one


@pytest.fixture
def postgres_address(postgres_server: Cluster) -> str:
    """The address of a new, empty database."""
    return postgres_server.make_database(f"t{secrets.token_hex(6)}")


@pytest.fixture(params=["sqlite", "postgres"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store goes: every test that asks for this is run on both kinds."""
    if request.param == "sqlite":
        return str(tmp_path / "store" / "passhat.db")
    return str(request.getfixturevalue("postgres_address"))
