"""passhat battle: scenario files are played to their end, and what was started is stopped."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kept_ports import kept_port

Serving = Callable[[Callable[[str], Any]], str]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two ports that are kept free until somebody asks for them by number."""
    with kept_port() as first, kept_port() as second:
        yield first, second


def scenario(folder: Path, *, green: str, white: str, config: str = "k = 1\ntask_id = 0") -> Path:
    path = folder / "scenario.toml"
    path.write_text(
        f"[green_agent]\n{green}\n[[participants]]\nrole = 'agent'\n{white}\n[config]\n{config}\n"
    )
    return path


def test_a_scenario_from_start_to_end(
    passhat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ports: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    green, white = ports
    program = Path(sys.executable).parent / "passhat"
    note = tmp_path / "white.pid"
    wrapper = tmp_path / "white.sh"
    wrapper.write_text(f"echo $$ > {note}\nexec {program} white demo:careful --port {white}\n")
    path = scenario(
        tmp_path,
        green=f"endpoint = 'http://127.0.0.1:{green}'\n"
        f"cmd = '{program} serve --port {green} --store {tmp_path}/green.db'",
        white=f"endpoint = 'http://127.0.0.1:{white}'\ncmd = 'sh {wrapper}'",
        config="k = 2\nnum_battles = 2",
    )
    ended = passhat("battle", path, "-o", "result.json", "--wait", 120)
    assert ended.code == 0, ended.err
    assert "pass^2" in ended.out
    lines = [line for line in ended.err.splitlines() if " attempt " in line]
    assert len([line for line in lines if not line.startswith("still working")]) == 4
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept["participants"] == {"agent": f"http://127.0.0.1:{white}"}
    assert kept["results"][0]["runs"][0]["attempts"] == 4
    said = {one["metric"]: one["value"] for one in kept["results"][0]["runs"][0]["estimates"]}
    again = passhat("report", "result.json", "--metric", "pass^2", "-o", "csv")
    (row, *_) = csv.DictReader(io.StringIO(again.out))
    assert float(row["value"]) == said["pass^2"]  # the file is a log that passhat reads
    with pytest.raises(ProcessLookupError):  # stopped, with everything it started
        os.kill(int(note.read_text()), 0)


def test_an_agent_that_ends_at_once_is_named_with_its_last_words(
    passhat: Any, tmp_path: Path
) -> None:
    path = scenario(
        tmp_path,
        green="endpoint = 'http://127.0.0.1:9'",
        white="endpoint = 'http://127.0.0.1:9'\ncmd = 'sh -c \"echo out of paper; exit 3\"'",
    )
    ended = passhat("battle", path)
    assert ended.code == 2
    assert "agent ended before it answered" in ended.err
    assert "out of paper" in ended.err


def test_nobody_answers(passhat: Any, tmp_path: Path) -> None:
    path = scenario(
        tmp_path, green="endpoint = 'http://127.0.0.1:9'", white="endpoint = 'http://127.0.0.1:9'"
    )
    ended = passhat("battle", path, "--wait", 0.1)
    assert ended.code == 2
    assert "agent did not answer within 0.1 s" in ended.err


def test_a_command_that_is_none(passhat: Any, tmp_path: Path) -> None:
    path = scenario(
        tmp_path,
        green="endpoint = 'http://127.0.0.1:9'",
        white="endpoint = 'http://127.0.0.1:9'\ncmd = './no-such-program'",
    )
    ended = passhat("battle", path)
    assert ended.code == 2
    assert "agent cannot be started" in ended.err


def test_a_rejected_request_ends_with_the_reasons(
    passhat: Any, tmp_path: Path, white: str, start_green: Any
) -> None:
    path = scenario(
        tmp_path,
        green=f"endpoint = '{start_green().url}'",
        white=f"endpoint = '{white}'",
        config="mode = 'chaos'",
    )
    ended = passhat("battle", path)
    assert ended.code == 2
    assert "rejected" in ended.err
    assert "mode should be one of" in ended.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is not TOML"),
        ("", "at least one [[participants]]"),
        ("[[participants]]\nrole = 'a'\nendpoint = 'http://x'", "[green_agent] needs an endpoint"),
        (
            "[green_agent]\nendpoint = 'http://x'\n[[participants]]\nendpoint = 'http://x'",
            "[[participants]] 1 needs an endpoint and a role",
        ),
        (
            "[green_agent]\nendpoint = 'http://x'\n"
            + "[[participants]]\nrole = 'a'\nendpoint = 'http://x'\n" * 2,
            "same role",
        ),
    ],
)
def test_a_wrong_scenario_says_what_is_wrong(
    text: str, words: str, passhat: Any, tmp_path: Path
) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    ended = passhat("battle", path)
    assert ended.code == 2
    assert words in ended.err
    assert "scenario.toml" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either a scenario file or --backend"),
        (["x.toml", "--backend", "http://x"], "either a scenario file or --backend"),
        (["--backend", "http://x"], "needs --green"),
        (["--backend", "http://x", "--green", "g", "--opponent", "w"], "NAME=ID"),
        (["--backend", "x", "--green", "g", "--opponent", "w=1"], "takes an address"),
        (["--backend", "http://127.0.0.1:9", "--green", "g", "--opponent", "w=1"], "running"),
        (["no-such.toml"], "cannot be read"),
    ],
)
def test_wrong_arguments(arguments: list[str], words: str, passhat: Any) -> None:
    ended = passhat("battle", *arguments)
    assert ended.code == 2
    assert words in ended.err


@pytest.mark.parametrize(
    ("battle", "timeout", "words"),
    [
        ({"state": "error", "error": "no green agent"}, 60, "no green agent"),
        ({"state": "finished"}, 60, "without a result"),
        ({"state": "running"}, 0.3, "not finished after 0.3 s"),
    ],
)
def test_a_battle_without_a_result(
    battle: dict[str, object], timeout: float, words: str, passhat: Any, serving: Serving
) -> None:
    async def create(_request: Request) -> Response:
        return JSONResponse({"battle_id": "b"}, 201)

    async def show(_request: Request) -> Response:
        return JSONResponse(battle)

    routes = [Route("/battles", create, methods=["POST"]), Route("/battles/b", show)]
    url = serving(lambda _: Starlette(routes=routes))
    ended = passhat(
        *("battle", "--backend", url, "--green", "g", "--opponent", "w=1", "--timeout", timeout)
    )
    assert ended.code == 2
    assert words in ended.err


def test_a_battle_that_its_backend_ended_is_no_success(
    passhat: Any, tmp_path: Path, serving: Callable[[Callable[[str], Any]], str]
) -> None:
    async def create(_request: Request) -> JSONResponse:
        return JSONResponse({"battle_id": "b"}, 201)

    async def show(_request: Request) -> JSONResponse:
        result = {"is_result": True, "winner": "draw", "reported_by": "system"}
        return JSONResponse({"battle_id": "b", "state": "finished", "result": result})

    routes = [Route("/battles", create, methods=["POST"]), Route("/battles/b", show)]
    url = serving(lambda _: Starlette(routes=routes))
    kept = tmp_path / "battle.json"
    ended = passhat(
        *("battle", "--backend", url, "--green", "g", "--opponent", "white=w", "-o", kept)
    )
    assert ended.code != 0
    assert "without a report of the green agent" in ended.err
    assert kept.is_file()
