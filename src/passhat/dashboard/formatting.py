"""How pages write addresses, amounts, times, attempts and conversations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from urllib.parse import quote, urlencode

from markupsafe import Markup

from passhat._display import percent_interval
from passhat.reporting.document import Document, Heading, Level
from passhat.reporting.html.blocks import render_blocks
from passhat.stats.estimate import Estimate
from passhat.stats.outcomes import Verdict

_DOTS = {
    Verdict.PASSED: ("●", "p", "passed"),
    Verdict.FAILED: ("○", "f", "failed"),
    Verdict.MISSING: ("–", "m", "missing"),
}
_MINUTE, _HOUR = 60, 3600


def address(*parts: object, **query: object) -> str:
    """A path of our own, every part escaped; a task's id keeps its slashes."""
    path = "/" + "/".join(quote(str(part), safe="/") for part in parts)
    fields = {name: value for name, value in query.items() if value not in ("", None, ())}
    return f"{path}?{urlencode(fields, doseq=True)}" if fields else path


def dots(marks: Iterable[tuple[int, Verdict]], base: str = "") -> Markup:
    """Attempts as dots, each a link to its attempt if ``base`` is given."""
    parts = []
    for number, verdict in marks:
        sign, kind, word = _DOTS[verdict]
        if base:
            parts.append(
                f'<a class="{kind}" href="{base}/{number}" aria-label="attempt {number} {word}" '
                f'data-tip="#{number} {word}">{sign}</a>'
            )
        else:
            parts.append(f'<span class="{kind}" role="img" aria-label="{word}">{sign}</span>')
    return Markup("").join(map(Markup, parts))


def interval_percent(estimate: Estimate) -> str:
    """``49 to 77%``, or nothing where there is no interval."""
    return "" if estimate.low is None else percent_interval(estimate.low, estimate.high)


def seconds_text(value: float | None) -> str:
    if value is None:
        return "–"
    if 0 < value < 0.1:
        return f"{1000 * value:.0f} ms" if value >= 0.001 else "under 1 ms"
    if value < _MINUTE:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    if value < _HOUR:
        return f"{value / _MINUTE:.1f} min"
    return f"{value / _HOUR:,.1f} h"


def cost_text(value: float | None) -> str:
    """An amount as it was recorded: a store does not record the currency."""
    if value is None:
        return "–"
    return f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.4g}"


def day(stamp: str) -> str:
    """2026-03-01T10:20:30+00:00 as 2026-03-01 10:20."""
    return stamp[:16].replace("T", " ")


# -- conversations -------------------------------------------------------------------------------
#
# A transcript is data. Nothing of it is ever taken for markup, and characters that steer a terminal
# or turn text around are shown by name.

_CALL = re.compile(r"\s*(?:<json>\s*)?(\{.*\})\s*(?:</json>\s*)?", re.DOTALL)
_RESULT = re.compile(r"\s*Tool (result|error):\s?(.*)", re.DOTALL)
_USER = re.compile(r"\s*User:\s?(.*)", re.DOTALL)
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_LONG = 1_500
"""Characters from which a first message (rules, tools) is folded away."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An entry of a conversation: ``kind`` is user, agent, call, result, error or other."""

    number: int
    kind: str
    who: str
    text: str
    folded: bool = False


def turns_of(transcript: Sequence[Mapping[str, str]]) -> list[Turn]:
    """Every entry as a turn."""
    return [_turn(i, entry) for i, entry in enumerate(transcript, 1)]


def render_parts(
    document: Document,
    names: Sequence[str],
    level: Level = Level.FULL,
    without: type | UnionType = Heading,
    table_class: str = "stack",
) -> Markup:
    """The blocks of some sections at a level; a page has headings of its own."""
    return render_blocks(
        (
            block
            for section in document.sections
            if section.name in names
            for block in section.blocks
            if level in block.level and not isinstance(block, without)
        ),
        table_class,
    )


def last_words(turns: Sequence[Turn], default: str = "") -> str:
    """The agent's last text; a call that only speaks is shown as text."""
    spoken = (turn.text for turn in reversed(turns) if turn.kind in ("agent", "call"))
    return next(spoken, default)


def _turn(number: int, entry: Mapping[str, str]) -> Turn:
    role, text = str(entry.get("role", "")), str(entry.get("text", ""))
    if role in ("agent", "assistant"):
        return _agent_turn(number, text)
    if role in ("tool", "tool_result", "function"):
        return Turn(number, "result", "tool result", pretty(text))
    if role == "tool_call":
        return Turn(number, "call", "tool call", pretty(text))
    if role == "user":
        if result := _RESULT.fullmatch(text):
            kind = "result" if result[1] == "result" else "error"
            return Turn(number, kind, f"tool {result[1]}", pretty(result[2]))
        match = _USER.fullmatch(text)
        return Turn(number, "user", "user", match[1] if match else text, len(text) > _LONG)
    return Turn(number, "other", role or "unknown", text, len(text) > _LONG)


def _agent_turn(number: int, text: str) -> Turn:
    """A turn of the agent: text, or a call; a call that only speaks is shown as text."""
    match = _CALL.fullmatch(text)
    call = _decode(match[1]) if match else None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return Turn(number, "agent", "agent", text)
    arguments = call.get("arguments")
    if call["name"] == "respond" and isinstance(arguments, dict):
        content = arguments.get("content")
        if isinstance(content, str) and len(arguments) == 1:
            return Turn(number, "agent", "agent", content)
    arguments_text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return Turn(number, "call", f"calls {call['name']}", arguments_text)


def pretty(text: str) -> str:
    """JSON with a line for every entry; any other text as it is."""
    value = _decode(text)
    if isinstance(value, dict | list):
        return json.dumps(value, indent=2, ensure_ascii=False)
    return text


def _decode(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def visible(text: str) -> str:
    """The text with characters that steer shown as pictures or by number."""
    return _STEERING.sub(lambda match: _name(ord(match[0])), text)


def _name(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
