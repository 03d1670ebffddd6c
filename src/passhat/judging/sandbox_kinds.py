"""Kinds of sandbox by name, and the limits of one program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from passhat.errors import InvalidValue

ENGINES = ("docker", "podman")


class SandboxKind(StrEnum):
    """A kind of sandbox that needs no further settings."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"

    @property
    def program(self) -> str | None:
        """The command that must be installed, where there is one."""
        return {SandboxKind.BUBBLEWRAP: "bwrap"}.get(self)


TRIED = (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK)
"""Kinds that ``auto`` tries, in this order."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of an image, by an engine; ``python`` is the interpreter inside it."""

    engine: str
    image: str
    python: str = "python3"

    def __str__(self) -> str:
        return f"{self.engine}:{self.image}"


SandboxSpec = SandboxKind | Container


def read_sandbox(word: str, python: str | None = None) -> SandboxSpec | None:
    """The kind that ``--sandbox`` names; ``None`` for ``auto``."""
    if word == "auto":
        return None
    engine, sign, image = word.partition(":")
    if engine in ENGINES:
        if not sign or not image.strip() or image.startswith("-"):
            raise InvalidValue(
                f"--sandbox {word} names no image.",
                hint=f"Name one that holds a Python, as in {engine}:python:3.12-slim.",
            )
        return Container(engine, image, python or "python3")
    if word in TRIED:
        return SandboxKind(word)
    raise InvalidValue(
        f"--sandbox {word!r} is not a sandbox.",
        hint=f"There are: auto, {', '.join(TRIED)}, docker:IMAGE, podman:IMAGE.",
    )


_WALL_FACTOR = 4
_WALL_EXTRA = 20.0
_IDLE_EXTRA = 2.0


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of a program.

    Processor time, since a busy machine does not use it up: a right answer does not become a
    timeout there. A program that only waits is ended 2 seconds after that limit.
    """

    cpu_seconds: float = 5.0
    memory: int = 1 << 30  # bytes of address space
    scratch: int = 16 << 20  # bytes in the private ``/tmp``
    output: int = 4 << 20  # bytes that a script may print
    wall: float | None = None  # four times the processor time and 20 seconds unless given

    def __post_init__(self) -> None:
        if not 0 < self.cpu_seconds <= 3600:
            raise InvalidValue(
                f"the time limit must lie between 0 and 3600 seconds, not {self.cpu_seconds}."
            )

    @property
    def wall_seconds(self) -> float:
        """The backstop for a program that waits instead of working."""
        if self.wall is not None:
            return self.wall
        return _WALL_FACTOR * self.cpu_seconds + _WALL_EXTRA

    @property
    def idle_seconds(self) -> float:
        """Seconds that a program may only wait, of its own: for a sleep, a lock, an answer."""
        return min(self.cpu_seconds + _IDLE_EXTRA, self.wall_seconds)


JUDGES = ("both", "plain", "split")
"""Which judges decide; see :mod:`passhat.judging.examiner`."""


@dataclass(frozen=True, slots=True)
class JudgeRules:
    """Which judges decide, and in which sandbox."""

    judges: str = "both"  # one of JUDGES
    strict: bool = False  # a pass by plain Python alone is a missing attempt like any other
    allow_weak: bool = False  # a sandbox that fails a part of the self-test may be used

    def __post_init__(self) -> None:
        if self.judges not in JUDGES:
            raise InvalidValue(
                f"{self.judges!r} is not a judge.",
                hint=f"There are: {', '.join(JUDGES)}.",
            )
