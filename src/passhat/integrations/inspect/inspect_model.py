"""``inspect:PROVIDER/MODEL``: a model of inspect, for the suites that inspect runs itself."""

from __future__ import annotations

from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory

__all__ = ["InspectModel"]


class InspectModel(Agent):
    """A model inside inspect, for inspect suites: inspect:openai/gpt-4o, inspect:mockllm/model."""

    harness = "inspect"

    def __init__(self, model: str) -> None:
        if "/" not in model:
            raise InvalidValue(
                f"{model!r} is not a model of inspect.",
                hint="Models read PROVIDER/MODEL, as in inspect:openai/gpt-4o.",
            )
        self.model = model
        self.name = f"inspect:{model}"

    async def session(self, attempt: AttemptInfo) -> Session:
        """Never asked for: inspect talks to its models itself."""
        raise AgentFault(
            FailureCategory.AGENT_ERROR,
            f"{self.name} only attempts suites that inspect runs, not {attempt.task}",
        )
