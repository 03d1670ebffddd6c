"""Judges a simulation by what was done and what was said."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tau2.data_model.simulation import RewardInfo, SimulationRun, TerminationReason
from tau2.data_model.tasks import Task
from tau2.registry import registry


class EvaluationType(str, Enum):
    ENV = "env"
    ALL = "all"


def evaluate_simulation(
    simulation: SimulationRun,
    task: Task,
    evaluation_type: EvaluationType,
    solo_mode: bool,
    domain: str,
    mode: str = "half_duplex",
    env_kwargs: dict[str, Any] | None = None,
    strict_replay: bool = True,
) -> RewardInfo:
    if simulation.termination_reason is not TerminationReason.USER_STOP:
        return RewardInfo(0.0)
    criteria = task.evaluation_criteria
    assert criteria is not None
    if criteria.nl_assertions and evaluation_type is EvaluationType.ALL:
        raise RuntimeError("Missing credentials for the model that judges assertions")
    world, gold = registry.get_env_constructor(domain)(), registry.get_env_constructor(domain)()
    for message in simulation.messages:
        for call in getattr(message, "tool_calls", None) or ():
            world.get_response(call)
    for action in criteria.actions or ():
        gold.make_tool_call(action.name, action.requestor, **action.arguments)
    checks = {"DB": float(world.things == gold.things)}
    if evaluation_type is EvaluationType.ALL:
        said = " ".join(
            message.content or "" for message in simulation.messages if message.role == "assistant"
        )
        checks["COMMUNICATE"] = float(all(one in said for one in criteria.communicate_info or ()))
    reward = 1.0
    for value in checks.values():
        reward *= value
    return RewardInfo(reward, checks)
