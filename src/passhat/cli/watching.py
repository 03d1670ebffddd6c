"""Read a growing source again and again until its rules are settled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.errors import NoRows, ReadError

if TYPE_CHECKING:
    from passhat.stats.gate import GateResult
    from passhat.stats.gate.sequential_gate import Watcher
    from passhat.stats.outcomes import Run

__all__ = ["state_of", "watch_source"]

_PATIENCE = 3
"""Looks in a row at which the source may stay as it is: unreadable, or without an end of its last
line."""


def state_of(source: str) -> object:
    """Changes with every write to a file; ``None`` for what is no file, such as a stored run."""
    path = Path(source)
    try:
        status = path.stat() if path.is_file() else None
    except OSError:
        return None
    return status and (status.st_ino, status.st_size, status.st_mtime_ns)


def watch_source(
    read: Callable[[bool], Run],
    watcher: Watcher,
    interval: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    state: Callable[[], object] = lambda: None,
) -> GateResult:
    """Look until the rules are settled or all planned tasks are in, and return the verdicts.

    ``read`` takes whether the source may be growing: then a row that is being written is left
    for the next look. A file that has not changed for some looks is taken as it is.
    """
    before, unchanged, failures = state(), 0, 0
    last_message = ""
    while True:
        now = state()
        unchanged = unchanged + 1 if now == before else 0
        failures = failures if now == before else 0
        before = now
        try:
            look = watcher.look(read(now is not None))
            if now is not None and unchanged > _PATIENCE and not (look.settled or look.complete):
                with suppress(ReadError):  # half a row: its writer pauses
                    look = watcher.look(read(False))
            failures = 0
        except NoRows as error:
            message = f"nothing to be read yet ({error.message})"
        except ReadError as error:
            failures += 1
            if failures > _PATIENCE:
                raise
            message = f"cannot be read yet ({error.message})"
        else:
            if look.settled or look.complete:
                return look.result
            message = str(look)
        if message != last_message:
            click.echo(message, err=True)
            last_message = message
        sleep(interval)
