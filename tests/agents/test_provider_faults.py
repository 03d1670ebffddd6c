"""What a provider does wrong is never the agent's failure, and never an attempt of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from passhat.agents import pacing
from passhat.agents.base import Meter, ProviderFault, Usage
from passhat.agents.pacing import Bucket
from passhat.agents.provider import ModelReply, Provider
from passhat.store import open_store

if TYPE_CHECKING:
    from tests.agents.conftest import Answer, Body, Refusal

Passhat = Callable[..., Any]
Serve = Callable[..., Any]
TASKS = ("run", "-s", "jsonl:tasks.jsonl")


def ended_as() -> Counter[tuple[int, str]]:
    with open_store() as store:
        rows = [row for run in store.runs() for block in store.rows(run.id) for row in block]
    return Counter((int(str(row[2])), str(row[3] or "")) for row in rows)


def storm(
    many: int, headers: dict[str, str], answer: Callable[..., Answer], refusal: Callable[..., Any]
) -> Callable[[Body], Answer | Refusal]:
    """Refuses so many times, then recovers."""
    left = [many]

    def script(_body: Body) -> Answer | Refusal:
        left[0] -= 1
        if left[0] >= 0:
            return refusal(429, headers, "slow down")  # type: ignore[no-any-return]
        return answer("yes")

    return script


@pytest.mark.parametrize(
    ("way", "kind", "seconds"),
    [
        # Time in which this process, and the server with it, stands still does not count.
        ("local", "openai", 3),
        ("local", "anthropic", 3),
        # The workers do not know when the server stands still, so the limit is longer.
        pytest.param("ray", "openai", 10, marks=pytest.mark.xdist_group("ray")),
    ],
    indirect=["way"],
)
@pytest.mark.usefixtures("questions", "way")
def test_a_storm_of_429_is_waited_out_off_the_agents_clock(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any, kind: str, seconds: int
) -> None:
    with serve(storm(2, {"retry-after": f"{seconds}.2"}, answer, refusal)) as (url, server):
        base = f"{url}/v1" if kind == "openai" else url
        ended = passhat(
            *(*TASKS, "-a", f"{kind}:small@{base}", "-n", "4", "--jobs", "2"),
            *("--set", f"step_timeout={seconds}", "--timeout", f"{seconds}.1"),
        )
    assert ended.code == 0
    assert ended_as() == {(1, ""): 20}
    assert server.refused == 2
    assert "2 retries" in ended.err


@pytest.mark.usefixtures("questions", "way")
def test_all_who_make_attempts_share_one_rate(
    passhat: Passhat, serve: Serve, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four calls at once and four more per second, whoever makes them: this process counts."""
    taken: list[float] = []
    times: list[float] = []
    take = Bucket.take

    def noted(bucket: Bucket, now: float) -> float:
        taken.append(now)
        return take(bucket, now)

    def script(_body: Body) -> Answer:
        times.append(time.monotonic())
        return answer("yes")  # type: ignore[no-any-return]

    monkeypatch.setattr(Bucket, "take", noted)
    with serve(script) as (url, _):
        command = (*TASKS, "-a", f"openai:small@{url}/v1", "-n", "2", "--jobs", "8")
        assert passhat(*command, "--set", "rate=4/s").code == 0
    assert (len(taken), len(times)) == (10, 10)
    # Never sooner, however late any of them comes: six of ten wait for a quarter of a second each.
    assert times[-1] - taken[0] > 1.49


@pytest.mark.usefixtures("questions")
def test_a_date_in_retry_after_is_understood(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any
) -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    with serve(storm(2, {"retry-after": when}, answer, refusal)) as (url, _):
        passhat(*TASKS, "-a", f"openai:small@{url}/v1", "-n", "1")
    assert ended_as() == {(1, ""): 5}


