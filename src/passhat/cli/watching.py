"""Looking at a growing source again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from passhat.errors import ReadError

if TYPE_CHECKING:
    from passhat.gates import GateResult
    from passhat.gates.watching import Watcher
    from passhat.outcomes import Run

__all__ = ["watch_source"]

_PATIENCE = 3
"""Looks in a row at which the source may be unreadable: its last line is being written."""


def watch_source(
    read: Callable[[], Run],
    watcher: Watcher,
    interval: float,
    sleep: Callable[[float], None] = time.sleep,
) -> GateResult:
    """Look until the rules are settled or all planned tasks are in, and return the verdicts."""
    failures = 0
    said = ""
    while True:
        try:
            look = watcher.look(read())
            failures = 0
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
