"""Whatever an agent's code does, its attempt fails with a category and the run goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from passhat.agents.base import Agent, AttemptInfo, ProviderFault, Session
from passhat.agents.function import FunctionAgent
from passhat.errors import RunStopped
from passhat.runner import time_limits
from passhat.runner.boundary import list_stuck_attempts
from passhat.runner.redaction import LONGEST_TEXT, Redactor
from passhat.runner.run_spec import RunSpec, arun, run
from passhat.stats.outcomes import MissingReason, Verdict
from passhat.store import AttemptRecord
from passhat.suites import load_suite
from passhat.suites.base import Turn


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def made(
    agent: Callable[..., Any] | str, folder: Path, told: list[str] | None = None, **more: Any
) -> list[AttemptRecord]:
    """Two attempts at one task, with the agent's function."""
    from passhat.agents.function import agent_from_object

    (folder / "t.jsonl").write_text('{"id": "t", "prompt": "yes?", "answer": "yes"}\n')
    records: list[AttemptRecord] = []
    spec = RunSpec(
        agent=agent if isinstance(agent, str) else agent_from_object(agent, "mine"),
        suite=load_suite(f"jsonl:{folder / 't.jsonl'}"),
        attempts=more.pop("attempts", 2),
        store=str(folder / "store.db"),
        **more,
    )
    heard = [] if told is None else told
    result = run(spec, progress=lambda one, _: records.append(one), tell=heard.append)
    assert (result.left, result.unscored) == (0, 0)
    return records


@pytest.mark.parametrize("swallows", [False, True])
def test_a_coroutine_that_blocks_the_loop_is_pointed_out_and_ends_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swallows: bool
) -> None:
    """It blocks until it is ended, in its first step and after it waited once."""
    monkeypatch.setattr(time_limits, "_NOTICE_SECONDS", 0.1)
    ended: list[str] = []

    async def blocking(prompt: str, attempt: AttemptInfo) -> str:
        del prompt
        if attempt.number == 1:
            return "yes"
        if attempt.number == 3:
            await asyncio.sleep(0)
        try:
            while True:
                time.sleep(0.001)
        except BaseException as error:
            ended.append(type(error).__name__)
            if swallows:
                return "yes"
            raise

    told: list[str] = []
    records = made(blocking, tmp_path, told, attempts=3, jobs=2, step_seconds=0.3)
    reasons = {record.number: record.judgement for record in records}
    assert reasons.pop(1).verdict is Verdict.PASSED
    for judgement in reasons.values():
        assert judgement.why == "timeout"
        assert judgement.detail == ("wall clock: no answer within 0.3 s; it blocked the event loop")
    assert ended == ["LoopBlocked", "LoopBlocked"]
    (notice,) = [text for text in told if "blocks the event loop" in text]
    assert "attempts run one at a time; make it a plain function" in notice


def test_an_agent_that_changes_what_it_was_given_changes_no_other_attempt(tmp_path: Path) -> None:
    task = {
        "id": "t",
        "prompt": "yes?",
        "answer": "yes",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "earlier"}]}],
        "tools": [{"name": "look", "parameters": {"properties": {}}, "result": "yes"}],
        "response_format": {"type": "json_object"},
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(task))
    given: list[str] = []

    class Changing(Agent):
        name = "changing"

        async def session(self, attempt: AttemptInfo) -> Session:
            del attempt
            return ChangingSession()

    class ChangingSession(Session):
        async def answer(self, turn: Turn) -> str:
            given.append(repr((turn.messages, turn.tools, turn.response_format)))
            for data in (*turn.messages, turn.tools[0].parameters, turn.response_format):
                assert isinstance(data, dict)
                for inner in data.values():
                    if isinstance(inner, list):
                        inner.append("changed")
                data["note"] = "changed"
            return "yes"

    suite = load_suite(f"jsonl:{tmp_path / 't.jsonl'}")
    run(RunSpec(agent=Changing(), suite=suite, attempts=3, store=str(tmp_path / "store.db")))
    assert len(given) == 3
    assert len(set(given)) == 1


def raising(error: BaseException) -> Callable[[str], str]:
    def agent(_prompt: str) -> str:
        raise error

    return agent


def raising_async(error: BaseException) -> Callable[[str], Any]:
    async def agent(_prompt: str) -> str:
        raise error

    return agent


