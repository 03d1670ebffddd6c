"""``--on ray``: attempts made by the workers of a Ray cluster, on this machine or many.

Claims and results stay where the command was called: that process alone writes to the store, as
results come. A worker that dies costs the attempts it was making, which are made again elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from passhat.errors import EngineUnavailable, InvalidValue, MissingExtra
from passhat.outcomes import MissingReason
from passhat.runner.attempting import seed_of
from passhat.runner.queues import Claims, Outbox, Wanted
from passhat.runner.ray_worker import About, Job, RayWorker
from passhat.runner.running import RunPlan
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement

__all__ = ["OnRay"]

_START_SECONDS = 120.0
_GONE_SECONDS = 120.0
_PAUSE_SECONDS = 0.2
_DEATHS = 3
"""An attempt during which its worker died so often is not tried again."""
_QUICK_SECONDS, _SLOW_SECONDS = 0.1, 0.5
_LARGEST_BATCH = 64
_NOT_SHIPPED = [".git", ".venv", ".passhat", "node_modules", "__pycache__", "*.db", "*.db-*"]


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker, how many batches it has, and whether it answers."""

    actor: Any
    busy: int = 0
    down: bool = False
    reviving: asyncio.Task[None] | None = field(default=None, repr=False)


class OnRay:
    """Workers on a Ray cluster, for one run; use it as a context manager.

    Parameters
    ----------
    plan : RunPlan
        What is to be run.
    suite, agent : str
        Their names: each worker loads them for itself.
    address : str
        ``ray://head:10001``, the address of a cluster on this machine, or empty for a new one here.
    """

    def __init__(self, plan: RunPlan, suite: str, agent: str, address: str = "") -> None:
        self._plan = plan
        self._names = (suite, agent)
        self._address = address
        self._remote = address.startswith("ray://")
        self._workers: list[_Worker] = []
        try:
            import ray
        except ImportError:
            raise MissingExtra("Running on Ray", extra="ray") from None
        self._ray: Any = ray

    @staticmethod
    def address_of(text: str, here: str = "") -> str:
        """What ``ray`` or ``ray://head:10001`` stands for; ``here`` is a cluster that runs here."""
        if text == "ray":
            return here
        if text.startswith("ray://") and len(text) > len("ray://"):
            return text
        raise InvalidValue(
            f"--on {text!r} is not something to run on.",
            hint="Write ray for this machine, or ray://HEAD:10001 for a cluster.",
        )

    @property
    def workers(self) -> int:
        return len(self._workers)

    def __enter__(self) -> Self:
        try:
            self._connect()
            self._start()
        except BaseException:
            self._ray.shutdown()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            self._ray.kill(worker.actor)
        self._ray.shutdown()

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._remote:
            project = {"working_dir": str(Path.cwd()), "excludes": _NOT_SHIPPED}
            quiet = {**quiet, "runtime_env": project}
        elif not self._address:
            quiet = {**quiet, "include_dashboard": False}
        try:
            self._ray.init(self._address or "local", **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
            raise EngineUnavailable(
                f"the Ray cluster {self._address or 'here'} cannot be used ({_line(error)}).",
                hint="Start one with `ray start --head`; if it asks for a token, set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here as there.",
            ) from None

    def _start(self) -> None:
        """As many workers as the cluster has processors, and no more than attempts at once."""
        plan = self._plan
        processors = int(self._ray.cluster_resources().get("CPU", 0))
        count = max(1, min(plan.jobs, processors))
        job = Job(
            *self._names,
            folder="" if self._remote else str(Path.cwd()),
            run=plan.record.id,
            tasks=tuple(task.id for task in plan.record.tasks),
            attempts=plan.attempts,
            limits=plan.limits,
            seed=plan.seed,
            temperature=plan.temperature,
            canary=plan.canary,
            workers=count,
        )
        made = self._ray.remote(
            num_cpus=1, max_restarts=-1, max_concurrency=-(-plan.jobs // count) + 1
        )(RayWorker)
        self._workers = [_Worker(made.remote(job)) for _ in range(count)]
        try:
            said = self._ray.get(
                [worker.actor.about.remote() for worker in self._workers], timeout=_START_SECONDS
            )
        except self._ray.exceptions.GetTimeoutError:
            raise EngineUnavailable(
                f"{count} workers did not start within {_START_SECONDS:g} s; the cluster has "
                f"{processors} processors, which others may be using.",
                hint="Ask for fewer with --jobs, or add nodes.",
            ) from None
        except self._ray.exceptions.RayError as error:
            raise EngineUnavailable(
                f"a worker cannot load suite {self._names[0]!r} and agent {self._names[1]!r} "
                f"({_cause(error)}).",
                hint="The project's folder is brought along; packages it needs, and passhat, must "
                "be installed on every node.",
            ) from None
        self._refuse_differing(said)

    def _refuse_differing(self, said: Sequence[About]) -> None:
        suite = self._plan.suite
        here = About(version("passhat"), suite.fingerprint, suite.judge_fingerprint)
        for about in said:
            names = [
                name for name in About.__slots__ if getattr(about, name) != getattr(here, name)
            ]
            if names:
                raise EngineUnavailable(
                    f"a worker has another {' and '.join(names)} than this machine "
                    f"({getattr(about, names[0])}, not {getattr(here, names[0])}).",
                    hint="Install the same passhat and the same suite on every node.",
                )

    # -- while the run goes on ------------------------------------------------------------------

    async def work(self, plan: RunPlan, claims: Claims, outbox: Outbox) -> None:
        """Have claimed attempts made until there are none; ``plan.jobs`` at once, cluster-wide."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(plan.jobs):
                    group.create_task(self._slot(claims, outbox))
        finally:
            for worker in self._workers:
                if worker.reviving is not None:
                    worker.reviving.cancel()

    async def _slot(self, claims: Claims, outbox: Outbox) -> None:
        """One batch after the other; batches grow while they are over quickly."""
        size = 1
        while True:
            batch: list[Wanted] = []
            while len(batch) < size and (one := await claims.following()) is not None:
                batch.append(one)
            if not batch:
                return
            before = time.monotonic()
            for record in await self._made(batch):
                outbox.put(record)
            await outbox.room()
            spent = time.monotonic() - before
            if spent < _QUICK_SECONDS:
                size = min(2 * size, _LARGEST_BATCH)
            elif spent > _SLOW_SECONDS:
                size = max(1, size // 2)

    async def _made(self, batch: list[Wanted]) -> list[AttemptRecord]:
        """Whatever happens to workers, this returns what came of a batch."""
        for _ in range(_DEATHS):
            records = await self._tried(batch)
            if records is not None:
                return records
            if len(batch) > 1:  # one of them may be what workers die of: the others are not
                return [record for one in batch for record in await self._made([one])]
        ((task, number),) = batch
        why = f"the worker died {_DEATHS} times while it made this attempt"
        judgement = Judgement.missing(MissingReason.INFRASTRUCTURE, why)
        seed = seed_of(self._plan.seed, task, number)
        return [AttemptRecord(task, number, judgement, seed=seed, retries=_DEATHS - 1)]

    async def _tried(self, batch: list[Wanted]) -> list[AttemptRecord] | None:
        worker = await self._free_worker()
        worker.busy += 1
        try:
            reference = worker.actor.make.remote(batch)
            records: list[AttemptRecord] = await asyncio.wrap_future(reference.future())
        except self._ray.exceptions.RayActorError:
            self._revive(worker)
            return None
        finally:
            worker.busy -= 1
        return records

    async def _free_worker(self) -> _Worker:
        """The one with the least to do; waits while none answers."""
        end = time.monotonic() + _GONE_SECONDS
        while not (alive := [worker for worker in self._workers if not worker.down]):
            if time.monotonic() > end:
                raise EngineUnavailable(
                    f"no worker of the Ray cluster has answered for {_GONE_SECONDS:g} s.",
                    hint="What is finished is kept; the same command goes on.",
                )
            await asyncio.sleep(_PAUSE_SECONDS)
        return min(alive, key=lambda worker: worker.busy)

    def _revive(self, worker: _Worker) -> None:
        """Ray starts a worker that died again, here or on another node; wait for its first word."""
        if worker.down:
            return
        worker.down = True

        async def answer() -> None:
            while True:
                try:
                    await asyncio.wrap_future(worker.actor.about.remote().future())
                except self._ray.exceptions.RayError:
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    worker.down = False
                    return

        worker.reviving = asyncio.create_task(answer())


def _line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def _cause(error: BaseException) -> str:
    """The last line of what a worker said: its own exception, without the way there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[-1][:300]
