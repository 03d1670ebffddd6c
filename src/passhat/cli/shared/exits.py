"""Exit codes, one meaning each, the same for every command."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    """Done; for a gate: every rule is shown."""
    REFUTED = 1
    """A gate's rule is refuted by the data; a review or the doctor found something."""
    USAGE = 2
    """The command or its input cannot be used as it is."""
    NOT_SETTLED = 3
    """The data neither show nor refute a rule."""
    INCOMPLETE = 4
    """Something was lost or is absent: planned attempts, part of a file, a judgement."""
    STOPPED = 130
    """Stopped by Ctrl-C."""
