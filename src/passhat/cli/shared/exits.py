"""How a command ends: exit codes, one meaning each, and the advice of an error."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from passhat.errors import Hint, PasshatError

if TYPE_CHECKING:
    from passhat.stats.outcomes.run import Loss


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    """Done; for a gate: every rule is shown."""
    REFUTED = 1
    """A gate's rule is refuted by the data; a review or the doctor found something."""
    USAGE = 2
    """The command or its input cannot be used as it is."""
    NOT_SETTLED = 3
    """The data neither show nor refute a rule; a review left it open."""
    INCOMPLETE = 4
    """Something was lost or is absent: planned attempts, part of a file, a judgement."""
    STOPPED = 130
    """Stopped by Ctrl-C."""


def word_flag(name: str, value: Any) -> str:
    """The flag of an option of the library, such as ``--margin 5`` for ``margin=0.05``."""
    if name in ("mean", "icc", "correlation"):
        return f"--assume {name}" if value is None else f"--assume {name}={value}"
    if name == "draw_whole_tasks":  # a function in Python, a command here
        return "passhat label RUN --whole-tasks 20"
    flag = f"--{'corrected' if name == 'correction' else name.replace('_', '-')}"
    if value is None or value is True:
        return flag
    if name in ("margin", "max_missing"):  # a share in Python, points on the command line
        return f"{flag} {100 * value:g}"
    if name == "columns":
        return "--map " + ",".join(f"{column}={source}" for column, source in value.items())
    if name == "passes":
        return f"--pass {value!r}"
    text = str(value).replace(" ", "-") if name == "about" else str(value)
    return f"{flag} {text!r}" if " " in text else f"{flag} {text}"


def hint_text(error: PasshatError | Loss) -> str:
    """The advice of an error or a loss in flags instead of Python's keywords; empty if none."""
    hint = error.hint
    return hint.reword(word_flag) if isinstance(hint, Hint) else hint or ""
