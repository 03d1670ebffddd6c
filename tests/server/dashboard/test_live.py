"""The dashboard while a real run is going on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from tests.server.dashboard.conftest import served

from passhat.store import open_store

Open = Callable[..., Any]

PATIENCE = 60_000
"""Milliseconds; the machines that run this are shared."""

AGENT = """
import pathlib, random, time

def coin(prompt, seed, task):
    # The last attempts wait until the test has looked at the page in the middle of the run.
    gate = pathlib.Path("go")
    if int(task[1:]) >= 6:
        while not gate.exists():
            time.sleep(0.02)
    return "yes" if random.Random(seed).random() < 0.6 else "no"
"""


def test_numbers_move_without_a_reload(browser_page: Open, tmp_path: Path) -> None:
    (tmp_path / "tossing.py").write_text(AGENT)
    lines = [{"id": f"t{i}", "prompt": "?", "answer": "yes"} for i in range(12)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    store = str(tmp_path / "store.db")
    open_store(store).close()
    program = "import sys; from passhat.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ("-a", "python:tossing:coin", "-s", "jsonl:tasks.jsonl", "-n", "3", "--jobs", "12")
    with served(store) as address:
        own = browser_page(address)
        assert "No run is stored here yet" in own.page.inner_text("main")
        run = subprocess.Popen(
            [sys.executable, "-c", program, "run", *arguments, "--store", store],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _follow(own, address, tmp_path)
        finally:
            (tmp_path / "go").touch()
            assert run.wait(60) == 0
    assert own.complaints == []


def _follow(own: Any, address: str, folder: Path) -> None:
    while not own.page.locator("[data-row]").count():
        own.page.wait_for_timeout(100)
        own.page.goto(address)
    own.page.locator("[data-row] a").first.click()
    loads = len([one for one in own.requests if "?" not in one and "/runs/" in one])
    expect(own.page.locator("#battle tbody tr").first).to_be_visible(timeout=PATIENCE)
    assert own.page.locator(".badge.in-progress").is_visible()
    before = int(own.page.inner_text("#done"))
    assert before < 36
    (folder / "go").touch()
    expect(own.page.locator("#done")).to_have_text("36", timeout=PATIENCE)
    expect(own.page.locator(".badge.complete")).to_be_visible(timeout=PATIENCE)
    expect(own.page.locator("#curve-figure svg")).to_be_visible(timeout=PATIENCE)
    expect(own.page.locator("#battle tbody tr")).to_have_count(20, timeout=PATIENCE)
    expect(own.page.locator("#tasks [data-row]").first).to_be_visible(timeout=PATIENCE)
    after = [one for one in own.requests if "?" not in one and "/runs/" in one]
    assert len(after) == loads, "the page was loaded again"
    told = own.page.request.get(own.page.url + ".json").json()["runs"][0]
    expect(own.page.locator(".so-far .claim")).to_have_text(told["headline"], timeout=PATIENCE)
    assert told["attempts"] == 36
