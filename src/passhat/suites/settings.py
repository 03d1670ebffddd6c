"""What a person asked for that only some suites have a use for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Handed to a suite's ``settle``, if it has one; ``None`` is "not said"."""

    tau2: str | None = None
    tau2_python: str | None = None
    user: str | None = None
    scorer: str | None = None
    max_steps: int | None = None
    attempt_seconds: float | None = None
    temperature: float | None = None
