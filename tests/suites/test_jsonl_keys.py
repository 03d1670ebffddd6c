"""What a task in a file may have beside prompt and answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import ReadError
from passhat.runner.attempt import maybe_await
from passhat.stats.outcomes import Verdict
from passhat.suites import Judgement, Suite, load_suite
from passhat.suites.jsonl import suite_from_tasks

Passhat = Callable[..., Any]


def _suite(folder: Path, *lines: dict[str, object]) -> Suite:
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return load_suite(f"jsonl:{path}")


def _judged(suite: Suite, *answers: str) -> list[Judgement]:
    async def play() -> list[Judgement]:
        judgements = []
        for answer in answers:
            episode: Any = suite.episode(suite.tasks[0], 0)
            episode.open()
            episode.reply(answer)
            judgements.append(await maybe_await(episode.judge()))
        return judgements

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("key", "near"), [("promt", "prompt"), ("anwser", "answer"), ("Grader", "grader")]
)
def test_an_unknown_key_names_the_nearest_one(tmp_path: Path, key: str, near: str) -> None:
    with pytest.raises(ReadError, match=rf"line 1: has the unknown key '{key}'.*'{near}'"):
        _suite(tmp_path, {"id": "a", "prompt": "x", key: "y"})


def test_choices_are_listed_and_the_letter_is_taken(tmp_path: Path) -> None:
    line: dict[str, Any] = {
        "id": "a",
        "prompt": "Capital?",
        "choices": ["Rome", "Paris", "Bern"],
        "answer": "Paris",
    }
    suite = _suite(tmp_path, line)
    assert "B) Paris" in suite.tasks[0].prompt
    found = _judged(suite, "B", "The answer is (B).", "paris", "A", "I do not know")
    assert [int(one.verdict) for one in found] == [1, 1, 1, 0, 0]
    assert found[3].detail == "choice: A"
    with pytest.raises(ReadError, match="none of the choices"):
        _suite(tmp_path, {**line, "answer": "Madrid"})


def test_several_graders_have_weights(tmp_path: Path) -> None:
    graders = [
        {"grader": "contains", "answer": "8", "weight": 3},
        {"grader": "regex", "answer": "^ok", "weight": 1},
    ]
    line = {"id": "a", "prompt": "x", "graders": graders, "pass_at": 0.75}
    both, most, least = _judged(_suite(tmp_path, line), "ok 8", "8", "ok")
    assert [int(one.verdict) for one in (both, most, least)] == [1, 1, 0]
    assert least.detail == "0.25 of 0.75 needed: contains failed, regex passed"


def test_a_grader_says_what_it_took(tmp_path: Path) -> None:
    line = {"id": "a", "prompt": "x", "answer": 9, "grader": "numeric"}
    (found,) = _judged(_suite(tmp_path, line), "3 + 5 is 8")
    assert found.detail == "last number: 8"


def test_system_messages_images_and_tools_reach_the_agent(tmp_path: Path) -> None:
    line: dict[str, Any] = {
        "id": "a",
        "prompt": "And now?",
        "answer": "42",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],
        "images": ["https://example.test/cat.png"],
        "tools": [{"name": "weigh", "parameters": {"type": "object"}, "result": {"kg": 42}}],
    }
    suite = _suite(tmp_path, line)
    episode: Any = suite.episode(suite.tasks[0], 0)
    turn = episode.open()
    assert (turn.system, turn.said, turn.images) == ("Be brief.", "And now?", tuple(line["images"]))
    assert [tool.name for tool in turn.tools] == ["weigh"]
    assert "Hi" in turn.text
    given = episode.reply('<json>{"name": "weigh", "arguments": {}}</json>')
    assert given.result == '{"kg":42}'
    assert episode.reply('<json>{"name": "respond", "arguments": {"content": "42"}}</json>') is None
    assert int(episode.judge().verdict) == 1
    assert suite.fingerprint != _suite(tmp_path, {**line, "system": "Be long."}).fingerprint


def test_calls_of_a_one_call_suite_are_foreseen_exactly(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _suite(tmp_path, *[dict[str, object](id=name, prompt="x", answer="1") for name in "ab"])
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "python:json:dumps", "-n", "4")
    assert "8 calls" in ended.err


def test_a_rubric_is_judged_by_a_model_and_its_calls_are_recorded(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from passhat.store import open_store
    from passhat.store.labels import load_votes

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rubric_judge.py").write_text(
        "from passhat.agents.base import ModelCall\n"
        "def judge(prompt, attempt):\n"
        "    attempt.meter.record(ModelCall('judge', role=attempt.meter.role))\n"
        "    if 'odd' in prompt:\n"
        "        return 'PASS' if attempt.seed % 2 else 'FAIL'\n"
        "    return 'Fine. FAIL' if 'rude' in prompt.split('## Rubric')[0] else 'Good.\\nPASS'\n"
        "def answer(prompt, attempt):\n"
        "    return 'rude' if 'be rude' in prompt else 'kind'\n"
    )
    rubric = {"rubric": "Is it kind?", "judge": "python:rubric_judge:judge", "repeats": 3}
    _suite(
        tmp_path,
        {"id": "a", "prompt": "hello", **rubric},
        {"id": "b", "prompt": "be rude", **rubric},
        {"id": "c", "prompt": "odd", **rubric},
    )
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "python:rubric_judge:answer", "-n", "1")
    assert "the judge is a model (python:rubric_judge:judge)" in ended.err
    with open_store() as store:
        (run,) = store.runs()
        good, bad = (store.attempt(run.id, task, 1) for task in ("a", "b"))
        assert good is not None
        assert bad is not None
        assert (int(good.verdict), int(bad.verdict)) == (1, 0)
        assert "0 of 3 said pass" in bad.detail
        assert [call["role"] for call in store.calls(run.id, "a", 1)] == ["judge"] * 4
        assert [call.get("votes") for call in store.calls(run.id, "b", 1)][-1] == [False] * 3
        votes = load_votes(store._queries, store._key(run.id))
        assert sorted(len(set(one.votes)) for one in votes) == [1, 1, 2]
    full = " ".join(passhat("report", "latest", "--full").out.split())
    assert "it disagreed with itself on 1 of 3 judgements (33%)" in full
    assert passhat("report", "latest", "-o", "report.html").code == 0
    assert "disagreed with itself on 1 of 3" in Path("report.html").read_text()
    assert "0 of 3 votes to pass" in passhat("show", "latest", "b#1", "--calls").out


@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        ({"answer": ""}, "exact would fail every attempt", "where silence is right"),
        ({"answer": "  "}, "exact would fail every attempt", ""),
        ({"answer": "", "grader": "contains"}, "contains would pass every attempt", ""),
        ({"answer": "", "grader": "regex"}, "regex would pass every attempt", ""),
        ({"answer": ["4", "four"]}, "is a list", r'"answer": "^\\s*(4|four)\\s*$"'),
        ({"answer": True}, "is true or false", '"answer": "true"'),
        ({"answer": {"a": 1}, "grader": "contains"}, "is an object", '"grader": "json"'),
        ({"answer": "A", "choices": []}, "choices is empty", ""),
        ({"answer": "A", "graders": []}, "graders is empty", ""),
        ({"answer": "A", "choices": ["x"] * 27}, "at most 26 choices", ""),
        ({"answer": "{bad", "grader": "json"}, "should hold JSON, and does not", ""),
        ({"answer": "4", "grader": "json"}, "may be a JSON text or the value 4", r'"\"4\""'),
        ({"grader": "json"}, "json would fail every attempt", '"answer": "null"'),
        ({"rubric": " ", "judge": "openai:m"}, "the rubric is empty", ""),
        ({"graders": [{"grader": "exact", "answer": ""}]}, "exact would fail", ""),
        ({"graders": [{"grader": "exact", "answer": "4"}], "pass_at": 7}, "at most 1, not 7", ""),
    ],
)
def test_an_expected_answer_that_decides_nothing_is_refused(
    keys: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(ReadError, match=message) as caught:
        suite_from_tasks([{"id": "a", "prompt": "2 + 2?", **keys}])
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [('{"a": 1}', '{"a":1}', '{"a":2}'), ("yes", '"yes"', "1"), ('"4"', '"4"', "4")],
)
def test_json_in_a_text_is_the_expected_value(expected: str, right: str, wrong: str) -> None:
    suite = suite_from_tasks([{"id": "a", "prompt": "?", "answer": expected, "grader": "json"}])
    verdicts = _judged(suite, right, wrong)
    assert verdicts[0].verdict is Verdict.PASSED
    assert verdicts[1].verdict is Verdict.FAILED
    assert verdicts[1].expected != wrong  # shown beside it
