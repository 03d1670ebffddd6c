"""A shared rate, pause and cap for workers in other processes.

The process that started the run is the gatekeeper: it owns the same :class:`Pace` and
:class:`Budget` that the local runner uses, and nothing of their arithmetic is done elsewhere. A
worker has :class:`RemoteLimits`, a queue of requests that the gatekeeper polls and answers. Without
a limit nothing is requested: without ``rate`` a call costs no message, and only updates for all
workers (a pause, the first answer) are sent.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from passhat.agents.base import Agent, ProviderFault, Usage
from passhat.agents.chat import ChatAgent
from passhat.agents.pacing import Pace
from passhat.agents.provider import Provider
from passhat.runner.budget import Account
from passhat.stats.outcomes import MissingReason

AttemptKey = tuple[str, int]
"""A task and the number of an attempt at it."""
Settled = tuple[Usage | None, ...]
"""Usage of calls, in their order; ``None`` for a call that was refused and cost nothing."""


@dataclass(frozen=True, slots=True)
class LimitRequest:
    """Request to make a call: to a provider now, or for an attempt, with its largest usage."""

    id: int
    provider: str = ""
    attempt: AttemptKey | None = None
    settled: Settled = ()
    worst: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes, or why not."""

    id: int
    refused: str = ""


@dataclass(frozen=True, slots=True)
class LimitUpdate:
    """News about a provider for all workers: a pause, or its first answer."""

    provider: str
    pause: float = 0.0
    answered: bool = False


class RemoteLimits:
    """The worker's end: sends requests and updates, and receives answers."""

    def __init__(self) -> None:
        self._unsent: list[LimitRequest | LimitUpdate] = []
        self._available = asyncio.Event()
        # A worker that was started again must not take an answer for its own.
        self._ids = itertools.count(secrets.randbits(48))
        self._open: dict[int, asyncio.Future[str]] = {}
        self._paces: dict[str, _SharedPace] = {}

    def share(self, models: Sequence[Agent]) -> None:
        """Let the gatekeeper decide when the providers of these models may be called."""
        for name, provider in _providers(models).items():
            pace = _SharedPace(self, name, limited=provider.pace.is_limited)
            provider.pace = self._paces[name] = pace

    def question(self) -> LimitRequest:
        """An empty one, to be filled in."""
        return LimitRequest(next(self._ids))

    async def ask(self, question: LimitRequest) -> str:
        """Ask and wait; the answer is why not, or empty."""
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open[question.id] = reply
        self.tell(question)
        try:
            return await reply
        finally:
            self._open.pop(question.id, None)

    def tell(self, what: LimitRequest | LimitUpdate) -> None:
        self._unsent.append(what)
        self._available.set()

    async def poll(self) -> list[LimitRequest | LimitUpdate]:
        """For the gatekeeper: new requests and updates, as soon as there are any."""
        await self._available.wait()
        self._available.clear()
        unsent, self._unsent = self._unsent, []
        return unsent

    def close(self) -> None:
        """Stop sending requests."""
        self._available.set()

    def receive(self, messages: Sequence[Answer | LimitUpdate]) -> None:
        """From the gatekeeper."""
        for message in messages:
            if isinstance(message, LimitUpdate):
                if message.provider in self._paces:
                    self._paces[message.provider].apply(message)
            elif (waiting := self._open.get(message.id)) is not None and not waiting.done():
                waiting.set_result(message.refused)


class _SharedPace(Pace):
    """A provider's pace in a worker: the rate is kept elsewhere, pauses are shared."""

    def __init__(self, line: RemoteLimits, provider: str, *, limited: bool) -> None:
        super().__init__()
        self._remote = line
        self._provider = provider
        self._limited = limited

    def apply(self, update: LimitUpdate) -> None:
        """Apply an update from another worker."""
        self.answered = self.answered or update.answered
        if update.pause:
            super().hold(update.pause)

    def hold(self, seconds: float) -> None:
        super().hold(seconds)
        self._remote.tell(LimitUpdate(self._provider, pause=seconds))

    def note_answer(self) -> None:
        if not self.answered:
            super().note_answer()
            self._remote.tell(LimitUpdate(self._provider, answered=True))

    async def turn(self) -> None:
        if self._limited:
            await self._remote.ask(replace(self._remote.question(), provider=self._provider))
        await super().turn()


