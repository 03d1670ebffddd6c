"""Calls to a model's API: pacing, retries, and the handling of failed calls:

    account    the key, the credit or the model is wrong: the run stops, the attempt is missing
    busy       called too often, or overloaded: all attempts of the provider wait together
    broken     unreachable, or an answer that cannot be read: this call is tried again
    rejected   this request is not accepted: the agent's attempt fails
    filtered   the provider's content filter refused the request: the attempt fails as filtered

The official SDKs of OpenAI and Anthropic have the same error classes, so one reading serves both.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from msgspec.structs import replace

from passhat.agents.base import (
    AgentFault,
    Meter,
    ModelCall,
    ProviderFault,
    StopReason,
    Usage,
)
from passhat.agents.pacing import Pace
from passhat.agents.prices import TokenCount
from passhat.errors import RunStopped
from passhat.stats.outcomes import FailureCategory, MissingReason

__all__ = [
    "ErrorKind",
    "ModelReply",
    "Provider",
    "ProviderError",
    "ReplyError",
    "ToolCall",
    "error_from",
    "retry_after",
    "stop_reason",
]

_ACCOUNT_STATUS = (401, 402, 403, 404)
_BUSY_STATUS = (429, 503, 529)
_AGAIN_STATUS = (408, 409, 425)

# Providers report the same trouble with different statuses: Anthropic an empty account as 400,
# gateways a wrong model as 400 or even 200, so the message decides as well.
_ACCOUNT = re.compile(
    r"insufficient[ _](?:quota|funds|credits?|balance)|credit balance|(?:out of|no|not enough|more)"
    r" credits?\b|exceeded your (?:current|monthly) (?:quota|budget|spend)|quota exceeded"
    r"|billing (?:hard )?limit|billing[ _](?:not[ _]active|account|details)|payment required"
    r"|(?:invalid|incorrect|missing|expired|revoked|unknown|no)[ _](?:x-)?api[ _-]?key|api[ _-]key "
    r"(?:not valid|is invalid|expired|not found|was revoked)|invalid[ _]authentication"
    r"|authentication[ _](?:error|failed)|unauthori[sz]ed|permission[ _]denied"
    r"|model[ _]not[ _]found|(?:model|deployment)\b.{0,80}\b(?:does not exist|doesn't exist|not "
    r"found|is not available|has been (?:deprecated|removed|retired))"
    r"|not a valid model|unknown model|no (?:such|endpoints found for) model"
    r"|do(?:es)? not have access"
    r"|account\b.{0,40}\b(?:deactivated|suspended|disabled|closed|not active|blocked)",
    re.IGNORECASE | re.DOTALL,
)
_BUSY = re.compile(
    r"rate.?limit|too many requests|overloaded|over capacity|at capacity|temporarily unavailable"
    r"|resource.?exhausted|server is busy|engine is (?:currently )?busy|try again (?:later|in)",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[ _-]?(?:filter|policy|management)|responsible ?ai|safety system|prohibited[ _]content"
    r"|moderation|usage polic",
    re.IGNORECASE,
)
_STOP_WORDS = (
    (StopReason.LENGTH, ("length", "max_token", "max_output", "context_window", "token_limit")),
    (StopReason.REFUSED, ("refus",)),
    (
        StopReason.FILTERED,
        ("filter", "safety", "recitation", "blocklist", "prohibited", "spii", "moderation"),
    ),
    (StopReason.TOOL_CALLS, ("tool", "function")),
    (StopReason.STOP, ("stop", "end", "eos", "complete", "done")),
)
_QUOTED = 300
"""Characters of a provider's message that are quoted."""


class ErrorKind(Enum):
    """The consequence of a failed call."""

    ACCOUNT = "the run stops"
    BUSY = "wait"
    BROKEN = "try again"
    REJECTED = "the attempt fails"
    FILTERED = "the attempt fails as filtered"


@dataclass(frozen=True, slots=True)
class ProviderError:
    """A call that failed.

    Attributes
    ----------
    wait : float, optional
        Seconds that the provider asks us to wait.
    may_be_billed : bool
        Whether the call may have been served, and so cost something.
    """

    kind: ErrorKind
    detail: str
    wait: float | None = None
    may_be_billed: bool = False


