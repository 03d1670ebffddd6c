"""Looking at a growing source again and again."""

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
        found = path.stat() if path.is_file() else None
    except OSError:
        return None
    return found and (found.st_ino, found.st_size, found.st_mtime_ns)


def watch_source(
    read: Callable[[bool], Run],
    watcher: Watcher,
    interval: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    state: Callable[[], object] = lambda: None,
) -> GateResult:
    """Look until the rules are settled or all planned tasks are in, and return the verdicts.

    ``read`` is told whether the source may be growing: then a row that is being written is left
    for the next look. A file that nobody has written to for some looks is taken as it is.
    """
    before, unchanged, failures = state(), 0, 0
    said = ""
    while True:
        now = state()
        unchanged = unchanged + 1 if now == before else 0
        failures = failures if now == before else 0
        before = now
        try:
            look = watcher.look(read(now is not None))
            if now is not None and unchanged > _PATIENCE and not (look.settled or look.complete):
                with suppress(ReadError):  # half a row: whoever writes it takes a rest
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
        if message != said:
            click.echo(message, err=True)
            said = message
        sleep(interval)
