"""The step before anything is recorded: valid Unicode, bounded size, no keys or passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import msgspec

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
    **dict.fromkeys(("npm_", "pypi-", "dop_v1_", "shpat_", "lin_api_", "ntn_"), 20),
    **dict.fromkeys(("dapi-", "hvs.", "age-secret-key-1"), 20),
    # Stripe's webhooks, GitLab's runners, Figma, New Relic, Grafana, Postman, Supabase,
    # PlanetScale, Tavily, Google's OAuth, Atlassian, Mailgun, Doppler.
    **dict.fromkeys(("whsec_", "glrt-", "glptt-", "gldt-", "figd_", "nrak-", "glsa_", "glc_"), 20),
    **dict.fromkeys(("pmak-", "sbp_", "pscale_pw_", "pscale_tkn_", "tvly-", "gocspx-"), 20),
    **dict.fromkeys(("atatt3", "key-", "dp.pt.", "dp.st."), 30),
}
"""First characters of providers' keys, in small letters, and the fewest that follow."""

_QUOTED = r"(?<=[\"'])(?=[^\"'\n]{0,400}\d)[^\"'\\\n]{6,400}(?=[\"'\\])"
_BARE = r"(?=[^\s\"',;&]{0,99}\d)(?=[^\s\"',;&]{0,99}[A-Za-z])[^\s\"',;&]{8,}"
_IS = r"[\"'\\]*\s*(?:=>|[:=])\s*[\"'\\]*(?:(?:bearer|basic|token|apikey|key|bot)\s+)?(?P<kept>)"
_NAMES = (
    *("api-key", "api_key", "apikey", "access_key", "access-key", "accesskey", "private_key"),
    *("account_key", "accountkey", "secret", "token", "credential", "sig", "password", "passwd"),
    *("passphrase", "pwd"),
)
"""Names of secrets; a value beside one of them is a secret if it has a digit and a letter."""

