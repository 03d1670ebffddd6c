"""Calls to a model's API: pacing, retries, and the handling of failed calls:

    account    the key, the credit or the model is wrong: the run stops, the attempt is missing
    busy       called too often, or overloaded: all attempts of the provider wait together
    broken     unreachable, or an answer that cannot be read: this call is tried again
    rejected   this request is not accepted: the agent's attempt fails
    too long   the conversation is too long for the model: the same, also at the first request
    misrouted  not an answer of the API: stops the run at first, later this call is tried again
    filtered   the provider's content filter refused the request: the attempt fails as filtered

The official SDKs of OpenAI and Anthropic have the same error classes, so one reading serves both.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from msgspec.structs import replace

from passhat._display import counted
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
from passhat.agents.provider_tables import (
    ABOUT_TOOL,
    BUSY_TEXT,
    ERROR_CODES,
    FILTER_TEXT,
    MONEY_OR_KEY,
    NO_MODEL,
    PER_MINUTE,
    STATUS_KINDS,
    TOO_LARGE,
    TOO_LONG,
    ErrorKind,
    limit_that_fits,
    setting_hint,
    stop_reason,
)
from passhat.errors import RunStopped
from passhat.stats.outcomes import FailureCategory, MissingReason

__all__ = [
    "ErrorKind",
    "ModelReply",
    "Provider",
    "ProviderError",
    "ReplyError",
    "SmallerLimit",
    "ToolCall",
    "error_from",
    "has_proxy",
    "refuse_closed",
    "retry_after",
    "stop_reason",
]

_QUOTED = 300
"""Characters of a provider's message that are quoted."""


@dataclass(frozen=True, slots=True)
class ProviderError:
    """A call that failed; ``wait`` is how many seconds the provider asks us to wait.

    ``may_be_billed`` is whether the call may have been served, and so cost something.
    """

    kind: ErrorKind
    detail: str
    wait: float | None = None
    may_be_billed: bool = False


class ReplyError(Exception):
    """An answer with a success status that is an error, or that cannot be read as an answer.

    ``body`` is the error as the provider wrote it; ``None`` where the answer has no known shape.
    ``is_page`` is whether it is a web page: the address is perhaps not that of an API.
    """

    def __init__(self, message: str, body: object = None, *, is_page: bool = False) -> None:
        super().__init__(message)
        self.body = body
        self.is_page = is_page


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
        Why there is neither text nor a call: ``empty``, ``thinking only`` or ``no valid call``.
    cost : float, optional
        Dollars that the provider itself reports.
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
    cost: float | None = None
    fingerprint: str = ""

    @property
    def empty(self) -> str:
        if self.text.strip() or self.calls:
            return ""
        if self.stop is StopReason.TOOL_CALLS:  # calls without a name, or none at all
            return "no valid call"
        has_reasoning = self.tokens is not None and self.tokens.reasoning
        return "thinking only" if self.thinking.strip() or has_reasoning else "empty"


def error_from(sdk: Any, error: Exception) -> ProviderError:
    """Classify an error of an SDK, or of parsing its return value."""
    if isinstance(error, ReplyError):
        if error.body is None:
            kind = ErrorKind.PAGE if error.is_page else ErrorKind.BROKEN
            return ProviderError(kind, str(error), may_be_billed=True)
        return _from_body(error.body)
    if isinstance(error, sdk.APIStatusError):
        return _from_status(error)
    if isinstance(getattr(error, "body", None), Mapping):  # an error inside a stream
        return _from_body(error.body)  # type: ignore[attr-defined]
    if isinstance(error, sdk.APIConnectionError):
        cause = error.__cause__
        because = f": {cause}" if cause is not None and str(cause) else ""
        # Only a connection that was never established is sure to have cost nothing.
        never_connected = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
        detail = f"{str(error).rstrip('.')}{because}"
        return ProviderError(ErrorKind.UNREACHED, detail, may_be_billed=not never_connected)
    detail = f"an answer that cannot be read ({type(error).__name__}: {error})"
    return ProviderError(ErrorKind.BROKEN, detail, may_be_billed=True)


def _from_status(error: Any) -> ProviderError:
    status = int(error.status_code)
    headers = error.response.headers
    message, code = _message_and_code(error.body)
    # AWS names the error in a header: ThrottlingException, perhaps with an address behind it.
    code = f"{code} {headers.get('x-amzn-errortype', '').partition(':')[0]}".strip()
    if not message:
        message = str(error.message)[:_QUOTED]
    wait = retry_after(headers)
    if wait is None:
        wait = _wait_in(error.body)
    return _classify(status, message, code, wait)


