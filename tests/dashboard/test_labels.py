"""The page of labels: without the judge's verdict, by keyboard, interrupted and continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient
from tests.dashboard.conftest import Stored, served

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access
from passhat.store import open_store
from passhat.store.labels import load_labels

Open = Callable[..., Any]

pytestmark = pytest.mark.xdist_group("dashboard")


@pytest.fixture
def own_store(tmp_path: Path) -> Stored:
    return Stored(str(tmp_path / "store.db"))


@pytest.fixture
def allowed(own_store: Stored) -> Iterator[TestClient]:
    app = make_app(own_store.place, Access(csrf="right"), allow_run=True)
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


def test_a_page_that_only_shows_says_how_to_label(client: TestClient, stored: Stored) -> None:
    answer = client.get(f"/runs/{stored.a}/label")
    assert "passhat view --allow-run" in answer.text
    data = {"csrf": "x", "person": "ada", "label": "right", "task": "retail/000", "number": "1"}
    assert client.post(f"/runs/{stored.a}/label", data=data).status_code == 403


def test_labels_by_form(allowed: TestClient, own_store: Stored) -> None:
    path = f"/runs/{own_store.a}/label"
    assert "your name" in allowed.get(path).text
    assert "Draw" in allowed.get(f"{path}?person=ada").text
    draw = {"csrf": "right", "person": "ada", "size": "3", "kind": "tasks", "seed": "5"}
    assert allowed.post(f"{path}/draw", data=draw | {"csrf": "wrong"}).status_code == 403
    assert allowed.post(f"{path}/draw", data=draw | {"size": "many"}).status_code == 400
    page = allowed.post(f"{path}/draw", data=draw).text
    assert "whole tasks 3 of 12, seed 5" in page
    assert "0 of " in page
    for word in ("wrong_state", "orders.R-1 is wrong", "verdict-box", "passed"):
        assert word not in page
    task = page.partition('name="task" value="')[2].partition('"')[0]
    form = {"csrf": "right", "person": "ada", "task": task, "number": "1", "label": "right"}
    assert allowed.post(path, data=form | {"label": "maybe"}).status_code == 400
    assert allowed.post(path, data=form | {"number": "x"}).status_code == 400
    assert allowed.post(path, data=form | {"task": "absent"}).status_code == 400
    assert "1 of " in allowed.post(path, data=form).text
    labels = allowed.get(f"{path}.json").json()
    assert [(one["task"], one["label"], one["person"]) for one in labels["labels"]] == [
        (task, "right", "ada")
    ]
    assert labels["people"][0]["right"] == 1
    assert allowed.get(f"{path}.csv").text.splitlines()[0] == "task,attempt,person,label,note,at"
    assert "0 of " in allowed.post(path, data=form | {"label": "undo"}).text
    assert allowed.get(f"{path}.json").json()["labels"] == []


def press(page: Any, key: str) -> None:
    """Press a key that leads to the next page; its script is there when it has loaded."""
    with page.expect_navigation():
        page.keyboard.press(key)


def test_thirty_labels_by_keyboard_interrupted_continued_and_by_two_people(
    browser_page: Open, own_store: Stored
) -> None:
    path = f"runs/{own_store.a}/label"
    with served(own_store.place, "--allow-run") as address:
        own = browser_page(f"{address}{path}")
        page = own.page
        page.get_by_label("Who labels").fill("ada")
        page.keyboard.press("Enter")
        page.locator("[name=size]").fill("8")
        page.get_by_role("button", name="Draw").click()
        done = page.locator("#done")
        expect(done).to_contain_text("0 of 3")
        total = int(done.inner_text().split(" of ")[1])
        assert total >= 31
        for count in range(1, 13):
            press(page, "rws"[count % 3])
            expect(done).to_have_text(f"{count} of {total}")
        last = page.locator("#subject").inner_text()
        press(page, "r")
        expect(done).to_have_text(f"13 of {total}")
        press(page, "u")
        expect(done).to_have_text(f"12 of {total}")
        expect(page.locator("#subject")).to_have_text(last)
        assert own.complaints == []
        page.close()
    with served(own_store.place, "--allow-run") as address:
        own = browser_page(f"{address}{path}?person=ada")
        page = own.page
        done = page.locator("#done")
        expect(done).to_have_text(f"12 of {total}")
        expect(page.locator("#subject")).to_have_text(last)
        for count in range(13, 31):
            press(page, "r")
            expect(done).to_have_text(f"{count} of {total}")
        page.goto(f"{address}{path}?person=bob")
        expect(done).to_have_text(f"0 of {total}")
        press(page, "w")
        expect(done).to_have_text(f"1 of {total}")
        expect(page.get_by_role("row", name="bob")).to_contain_text("1")
        assert own.complaints == []
        page.close()
    with open_store(own_store.place) as store:
        labels = load_labels(store._queries, store._key(own_store.a))
    assert [label.person for label in labels].count("ada") == 30
    assert [label.person for label in labels].count("bob") == 1
    assert all(label.at for label in labels)
