"""Keys and tokens never reach a transcript, a log or a report."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["Redactor"]

_SHAPES = re.compile(
    r"(?i)\b(?:sk|pk|rk|ghp|gho|xox[abps])[-_][A-Za-z0-9_\-]{12,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|(?<=bearer )[A-Za-z0-9._\-]{8,}"
    r"|(?<=api[-_]key[=:])\s*[^\s\"',;]{8,}"
)
_SECRET_NAMES = re.compile(r"(?i)key|token|secret|password|passwd|credential|authorization")
_SHORTEST = 8
_SHOWN = "[redacted]"


class Redactor:
    """Replaces what looks like a secret, and the values of environment variables that are one."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        values = {
            value
            for name, value in (environment or {}).items()
            if _SECRET_NAMES.search(name) and len(value) >= _SHORTEST
        }
        longest_first = sorted(values, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(_SHOWN, text)
        return _SHAPES.sub(_SHOWN, text)
