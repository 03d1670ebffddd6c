"""Models as users and judges outside of a run, and which models a suite's rubrics name."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import Any

import pytest

from passhat.agents.base import Agent, AttemptInfo, Session
from passhat.errors import InvalidValue
from passhat.runner import users
from passhat.runner.users import RubricAgent, _UserModel, attach_judges, with_user
from passhat.stats.outcomes import Verdict
from passhat.suites.base import Turn
from passhat.suites.jsonl import QuestionSuite


class _Model(Agent):
    """Notes what its sessions are started with, and gives its answers in turn."""

    def __init__(self, name: str = "m", answers: tuple[str, ...] = ("PASS",)) -> None:
        self.__dict__["name"] = name
        self.answers = list(answers)
        self.started: list[AttemptInfo] = []

    async def session(self, attempt: AttemptInfo) -> Session:
        self.started.append(attempt)
        return _Talk(self)


class _Talk(Session):
    def __init__(self, model: _Model) -> None:
        self.model = model

    async def answer(self, _turn: Turn) -> str:
        return self.model.answers.pop(0)


@pytest.mark.parametrize("attempt", [None, "an episode in a notebook"])
def test_an_episode_outside_of_a_run_belongs_to_no_attempt(attempt: object) -> None:
    model = _Model(answers=("hello", "PASS", "PASS"))
    session = asyncio.run(_UserModel(model).start(attempt))
    assert asyncio.run(session.answer(Turn("?"))) == "hello"
    judge: Any = RubricAgent(model)
    judgement = asyncio.run(judge(attempt, "?", "so", "be short", 2))
    assert (judgement.verdict, judgement.expected) == (Verdict.PASSED, "be short")
    # The judge is asked twice, with a seed for each.
    assert [(info.task, info.number, info.seed) for info in model.started] == [
        ("", 1, 0),
        ("", 1, 0),
        ("", 1, 1),
    ]


def test_a_user_has_the_attempt_but_not_its_temperature() -> None:
    model = _Model()
    info = AttemptInfo("t", 3, 7, temperature=0.5, top_p=0.9)
    asyncio.run(_UserModel(model).start(info))
    (started,) = model.started
    assert (started.task, started.number, started.seed) == ("t", 3, 7)
    assert (started.temperature, started.top_p) == (None, None)
    assert started.meter is info.meter


@pytest.mark.parametrize(
    ("decoding", "name"),
    [
        ({}, "m"),
        ({"base_url": "http://x"}, "m"),
        ({"a": "base_url"}, "m a=base_url"),
        ({"top_p": 1, "base_url": "http://x", "max": 3}, "m max=3 top_p=1"),
    ],
)
def test_settings_of_a_user_are_in_its_name(decoding: dict[str, Any], name: str) -> None:
    model = _Model()
    model.decoding = MappingProxyType(decoding)
    assert _UserModel(model).name == name


def test_the_suite_gets_the_model_as_its_user() -> None:
    class Suite:
        def with_user(self, user: Any) -> Any:
            return user

    suite: Any = Suite()
    played: Any = with_user(suite, _Model("clerk"))
    assert isinstance(played, _UserModel)
    assert played.name == "clerk"


# -- judges of a suite -----------------------------------------------------------------------------


class _Questions(QuestionSuite):
    def __init__(self, *words: str) -> None:
        self.words = words

    @property
    def judge_words(self) -> Any:  # type: ignore[override]
        return self.words


@pytest.mark.parametrize(
    ("words", "models", "judges"),
    [
        ((), [], {}),
        (("a",), ["a"], {"a": "a"}),
        (("a + b",), ["a", "b"], {"a + b": "a + b"}),
        (("b", "a +  c"), ["b", "a", "c"], {"b": "b", "a +  c": "a + c"}),
        (("a+b",), ["a+b"], {"a+b": "a+b"}),
    ],
)
def test_judges_are_loaded_by_their_words(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    models: list[str],
    judges: dict[str, str],
) -> None:
    monkeypatch.setattr(users, "load_agent", _Model)
    suite = _Questions(*words)
    assert [model.name for model in attach_judges(suite)] == models
    if words:
        assert {word: judge.name for word, judge in suite.judges.items()} == judges  # type: ignore[attr-defined]


def test_a_suite_without_questions_has_no_judges() -> None:
    suite: Any = object()
    assert attach_judges(suite) == []


@pytest.mark.parametrize("word", ["a + a", "b + a + a", "a + b + a"])
def test_a_panel_of_one_model_twice_is_refused(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr(users, "load_agent", _Model)
    with pytest.raises(InvalidValue) as caught:
        attach_judges(_Questions(word))
    assert caught.value.message == (
        f"the panel of judges {word!r} names a twice, which is one judge."
    )