class ReplyError(Exception):
    """An answer with a success status that is an error, or that cannot be read as an answer.

    ``body`` is the error as the provider wrote it; ``None`` where the answer has no known shape.
    """

    def __init__(self, message: str, body: object = None) -> None:
        super().__init__(message)
        self.body = body


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model makes; ``arguments`` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's answer in one shape for all providers.

    Attributes
    ----------
    native : object
        The provider's own form of the message, which is sent back in the next request.
    empty : str
        Why there is neither text nor a call: ``empty`` or ``thinking only``.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = StopReason.STOP
    stop_raw: str = ""
    tokens: TokenCount | None = None
    model: str = ""
    request_id: str = ""
    thinking: str = ""
    native: Any = None
    raw: Any = None

    @property
    def empty(self) -> str:
        if self.text.strip() or self.calls:
            return ""
        has_reasoning = self.tokens is not None and self.tokens.reasoning
        return "thinking only" if self.thinking.strip() or has_reasoning else "empty"


def stop_reason(word: object) -> StopReason:
    """A provider's reason why an answer ended, in our vocabulary.

    Examples
    --------
    >>> [str(stop_reason(word)) for word in ("max_tokens", "end_turn", "SAFETY", "model_length")]
    ['length', 'stop', 'filtered', 'length']
    >>> str(stop_reason(None))
    'other'
    """
    text = str(word or "").lower()
    for reason, parts in _STOP_WORDS:
        if any(part in text for part in parts):
            return reason
    return StopReason.OTHER


def error_from(sdk: Any, error: Exception) -> ProviderError:
    """Classify an error of an SDK, or of parsing its return value."""
    if isinstance(error, ReplyError):
        if error.body is None:
            return ProviderError(ErrorKind.BROKEN, str(error), may_be_billed=True)
        return _from_body(error.body)
    if isinstance(error, sdk.APIStatusError):
        return _from_status(error)
    if isinstance(error, sdk.APIConnectionError):
        cause = error.__cause__
        because = f": {cause}" if cause is not None and str(cause) else ""
        # Only a connection that was never established is sure to have cost nothing.
        never_connected = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
        detail = f"{str(error).rstrip('.')}{because}"
        return ProviderError(ErrorKind.BROKEN, detail, may_be_billed=not never_connected)
    detail = f"an answer that cannot be read ({type(error).__name__}: {error})"
    return ProviderError(ErrorKind.BROKEN, detail, may_be_billed=True)


def _from_status(error: Any) -> ProviderError:
    status = int(error.status_code)
    headers = error.response.headers
    message, code = _message_and_code(error.body)
    if not message:
        message = str(error.message)[:_QUOTED]
    wait = retry_after(headers)
    if wait is None:
        wait = _wait_in(error.body)
    return _classify(status, message, code, wait)


def _from_body(body: object) -> ProviderError:
    """An error in a body with an HTTP status of success; some carry a status of their own."""
    message, code = _message_and_code(body)
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else 200
    return _classify(status, message or str(body)[:_QUOTED], code, _wait_in(body))


def _classify(status: int, message: str, code: str, wait: float | None) -> ProviderError:
    detail = f"HTTP {status}: {message}"
    words = f"{code} {message}"
    if "insufficient_quota" in words:
        return ProviderError(ErrorKind.ACCOUNT, detail)
    # A limit per minute is worded like a spent quota (Gemini), but gives a time to wait.
    waits = status in _BUSY_STATUS and wait is not None
    is_account = status < 500 and _ACCOUNT.search(words)
    if not waits and (status in _ACCOUNT_STATUS or is_account):
        if status == 403 and _FILTER.search(words):
            return ProviderError(ErrorKind.FILTERED, detail)
        return ProviderError(ErrorKind.ACCOUNT, detail)
    if status in _BUSY_STATUS or (status < 500 and _BUSY.search(words)):
        return ProviderError(ErrorKind.BUSY, detail, wait=wait)
    if _FILTER.search(words):
        return ProviderError(ErrorKind.FILTERED, detail)
    unclear = status < 400 and "invalid_request" not in words
    if status in _AGAIN_STATUS or status >= 500 or unclear:
        return ProviderError(ErrorKind.BROKEN, detail, wait=wait, may_be_billed=status < 400)
    return ProviderError(ErrorKind.REJECTED, detail)