@pytest.mark.parametrize("way", [raising, raising_async])
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(0),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        StopIteration("over"),
        StopAsyncIteration(),
        GeneratorExit(),
        Unspeakable(),
        BaseException("base"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_exception_fails_the_attempt_alone(
    tmp_path: Path, way: Callable[[BaseException], Any], error: BaseException
) -> None:
    records = made(way(error), tmp_path)
    assert [(one.judgement.verdict, one.judgement.why) for one in records] == [
        (Verdict.FAILED, "exception")
    ] * 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [("yes \ud800", "format_error"), ("y" * (LONGEST_TEXT + 1), "format_error"), ("yes", "")],
    ids=["surrogate", "long", "fine"],
)
def test_unusable_text_fails_and_is_stored_in_part(tmp_path: Path, answer: str, why: str) -> None:
    records = made(lambda _prompt: answer, tmp_path)
    assert [one.judgement.why for one in records] == [why] * 2
    kept = records[0].transcript[-1]["text"]
    assert len(kept) <= LONGEST_TEXT + 100
    kept.encode()
    if len(answer) > LONGEST_TEXT:
        assert "characters left out" in kept


def change_folder(_prompt: str) -> str:
    os.chdir("/")
    return "yes"


def close_output(_prompt: str) -> str:
    sys.stdout.close()
    return "yes"


@pytest.mark.parametrize("agent", [change_folder, close_output])
def test_the_process_is_put_back_as_it_was(
    tmp_path: Path, agent: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", (tmp_path / "out").open("w"))
    before = Path.cwd()
    records = made(agent, tmp_path, jobs=1)
    assert [one.judgement.why for one in records] == ["exception"] * 2
    assert Path.cwd() == before
    sys.stdout.write("still heard")
    sys.stdout.close()
    assert (tmp_path / "out").read_text() == "still heard"


def test_signal_handlers_are_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def agent(_prompt: str) -> str:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return "yes"

    records = made(agent, tmp_path, jobs=1)
    assert "SIGTERM" in records[0].judgement.detail
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_agent_that_ignores_its_cancellation_is_left_behind_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "_AGAIN_SECONDS", 0.05)
    over = asyncio.Event()

    async def agent(_prompt: str) -> str:
        while True:
            with suppress(asyncio.CancelledError):
                await over.wait()

    told: list[str] = []
    records = made(agent, tmp_path, told, step_seconds=0.1)
    assert [one.judgement.why for one in records] == ["timeout"] * 2
    assert any("t#1" in line and "--isolate" in line for line in told)


def test_no_attempt_begins_once_the_account_has_stopped_the_run(tmp_path: Path) -> None:
    """Also not by a worker whose agent swallowed its cancellation."""
    begun = 0

    async def agent(_prompt: str) -> str:
        nonlocal begun
        begun += 1
        if begun == 2:
            raise ProviderFault(MissingReason.ACCOUNT, "no credit left")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "yes"

    with pytest.raises(RunStopped, match="no credit left"):
        made(agent, tmp_path, jobs=2, attempts=8)
    assert begun == 2


def test_cancellations_of_its_own_are_left_to_the_agent(tmp_path: Path) -> None:
    """asyncio.timeout cancels its task again and again; that is no end of the attempt."""

    async def agent(_prompt: str) -> str:
        for _ in range(3):
            with suppress(TimeoutError):
                async with asyncio.timeout(0.001):
                    await asyncio.sleep(60)
        return "yes"

    assert [one.judgement.why for one in made(agent, tmp_path)] == ["", ""]


def test_an_agent_that_cancels_its_own_task_fails_alone(tmp_path: Path) -> None:
    async def agent(_prompt: str) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)
        return "yes"

    assert [one.judgement.why for one in made(agent, tmp_path)] == ["exception"] * 2


def test_a_thread_that_never_returns_is_named(tmp_path: Path) -> None:
    over = threading.Event()

    def agent(_prompt: str) -> str:
        over.wait(600)
        return "yes"

    told: list[str] = []
    try:
        records = made(agent, tmp_path, told, step_seconds=0.1)
        assert [one.judgement.why for one in records] == ["timeout"] * 2
        assert any("t#1" in line and "t#2" in line for line in told)
    finally:
        over.set()


AGENTS = """
import os, sys, time

def hangs(prompt):
    while True:
        time.sleep(60)

def grows(prompt):
    return "yes" * len(bytearray(8 << 30))

def exits(prompt):
    os._exit(3)

def prints(prompt, attempt):
    print("noise")
    assert (attempt.task, type(attempt.seed)) == ("t", int)
    os.chdir("/")
    return "yes"

def raises(prompt):
    raise SystemExit("enough")
"""