class AccountElsewhere(Account):
    """An attempt's meter in a worker, under a cap that the gatekeeper keeps."""

    __slots__ = ("_attempt", "_remote", "_settled")

    def __init__(self, line: RemoteLimits, attempt: AttemptKey) -> None:
        super().__init__()
        self._remote = line
        self._attempt = attempt
        self._settled: list[Usage | None] = []

    async def reserve(self, worst: Usage) -> None:
        question = replace(
            self._remote.question(),
            attempt=self._attempt,
            settled=self.take_unreported(),
            worst=worst,
        )
        with self.off_the_clock():
            refusal = await self._remote.ask(question)
        if refusal:
            raise ProviderFault(MissingReason.BUDGET, refusal)

    def settle(self, usage: Usage) -> None:
        super().settle(usage)
        self._settled.append(usage)

    def forgo(self) -> None:
        super().forgo()
        self._settled.append(None)

    def take_unreported(self) -> Settled:
        """Usage of calls since the last report to the gatekeeper."""
        usages, self._settled = tuple(self._settled), []
        return usages


class Gatekeeper:
    """Answers the requests of all workers.

    ``models`` are all that may spend; those behind an API have the rates and pauses that count.
    """

    def __init__(self, models: Sequence[Agent]) -> None:
        self._paces: Mapping[str, Pace] = {
            name: provider.pace for name, provider in _providers(models).items()
        }
        self._accounts: dict[AttemptKey, Account] = {}
        self._waiting: dict[AttemptKey, asyncio.Task[object]] = {}

    @property
    def is_needed(self) -> bool:
        """Whether any limit has to be shared."""
        return bool(self._paces)

    @contextmanager
    def keeping(self, attempt: AttemptKey, account: Account) -> Iterator[None]:
        """While a worker makes an attempt, its calls draw on this account."""
        self._accounts[attempt] = account
        try:
            yield
        finally:
            del self._accounts[attempt]
            if (waiting := self._waiting.pop(attempt, None)) is not None:
                waiting.cancel()  # its worker died: it must not get the reservation it waited for

    async def answer(self, question: LimitRequest) -> Answer:
        """Wait for a turn or for room under the cap, as an attempt in this process would."""
        if question.attempt is None:
            await self._paces[question.provider].turn()
            return Answer(question.id)
        account = self._accounts.get(question.attempt)
        if account is None:  # of a worker that was given up
            return Answer(question.id, "the attempt is over")
        settle(account, question.settled)
        waiting = asyncio.current_task()
        assert waiting is not None
        self._waiting[question.attempt] = waiting
        try:
            await account.reserve(question.worst)
        except ProviderFault as fault:
            return Answer(question.id, fault.detail)
        finally:
            self._waiting.pop(question.attempt, None)
        return Answer(question.id)

    def apply(self, update: LimitUpdate) -> None:
        """Apply an update that a worker received from its provider."""
        pace = self._paces[update.provider]
        if update.answered:
            pace.note_answer()
        if update.pause:
            pace.hold(update.pause)

    def current_updates(self) -> list[LimitUpdate]:
        """Current pauses and first answers, for a worker that starts or restarts."""
        return [LimitUpdate(name, pace.left, pace.answered) for name, pace in self._paces.items()]


def settle(account: Account, usages: Settled) -> None:
    """Put the usage that a worker reports for its calls on an account."""
    for usage in usages:
        if usage is None:
            account.forgo()
        else:
            account.settle(usage)


def _providers(models: Sequence[Agent]) -> dict[str, Provider]:
    """Every provider by a name that is the same in all processes."""
    chat_models = [model for model in models if isinstance(model, ChatAgent)]
    return {f"{model.kind} {model.base_url or ''}": model.provider for model in chat_models}
