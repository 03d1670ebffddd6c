"""Keys and tokens never reach a transcript, a log or a report."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["LONGEST_TEXT", "Redactor"]

LONGEST_TEXT = 4 * 1024 * 1024
"""Characters of one text that are kept, for every kind of agent."""
_MARGIN = 64 * 1024
"""Longer than any secret: what is cut is looked at together with so much beyond the cut."""

_SHAPES = (
    *((f"{word}{sign}", rf"(?i)\b{word}{sign}[A-Za-z0-9_\-]{{12,}}")
      for word in ("sk", "pk", "rk", "ghp", "gho", "xoxa", "xoxb", "xoxp", "xoxs")
      for sign in "-_"),
    ("akia", r"\bAKIA[0-9A-Z]{16}\b"),
    ("bearer ", r"(?i)bearer (?P<kept>)[A-Za-z0-9._\-]{8,}"),
    *((f"api{dash}key{sign}", rf"(?i)api{dash}key{sign}(?P<kept>)\s*[^\s\"',;]{{8,}}")
      for dash in "-_" for sign in "=:"),
)  # fmt: skip
"""A literal in small letters that a secret begins with, and the pattern of the whole secret.

``kept`` marks where the secret itself begins. One pattern for all of them took 1 s per million
characters; searching for the literals takes a hundredth of that.
"""
_PATTERNS = tuple((literal, re.compile(pattern)) for literal, pattern in _SHAPES)
_SECRET_NAMES = re.compile(r"(?i)key|token|secret|password|passwd|credential|authorization")
_SHORTEST = 8
_SHOWN = "[redacted]"


class Redactor:
    """Replaces strings that look like secrets, and values of secret environment variables."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        values = {
            value
            for name, value in (environment or {}).items()
            if _SECRET_NAMES.search(name) and len(value) >= _SHORTEST
        }
        self._known = sorted(values, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._known:
            text = text.replace(value, _SHOWN)
        lower = text.lower()
        if len(lower) != len(text):  # a few letters become two in small: places would not match
            lower = "".join(sign.lower() if sign.isascii() else sign for sign in text)
        if not ("-" in lower or "_" in lower or "akia" in lower or "bearer " in lower):
            return text  # every shape has one of these
        spans = [
            span
            for literal, pattern in _PATTERNS
            if literal in lower
            for span in _spans(text, lower, literal, pattern)
        ]
        return _without(text, spans) if spans else text

    def quote(self, text: str, longest: int = LONGEST_TEXT) -> str:
        """A message without secrets, nor parts of one: it may quote text that was cut elsewhere.

        A grader quotes the first 80 characters of an answer, and a key may begin among them.
        """
        text = self.shorten(text, longest)
        for value in self._known:
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
