"""Ray workers that serve one run after another, so that a test need not wait for new processes.

A run gets new workers in new processes otherwise; all that they do there, they do here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from passhat.integrations.ray.ray_worker import About, BatchResult, Job, RayWorker
from passhat.runner.remote_limits import Answer, LimitRequest, LimitUpdate

__all__ = ["KeptWorker", "kept_workers"]


class KeptWorker:
    """A process with the worker of the present run."""

    def __init__(self) -> None:
        self._inner: Any = None
        self._folder = ""

    async def begin(self, job: Job) -> None:
        """The worker of a new run; what earlier ones loaded from their folder is forgotten."""
        for name, module in list(sys.modules.items()):
            if self._folder and str(getattr(module, "__file__", "")).startswith(self._folder):
                del sys.modules[name]
        importlib.invalidate_caches()
        self._folder = job.folder
        self._inner = RayWorker(job)

    async def about(self) -> About:
        about: About = await self._inner.about()
        return about

    async def poll(self) -> list[LimitRequest | LimitUpdate]:
        said: list[LimitRequest | LimitUpdate] = await self._inner.poll()
        return said

    async def receive(self, said: Sequence[Answer | LimitUpdate]) -> None:
        await self._inner.receive(said)

    async def exchange(
        self, batches: Sequence[tuple[int, Sequence[tuple[str, int]]]]
    ) -> list[tuple[int, BatchResult]]:
        finished: list[tuple[int, BatchResult]] = await self._inner.exchange(batches)
        return finished

    async def close(self) -> None:
        await self._inner.close()


def kept_workers(ray: Any, count: int) -> list[Any]:
    """Actors that take no processor away from those that other tests start."""
    kind = ray.remote(num_cpus=0, max_concurrency=200)(KeptWorker)
    return [kind.remote() for _ in range(count)]
