"""Who has access, what may be written, and that transcripts stay data."""

from __future__ import annotations

import html
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import SECRET, Stored

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access, is_loopback

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture
def guarded(stored: Stored) -> Iterator[TestClient]:
    """As with ``--host 0.0.0.0``."""
    app = make_app(stored.place, Access("0.0.0.0", TOKEN, ["desk.example"]))
    with TestClient(app, base_url="http://192.0.2.7:8000", follow_redirects=False) as found:
        yield found


@pytest.mark.parametrize("path", ["/", "/runs.json", "/static/page.js", "/runs/x/live", "/nope"])
def test_nothing_without_the_token(guarded: TestClient, path: str) -> None:
    answer = guarded.get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
    assert guarded.get(f"{path}?token=wrong").status_code == 401
    assert guarded.post("/start", data={"csrf": ""}).status_code == 401


def test_the_token_opens_and_leaves_the_address(guarded: TestClient) -> None:
    assert (
        guarded.get("/runs.json", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    )
    answer = guarded.get(f"/runs?q=beta&token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs?q=beta"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert guarded.get("/runs?q=beta").status_code == 200
    elsewhere = guarded.get(f"//evil.example/x?token={TOKEN}", headers={"cookie": ""})
    assert not elsewhere.headers.get("location", "/").startswith("//")


def test_dashboards_on_two_ports_keep_their_own_cookies(stored: Stored) -> None:
    """A browser sends the cookies of 127.0.0.1 to each of its ports."""
    tokens = {8000: "of-the-first", 8001: "of-the-second"}
    jar: dict[str, str] = {}
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                TestClient(
                    make_app(stored.place, Access("127.0.0.1", token)),
                    base_url=f"http://127.0.0.1:{port}",
                    follow_redirects=False,
                )
            )
            for port, token in tokens.items()
        ]
        for client, token in zip(clients, tokens.values(), strict=True):
            jar |= client.get(f"/?token={token}").cookies
        header = "; ".join(f"{name}={value}" for name, value in jar.items())
        for client in clients:
            client.cookies.clear()
            assert client.get("/runs.json").status_code == 401
            assert client.get("/runs.json", headers={"cookie": header}).status_code == 200
        crossed = {"cookie": f"passhat-token-8000={tokens[8001]}"}
        assert clients[0].get("/runs.json", headers=crossed).status_code == 401


def test_a_crawl_without_the_token_reads_nothing(stored: Stored) -> None:
    """As an agent under evaluation would: every link that a signed-in browser sees."""
    app = make_app(stored.place, Access("127.0.0.1", TOKEN))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        pages = ["/", f"/runs/{stored.a}", f"/runs/{stored.a}/attempts"]
        pages += [f"/runs/{stored.a}/attempt/retail/011/1"]
        links = {
            link
            for page in pages
            for link in re.findall(
                r'(?:href|src)="(/[^"#]*)"', client.get(page, headers=bearer).text
            )
        }
        assert len(links) > 20
        for link in [*pages, *links]:
            answer = client.get(html.unescape(link))
            assert answer.status_code == 401, link
            assert answer.text.startswith("A token is required")


def test_a_ticket_signs_in_once(stored: Stored) -> None:
    access = Access("127.0.0.1", TOKEN)
    access.tickets.add("a-ticket")
    app = make_app(stored.place, access)
    with TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False) as client:
        bearer = {"authorization": "Bearer a-ticket"}
        assert client.get("/runs.json", headers=bearer).status_code == 401
        assert client.get("/?token=a-ticket").status_code == 303
        assert client.get("/runs.json").status_code == 200
        client.cookies.clear()
        assert client.get("/?token=a-ticket").status_code == 401


@pytest.mark.parametrize(
    ("bound", "host", "known"),
    [
        ("127.0.0.1", "127.0.0.1:8000", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "[::1]:8000", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "evil.example:8000", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "192.0.2.7", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "evil.example@127.0.0.1", False),
        ("0.0.0.0", "192.0.2.7:8000", True),
        ("0.0.0.0", "desk.example", True),
        ("0.0.0.0", "evil.example", False),
    ],
)
def test_names_that_are_not_ours(bound: str, host: str, known: bool) -> None:
    assert Access(bound, names=["desk.example"]).may_be_called(host) is known


def test_another_name_is_refused(client: TestClient) -> None:
    answer = client.get("/", headers={"host": "rebound.example"})
    assert answer.status_code == 400
    assert "--allow-host" in answer.text


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.0.2.7", "desk.example")))


