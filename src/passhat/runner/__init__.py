"""Plan, workers, limits, progress, resume: k fresh attempts at every task."""

from passhat.runner.run import AttemptLimits, Progress, RunPlan, run_attempts
from passhat.runner.run_spec import RunResult, RunSpec

__all__ = ["AttemptLimits", "Progress", "RunPlan", "RunResult", "RunSpec", "run_attempts"]
