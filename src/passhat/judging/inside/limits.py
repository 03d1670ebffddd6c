"""Limits that a process puts on itself before it runs foreign code."""

from __future__ import annotations

import math
import resource
from typing import Any

__all__ = ["apply_limits"]

_FILE_BYTES = 16 * 1024 * 1024
_OPEN_FILES = 64
_PROCESSES = 64


def apply_limits(job: dict[str, Any]) -> None:
    """Memory, processor time, file size, open files, processes; no core file."""
    _limit(resource.RLIMIT_AS, int(job["memory"]))
    # The fork server judges by the processor clock; this is for the day it cannot.
    _limit(resource.RLIMIT_CPU, math.ceil(job["cpu"]) + 2)
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _limit(resource.RLIMIT_CORE, 0)
    # Counts all processes of the user, and does not bind for root: the filter is what stops forks.
    if job["confined"]:
        _limit(resource.RLIMIT_NPROC, _PROCESSES)


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))
