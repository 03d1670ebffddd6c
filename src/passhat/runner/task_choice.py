"""The tasks of a run, and how many attempts each of them gets."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from passhat._display import counted, some
from passhat.agents import Agent
from passhat.agents.chat import ChatAgent
from passhat.errors import InvalidValue
from passhat.runner.run import RunPlan
from passhat.stats.outcomes import Outcomes
from passhat.stats.plan import Allocation
from passhat.stats.plan.allocation import counts_digest
from passhat.store import PlannedAttempts, Store
from passhat.suites import Suite
from passhat.suites.base import Task, check_tasks, fingerprint


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` (from 1) of ``count`` parts of the tasks, for machines that share no store.

    A shard has whole tasks with all their attempts, so that what needs a whole task (the order of
    attempts, passes in a row) is right in every shard. All shards write the same run id, and
    `passhat store merge` joins them.
    """

    number: int
    count: int

    @classmethod
    def of_text(cls, text: str) -> Shard:
        """Parse ``3/8``."""
        match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise InvalidValue(
                f"{text!r} is not a shard.", hint="Write NUMBER/COUNT from 1/8 to 8/8."
            )
        return cls(int(match[1]), int(match[2]))

    def of(self, tasks: Sequence[Task]) -> tuple[Task, ...]:
        """Every ``count``-th task: neighbors, which are often alike, go to different shards."""
        shard_tasks = tuple(tasks[self.number - 1 :: self.count])
        if not shard_tasks:
            raise InvalidValue(
                f"shard {self} has nothing to do: the suite has {counted(len(tasks), 'task')}.",
                hint=f"Use at most {counted(len(tasks), 'shard')}.",
            )
        return shard_tasks

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def choose_tasks(
    suite: Suite, words: Sequence[str], sample_size: int | None, seed: int
) -> tuple[Task, ...]:
    """All tasks, or some: by id, by position (a whole number, from 0), or drawn."""
    check_tasks(suite)
    by_id = {task.id: task for task in suite.tasks}
    tasks = list(suite.tasks)
    if words:
        tasks = []
        for word in words:
            place = int(word) if word.isdigit() else -1
            if word not in by_id and not 0 <= place < len(suite.tasks):
                raise InvalidValue(
                    f"{suite.name} has no task {word!r}.", hint=f"Tasks: {some(list(by_id), 8)}."
                )
            tasks.append(by_id.get(word) or suite.tasks[place])
    if sample_size is not None:
        if not 1 <= sample_size <= len(tasks):
            if not tasks:
                raise InvalidValue("--random has no tasks to draw from: the suite is empty.")
            raise InvalidValue(
                f"--random {sample_size} is not possible: the suite has "
                f"{counted(len(tasks), 'task')}.",
                hint=f"Choose a number from 1 to {len(tasks)}.",
            )
        tasks = random.Random(seed).sample(tasks, sample_size)
    return tuple({task.id: task for task in tasks}.values())


_SHARED_TASKS = 0.5
"""An allocation for less than this share of the tasks is one for another suite."""


def distribute_attempts(
    attempts: int | Allocation, suite: Suite, tasks: Sequence[Task], tell: Callable[[str], None]
) -> PlannedAttempts:
    """Attempts at each task; those that the earlier run does not have get the uniform number.

    Raises
    ------
    InvalidValue
        The allocation was made for another suite.
    """
    if isinstance(attempts, int):
        return PlannedAttempts(attempts)
    earlier, by_task_before = attempts.earlier, attempts.by_task
    other_tasks = earlier.suite_fingerprint not in (None, suite.fingerprint)
    if other_tasks and earlier.suite not in (None, suite.name):
        raise InvalidValue(
            f"the plan was made from {earlier}, which is about another suite, {earlier.suite}, "
            f"not {suite.name}.",
            hint="Make a plan from a run of this suite: passhat plan RUN --allocate -o plan.json",
        )
    new = [task.id for task in tasks if task.id not in by_task_before]
    if len(new) > (1 - _SHARED_TASKS) * len(tasks):
        raise InvalidValue(
            f"the plan was made from {earlier}, which has {len(tasks) - len(new):,} of the "
            f"{counted(len(tasks), 'task')}: that is another suite.",
            hint="Make a plan from a run of these tasks: passhat plan RUN --allocate -o plan.json",
        )
    if new:
        tell(
            f"{counted(len(new), 'task')} not in {earlier} ({some(new, 5)}): "
            f"{counted(attempts.others, 'attempt')} each"
        )
    by_task = {task.id: by_task_before.get(task.id, attempts.others) for task in tasks}
    source = {"metric": attempts.metric, "id": earlier.id, "name": earlier.name}
    source |= {"started": earlier.started, "digest": earlier.digest}
    return PlannedAttempts(max(by_task.values()), by_task, source)


def refuse_other_attempts(plan: RunPlan, store: Store) -> None:
    """Refuse numbers of attempts that this run, as the store has it, was not begun with.

    Attempts added where a run's own results call for them would bias it. And a run whose attempts
    differ by task says from which earlier run they were taken, which can only be one.
    """
    attempts = plan.attempts
    # Not by find(): counting a million attempts takes a while, and nearly always nothing is wrong.
    if store.load_allocation(plan.record.id) in (None, attempts.text):
        return
    run = store.find(plan.record.id)
    is_own_source = (attempts.source.get("id"), attempts.source.get("started")) == (
        run.id,
        run.started,
    )
    if is_own_source or (
        attempts.by_task and attempts.source.get("digest") == _digest(store, run.id)
    ):
        raise InvalidValue(
            f"the attempts per task come from run {run.id}, which is the run that they would be "
            "added to: numbers chosen by a run's own results bias it.",
            hint="Take them from an earlier run (latest~1, or its id), or begin a new run with "
            "--name NAME.",
        )
    before = run.plan.protocol_text or f"{run.planned} at every task"
    raise InvalidValue(
        f"run {run.id} was begun with other numbers of attempts per task ({before}).",
        hint="Give the same --attempts as before, or begin a new run with --name NAME.",
    )


def _digest(store: Store, run: str) -> str:
    counts = store.counts(run)
    outcomes = Outcomes.from_counts(counts.n, counts.c, list(counts.tasks), missing=counts.m)
    return counts_digest(outcomes)


def digest_selection(suite: Suite, chosen: Sequence[Task]) -> str:
    """A digest that distinguishes a run of some tasks from one of all; empty for all."""
    ids = sorted(task.id for task in chosen)
    return "" if len(ids) == len(suite.tasks) else fingerprint(ids)


def refuse_pair(suite: Suite, agent: Agent) -> None:
    """Refuse to mix a suite of another harness with other agents, or its agents with others."""
    if suite.has_workspaces and isinstance(agent, ChatAgent):
        raise InvalidValue(
            f"{agent.name!r} answers with text, and {suite.name} needs an agent that edits files.",
            hint="Name a program, as in -a 'command:claude -p {prompt}', a Python function, or an "
            "A2A agent that returns files.",
        )
    needs, is_for = suite.harness, agent.harness
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
