"""What a simulation ended with."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class TerminationReason(str, Enum):
    USER_STOP = "user_stop"
    AGENT_STOP = "agent_stop"
    MAX_STEPS = "max_steps"
    TOO_MANY_ERRORS = "too_many_errors"


@dataclass
class RewardInfo:
    reward: float
    reward_breakdown: dict[str, float] | None = None

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        return asdict(self)


@dataclass
class SimulationRun:
    id: str
    task_id: str
    termination_reason: TerminationReason
    messages: list[Any] = field(default_factory=list)
    seed: int | None = None
    agent_cost: float | None = None
    duration: float = 0.0

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        return {**asdict(self), "termination_reason": self.termination_reason.value}
