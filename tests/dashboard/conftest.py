"""A store with made-up runs, the dashboard over it in this process, and the real one beside it."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_store, without_password
from passhat.store.rows import CallRecords
from passhat.suites.base import Judgement, Task
from postgres_cluster import Cluster

if TYPE_CHECKING:
    from playwright.sync_api import APIResponse, Page

HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "\x1b[2J\x1b]0;title\x07 \u202egnp.exe {{ 7 * 7 }} </pre></li>"
)
TASKS, ATTEMPTS = 12, 4
_MODEL = {"name": "openai:m", "model": "m-1", "stop": "stop", "input_tokens": 1234, "cost": 0.25}
_MODEL |= {"retries": ["HTTP 503: busy"], "request": {"prompt": HOSTILE}, "reply": ["said this"]}
_TOOL = {"name": "get_order", "role": "tool", "request": {"order": "R-1"}, "error": "no such order"}
CALLS = CallRecords(1, 0, None, 0, 0, 0, json.dumps([_MODEL, _TOOL]).encode())


def write_run(
    store: Store, agent: str, skill: float, *, suite: str = "desk/retail", seed: int = 1
) -> str:
    """A finished run whose attempts pass with a chance that depends on task and agent."""
    draw = random.Random(f"{agent}/{seed}")
    tasks = [
        Task(f"retail/{i:03d}", "?", {"band": "hard" if i % 3 else "easy"}) for i in range(TASKS)
    ]
    protocol = Protocol(suite=suite, suite_fingerprint=f"fingerprint of {seed}")
    record = RunRecord(agent, protocol, tasks, name="" if seed == 1 else f"seed {seed}")
    store.begin(record, ATTEMPTS)
    wanted = [(task.id, number) for number in range(1, ATTEMPTS + 1) for task in tasks]
    store.claim(record.id, wanted)
    for task, number in wanted:
        store.finish(record.id, [_attempt(draw, task, number, skill)])
    return record.id


def _attempt(draw: random.Random, task: str, number: int, skill: float) -> AttemptRecord:
    passed = draw.random() < skill * (1 - int(task[-3:]) / 2 / TASKS)
    judgement = Judgement(Verdict.PASSED)
    if not passed:
        judgement = Judgement(Verdict.FAILED, "wrong_state", f"orders.R-1 is wrong {HOSTILE}")
    if task == "retail/005" and number == 2:
        judgement = Judgement(Verdict.MISSING, "user_error", "the user's line went dead")
    return AttemptRecord(
        task,
        number,
        judgement,
        seed=draw.randrange(10**6),
        seconds=round(draw.uniform(1, 9), 3),
        steps=draw.randrange(3, 20),
        cost=round(draw.uniform(0.01, 0.2), 5),
        calls=CALLS if (task, number) == ("retail/003", 1) else None,
        transcript=[
            {"role": "user", "text": f"User: {HOSTILE}"},
            {
                "role": "agent",
                "text": '<json>{"name": "get_order", "arguments": {"order": "R-1"}}</json>',
            },
            {
                "role": "user",
                "text": 'Tool result: {"status": "</pre><script>window.hacked = 3</script>"}',
            },
            {
                "role": "agent",
                "text": '<json>{"name": "respond", "arguments": {"content": "Done."}}</json>',
            },
        ],
    )


class Stored:
    """Where the store is, and the ids of its runs."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.path = without_password(place)
        with open_store(place) as store:
            self.a = write_run(store, "alpha <b>bold</b>", 0.8)
            self.b = write_run(store, "beta", 1.2)
            self.c = write_run(store, "beta", 1.1, seed=2)


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return Stored(str(tmp_path_factory.mktemp("dashboard") / "store.db"))


SECRET = "a-password-that-nobody-may-see"


@pytest.fixture(scope="session")
def stored_in_postgres(postgres_server: Cluster) -> Stored:
    """The same in a database; its server asks for no password, and takes any."""
    address = postgres_server.make_database(f"d{secrets.token_hex(6)}")
    return Stored(address.replace("@", f":{SECRET}@", 1))


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest) -> Stored:
    """Every test that asks for this is made on both kinds of stores."""
    name = "stored" if request.param == "sqlite" else "stored_in_postgres"
    found: Stored = request.getfixturevalue(name)
    return found


@pytest.fixture
def client(stored: Stored) -> Iterator[TestClient]:
    """The dashboard, called without a network."""
    app = make_app(stored.place, Access())
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


TOKENS: dict[str, str] = {}
"""Of the dashboards that are served now, by address."""


@contextmanager
def served(store: str, *options: str, folder: Path | None = None) -> Iterator[str]:
    """``passhat view`` in a process of its own; yields its address without the token."""
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", "view", "--store", store, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    address = ""
    try:
        printed = process.stdout.readline().rpartition(" ")[2].strip()
        address, _, TOKENS[printed.partition("?")[0]] = printed.partition("?token=")
        yield address
    finally:
        TOKENS.pop(address, None)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        assert "Traceback" not in said


@pytest.fixture(scope="session")
def view(stored: Stored) -> Iterator[str]:
    """The address of a real dashboard over the store, without a slash at the end."""
    with served(stored.place) as address:
        yield address.rstrip("/")


@pytest.fixture
def browser_page(browser_page: Callable[..., Any]) -> Callable[..., Any]:
    """Signed in at every dashboard that is served."""

    def open_(address: str, **options: Any) -> Any:
        cookies = [
            {"name": f"passhat-token-{urlsplit(url).port}", "value": token, "url": url}
            | {"httpOnly": True, "sameSite": "Lax"}
            for url, token in TOKENS.items()
        ]
        return browser_page(address, cookies=cookies, **options)

    return open_


Served = Callable[..., str]


def until(page: Page, condition: str) -> None:
    """Wait for what a page comes to by itself.

    Not with ``wait_for_function``: its second look is an ``eval``, which our pages forbid.
    """
    page.evaluate(
        "() => new Promise((done, fail) => {"
        f" setTimeout(() => fail(new Error(`never: {condition}`)), 60000);"
        f" const look = () => ({condition}) ? done() : setTimeout(look, 20);"
        " look(); })"
    )


def asked(page: Page, address: str) -> APIResponse:
    """What is at an address, beside the page.

    A connection that the server closes at the same moment is made again.
    """
    return page.request.get(address, max_retries=5, timeout=60_000)
