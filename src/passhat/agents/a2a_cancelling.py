"""Tasks of an A2A agent that nobody waits for any more: the agent is told so, beside the run.

An attempt that ends by its time limit, by Ctrl-C or under a cap leaves its task working on the
other side. The agent is asked once to cancel it, within a short limit; what it makes of that
changes no verdict. A task whose id the agent has not told yet cannot be named, so it goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from passhat.agents.a2a_wire import theirs
from passhat.agents.base import AgentFault

if TYPE_CHECKING:
    from a2a.client import Client

__all__ = ["Cancelling"]

_SECONDS = 2.0


class Cancelling:
    """Requests to cancel that are under way."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self, client: Client, task_id: str) -> None:
        """Ask the agent to cancel a task, without waiting for its answer."""
        asked = asyncio.create_task(_cancel(client, task_id))
        self._under_way.add(asked)
        asked.add_done_callback(self._under_way.discard)

    async def finish(self) -> None:
        """Wait until all have been answered or given up, which takes a moment at most."""
        if self._under_way:
            await asyncio.wait(self._under_way)


async def _cancel(client: Client, task_id: str) -> None:
    from a2a.types import CancelTaskRequest

    # An agent that cannot cancel, or is gone, is none of this attempt's business.
    with suppress(AgentFault, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            await theirs(client.cancel_task(CancelTaskRequest(id=task_id)))
