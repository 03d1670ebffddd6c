"""What can keep a program in: kinds of sandbox by name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from passhat.errors import InvalidValue

__all__ = ["ENGINES", "Container", "SandboxKind", "Walls", "read_walls"]

ENGINES = ("docker", "podman")


class SandboxKind(StrEnum):
    """What keeps a program in, where nothing else has to be named."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Container:
    """A container of an image, by an engine; ``python`` is the interpreter inside it."""

    engine: str
    image: str
    python: str = "python3"

    def __str__(self) -> str:
        return f"{self.engine}:{self.image}"


Walls = SandboxKind | Container


def read_walls(word: str, python: str | None = None) -> Walls | None:
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
    if word in (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK):
        return SandboxKind(word)
    raise InvalidValue(
        f"--sandbox {word!r} is not a sandbox.",
        hint="There are: auto, bubblewrap, landlock, docker:IMAGE, podman:IMAGE.",
    )