def _message_and_code(body: object) -> tuple[str, str]:
    """The provider's own sentence and its code, without the wrapping; empty where there is none."""
    if isinstance(body, str):
        return body[:_QUOTED], ""
    if not isinstance(body, Mapping):
        return "", ""
    inner = body.get("error") or body.get("errors") or body
    if isinstance(inner, list) and inner:
        inner = inner[0]
    if isinstance(inner, str):
        return inner[:_QUOTED], str(body.get("code") or body.get("type") or "")
    if not isinstance(inner, Mapping):
        return "", ""
    message = next(
        (inner[key] for key in ("message", "detail", "msg") if isinstance(inner.get(key), str)), ""
    )
    metadata = inner.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
        message = f"{message}: {metadata['raw']}"  # a gateway quotes the answer of its provider
    codes = [str(inner[key]) for key in ("code", "type", "status") if inner.get(key)]
    number = next((code for code in codes if code.isdecimal()), "")
    return str(message)[:_QUOTED], number or " ".join(codes)


def _wait_in(body: object) -> float | None:
    """Seconds to wait by Google's ``RetryInfo``, which is in the body."""
    if not isinstance(body, Mapping):
        return None
    inner = body.get("error", body)
    details = inner.get("details") if isinstance(inner, Mapping) else None
    for entry in details if isinstance(details, list) else ():
        delay = entry.get("retryDelay") if isinstance(entry, Mapping) else None
        if isinstance(delay, str) and re.fullmatch(r"\d+(?:\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def retry_after(headers: Any, now: datetime | None = None) -> float | None:
    """Seconds to wait by a ``Retry-After`` header: seconds, or a date.

    Examples
    --------
    >>> retry_after({"retry-after": "1.5"})
    1.5
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> retry_after({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, noon)
    30.0
    >>> retry_after({"retry-after": "soon"}) is None
    True
    >>> retry_after({"retry-after-ms": "250"})
    0.25
    """
    word = headers.get("retry-after")
    if word is None:
        exact = headers.get("retry-after-ms", "")
        return float(exact) / 1000 if exact.isdecimal() else None
    try:
        seconds = float(word)
    except ValueError:
        try:
            when = parsedate_to_datetime(word)
        except ValueError:
            return None
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None


_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_SOON, _LONGEST_SOON = 0.05, 5.0
_LONGEST_ASKED = 300.0
"""A provider that asks for a longer wait than this is not waited for."""


class Provider:
    """An API at an address, with its pace and retries.

    Parameters
    ----------
    kind : str
        ``openai`` or ``anthropic``; the name of the provider in ``--rate``.
    address : str
        Where it is, for messages.
    sdk : module
        The SDK whose error classes are read.
    retries : int
        How often one call is made again before its attempt is given up as missing.

    Attributes
    ----------
    pace : Pace
        When calls may be made.
    """

    def __init__(self, kind: str, address: str, sdk: Any, retries: int = 8) -> None:
        self.kind = kind
        self.address = address
        self.retries = retries
        self.pace = Pace()
        self._sdk = sdk
        self._random = random.Random()

    def limit(self, per_second: float) -> None:
        """Ask at most so often from now on."""
        self.pace.limit(per_second)

    async def call(
        self,
        work: Callable[[], Awaitable[tuple[ModelReply, Usage]]],
        meter: Meter,
        worst: Usage,
        *,
        model: str,
        request: Any = None,
        limit: int | None = None,
        priced: str = "",
    ) -> ModelReply:
        """Make a call, again if need be; its use and its record go on the meter.

        Raises
        ------
        ProviderFault
            Retries are used up, a cap is reached, or the account cannot be used: the attempt is
            missing.
        AgentFault
            The request itself is not accepted: the attempt fails.
        RunStopped
            The very first request is not accepted: the set-up is wrong.
        """
        call = ModelCall(f"{self.kind}:{model}", role=meter.role, limit=limit, request=request)
        call = replace(call, priced=priced)
        causes: list[str] = []
        while True:
            with meter.off_the_clock():
                await self.pace.turn()
            await meter.reserve(worst)
            call = replace(call, started=time.time())
            start = time.monotonic()
            try:
                reply, usage = await work()
            except Exception as error:
                problem = error_from(self._sdk, error)
            except BaseException:
                meter.settle(Usage())  # canceled in the middle: its cost is unknown
                seconds = time.monotonic() - start
                meter.record(replace(call, retries=causes, seconds=seconds, error="not finished"))
                raise
            else:
                self.pace.note_answer()
                meter.settle(usage)
                seconds = time.monotonic() - start
                meter.record(_complete_record(call, reply, usage, causes, seconds))
                return reply
            if problem.may_be_billed:
                meter.settle(Usage())
            else:
                meter.forgo()
            try:
                self._give_up(problem, model, len(causes))
            except BaseException:
                seconds = time.monotonic() - start
                meter.record(replace(call, retries=causes, seconds=seconds, error=problem.detail))
                raise
            causes.append(problem.detail)
            meter.retries += 1
            await self._back_off(problem, len(causes), meter)

    def _give_up(self, problem: ProviderError, model: str, tried: int) -> None:
        """Raise the fault for an error, unless the call should be retried."""
        if problem.kind is ErrorKind.ACCOUNT:
            raise ProviderFault(
                MissingReason.ACCOUNT,
                f"{self.kind}:{model} at {self.address} cannot be used. {problem.detail}",
            )
        if problem.kind is ErrorKind.FILTERED:
            raise AgentFault(FailureCategory.FILTERED, problem.detail)
        if problem.kind is ErrorKind.REJECTED:
            if not self.pace.answered:
                raise RunStopped(
                    f"{self.kind}:{model} does not take the first request. {problem.detail}",
                    hint="Check the model's name and settings such as --temperature; ?seed=off and "
                    "?max_tokens_name= change what is sent.",
                )
            raise AgentFault(FailureCategory.AGENT_ERROR, problem.detail)
        busy = problem.kind is ErrorKind.BUSY
        requested_wait = problem.wait or 0.0
        if tried >= self.retries or requested_wait > _LONGEST_ASKED:
            reason = MissingReason.RATE_LIMIT if busy else MissingReason.INFRASTRUCTURE
            prefix = (
                f"asked to wait {requested_wait:,.0f} s"
                if requested_wait > _LONGEST_ASKED
                else "given up"
            )
            retries = "1 retry" if tried == 1 else f"{tried} retries"
            raise ProviderFault(reason, f"{prefix} after {retries}; {problem.detail}")

    async def _back_off(self, problem: ProviderError, tried: int, meter: Meter) -> None:
        """Wait as long as asked to, or longer each time; jitter spreads attempts.

        A busy provider makes every attempt wait; a broken call only its own.
        """
        grown = 2.0 ** (tried - 1)
        if problem.wait is None:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * grown) * self._random.uniform(0.5, 1)
        else:  # "at once" is taken for soon: a provider may repeat it for long
            pause = max(problem.wait, min(_LONGEST_SOON, _SOON * grown))
        if problem.kind is ErrorKind.BUSY:
            self.pace.hold(pause)
        else:
            with meter.off_the_clock():
                await asyncio.sleep(pause)


def _complete_record(
    call: ModelCall, reply: ModelReply, used: Usage, causes: list[str], seconds: float
) -> ModelCall:
    tokens = reply.tokens
    return replace(
        call,
        model=reply.model,
        stop=str(reply.stop),
        stop_raw=reply.stop_raw,
        empty=reply.empty,
        input_tokens=None if tokens is None else tokens.input,
        output_tokens=None if tokens is None else tokens.output,
        cached_tokens=None if tokens is None else tokens.cached,
        reasoning_tokens=None if tokens is None else tokens.reasoning,
        cost=used.cost,
        seconds=seconds,
        retries=causes,
        request_id=reply.request_id,
        reply=reply.raw,
    )
