"""Events that coding agents print as JSON lines: commands they ran, their last words, their usage.

Two streams are read: ``claude -p --output-format stream-json`` and ``codex exec --json``. Any other
output is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from passhat.agents.base import ModelCall, Usage

_LONGEST = 20_000
"""Characters of a tool's result that are kept."""


@dataclass(frozen=True, slots=True)
class AgentEvents:
    """The tools that an agent says it used, its last text, and its usage where it states one."""

    text: str
    calls: tuple[ModelCall, ...]
    usage: Usage | None


def read_events(output: str) -> AgentEvents | None:
    """Read an output of JSON lines; ``None`` where it is text."""
    log = _Log()
    for event in _decode(output):
        if event["type"] in ("assistant", "user"):
            for part in _parts(event):
                log.take_part(part, is_agent=event["type"] == "assistant")
        elif event["type"] == "result":
            log.texts += [str(event["result"])] if event.get("result") else []
            log.usage = _usage(event.get("usage"), event.get("total_cost_usd"))
        elif event["type"] == "item.completed" and isinstance(event.get("item"), dict):
            log.take_item(event["item"])
        elif event["type"] == "turn.completed":
            log.usage = _usage(event.get("usage"), None)
    if not log.calls and not log.texts:
        return None
    calls = tuple(_with_reply(call, log.results) for call in log.calls)
    return AgentEvents(log.texts[-1] if log.texts else "", calls, log.usage)


@dataclass(slots=True)
class _Log:
    """Events that were read so far; ``results`` are of tools, by the id of their call."""

    texts: list[str] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    usage: Usage | None = None

    def take_part(self, part: dict[str, Any], *, is_agent: bool) -> None:
        """Take a part of a message of Claude Code."""
        kind = part.get("type")
        if kind == "text" and is_agent:
            self.texts.append(str(part.get("text", "")))
        elif kind == "tool_use":
            request = part.get("input") if isinstance(part.get("input"), dict) else {}
            name, number = str(part.get("name", "tool")), str(part.get("id"))
            self.calls.append(ModelCall(name, role="tool", request=request, request_id=number))
        elif kind == "tool_result":
            self.results[str(part.get("tool_use_id"))] = _plain(part.get("content"))

    def take_item(self, item: dict[str, Any]) -> None:
        """Take an item of Codex."""
        if item.get("type") == "agent_message":
            self.texts.append(str(item.get("text", "")))
        elif item.get("type") == "command_execution":
            request = {"command": str(item.get("command", ""))}
            reply = _plain(item.get("aggregated_output"))
            self.calls.append(ModelCall("command", role="tool", request=request, reply=reply))


def _decode(output: str) -> Iterator[dict[str, Any]]:
    """The objects of the lines that are JSON; a program may print a banner before them."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict) and isinstance(event.get("type"), str):
                yield event


def _parts(event: dict[str, Any]) -> list[dict[str, Any]]:
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _plain(content: object) -> str:
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        content = "\n".join(map(str, parts))
    return str(content or "")[:_LONGEST]


def _with_reply(call: ModelCall, results: dict[str, str]) -> ModelCall:
    if call.reply is not None:
        return call
    reply = results.get(call.request_id, "")
    return ModelCall(call.name, role="tool", request=call.request, reply=reply)


def _usage(counts: object, cost: object) -> Usage | None:
    if not isinstance(counts, dict):
        return None
    inputs, outputs = (
        counts.get(name) if isinstance(counts.get(name), int) else None
        for name in ("input_tokens", "output_tokens")
    )
    # A prompt that was written to a cache or read from it is counted apart by one of them.
    more = [counts.get(f"cache_{name}_input_tokens") or 0 for name in ("creation", "read")]
    if inputs is not None and all(isinstance(count, int) for count in more):
        inputs += sum(more)
    amount = float(cost) if isinstance(cost, int | float) else None
    return Usage(cost=amount, input_tokens=inputs, output_tokens=outputs)
