"""Events that go with failure: a planted cause is named, chance is not (benchmarks/why.py)."""

from __future__ import annotations

import json
import random

from passhat._serialize import as_json, to_data
from passhat.stats.why import EventKind, Step, Trace, explain_failures, list_events


def make_run(times: float, seed: int, tasks: int = 20, attempts: int = 8) -> list[Trace]:
    """Attempts that call ``wrong`` early fail ``times`` as often as the others (0.25)."""
    rng = random.Random(seed)
    traces = []
    for task in range(tasks):
        for number in range(1, attempts + 1):
            is_wrong = rng.random() < 0.35
            steps = [Step("find"), Step("get", {"id": task}), Step("pay", {"by": "card"})]
            if rng.random() < 0.5:
                steps.insert(2, Step("look"))
            if is_wrong:
                steps.insert(rng.randrange(2), Step("wrong"))
            fails = rng.random() < 0.25 * (times if is_wrong else 1)
            traces.append(Trace(f"t{task}", number, not fails, tuple(steps), 1))
    return traces


def test_a_planted_cause_is_named_and_its_odds_are_in_the_interval() -> None:
    findings = explain_failures(make_run(3, seed=1))
    first = findings[0]
    assert first.is_shown
    assert first.goes_with_failure
    assert (first.event.kind, first.event.tool) == (EventKind.CALLED, "wrong")
    assert first.high is not None
    assert first.low < 9 < first.high  # the odds 0.75/0.25 over 0.25/0.75
    assert first.failed + first.others_failed > 0
    assert not any(f.is_shown for f in findings if f.event.tool == "look")


def test_nothing_is_named_without_a_cause() -> None:
    named = [any(f.is_shown for f in explain_failures(make_run(1, seed))) for seed in range(8)]
    assert sum(named) <= 1


def test_events_of_the_same_attempts_are_one_test() -> None:
    traces = [
        Trace(task, n, n % 2 == 0, (Step("one"), Step("two")) if n % 2 else (Step("three"),))
        for task in "ab"
        for n in range(1, 9)
    ]
    (finding,) = explain_failures(traces)
    texts = {event.text for event in finding.same}
    assert finding.event.text == "calls one"
    assert {"calls two", "calls one first", "calls two last"} <= texts
    assert "calls three" in {event.text for event in finding.opposite}
    assert (finding.failed, finding.attempts, finding.others_failed) == (8, 8, 0)
    assert finding.odds_ratio is None
    assert finding.high is None
    assert json.loads(as_json(finding))["event"]["text"] == "calls one"


def test_a_hard_task_does_not_make_its_tool_look_guilty() -> None:
    """The tool of the hard task fails more often over all, and never within a task."""
    traces = [
        Trace("hard", n, n == 1, (Step("rare"), *([Step("x")] if n % 2 else [])))
        for n in range(1, 9)
    ]
    traces += [
        Trace("easy", n, n != 1, (Step("x"),) if n % 2 else (Step("y"),)) for n in range(1, 9)
    ]
    assert all(finding.event.tool != "rare" for finding in explain_failures(traces))


def test_an_order_is_compared_where_both_tools_are_called() -> None:
    """Attempts that call only one of them say nothing about the order."""
    a, b = Step("a"), Step("b")
    traces = [
        Trace(task, n, n % 2 == 0, (b, a) if n % 2 else (a, b)) for task in "xyz" for n in range(8)
    ]
    traces += [Trace(task, n, n % 2 == 0, (a,)) for task in "xyz" for n in range(8, 16)]
    finding = next(f for f in explain_failures(traces) if f.event.kind is EventKind.BEFORE)
    assert finding.event.text == "calls b before a"
    assert "calls a before b" in {event.text for event in finding.opposite}
    assert (finding.attempts, finding.failed, finding.others, finding.others_failed) == (
        12,
        12,
        12,
        0,
    )


def test_one_task_or_none_that_is_mixed_tells_nothing() -> None:
    assert explain_failures([]) == ()
    one = [Trace("t", n, n % 2 == 0, (Step("a"),) if n % 2 else ()) for n in range(1, 30)]
    assert explain_failures(one) == ()
    assert explain_failures([Trace(str(n), 1, n % 2 == 0) for n in range(9)]) == ()


def test_the_vocabulary() -> None:
    """Ids are no events; few values are, and errors, order, repeats and lengths."""
    traces = [
        Trace("t", 1, True, (Step("a", {"id": 1, "mode": "x"}), Step("b", failed=True)), 1),
        Trace("t", 2, True, (Step("b"), Step("a", {"id": 1}), Step("a", {"id": 1})), 3, cut=True),
        Trace("t", 3, False, (), 1, cut=False),
        *(Trace("u", n, True, (Step("a", {"id": n, "text": ["long"]}),)) for n in range(20)),
        Trace("v", 1, True, (Step("a"), Step("b"))),
        Trace("v", 2, True, (Step("b"), Step("a"), Step("c"))),
    ]
    events = {
        event.text: set(occurrence.happened) & {0, 1, 2}
        for event, occurrence in list_events(traces).items()
    }
    assert events['calls a with mode="x"'] == {0}
    assert not any("id=" in text or "text=" in text for text in events)
    assert events["b returns an error"] == events["a tool returns an error"] == {0}
    assert events["calls a before b"] == {0}
    assert events["calls b before a"] == events["calls a more than once"] == {1}
    assert events["makes the same call twice"] == {1}
    assert events["makes more calls than half of the task's attempts"] == {1}
    assert events["writes more messages than half of the task's attempts"] == {1}
    assert events["an answer is cut at the token limit"] == {1}
    assert events["calls no tool"] == {2}
    assert "calls a before c" not in events  # never the other way round
    assert to_data(Step("a", {"id": 1})) == {"name": "a", "arguments": {"id": 1}, "failed": False}
