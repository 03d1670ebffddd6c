"""The word that names a model with its address and settings: ``KIND:MODEL[@URL][?SETTINGS]``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from passhat.errors import InvalidValue
from passhat.protocol import Scalar

_WORD = re.compile(r"(?P<model>[^?]+?)(?:@(?P<url>https?://[^?]+))?(?:\?(?P<query>.*))?", re.DOTALL)
_OPTIONS: Mapping[str, type] = MappingProxyType(
    {
        "temperature": float,
        "top_p": float,
        "top_k": int,
        "min_p": float,
        "presence_penalty": float,
        "frequency_penalty": float,
        "max_output_tokens": int,
        "max_tokens": int,
        "max_completion_tokens": int,
        "reasoning_effort": str,
        "thinking": int,
        "stop": str,
        "seed": str,
        "response_format": str,
        "system": str,
        "cache": str,
        "stream": str,
    }
)
_LIMITS = ("max_output_tokens", "max_tokens", "max_completion_tokens")
_MOST_OUTPUT = 4096
"""Default token limit of one answer. A cap needs a bound."""
OWN_SETTINGS = (
    *("system", "seed", "stop", "base_url", "response_format", "thinking", "cache", "stream"),
    *_LIMITS,
)
"""Settings that each API writes in its own way; the others are sent as they are."""


@dataclass(frozen=True, slots=True)
class ModelWord:
    """The parts of a model's word: name, address and settings."""

    model: str
    url: str | None
    settings: Mapping[str, Scalar] = field(default_factory=dict)


def read_model_word(kind: str, rest: str) -> ModelWord:
    match = _WORD.fullmatch(rest)
    has_bare_address = match is not None and re.search(r"@[\w.-]+:\d+", match["model"])
    if match is None or has_bare_address:
        raise InvalidValue(
            f"the address in {kind}:{rest} lacks http:// or https://."
            if has_bare_address
            else f"{kind}:{rest} names no model.",
            hint=f"Write {kind}:MODEL or {kind}:MODEL@http://HOST:PORT/v1",
        )
    if match["url"] and "@" in match["url"]:
        raise InvalidValue(
            f"the address of {kind}:{match['model']} holds a name or a key.",
            hint="Addresses are written down with the run; keys belong into the environment.",
        )
    return ModelWord(match["model"], match["url"], _read_settings(match["query"] or ""))


def _read_settings(query: str) -> dict[str, Scalar]:
    """The settings after ``?``; every one of them becomes part of the protocol."""
    settings: dict[str, Scalar] = {}
    stops: list[str] = []
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name.startswith("extra.") and name != "extra.":
            settings[name] = text
        elif name == "stop":
            stops.append(text)
        else:
            settings[name] = _read_setting(name, text)
    if stops:
        settings["stop"] = json.dumps(stops)
    limits = [name for name in _LIMITS if name in settings]
    if len(limits) > 1:
        raise InvalidValue(f"{limits[0]} and {limits[1]} are two names of one limit; give one.")
    if not limits:
        settings["max_output_tokens"] = _MOST_OUTPUT
    elif int(settings[limits[0]]) < 1:
        raise InvalidValue(f"{limits[0]} must be at least 1.")
    read_response_format(settings.get("response_format"))
    return settings


def _read_setting(name: str, text: str) -> Scalar:
    if name not in _OPTIONS:
        near = get_close_matches(name, list(_OPTIONS), 1)
        raise InvalidValue(
            f"a model has no setting {name!r}." + (f" Did you mean {near[0]}?" if near else ""),
            hint=f"Settings: {', '.join(_OPTIONS)}, and extra.KEY=VALUE for any other field.",
        )
    if name == "seed" and text != "off" and not text.isdecimal():
        raise InvalidValue(f"seed should be 'off' or a whole number, not {text!r}.")
    if name in ("cache", "stream") and text not in ("on", "off"):
        raise InvalidValue(f"{name} should be 'on' or 'off', not {text!r}.")
    if name == "seed":
        return int(text) if text.isdecimal() else text
    try:
        value: Scalar = _OPTIONS[name](text)
    except ValueError:
        raise InvalidValue(f"{name} should be a number, not {text!r}.") from None
    return value


def parse_extra(text: object) -> Any:
    """The value of an ``extra.`` setting: JSON where it is, text otherwise."""
    try:
        return json.loads(str(text))
    except ValueError:
        return text


def read_response_format(text: object) -> Mapping[str, Any] | None:
    """``response_format``: a type such as ``json_object``, or a whole object in JSON."""
    if text is None:
        return None
    word = str(text)
    if word in ("text", "json_object"):
        return {"type": word}
    try:
        value = json.loads(word)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidValue(
            f"response_format should be text, json_object or a JSON object, not {word!r}."
        )
    if "type" in value and value["type"] in ("text", "json_object", "json_schema"):
        return value
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": value}}


def limit_of(settings: Mapping[str, Any]) -> tuple[str, int]:
    """The field that the user named for the token limit (empty: the usual one), and the limit."""
    for name in _LIMITS:
        if name in settings:
            return ("" if name == "max_output_tokens" else name), int(settings[name])
    return "", _MOST_OUTPUT