@pytest.mark.usefixtures("questions", "way")
def test_a_storm_that_never_ends_leaves_missing_attempts(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any
) -> None:
    with serve(storm(10**9, {"retry-after": "0"}, answer, refusal)) as (url, server):
        command = (*TASKS, "-a", f"openai:small@{url}/v1", "-n", "1", "--set", "retries=3")
        ended = passhat(*command)
        assert ended_as() == {(-1, "rate_limit"): 5}
        assert server.refused == 20
        assert "15 retries" in ended.err
        server.script = lambda _body: answer("yes")
        passhat(*command, "--only-missing")
    assert ended_as() == {(1, ""): 5}


@pytest.mark.usefixtures("questions")
def test_a_wait_of_an_hour_is_not_waited_for(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any
) -> None:
    with serve(storm(10**9, {"retry-after": "3600"}, answer, refusal)) as (url, _):
        passhat(*TASKS, "-a", f"openai:small@{url}/v1", "-n", "1", "--jobs", "1", "--task", "0")
    assert ended_as() == {(-1, "rate_limit"): 1}


@pytest.mark.parametrize(
    ("way", "word", "status", "why"),
    [
        ("local", "anthropic:small@{}", 500, "infrastructure"),
        ("local", "anthropic:small@{}", 529, "rate_limit"),
        # By the SDK that the workers of the other tests have loaded already.
        pytest.param(
            *("ray", "openai:small@{}/v1", 500, "infrastructure"),
            marks=pytest.mark.xdist_group("ray"),
        ),
    ],
    indirect=["way"],
)
@pytest.mark.usefixtures("questions", "way")
def test_a_broken_provider_leaves_missing_attempts(
    passhat: Passhat, serve: Serve, refusal: Any, word: str, status: int, why: str
) -> None:
    with serve(lambda _body: refusal(status)) as (url, _):
        passhat(*TASKS, "-a", word.format(url), "-n", "1", "--set", "retries=0", "--keep-going")
    assert ended_as() == {(-1, why): 5}


@pytest.mark.usefixtures("questions")
def test_an_address_without_a_server_is_refused_before_the_first_attempt(passhat: Passhat) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        agent = f"openai:small@http://{address}/v1"
        ended = passhat(*TASKS, "-a", agent, "-n", "1", "--set", "retries=0")
    assert ended.code == 2
    assert f"nothing answers at {address}" in ended.err
    assert "Traceback" not in ended.err
    assert ended_as() == {}


