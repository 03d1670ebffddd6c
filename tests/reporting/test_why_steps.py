"""A transcript as the steps of its agent."""

from __future__ import annotations

from passhat.reporting.why import steps_of
from passhat.stats.why import Step
from passhat.suites.tool_calls import write_call


def entry(role: str, text: str) -> dict[str, str]:
    return {"role": role, "text": text}


def test_results_belong_to_their_calls() -> None:
    steps = steps_of(
        [
            entry("user", "the task"),
            entry("agent", "I look it up"),
            entry("agent", write_call("find", {"id": 1})),
            entry("agent", write_call("get", {})),
            entry("tool", "fine"),
            entry("tool", "Tool error: no such thing"),
            entry("agent", write_call("pay", {"sum": 2})),
            entry("user", "Tool error: declined"),
            entry("agent", write_call("pay", {"sum": 2})),
            entry("user", "Tool result: errors: none"),
            entry("agent", write_call("respond", {"content": "done"})),
            entry("user", "Error is a word of mine, and no result"),
        ]
    )
    assert steps.calls == (
        Step("find", {"id": 1}),
        Step("get", failed=True),
        Step("pay", {"sum": 2}, failed=True),
        Step("pay", {"sum": 2}),
    )
    assert steps.messages == 2


def test_a_result_after_the_user_spoke_belongs_to_no_call() -> None:
    steps = steps_of(
        [entry("agent", write_call("a", {})), entry("user", "hello"), entry("tool", "Error: late")]
    )
    assert steps.calls == (Step("a"),)
    assert steps_of([]) == ((), 0)
