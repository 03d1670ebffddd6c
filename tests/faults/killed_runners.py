"""Kills a runner at random moments, again and again; a program that test_kills_and_locks runs.

    python killed_runners.py STORE TIMES SEED

Every runner is a fork of this process, so that what is killed is a runner at work and not one that
is still being imported. Prints, as JSON lines, the attempts that were finished after each kill.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import signal
import sys
import time

from passhat.agents import Agent, AttemptInfo, Session
from passhat.runner.run import Progress, RunPlan, Stop, run_attempts
from passhat.runner.run_spec import RunSpec
from passhat.store import AttemptRecord, open_store
from passhat.suites.base import Turn

ATTEMPTS = 400
AHEAD = 32
"""So many attempts beyond those written, and beyond those heard of, may be made: neither a slow
disk nor a slow listener misses the run."""
SMALLEST_PIPE = 4096
SIGN = b"." * (SMALLEST_PIPE // AHEAD)


class Slow(Agent, Session):
    """Answers after a few milliseconds."""

    name = "slow"

    def __init__(self) -> None:
        self.begun = self.written = 0

    async def session(self, _attempt: AttemptInfo) -> Slow:
        return self

    async def answer(self, _turn: Turn) -> str:
        self.begun += 1
        await asyncio.sleep(0.004)
        while self.begun > self.written + AHEAD:
            await asyncio.sleep(0.001)
        return "yes"


def plan(agent: Slow) -> RunPlan:
    return RunSpec(suite="jsonl:tasks.jsonl", agent=agent, attempts=ATTEMPTS, jobs=8).plan()


def run(path: str, told: int | None = None) -> None:
    """Make what is left; a sign for every attempt that was written goes to ``told``."""
    agent = Slow()

    def seen(_record: AttemptRecord, progress: Progress) -> None:
        agent.written = progress.done
        if told is not None:
            os.write(told, SIGN)

    # A short lease: the next runner waits for the claims of one that was killed.
    with open_store(path, lease_seconds=1.0) as store:
        store.release(plan(agent).record.id)
        asyncio.run(run_attempts(plan(agent), store, Stop(), seen))


def finished(path: str) -> list[tuple[str, int]]:
    with open_store(path) as store:
        assert store.is_sound()
        return [
            (task, number) for run in store.runs() for task, number, _ in store.verdicts(run.id)
        ]


def main(path: str, times: int, seed: int) -> None:
    moments = random.Random(seed)
    for _ in range(times):
        hears, told = os.pipe()
        fcntl.fcntl(told, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
        child = os.fork()
        if child == 0:
            run(path, told)
            os._exit(0)
        os.close(told)
        # So far into the run, and then a little: how fast it goes depends on the machine.
        wanted = moments.randrange(120) * len(SIGN)
        while wanted > 0 and (heard := os.read(hears, wanted)):
            wanted -= len(heard)
        time.sleep(moments.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(hears)
        sys.stdout.write(json.dumps(finished(path)) + "\n")
    run(path)
    sys.stdout.write(json.dumps(finished(path)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
