"""Live platforms: projects are read page by page, and every way it can fail says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.readers import platform_stand_ins as stand_ins
from tests.readers.platform_stand_ins import KEY, Answer, Handler, Request, Tracking, serving

from passhat import Run, read
from passhat.errors import PasshatError
from passhat.readers.platforms import PLATFORMS

Serve = Callable[[str, dict[str, Handler]], list[Request]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a stand-in for a platform and points the environment at it, with a key."""
    with ExitStack() as stack:

        def start(prefix: str, routes: dict[str, Handler]) -> list[Request]:
            platform = PLATFORMS[prefix]
            url, asked = stack.enter_context(serving(routes))
            for name in (*platform.url_variables, *platform.keys):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv(platform.url_variables[0], url)
            if platform.key_required:
                for name in platform.keys:
                    monkeypatch.setenv(name, "pk-test" if "PUBLIC" in name else KEY)
            return asked

        yield start


def _counts(runs: list[Run]) -> list[tuple[str, int, int, int]]:
    return sorted(
        (run.name, len(run.outcomes), run.outcomes.attempts, run.outcomes.passes) for run in runs
    )


APART = [("run-0", 3, 3, 2), ("run-1", 3, 3, 2)]
BOTS = [("bot-0", 3, 3, 2), ("bot-1", 3, 3, 2)]
TOGETHER = [("Bot", 3, 6, 4)]


@pytest.mark.parametrize(
    ("word", "routes", "expected"),
    [
        ("langfuse:helpdesk", stand_ins.langfuse_4, APART),
        ("langfuse:helpdesk/run-1", stand_ins.langfuse_4, APART[1:]),
        ("langfuse:helpdesk/run-0", stand_ins.langfuse_3, APART[:1]),
        ("langsmith:bot-1", stand_ins.langsmith, BOTS[1:]),
        ("langsmith:tasks", stand_ins.langsmith, BOTS),
        ("braintrust:helpdesk", stand_ins.braintrust, BOTS),
        ("braintrust:helpdesk/bot-0", stand_ins.braintrust, BOTS[:1]),
        ("phoenix:tasks", stand_ins.phoenix, [("bot", 3, 6, 4)]),
        ("phoenix:tasks/bot", stand_ins.phoenix, [("bot", 3, 6, 4)]),
        ("weave:team/helpdesk", stand_ins.weave, TOGETHER),
        (
            "mlflow:helpdesk",
            lambda: Tracking().routes(),
            [("eval-0", 3, 3, 2), ("eval-1", 3, 3, 2)],
        ),
    ],
)
def test_a_project_is_read(
    serve: Serve,
    word: str,
    routes: Callable[[], dict[str, Handler]],
    expected: list[tuple[str, int, int, int]],
) -> None:
    serve(word.partition(":")[0], routes())
    runs = read(word)
    assert _counts(runs) == expected
    assert {run.source for run in runs} == {word}


def test_experiments_of_one_agent_are_joined_when_that_is_stated(serve: Serve) -> None:
    serve("langfuse", stand_ins.langfuse_4())
    (joined,) = read("langfuse:helpdesk", join=True, agent="bot")
    assert _counts([joined]) == [("bot", 3, 6, 4)]


def test_an_item_that_was_never_scored_is_missing(serve: Serve) -> None:
    serve("langfuse", stand_ins.langfuse_3())
    (joined,) = read("langfuse:helpdesk", join=True, agent="bot")
    outcomes = joined.outcomes
    assert (outcomes.attempts, outcomes.passes, outcomes.total_missing) == (6, 3, 1)


def test_the_weave_calls_go_over_several_pages(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passhat.readers.platforms._PAGE", 4)
    asked = serve("weave", stand_ins.weave())
    assert _counts(read("weave:team/helpdesk")) == TOGETHER
    assert [request.body["offset"] for request in asked] == [0, 4]


def _error(word: str) -> str:
    with pytest.raises(PasshatError) as caught:
        read(word)
    assert KEY not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("word", "routes", "known"),
    [
        ("langfuse:nope", stand_ins.langfuse_4, "helpdesk"),
        ("langfuse:helpdesk/nope", stand_ins.langfuse_4, "experiment called 'nope'"),
        ("langfuse:helpdesk/nope", stand_ins.langfuse_3, "experiment called 'nope'"),
        ("langsmith:nope", stand_ins.langsmith, "Check the name"),
        ("braintrust:nope", stand_ins.braintrust, "project called 'nope'"),
        ("braintrust:helpdesk/nope", stand_ins.braintrust, "experiment in helpdesk"),
        ("phoenix:nope", stand_ins.phoenix, "There are: other, tasks."),
        ("phoenix:tasks/nope", stand_ins.phoenix, "There are: bot."),
        ("weave:helpdesk", stand_ins.weave, "weave:ENTITY/PROJECT"),
        ("mlflow:nope", lambda: Tracking().routes(), "experiment called 'nope'"),
        ("mlflow:", lambda: Tracking().routes(), "Write mlflow:EXPERIMENT"),
    ],
)
def test_a_wrong_name_is_an_error_that_says_what_there_is(
    serve: Serve, word: str, routes: Callable[[], dict[str, Handler]], known: str
) -> None:
    serve(word.partition(":")[0], routes())
    assert known in _error(word)


