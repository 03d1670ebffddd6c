"""Agents: the contract, and the kinds that come with passhat."""

from passhat.agents.base import (
    Agent,
    AgentFault,
    AttemptInfo,
    Meter,
    ProviderFault,
    Session,
    Usage,
)
from passhat.agents.function import as_agent, load_agent

__all__ = [
    "Agent",
    "AgentFault",
    "AttemptInfo",
    "Meter",
    "ProviderFault",
    "Session",
    "Usage",
    "as_agent",
    "load_agent",
]
