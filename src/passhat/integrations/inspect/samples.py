"""The conversation and the calls of a sample in a log of inspect, for the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from passhat.agents.base import ModelCall
from passhat.agents.provider_tables import stop_reason
from passhat.readers.parsing import as_dict, message_text, number_or_none, transcript_entries
from passhat.readers.zip_members import BrokenMember, Members
from passhat.runner.attempt import call_records, explain_failure
from passhat.runner.redaction import Redactor
from passhat.store import AttemptRecord

_LONGEST_DETAIL = 500
_SCORING = ("scorer", "scorers")


def load_sample(members: Members, name: str) -> dict[str, Any]:
    """A sample with everything in it; empty where the log does not have it."""
    if name not in members:
        return {}
    try:
        sample = json.loads(members.read(name))
    except (BrokenMember, ValueError, RecursionError):
        return {}
    return sample if isinstance(sample, dict) else {}


def with_conversation(
    record: AttemptRecord, sample: Mapping[str, Any], scorer: str, redact: Redactor
) -> AttemptRecord:
    """The record with the answer, the judge's reason, the conversation and the calls of a sample.

    A log of another version of inspect may have another shape: what is not as expected is left
    out, and never loses the verdict.
    """
    attachments = as_dict(sample.get("attachments"))
    score = as_dict(as_dict(sample.get("scores")).get(scorer.partition("/")[0]))
    answer, output = score.get("answer"), as_dict(sample.get("output")).get("completion")
    words = message_text(answer if isinstance(answer, str) else output, attachments)
    calls = list(_calls(sample, attachments))
    judgement = record.judgement
    if not judgement.detail and isinstance(score.get("explanation"), str):
        judgement = replace(judgement, detail=message_text(score["explanation"], attachments))
    judgement = explain_failure(judgement, calls)
    retry_causes = [
        as_dict(error).get("message", "") for error in _list(sample.get("error_retries"))
    ]
    return msgspec.structs.replace(
        record,
        judgement=replace(judgement, detail=redact.shorten(judgement.detail)[:_LONGEST_DETAIL]),
        answer_hash=hashlib.sha256(words.encode()).hexdigest()[:16] if words else "",
        retries=len(retry_causes),
        retry_reason=redact(str(retry_causes[-1]))[:80] if retry_causes else "",
        transcript=[
            {"role": role, "text": redact.shorten(text)}
            for role, text in transcript_entries(sample.get("messages"), attachments)
        ],
        calls=call_records(calls, redact),
    )


def _calls(sample: Mapping[str, Any], attachments: Mapping[str, Any]) -> Iterator[ModelCall]:
    """Model and tool calls in the events of a sample."""
    events = [as_dict(event) for event in _list(sample.get("events"))]
    spans = {str(event.get("id")): event for event in events if event.get("event") == "span_begin"}
    pool = _list(as_dict(sample.get("events_data")).get("messages"))
    for event in events:
        if event.get("event") == "model" and not event.get("pending"):
            role = "judge" if _is_scoring(event, spans) else "agent"
            yield _model_call(event, role, pool, attachments)
        elif event.get("event") == "tool" and not event.get("pending"):
            result = event.get("result")
            yield ModelCall(
                str(event.get("function")),
                role="tool",
                seconds=number_or_none(event.get("working_time")),
                started=_when(event.get("timestamp")),
                error=str(as_dict(event.get("error")).get("message") or ""),
                request=as_dict(event.get("arguments")),
                reply=message_text(result, attachments) if isinstance(result, str) else result,
            )


def _is_scoring(event: Mapping[str, Any], spans: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a call was made by a scorer: inside a span of scoring, or in the role of a grader."""
    place = event.get("span_id")
    for _ in range(len(spans) + 1):
        span = spans.get(str(place))
        if span is None:
            break
        if span.get("type") in _SCORING or span.get("name") in _SCORING:
            return True
        place = span.get("parent_id")
    return event.get("role") == "grader"


def _model_call(
    event: Mapping[str, Any], role: str, pool: list[Any], attachments: Mapping[str, Any]
) -> ModelCall:
    output, config = as_dict(event.get("output")), as_dict(event.get("config"))
    choice = as_dict(next(iter(_list(output.get("choices"))), None))
    usage = as_dict(output.get("usage"))
    stop = str(choice.get("stop_reason") or "")
    message = as_dict(choice.get("message"))
    reply = message_text(message.get("content"), attachments)
    limit, retries = number_or_none(config.get("max_tokens")), number_or_none(event.get("retries"))
    messages = _list(event.get("input"))
    for first, last in (pair for pair in _list(event.get("input_refs")) if len(pair) == 2):
        messages = [*messages, *pool[first:last]]
    return ModelCall(
        str(event.get("model")),
        model=str(output.get("model") or ""),
        role=role,
        stop=str(stop_reason(stop)) if stop else "",
        stop_raw=stop,
        empty="" if reply.strip() or _list(message.get("tool_calls")) else "empty",
        input_tokens=number_or_none(usage.get("input_tokens")),
        output_tokens=number_or_none(usage.get("output_tokens")),
        cached_tokens=number_or_none(usage.get("input_tokens_cache_read")),
        reasoning_tokens=number_or_none(usage.get("reasoning_tokens")),
        cost=number_or_none(usage.get("total_cost")),
        limit=None if limit is None else int(limit),
        seconds=number_or_none(event.get("working_time")),
        retries=["not recorded"] * int(retries or 0),
        started=_when(event.get("timestamp")),
        error=str(event.get("error") or output.get("error") or ""),
        request={"messages": messages, "tools": _list(event.get("tools")), "config": config},
        reply=_list(output.get("choices")) or None,
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _when(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
