"""From a suite and an agent to a plan whose protocol says everything that must match."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passhat.agents.base import Agent
from passhat.errors import InvalidValue
from passhat.protocol import Protocol, Scalar
from passhat.runner.attempting import Limits
from passhat.runner.redaction import Redactor
from passhat.runner.running import RunPlan, silent
from passhat.runner.shards import Shard
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
    name: str = "",
    stop_when: Sequence[str] = (),
    canary: bool | None = None,
    redact: Redactor | None = None,
    shard: Shard | None = None,
    tell: Callable[[str], None] = silent,
) -> RunPlan:
    """A plan for all tasks of a suite, or for some of them.

    ``name`` tells runs of the same set-up apart; everything else that differs makes another run
    by itself. ``canary`` is whether conversations carry a reference; left open, those of suites
    made of conversations do, and prompts that are graded word for word stay as they are. With
    ``shard`` only its tasks are made here, of the same run.
    """
    if shard is not None and stop_when:
        raise InvalidValue(
            "--stop-when looks at all tasks, and a shard sees only its own.",
            hint="Let runners share one --store without --shard, or gate the merged store.",
        )
    limits = limits or Limits()
    chosen = tuple(suite.tasks if tasks is None else tasks)
    referenced = getattr(suite, "takes_reference", False) if canary is None else canary
    decoding: dict[str, Scalar] = {} if temperature is None else {"temperature": temperature}
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
        judge=suite.name,
    )
    return RunPlan(
        suite=suite,
        agent=agent,
        record=RunRecord(agent.name, protocol, chosen, name, _selection(suite, chosen)),
        tasks=chosen if shard is None else shard.of(chosen),
        attempts=attempts,
        limits=limits,
        jobs=jobs,
        seed=seed,
        temperature=temperature,
        redact=redact or Redactor(),
        stop_when=tuple(stop_when),
        canary=referenced,
        tell=tell,
    )


def _selection(suite: Suite, chosen: Sequence[Task]) -> str:
    """Tells a run of some tasks from one of all of them; empty for all."""
    ids = sorted(task.id for task in chosen)
    return "" if len(ids) == len(suite.tasks) else fingerprint(ids)
