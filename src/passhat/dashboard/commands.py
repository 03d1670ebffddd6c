"""Commands started from a page: the same command line, in a process of its own."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join

from passhat.store import without_password

# Where the store is comes by standard input: an address may hold a password, and the arguments of
# a process can be read by all users of the machine.
_PROGRAM = (
    "import sys; from passhat.cli import main; command, *others = sys.argv[1:]; "
    "sys.exit(main([command, '--store=' + sys.stdin.readline().rstrip(chr(10)), *others]))"
)
_TAIL = 4_000
_GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Started:
    """A command that was started here."""

    number: int
    line: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def code(self) -> int | None:
        """Exit code; ``None`` while the command runs."""
        return self.process.poll()

    @property
    def tail(self) -> str:
        """The end of the command's output."""
        with self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - _TAIL))
            return stream.read().decode("utf-8", "replace")


class Commands:
    """Commands started here, newest first. Closing interrupts the running ones, as Ctrl-C does.

    ``place`` is the store that every command is about.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._started: list[Started] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def all(self) -> list[Started]:
        return self._started[::-1]

    def start(self, command: str, arguments: Sequence[str]) -> Started:
        """Start ``passhat COMMAND --store=... ARGUMENTS``.

        Values are joined to their options, so none is an option.
        """
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="passhat-view-")
            number = len(self._started) + 1
            log = Path(self._folder.name) / f"{number}.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, command, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(f"{self._place}\n".encode())
            store_option = f"--store={without_password(self._place)}"
            line = join(["passhat", command, store_option, *arguments])
            entry = Started(number, line, process, log)
            self._started.append(entry)
            return entry

    def close(self) -> None:
        """Interrupt running commands; finished attempts are kept, and a rerun resumes."""
        going = [command for command in self._started if command.code is None]
        for command in going:
            with contextlib.suppress(ProcessLookupError):
                command.process.send_signal(signal.SIGINT)
        for command in going:
            try:
                command.process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                command.process.kill()
                command.process.wait()
        if self._folder is not None:
            self._folder.cleanup()
