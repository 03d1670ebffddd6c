"""The scripted user: a goal, facts given only when asked for, and a mood.

Wording, order and mood come from the attempt's seed. The user understands the agent by key words,
one sentence at a time: what is asked, whether something was refused, whether the agent is done.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from passhat.errors import RunStopped
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import SimulatedUser, Speaker, Turn, WorldFault
from passhat.suites.orderdesk.episode import DeskEpisode, Goal
from passhat.suites.orderdesk.scenarios import Domain, Scenario, Wish

STOP = "###LEAVE###"
"""The text with which the simulated user ends the conversation."""

_MOOD_LINES: Mapping[str, str] = MappingProxyType(
    {
        "plain": "You are friendly and to the point.",
        "hurried": "You have little time and name all your wishes at once if you can.",
        "chatty": "You are in good spirits and like to add a remark about your day.",
        "cross": "You are annoyed that this takes so long, but you stay polite enough.",
    }
)


class SimulatedEpisode(DeskEpisode):
    """A conversation at the desk with a user who is simulated by a model."""

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
        opening = "The desk picks up. Say your first words."
        words = await self._spoken(Turn(f"{self._role}\n\n{opening}", self._role, opening))
        if words is None:
            raise WorldFault(MissingReason.USER_ERROR, "the simulated user left without a word")
        return self.first_turn(words)

    async def reply(self, answer: str) -> Turn | None:
        result = self.work(answer)
        if not isinstance(result, str):
            return result
        return self.heard(await self._spoken(Turn(result, said=result)))

    async def close(self) -> None:
        if self._speaker is not None:
            await self._speaker.close()

    async def _spoken(self, turn: Turn) -> str | None:
        try:
            if self._speaker is None:
                self._speaker = await self._user.start(self._attempt)
            words = await self._speaker.answer(turn)
        except (WorldFault, RunStopped):
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise WorldFault(MissingReason.USER_ERROR, detail) from None
        if STOP in words:
            return None
        if not words.strip():
            raise WorldFault(MissingReason.USER_ERROR, "the simulated user said nothing")
        return words.strip()


def instructions(domain: Domain, scenario: Scenario, facts: Mapping[str, str], seed: int) -> str:
    """The prompt of the model that plays the user; the mood comes from the seed."""
    dice = random.Random(seed)
    mood = _MOOD_LINES[dice.choice(list(_MOOD_LINES))]
    wishes = list(scenario.wishes)
    if not scenario.in_order:
        dice.shuffle(wishes)
    lines = [
        "You play a customer who calls a service desk. Stay in this part whatever you hear.",
        mood,
        "",
        "What you want, in this order:",
        *(line for wish in wishes for line in _request_lines(domain, wish, "- ")),
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


def _request_lines(domain: Domain, wish: Wish, start: str) -> Iterator[str]:
    """Lines on a request, its facts for questions, and the alternative after a refusal."""
    words = domain.phrases[wish.kind][0].format(thing=wish.thing)
    yield f"{start}{words} {wish.ask}".rstrip()
    for words in wish.facts.values():
        yield f"  Only when asked: {words}"
    if wish.insists:
        yield "  If this is refused, insist once; then accept it."
    if wish.otherwise is not None:
        yield from _request_lines(
            domain, wish.otherwise, "  If this cannot be done, you want instead: "
        )


@dataclass(frozen=True, slots=True)
class _Mood:
    """How a simulated user speaks, and how many turns without progress they accept."""

    greetings: tuple[str, ...]
    asides: tuple[str, ...]
    patience: int
    all_at_once: bool = False


_MOODS: Mapping[str, _Mood] = MappingProxyType(
    {
        "plain": _Mood(("Hello.", "Hi there.", "Good morning."), ("",), 3),
        "hurried": _Mood(("Hi, I have little time.", "Quickly, please."), ("",), 2, True),
        "chatty": _Mood(
            ("Hello! What a day.", "Hi! It is raining cats and dogs here."),
            ("My neighbour told me you are helpful.", "I have been with you for years."),
            4,
        ),
        "cross": _Mood(
            ("Well, finally.", "I have been waiting on this line for ages."),
            ("I am not happy about this.", "This should not be so hard."),
            2,
        ),
    }
)

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_ASKS = re.compile(r"\?|\b(?:please|could you|may i|i need|tell me|let me know)\b")
_AGREES = re.compile(
    r"\b(?:shall i|should i|would you like me|do you want me|is that (?:ok|okay|fine|right"
    r"|all right)|do you agree|go ahead|confirm|proceed)\b"
)
_REFUSES = re.compile(
    r"\b(?:cannot|can't|can not|unable|not possible|impossible|not allowed|may not|must not"
    r"|no longer|out of stock|not eligible|not entitled|only go)\b"
)
_CLOSES = re.compile(r"\b(?:anything else|something else|further|more i can|goodbye)\b")
_WAITS = re.compile(
    r"\b(?:one moment|a moment|please wait|hold on|bear with|let me|i will (?:look|check))\b"
)


class ScriptedUser:
    """A customer in a single attempt."""

    def __init__(self, domain: Domain, scenario: Scenario, facts: Mapping[str, str], seed: int):
        self._random = random.Random(seed)
        self._domain = domain
        self._about_me = facts
        self._mood = _MOODS[self._random.choice(list(_MOODS))]
        self._patience = self._mood.patience
        self._left = list(scenario.wishes)
        if not scenario.in_order:
            self._random.shuffle(self._left)
        self._stated: list[Wish] = []
        self._insisted: set[int] = set()

    def first(self) -> str:
        """The first message of the conversation."""
        count = len(self._left) if self._mood.all_at_once and self._is_simple() else 1
        wishes = [self._next_wish() for _ in range(count)]
        parts = [
            self._random.choice(self._mood.greetings),
            *wishes,
            self._random.choice(self._mood.asides),
        ]
        return " ".join(part for part in parts if part)

    def _is_simple(self) -> bool:
        """Whether all requests fit in one message: no argument, no ambiguous fact."""
        facts = [fact for wish in self._left for fact in wish.facts.items()]
        clear = len({topic for topic, _ in facts}) == len(set(facts))
        return clear and all(not wish.insists and wish.otherwise is None for wish in self._left)

    def reply_to(self, text: str) -> str | None:
        """The user's reply; ``None`` when they leave."""
        sentences = [sentence.lower() for sentence in _BETWEEN_SENTENCES.split(text)]
        asking = [
            sentence
            for sentence in sentences
            if _ASKS.search(sentence) and not _CLOSES.search(sentence)
        ]
        if answers := self._answers(asking):
            return " ".join(answers)
        if any(map(_REFUSES.search, sentences)) and (reply := self._after_refusal()):
            return reply
        if any(map(_AGREES.search, asking)):
            return self._random.choice(("Yes, please.", "Yes, that is fine.", "Yes, go ahead."))
        if any("?" in sentence for sentence in asking):
            return self._lose_patience("I do not know. You will have to look that up.")
        if self._left:
            return f"{self._random.choice(('Thanks.', 'Good.', 'All right.'))} {self._next_wish()}"
        if any(map(_WAITS.search, sentences)) and not any(map(_CLOSES.search, sentences)):
            return self._lose_patience("Fine, I will wait.")
        return None

    def _answers(self, asking: list[str]) -> list[str]:
        """Every requested fact that the user has, in any order."""
        facts = dict(self._about_me)
        for wish in self._stated:
            facts |= wish.facts
        answers = [
            words
            for topic, words in facts.items()
            if any(re.search(self._domain.topics[topic], sentence) for sentence in asking)
        ]
        self._random.shuffle(answers)
        return list(dict.fromkeys(answers))

    def _after_refusal(self) -> str | None:
        """Try once more, or take the second best."""
        wish = self._stated[-1]
        if wish.insists and id(wish) not in self._insisted:
            self._insisted.add(id(wish))
            return self._random.choice(
                (
                    "Surely you can make an exception for me?",
                    "Your colleague said it would be no problem. Please try again.",
                )
            )
        if wish.otherwise is None or wish.otherwise in self._stated:
            return None
        self._stated.append(wish.otherwise)
        return f"{self._random.choice(('Then', 'In that case'))}: {self._spoken(wish.otherwise)}"

    def _next_wish(self) -> str:
        wish = self._left.pop(0)
        self._stated.append(wish)
        return self._spoken(wish)

    def _spoken(self, wish: Wish) -> str:
        words = self._random.choice(self._domain.phrases[wish.kind]).format(thing=wish.thing)
        words = words[0].upper() + words[1:]
        return f"{words} {wish.ask}" if wish.ask else words

    def _lose_patience(self, words: str) -> str | None:
        self._patience -= 1
        return words if self._patience > 0 else None
