"""A suite that runs itself: another harness makes the attempts, the plan is handed over to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from passhat.protocol import Protocol as Promise

if TYPE_CHECKING:
    from passhat.runner.run import Progress, RunPlan, Seen, Stop
    from passhat.store import Store

__all__ = ["Harness"]


@runtime_checkable
class Harness(Protocol):
    """What such a suite has beside a suite's own: its word, its protocol, its way to run.

    Its agents have the same ``harness`` word; they go with nothing else, and nothing else with it.
    """

    harness: str

    @property
    def protocol(self) -> Promise:
        """What the harness is told; it must be known before the first attempt."""

    async def run(self, plan: RunPlan, store: Store, stop: Stop, seen: Seen) -> Progress:
        """Make every planned attempt that the store does not have yet."""
