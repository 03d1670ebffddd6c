"""How many tasks, how many attempts: answered before the money is spent."""

from passhat.stats.plan.difficulty import Components, Difficulty
from passhat.stats.plan.plan_result import Plan, PlanRow
from passhat.stats.plan.planner import plan

__all__ = ["Components", "Difficulty", "Plan", "PlanRow", "plan"]