@pytest.mark.parametrize("prefix", [name for name, p in PLATFORMS.items() if p.key_required])
def test_no_key_and_a_refused_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    def refuse(_: Request) -> object:
        return Answer({"message": KEY}, 401)

    serve(prefix, {"GET /.*": refuse, "POST /.*": refuse})
    message = _error(f"{prefix}:team/helpdesk")
    assert "HTTP 401" in message
    assert PLATFORMS[prefix].keys[-1] in message
    for name in PLATFORMS[prefix].keys:
        monkeypatch.delenv(name)
    message = _error(f"{prefix}:team/helpdesk")
    assert f"export {PLATFORMS[prefix].keys[0]}=" in message


def test_too_many_requests_are_repeated_as_the_server_asks(serve: Serve) -> None:
    routes = stand_ins.phoenix()
    datasets, answers = routes["GET /v1/datasets"], [429, 503, 429]

    def busy(request: Request) -> object:
        if answers:
            return Answer({}, answers.pop(), {"retry-after": "0"})
        return datasets(request)

    serve("phoenix", {**routes, "GET /v1/datasets": busy})
    assert _counts(read("phoenix:tasks")) == [("bot", 3, 6, 4)]


def test_a_long_wait_is_left_to_the_user(serve: Serve) -> None:
    asked = serve(
        "phoenix", {"GET /v1/datasets": lambda _: Answer({}, 429, {"retry-after": "3600"})}
    )
    assert "asks to wait 3,600 seconds (HTTP 429)" in _error("phoenix:tasks")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer({"detail": "boom"}, 500), "HTTP 500"),
        (Answer("<html>sign in</html>"), "PHOENIX_BASE_URL to the address of the API"),
        (Answer("", 302, {"location": "https://elsewhere/?key=1"}), "keys are not sent elsewhere"),
        (Answer([1, 2]), "no dataset called 'tasks'"),
        (Answer({"data": [3, None]}), "no dataset called 'tasks'"),
    ],
)
def test_answers_of_something_else(serve: Serve, answer: Answer, expected: str) -> None:
    serve("phoenix", {"GET /v1/datasets": lambda _: answer})
    assert expected in _error("phoenix:tasks")


def test_a_server_that_repeats_its_last_page_ends(serve: Serve) -> None:
    page = {"data": [{"id": "d", "name": "other"}], "next_cursor": "again"}
    asked = serve("phoenix", {"GET /v1/datasets": lambda _: page})
    assert "There are: other" in _error("phoenix:tasks")
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("sqlite:///mlflow.db", "mlflow server --backend-store-uri"),
        ("http://user:" + KEY + "@127.0.0.1:1", "cannot be reached at http://127.0.0.1:1"),
        ("http://", "an http address is needed"),
    ],
)
def test_an_address_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, address: str, expected: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert expected in _error("mlflow:helpdesk")


def test_nothing_there_yet(serve: Serve) -> None:
    serve("phoenix", {**stand_ins.phoenix(), "GET /v1/experiments/x/json": lambda _: []})
    assert "has no results there" in _error("phoenix:tasks")


def test_a_cut_request_without_the_whole_trace_is_refused(serve: Serve) -> None:
    routes = Tracking().routes()
    del routes["GET /api/3.0/mlflow/traces/get"]
    serve("mlflow", routes)
    assert "tasks cannot be told apart" in _error("mlflow:helpdesk")


def test_a_file_of_that_name_wins(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("files")
    monkeypatch.chdir(folder)
    (folder / "mlflow:helpdesk").write_text(json.dumps([{"task": "a", "passed": True}]))
    assert read("mlflow:helpdesk")[0].outcomes.attempts == 1
