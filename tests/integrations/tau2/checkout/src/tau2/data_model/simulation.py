"""What a simulation ended with."""

from __future__ import annotations

from dataclasses import dataclass, field
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


@dataclass
class SimulationRun:
    id: str
    task_id: str
    termination_reason: TerminationReason
    messages: list[Any] = field(default_factory=list)
    seed: int | None = None
