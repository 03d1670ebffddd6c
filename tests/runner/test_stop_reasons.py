"""When a run ends early, attempt by attempt: which ends are a set-up mistake, silence or a debt."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from passhat.errors import InvalidValue, RunStopped
from passhat.runner.stop_reasons import (
    FirstAttempts,
    SetupMistake,
    SilentAttempts,
    Stop,
    refuse_broken,
    stop_on_account,
)
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement, TaskCheck


def _end(
    why: str,
    detail: str = "",
    answers: Sequence[str] = (),
    *,
    judged: bool = False,
    steps: float | None = None,
) -> AttemptRecord:
    verdict = Verdict.PASSED if not why else Verdict.FAILED
    talk = [{"role": "agent", "text": text} for text in answers]
    judgement = Judgement(verdict, why, detail)
    return AttemptRecord("t", 1, judgement, steps=steps, transcript=talk, is_judged=judged)


def _take(*records: AttemptRecord) -> str:
    """What stops the run, without its hint; empty where it goes on."""
    first = FirstAttempts(is_watching=True)
    try:
        for record in records:
            first.take([record])
    except SetupMistake as mistake:
        return str(mistake.message)
    return ""


RAISED = _end("exception", "KeyError: 'KEY' (agent.py:12)")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([RAISED] * 3, "3 of 3 attempts raised KeyError: 'KEY' (agent.py:12)."),
        ([RAISED] * 2, ""),
        ([RAISED, RAISED, _end("", judged=True, answers=["4"]), RAISED], ""),
        ([RAISED, RAISED, _end("wrong_answer", judged=True, answers=["4"])], ""),
        # the same line of code, whatever the words
        (
            [_end("exception", f"KeyError: '{key}' (agent.py:12)") for key in "abc"],
            "3 of 3 attempts raised KeyError: 'c' (agent.py:12).",
        ),
        ([_end("exception", f"KeyError: 'a' (agent.py:{line})") for line in (1, 2, 3)], ""),
        # six by their own code, each by another cause
        (
            [_end("exception", f"KeyError: 'a' (agent.py:{line})") for line in range(6)],
            "none of the first 6 attempts got a verdict: 1 of them raised KeyError: 'a' "
            "(agent.py:5).",
        ),
        ([_end("communication_error", word) for word in "uvwxyz"], ""),
        (
            [_end("timeout", "no answer within 3 s")] * 3,
            "3 of 3 attempts got no answer in time: no answer within 3 s.",
        ),
        ([_end("timeout", "no answer within 3 s", ["hello"])] * 3, ""),
        ([_end("refused", word) for word in "abc"], "3 of 3 attempts got no answer: c."),
        (
            [_end("truncated", "cut", ["a"], judged=True)] * 3,
            "3 of 3 attempts got no whole answer: cut.",
        ),
        (
            [_end("wrong_answer", "not 4", [" "], judged=True)] * 3,
            "3 of 3 attempts gave an empty answer: not 4.",
        ),
        ([_end("wrong_state", "no refund", [" "], judged=True)] * 3, ""),
        ([_end("wrong_answer", "not 4", judged=True)] * 3, ""),
        ([_end("format_error", "no JSON", ["a"], judged=True)] * 3, ""),
        (
            [_end("format_error", "no JSON", ["a", "b"], judged=True)] * 3,
            "3 of 3 attempts gave no usable answer: no JSON.",
        ),
        (
            [_end("judge_error", "ValueError: x (judge.py:3)")] * 3,
            "3 of 3 attempts could not be judged: the judge raised ValueError: x (judge.py:3).",
        ),
        (
            [_end("judge_error", "the judge returned None")] * 3,
            "3 of 3 attempts could not be judged: the judge returned None.",
        ),
        (
            [_end("agent_error", "no such file")] * 3,
            "3 of 3 attempts could not be started: no such file.",
        ),
        (
            [_end("agent_error", "500", steps=1)] * 3,
            "3 of 3 attempts got an error from the agent: 500.",
        ),
        ([_end("exception")] * 3, "3 of 3 attempts raised exception."),
        ([_end("rate_limit", "429")] * 3, ""),
    ],
)
def test_which_first_attempts_stop_a_run(records: list[AttemptRecord], message: str) -> None:
    assert _take(*records).rstrip(".") == message.rstrip(".")


def test_attempts_are_held_back_until_one_is_judged_and_then_stored_in_order() -> None:
    first = FirstAttempts(is_watching=True)
    judged = _end("wrong_answer", judged=True, answers=["4"])
    assert first.take([RAISED]) == []
    assert first.take([RAISED]) == []
    assert first.take([judged, RAISED]) == [RAISED, RAISED, judged, RAISED]
    assert first.take([RAISED] * 9) == [RAISED] * 9
    assert first.release() == []


def test_behind_a_set_up_mistake_nothing_is_stored() -> None:
    first = FirstAttempts(is_watching=True)
    with pytest.raises(SetupMistake):
        first.take([RAISED] * 3)
    assert first.take([_end("", judged=True)]) == []
    assert first.release() == []


def test_who_does_not_watch_stores_everything_at_once() -> None:
    assert FirstAttempts(is_watching=False).take([RAISED] * 9) == [RAISED] * 9


def test_so_many_different_ends_are_results() -> None:
    first = FirstAttempts(is_watching=True)
    ends = [_end("communication_error", chr(97 + place)) for place in range(25)]
    stored = [first.take([end]) for end in ends]
    assert stored[:24] == [[]] * 24
    assert stored[24] == ends


@pytest.mark.parametrize(
    ("limit", "words", "stopped"),
    [
        (2, ["rate_limit", "rate_limit"], True),
        (2, ["communication_error", "infrastructure"], True),
        (2, ["rate_limit", "wrong_answer", "rate_limit"], False),
        (0, ["rate_limit"] * 5, False),
        (3, ["rate_limit"] * 2, False),
    ],
)
def test_silence_in_a_row_ends_a_run(limit: int, words: list[str], stopped: bool) -> None:
    silent = SilentAttempts(limit)
    ends = [silent.count(_end(word, "gone")) for word in words]
    assert [end is not None for end in ends] == [False] * (len(words) - 1) + [stopped]
    if stopped:
        assert str(ends[-1]).startswith(
            f"{limit} attempts in a row got no answer. The last one: {words[-1]}: gone"
        )


def test_an_answer_before_the_silence_counts() -> None:
    silent = SilentAttempts(1)
    assert silent.count(_end("rate_limit", answers=["hello"])) is None
    assert silent.count(_end("rate_limit")) is not None


def test_an_account_that_cannot_be_used_ends_a_run() -> None:
    stop_on_account(_end("rate_limit", "429"))
    with pytest.raises(RunStopped, match="no credit"):
        stop_on_account(_end("account", "no credit"))


@pytest.mark.parametrize("count", [1, 5, 6, 8])
def test_tasks_that_cannot_be_attempted_are_named(count: int) -> None:
    good = TaskCheck("good", problems=())
    refuse_broken([good])
    checks = [good, *(TaskCheck(f"t{place}", problems=("bad", "worse")) for place in range(count))]
    with pytest.raises(InvalidValue) as caught:
        refuse_broken(checks)
    named = "; ".join(f"t{place}: bad; worse" for place in range(min(count, 5)))
    more = {6: "; and 1 task more", 8: "; and 3 tasks more"}.get(count, "")
    tasks = "1 task" if count == 1 else f"{count} tasks"
    assert caught.value.message == f"{tasks} cannot be attempted. {named}{more}."


def test_only_a_second_request_abandons_what_is_in_flight() -> None:
    abandoned: list[str] = []
    stop = Stop()
    stop.ask()
    stop.ask()  # too early: there is nothing to abandon yet
    stop = Stop()
    stop.when_impatient(lambda: abandoned.append("now"))
    assert not stop.asked
    stop.ask()
    assert (stop.asked, abandoned) == (True, [])
    stop.ask()
    assert abandoned == ["now"]


def test_a_run_that_gives_up_abandons_at_once_and_a_settled_one_does_not() -> None:
    abandoned: list[str] = []
    for end, expected in (("start_nothing_new", []), ("give_up", ["now"])):
        stop = Stop()
        getattr(stop, end)()
        assert (stop.asked, abandoned) == (True, [])
        stop = Stop()
        stop.when_impatient(lambda: abandoned.append("now"))
        getattr(stop, end)()
        assert (stop.asked, abandoned) == (True, expected)
