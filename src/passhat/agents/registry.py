"""Agents by name: ``python:MODULE:FUNCTION``, ``command:PROGRAM``, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from passhat._plugins import check_instance
from passhat.agents.base import Agent
from passhat.errors import InvalidValue

__all__ = ["GROUP", "agent_kinds", "as_agent", "load_agent"]

GROUP = "passhat.agents"


def agent_kinds() -> dict[str, str]:
    """Every kind of agent that is installed, with the first line of its description."""
    return {
        entry.name: (entry.load().__doc__ or "").strip().splitlines()[0]
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def as_agent(agent: Agent | Callable[..., object] | str) -> Agent:
    """An agent from an Agent, a function, a class, or a word for load_agent.

    Raises
    ------
    InvalidValue
        It is none of these.
    """
    from passhat.agents.function import agent_from_object

    if isinstance(agent, str):
        return load_agent(agent)
    return agent_from_object(agent)


def load_agent(word: str) -> Agent:
    """The agent that a word such as ``command:./agent`` names."""
    kind, sign, rest = word.partition(":")
    makers = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not sign or kind not in makers:
        raise InvalidValue(
            f"{word!r} is not an agent.",
            hint=f"Kinds of agent: {', '.join(sorted(makers))}; as in python:my_module:answer.",
        )
    agent = makers[kind].load()(rest)
    check_instance(agent, Agent, f"the agent {word}")
    assert isinstance(agent, Agent)
    return agent