def _from_body(body: object) -> ProviderError:
    """An error in a body with an HTTP status of success; some carry a status of their own."""
    message, code = _message_and_code(body)
    numbers = [int(word) for word in code.split() if word.isdecimal()]
    status = next((number for number in numbers if 400 <= number < 600), 200)
    return _classify(status, message or str(body)[:_QUOTED], code, _wait_in(body))


def _classify(status: int, message: str, code: str, wait: float | None) -> ProviderError:
    kind = _error_kind(status, message, code, wait)
    detail = f"HTTP {status}: {message}"
    if kind is ErrorKind.BROKEN:
        return ProviderError(kind, detail, wait=wait, may_be_billed=status < 400)
    return ProviderError(kind, detail, wait=wait if kind is ErrorKind.BUSY else None)


def _error_kind(status: int, message: str, code: str, wait: float | None) -> ErrorKind:
    """Read the code first, then what only the message can tell, then the status."""
    by_status = STATUS_KINDS.get(status, ErrorKind.BROKEN if status >= 500 else None)
    for word in code.split():
        for kinds in ERROR_CODES.values():
            kind = kinds.get(word)
            if kind is not None and not (kind is ErrorKind.BROKEN and status in (400, 422)):
                return kind
    words = f"{code} {message}"
    if by_status is ErrorKind.BUSY and TOO_LARGE.search(words):
        return ErrorKind.TOO_LONG
    # A limit for a minute is worded like a spent quota, but names the time, or one to wait.
    waits = by_status is ErrorKind.BUSY and (wait is not None or PER_MINUTE.search(words))
    by_message = _kind_of_message(status, words)
    if waits or (by_status is ErrorKind.BUSY and by_message is not ErrorKind.ACCOUNT):
        return ErrorKind.BUSY
    if by_message is not None and (by_status is not ErrorKind.ACCOUNT or status == 403):
        return by_message
    if by_status is not None:
        return by_status
    if TOO_LONG.search(message):
        return ErrorKind.TOO_LONG
    if message.lstrip()[:9].lower().startswith(("<html", "<!doctype")):
        return ErrorKind.MISROUTED
    unclear = status < 400 and "invalid_request" not in words
    return ErrorKind.BROKEN if unclear else ErrorKind.REJECTED


def _kind_of_message(status: int, words: str) -> ErrorKind | None:
    if status == 403 and FILTER_TEXT.search(words):
        return ErrorKind.FILTERED
    if status < 500:
        about_tool = status == 400 and ABOUT_TOOL.search(words)
        if MONEY_OR_KEY.search(words) or (NO_MODEL.search(words) and not about_tool):
            return ErrorKind.ACCOUNT
        if status != 403 and BUSY_TEXT.search(words):
            return ErrorKind.BUSY
    return ErrorKind.FILTERED if FILTER_TEXT.search(words) else None


def _message_and_code(body: object) -> tuple[str, str]:
    """The provider's own sentence and its code, without the wrapping; empty where there is none."""
    if isinstance(body, list) and body:  # Google, also where it speaks like OpenAI
        body = body[0]
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
    if isinstance(inner.get("detail"), list):  # FastAPI: [{"loc": ["body", "seed"], "msg": ...}]
        message = json.dumps(inner["detail"])
    metadata = inner.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
        message = f"{message}: {metadata['raw']}"  # a gateway quotes the answer of its provider
    codes = [str(inner[key]) for key in ("code", "type", "status", "__type") if inner.get(key)]
    return str(message)[:_QUOTED], " ".join(codes)


def _wait_in(body: object) -> float | None:
    """Seconds to wait by Google's ``RetryInfo``, which is in the body."""
    if isinstance(body, list) and body:
        body = body[0]
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
    word, exact = headers.get("retry-after"), headers.get("retry-after-ms", "")
    if word is None and re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]+)?", exact):
        return float(exact) / 1000
    if word is None:
        return None
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


class SmallerLimit(AgentFault):
    """The conversation fits, the limit of the answer does not; ``limit`` is the one that does."""

    def __init__(self, detail: str, limit: int) -> None:
        super().__init__(FailureCategory.AGENT_ERROR, detail)
        self.limit = limit


