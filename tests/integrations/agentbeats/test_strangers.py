"""Addresses that strangers name, and how much they may ask for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from passhat.agents.a2a import A2AAgent
from passhat.errors import InvalidValue
from passhat.integrations.agentbeats.assessments import BadRequest, Battle, Rules, read_request
from passhat.integrations.agentbeats.battles import BackendReports
from passhat.integrations.agentbeats.strangers import (
    AllowedHosts,
    Callers,
    Caps,
    CheckedTransport,
)

Serving = Callable[[Callable[[str], Any]], str]

HOSTILE = [
    "http://evil.example/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[::169.254.169.254]/",
    "http://[fd00:ec2::254]/",
    "http://0.0.0.0:9210/",
    "http://[::]:9210/",
    "http://224.0.0.1/",
    "http://10.0.0.7/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.2/",
    "http://localhost./",
    "http://localhost.evil.example/",
    "http://localhost@evil.example/",
    "http://evil.example@localhost/",
    "http://user:secret@localhost/",
    "http://evil.example#@localhost/",
    "http://localhost:80#@evil.example/",
    "http://localhost\\@evil.example/",
    "http://evil.example\\@localhost/",
    "http://localhost/\r\nX-Injected: yes",
    "http://localhost\r\n.evil.example/",
    "http://local\thost/",
    "http://localhost /",
    "http://localhost/\x00",
    "http://ⓛocalhost/",
    "http://localhost。evil.example/",
    "http://%6c%6f%63alhost/",
    "http://localhost:99999/",
    "http://localhost:-1/",
    "http://[::1/",
    "http:///path",
    "http:localhost",
    "//localhost/",
    "file:///etc/passwd",
    "ftp://localhost/",
    "gopher://localhost:6379/_FLUSHALL",
    "unix:///var/run/docker.sock",
    "javascript:alert(1)",
    "http://localhost/?next=http://evil.example",
    "",
    " ",
]


def _client(hosts: AllowedHosts) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=CheckedTransport(hosts), trust_env=False, timeout=60)


def request_for(url: str) -> str:
    return json.dumps({"participants": {"agent": url}, "config": {"k": 1}})


@pytest.mark.parametrize("url", HOSTILE, ids=ascii)
@pytest.mark.parametrize("loopback", [True, False])
def test_hostile_addresses_are_refused_as_agents_and_as_backends(url: str, loopback: bool) -> None:
    rules = Rules.with_hosts(["agents.example"], loopback=loopback)
    with pytest.raises(BadRequest):
        read_request(request_for(url), rules)
    if not url:
        return  # a battle without a backend is one that nobody waits for
    start = {
        "type": "battle_start",
        "battle_id": "b",
        "backend_url": url,
        "opponent_infos": [{"name": "white", "agent_url": "http://agents.example/"}],
    }
    with pytest.raises(BadRequest):
        read_request(json.dumps(start), rules)


@pytest.mark.parametrize("url", HOSTILE, ids=ascii)
def test_even_a_connection_to_one_is_not_made(url: str) -> None:
    """What slips through a check of the text, say on a card, is stopped at the connection."""

    async def contacted() -> int:
        transport = CheckedTransport(AllowedHosts.of(["agents.example"], loopback=False))
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            return (await http.get(url)).status_code

    with pytest.raises((httpx.TransportError, httpx.InvalidURL, UnicodeError)):
        asyncio.run(contacted())


@pytest.mark.parametrize(
    "url",
    [
        *("http://localhost:9210", "http://LOCALHOST:9210/", "http://127.0.0.1:9210/a/b"),
        *("http://[::1]:9210/", "https://agents.example:8443/x", "http://Agents.Example"),
    ],
)
def test_a_server_for_this_machine_contacts_this_machine_and_what_is_listed(url: str) -> None:
    assert AllowedHosts.of(["AGENTS.example"]).refusal(url, "it") is None


def test_a_server_for_others_contacts_this_machine_only_at_listed_ports() -> None:
    allowed = AllowedHosts.of(["127.0.0.1", "localhost:9210", "[::1]:9210"], loopback=False)
    assert allowed.refusal("http://localhost:9210/", "it") is None
    assert allowed.refusal("http://[::1]:9210/", "it") is None
    for url in ("http://localhost:9211/", "http://127.0.0.1/", "http://127.0.0.1:9210/"):
        assert "allow" in str(allowed.refusal(url, "it"))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "::1", "169.254.169.254", "fe80::1", "fd00:ec2::254"),
        *(
            "::ffff:127.0.0.1",
            "::ffff:169.254.1.1",
            "64:ff9b::7f00:1",
            "0.0.0.0",
            "::",
            "224.0.0.1",
        ),
        *("10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "fec0::1"),
        *("64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::", "::ffff:10.0.0.5"),
    ],
)
def test_a_listed_name_that_resolves_to_a_forbidden_address(address: str) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["192.0.2.1", address]

    allowed = AllowedHosts(frozenset({"agents.example"}), loopback=False, resolve=resolve)
    url = "http://agents.example/"
    assert allowed.refusal(url, "it") is None
    assert "agents.example" in str(asyncio.run(allowed.refusal_when_resolved(url, "it")))
    with pytest.raises(httpx.ConnectError):
        asyncio.run(allowed.addresses("agents.example", 80))


@pytest.mark.parametrize(
    ("listed", "host"), [("agents.example:9210", "agents.example"), ("10.0.0.5", "10.0.0.5")]
)
def test_a_private_address_that_the_owner_lists_is_contacted(listed: str, host: str) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["10.0.0.5"]

    allowed = AllowedHosts(frozenset({listed}), loopback=False, resolve=resolve)
    assert asyncio.run(allowed.refusal_when_resolved(f"http://{host}:9210/", "it")) is None
    assert asyncio.run(allowed.addresses(host, 9210)) == ["10.0.0.5"]


def test_a_name_that_resolves_differently_the_second_time_gains_nothing(serving: Serving) -> None:
    """The connection goes to the address that was checked, under the name that was asked for."""
    seen: list[str] = []

    async def note(request: Request) -> Response:
        seen.append(request.headers["host"])
        return JSONResponse({})

    url = serving(lambda _: Starlette(routes=[Route("/", note)]))
    port = int(url.rpartition(":")[2])
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    async def resolve(_host: str, _port: int) -> list[str]:
        return next(answers)

    async def twice() -> None:
        hosts = AllowedHosts(frozenset({f"rebound.example:{port}"}), resolve=resolve)
        async with _client(hosts) as http:
            await http.get(f"http://rebound.example:{port}/")
            with pytest.raises(httpx.ConnectError, match="link-local"):
                await http.get(f"http://rebound.example:{port}/")

    asyncio.run(twice())
    assert seen == [f"rebound.example:{port}"]


def test_the_next_address_is_tried_where_one_does_not_answer(serving: Serving) -> None:
    url = serving(lambda _: Starlette(routes=[Route("/", lambda _: JSONResponse({}))]))
    port = int(url.rpartition(":")[2])

    async def resolve(_host: str, _port: int) -> list[str]:
        return ["::1", "127.0.0.1"]  # the server is at the second only

    async def asked() -> int:
        hosts = AllowedHosts(resolve=resolve)
        async with _client(hosts) as http:
            return (await http.get(f"http://localhost:{port}/")).status_code

    assert asyncio.run(asked()) == 200


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")

    async def asked() -> None:
        hosts = AllowedHosts()
        agent = A2AAgent("http://127.0.0.1:9", transport=lambda: CheckedTransport(hosts))
        with pytest.raises(InvalidValue, match="cannot be reached"):
            await agent.check()
        await agent.close()

    asyncio.run(asked())


def test_reports_to_a_backend_follow_no_redirect_and_stay_at_their_place(serving: Serving) -> None:
    asked: list[str] = []

    async def away(request: Request) -> Response:
        asked.append(request.scope["raw_path"].decode())
        return RedirectResponse("/elsewhere", 307)

    url = serving(lambda _: Starlette(routes=[Route("/{rest:path}", away, methods=["POST"])]))

    async def reported() -> int:
        reports = BackendReports(Battle("../agents/1?x=", url), AllowedHosts())
        reports.progress("hello")
        await reports.close()
        return reports.lost

    assert asyncio.run(reported()) == 1
    assert asked == ["/battles/..%2Fagents%2F1%3Fx%3D"]


@pytest.mark.parametrize("word", ["http://x/", "a@b", "", "a b", "*", "x/24"])
def test_a_host_that_is_none(word: str) -> None:
    with pytest.raises(InvalidValue, match="--allow-host"):
        AllowedHosts.of([word])


def test_caps_are_per_caller_and_per_hour() -> None:
    now = 0.0
    callers = Callers(Caps(runs=2, attempts=100, seconds=50, bytes=1_000), lambda: now)
    assert callers.refusal("192.0.2.1", runs=1, attempts=101) is not None
    for _ in range(2):
        assert callers.refusal("192.0.2.1", runs=1, attempts=10) is None
        callers.begin("192.0.2.1", runs=1, attempts=10)
    assert "2 runs" in str(callers.refusal("192.0.2.1", runs=1, attempts=1))
    assert callers.refusal("192.0.2.2", runs=1, attempts=1) is None
    now = 3_601
    assert callers.refusal("192.0.2.1", runs=1, attempts=100) is None


def test_seconds_and_bytes_that_were_used_are_gone() -> None:
    callers = Callers(Caps(seconds=50, bytes=1_000), lambda: 0.0)
    usage = callers.begin("::1", runs=1)
    usage.seconds, usage.bytes = 49.5, 10
    assert "50 seconds" in str(callers.refusal("::1", runs=1))
    assert callers.receive("::1", 980)
    assert not callers.receive("::1", 10)
    assert callers.left("::1", "bytes") == 0


def test_a_network_of_ipv6_is_one_caller() -> None:
    callers = Callers(Caps(runs=1), lambda: 0.0)
    callers.begin("2001:db8::1", runs=1)
    assert callers.refusal("2001:db8::ffff", runs=1) is not None
    assert callers.refusal("2001:db8:0:1::1", runs=1) is None
    callers.begin("::ffff:192.0.2.1", runs=1)
    assert callers.refusal("192.0.2.1", runs=1) is not None


def test_callers_do_not_fill_the_memory() -> None:
    callers = Callers(Caps(), lambda: 0.0)
    for number in range(5_000):
        callers.receive(f"10.0.{number // 256}.{number % 256}", 1)
    assert len(callers._used) == 4_096


@pytest.mark.parametrize("word", ["runs", "runs=", "runs=many", "runs=0", "lives=9", "seconds=nan"])
def test_a_cap_that_is_none(word: str) -> None:
    with pytest.raises(InvalidValue, match="--cap takes"):
        Caps.of([word])
    assert Caps.of(["runs=5", "bytes=1e6"]) == Caps(runs=5, bytes=1e6)
