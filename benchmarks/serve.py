"""How `passhat serve` answers 200 clients at once, and what half-open connections do to it.

    python benchmarks/serve.py            prints the table
    python benchmarks/serve.py --write    and keeps it in docs/benchmarks.md

The server and the agent under test are the real commands, asked over loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import httpx

from measuring import machine, markdown, write_section

HALF_OPEN = 1_200
START_SECONDS = 120
Row = tuple[str, str, str, str]


@contextmanager
def command(folder: str, *words: str) -> Iterator[str]:
    """A command of passhat that serves, until it is ended; its address once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    whole = [sys.executable, "-m", "passhat", *words, "--port", str(port)]
    with subprocess.Popen(whole, cwd=folder, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + START_SECONDS
            while not is_answering(url):
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"passhat {words[0]} did not start")
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()


def is_answering(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def summarize(what: str, clients: int, ended: list[tuple[str, float]]) -> Row:
    counts = Counter(state for state, _ in ended)
    times = sorted(seconds for _, seconds in ended)
    return (
        f"{clients} clients: {what}",
        ", ".join(f"{count} {state}" for state, count in counts.most_common()),
        f"{statistics.median(times):.1f} s",
        f"{times[-1]:.1f} s",
    )


async def ask_all(
    clients: int, ask: Callable[[httpx.AsyncClient, int], Awaitable[str]]
) -> list[tuple[str, float]]:
    """Ask as many clients at once; what each got, and after how many seconds."""

    async def timed(http: httpx.AsyncClient, number: int) -> tuple[str, float]:
        start = time.perf_counter()
        try:
            state = await ask(http, number)
        except httpx.HTTPError as error:
            state = type(error).__name__
        return state, time.perf_counter() - start

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=600, limits=limits, trust_env=False) as http:
        return list(await asyncio.gather(*(timed(http, i) for i in range(clients))))


async def measure(url: str, white: str, clients: int) -> list[Row]:
    async def card(http: httpx.AsyncClient, _number: int) -> str:
        answer = await http.get(f"{url}/.well-known/agent-card.json")
        return f"answered {answer.status_code}"

    async def assess(http: httpx.AsyncClient, number: int) -> str:
        words = {"participants": {"agent": white}, "config": {"k": 1, "num_battles": 1}}
        message = {
            "messageId": f"m{number}",
            "role": "ROLE_USER",
            "parts": [{"text": json.dumps(words)}],
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        answer = await http.post(url, json=call, headers={"A2A-Version": "1.0"})
        state = answer.json()["result"]["task"]["status"]["state"]
        return str(state).removeprefix("TASK_STATE_").lower()

    rows = [summarize("its card", clients, await ask_all(clients, card))]
    if white:
        rows.append(summarize("an evaluation", clients, await ask_all(clients, assess)))
    return rows


def measure_half_open(url: str) -> Row:
    """Connections that send half a head and wait: how long the server keeps them."""
    start = time.perf_counter()
    port = int(url.rpartition(":")[2])
    waiting = []
    for _ in range(HALF_OPEN):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        waiting.append(client)
    between = time.perf_counter()
    answers = is_answering(url)
    answered = time.perf_counter() - between
    for client in waiting:
        client.settimeout(600)
        with suppress(ConnectionError):
            client.recv(1)  # nothing, when the server has closed it
        client.close()
    after = time.perf_counter() - start
    state = "answered" if answers else "refused: 1,000 connections are open"
    return (
        f"{HALF_OPEN:,} half-open connections",
        f"all closed by the server; another client meanwhile: {state}",
        f"{answered:.2g} s",
        f"{after:.2g} s",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--clients", type=int, default=200)
    told = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        command(folder, "white", "demo:careful") as white,
        command(folder, "serve", "--cap", "runs=1000") as url,
    ):
        rows = asyncio.run(measure(url, white, told.clients))
        rows.append(measure_half_open(url))
        rows += asyncio.run(measure(url, "", told.clients))
    text = markdown(("at once", "result", "median", "last"), rows)
    print(text)
    if told.write:
        load = f"{os.cpu_count()} processors at load {os.getloadavg()[0]:.0f}"
        write_section("serve", f"{machine()}, {load}, `--max-evaluations 2`.\n\n{text}")


if __name__ == "__main__":
    main()
