"""Every page is also data, and the data are those of the command line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import click
import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import ATTEMPTS, SECRET, TASKS, Stored

from passhat._display import percent
from passhat.cli.shared.options import this_command
from passhat.dashboard import run_snapshots
from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access

Passhat = Callable[..., Any]


@pytest.fixture
def stored(both: Stored) -> Stored:
    """Every page of this module is asked of both kinds of stores."""
    return both


@pytest.fixture
def here(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run's id is a source."""
    monkeypatch.setenv("PASSHAT_STORE", stored.place)


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _numbers(data: Any) -> Any:
    """Without what names the file: it is read under two names here."""
    if isinstance(data, dict):
        return {key: _numbers(value) for key, value in data.items() if key != "source"}
    return [_numbers(value) for value in data] if isinstance(data, list) else data


def test_the_list_of_runs(client: TestClient, stored: Stored, passhat: Passhat) -> None:
    listed = json.loads(passhat("runs", "--store", stored.place, "--json").out)
    assert client.get("/runs.json").json() == listed
    rows = _rows(client.get("/runs.csv").text)
    assert [row["id"] for row in rows] == [stored.a, stored.b, stored.c]
    assert client.get("/runs.json?agent=beta&q=seed").json()["runs"] == listed["runs"][2:]
    assert client.get("/runs.json?status=stopped").json() == {"runs": []}


@pytest.mark.usefixtures("here")
def test_a_run_is_its_report(client: TestClient, stored: Stored, passhat: Passhat) -> None:
    told = json.loads(passhat("report", stored.a, "--json").out)
    assert _numbers(client.get(f"/runs/{stored.a}.json").json()) == _numbers(told)
    rows = _rows(passhat("report", stored.b, "-o", "csv").out)
    assert _without_source(_rows(client.get(f"/runs/{stored.b}.csv").text)) == _without_source(rows)


def _without_source(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{key: value for key, value in row.items() if key != "source"} for row in rows]


@pytest.mark.usefixtures("here")
def test_a_run_too_large_to_be_read_one_by_one(
    client: TestClient, stored: Stored, passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_snapshots, "READ_ONE_BY_ONE", 10)
    (told,) = json.loads(passhat("report", stored.a, "--json").out)["runs"]
    (found,) = client.get(f"/runs/{stored.a}.json").json()["runs"]
    for name in ("estimates", "failures_by_category", "missing_by_reason", "diagnostics", "passed"):
        assert found[name] == told[name], name
    assert found["missing"] == 1
    assert "counted per task" in found["reading"][1]


def test_the_page_says_the_numbers_of_the_data(client: TestClient, stored: Stored) -> None:
    (run,) = client.get(f"/runs/{stored.a}.json").json()["runs"]
    page = client.get(f"/runs/{stored.a}").text
    assert run["headline"] in page
    for one in run["estimates"]:
        if one["about"] == "new tasks" and one["metric"] in ("pass@4", "pass^4"):
            assert f"{percent(one['low'])} to {percent(one['high'])}" in page


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("metric", ["pass^1", "pass^4"])
def test_a_comparison(client: TestClient, stored: Stored, passhat: Passhat, metric: str) -> None:
    told = passhat("compare", stored.a, stored.b, "--metric", metric, "--json")
    asked = f"run={stored.a}&run={stored.b}&metric={metric.replace('^', '%5E')}"
    found = client.get(f"/compare.json?{asked}").json()
    assert _numbers(found) == _numbers(json.loads(told.out))
    rows = _rows(client.get(f"/compare.csv?{asked}").text)
    assert [(row["metric"], row["about"]) for row in rows] == [
        (metric, "these tasks"),
        (metric, "new tasks"),
    ]
    # The page calls the runs by their labels, so the part before the names is looked for.
    change = found["verdicts"][0]["sentence"].partition(", from ")[0]
    assert change in client.get(f"/compare?{asked}").text


@pytest.mark.usefixtures("here")
def test_three_runs(client: TestClient, stored: Stored, passhat: Passhat) -> None:
    three = (stored.a, stored.b, stored.c)
    told = json.loads(passhat("compare", *three, "--allow", "--json").out)
    asked = "&".join(f"run={run}" for run in three)
    found = client.get(f"/compare.json?{asked}&allow=1").json()
    assert _numbers(found) == _numbers(told)
    refused = client.get(f"/compare?{asked}").text
    assert "fingerprint of 2" in refused
    assert "allow=1" in refused


@pytest.mark.usefixtures("here")
def test_forecast_and_plan(client: TestClient, stored: Stored, passhat: Passhat) -> None:
    told = json.loads(passhat("forecast", stored.a, "--metric", "pass@20", "--json").out)
    assert client.get(f"/forecast.json?run={stored.a}&metric=pass@20").json() == told
    (row,) = _rows(client.get(f"/forecast.csv?run={stored.a}&metric=pass@20").text)
    assert float(row["low"]) == told["results"][0]["low"]
    told = json.loads(passhat("forecast", stored.a, "--keep", "0.5", "--json").out)
    assert client.get(f"/forecast.json?run={stored.a}&keep=0.5").json() == told
    told = json.loads(passhat("plan", stored.a, "--detect", "0.1", "--json").out)
    assert client.get(f"/plan.json?run={stored.a}&goal=detect&target=0.1").json() == told
    assert told["rows"][0]["tasks"] == int(
        _rows(client.get(f"/plan.csv?run={stored.a}&goal=detect&target=0.1").text)[0]["tasks"]
    )


