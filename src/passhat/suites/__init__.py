"""Suites: the contract, and the kinds that come with passhat."""

from passhat.suites.base import Episode, Judgement, Suite, Task, Turn
from passhat.suites.registry import load_suite

__all__ = ["Episode", "Judgement", "Suite", "Task", "Turn", "load_suite"]
