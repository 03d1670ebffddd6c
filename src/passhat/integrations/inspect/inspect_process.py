"""The process that inspect runs in: asked in lines of JSON, ended with passhat."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from passhat.errors import InvalidValue, MissingExtra
from passhat.suites.children import end_child, last_words

__all__ = ["InspectProcess"]


class InspectProcess:
    """One interpreter with inspect loaded; the same that passhat runs in."""

    def __init__(self) -> None:
        if importlib.util.find_spec("inspect_ai") is None:
            raise MissingExtra("Running inspect tasks", extra="inspect")
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed together with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "passhat.integrations.inspect.inspect_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for passhat, which passes it on
        )
        self._errors = errors
        self._end = weakref.finalize(self, end_child, self._process, errors)

    def ask(self, what: str, job: Mapping[str, object]) -> None:
        """Send a question; the answers are then read one by one."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the next answer says that nobody is there
            self._process.stdin.write(json.dumps({what: job}).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next answer; waits for it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise InvalidValue(
                f"inspect ended without an answer: {last_words(self._errors)}",
                hint="Try the task by itself, with: inspect eval",
            )
        said: dict[str, Any] = json.loads(line)
        return said

    def interrupt(self) -> None:
        """As Ctrl-C does for inspect: it cancels what is going on and completes its log."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._end()
