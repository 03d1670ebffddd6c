"""An open page hears of changes, and asks nothing while there are none."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.dashboard.conftest import Stored, write_run

from passhat.dashboard import app_state, event_stream
from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access
from passhat.dashboard.run_summaries import Summary
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, open_store
from passhat.suites.base import Judgement

Serving = Callable[[Callable[[str], Starlette]], str]


@contextmanager
def _stream(url: str, run: str) -> Iterator[Iterator[str]]:
    """The events of a run, line by line."""
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request("GET", f"/runs/{run}/live")
        answer = connection.getresponse()
        assert answer.status == 200
        yield (line.decode().strip() for line in iter(answer.readline, b""))
        connection.close()


def _until(lines: Iterator[str], word: str) -> None:
    assert any(line.startswith(word) for line in lines), f"the stream ended without {word}"


def test_pages_are_woken_and_look_only_then(
    store_place: str, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_SIGN_OF_LIFE", 1)
    monkeypatch.setattr(app_state, "_LOOK_ANYWAY_SECONDS", 3600.0)
    # In a file, every renewal of a lease is a change: within so long a lease there is none.
    with open_store(store_place, lease_seconds=36_000.0) as store:
        run = write_run(store, "a", 0.5)
        apps: list[Starlette] = []

        def make(_url: str) -> Starlette:
            apps.append(make_app(store_place, Access()))
            return apps[0]

        url = serving(make)
        state = apps[0].state.dashboard
        state.snapshots.whole(state.summaries.find(run))
        looks: list[str] = []
        find = state.summaries.find

        def look(word: str) -> Summary:
            looks.append(word)
            found: Summary = find(word)
            return found

        monkeypatch.setattr(state.summaries, "find", look)
        with _stream(url, run) as first, _stream(url, run[:6]) as second:
            for lines in (first, second):
                _until(lines, "event: changed")
                _until(lines, ": still here")
            # On a slow machine something is left to be counted later; then nobody looks any more.
            for _ in range(30):
                looked = len(looks)
                for _ in range(3):
                    _until(first, ": still here")
                if len(looks) == looked:
                    break
            else:
                pytest.fail("pages look although nothing is written")
            store.release(run, missing=True)
            store.claim(run, [("retail/005", 2)])
            store.finish(run, [AttemptRecord("retail/005", 2, Judgement(Verdict.PASSED))])
            for lines in (first, second):
                _until(lines, "event: changed")
            assert len(looks) > looked
            store.remove(run)
            assert list(first)[-1] == ""  # the stream ends with its run


def test_what_becomes_ready_while_a_page_is_drawn_is_told(
    client: TestClient, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = client.app.state.dashboard  # type: ignore[attr-defined]

    def a_moment_too_late(summary: Summary) -> None:
        state.snapshots.whole(summary)

    monkeypatch.setattr(state.snapshots, "soon", a_moment_too_late)
    page = client.get(f"/runs/{stored.a}").text
    assert "being computed" in page
    (seen,) = re.findall(r'data-live="(\S+)"', page)
    assert "computing" in seen  # so that the first event says that it is ready
