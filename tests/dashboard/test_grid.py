"""The list of runs with its numbers, the grid of answers, and a person's verdict."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import ATTEMPTS, TASKS, Stored, write_run

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, open_store
from passhat.suites.base import Judgement, Task


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """A store of its own: these tests write to it."""
    return Stored(str(tmp_path / "store.db"))


@pytest.fixture
def client(stored: Stored) -> Iterator[TestClient]:
    app = make_app(stored.place, Access())
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.fixture
def allowed(stored: Stored) -> Iterator[TestClient]:
    app = make_app(stored.place, Access(csrf="right"), allow_run=True)
    with TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False) as found:
        yield found


def test_the_grid_shows_every_attempt_with_its_answer(client: TestClient, stored: Stored) -> None:
    data = client.get(f"/runs/{stored.a}/grid.json").json()
    assert data["schema"] == "passhat.grid/1"
    assert [len(row["cells"]) for row in data["rows"]] == [ATTEMPTS] * TASKS
    page = client.get(f"/runs/{stored.a}/grid").text
    assert page.count("data-cell") == TASKS * ATTEMPTS
    assert "<script>window" not in page
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{stored.a}/grid.csv").text)))
    assert len(rows) == TASKS * ATTEMPTS


@pytest.mark.parametrize("show", ["failed", "flaky", "missing", "truncated", "disagreeing"])
def test_filters_of_the_grid(client: TestClient, stored: Stored, show: str) -> None:
    everything = client.get(f"/runs/{stored.a}/grid.json").json()["rows"]
    needed = {
        "failed": {"failed"},
        "flaky": {"passed", "failed"},
        "missing": {"missing"},
        "truncated": {"no attempt was"},
        "disagreeing": {"nothing was judged twice"},
    }[show]
    expected = [
        row["task"] for row in everything if needed <= {cell["verdict"] for cell in row["cells"]}
    ]
    shown = client.get(f"/runs/{stored.a}/grid.json?show={show}").json()["rows"]
    assert [row["task"] for row in shown] == expected


def test_a_verdict_by_a_person_counts_and_keeps_the_judges(
    allowed: TestClient, stored: Stored
) -> None:
    rows = allowed.get(f"/runs/{stored.a}/grid.json?show=failed").json()["rows"]
    cell = next(cell for row in rows for cell in row["cells"] if cell["verdict"] == "failed")
    path = f"/runs/{stored.a}/attempt/{cell['task']}/{cell['attempt']}"
    form = {"csrf": "right", "verdict": "passed", "reason": "the total was right"}
    assert allowed.post(f"{path}/verdict", data=form | {"csrf": "wrong"}).status_code == 403
    assert allowed.post(f"{path}/verdict", data=form | {"reason": " "}).status_code == 400
    assert allowed.post(f"{path}/verdict", data=form | {"verdict": "maybe"}).status_code == 400
    assert allowed.post(f"{path}9/verdict", data=form).status_code == 404
    answer = allowed.post(f"{path}/verdict", data=form)
    assert answer.status_code == 303
    assert answer.headers["location"] == path
    assert allowed.get(f"{path}.json").json()["verdict"] == "passed"
    page = allowed.get(path).text
    assert "the total was right" in page
    assert "a person" in page
    differing = allowed.get(f"/runs/{stored.a}/grid.json?show=disagreeing").json()["rows"]
    assert [row["task"] for row in differing] == [cell["task"]]


def test_no_verdict_without_permission(client: TestClient, stored: Stored) -> None:
    path = f"/runs/{stored.a}/attempt/retail/001/1"
    csrf = client.app.state.dashboard.access.csrf  # type: ignore[attr-defined]
    form = {"csrf": csrf, "verdict": "passed", "reason": "x"}
    assert client.post(f"{path}/verdict", data=form).status_code == 403
    assert "Change the verdict" not in client.get(path).text


def test_the_list_of_runs_sorts_and_marks_what_is_all_missing(
    stored: Stored, client: TestClient
) -> None:
    with open_store(stored.place) as store:
        write_run(store, "zeta", 0.9, seed=7)
        record = RunRecord("lost", Protocol(suite="desk/retail"), [Task("retail/000", "?", {})])
        store.begin(record, 2)
        store.claim(record.id, [("retail/000", 1), ("retail/000", 2)])
        lost = Judgement(Verdict.MISSING, "rate_limit", "429")
        store.finish(record.id, [AttemptRecord("retail/000", n, lost) for n in (1, 2)])
    page = client.get("/runs?sort=agent&order=up").text
    agents = re.findall(r'<td class="t wrap"><a [^>]*>([^<]+)</a>', page)
    assert agents == sorted(agents, key=str.lower)
    assert 'aria-sort="ascending"' in page
    assert "all-missing" in page
    only = client.get("/runs?status=all+missing").text
    assert re.findall(r'<td class="t wrap"><a [^>]*>([^<]+)</a>', only) == ["lost"]
    snapshots = client.app.state.dashboard.snapshots  # type: ignore[attr-defined]
    summaries = client.app.state.dashboard.summaries  # type: ignore[attr-defined]
    summary = summaries.find(stored.a)
    snapshots.headline(summary)
    snapshots._headlines.find(summary.id, summary.version).result()
    first, last = snapshots.headline(summary)
    assert (str(first.metric), str(last.metric)) == ("pass^1", f"pass^{ATTEMPTS}")


def test_pages_open_on_the_newest_runs(client: TestClient, stored: Stored) -> None:
    assert "Task by task" in client.get("/compare").text
    assert 'aria-label="The plan"' in client.get("/plan").text
    assert "Bands" in client.get("/forecast").text
    assert stored.a


def test_a_coding_attempt_shows_its_diff_beside_the_tests_and_another(tmp_path: Path) -> None:
    place = str(tmp_path / "coding.db")
    record = RunRecord("coder", Protocol(suite="workspace:tasks"), (Task("fix", "Fix it."),))
    with open_store(place) as store:
        store.begin(record, 2)
        store.claim(record.id, [("fix", 1), ("fix", 2)])
        rows = []
        for number, verdict in ((1, Verdict.PASSED), (2, Verdict.FAILED)):
            judgement = Judgement(verdict, "" if number == 1 else "wrong_answer")
            entries = [("user", "Fix it."), ("agent", "Done."), ("diff", f"+line {number}")]
            entries += [("tests", f"output {number}"), ("got", f"1 file changed {number}")]
            transcript = [{"role": role, "text": text} for role, text in entries]
            rows.append(AttemptRecord("fix", number, judgement, transcript=transcript))
        store.finish(record.id, rows)
    with TestClient(make_app(place, Access()), base_url="http://127.0.0.1:8000") as client:
        page = client.get(f"/runs/{record.id}/attempt/fix/2").text
        cells = client.get(f"/runs/{record.id}/grid.json").json()["rows"][0]["cells"]
    assert page.count("+line 2") == 2
    assert page.count("+line 1") == 1
    assert "output 2" in page
    assert "Beside an attempt that passed" in page
    assert [cell["answer"] for cell in cells] == ["1 file changed 1", "1 file changed 2"]
