"""Turns of a conversation, and characters that steer."""

from __future__ import annotations

import pytest

from passhat.dashboard.formatting import turns_of, visible


@pytest.mark.parametrize(
    ("role", "text", "kind", "shown"),
    [
        ("user", "User: hello", "user", "hello"),
        ("user", "hello", "user", "hello"),
        ("user", "Tool result: [1]", "result", "[\n  1\n]"),
        ("user", "Tool error: no such order", "error", "no such order"),
        ("agent", "plain words", "agent", "plain words"),
        ("agent", '{"name": "respond", "arguments": {"content": "Hi"}}', "agent", "Hi"),
        ("agent", '<json>{"name": "f", "arguments": {}}</json>', "call", "{}"),
        ("agent", "<json>{broken</json>", "agent", "<json>{broken</json>"),
        ("agent", "[" * 100_000, "agent", "[" * 100_000),
        ("agent", '{"name": 3}', "agent", '{"name": 3}'),
        ("assistant", "words", "agent", "words"),
        ("tool", "text", "result", "text"),
        ("tool_call", '{"a": 1}', "call", '{\n  "a": 1\n}'),
        ("system", "rules", "other", "rules"),
    ],
)
def test_kinds(role: str, text: str, kind: str, shown: str) -> None:
    (turn,) = turns_of([{"role": role, "text": text}])
    assert (turn.kind, turn.text) == (kind, shown)


def test_long_rules_are_folded() -> None:
    first, second = turns_of([{"role": "user", "text": "x" * 5000}, {"role": "user", "text": "x"}])
    assert (first.folded, second.folded) == (True, False)


def test_characters_that_steer_are_seen() -> None:
    assert visible("a\x1b[31m\x00\x7f\u202eb\r\n\tc") == "a␛[31m␀␡⟨U+202E⟩b␍\n\tc"
    assert visible("ünïcödé ● 漢字 👍") == "ünïcödé ● 漢字 👍"