@pytest.mark.usefixtures("questions")
def test_a_server_that_hangs_up_leaves_missing_attempts(passhat: Passhat) -> None:
    """The port answers, so the run starts; every connection is closed without an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        word = f"openai:small@{url}"
        ended = passhat(*TASKS, "-a", word, "-n", "1", "--set", "retries=0", "--keep-going")
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert ended.code == 4
    assert ended_as() == {(-1, "infrastructure"): 5}


@pytest.mark.parametrize(
    ("way", "status", "code"),
    [
        ("local", 401, None),
        ("local", 403, None),
        ("local", 404, None),
        ("local", 429, "insufficient_quota"),
        pytest.param("ray", 401, None, marks=pytest.mark.xdist_group("ray")),
    ],
    indirect=["way"],
)
@pytest.mark.usefixtures("questions", "way")
def test_a_refused_key_or_model_stops_the_run_at_once(
    passhat: Passhat, serve: Serve, refusal: Any, status: int, code: str | None
) -> None:
    said = "not for you, sk-abcdefghijklmnop"
    with serve(lambda _body: refusal(status, message=said, code=code)) as (url, server):
        command = (*TASKS, "-a", f"openai:small@{url}/v1", "-n", "50", "--jobs", "3")
        ended = passhat(*command)
    assert ended.code == 4
    assert "not for you, [redacted]" in ended.err
    assert "Traceback" not in ended.err
    assert len(server.requests) <= 3
    assert set(ended_as()) == {(-1, "account")}


@pytest.mark.usefixtures("questions", "way")
def test_a_request_that_is_not_taken_is_the_set_up_at_first_and_the_agents_later(
    passhat: Passhat, serve: Serve, answer: Any, refusal: Any
) -> None:
    too_hot = refusal(400, message="temperature is too high")
    with serve(lambda _body: too_hot) as (url, server):
        ended = passhat(*TASKS, "-a", f"openai:small@{url}/v1", "-n", "1", "--jobs", "1")
        assert ended.code == 2
        assert "temperature is too high" in ended.err
        assert ended_as() == {}
        broken = refusal(400, message="the images of this request cannot be opened")
        server.script = lambda body: broken if "2" in str(body["messages"]) else answer("yes")
        passhat(*TASKS, "-a", f"openai:small@{url}/v1", "-n", "1", "--jobs", "1", "--seed", "3")
    assert ended_as() == {(1, ""): 4, (0, "agent_error"): 1}


@pytest.mark.usefixtures("questions")
def test_nonsense_from_the_server_is_not_the_agents_failure(passhat: Passhat, serve: Serve) -> None:
    with serve(lambda _body: None) as (url, server):
        server.answer = lambda _path, _body: (200, {}, b'{"surprise": true}')
        word = f"openai:small@{url}/v1"
        passhat(*TASKS, "-a", word, "-n", "1", "--set", "retries=0", "--keep-going")
    assert ended_as() == {(-1, "infrastructure"): 5}


@pytest.mark.usefixtures("questions")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_without_the_sdk_the_command_that_installs_it_is_named(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    ended = passhat(*TASKS, "-a", f"{kind}:small")
    assert ended.code == 2
    assert f"pip install 'passhat[{kind}]'" in ended.err


@pytest.mark.usefixtures("questions")
def test_mistakes_in_the_word_are_explained(passhat: Passhat) -> None:
    for word, said in (
        ("openai:small", "OPENAI_API_KEY"),
        ("openai:small@localhost:8000", "openai:MODEL@http://HOST:PORT/v1"),
        ("openai:small@http://127.0.0.1:1/v1?top_q=3", "Did you mean top_p?"),
        ("openai:small@http://127.0.0.1:1/v1?top_p=much", "should be a number"),
        ("openai:", "names no model"),
        ("openai:small@http://me:secret@127.0.0.1:1/v1", "keys belong into the environment"),
    ):
        ended = passhat(*TASKS, "-a", word)
        assert ended.code == 2
        assert said in ended.err
    ended = passhat(*TASKS, "-a", "python:json:dumps", "--set", "rate=often")
    assert (ended.code, "60/min" in ended.err) == (2, True)
    ended = passhat(*TASKS, "-a", "python:json:dumps", "--set", "rate=openai=60/min")
    assert (ended.code, "no such provider" in ended.err) == (2, True)


class _Time:
    """Goes on only while somebody sleeps, so that nothing comes late."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        end = self.now + seconds
        for _ in range(5):  # whoever else is about to sleep begins now, too
            await asyncio.sleep(0)
        self.now = max(self.now, end)


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> _Time:
    """The time that calls are paced by."""
    made = _Time()
    monkeypatch.setattr(pacing, "time", made)
    monkeypatch.setattr(pacing, "asyncio", made)
    return made


class _Paused:
    """A clock that remembers for how long it stood still."""

    def __init__(self, time: _Time) -> None:
        self._time = time
        self._since = self.paused = 0.0

    def pause(self) -> None:
        self._since = self._time.now

    def resume(self) -> None:
        self.paused += self._time.now - self._since


class _Status(Exception):
    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__("busy")
        self.status_code = status
        self.response = SimpleNamespace(headers=headers)
        self.body = None
        self.message = "busy"
        self.code = None


_SDK: Any = SimpleNamespace(APIStatusError=_Status, APIConnectionError=ConnectionError)


