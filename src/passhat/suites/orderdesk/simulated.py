"""The simulated user: a model that is told who it plays, what it wants, and what to keep back.

What the scripted user does by key words, this one does by understanding. It leaves by a word of
its own. It is any agent that can hold a conversation; when it breaks, the attempt is missing
(``user_error``), never failed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from passhat.errors import RunStopped
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import SimulatedUser, Speaker, Turn, WorldFault
from passhat.suites.orderdesk.episode import AtTheDesk
from passhat.suites.orderdesk.judging import Goal
from passhat.suites.orderdesk.scenarios import Domain, Scenario, Wish

__all__ = ["STOP", "SimulatedEpisode", "instructions"]

STOP = "###LEAVE###"
"""What the simulated user writes to end the conversation."""

_MOODS: Mapping[str, str] = MappingProxyType(
    {
        "plain": "You are friendly and to the point.",
        "hurried": "You have little time and name all your wishes at once if you can.",
        "chatty": "You are in good spirits and like to add a remark about your day.",
        "cross": "You are annoyed that this takes so long, but you stay polite enough.",
    }
)


class SimulatedEpisode(AtTheDesk):
    """A conversation at the desk with a user who has to be waited for."""

    def __init__(
        self,
        domain: Domain,
        scenario: Scenario,
        goals: Sequence[Goal],
        role: str,
        user: SimulatedUser,
    ) -> None:
        super().__init__(domain, scenario, goals)
        self._role = role
        self._user = user
        self._attempt: object = None
        self._speaker: Speaker | None = None

    def join(self, attempt: object) -> None:
        """Called by the runner: the attempt that the user's part belongs to."""
        self._attempt = attempt

    async def open(self) -> Turn:
        try:
            self._speaker = await self._user.start(self._attempt)
            opening = "The desk picks up. Say your first words."
            words = await self._spoken(Turn(f"{self._role}\n\n{opening}", self._role, opening))
        except (WorldFault, RunStopped):
            raise
        except Exception as error:
            raise _broken(error) from None
        if words is None:
            raise WorldFault(MissingReason.USER_ERROR, "the simulated user left without a word")
        return self.first_turn(words)

    async def reply(self, answer: str) -> Turn | None:
        done = self.work(answer)
        if not isinstance(done, str):
            return done
        try:
            return self.heard(await self._spoken(Turn(done, said=done)))
        except (WorldFault, RunStopped):
            raise
        except Exception as error:
            raise _broken(error) from None

    async def close(self) -> None:
        if self._speaker is not None:
            await self._speaker.close()

    async def _spoken(self, turn: Turn) -> str | None:
        assert self._speaker is not None
        words = await self._speaker.answer(turn)
        if STOP in words:
            return None
        if not words.strip():
            raise WorldFault(MissingReason.USER_ERROR, "the simulated user said nothing")
        return words.strip()


def instructions(domain: Domain, scenario: Scenario, facts: Mapping[str, str], seed: int) -> str:
    """What the model that plays the user is told; the mood comes from the seed."""
    dice = random.Random(seed)
    mood = _MOODS[dice.choice(list(_MOODS))]
    wishes = list(scenario.wishes)
    if not scenario.in_order:
        dice.shuffle(wishes)
    lines = [
        "You play a customer who calls a service desk. Stay in this part whatever you hear.",
        mood,
        "",
        "What you want, in this order:",
        *(line for wish in wishes for line in _told(domain, wish, "- ")),
        "",
        "What you know about yourself, told only when you are asked for it:",
        *(f"- {words}" for words in facts.values()),
        "",
        "Rules:",
        "- Write only what the customer says next, in one to three sentences.",
        "- Never tell a fact before you are asked for it, and never make one up: if you do not "
        "know, say so.",
        "- Agree when you are asked to confirm what you want.",
        f"- When everything is settled, or it is clear that nothing more can be done, write {STOP} "
        "and nothing else.",
    ]
    return "\n".join(lines)


def _told(domain: Domain, wish: Wish, start: str) -> Iterator[str]:
    """A wish, what comes out only when asked, and what follows a refusal."""
    words = domain.phrases[wish.kind][0].format(thing=wish.thing)
    yield f"{start}{words} {wish.ask}".rstrip()
    for words in wish.facts.values():
        yield f"  Only when asked: {words}"
    if wish.insists:
        yield "  If this is refused, insist once; then accept it."
    if wish.otherwise is not None:
        yield from _told(domain, wish.otherwise, "  If this cannot be done, you want instead: ")


def _broken(error: Exception) -> WorldFault:
    return WorldFault(MissingReason.USER_ERROR, f"{type(error).__name__}: {error}")
