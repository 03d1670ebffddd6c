"""From a suite and an agent to a plan whose protocol says everything that must match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from passhat.agents.base import Agent
from passhat.protocol import Protocol, Scalar
from passhat.runner.attempting import Limits
from passhat.runner.redaction import Redactor
from passhat.runner.running import RunPlan, silent
from passhat.store import RunRecord
from passhat.suites.base import Suite, Task, fingerprint

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
    top_p: float | None = None,
    name: str = "",
    stop_when: Sequence[str] = (),
    canary: bool | None = None,
    redact: Redactor | None = None,
    tell: Callable[[str], None] = silent,
) -> RunPlan:
    """A plan for all tasks of a suite, or for some of them.

    ``name`` tells runs of the same set-up apart; everything else that differs makes another run
    by itself. ``canary`` is whether conversations carry a reference; left open, those of suites
    made of conversations do, and prompts that are graded word for word stay as they are.
    """
    limits = limits or Limits()
    chosen = tuple(suite.tasks if tasks is None else tasks)
    referenced = getattr(suite, "takes_reference", False) if canary is None else canary
    decoding = _decoding(agent, temperature=temperature, top_p=top_p)
    if canary is not None:
        decoding["reference"] = canary
    protocol = Protocol(
        suite=suite.name,
        suite_fingerprint=suite.fingerprint,
        tests_fingerprint=suite.judge_fingerprint,
        decoding=decoding,
        max_steps=limits.max_steps,
        step_seconds=limits.step_seconds,
        attempt_seconds=limits.attempt_seconds,
        user_simulator=getattr(suite, "user_simulator", None),
        judge=getattr(suite, "judge", suite.name),
    )
    return RunPlan(
        suite=suite,
        agent=agent,
        record=RunRecord(agent.name, protocol, chosen, name, _selection(suite, chosen)),
        tasks=chosen,
        attempts=attempts,
        limits=limits,
        jobs=jobs,
        seed=seed,
        temperature=temperature,
        top_p=top_p,
        redact=redact or Redactor(),
        stop_when=tuple(stop_when),
        canary=referenced,
        tell=tell,
    )


def _selection(suite: Suite, chosen: Sequence[Task]) -> str:
    """Tells a run of some tasks from one of all of them; empty for all."""
    ids = sorted(task.id for task in chosen)
    return "" if len(ids) == len(suite.tasks) else fingerprint(ids)


def _decoding(agent: Agent, **given: float | None) -> dict[str, Scalar]:
    """How the agent samples: what its own word sets, and over it what the run sets."""
    own: Mapping[str, Scalar] = getattr(agent, "decoding", {})
    return {**own, **{name: value for name, value in given.items() if value is not None}}