def test_every_answer_is_strict(client: TestClient, stored: Stored) -> None:
    for path in ("/", f"/runs/{stored.a}", "/runs.json", "/static/page.css", "/nope"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/runs.json").headers["cache-control"] == "no-store"


def test_pages_hold_no_script_or_style_of_their_own(client: TestClient, stored: Stored) -> None:
    """What the policy forbids is not even tried; and what is hostile is text."""
    client.get(f"/runs/{stored.a}.csv")
    for path in (
        "/",
        f"/runs/{stored.a}",
        f"/runs/{stored.a}/attempts",
        f"/runs/{stored.a}/attempt/retail/011/1",
        f"/compare?run={stored.a}&run={stored.b}",
        f"/runs/{stored.a}/task/retail/011",
        "/runs?q=<script>alert(1)</script>",
    ):
        text = client.get(path).text
        assert " style=" not in text
        assert "<style" not in text
        assert "<script>" not in text
        assert "onerror='" not in text
        assert "<b>bold" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "http://" not in text.replace("http://127.0.0.1", "")
    page = client.get(f"/runs/{stored.a}/attempt/retail/011/1").text
    assert "&lt;script&gt;window.hacked" in page
    assert "␛[2J" in page
    assert "{{ 7 * 7 }}" in page


@pytest.fixture
def allowed(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TestClient]:
    """Over both kinds of stores for tests that ask for both, else over the plain one."""
    monkeypatch.chdir(tmp_path)
    stored = request.getfixturevalue("both" if "both" in request.fixturenames else "stored")
    app = make_app(stored.place, Access(csrf="right"), allow_run=True)
    with TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False) as found:
        yield found


FORM = {"agent": "demo:careful", "suite": "nothing/here", "attempts": "1"}


def test_nothing_is_started_unless_it_is_allowed(client: TestClient, stored: Stored) -> None:
    for path in ("/start", f"/runs/{stored.a}/regrade"):
        answer = client.post(path, data=FORM | {"csrf": client.app.state.dashboard.access.csrf})  # type: ignore[attr-defined]
        assert answer.status_code == 403
        assert "--allow-run" in answer.text
    assert "/start" not in client.get("/").text


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({}, {}),
        ({"csrf": "wrong"}, {}),
        ({"csrf": "right"}, {"origin": "http://evil.example"}),
        ({"csrf": "right"}, {"origin": "null"}),
        ({"csrf": "right"}, {"sec-fetch-site": "cross-site"}),
        ({"csrf": "right", "agent": "x" * 100_000}, {}),
    ],
)
def test_a_form_of_somebody_else(
    allowed: TestClient, fields: dict[str, str], headers: dict[str, str]
) -> None:
    answer = allowed.post("/start", data=FORM | fields, headers=headers)
    assert answer.status_code == 403
    assert allowed.get("/start.json").json() == {"commands": []}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_our_own_form_starts_a_command(allowed: TestClient, both: Stored) -> None:
    for fields in ({"attempts": "x"}, {"agent": " "}):
        assert allowed.post("/start", data=FORM | {"csrf": "right"} | fields).status_code == 400
    origin = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    answer = allowed.post("/start", data=FORM | {"csrf": "right", "name": "--help"}, headers=origin)
    assert (answer.status_code, answer.headers["location"]) == (303, "/start")
    (started,) = allowed.app.state.dashboard.commands.all()  # type: ignore[attr-defined]
    assert SECRET not in " ".join(started.process.args)
    assert started.process.wait(300) == 2
    assert "nothing/here" in started.tail
    assert started.line.startswith(f"passhat run {shlex.quote(f'--store={both.path}')}")
    assert "--name=--help" in started.line
    page = allowed.get("/start").text
    assert "ended with exit code 2" in page
    assert SECRET not in page


def test_judging_again_is_a_command_of_its_own(allowed: TestClient, stored: Stored) -> None:
    assert allowed.post(f"/runs/{stored.a}/regrade", data={"csrf": "wrong"}).status_code == 403
    assert allowed.post("/runs/none/regrade", data={"csrf": "right"}).status_code == 404
    answer = allowed.post(f"/runs/{stored.a}/regrade", data={"csrf": "right"})
    assert answer.status_code == 303
    (started,) = allowed.app.state.dashboard.commands.all()  # type: ignore[attr-defined]
    assert started.line == f"passhat regrade --store={stored.path} {stored.a}"
    started.process.wait(300)
