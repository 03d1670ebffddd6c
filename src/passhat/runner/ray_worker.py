"""What a Ray worker does: load suite and agent by name, and make attempts as the local runner does.

Nothing here imports Ray. The worker is a process of its own, perhaps on another machine, so it is
told everything in one :class:`Job`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from passhat.agents import load_agent
from passhat.agents.base import AttemptInfo
from passhat.runner.attempting import Attempter, seed_of
from passhat.runner.canaries import Canary
from passhat.runner.redaction import Redactor
from passhat.runner.time_limits import Limits, Watch
from passhat.store.records import AttemptRecord
from passhat.suites import load_suite

__all__ = ["About", "Job", "RayWorker"]


@dataclass(frozen=True, slots=True)
class Job:
    """A run as workers need to know it; suite and agent are names, not objects.

    ``folder`` is where the names mean what they meant to the user; empty where Ray has brought the
    project's files along. ``workers`` is how many there are: a rate that holds for all of them is
    shared out by that number.
    """

    suite: str
    agent: str
    folder: str
    run: str
    tasks: tuple[str, ...]
    attempts: int
    limits: Limits
    seed: int
    temperature: float | None
    canary: bool
    workers: int


@dataclass(frozen=True, slots=True)
class About:
    """What must be the same on every worker as where the run was planned."""

    passhat: str
    suite_fingerprint: str
    judge_fingerprint: str


class RayWorker:
    """Makes attempts, several at a time; one of these per process."""

    def __init__(self, job: Job) -> None:
        if job.folder:
            os.chdir(job.folder)
        if "" not in sys.path:
            sys.path.insert(0, "")  # python:MODULE may be a module of the user's folder
        self._job = job
        self._suite = load_suite(job.suite)
        self._tasks = {task.id: task for task in self._suite.tasks}
        agent = load_agent(job.agent)
        share = getattr(agent, "share_among", None)
        if share is not None:
            share(job.workers)
        canary = Canary(f"{job.run}/{job.seed}", job.tasks, job.attempts)
        # The secrets to be kept out of transcripts are those of this machine.
        redact = Redactor(os.environ)
        self._attempter = Attempter(
            self._suite, agent, job.limits, redact, canary if job.canary else None
        )
        self._watch = Watch(job.limits)
        self._watching: asyncio.Task[None] | None = None

    async def about(self) -> About:
        """Also a sign of life."""
        return About(version("passhat"), self._suite.fingerprint, self._suite.judge_fingerprint)

    async def make(self, wanted: Sequence[tuple[str, int]]) -> list[AttemptRecord]:
        """Make some attempts, one after the other."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch.keep())
        # A time limit cancels the task that it is about, which must be our own and not Ray's.
        return await asyncio.create_task(self._make(wanted))

    async def _make(self, wanted: Sequence[tuple[str, int]]) -> list[AttemptRecord]:
        clock = self._watch.clock()
        records = []
        try:
            for task, number in wanted:
                seed = seed_of(self._job.seed, task, number)
                info = AttemptInfo(task, number, seed, self._job.temperature)
                records.append(await self._attempter.attempt(self._tasks[task], info, clock))
        finally:
            self._watch.forget(clock)
        return records
