"""Objects of other frameworks as agents.

An object is recognized by the package of its class, so no framework is imported here. Each turn is
handed to the framework with the conversation so far; its model calls and tool calls are recorded,
and its tokens count for budgets and caps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from passhat.agents.base import Agent, AttemptInfo
from passhat.agents.framework_sessions import (
    AdkSession,
    Ag2Session,
    AgentsSdkSession,
    AgnoSession,
    AutoGenSession,
    ClaudeSession,
    CrewAiSession,
    DspySession,
    FrameworkSession,
    LangGraphSession,
    LlamaIndexSession,
    PydanticAiSession,
    SmolagentsSession,
    StrandsSession,
)
from passhat.agents.prices import PriceTable
from passhat.errors import InvalidValue

__all__ = ["FrameworkAgent", "framework_of", "refuse_unknown"]


def framework_of(thing: object) -> type[FrameworkSession] | None:
    """The session class for an object of a known framework; ``None`` for any other object."""
    for kind in type(thing).__mro__:
        for (package, classes), session in _FRAMEWORKS.items():
            if f"{kind.__module__}.".startswith(f"{package}.") and kind.__name__ in classes:
                return session
    return None


def refuse_unknown(thing: object) -> None:
    """Refuse an object of a framework that is known but not run directly, before any attempt.

    Some of them can be called, but not with a prompt alone: every attempt would fail.

    Raises
    ------
    InvalidValue
        The hint says how to wrap the object in a function.
    """
    for kind in type(thing).__mro__:
        for package, (name, call) in _WRAPPED_FRAMEWORKS.items():
            if f"{kind.__module__}.".startswith(f"{package}."):
                raise InvalidValue(
                    f"an object of {name} is not run directly.",
                    hint="Wrap it in a function that makes a new one for every attempt: def "
                    f"answer(prompt): return {call}",
                )


class FrameworkAgent(Agent):
    """An object of another framework as an agent."""

    def __init__(self, thing: Any, session: type[FrameworkSession], name: str) -> None:
        self.name = name
        self.price_table: PriceTable | None = None
        self._thing = thing
        self._session = session
        self._turn = asyncio.Lock()

    async def check(self) -> None:
        """Refuse an object that cannot be run, before the first attempt."""
        self._turn = asyncio.Lock()  # the next run may have another event loop
        self._session.check(self._thing)

    async def session(self, attempt: AttemptInfo) -> FrameworkSession:
        return self._session(self._thing, attempt, self.price_table, self._turn)


_FRAMEWORKS: Mapping[tuple[str, tuple[str, ...]], type[FrameworkSession]] = {
    ("langgraph", ("Pregel",)): LangGraphSession,
    ("agents", ("Agent",)): AgentsSdkSession,
    ("pydantic_ai", ("AbstractAgent", "Agent")): PydanticAiSession,
    ("crewai", ("Crew", "Agent")): CrewAiSession,
    ("smolagents", ("MultiStepAgent",)): SmolagentsSession,
    ("dspy", ("Module",)): DspySession,
    ("llama_index", ("BaseWorkflowAgent", "AgentWorkflow")): LlamaIndexSession,
    ("autogen_agentchat", ("BaseChatAgent", "BaseGroupChat")): AutoGenSession,
    ("ag2", ("Agent",)): Ag2Session,
    ("agno", ("Agent",)): AgnoSession,
    ("strands", ("Agent",)): StrandsSession,
    ("google.adk", ("BaseAgent",)): AdkSession,
    ("claude_agent_sdk", ("ClaudeAgentOptions",)): ClaudeSession,
}
"""The classes whose objects are run, by the package they come from."""


_WRAPPED_FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "agno": ("agno", "make_team().run(prompt).content"),
    "autogen": ("AG2 before version 1", "make_agent().run(message=prompt, max_turns=1).summary"),
    "autogen_agentchat": (
        "AutoGen",
        "asyncio.run(make_agent().run(task=prompt)).messages[-1].content",
    ),
    "claude_agent_sdk": ("the Claude Agent SDK", "the text of query(prompt=prompt)"),
    "google.adk": ("Google's ADK", "the text of the last event of InMemoryRunner(make_agent())"),
    "llama_index": ("LlamaIndex", "str(make_engine().query(prompt))"),
    "smolagents": ("smolagents", "str(make_agent().run(prompt))"),
    "strands": ("Strands", "str(make_agent()(prompt))"),
}
"""Other objects of frameworks: the framework's name, and a call that answers a prompt."""
