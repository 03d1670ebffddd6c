"""Plans: how many tasks and how many attempts are needed, before the money is spent."""

from passhat.stats.plan.allocation import Allocation, Allocator, EarlierRun
from passhat.stats.plan.difficulty import Difficulty
from passhat.stats.plan.plan_result import Plan
from passhat.stats.plan.planner import allocate, plan_attempts, plan_tasks

__all__ = [
    "Allocation",
    "Allocator",
    "Difficulty",
    "EarlierRun",
    "Plan",
    "allocate",
    "plan_attempts",
    "plan_tasks",
]
