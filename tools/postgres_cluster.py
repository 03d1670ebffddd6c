"""A PostgreSQL server of one's own, in a folder that goes away: for tests and benchmarks.

It listens on a socket in that folder and nowhere else. Root may not run PostgreSQL, so for root it
runs as the user that the package made.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg

__all__ = ["Cluster", "binaries"]

_USER = "passhat"
_START_TRIES = 200
_SECONDS = 120
"""How long a server may take to start, to stop, or to take a connection."""


def binaries() -> Path | None:
    """Where the newest PostgreSQL of this machine has its programs."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: int(path.parts[-3])).parent
    other = shutil.which("initdb")
    return Path(other).parent if other else None


class Cluster:
    """A server that can be started, killed and started again.

    Parameters
    ----------
    folder : Path, optional
        One that a cluster was made in before; left open, a new one is made.
    durable : bool
        Whether commits wait for the disk, as a team's server does. Tests need not.
    """

    def __init__(self, folder: Path | None = None, *, durable: bool = False) -> None:
        programs = binaries()
        if programs is None:
            raise FileNotFoundError("PostgreSQL is not installed: apt-get install postgresql")
        self._programs = programs
        self._durable = durable
        self.options = "-c listen_addresses=''"
        """Settings of the server from its next start on."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix="passhat-pg-"))
        if folder is None:
            self._make()

    def _make(self) -> None:
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        sync = () if self._durable else ("--no-sync",)
        self._call("initdb", "-D", str(self._data), "-U", _USER, "-A", "trust", "-E", "UTF8", *sync)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Returns when it takes connections.

        Processes of a server that was killed may need a moment until they notice.
        """
        for left in reversed(range(_START_TRIES)):
            try:
                self._start()
                break
            except subprocess.CalledProcessError:
                if left == 0:
                    raise
                time.sleep(0.2)

    def _start(self) -> None:
        sync = "" if self._durable else " -F"
        options = f"-k {self.folder} -c max_connections=200 {self.options}{sync}"
        self._call(
            *("pg_ctl", "-D", str(self._data), "-o", options, "-w", "-t", str(_SECONDS)),
            *("-l", str(self.folder / "log"), "start"),
        )

    def stop(self) -> None:
        """Stop it and remove the folder."""
        with suppress(subprocess.CalledProcessError):
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """As a power cut would: no goodbye to anybody; returns when it is gone."""
        self._call(
            *("pg_ctl", "-D", str(self._data), "-m", "immediate"),
            *("-w", "-t", str(_SECONDS), "stop"),
        )

    def kill_hard(self) -> None:
        """The server's first process is killed; its others notice by themselves."""
        first = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        os.kill(first, signal.SIGKILL)

    def make_standby(self) -> Cluster:
        """A copy of this server in a folder of its own, not started, which follows this one."""
        folder = Path(tempfile.mkdtemp(prefix="passhat-pg-"))
        if os.getuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        standby = Cluster(folder, durable=self._durable)
        source = f"host={self.folder} user={_USER}"
        self._call(
            *("pg_basebackup", "-d", source, "-D", str(standby._data)),
            *("-R", "-X", "stream", "-c", "fast", *(() if self._durable else ("--no-sync",))),
        )
        return standby

    def promote(self) -> None:
        """A standby becomes a server that takes writes; returns when it does."""
        self._call("pg_ctl", "-D", str(self._data), "-w", "-t", str(_SECONDS), "promote")

    def address(self, database: str = "postgres") -> str:
        """Where to connect, with the patience that a busy machine needs."""
        folder = quote(str(self.folder), safe="")
        return f"postgresql://{_USER}@/{database}?host={folder}&connect_timeout={_SECONDS}"

    def make_database(self, name: str) -> str:
        """A new, empty database; returns its address."""
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return self.address(name)

    def drop_database(self, name: str) -> None:
        """Remove a database and whoever is still connected to it: hundreds of them fill a disk."""
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _call(self, program: str, *arguments: str) -> None:
        user: list[str] = []
        if os.getuid() == 0:
            pwd.getpwnam("postgres")
            user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"]
        subprocess.run(
            [*user, str(self._programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
