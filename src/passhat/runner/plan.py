"""From a suite and an agent to a plan whose protocol says everything that must match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from passhat.agents.base import Agent
from passhat.errors import InvalidValue
from passhat.protocol import Protocol, Scalar
from passhat.runner.attempt import Limits
from passhat.runner.redaction import Redactor
from passhat.runner.run import RunPlan, silent
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
    top_p: float | None = None,
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
    _check_pair(suite, agent)
    chosen = tuple(suite.tasks if tasks is None else tasks)
    referenced = getattr(suite, "takes_reference", False) if canary is None else canary
    decoding = _decoding(agent, temperature=temperature, top_p=top_p)
    if canary is not None:
        decoding["reference"] = canary
    protocol = getattr(suite, "protocol", None) or Protocol(
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
        tasks=chosen if shard is None else shard.of(chosen),
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


def _check_pair(suite: Suite, agent: Agent) -> None:
    """A suite that runs itself brings its own agents; neither goes with anything else."""
    needs, is_for = getattr(suite, "harness", ""), getattr(agent, "harness", "")
    if needs == is_for:
        return
    if needs:
        raise InvalidValue(
            f"{suite.name} is run by {needs} itself, so {agent.name!r} cannot attempt it.",
            hint=f"Name a model of {needs}, as in -a {needs}:PROVIDER/MODEL.",
        )
    raise InvalidValue(
        f"{agent.name!r} is a model inside {is_for}, so it cannot attempt {suite.name}.",
        hint=f"Give it a suite that {is_for} runs, as in -s {is_for}:tasks.py@my_task.",
    )
