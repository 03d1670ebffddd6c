"""A dead, slow or lying agent ends its own attempts, in the right category, and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from passhat.agents import load_agent
from passhat.runner import run_attempts
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.runner.time_limits import Clock, Watch
from passhat.store import AttemptRecord, open_store

Serving = Callable[[Callable[[str], Any]], str]
Answer = Callable[[str], Any]

_LARGE = 10 * 1024 * 1024


def card(url: str, **changed: object) -> dict[str, object]:
    interface = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0", "url": url}
    known: dict[str, object] = {
        "name": "hostile",
        "description": "x",
        "version": "1",
        "capabilities": {"streaming": False},
        "supportedInterfaces": [interface],
    }
    return known | changed


def hostile(answer: Answer, **changed: object) -> Callable[[str], Starlette]:
    """An application with a card and one way to answer every message."""

    def make(url: str) -> Starlette:
        async def show_card(_request: Request) -> JSONResponse:
            return JSONResponse(card(url, **changed))

        async def rpc(request: Request) -> Response:
            found = answer((await request.json())["id"])
            made: Response = await found if asyncio.iscoroutine(found) else found
            return made

        return Starlette(
            routes=[
                Route("/.well-known/agent-card.json", show_card),
                Route("/", rpc, methods=["POST"]),
            ]
        )

    return make


def message(text: str, context_id: str | None) -> Answer:
    said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    if context_id is not None:
        said["contextId"] = context_id
    return lambda asked: JSONResponse({"jsonrpc": "2.0", "id": asked, "result": {"message": said}})


async def _half_a_stream() -> AsyncIterator[bytes]:
    yield b'data: {"jsonrpc": "2.0", "result": {"task": {"id": "t", "contextId": "c", '
    raise ConnectionResetError("gone")


async def _endless_stream() -> AsyncIterator[bytes]:
    while True:
        yield b": still thinking\n\n" * 4096
        await asyncio.sleep(0)


async def _hangs(_asked: str) -> Response:
    await asyncio.sleep(60)
    return Response()


def _stream(body: Callable[[], AsyncIterator[bytes]]) -> Answer:
    return lambda _asked: StreamingResponse(body(), media_type="text/event-stream")


def attempted(
    url: str,
    folder: Path,
    *,
    n: int = 2,
    step_seconds: float = 60,
    meanwhile: Callable[[list[AttemptRecord]], Awaitable[None]] | None = None,
) -> list[AttemptRecord]:
    (folder / "t.jsonl").write_text(json.dumps({"id": "t", "prompt": "yes?", "answer": "yes"}))
    made: list[AttemptRecord] = []
    plan = RunSpec(
        suite=f"jsonl:{folder / 't.jsonl'}",
        agent=f"a2a:{url}",
        attempts=n,
        jobs=n,
        step_seconds=step_seconds,
        keep_going=True,
    ).plan()
    with open_store(str(folder / "store.db")) as store:

        async def whole() -> None:
            beside = asyncio.ensure_future(meanwhile(made)) if meanwhile is not None else None
            await run_attempts(plan, store, Stop(), lambda record, _: made.append(record))
            if beside is not None:
                beside.cancel()

        asyncio.run(whole())
    return made


@pytest.mark.parametrize(
    ("answer", "streams", "category", "words"),
    [
        (_hangs, False, "timeout", "no answer within 0.5 s"),
        (_stream(_half_a_stream), True, "communication_error", "cannot be reached"),
        (_stream(_endless_stream), True, "format_error", "4,194,304 bytes"),
        (message("x" * _LARGE, "c"), False, "format_error", "4,194,304 bytes"),
        (lambda _: JSONResponse(["what"]), False, "format_error", "not A2A"),
        (lambda _: PlainTextResponse("<html>"), False, "format_error", "not A2A"),
        (lambda _: JSONResponse({"result": {"task": 7}}), False, "format_error", "not A2A"),
        (lambda _: JSONResponse({"result": {}}), False, "format_error", ""),
        (
            lambda _: JSONResponse({"error": {"code": -32603, "message": "out of order"}}),
            False,
            "agent_error",
            "out of order",
        ),
        (lambda _: Response(status_code=500), False, "agent_error", "HTTP 500"),
        (lambda _: Response(status_code=503), False, "communication_error", "HTTP 503, 3 times"),
        (lambda _: RedirectResponse("http://evil.example/"), False, "agent_error", "evil.example"),
        (lambda _: Response(status_code=522), False, "communication_error", "HTTP 522, 3 times"),
        (lambda _: Response(status_code=401), False, "unsupported", "HTTP 401"),
        (lambda _: Response(status_code=402), False, "unsupported", "HTTP 402"),
        (message(" ", "c"), False, "format_error", "no text"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_a_hostile_agent_fails_its_own_attempt(
    answer: Answer, streams: bool, category: str, words: str, serving: Serving, tmp_path: Path
) -> None:
    url = serving(hostile(answer, capabilities={"streaming": streams}))
    made = attempted(url, tmp_path, n=1, step_seconds=0.5 if answer is _hangs else 60)
    assert [one.judgement.why for one in made] == [category], made[0].judgement
    assert words in made[0].judgement.detail


def test_a_large_reply_is_left_unread(serving: Serving, tmp_path: Path) -> None:
    sent = []

    async def megabytes() -> AsyncIterator[bytes]:
        for count in range(200):
            sent.append(count)
            yield b"x" * 1024 * 1024
            await asyncio.sleep(0.001)  # so that the server can learn that nobody reads on

    (one,) = attempted(serving(hostile(lambda _: StreamingResponse(megabytes()))), tmp_path, n=1)
    assert one.judgement.why == "format_error"
    assert len(sent) < 100  # what lies in the buffers between us, not what was on offer


def test_one_context_for_all_attempts_is_a_leak(serving: Serving, tmp_path: Path) -> None:
    made = attempted(serving(hostile(message("yes", "always"))), tmp_path, n=4)
    assert sorted(one.judgement.why for one in made) == ["", *["agent_error"] * 3]
    assert "not fresh" in max(one.judgement.detail for one in made)


def test_a_single_answer_needs_no_context_id(serving: Serving, tmp_path: Path) -> None:
    """It is optional in the protocol; every attempt of one question is one message."""
    made = attempted(serving(hostile(message("yes", None))), tmp_path, n=2)
    assert [one.judgement.why for one in made] == ["", ""]


def test_a_conversation_needs_a_context_id(serving: Serving, passhat: Any, tmp_path: Path) -> None:
    words = '<json>{"name": "respond", "arguments": {"content": "May I have your name?"}}</json>'
    ended = passhat(
        *("run", "-a", f"a2a:{serving(hostile(message(words, None)))}", "-s", "orderdesk/retail"),
        *("-n", 1, "--task", 0, "--store", tmp_path / "store.db", "--verbose"),
    )
    assert "agent_error: the replies have no context id" in ended.err


@pytest.mark.parametrize("code", [-32601, -32004])
def test_an_agent_that_offers_streams_and_knows_none_is_asked_without(
    code: int, serving: Serving, tmp_path: Path
) -> None:
    calls: list[str] = []

    def answer(asked: str) -> Any:
        calls.append(asked)
        if len(calls) == 1:  # the card offers streams, so that this was SendStreamingMessage
            error = {"code": code, "message": "not known here"}
            return JSONResponse({"jsonrpc": "2.0", "id": asked, "error": error})
        return message("yes", f"c{len(calls)}")(asked)

    made = attempted(serving(hostile(answer, capabilities={"streaming": True})), tmp_path, n=1)
    assert [one.judgement.why for one in made] == [""]
    assert len(calls) == 2


def test_a_busy_agent_is_waited_for_as_long_as_it_says(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    waits: list[float] = []
    sleep = asyncio.sleep

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    def answer(asked: str) -> Any:
        calls.append(asked)
        if len(calls) < 3:
            return Response(status_code=429, headers={"retry-after": "7" if calls[1:] else "9999"})
        return message("yes", "c")(asked)

    monkeypatch.setattr("passhat.agents.a2a.asyncio.sleep", wait)
    made = attempted(serving(hostile(answer)), tmp_path, n=1)
    assert [one.judgement.why for one in made] == [""]
    assert [seconds for seconds in waits if seconds > 5] == [60.0, 7.0]


def test_an_answer_in_another_conversation_is_an_error(
    serving: Serving, passhat: Any, tmp_path: Path
) -> None:
    words = '<json>{"name": "respond", "arguments": {"content": "May I have your name?"}}</json>'
    url = serving(hostile(lambda asked: message(words, asked)(asked)))  # a new id every time
    store = tmp_path / "store.db"
    ended = passhat(
        *("run", "-a", f"a2a:{url}", "-s", "orderdesk/retail", "-n", 1, "--task", 0),
        *("--store", store, "--verbose"),
    )
    assert "agent_error: the agent answered in another conversation" in ended.err


def test_an_agent_that_dies_during_the_run_is_unreachable(tmp_path: Path) -> None:
    """The card was read; then the agent is gone: attempts fail by name, the run goes on."""

    async def whole() -> list[AttemptRecord]:
        from passhat.runner.serving import Listening, open_socket

        sock = open_socket("127.0.0.1", 0)
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        agent = load_agent(f"a2a:{url}")
        async with Listening(hostile(message("yes", "c"))(url), sock):
            await agent.check()
        (tmp_path / "t.jsonl").write_text(json.dumps({"id": "t", "prompt": "?", "answer": "yes"}))
        plan = RunSpec(suite=f"jsonl:{tmp_path / 't.jsonl'}", agent=agent, attempts=2).plan()
        made: list[AttemptRecord] = []
        with open_store(str(tmp_path / "store.db")) as store:
            await run_attempts(plan, store, Stop(), lambda record, _: made.append(record))
        return made

    assert [one.judgement.why for one in asyncio.run(whole())] == ["communication_error"] * 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"supportedInterfaces": []}, "names no address"),
        ({"supportedInterfaces": "what"}, "not an agent card"),
        (
            {"supportedInterfaces": [{"protocolBinding": "GRPC", "url": "grpc.example:50051"}]},
            "offers no JSONRPC",
        ),
        (
            {"supportedInterfaces": [{"protocolBinding": "HTTP+JSON", "url": "http://x.example"}]},
            "offers no JSONRPC",
        ),
        (
            {
                "supportedInterfaces": [
                    {"protocolBinding": "JSONRPC", "url": "http://evil.example/"}
                ]
            },
            "sends us to 'http://evil.example/'",
        ),
    ],
)
def test_a_wrong_card_ends_the_run_before_it_begins(
    changed: dict[str, object], words: str, serving: Serving, passhat: Any, tmp_path: Path
) -> None:
    url = serving(hostile(message("yes", "c"), **changed))
    store = tmp_path / "store.db"
    ended = passhat("run", "-a", f"a2a:{url}", "-s", "orderdesk/retail", "-n", 1, "--store", store)
    assert ended.code == 2
    assert words in ended.err
    # An agent that answers is not asked for: the hint is about its card.
    assert "Is the agent running?" not in ended.err
    with open_store(str(store)) as kept:
        assert kept.runs() == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_card_behind_a_key_is_not_an_agent_that_is_down(
    status: int, serving: Serving, passhat: Any, tmp_path: Path
) -> None:
    async def closed(_request: Request) -> Response:
        return Response(status_code=status)

    url = serving(lambda _: Starlette(routes=[Route("/.well-known/agent-card.json", closed)]))
    ended = passhat(
        "run", "-a", f"a2a:{url}", "-s", "orderdesk/retail", "--store", tmp_path / "store.db"
    )
    assert ended.code == 2
    assert f"HTTP {status}: the agent asks for a key" in ended.err
    assert "Is the agent running?" not in ended.err


def test_a_card_that_redirects_elsewhere_is_refused(
    serving: Serving, passhat: Any, tmp_path: Path
) -> None:
    async def away(_request: Request) -> RedirectResponse:
        return RedirectResponse("http://evil.example/card")

    url = serving(lambda _: Starlette(routes=[Route("/.well-known/agent-card.json", away)]))
    store = tmp_path / "store.db"
    ended = passhat("run", "-a", f"a2a:{url}", "-s", "orderdesk/retail", "--store", store)
    assert ended.code == 2
    assert "redirects are not followed" in ended.err


def test_nobody_there(passhat: Any, tmp_path: Path) -> None:
    ended = passhat(
        *("run", "-a", "a2a:http://127.0.0.1:9", "-s", "orderdesk/retail"),
        *("--store", tmp_path / "store.db"),
    )
    assert ended.code == 2
    assert "Is the agent running?" in ended.err


@pytest.mark.parametrize("word", ["a2a:", "a2a:localhost:9210", "a2a:ftp://x"])
def test_an_address_that_is_none(word: str, passhat: Any) -> None:
    ended = passhat("run", "-a", word, "-s", "orderdesk/retail")
    assert ended.code == 2
    assert "a2a:http://localhost:9210" in ended.err


# The first half of the conversations with these agents is hostile, the second half honest: what the
# first half does must not reach the second.


def _event(result: object) -> bytes:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': '1', 'result': result})}\n\n".encode()


def _status(state: str, task: str = "t", context: str = "c") -> bytes:
    return _event(
        {"statusUpdate": {"taskId": task, "contextId": context, "status": {"state": state}}}
    )


def _artifact(text: str, *, append: bool = False, task: str = "t", context: str = "c") -> bytes:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    change = {"taskId": task, "contextId": context, "artifact": artifact, "append": append}
    return _event({"artifactUpdate": change})


async def _trickle(_context: str) -> AsyncIterator[bytes]:
    for byte in _artifact("yes" * 10_000):
        yield bytes([byte])
        await asyncio.sleep(0.05)


async def _endless_states(_context: str) -> AsyncIterator[bytes]:
    while True:
        yield _status("TASK_STATE_WORKING")
        await asyncio.sleep(0.01)


async def _huge_artifacts(context: str) -> AsyncIterator[bytes]:
    while True:
        yield _artifact("x" * 500_000, append=True, context=context)
        await asyncio.sleep(0)


async def _another_task(context: str) -> AsyncIterator[bytes]:
    yield _status("TASK_STATE_WORKING", context=context)
    yield _artifact("yes", task="of-somebody-else", context=context)
    yield _status("TASK_STATE_COMPLETED", context=context)


async def _another_context(context: str) -> AsyncIterator[bytes]:
    yield _status("TASK_STATE_WORKING", context=context)
    yield _artifact("yes", context="of-somebody-else")
    yield _status("TASK_STATE_COMPLETED", context=context)


async def _duplicates(context: str) -> AsyncIterator[bytes]:
    for _ in range(3):
        yield _status("TASK_STATE_WORKING", context=context)
        yield _artifact("no", context=context)
    for _ in range(50):
        yield _status("TASK_STATE_COMPLETED", context=context)


def _streamed(body: Callable[[str], AsyncIterator[bytes]]) -> Callable[[str, str], Response]:
    return lambda _asked, context: StreamingResponse(body(context), media_type="text/event-stream")


_BOMB = gzip.compress(bytes(32 * 1024 * 1024), compresslevel=1)


def _gzip_bomb(_asked: str, _context: str) -> Response:
    return Response(_BOMB, headers={"content-encoding": "gzip"}, media_type="application/json")


class HalfHostile:
    """An agent that is hostile in its first conversations and honest in the others."""

    def __init__(self, answer: Callable[[str, str], Response], hostile: int = 2) -> None:
        self.answer, self.left, self.cards, self.elsewhere = answer, hostile, 0, 0
        self.pieces: Counter[str] = Counter()
        """Pieces of its streams that were taken, by hostile conversation."""

    async def counted(self, asked: str, stream: Any) -> AsyncIterator[bytes]:
        async for piece in stream:
            yield piece
            self.pieces[asked] += 1

    def application(self, url: str) -> Starlette:
        async def show_card(_request: Request) -> JSONResponse:
            self.cards += 1
            # The second reading would send the client to another port.
            other = url if self.cards == 1 else "http://127.0.0.1:1/"
            return JSONResponse(card(other, capabilities={"streaming": True}))

        async def rpc(request: Request) -> Response:
            asked = (await request.json())["id"]
            if self.left:
                self.left -= 1
                made = self.answer(asked, f"hostile-{asked}")
                if isinstance(made, StreamingResponse):
                    made.body_iterator = self.counted(asked, made.body_iterator)
                return made

            async def honest() -> AsyncIterator[bytes]:
                yield _artifact("yes", context=f"honest-{asked}")
                yield _status("TASK_STATE_COMPLETED", context=f"honest-{asked}")

            return StreamingResponse(honest(), media_type="text/event-stream")

        async def away(_request: Request) -> Response:
            self.elsewhere += 1
            return JSONResponse({})

        return Starlette(
            routes=[
                Route("/.well-known/agent-card.json", show_card),
                Route("/elsewhere", away, methods=["GET", "POST"]),
                Route("/", rpc, methods=["POST"]),
            ]
        )


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[Clock]:
    """The clocks of all attempts that are made."""
    noted: list[Clock] = []
    make = Watch.clock

    def note(watch: Watch) -> Clock:
        noted.append(make(watch))
        return noted[-1]

    monkeypatch.setattr(Watch, "clock", note)
    return noted


@pytest.mark.parametrize(
    ("answer", "category", "words"),
    [
        (_streamed(_trickle), "timeout", "no answer within 60 s"),
        (_streamed(_endless_states), "timeout", "no answer within 60 s"),
        (_streamed(_another_task), "agent_error", "of-somebody-else"),
        (_streamed(_another_context), "agent_error", "of-somebody-else"),
        (_streamed(_huge_artifacts), "format_error", "4,194,304 bytes"),
        (lambda *_: RedirectResponse("/elsewhere", 307), "agent_error", "/elsewhere"),
        (lambda *_: RedirectResponse("/elsewhere", 302), "agent_error", "/elsewhere"),
        (_gzip_bomb, "format_error", "compressed"),
        (_streamed(_duplicates), "wrong_answer", ""),
    ],
    ids=[
        *("trickle", "endless-states", "wrong-task", "wrong-context", "huge-artifacts"),
        *("redirect-307", "redirect-302", "gzip-bomb", "duplicate-events"),
    ],
)
def test_a_hostile_conversation_fails_its_own_attempt_only(
    answer: Callable[[str, str], Response],
    category: str,
    words: str,
    serving: Serving,
    tmp_path: Path,
    clocks: list[Clock],
) -> None:
    agent = HalfHostile(answer)

    async def end_time(made: list[AttemptRecord]) -> None:
        """The time is over once the honest have answered, and the others are at it."""
        while len(made) < 2 or sorted(agent.pieces.values()) < [5, 5]:
            await asyncio.sleep(0.01)
        for clock in clocks:
            clock.due = 0.0 if clock.due < math.inf else math.inf

    meanwhile = end_time if category == "timeout" else None
    made = attempted(serving(agent.application), tmp_path, n=4, meanwhile=meanwhile)
    ended = sorted((one.judgement.why, one.judgement.detail) for one in made)
    assert [why for why, _ in ended] == ["", "", category, category], ended
    assert words in ended[-1][1]
    assert agent.elsewhere == 0
    assert agent.cards == 1  # the card of the first reading holds for the whole run


def test_a_card_that_changes_to_another_host_ends_the_next_run(
    serving: Serving, tmp_path: Path, passhat: Any
) -> None:
    cards = 0

    def make(url: str) -> Starlette:
        async def show(_request: Request) -> JSONResponse:
            nonlocal cards
            cards += 1
            return JSONResponse(card(url if cards == 1 else "http://evil.example/"))

        async def rpc(request: Request) -> Response:
            asked = (await request.json())["id"]
            made: Response = message("yes", asked)(asked)
            return made

        return Starlette(
            routes=[Route("/.well-known/agent-card.json", show), Route("/", rpc, methods=["POST"])]
        )

    url = serving(make)
    assert [one.judgement.why for one in attempted(url, tmp_path)] == ["", ""]
    ended = passhat(
        *("run", "-a", f"a2a:{url}", "-s", f"jsonl:{tmp_path / 't.jsonl'}", "-n", 3),
        *("--store", tmp_path / "store.db"),
    )
    assert ended.code == 2
    assert "sends us to 'http://evil.example/'" in ended.err


def test_a_task_that_is_asked_for_and_comes_back_as_another(
    serving: Serving, tmp_path: Path
) -> None:
    def task(asked: str, name: str, state: str) -> dict[str, object]:
        known = {"id": name, "contextId": f"c-{asked}", "status": {"state": state}}
        return {"jsonrpc": "2.0", "id": asked, "result": known}

    def make(url: str) -> Starlette:
        async def show(_request: Request) -> JSONResponse:
            return JSONResponse(card(url))

        async def rpc(request: Request) -> Response:
            body = await request.json()
            if body["method"] == "GetTask":
                return JSONResponse(task(body["id"], "another", "TASK_STATE_COMPLETED"))
            first = task(body["id"], "mine", "TASK_STATE_WORKING")
            return JSONResponse({**first, "result": {"task": first["result"]}})

        return Starlette(
            routes=[Route("/.well-known/agent-card.json", show), Route("/", rpc, methods=["POST"])]
        )

    (one,) = attempted(serving(make), tmp_path, n=1)
    assert one.judgement.why == "agent_error"
    assert "another" in one.judgement.detail
