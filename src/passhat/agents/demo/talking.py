"""Behavior that both clerks share: make moves, read results, work through the user's requests."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any, TypeVar

from passhat.agents.base import AttemptInfo
from passhat.suites.tool_calls import RESPOND, Call

PLAIN, CARE, HARD = 0.7, 2.0, 4.0
"""How much a decision asks of the clerk: reading, minding a rule, keeping to it under pressure."""

_USUAL_TEMPERATURE = 0.7
_MOST = 0.9


@dataclass(frozen=True, slots=True)
class Habits:
    """How often a plain decision goes wrong, and how unevenly over tasks."""

    slip: float
    unevenness: float


HABITS: Mapping[str, Habits] = MappingProxyType(
    {"careful": Habits(0.009, 0.7), "hasty": Habits(0.032, 0.9)}
)


class Mind:
    """The dice of one attempt.

    Every task suits an agent more or less, which is why some tasks fail again and again and others
    never. Temperature scales the slips; at temperature 0 the dice are the same in every attempt.
    """

    def __init__(self, habits: Habits, attempt: AttemptInfo) -> None:
        temperature = attempt.temperature
        heat = _USUAL_TEMPERATURE if temperature is None else max(0.0, temperature)
        aptitude = random.Random(f"{habits}/{attempt.task}").gauss(0.0, habits.unevenness)
        self._rate = habits.slip * math.exp(aptitude) * (0.4 + 0.6 * heat / _USUAL_TEMPERATURE)
        dice_seed = attempt.seed if heat > 0 else attempt.task
        # Not the seed itself: the user's dice come from it, and the two must not move together.
        self._random = random.Random(f"mind/{habits}/{dice_seed}")
        self._wording = random.Random(f"wording/{habits}/{dice_seed}")
        self._load = 1.0

    def slips(self, weight: float = PLAIN) -> bool:
        """Whether this decision goes wrong; more likely if it is hard or late in a long case."""
        return self._random.random() < min(_MOST, self._rate * weight * self._load)

    def gets_harder(self) -> None:
        """Make later decisions harder: another request, a refusal, a user who insists."""
        self._load *= 1.4

    def vary_words(self, *ways: str) -> str:
        """A random choice among phrasings of the same sentence."""
        return self._wording.choice(ways)

    def forgets_the_form(self) -> bool:
        return self.slips(0.25)


T = TypeVar("T")
Steps = Generator[Call, str, T]
"""A piece of work: yields moves, receives what comes back, and returns its result."""

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?:])\s+")
_RESULT = "Tool result: "


def use(tool: str, /, **arguments: object) -> Steps[Any]:
    """Call a tool; its result, or ``None`` when the tool failed."""
    reply = yield Call(tool, arguments)
    return json.loads(reply.removeprefix(_RESULT)) if reply.startswith(_RESULT) else None


def say(text: str) -> Steps[str]:
    """Say something to the user and listen."""
    reply = yield Call(RESPOND, {"content": text})
    return reply.removeprefix("User: ")


def ask_or_forget(mind: Mind, question: str) -> Steps[str]:
    """Ask the user for a choice, or forget to ask and use the default."""
    if mind.slips(CARE):
        return ""
    answer = yield from say(question)
    return answer


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the user, in the user's own sentence."""

    kind: str
    sentence: str


class Clerk:
    """Works through requests until the user leaves; subclasses handle the kinds of a domain."""

    kinds: Mapping[str, str]
    """A pattern for each kind of wish; the first that matches a sentence decides."""

    handed_over: Mapping[str, str]
    """Kinds that a colleague takes, with the topic."""

    def __init__(self, mind: Mind, today: date) -> None:
        self.mind = mind
        self.today = today
        self._reports: list[str] = []
        self._refused: Callable[[], Steps[str]] | None = None

    def work(self, words: str) -> Steps[None]:
        """The whole conversation."""
        todo = self.requests(words)
        yield from self.identify()
        while True:
            if len(todo) > 1 and self.mind.slips(CARE):
                todo.pop()  # lost sight of it
            text = yield from self._handle_requests(todo)
            closing = self.mind.vary_words(
                "Is there anything else?",
                "Anything else I can do?",
                "Can I help with something else?",
                "Is there anything else you need?",
            )
            words = yield from say(f"{text} {closing}".strip())
            todo = self.requests(words)
            self.mind.gets_harder()

    def requests(self, words: str) -> list[Request]:
        """The requests in a message, at most one per sentence."""
        requests = []
        for sentence in _BETWEEN_SENTENCES.split(words):
            for kind, pattern in self.kinds.items():
                if re.search(pattern, sentence, re.IGNORECASE):
                    requests.append(Request(kind, sentence))
                    break
        return requests

    def _handle_requests(self, todo: list[Request]) -> Steps[str]:
        if not todo:
            return (yield from self._answer_insistence())
        self._reports.clear()
        for request in sorted(todo, key=lambda request_: request_.kind in self.handed_over):
            if request.kind in self.handed_over:
                yield from self.pass_on(self.handed_over[request.kind])
            self._reports.append((yield from self.handle(request)))
        return " ".join(self._reports)

    def pass_on(self, topic: str) -> Steps[None]:
        """Hand over to a colleague, after reporting the finished requests to the user."""
        yield from say(f"{' '.join(self._reports)} Shall I hand you over to a colleague?".strip())
        yield from use("hand_over", topic=topic)

    def refuse(self, because: str, anyway: Callable[[], Steps[str]]) -> str:
        """Refuse a request, and keep a way to give in if the user insists."""
        self._refused = anyway
        self.mind.gets_harder()
        if self.mind.slips():
            return "I am sorry, I cannot do that."  # without mentioning the rule
        return f"I am sorry, I cannot do that: {because}."

    def _answer_insistence(self) -> Steps[str]:
        """The user wants nothing new. Stay firm, or give in."""
        give_in, self._refused = self._refused, None
        if give_in is not None and self.mind.slips(HARD):
            return (yield from give_in())
        return "I am sorry, there is no exception to that rule; it cannot be done."

    def amount(self, text: str, value: float) -> str:
        """A finished request with its amount, unless the amount is forgotten."""
        return f"{text}." if self.mind.slips() else f"{text}: {value:.2f}."

    def ask_for_email(self) -> Steps[str]:
        """Ask for the e-mail address; empty when the user does not remember it."""
        words = yield from say(
            self.mind.vary_words(
                "Gladly.", "Of course.", "I will see what I can do.", "Happy to help."
            )
            + " "
            + self.mind.vary_words(
                "May I have your e-mail address?",
                "What is your e-mail address?",
                "Please tell me your e-mail address.",
            )
        )
        match = re.search(r"[\w.+-]+@[\w.-]+\w", words)
        return match[0] if match else ""

    def identify(self) -> Steps[None]:
        """Identify the user, as the policy requires before any change."""
        raise NotImplementedError

    def handle(self, request: Request) -> Steps[str]:
        """Fulfil or refuse a request; returns the report for the user."""
        raise NotImplementedError
