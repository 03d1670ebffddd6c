"""What coding agents print about themselves: tools, last words, usage."""

from __future__ import annotations

import json

from passhat.agents.base import Usage
from passhat.agents.coding_events import read_events

CLAUDE = [
    {"type": "system", "subtype": "init"},
    {
        "type": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ]
        },
    },
    {
        "type": "user",
        "message": {
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "shop.py"}],
                }
            ]
        },
    },
    {
        "type": "result",
        "result": "Fixed.",
        "total_cost_usd": 0.5,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5},
    },
]
CODEX = [
    {
        "type": "item.completed",
        "item": {
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "shop.py",
            "exit_code": 0,
        },
    },
    {"type": "item.completed", "item": {"type": "agent_message", "text": "Fixed."}},
    {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 5}},
]


def test_two_streams_tell_the_same() -> None:
    for name, stream, cost in (("Bash", CLAUDE, 0.5), ("command", CODEX, None)):
        events = read_events("a banner\n" + "\n".join(map(json.dumps, stream)))
        assert events is not None
        (call,) = events.calls
        assert (call.name, call.role, call.reply) == (name, "tool", "shop.py")
        assert call.request == {"command": "ls"}
        assert events.text == "Fixed."
        assert events.usage == Usage(cost=cost, input_tokens=100, output_tokens=5)


def test_other_output_is_text() -> None:
    for text in ("", "words", '{"type": 3}', '{"type": "x"}', "{broken", "[1]", '{"a": 1}'):
        assert read_events(text) is None


def test_odd_events_are_no_trouble() -> None:
    odd = [
        {"type": "assistant", "message": None},
        {"type": "assistant", "message": {"content": "text"}},
        {"type": "item.completed", "item": "x"},
        {"type": "result", "result": "done", "usage": [1]},
    ]
    events = read_events("\n".join(map(json.dumps, odd)))
    assert events is not None
    assert (events.text, events.calls, events.usage) == ("done", (), None)
