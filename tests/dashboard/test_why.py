"""The page about what goes with failure: its tree, its links and its other forms."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from starlette.testclient import TestClient
from tests.cli.test_why import FAIL, PASS, attempts_of, write_store

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access


def test_every_branch_leads_to_its_attempts(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    attempts = [row for task in "abc" for row in attempts_of(f"t/{task} <b>", *[PASS, FAIL] * 4)]
    run = write_store(place, attempts)
    with TestClient(make_app(str(place), Access()), base_url="http://127.0.0.1:8000") as client:
        page = client.get(f"/runs/{run}/why").text
        assert "calls delete" in page
        assert "goes with failure" in page
        assert "because" not in page
        links = re.findall(rf'href="(/runs/{run}/why\?task=[^"]+)"', page)
        assert len(links) == 3
        tree = client.get(links[0]).text
        assert "The decisive step" in tree
        branches = re.findall(r'<span class="path"><a href="([^"]+)">', tree)
        assert len(branches) == 3
        assert all(client.get(branch).status_code == 200 for branch in branches)
        dots = re.findall(r'<a class="([pf])" href="[^"]+" aria-label="attempt (\d)', tree)
        assert dots[8:12] == [("p", number) for number in "1357"]
        assert dots[12:] == [("f", number) for number in "2468"]
        assert "<b>" not in re.sub(r"<b>\S+ goes with [a-z]+</b>", "", tree.split("<main")[1])
        for target in ("grid", "why"):
            assert f"/runs/{run}/{target}" in client.get(f"/runs/{run}").text
        assert f"/runs/{run}/why" in client.get(f"/runs/{run}/grid").text
        assert f"/runs/{run}/grid" in tree
        assert "/compare?run=" in tree
        data = client.get(f"/runs/{run}/why.json", params={"task": "t/a <b>"}).json()
        assert data["schema"] == "passhat.why/1"
        assert data["task"]["decisive"]["step"] == "delete"
        rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{run}/why.csv").text)))
        assert rows[0]["event"] == "calls delete"
        assert client.get(f"/runs/{run}/why", params={"task": "none"}).status_code == 400
