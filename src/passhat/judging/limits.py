"""What one execution of a program may use."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.errors import InvalidValue

__all__ = ["Limits"]

_WALL_FACTOR = 4
_WALL_EXTRA = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program.

    Parameters
    ----------
    cpu_seconds : float
        Processor time. A busy machine does not use it up, so a right answer does not become a
        timeout there.
    memory : int
        Bytes of address space.
    scratch : int
        Bytes in the private ``/tmp``.
    output : int
        Bytes that a script may print.
    """

    cpu_seconds: float = 5.0
    memory: int = 1 << 30
    scratch: int = 16 << 20
    output: int = 4 << 20

    def __post_init__(self) -> None:
        if not 0 < self.cpu_seconds <= 3600:
            raise InvalidValue(
                f"the time limit must lie between 0 and 3600 seconds, not {self.cpu_seconds}."
            )

    @property
    def wall_seconds(self) -> float:
        """The backstop for a program that waits instead of working."""
        return _WALL_FACTOR * self.cpu_seconds + _WALL_EXTRA
