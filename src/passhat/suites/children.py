"""Processes that a suite starts for itself: how they end, and what they said last."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import IO

__all__ = ["end_child", "last_words"]

_SHOWN = 400


def end_child(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """Kill a process and close everything that was open to it."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()
    errors.close()


def last_words(errors: IO[bytes]) -> str:
    """The last line that a process wrote as its errors: mostly what went wrong."""
    errors.seek(0)
    text = errors.read().decode("utf-8", "replace").strip()
    return text.splitlines()[-1][:_SHOWN] if text else "it said nothing"
