"""A user played by a model: any agent that can talk, at the other end of the line."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

from passhat.agents.base import Agent, AttemptInfo, Session
from passhat.errors import InvalidValue, RunStopped
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import Suite, Turn, WorldFault

__all__ = ["with_user"]

_USER_SECONDS = 120.0
"""How long the user may think; it is not on the agent's clock."""


def with_user(suite: Suite, user: Agent) -> Suite:
    """The same suite with its user played by ``user``; the protocol names it."""
    make = getattr(suite, "with_user", None)
    if make is None:
        raise InvalidValue(
            f"{suite.name} has no user to be played.",
            hint="--user works with suites that have a conversation, such as orderdesk/retail.",
        )

    async def start(attempt: object) -> _OnTheLine:
        # An episode outside of a run (in a notebook, say) belongs to no attempt.
        info = attempt if isinstance(attempt, AttemptInfo) else AttemptInfo("", 1, 0)
        return _OnTheLine(await user.session(_own(info)), info)

    played = make(_described(user), start)
    played.close = getattr(user, "close", _nothing)
    return cast("Suite", played)


class _OnTheLine:
    """One attempt's conversation with the user, off the agent's clock and on its meter."""

    def __init__(self, session: Session, info: AttemptInfo) -> None:
        self._session = session
        self._info = info

    async def answer(self, turn: Turn) -> str:
        with self._info.meter.off_the_clock():
            try:
                async with asyncio.timeout(_USER_SECONDS):
                    return await self._session.answer(turn)
            except TimeoutError:
                detail = f"the simulated user said nothing for {_USER_SECONDS:g} s"
                raise WorldFault(MissingReason.USER_ERROR, detail) from None
            except WorldFault as fault:
                if fault.reason is MissingReason.BUDGET:
                    raise
                raise WorldFault(MissingReason.USER_ERROR, fault.detail) from None
            except RunStopped:
                raise
            except Exception as error:
                detail = f"{type(error).__name__}: {error}"
                raise WorldFault(MissingReason.USER_ERROR, detail) from None

    async def close(self) -> None:
        with suppress(Exception):
            await self._session.close()


def _own(info: AttemptInfo) -> AttemptInfo:
    """What the user's model may know: the run's temperature is the agent's, not the user's."""
    return AttemptInfo(info.task, info.number, info.seed, meter=info.meter)


def _described(user: Agent) -> str:
    """The user's name with its settings: another temperature of the user is another protocol."""
    settings: dict[str, Any] = getattr(user, "decoding", {})
    return user.name + "".join(f" {name}={value}" for name, value in sorted(settings.items()))


async def _nothing() -> None:
    return
