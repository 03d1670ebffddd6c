"""Judging an attempt again, step by step: what can be, what cannot, and forms of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.runner import regrade
from passhat.runner.redaction import Redactor
from passhat.runner.regrade import Outcome, _conversation, _judge_again, _NotRegradable
from passhat.stats.labels.judge_error import AGAIN
from passhat.stats.outcomes import Verdict
from passhat.store import JudgementSource, StoredJudgement
from passhat.store.rows import Ended
from passhat.suites.base import REMARKS, Judgement, Task, Turn

PASSED, FAILED = Verdict.PASSED, Verdict.FAILED


def _talk(*words: str) -> list[dict[str, str]]:
    """Entries such as ``user: hello``."""
    pairs = [entry.split(": ", 1) for entry in words]
    return [{"role": role, "text": text} for role, text in pairs]


def _attempt(*words: str, why: str = "", seed: int | None = 3, **parts: Any) -> Ended:
    said = parts.pop("said", [StoredJudgement(PASSED, "", "", JudgementSource.JUDGE)])
    transcript = _talk(*(words or ("user: q", "agent: a")))
    return Ended("t", 1, PASSED, why, "", None, None, transcript, said, seed)


class _Episode:
    """A conversation of given turns; its judge gives a result or raises."""

    def __init__(self, turns: Sequence[str], result: Any) -> None:
        self.turns, self.result = list(turns), result
        self.heard: list[str] = []
        self.is_closed = False

    def open(self) -> Turn:
        return Turn(self.turns.pop(0))

    def reply(self, answer: str) -> Turn | None:
        self.heard.append(answer)
        return Turn(self.turns.pop(0)) if self.turns else None

    def judge(self) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def close(self) -> None:
        self.is_closed = True


def _again(attempt: Ended, turns: Sequence[str] = ("q",), result: Any = None) -> Any:
    result = Judgement(PASSED) if result is None else result
    episode = _Episode(turns, result)
    suite: Any = SimpleNamespace(name="s", judge_fingerprint="j", episode=lambda *_: episode)
    tasks = {"t": Task("t", "q")}
    found = asyncio.run(_judge_again(attempt, tasks, suite, Redactor()))
    return found, episode


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (Judgement(PASSED), Outcome.SAME),
        (Judgement(PASSED, "", "another detail"), Outcome.SAME),
        (Judgement(FAILED, "wrong_answer", "no"), Outcome.CHANGED),
        (True, Outcome.SAME),
        (False, Outcome.CHANGED),
    ],
)
def test_a_verdict_is_the_same_or_has_changed(result: Any, outcome: Outcome) -> None:
    found, episode = _again(_attempt(), result=result)
    assert found.outcome is outcome
    assert found.now.source is JudgementSource.REGRADE
    assert found.now.judge_fingerprint == "j"
    assert (found.id, found.why) == ("t#1", "")
    assert (episode.heard, episode.is_closed) == (["a"], True)


def test_another_category_is_a_change() -> None:
    said = [StoredJudgement(FAILED, "timeout", "", JudgementSource.JUDGE)]
    found, _ = _again(_attempt(said=said), result=Judgement(FAILED, "wrong_answer", "no"))
    assert found.outcome is Outcome.CHANGED
    found, _ = _again(_attempt(said=said), result=Judgement(FAILED, "timeout", "x" * 501))
    assert found.outcome is Outcome.SAME
    assert len(found.now.detail) == 500


NO = Outcome.NOT_REGRADABLE
HUMAN = [
    StoredJudgement(PASSED, "", "", JudgementSource.JUDGE),
    StoredJudgement(FAILED, "", "", JudgementSource.HUMAN),
]


@pytest.mark.parametrize(
    ("attempt", "turns", "result", "outcome", "why"),
    [
        (_attempt(said=HUMAN), ["q"], None, Outcome.HUMAN, "a person decided"),
        (_attempt(said=HUMAN[::-1]), ["q"], None, Outcome.SAME, ""),
        (_attempt(seed=None), ["q"], None, NO, "the seed of its world is not recorded"),
        (_attempt(seed=0), ["q"], None, Outcome.SAME, ""),
        (_attempt(), ["q"], ValueError("odd"), NO, "the judge broke: ValueError: odd"),
        (
            *(_attempt(), ["q"], Judgement(Verdict.MISSING, "judge_error", "x"), NO),
            "the judge reached no verdict: judge_error: x",
        ),
        (_attempt(), ["other"], None, NO, "turn 1 now reads 'other', then 'q'"),
        (_attempt(), ["q", "r"], None, NO, "the conversation now goes on after the last answer"),
        (
            *(_attempt(why="timeout"), ["q", "r"], None, Outcome.NOT_JUDGED),
            "the conversation was cut short: timeout",
        ),
        (_attempt(why="timeout"), ["q"], None, Outcome.SAME, ""),
        (
            *(_attempt("user: q", "agent: a", "user: r", "agent: b"), ["q"], None, NO),
            "the conversation now ends before answer 2",
        ),
        (
            *(_attempt("user: q", "agent: a", "user: r", "agent: b"), ["q", "rs"], None, NO),
            "turn 2 now reads 's', then ''",
        ),
        (
            *(_attempt("user: q", "agent: a", "user: r", why="budget"), ["q"], None),
            *(Outcome.NOT_JUDGED, "the agent never answered: budget"),
        ),
    ],
)
def test_what_cannot_be_judged_again_says_why(
    attempt: Ended, turns: list[str], result: Any, outcome: Outcome, why: str
) -> None:
    found, _ = _again(attempt, turns, result)
    assert (found.outcome, found.why) == (outcome, why)
    assert (found.now is None) is (outcome is not Outcome.SAME)


def test_a_judge_that_does_not_answer_is_not_waited_for() -> None:
    found, _ = _again(_attempt(), result=TimeoutError())
    assert (found.outcome, found.why) == (NO, "the judge did not answer within 600 s")


def test_a_task_that_is_gone_cannot_be_judged() -> None:
    suite: Any = SimpleNamespace(name="s")
    found = asyncio.run(_judge_again(_attempt(), {}, suite, Redactor()))
    assert (found.outcome, found.why) == (NO, "s has no such task any more")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["user: q", "agent: a"], (["q"], ["a"])),
        (["user: q", "agent: a", "user: r", "agent: b"], (["q", "r"], ["a", "b"])),
        (["user: q", "tool: x", "agent: a"], "tools were called beside the conversation"),
        (["user: q"], "the agent never answered: "),
        (["user: q", "agent: a [redacted]"], "a secret was removed from an answer, so it is not"),
        (["user: [redacted]", "agent: a"], (["[redacted]"], ["a"])),
    ],
)
def test_turns_and_answers_of_a_conversation(words: list[str], expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(_NotRegradable) as caught:
            _conversation(_attempt(*words))
        assert caught.value.why.startswith(expected)
    else:
        assert _conversation(_attempt(*words)) == expected


def test_remarks_of_judges_are_no_part_of_a_conversation() -> None:
    remarks = [f"{role}: x" for role in sorted(REMARKS)]
    assert _conversation(_attempt("user: q", "agent: a", *remarks)) == (["q"], ["a"])
    with pytest.raises(_NotRegradable, match="no conversation is stored"):
        _conversation(_attempt(*remarks[:1]))


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("abc", "abd", "c"),
        ("abc", "ab", "c"),
        ("ab", "abc", ""),
        ("x", "y", "x"),
        ("", "a", ""),
        ("same", "same", ""),
    ],
)
def test_a_text_is_shown_from_where_it_differs(text: str, other: str, expected: str) -> None:
    assert regrade._first_difference(text, other) == expected


# -- forms of an answer ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reworded"),
    [
        ("It is so.", None),
        ("I don't know", "I do not know"),
        ("Can't and can't", "cannot and cannot"),
        ("donation", None),
        ("you're", "you are"),
    ],
)
def test_contractions_are_written_out(text: str, reworded: str | None) -> None:
    assert regrade._reword(text) == reworded


@pytest.mark.parametrize(
    ("text", "reordered"),
    [
        ("no list", None),
        ("- one", None),
        ("- one\n- one", None),
        ("- one\n- two", "- two\n- one"),
        ("a\n* one\nb\n  - two\nc", "a\n  - two\nb\n* one\nc"),
        ("- a\n- b\n• c", "• c\n- b\n- a"),
        ("-one\n-two", None),
    ],
)
def test_points_are_put_in_reverse_order(text: str, reordered: str | None) -> None:
    assert regrade._reorder(text) == reordered


def test_the_last_answer_alone_gets_another_form() -> None:
    attempt = _attempt("user: q", "agent: a", "user: r", "agent: b", "judge: x", said=HUMAN)
    changed = regrade._with_answer(attempt, str.upper)
    assert changed is not None
    assert [entry["text"] for entry in changed.transcript] == ["q", "a", "r", "B", "x"]
    assert changed.said == HUMAN[:1]
    assert attempt.transcript[3]["text"] == "b"
    assert regrade._with_answer(attempt, lambda _: None) is None
    assert regrade._with_answer(_attempt("user: q"), str.upper) is None


def test_every_form_keeps_the_answer() -> None:
    for name in ("padded", "reformatted"):
        form = regrade.VARIANTS[name](" an answer ")
        assert form is not None
        assert "an answer" in form
        assert form != " an answer "
    assert regrade.VARIANTS[AGAIN]("x") == "x"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([True, True, True, True], {AGAIN: True, "padded": True, "reformatted": True}),
        ([True, None, False], {AGAIN: True, "reformatted": False}),
        ([None], None),
    ],
)
def test_the_verdicts_on_every_form(
    monkeypatch: pytest.MonkeyPatch, verdicts: list[bool | None], expected: Any
) -> None:
    left = list(verdicts)

    async def judge(*_: object) -> Any:
        verdict = left.pop(0)
        now = None if verdict is None else SimpleNamespace(verdict=PASSED if verdict else FAILED)
        return SimpleNamespace(now=now)

    monkeypatch.setattr(regrade, "_judge_again", judge)
    nothing: Any = None
    attempt = _attempt(said=HUMAN)
    found = asyncio.run(regrade._check(attempt, {}, nothing, nothing, {("t", 1): False}))
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.verdicts == expected
        assert (found.id, found.passed_then, found.right) == ("t#1", True, False)
