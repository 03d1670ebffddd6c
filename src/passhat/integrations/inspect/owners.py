"""Who is making an attempt right now, and whether they are still alive.

A row is written before an attempt is started, so that two runners on one store never make the same
one. When a runner was killed, its rows are left behind; the next runner sees that their owner is
gone and makes those attempts itself. A store that several machines share also keeps when every
owner was last seen.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["is_gone", "this_owner"]

_ENDED = ("Z", "X", "x")
"""States of a process that is over."""


def this_owner() -> str:
    """Host, process and its start: a process id alone is used again by others."""
    return f"{socket.gethostname()}/{os.getpid()}/{_start_of(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether an owner on this machine no longer runs; of other machines nothing is known."""
    host, pid, start, *_ = [*owner.split("/"), "", ""]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _start_of(int(pid)) != start


def _start_of(pid: int) -> str:
    """When a process started, where the system says so.

    One that has ended and that nobody has asked about yet is still listed; it runs no more.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in _ENDED else fields[18]
    except (OSError, ValueError, IndexError):
        return ""
