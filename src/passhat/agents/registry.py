"""Agents by name: ``python:MODULE:FUNCTION``, ``command:PROGRAM``, and what plug-ins bring."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from passhat.agents.base import Agent
from passhat.errors import InvalidValue

__all__ = ["GROUP", "agent_kinds", "load_agent"]

GROUP = "passhat.agents"


def agent_kinds() -> dict[str, str]:
    """Every kind of agent that is installed, with the first line of its description."""
    return {
        entry.name: (entry.load().__doc__ or "").strip().splitlines()[0]
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def load_agent(word: str) -> Agent:
    """The agent that a word such as ``command:./agent`` names."""
    kind, sign, rest = word.partition(":")
    makers = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not sign or kind not in makers:
        raise InvalidValue(
            f"{word!r} is not an agent.",
            hint=f"Kinds of agent: {', '.join(sorted(makers))}; as in python:my_module:answer.",
        )
    return cast("Agent", makers[kind].load()(rest))
