"""The process in the user's checkout: started once, called over a socket, ended with passhat."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from passhat.errors import InvalidValue
from passhat.suites.registry import end_child, last_error_line

_START_SECONDS = 180.0
_LONGEST_DETAIL = 400
_LONGEST_LINE = 16 * 1024 * 1024
_WORKER = Path(__file__).with_name("worker.py")

_INSTALL = (
    "Get it with: git clone https://github.com/sierra-research/tau2-bench && cd tau2-bench && "
    "python3.12 -m venv .venv && .venv/bin/pip install -e . ; then --set tau2=tau2-bench"
)
_HINTS = {
    "absent": f"tau2-bench is not on the package index. {_INSTALL}",
    "other": "The tau2 on the package index is a chemistry package, not the benchmark. "
    f"Remove it with: pip uninstall tau2. {_INSTALL}",
    "incomplete": "Install what the checkout needs into that interpreter, with: "
    "{python} -m pip install -e {checkout}",
    "broken": "Does the checkout work by itself? Try: {python} -c 'import tau2.registry'",
    "domain": "Name a domain as in tau2:retail.",
    "extra": "This domain needs an extra of the checkout; its pyproject.toml names them, as in: "
    "{python} -m pip install -e '{checkout}[knowledge]'",
    "unbuilt": "tau2 raised this when it read or built the domain. Its data lie in "
    "{checkout}/data, or where TAU2_DATA_DIR says; some domains need a key in the environment.",
    "data": "Its data lie in {checkout}/data, or where TAU2_DATA_DIR says.",
}


class WorkerGone(Exception):
    """The process ended, or closed the connection, during a request."""


class Connection:
    """The connection of an attempt to its own process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._pid: int | None = None

    async def send(self, data: Mapping[str, object]) -> None:
        self._writer.write(json.dumps(data).encode() + b"\n")
        with suppress(ConnectionError):  # the next receive reports it
            await self._writer.drain()

    async def receive(self) -> dict[str, Any]:
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError) as error:
            raise WorkerGone(f"the tau2 worker does not answer ({error})") from None
        if not line:
            raise WorkerGone("the tau2 worker ended in the middle of the attempt")
        message: dict[str, Any] = json.loads(line)
        if "pid" in message:
            self._pid = int(message["pid"])
            return await self.receive()
        return message

    async def close(self) -> None:
        """Kill the attempt's process."""
        if self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGKILL)
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class Server:
    """tau2 loaded in the user's interpreter, ready for requests."""

    def __init__(self, checkout: Path, python: str) -> None:
        self._checkout, self._python = checkout, python
        folder = tempfile.mkdtemp(prefix="passhat-tau2-")
        self._socket = str(Path(folder) / "socket")
        errors = (Path(folder) / "stderr").open("w+b")
        environment = dict(os.environ)
        if environment.get("PASSHAT_TAU2_SAVE"):
            # The worker runs in the checkout; the user means a folder below the current one.
            environment["PASSHAT_TAU2_SAVE"] = os.path.abspath(environment["PASSHAT_TAU2_SAVE"])  # noqa: PTH100
        try:
            process = subprocess.Popen(
                [python, "-P", str(_WORKER), str(checkout), self._socket],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=checkout,
                env=environment,
                start_new_session=True,  # Ctrl-C is for passhat, which lets attempts finish
            )
        except OSError as error:
            errors.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise InvalidValue(
                f"the interpreter {python} cannot be started ({error.strerror}).",
                hint="Name the one that tau2 is installed in: --set tau2_python=PATH",
            ) from None
        self._end = weakref.finalize(self, _end_process, process, errors, folder)
        try:
            self._wait_until_ready(process, errors)
        except BaseException:
            self._end()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        line = process.stdout.readline() if ready else b""
        if not line:
            raise InvalidValue(
                f"tau2 in {self._checkout} did not start: {last_error_line(errors)}",
                hint=self._hint("broken"),
            )
        reply = json.loads(line)
        if "trouble" in reply:
            raise self._trouble(reply)

    def ask(self, question: Mapping[str, object]) -> dict[str, Any]:
        """Send a request and return its answer, before any attempt is made."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_START_SECONDS)
            line.connect(self._socket)
            with line.makefile("rw", encoding="utf-8", newline="\n") as stream:
                stream.write(json.dumps(question) + "\n")
                stream.flush()
                stream.readline()  # its process id
                text = stream.readline()
        if not text:
            raise InvalidValue(
                f"tau2 in {self._checkout} gave no answer.", hint=self._hint("broken")
            )
        reply: dict[str, Any] = json.loads(text)
        if "trouble" in reply:
            raise self._trouble(reply)
        return reply

    async def connect(self) -> Connection:
        """A fresh process for one attempt."""
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=_LONGEST_LINE)
        return Connection(reader, writer)

    def close(self) -> None:
        self._end()

    def _trouble(self, reply: Mapping[str, str]) -> InvalidValue:
        # tau2 names every row of a database that does not fit: 100 KB for airline's users.
        detail = reply["detail"]
        detail = detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]} ..."
        return InvalidValue(
            f"{self._checkout} cannot be used as a tau2-bench checkout: {detail}.",
            hint=self._hint(reply["trouble"]),
        )

    def _hint(self, kind: str) -> str:
        return _HINTS[kind].format(python=self._python, checkout=self._checkout)


def _end_process(process: subprocess.Popen[bytes], errors: IO[bytes], folder: str) -> None:
    end_child(process, errors)
    shutil.rmtree(folder, ignore_errors=True)
