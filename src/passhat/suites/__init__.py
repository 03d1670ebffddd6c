"""Tasks, the world they play in, and the judge that decides."""

from passhat.suites.base import Episode, Judgement, Suite, Task, Turn
from passhat.suites.registry import load_suite

__all__ = ["Episode", "Judgement", "Suite", "Task", "Turn", "load_suite"]
