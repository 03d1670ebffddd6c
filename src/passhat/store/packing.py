"""Transcripts as bytes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence

import msgspec

__all__ = ["packed", "unpacked"]

_WORTH_PACKING = 400
"""Bytes; what is smaller takes longer to compress than to write."""


def packed(transcript: Sequence[Mapping[str, str]]) -> bytes:
    """JSON; compressed, as lightly as SQLite's own pages make sensible, when it is not small."""
    body = msgspec.json.encode(transcript)
    return body if len(body) < _WORTH_PACKING else zlib.compress(body, level=1)


def unpacked(body: bytes) -> Sequence[Mapping[str, str]]:
    text = body if body.startswith(b"[") else zlib.decompress(body)
    transcript: Sequence[Mapping[str, str]] = json.loads(text)
    return transcript