def test_one_attempt_that_is_asked_to_wait_makes_all_of_them_wait(calm: _Time) -> None:
    async def play() -> tuple[int, list[float], list[str]]:
        provider = Provider("openai", "here", _SDK)
        told = asyncio.Event()
        made: list[str] = []

        async def refused_once() -> tuple[ModelReply, Usage]:
            if not told.is_set():
                told.set()
                raise _Status(429, {"retry-after": "7"})
            made.append("first")
            return ModelReply("yes"), Usage(1, 0.0)

        async def other() -> tuple[ModelReply, Usage]:
            made.append("second")
            return ModelReply("yes"), Usage(1, 0.0)

        mine, theirs = Meter(), Meter()
        clocks = _Paused(calm), _Paused(calm)
        mine.use_clock(clocks[0])
        theirs.use_clock(clocks[1])
        first = asyncio.create_task(provider.call(refused_once, mine, Usage(), model="m"))
        await told.wait()
        await asyncio.sleep(0)
        await provider.call(other, theirs, Usage(), model="m")
        await first
        return mine.retries, [clock.paused for clock in clocks], made

    retries, paused, made = asyncio.run(play())
    assert retries == 1
    assert min(paused) >= 7
    assert sorted(made) == ["first", "second"]


def test_a_rate_spreads_calls_off_the_clock(calm: _Time) -> None:
    async def play() -> float:
        provider = Provider("openai", "here", _SDK)
        provider.limit(per_second=100)
        meter, clock = Meter(), _Paused(calm)
        meter.use_clock(clock)

        async def work() -> tuple[ModelReply, Usage]:
            return ModelReply("yes"), Usage(1, None)

        for _ in range(105):
            await provider.call(work, meter, Usage(), model="m")
        assert meter.usage == Usage(105, None)
        return clock.paused

    assert asyncio.run(play()) == pytest.approx(0.05)  # the last five, a hundredth each


def test_retries_that_are_used_up_say_so() -> None:
    async def busy() -> tuple[ModelReply, Usage]:
        raise _Status(429, {"retry-after": "0"})

    provider = Provider("openai", "here", _SDK, retries=2)
    meter = Meter()
    with pytest.raises(ProviderFault, match="given up after 2 retries; HTTP 429: busy"):
        asyncio.run(provider.call(busy, meter, Usage(), model="m"))
    assert meter.usage == Usage(0, 0.0)  # refused calls are known to have cost nothing


def test_a_call_that_is_given_up_leaves_the_use_unknown() -> None:
    async def play() -> Usage:
        provider, meter = Provider("openai", "here", _SDK), Meter()
        limit = asyncio.timeout(None)

        async def hangs() -> tuple[ModelReply, Usage]:
            limit.reschedule(0.0)
            await asyncio.Event().wait()
            raise AssertionError

        with pytest.raises(TimeoutError):
            async with limit:
                await provider.call(hangs, meter, Usage(10, 1.0), model="m")
        return meter.usage

    assert asyncio.run(play()) == Usage(None, None)


@pytest.mark.usefixtures("way")
def test_the_store_keeps_what_an_attempt_used(
    passhat: Passhat, serve: Serve, answer: Any, questions: Path
) -> None:
    del questions
    with serve(lambda _body: answer("yes", inputs=1_000, outputs=50)) as (url, server):
        passhat(
            *(*TASKS, "-a", f"openai:small@{url}/v1?max_output_tokens=77", "-n", "1"),
            *("--temperature", "0.5", "--set", "top_p=0.8"),
        )
        passhat(*TASKS, "-a", f"openai:unknown@{url}/v1", "-n", "1")
    sent = server.requests[0]
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"]) == (0.5, 0.8, 77)
    assert isinstance(sent["seed"], int)
    with open_store() as store:
        priced, unpriced = store.runs()
        rows = [row for block in store.rows(priced.id) for row in block]
        assert [(row[6], row[7]) for row in rows] == [(1050.0, pytest.approx(0.0012))] * 5
        rows = [row for block in store.rows(unpriced.id) for row in block]
        assert {(row[6], row[7]) for row in rows} == {(1050.0, None)}
        assert dict(store.protocol(priced.id).decoding) == {
            "base_url": f"{url}/v1",
            "max_output_tokens": 77,
            "temperature": 0.5,
            "top_p": 0.8,
        }
