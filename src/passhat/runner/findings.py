"""What a check of ``passhat doctor`` found, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Level"]


class Level(StrEnum):
    """How a check ended: usable, usable with care, or not usable."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; ``advice`` says what to do where something is wrong."""

    what: str
    level: Level
    found: str
    advice: str = ""

    def to_dict(self) -> dict[str, str | None]:
        return {
            "what": self.what,
            "level": str(self.level),
            "found": self.found,
            "advice": self.advice or None,
        }
