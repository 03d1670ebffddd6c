"""The step before anything is recorded: valid Unicode, bounded size, no keys or passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = [
    "LONGEST_TEXT",
    "Redactor",
    "encode_data",
    "make_encodable",
    "make_plain",
    "secret_values",
]

LONGEST_TEXT = 4 * 1024 * 1024
"""Characters of one text that are kept, for every kind of agent."""
LONGEST_DATA = 40_000
"""Characters of a request or reply that are kept: a long conversation is sent with every call."""
_DEEPEST = 50
_MARGIN = 64 * 1024
"""Longer than any secret: what is cut is looked at together with so much beyond the cut."""

_TOKEN = r"[A-Za-z0-9_\-]"
_PREFIXES = {
    # OpenAI, Anthropic, Stripe, OpenRouter and many others; GitHub; Slack.
    **dict.fromkeys((f"{word}{sign}" for word in ("sk", "pk", "rk") for sign in "-_"), 12),
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), 16),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxp-", "xoxs-", "xoxe-", "xapp-"), 12),
    # Hugging Face, Groq, GitLab, xAI, Replicate, Perplexity, NVIDIA, Together, LangSmith.
    **dict.fromkeys(("hf_", "gsk_", "glpat-", "xai-", "r8_", "pplx-", "nvapi-", "tgp_v1_"), 16),
    **dict.fromkeys(("fw_", "lsv2_pt_", "lsv2_sk_", "pcsk_", "wandb_v1_", "csk-", "dckr_pat_"), 16),
    # npm, PyPI, DigitalOcean, Shopify, Linear, Notion, Sentry, Databricks, Vault, age.
    **dict.fromkeys(("npm_", "pypi-", "dop_v1_", "shpat_", "lin_api_", "ntn_", "sntrys_"), 20),
    **dict.fromkeys(("dapi-", "hvs.", "age-secret-key-1"), 20),
}
"""First characters of providers' keys, in small letters, and the fewest that follow."""

_SHAPES = (
    *((prefix, rf"(?i)(?<![A-Za-z0-9]){re.escape(prefix)}{_TOKEN}{{{fewest},}}")
      for prefix, fewest in _PREFIXES.items()),
    ("akia", r"\bAKIA[0-9A-Z]{16}\b"),
    ("asia", r"\bASIA[0-9A-Z]{16}\b"),
    ("aiza", rf"\bAIza{_TOKEN}{{30,}}"),
    ("ya29.", rf"\bya29\.{_TOKEN}{{20,}}"),
    ("sg.", rf"\bSG\.{_TOKEN}{{16,}}\.{_TOKEN}{{16,}}"),
    # A JSON Web Token: header, payload and signature; the first two begin as JSON objects do.
    ("eyj", rf"\beyJ{_TOKEN}{{8,}}\.eyJ{_TOKEN}{{8,}}\.{_TOKEN}*"),
    ("-----begin ", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [^-]*-----|\Z)"),
    ("bearer ", r"(?i)bearer (?P<kept>)[A-Za-z0-9._~+/\-]{8,}=*"),
    ("basic ", r"(?i)\bbasic (?P<kept>)[A-Za-z0-9+/]{16,}={0,2}"),
    # The password in postgresql://user:password@host, and in any other address.
    ("://", r"://[^\s/:@]*:(?P<kept>)[^\s/@]{3,}(?=@)"),
    *((f"{name}{sign}", rf"(?i){re.escape(name)}{sign}\s*(?P<kept>)[^\s\"',;]{{8,}}")
      for name in ("api-key", "api_key", "apikey", "access_token", "access-token",
                   "client_secret", "secret_access_key", "accountkey")
      for sign in "=:"),
    ("password=", r"(?i)password=(?P<kept>)[^\s\"',;&]{6,}"),
    # Options of a command line: --api-key VALUE, --token=VALUE.
    ("--", r"(?i)--[\w-]*(?:key|token|secret|password|credential)[= ](?P<kept>)[^\s-]\S{5,}"),
)  # fmt: skip
"""A literal in small letters that a secret begins with, and the pattern of the whole secret.

``kept`` marks where the secret itself begins. One pattern for all of them took 1 s per million
characters; searching for the literals takes a hundredth of that.
"""
_PATTERNS = tuple((literal, re.compile(pattern)) for literal, pattern in _SHAPES)
_DASHED = tuple(pair for pair in _PATTERNS if "-" in pair[0] or "_" in pair[0])
_PLAIN = tuple(pair for pair in _PATTERNS if pair not in _DASHED)
_SECRET_NAMES = re.compile(
    r"(?i)key|token|secret|password|passwd|passphrase|credential|authorization|_pass$|_pwd$"
)
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_OPAQUE = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9_+=\-]{20,}")
"""A value without words: both cases and digits. Hashes and ids of builds have one case only."""
_FEWEST_DIFFERENT = 12
_SHORTEST = 8
_SHOWN = "[redacted]"


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Return the values in an environment that must not be shown, the longest first.

    Those of variables with a telling name; under any name, those that look like a key; and the
    passwords in addresses.
    """
    values = set()
    for name, value in environment.items():
        is_opaque = _OPAQUE.fullmatch(value) and len(set(value)) >= _FEWEST_DIFFERENT
        if len(value) >= _SHORTEST and (_SECRET_NAMES.search(name) or is_opaque):
            values.add(value)
        values |= {word for word in _PASSWORD.findall(value) if len(word) >= _SHORTEST}
    return sorted(values, key=len, reverse=True)


def make_encodable(text: str) -> str:
    """Return the text with lone surrogates replaced: neither database nor JSON can hold them."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def encode_data(data: Any) -> str:
    """Return JSON of anything that an agent or a server may have sent."""
    try:
        return msgspec.json.encode(data, enc_hook=str).decode()
    except Exception:  # keys that are no text, lone surrogates, a __str__ that raises
        return msgspec.json.encode(make_plain(data)).decode()


