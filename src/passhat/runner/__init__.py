"""Plan, workers, limits, progress, resume: k fresh attempts at every task."""

from passhat.runner.run import Limits, Progress, RunPlan, run_attempts

__all__ = ["Limits", "Progress", "RunPlan", "run_attempts"]
