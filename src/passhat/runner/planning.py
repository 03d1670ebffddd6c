"""From a suite and an agent to a plan whose protocol says everything that must match."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.agents.base import Agent
from passhat.protocol import Protocol
from passhat.runner.attempting import Limits
from passhat.runner.redaction import Redactor
from passhat.runner.running import RunPlan
from passhat.store import RunRecord
from passhat.suites.base import Suite, Task

__all__ = ["plan_run"]


def plan_run(
    suite: Suite,
    agent: Agent,
    *,
    attempts: int,
    tasks: Sequence[Task] | None = None,
    limits: Limits | None = None,
    jobs: int = 8,
    seed: int = 0,
    temperature: float | None = None,
    name: str = "",
    redact: Redactor | None = None,
) -> RunPlan:
    """A plan for all tasks of a suite, or for some of them.

    ``name`` tells runs of the same set-up apart; everything else that differs makes another run
    by itself.
    """
    limits = limits or Limits()
    chosen = tuple(suite.tasks if tasks is None else tasks)
    protocol = Protocol(
        suite=suite.name,
        suite_fingerprint=suite.fingerprint,
        tests_fingerprint=suite.judge_fingerprint,
        decoding={} if temperature is None else {"temperature": temperature},
        max_steps=limits.max_steps,
        step_seconds=limits.step_seconds,
        attempt_seconds=limits.attempt_seconds,
        user_simulator=getattr(suite, "user_simulator", None),
        judge=getattr(suite, "judge", suite.name),
    )
    return RunPlan(
        suite=suite,
        agent=agent,
        record=RunRecord(agent.name, protocol, chosen, name),
        tasks=chosen,
        attempts=attempts,
        limits=limits,
        jobs=jobs,
        seed=seed,
        temperature=temperature,
        redact=redact or Redactor(),
    )