_SHAPES = (
    *((prefix, rf"(?i)(?<![A-Za-z0-9]){re.escape(prefix)}{_TOKEN}{{{fewest},}}")
      for prefix, fewest in _PREFIXES.items()),
    ("akia", r"\bAKIA[0-9A-Z]{16}\b"),
    ("asia", r"\bASIA[0-9A-Z]{16}\b"),
    ("aiza", rf"\bAIza{_TOKEN}{{30,}}"),
    ("ya29.", rf"\bya29\.{_TOKEN}{{20,}}"),
    ("1//0", rf"\b1//0{_TOKEN}{{30,}}"),
    ("sg.", rf"\bSG\.{_TOKEN}{{16,}}\.{_TOKEN}{{16,}}"),
    # Twilio, Telegram, Airtable, Databricks, Bedrock, Notion, Sentry, Square, Azure, Terraform
    # Cloud: letters, then only what is random.
    ("sk", r"\bSK[0-9a-f]{32}\b"),
    ("ac", r"\bAC[0-9a-f]{32}:(?P<kept>)[0-9a-f]{32}\b"),
    (":aa", rf"(?<=\d{{8}}):AA{_TOKEN}{{33}}"),
    ("pat", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("dapi", r"\bdapi[0-9a-f]{32}(?:-\d+)?\b"),
    ("absk", r"\bABSK[A-Za-z0-9+/]{40,}={0,2}"),
    ("secret_", r"\bsecret_[A-Za-z0-9]{43}\b"),
    ("sntrys_", r"\bsntrys_[A-Za-z0-9+/=_\-]{20,}"),
    ("eaaa", rf"\bEAAA{_TOKEN}{{40,}}"),
    ("8q~", r"8Q~[A-Za-z0-9_~.\-]{31,}"),
    (".atlasv1.", rf"\.atlasv1\.(?P<kept>){_TOKEN}{{40,}}"),
    ("hooks.slack.com/", r"hooks\.slack\.com/\w+/(?P<kept>)\w+/\w+/\w{16,}"),
    ("/api/webhooks/", rf"/api/webhooks/\d+/(?P<kept>){_TOKEN}{{40,}}"),
    # A JSON Web Token: header, payload and signature; the first two begin as JSON objects do.
    ("eyj", rf"\beyJ{_TOKEN}{{8,}}\.eyJ{_TOKEN}{{8,}}\.{_TOKEN}*"),
    ("-----begin ",
     r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [^-]*-----|\Z)"),
    ("private-lines:",
     r"(?i)private-lines: \d+\s+(?P<kept>)[A-Za-z0-9+/=\s]{16,9000}?(?=Private-MAC|\Z)"),
    ("bearer", r"(?i)bearer(?: |%20)(?P<kept>)[A-Za-z0-9._~+/\-]{8,}=*"),
    ("basic ", r"(?i)\bbasic (?P<kept>)[A-Za-z0-9+/]{16,}={0,2}"),
    ("cookie:", r"(?i)cookie:\s*(?P<kept>)(?=[^\s;=]{1,99}=)[^\r\n]{8,}"),
    # The password in postgresql://user:password@host, and in any other address; @ and / may be in
    # it. A number before the first / is a port. Then a token without a user.
    ("://", r"://[^\s/:@\"']{0,99}:(?P<kept>)(?!\d{1,5}(?:[/?#]|$))[^\s\"'<>]{3,200}(?=@[\w.\[])"),
    ("://", rf"://(?P<kept>){_TOKEN}{{20,}}(?=@)"),
    (" -u ", r" -u +[^\s:]+:(?P<kept>)\S{4,}"),
    *((name, rf"(?i){re.escape(name)}(?:(?:access)?key|nature)?(?:[_-][\w-]{{0,24}})?{_IS}"
             rf"(?:{_QUOTED}|{_BARE})") for name in _NAMES),
    ("auth", rf"(?i)auth(?:orization|_?token)?{_IS}(?:{_QUOTED}|{_BARE})"),
    *((f"{name}{sign}", rf"(?i){re.escape(name)}{sign}\s*(?P<kept>)[^\s\"',;]{{8,}}")
      for name in ("api-key", "api_key", "apikey", "access_token", "access-token",
                   "client_secret", "secret_access_key", "accountkey")
      for sign in "=:"),
    # A line of .netrc, and --auth USER:PASSWORD.
    ("login ", r"(?i)login \S{1,99} +password +(?P<kept>)\S{4,}"),
    ("--",
     r"(?i)--(?:proxy-)?(?:auth|user)[= ][\"']?[^\s:\"']{1,99}:(?P<kept>)[^\s\"'/][^\s\"']{3,}"),
    ("password=", r"(?i)password=(?P<kept>)[^\s\"',;&]{6,}"),
    # {"password": "nodigits"}
    ("password", r"(?i)password[\"'\\]+\s*:\s*[\"'\\]+(?P<kept>)[^\s\"'\\]{8,}(?=[\"'\\])"),
    # Options of a command line: --api-key VALUE, --token=VALUE.
    ("--", r"(?i)--[\w-]{0,40}(?:key|token|secret|password|credential)[= ](?P<kept>)[^\s-]\S{5,}"),
)  # fmt: skip
"""A literal in small letters that a secret begins with, and the pattern of the whole secret.

``kept`` marks where the secret itself begins. What is looked at beyond a literal without being
redacted is bounded: else a long text without spaces takes the square of its length. One pattern for
all of them took 1 s per million characters; searching for the literals takes a hundredth of that.
"""
_PATTERNS = tuple((literal, re.compile(pattern)) for literal, pattern in _SHAPES)
_GROUPS = (
    # Signs of which one is in the text, and patterns that need it: most texts have few of them.
    (("-", "_"), tuple(pair for pair in _PATTERNS if "-" in pair[0] or "_" in pair[0])),
    ((":", "="), tuple(pair for pair in _PATTERNS if pair[0] in (*_NAMES, "auth"))),
)
_ALWAYS = tuple(pair for pair in _PATTERNS if all(pair not in group for _, group in _GROUPS))
_SECRET_NAMES = re.compile(
    r"(?i)key|token|secret|password|passwd|passphrase|credential|authorization|_pass$|_pwd$"
    r"|(?:^|_)(?:creds?|auth)(?:_|$)"
)
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_OPAQUE = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9_+=\-]{20,}")
"""A value without words: both cases and digits. Hashes and ids of builds have one case only."""
_FEWEST_DIFFERENT = 12
_SHORTEST = 8
_LONGEST_REPEATED, _MOST_REPEATED = 4_000, 1_000
"""Texts that are remembered for a while."""
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
        # A task has the same prompt and expected answer in every attempt.
        self._clean_texts: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        if len(text) < _SHORTEST:  # no secret is that short, and most answers and fields are
            return text if text.isascii() else make_encodable(text)
        if len(text) > _LONGEST_REPEATED:
            return self._clean(text)
        clean_text = self._clean_texts.get(text)
        if clean_text is None:
            if len(self._clean_texts) >= _MOST_REPEATED:
                self._clean_texts.clear()
            clean_text = self._clean_texts[text] = self._clean(text)
        return clean_text

    def _clean(self, text: str) -> str:
        text = make_encodable(text)
        for value in self._values:
            text = text.replace(value, _SHOWN)
        lower = text.lower()
        if len(lower) != len(text):  # a few letters become two in small: places would not match
            lower = "".join(sign.lower() if sign.isascii() else sign for sign in text)
        groups = [group for signs, group in _GROUPS if any(sign in lower for sign in signs)]
        spans = [
            span
            for literal, pattern in chain(_ALWAYS, *groups)
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


def _without(text: str, spans: list[tuple[int, int]], mark: str = _SHOWN) -> str:
    parts = []
    place = 0
    for begin, end in sorted(spans):
        if end <= place:
            continue
        if begin >= place:
            parts += [text[place:begin], mark]
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
        text, value = _without(text, spans, _SHOWN[::step])[::step], value[::step]
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
