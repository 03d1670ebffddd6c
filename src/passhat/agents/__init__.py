"""Who attempts: one small protocol, and the kinds of agent that speak it."""

from passhat.agents.base import (
    Agent,
    AgentFault,
    AttemptInfo,
    Meter,
    ProviderFault,
    Session,
    Usage,
)
from passhat.agents.registry import load_agent

__all__ = [
    "Agent",
    "AgentFault",
    "AttemptInfo",
    "Meter",
    "ProviderFault",
    "Session",
    "Usage",
    "load_agent",
]
