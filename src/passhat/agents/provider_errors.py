"""What went wrong with a call to a model's API, and whose business it is.

    the key, the account or the model is wrong   every attempt would end so: the run stops
    asked too often, or overloaded               ours: wait, all attempts of the provider together
    broken, unreachable, nonsense                ours: try again
    this request is not taken                    the agent's: its attempt fails

The official SDKs of OpenAI and Anthropic have the same shapes of errors, so one reading does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from types import ModuleType
from typing import Any

__all__ = ["Kind", "Trouble", "read_trouble", "retry_after"]

_REFUSED = (401, 402, 403, 404)
_BUSY = (429, 503, 529)
_AGAIN = (408, 409, 425)


class Kind(Enum):
    """What follows from a trouble."""

    REFUSED = "the run stops"
    BUSY = "wait"
    BROKEN = "try again"
    REJECTED = "the attempt fails"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One call that did not work.

    ``wait`` is how long the provider asks us to wait. ``may_be_billed`` is a call of which nobody
    knows whether it was served.
    """

    kind: Kind
    detail: str
    wait: float | None = None
    may_be_billed: bool = False


def read_trouble(sdk: ModuleType, error: Exception) -> Trouble:
    """Read an error of an SDK, or of reading what the SDK returned."""
    if isinstance(error, sdk.APIStatusError):
        return _from_status(error)
    if isinstance(error, sdk.APIConnectionError):
        cause = error.__cause__
        because = f": {cause}" if cause is not None and str(cause) else ""
        # Only a connection that never stood is sure to have cost nothing.
        never_stood = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
        detail = f"{str(error).rstrip('.')}{because}"
        return Trouble(Kind.BROKEN, detail, may_be_billed=not never_stood)
    detail = f"an answer that cannot be read ({type(error).__name__}: {error})"
    return Trouble(Kind.BROKEN, detail, may_be_billed=True)


def _from_status(error: Any) -> Trouble:
    status = int(error.status_code)
    detail = f"HTTP {status}: {_message(error)}"
    spent = "insufficient_quota" in str(getattr(error, "code", "") or "")
    if status in _REFUSED or spent:
        return Trouble(Kind.REFUSED, detail)
    if status in _BUSY:
        return Trouble(Kind.BUSY, detail, wait=retry_after(error.response.headers))
    if status in _AGAIN or status >= 500:
        return Trouble(Kind.BROKEN, detail, wait=retry_after(error.response.headers))
    return Trouble(Kind.REJECTED, detail)


def _message(error: Any) -> str:
    """The provider's own sentence, without the SDK's wrapping."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        if isinstance(inner, str):
            return inner
    return str(error.message)[:300]


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
