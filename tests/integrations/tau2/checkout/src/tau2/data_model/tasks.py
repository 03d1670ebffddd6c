"""Tasks with their criteria."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Action:
    action_id: str
    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"


@dataclass
class Instructions:
    reason_for_call: str
    known_info: str | None = None
    task_instructions: str = ""


@dataclass
class UserScenario:
    instructions: Instructions | str


@dataclass
class InitialState:
    message_history: list[Any] | None = None


@dataclass
class EvaluationCriteria:
    actions: list[Action] | None = None
    communicate_info: list[str] | None = None
    nl_assertions: list[str] | None = None
    reward_basis: list[str] = field(default_factory=lambda: ["DB", "COMMUNICATE"])


@dataclass
class Task:
    id: str
    user_scenario: UserScenario
    evaluation_criteria: EvaluationCriteria | None = None
    initial_state: InitialState | None = None
    user_tools: list[str] | None = None

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        return asdict(self)