def test_the_history_of_an_agent_at_a_suite(client: TestClient, stored: Stored) -> None:
    agent = client.get(f"/runs/{stored.c}.json").json()["runs"][0]["agent"]
    query = {"suite": "desk/retail", "agent": agent, "metric": "pass^2"}
    found = client.get("/history.json", params=query).json()
    assert found["agent"] == agent
    assert found["runs"][-1]["run"] == stored.c
    for one in found["runs"]:
        told = [
            (float(row["value"]), float(row["low"]), float(row["high"]))
            for row in _rows(client.get(f"/runs/{one['run']}.csv").text)
            if (row["metric"], row["about"]) == ("pass^2", "new tasks")
        ]
        (estimate,) = one["estimates"]
        assert told == [tuple(estimate[name] for name in ("value", "low", "high"))]
    fields = [[one["field"] for one in run["differences"]] for run in found["runs"]]
    assert fields == [[], ["suite_fingerprint"]]
    rows = _rows(client.get("/history.csv", params=query).text)
    assert "suite_fingerprint" in rows[-1]["changes"]
    page = client.get("/history", params=query).text
    assert page.count('class="flag"') == 1
    assert "No change of the agent is shown." in page
    assert client.get("/history.csv?suite=none").text.count("\n") == 1
    assert "No run of this suite" in client.get("/history?suite=none").text


def test_attempts_page_by_page(client: TestClient, stored: Stored) -> None:
    for order in ("newest", "suite"):
        seen, after = [], ""
        while True:
            part = client.get(
                f"/runs/{stored.a}/attempts.json",
                params={"order": order, "size": "7", "after": after},
            ).json()
            seen += [(one["task"], one["attempt"]) for one in part["attempts"]]
            after = part["after"]
            if not after:
                break
        assert len(seen) == len(set(seen)) == TASKS * ATTEMPTS
        assert order == "newest" or seen == sorted(seen)
    failed = client.get(f"/runs/{stored.a}/attempts.json?verdict=failed").json()["attempts"]
    assert {one["category"] for one in failed} == {"wrong_state"}
    assert client.get(f"/runs/{stored.a}/attempts.json?after=nonsense").status_code == 400


def test_calls_of_an_attempt(client: TestClient, stored: Stored) -> None:
    place = f"/runs/{stored.a}/attempt/retail/003"
    calls = client.get(f"{place}/1/calls.json").json()["calls"]
    assert [(call["name"], call.get("role")) for call in calls] == [
        ("openai:m", None),
        ("get_order", "tool"),
    ]
    rows = _rows(client.get(f"{place}/1/calls.csv").text)
    assert [(row["role"], row["input_tokens"]) for row in rows] == [
        ("agent", "1234"),
        ("tool", ""),
    ]
    page = client.get(f"{place}/1/calls").text
    assert "<script>" not in page
    assert "1,234 input tokens" in page
    assert client.get(f"{place}/2/calls.json").json()["calls"] == []
    assert client.get(f"{place}/9/calls").status_code == 404


def test_a_task_and_an_attempt(client: TestClient, stored: Stored) -> None:
    task = client.get(f"/runs/{stored.a}/task/retail/005.json").json()
    assert (task["n"], task["missing"], len(task["attempts"])) == (3, 1, 4)
    assert task["estimates"][0]["about"] == "these tasks"
    attempt = client.get(f"/runs/{stored.a}/attempt/retail/005/2.json").json()
    assert (attempt["verdict"], attempt["reason"]) == ("missing", "user_error")
    assert attempt["transcript"][0]["role"] == "user"
    turns = _rows(client.get(f"/runs/{stored.a}/attempt/retail/005/2.csv").text)
    assert [turn["kind"] for turn in turns] == ["user", "call", "result", "agent"]
    rows = _rows(client.get(f"/runs/{stored.a}/task/retail/005.csv").text)
    assert [row["attempt"] for row in rows] == ["1", "2", "3", "4"]


def test_a_password_is_on_no_page(stored_in_postgres: Stored, passhat: Passhat) -> None:
    place, a, b = stored_in_postgres.place, stored_in_postgres.a, stored_in_postgres.b
    app = make_app(place, Access(), allow_run=True)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for path in (
            *("/", "/history", f"/runs/{a}", f"/runs/{a}/attempts", f"/runs/{a}/task/retail/003"),
            *(f"/compare?run={a}&run={b}", f"/forecast?run={a}", f"/plan?run={a}", "/start"),
            *(f"/runs/{a}.json", "/runs/none", f"/runs/{a}/attempt/retail/003/1"),
        ):
            assert SECRET not in client.get(path).text, path
    assert SECRET in place
    assert SECRET not in passhat("config", "--store", place, "--json").out
    with click.Context(click.Command("passhat"), obj=("report", f"{place}#{a}", f"--x={place}")):
        assert this_command().count(stored_in_postgres.path) == 2
        assert SECRET not in this_command()
    several = passhat("forecast", place)
    assert "there are 3 runs" in several.err
    assert SECRET not in several.err


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/runs/none", 404),
        ("/runs/none.json", 404),
        ("/runs/RUN/task/none", 404),
        ("/runs/RUN/attempt/retail/005/9.json", 404),
        ("/nothing", 404),
        ("/runs?status=odd", 400),
        ("/runs?page=x", 400),
        ("/history?metric=pass%25", 400),
        ("/plan.json?run=RUN&target=x", 400),
        ("/compare.json?run=RUN", 400),
        ("/start", 403),
    ],
)
def test_what_cannot_be_shown_says_so(
    client: TestClient, stored: Stored, path: str, status: int
) -> None:
    answer = client.get(path.replace("RUN", stored.a))
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    if path.partition("?")[0].endswith(".json"):
        assert answer.json()["error"]
