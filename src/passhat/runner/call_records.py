"""Model calls of an attempt: what is stored of them, and what they say about its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from passhat.agents.base import ModelCall, StopReason
from passhat.runner.redaction import Redactor
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.store.rows import CallRecords
from passhat.suites.base import Judgement

__all__ = ["call_records", "explained"]

_LARGEST = 40_000
"""Characters of a request or a reply that are kept: a long conversation is sent with every call."""
_CATEGORIES = {
    StopReason.LENGTH: FailureCategory.TRUNCATED,
    StopReason.REFUSED: FailureCategory.REFUSED,
    StopReason.FILTERED: FailureCategory.FILTERED,
}
_OWN_CAUSE = (
    FailureCategory.TIMEOUT,
    FailureCategory.COMMUNICATION_ERROR,
    FailureCategory.AGENT_ERROR,
    FailureCategory.EXCEPTION,
    FailureCategory.SANDBOX_VIOLATION,
    FailureCategory.FILTERED,
)
"""Categories that say more than why the last answer ended."""


def call_records(calls: Sequence[ModelCall], redact: Redactor) -> CallRecords | None:
    """The calls as the store keeps them; ``None`` where there were none."""
    if not calls:
        return None
    answers = [call for call in calls if call.role == "agent" and call.stop]
    cut = [call for call in answers if call.stop == StopReason.LENGTH]
    # The limit that was sent; a server may cut earlier, so what it made counts where it is known.
    limits = [int(call.output_tokens or call.limit or 0) for call in cut]
    plain = [msgspec.to_builtins(_capped(call)) for call in calls]
    return CallRecords(
        answers=len(answers),
        cut=len(cut),
        cut_at=min(limits, default=0) or None,
        refused=sum(call.stop == StopReason.REFUSED for call in answers),
        filtered=sum(call.stop == StopReason.FILTERED for call in answers),
        empty=sum(bool(call.empty) for call in answers),
        body=redact(msgspec.json.encode(plain).decode()).encode(),
    )


def explained(judgement: Judgement, calls: Sequence[ModelCall]) -> Judgement:
    """The judgement with the reason that the last model call gives for a failure.

    An answer that was cut, refused or filtered is not simply wrong.
    """
    answers = [call for call in calls if call.role == "agent" and call.stop]
    if judgement.verdict is not Verdict.FAILED or not answers:
        return judgement
    last = answers[-1]
    if judgement.why in _OWN_CAUSE:
        return judgement
    notes = []
    category = _CATEGORIES.get(StopReason(last.stop)) if last.stop in set(StopReason) else None
    if category is FailureCategory.TRUNCATED:
        tokens = last.output_tokens or last.limit
        notes.append("cut at the token limit" + (f" ({tokens:g} tokens)" if tokens else ""))
    elif category is not None:
        notes.append(f"{category} by the model or its provider ({last.stop_raw or last.stop})")
    if last.empty:
        thought = f" ({last.reasoning_tokens:g} tokens)" if last.reasoning_tokens else ""
        notes.append(
            f"the answer is thinking only{thought}"
            if last.empty == "thinking only"
            else "the answer is empty"
        )
    if not notes:
        return judgement
    detail = "; ".join([*notes, judgement.detail] if judgement.detail else notes)
    return replace(judgement, why=str(category or judgement.why), detail=detail)


def _capped(call: ModelCall) -> ModelCall:
    return msgspec.structs.replace(
        call, request=_short(call.request), reply=_short(call.reply), retries=list(call.retries)
    )


def _short(data: Any) -> Any:
    """Plain data, or the beginning of its JSON where that is too long."""
    if data is None:
        return None
    text = msgspec.json.encode(data, enc_hook=str).decode("utf-8", "replace")
    if len(text) <= _LARGEST:
        return msgspec.json.decode(text)
    return {"cut": text[:_LARGEST], "characters": len(text)}