@pytest.mark.parametrize(
    ("name", "why", "limit"),
    [
        ("hangs", "timeout", 3.0),
        ("grows", "exception", 300.0),
        ("exits", "agent_error", 300.0),
        ("prints", "", 300.0),
        ("raises", "exception", 300.0),
    ],
)
def test_an_isolated_agent_is_killed_and_keeps_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str, limit: float
) -> None:
    (tmp_path / "isolated_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("isolated_agents", None)
    told: list[str] = []
    records = made(
        f"python:isolated_agents:{name}",
        tmp_path,
        told,
        step_seconds=limit,
        isolate=True,
        agent_memory=4096,
    )
    assert [one.judgement.why for one in records] == [why] * 2
    assert not any("did not stop" in line for line in told)


def test_a_thread_that_outlives_its_answer_is_no_agent_that_did_not_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine an answer is handed over, and its thread ends only later."""
    seen, waiting = threading.Event(), []

    def answer(_prompt: str) -> str:
        return "yes"

    async def ask() -> list[str]:
        loop = asyncio.get_running_loop()
        hand_over = loop.call_soon_threadsafe

        def hand_over_and_stay(*arguments: Any, **keywords: Any) -> asyncio.Handle:
            waiting.append(threading.current_thread())
            handle = hand_over(*arguments, **keywords)
            seen.wait(300)
            return handle

        monkeypatch.setattr(loop, "call_soon_threadsafe", hand_over_and_stay)
        session = await FunctionAgent(answer, "yes").session(AttemptInfo("t", 1, 0))
        assert await session.answer(Turn("?")) == "yes"
        monkeypatch.undo()
        return list_stuck_attempts()

    try:
        assert asyncio.run(ask()) == []
        assert [thread.is_alive() for thread in waiting] == [True]
    finally:
        seen.set()


def test_a_large_answer_does_not_stall_others() -> None:
    """The event loop goes on while a large text is searched for secrets."""
    gaps: list[float] = []

    async def whole() -> None:
        async def watch() -> None:
            last = time.monotonic()
            while True:
                await asyncio.sleep(0.005)
                gaps.append(time.monotonic() - last)
                last = time.monotonic()

        watching = asyncio.create_task(watch())
        redact = Redactor({"API_KEY": "correct-horse-battery"})
        await asyncio.to_thread(redact.shorten, "sk-a " * 4_000_000)
        watching.cancel()

    asyncio.run(whole())
    assert len(gaps) > 3  # a single stall would leave one


def test_a_secret_across_a_cut_is_removed_whole() -> None:
    secret = "sk-" + "a1" * 50
    for place in range(-120, 20, 7):
        text = "x " * 500 + " " * (60 + place) + secret + " " + "y " * 2_000
        kept = Redactor().shorten(text, longest=2_200)
        assert "a1a1" not in kept
    for cut in range(0, 130, 10):
        detail = "z" * cut + " " + secret
        assert "a1a1" not in Redactor().shorten(detail, longest=500)


@pytest.mark.parametrize("keep", [slice(None, 80), slice(-80, None)])
def test_a_message_that_quotes_a_part_of_a_secret_does_not_show_it(keep: slice) -> None:
    secret = "".join(map(chr, range(48, 123))).replace("/", "")
    redact = Redactor({"SOME_KEY": secret, "KEY_FILE": "/home/someone/key"})
    quoted = ("x" * 40 + secret + "y" * 40)[keep]
    assert redact.quote(f"answered {quoted!r}").count("[redacted]") == 1
    assert not any(part in redact.quote(quoted) for part in (secret[:8], secret[-8:]))
    assert redact.quote("no such file: /home/someone/else") == "no such file: /home/someone/else"


def test_the_first_characters_of_a_key_in_a_wrong_answer_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Kq" + "".join(map(chr, range(97, 123))) * 4
    monkeypatch.setenv("SOME_API_KEY", secret)
    (record,) = made(lambda _prompt: "x" * 40 + secret, tmp_path, attempts=1)
    assert record.judgement.why == "wrong_answer"
    assert secret[:8] not in record.judgement.detail


def test_values_of_secret_variables_and_shapes() -> None:
    redact = Redactor({"MY_TOKEN": "correct-horse", "HOME": "/home/someone"})
    assert redact("use correct-horse in /home/someone") == "use [redacted] in /home/someone"
    assert redact("Bearer abc.def-12345") == "Bearer [redacted]"
    assert redact("api_key= 123456789 ok") == "api_key= [redacted] ok"
    assert redact("API-KEY:123456789") == "API-KEY:[redacted]"
    assert redact("AKIAABCDEFGHIJKLMNOP") == "[redacted]"
    assert redact("risk-abcdefghijklmnop") == "risk-abcdefghijklmnop"
    assert redact("İ SK-abcdefghijklmnop") == "İ [redacted]"
    assert redact("task-sk") == "task-sk"


def test_it_runs_where_a_loop_is_running(tmp_path: Path) -> None:
    async def notebook() -> list[AttemptRecord]:
        return made(lambda _prompt: "yes", tmp_path)

    assert len(asyncio.run(notebook())) == 2
    assert asyncio.iscoroutinefunction(arun)
