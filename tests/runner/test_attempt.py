"""What an attempt's calls say about its end, and how they are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat.agents.base import Agent, AttemptInfo, ModelCall, Session
from passhat.errors import RunStopped
from passhat.runner import attempt
from passhat.runner.attempt import call_records, explain_failure
from passhat.runner.redaction import Redactor
from passhat.runner.run import Progress
from passhat.runner.run_spec import RunSpec, run
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn

WRONG = Judgement(Verdict.FAILED, "wrong_answer", "4, not 5")


def _call(stop: str = "stop", **parts: Any) -> ModelCall:
    return ModelCall(parts.pop("name", "openai:m"), stop=stop, **parts)


@pytest.mark.parametrize(
    ("calls", "why", "detail"),
    [
        ([_call("length", output_tokens=50, limit=64)], "truncated", "cut at the token limit (50"),
        ([_call("length", limit=64)], "truncated", "cut at the token limit (64 tokens); 4, not 5"),
        ([_call("length")], "truncated", "cut at the token limit; 4, not 5"),
        (
            [_call("refused", stop_raw="safety")],
            "refused",
            "refused by the model or its provider (safety); 4, not 5",
        ),
        ([_call("filtered")], "filtered", "filtered by the model or its provider (filtered); 4"),
        (
            [_call("other", stop_raw="odd")],
            "unknown_failure",
            "the answer ended as 'odd', a reason that passhat does not know; 4, not 5",
        ),
        ([_call("other")], "wrong_answer", "4, not 5"),
        ([_call("stop")], "wrong_answer", "4, not 5"),
        ([_call("stop", empty="empty")], "wrong_answer", "the answer is empty; 4, not 5"),
        (
            [_call("stop", empty="thinking only", reasoning_tokens=7)],
            "wrong_answer",
            "the answer is thinking only (7 tokens); 4, not 5",
        ),
        (
            [_call("stop", empty="thinking only")],
            "wrong_answer",
            "the answer is thinking only; 4, not 5",
        ),
        ([_call("stop", empty="no valid call")], "format_error", "the model wrote no valid tool"),
        # the last answer of the agent counts, and nothing else
        ([_call("length"), _call("stop")], "wrong_answer", "4, not 5"),
        ([_call("stop"), _call("length")], "truncated", "cut at the token limit; 4, not 5"),
        ([_call("stop"), _call("length", role="tool")], "wrong_answer", "4, not 5"),
        ([_call("stop"), _call("")], "wrong_answer", "4, not 5"),
        ([], "wrong_answer", "4, not 5"),
    ],
)
def test_the_last_answer_says_why_it_failed(calls: list[ModelCall], why: str, detail: str) -> None:
    judgement = explain_failure(WRONG, calls)
    assert judgement.why == why
    assert judgement.detail.startswith(detail)


def test_a_pass_and_an_end_of_its_own_stay_as_they_are() -> None:
    cut = [_call("length")]
    for judgement in (
        Judgement(Verdict.PASSED),
        Judgement(Verdict.MISSING, "rate_limit"),
        Judgement(Verdict.FAILED, "exception", "boom"),
    ):
        assert explain_failure(judgement, cut) == judgement
    bare = explain_failure(Judgement(Verdict.FAILED, "wrong_answer"), cut)
    assert bare.detail == "cut at the token limit"


def test_calls_are_counted_and_kept() -> None:
    calls = [
        _call("length", output_tokens=50, limit=64, model="m-2"),
        _call("length", limit=40, model="m-1", fingerprint="f"),
        _call("refused", empty="empty"),
        _call("filtered", model="m-2"),
        _call("stop", request={"key": "sk-abcdefghijklmnopqrstuvwxyz0123456789"}),
        _call("", model="m-3"),
        _call("length", role="user", model="m-4"),
    ]
    records = call_records(calls, Redactor({"API_KEY": "sk-abcdefghijklmnopqrstuvwxyz0123456789"}))
    assert records is not None
    assert (records.answers, records.cut, records.cut_at) == (5, 2, 40)
    assert (records.refused, records.filtered, records.empty) == (1, 1, 1)
    assert records.served == (("m-1", "f"), ("m-2", ""), ("m-3", ""))
    assert b"sk-abc" not in records.body
    assert len(json.loads(records.body)) == 7
    assert call_records([], Redactor()) is None
    without_cuts = call_records([_call("stop")], Redactor())
    assert without_cuts is not None
    assert without_cuts.cut_at is None


def test_a_server_that_names_a_model_for_every_answer_fills_no_store() -> None:
    records = call_records([_call(model=f"m-{n:03}" + "x" * 999) for n in range(99)], Redactor())
    assert records is not None
    assert len(records.served) == 20
    assert all(len(name) < 999 for name, _ in records.served)


def test_progress_adds_up() -> None:
    progress = Progress(total=9)
    for verdict, parts in (
        (Verdict.PASSED, {"tokens": 10.0, "cost": 0.5}),
        (Verdict.FAILED, {"retries": 2, "retry_reason": "429", "leak": "t#2"}),
        (Verdict.FAILED, {"retries": 1, "cost": 0.0}),
        (Verdict.MISSING, {"tokens": 5.0, "retry_reason": "not counted"}),
    ):
        progress.count(AttemptRecord("t", 1, Judgement(verdict), **parts))
    assert (progress.done, progress.passed, progress.failed, progress.missing) == (4, 1, 2, 1)
    assert (progress.retries, progress.last_retry, progress.leaks) == (3, "429", 1)
    assert (progress.tokens, progress.cost, progress.costed) == (15.0, 0.5, 2)
    progress.dropped = 2
    assert progress.results == 6


class _Asks(Suite):
    """One question, whose episode may be none at all."""

    tasks = (Task("a", "2 + 2?"),)
    judge_fingerprint = "1"

    def __init__(self, episode: Any = None) -> None:
        self._episode = episode

    def episode(self, task: Task, seed: int) -> Any:
        del task, seed
        return _Answers() if self._episode is None else self._episode


class _Answers(Episode):
    def open(self) -> Turn:
        return Turn("2 + 2?")

    def reply(self, answer: str) -> None:
        self.answer = answer

    def judge(self) -> Judgement:
        return Judgement(Verdict.PASSED if self.answer == "4" else Verdict.FAILED)


class _Starts(Agent):
    """An agent that cannot be reached so many times."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error

    async def session(self, attempt: AttemptInfo) -> Session:
        del attempt
        self.failures -= 1
        if self.failures >= 0:
            raise self.error
        return _Session()