_FIRST_RETRIES = {ErrorKind.PAGE: 1, ErrorKind.UNREACHED: 3}
"""Retries until the address has answered once: a wrong one is told within seconds."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_SOON, _LONGEST_SOON = 0.05, 5.0
_LONGEST_ASKED = 300.0
"""A provider that asks for a longer wait than this is not waited for."""


class Provider:
    """An API at an address, with its ``pace`` and retries.

    ``kind`` is its name in the setting ``rate``, ``address`` is shown in messages, and the error
    classes of ``sdk`` are read. One call is made again up to ``retries`` times before its attempt
    is given up as missing.
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
            The very first request is not accepted, or answered by a web page: the set-up is wrong.
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
                self._give_up(problem, model, len(causes), limit)
            except BaseException:
                seconds = time.monotonic() - start
                meter.record(replace(call, retries=causes, seconds=seconds, error=problem.detail))
                raise
            causes.append(problem.detail)
            meter.retries += 1
            await self._back_off(problem, len(causes), meter)

    def _give_up(
        self, problem: ProviderError, model: str, tried: int, limit: int | None = None
    ) -> None:
        """Raise the fault for an error, unless the call should be retried."""
        if problem.kind is ErrorKind.ACCOUNT:
            raise ProviderFault(
                MissingReason.ACCOUNT,
                f"{self.kind}:{model} at {self.address} cannot be used. {problem.detail}",
            )
        if problem.kind is ErrorKind.FILTERED:
            raise AgentFault(FailureCategory.FILTERED, problem.detail)
        self._refuse(problem, model, limit)
        is_at_first = not self.pace.answered
        retries = self.retries
        if is_at_first:
            retries = min(retries, _FIRST_RETRIES.get(problem.kind, retries))
        if problem.kind is ErrorKind.PAGE and is_at_first and tried >= retries:
            raise RunStopped(
                f"{self.kind}:{model}: {self.address} serves web pages, not an API. "
                f"{problem.detail}",
                hint="Fix the address: that of an API often ends in /v1.",
            )
        busy = problem.kind is ErrorKind.BUSY
        requested_wait = problem.wait or 0.0
        if tried >= retries or requested_wait > _LONGEST_ASKED:
            reason = MissingReason.RATE_LIMIT if busy else MissingReason.INFRASTRUCTURE
            prefix = (
                f"asked to wait {requested_wait:,.0f} s"
                if requested_wait > _LONGEST_ASKED
                else "given up"
            )
            raise ProviderFault(
                reason, f"{prefix} after {counted(tried, 'retry', 'retries')}; {problem.detail}"
            )

    def _refuse(self, problem: ProviderError, model: str, limit: int | None) -> None:
        """Raise the fault for a request that is not accepted as it is."""
        is_at_first = not self.pace.answered
        if problem.kind in (ErrorKind.REJECTED, ErrorKind.TOO_LONG):
            room = limit_that_fits(problem.detail, limit)
            if room:
                raise SmallerLimit(problem.detail, room)
            if room is None and (hint := setting_hint(problem.detail)):
                # A setting is never the agent's failure, whatever was answered before.
                raise RunStopped(
                    f"{self.kind}:{model} rejects a setting. {problem.detail}", hint=hint
                )
            if problem.kind is ErrorKind.TOO_LONG or not is_at_first:
                raise AgentFault(FailureCategory.AGENT_ERROR, problem.detail)
        if is_at_first and problem.kind in (ErrorKind.REJECTED, ErrorKind.MISROUTED):
            raise RunStopped(
                f"{self.kind}:{model} does not take the first request. {problem.detail}",
                hint="Check the address, the model's name and settings such as --temperature.",
            )

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
        priced="reported by the provider" if reply.cost is not None else call.priced,
        seconds=seconds,
        retries=causes,
        request_id=reply.request_id,
        reply=reply.raw,
        fingerprint=reply.fingerprint,
    )


_KNOCKS = 3
_KNOCK_SECONDS = 5.0


async def refuse_closed(address: str, name: str) -> None:
    """Connect once, without sending anything; a server that is just starting gets a moment."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    for left in reversed(range(_KNOCKS)):
        try:
            async with asyncio.timeout(_KNOCK_SECONDS):
                _, writer = await asyncio.open_connection(parts.hostname or "", port)
            writer.close()
        except OSError as error:  # a TimeoutError is one
            if not left:
                raise RunStopped(
                    f"{name}: nothing answers at {parts.hostname}:{port} "
                    f"({error.strerror or type(error).__name__}).",
                    hint="Start the server, or fix the address.",
                ) from None
            await asyncio.sleep(0.5)
        else:
            return


def has_proxy(address: str) -> bool:
    """Whether the SDK goes through a proxy, which a direct connection would not."""
    return urlsplit(address).scheme in getproxies()
