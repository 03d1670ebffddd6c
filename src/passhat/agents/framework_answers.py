"""Return values of functions and frameworks: their text, and the tokens they state."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from passhat._plugins import describe_error
from passhat.agents.base import AgentFault, Meter, ModelCall, StopReason, Usage
from passhat.agents.prices import PriceTable, TokenCount, read_count
from passhat.agents.provider_tables import stop_reason
from passhat.stats.outcomes import FailureCategory


def read_answer(value: Any, meter: Meter, prices: PriceTable | None = None) -> str:
    """The text of a function's return value; its usage is put on the meter.

    A function may return text, ``(text, Usage)``, or an object with its text in ``output``,
    ``final_output``, ``content``, ``text`` or ``raw`` and its tokens in ``usage``.

    Raises
    ------
    AgentFault
        There is no text in it.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        _note_usage(value[1], meter, prices)
        return value[0]
    fields = ("output", "final_output", "content", "text", "raw", "answer")
    for name in fields:
        text = field_of(value, name)
        if isinstance(text, str):
            for usage_name in ("usage", "usage_metadata", "token_usage", "usage_metrics"):
                usage = field_of(value, usage_name)
                if usage is not None:
                    _note_usage(usage, meter, prices, str(field_of(value, "model") or ""))
                    break
            return text
    kind = type(value).__name__
    shown = f"{value} ({kind})" if isinstance(value, int | float) else kind
    if isinstance(value, BaseException):  # returned instead of raised
        shown = describe_error(value)
    if inspect.iscoroutine(value):
        value.close()  # or Python warns of it before the cause is read
        shown = f"the coroutine {value.__name__}, which was not awaited"
    raise AgentFault(
        FailureCategory.FORMAT_ERROR,
        f"answered {'None' if value is None else shown}, not text: expected text, (text, Usage), "
        f"or an object with {', '.join(fields)} and usage",
    )


def _note_usage(used: Any, meter: Meter, prices: PriceTable | None, model: str = "") -> None:
    if isinstance(used, Usage):
        if used.input_tokens is None or used.output_tokens is None:
            meter.settle(used)
            return
        model = used.model or model
    usage = used() if callable(used) else used
    tokens = count_tokens(usage)
    cost = field_of(usage, "cost")
    if tokens is None:
        money = float(cost) if isinstance(cost, int | float) else None
        meter.settle(Usage(_first(usage, "total_tokens", "tokens"), money))
        return
    note_call(meter, prices, model, tokens, StopReason.STOP, None, cost)


def note_call(
    meter: Meter,
    prices: PriceTable | None,
    model: str,
    tokens: TokenCount | None,
    stop: object,
    reply: Any,
    cost: Any = None,
) -> None:
    """Record one model call, and count its use."""
    price = None if prices is None or not model else prices.price_of_model(model)
    priced = ""
    if not isinstance(cost, int | float):
        cost = None if price is None or tokens is None else price.of(tokens)
        priced = "" if price is None or cost is None else price.source
    meter.settle(Usage(None if tokens is None else tokens.all, cost))
    meter.record(
        ModelCall(
            model or "model",
            model=model,
            role=meter.role,
            stop=str(stop if isinstance(stop, StopReason) else stop_reason(stop or "stop")),
            stop_raw=str(stop or ""),
            input_tokens=None if tokens is None else tokens.input,
            output_tokens=None if tokens is None else tokens.output,
            cached_tokens=None if tokens is None else tokens.cached,
            reasoning_tokens=None if tokens is None else tokens.reasoning,
            cost=cost,
            priced=priced,
            reply=plain_data(reply),
        )
    )


def count_tokens(used: Any) -> TokenCount | None:
    """Tokens in any of the usual spellings, of a mapping or an object; ``None`` if unknown."""
    inputs = _first(used, "prompt_tokens", "input_tokens", "request_tokens", "input")
    outputs = _first(used, "completion_tokens", "output_tokens", "response_tokens", "output")
    if inputs is None or outputs is None:
        return None
    input_details = _details(used, "input_token", "input_tokens", "prompt_tokens")
    output_details = _details(used, "output_token", "output_tokens", "completion_tokens")
    cached = _first(input_details, "cache_read", "cached_tokens")
    if cached is None:  # DeepSeek and Moonshot count cached tokens beside the others
        names = ("cache_read_tokens", "cached_prompt_tokens", "prompt_cache_hit_tokens")
        cached = _first(used, *names, "cached_tokens") or 0
    reasoning = _first(output_details, "reasoning", "reasoning_tokens")
    if reasoning is None:
        reasoning = _first(used, "reasoning_tokens")
    return TokenCount(inputs, outputs, min(cached, inputs), 0, reasoning)


def _details(used: Any, *names: str) -> Any:
    return next((found for name in names if (found := field_of(used, f"{name}_details"))), None)


def _first(thing: Any, *names: str) -> int | None:
    for name in names:
        count = read_count(field_of(thing, name))
        if count is not None:
            return count
    return None


def field_of(thing: Any, name: str) -> Any:
    """A value of a mapping or an attribute of an object; frameworks have both."""
    if thing is None:
        return None
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def text_of_answer(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else field_of(part, "text") for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return json.dumps(plain_data(content), ensure_ascii=False)


def plain_data(value: Any) -> Any:
    """Plain data for the record: JSON where there is any, the object's text otherwise."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain_data(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(entry) for entry in value]
    dump = getattr(value, "model_dump", None)
    return plain_data(dump(mode="json")) if callable(dump) else str(value)
