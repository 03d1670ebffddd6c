"""How many tasks, how many attempts: answered before the money is spent."""

from passhat.planning.difficulty import Components, Difficulty
from passhat.planning.planning import plan
from passhat.planning.result import Plan, PlanRow

__all__ = ["Components", "Difficulty", "Plan", "PlanRow", "plan"]
