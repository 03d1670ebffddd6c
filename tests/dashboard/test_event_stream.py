"""The dashboard while a real run is going on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from tests.dashboard.conftest import SECRET, asked, served

from passhat.cli.shared.exits import ExitCode
from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access
from passhat.store import open_store
from postgres_cluster import Cluster

Open = Callable[..., Any]

PATIENCE = 60_000
"""Milliseconds; the machines that run this are shared."""
ALL = 36

AGENT = """
import pathlib, random, time

def coin(prompt, attempt):
    # The last attempts wait until the test has looked at the page in the middle of the run.
    gate = pathlib.Path("go")
    if int(attempt.task[1:]) >= 6:
        while not gate.exists():
            time.sleep(0.02)
    return "yes" if random.Random(attempt.seed).random() < 0.6 else "no"
"""


@contextmanager
def _running(folder: Path, store: str, how_many: int) -> Iterator[None]:
    """``passhat run``, the same command several times at once."""
    arguments = ("-a", "python:tossing:coin", "-s", "jsonl:tasks.jsonl", "-n", "3", "--jobs", "12")
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "passhat", "run", *arguments, "--store", store],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(how_many)
    ]
    try:
        yield
    finally:
        (folder / "go").touch()
        messages = [run.communicate(timeout=300)[1] for run in runs]
    codes = [run.returncode for run in runs]
    # The first one to finish may leave the rest to another that gives signs of life.
    assert codes.count(ExitCode.OK) >= 1, messages
    for code, message in zip(codes, messages, strict=True):
        if code != ExitCode.OK:
            assert code == ExitCode.INCOMPLETE, message
            assert re.search(r" missing \(\d+ being made by another runner\)", message), message


def test_two_runners_two_dashboards_and_a_server_that_restarts(
    browser_page: Open, serving: Callable[..., str], tmp_path: Path, own_postgres: Cluster
) -> None:
    """Numbers move on both pages without a reload, before the restart and after it."""
    (tmp_path / "tossing.py").write_text(AGENT)
    lines = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(ALL // 3)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    store = own_postgres.make_database("team").replace("@", f":{SECRET}@", 1)
    open_store(store).close()
    other = serving(lambda _url: make_app(store, Access()))
    with served(store) as address:
        own = browser_page(address)
        expect(own.page.locator("main")).to_contain_text("No run is stored here yet")
        with _running(tmp_path, store, how_many=2):
            own.page.locator("[data-row] a").first.click(timeout=PATIENCE)  # it appears by itself
            own.page.wait_for_url("**/runs/*", timeout=PATIENCE)
            second = browser_page(other + own.page.url.removeprefix(address.rstrip("/")))
            for one in (own, second):
                _in_the_middle(one)
            loads = [_loads(one) for one in (own, second)]
            own_postgres.kill()
            assert asked(own.page, own.page.url).status == 503
            own_postgres.start()
            (tmp_path / "go").touch()
            for one in (own, second):
                _at_the_end(one)
            assert [_loads(one) for one in (own, second)] == loads, "a page was loaded again"
            assert SECRET not in own.page.content()
    with open_store(store) as stored:
        (run,) = stored.runs()
        assert len(list(stored.verdicts(run.id))) == ALL


def _loads(own: Any) -> int:
    return len([one for one in own.requests if "?" not in one and "/runs/" in one])


def _in_the_middle(own: Any) -> None:
    expect(own.page.locator("#battle tbody tr").first).to_be_visible(timeout=PATIENCE)
    expect(own.page.locator(".badge.in-progress")).to_be_visible(timeout=PATIENCE)
    assert int(own.page.inner_text("#done")) < ALL


def _at_the_end(own: Any) -> None:
    expect(own.page.locator("#done")).to_have_text(str(ALL), timeout=PATIENCE)
    expect(own.page.locator(".badge.complete")).to_be_visible(timeout=PATIENCE)
    expect(own.page.locator("#curve-figure svg")).to_be_visible(timeout=PATIENCE)
    expect(own.page.locator("#battle tbody tr")).to_have_count(20, timeout=PATIENCE)
    expect(own.page.locator("#tasks .dots a")).to_have_count(ALL, timeout=PATIENCE)
    told = asked(own.page, own.page.url + ".json").json()["runs"][0]
    expect(own.page.locator(".so-far .claim")).to_have_text(told["headline"], timeout=PATIENCE)
    assert told["attempts"] == ALL
