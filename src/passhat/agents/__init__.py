"""Who attempts: one small protocol, and the kinds of agent that speak it."""

from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.agents.registry import load_agent

__all__ = ["Agent", "AgentFault", "AttemptInfo", "Session", "load_agent"]