class Redactor:
    """The one step before anything is recorded: valid Unicode, without secrets.

    Replaces strings that look like secrets, and values of secret environment variables.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._values = secret_values(environment or {})

    def __call__(self, text: str) -> str:
        text = make_encodable(text)
        for value in self._values:
            text = text.replace(value, _SHOWN)
        lower = text.lower()
        if len(lower) != len(text):  # a few letters become two in small: places would not match
            lower = "".join(sign.lower() if sign.isascii() else sign for sign in text)
        has_dash = "-" in lower or "_" in lower
        spans = [
            span
            for literal, pattern in (_PATTERNS if has_dash else _PLAIN)
            if literal in lower
            for span in _spans(text, lower, literal, pattern)
        ]
        return _without(text, spans) if spans else text

    def clean_data(self, data: Any) -> Any:
        """Return plain data that can be written as JSON, or its beginning where it is too long."""
        if data is None:
            return None
        text = encode_data(data)
        if len(text) <= LONGEST_DATA:
            return msgspec.json.decode(text)
        # Secrets go before the cut, so that no part of one stays.
        return {"cut": self.shorten(text)[:LONGEST_DATA], "characters": len(text)}

    def quote(self, text: str, longest: int = LONGEST_TEXT) -> str:
        """A message without secrets, nor parts of one: it may quote text that was cut elsewhere.

        A grader quotes the first 80 characters of an answer, and a key may begin among them.
        """
        text = self.shorten(text, longest)
        for value in self._values:
            if "/" not in value:  # a path shares its beginning with many others
                text = _without_part(text, value)
        return text

    def shorten(self, text: str, longest: int = LONGEST_TEXT) -> str:
        """The text without secrets; head and tail of a text that is too long.

        Secrets are removed before anything is cut, so that no part of one stays.
        """
        if len(text) <= longest:
            return self(text)
        half = longest // 2
        head, tail = self(text[: half + _MARGIN]), self(text[-half - _MARGIN :])
        head = head[: max(0, min(half, len(head) - _MARGIN))]
        tail = tail[max(_MARGIN, len(tail) - half) :]
        left_out = len(text) - len(head) - len(tail)
        return f"{head}\n[... {left_out:,} characters left out ...]\n{tail}"


def _spans(text: str, lower: str, literal: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where secrets that begin with a literal are."""
    spans = []
    place = lower.find(literal)
    while place >= 0:
        match = pattern.match(text, place)
        if match is None:
            place = lower.find(literal, place + 1)
        else:
            begin = match.start("kept") if "kept" in pattern.groupindex else match.start()
            spans.append((begin, match.end()))
            place = lower.find(literal, match.end())
    return spans


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    parts = []
    place = 0
    for begin, end in sorted(spans):
        if end <= place:
            continue
        if begin >= place:
            parts += [text[place:begin], _SHOWN]
        place = end
    return "".join([*parts, text[place:]])


def _without_part(text: str, value: str) -> str:
    """The text without the beginning or the end of a secret."""
    for backwards in (False, True):
        step = -1 if backwards else 1
        text, value = text[::step], value[::step]
        spans = []
        place = text.find(value[:_SHORTEST])
        while place >= 0:
            end = place + _SHORTEST
            while end < len(text) and end - place < len(value) and text[end] == value[end - place]:
                end += 1
            spans.append((place, end))
            place = text.find(value[:_SHORTEST], end)
        mark = _SHOWN[::step]
        parts, position = [], 0
        for begin, end in spans:
            parts += [text[position:begin], mark]
            position = end
        text, value = "".join([*parts, text[position:]])[::step], value[::step]
    return text


def make_plain(data: Any, depth: int = 0) -> Any:
    """Return dicts with text as keys, lists, numbers and valid text; anything else by its type."""
    if isinstance(data, str):
        return make_encodable(data)
    if data is None or isinstance(data, bool | int | float):
        return data
    if isinstance(data, msgspec.Struct):
        data = msgspec.structs.asdict(data)
    if depth < _DEEPEST:
        if isinstance(data, Mapping):
            return {
                str(make_plain(key, _DEEPEST)): make_plain(value, depth + 1)
                for key, value in data.items()
            }
        if isinstance(data, list | tuple | set | frozenset):
            return [make_plain(entry, depth + 1) for entry in data]
    try:
        return make_encodable(str(data))
    except Exception:
        return f"a {type(data).__name__}"