class _Session(Session):
    async def answer(self, turn: Turn) -> str:
        del turn
        return "4"


def _record(agent: Agent, suite: Suite, place: Path) -> AttemptRecord:
    records: list[AttemptRecord] = []
    spec = RunSpec(agent=agent, suite=suite, attempts=1, store=str(place / "store.db"))
    run(spec, progress=lambda record, _: records.append(record))
    (record,) = records
    return record


@pytest.mark.parametrize(
    ("failures", "error", "why", "retries"),
    [
        (0, OSError("away"), "", 0),
        (1, OSError("away"), "", 1),
        (2, ConnectionRefusedError("away"), "", 2),
        (3, OSError("away"), "communication_error", 2),
        (1, ValueError("wrong"), "agent_error", 0),
    ],
)
def test_an_agent_that_cannot_be_reached_is_tried_three_times(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    error: Exception,
    why: str,
    retries: int,
) -> None:
    monkeypatch.setattr(attempt, "_START_PAUSE", 0.0)
    record = _record(_Starts(failures, error), _Asks(), tmp_path)
    assert (record.judgement.why, record.retries) == (why, retries)
    assert record.judgement.verdict is (Verdict.FAILED if why else Verdict.PASSED)
    if why:
        assert str(error) in record.judgement.detail


@pytest.mark.parametrize("episode", ["text", 42, _Asks])
def test_what_is_no_episode_stops_the_run_in_one_line(tmp_path: Path, episode: Any) -> None:
    with pytest.raises(RunStopped, match="episode"):
        _record(_Starts(0, OSError()), _Asks(episode), tmp_path)
