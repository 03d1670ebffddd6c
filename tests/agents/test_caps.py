"""A cap holds: against a server that counts as it likes, with many attempts at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from passhat.cli.shared.exits import ExitCode
from passhat.runner import spending
from passhat.store import AttemptRecord, open_store
from passhat.suites.base import Judgement

if TYPE_CHECKING:
    from tests.agents.conftest import Answer, Body

Passhat = Callable[..., Any]
Serve = Callable[..., Any]
TASKS = ("run", "-s", "jsonl:tasks.jsonl")
MODEL = "small@{}/v1?max_output_tokens=200"


def dice(answer: Callable[..., Answer], seed: int) -> Callable[[Body], Answer]:
    """Usage as a real server would count it: within the request and its limit, otherwise wild."""
    rolls = random.Random(seed)

    def script(body: Body) -> Answer:
        prompt = len(str(body["messages"])) // 2
        outputs = rolls.choice([1, 20, body["max_tokens"]])
        return answer("yes", inputs=rolls.randint(1, prompt), outputs=outputs)

    return script


def dollars(served: list[Answer]) -> float:
    return sum(one.inputs * 1.0 + one.outputs * 4.0 for one in served) / 1e6


def stored() -> list[Any]:
    with open_store() as store:
        return [row for run in store.runs() for block in store.rows(run.id) for row in block]


@pytest.mark.parametrize(
    ("way", "seed"),
    [
        *(("local", seed) for seed in range(2)),
        pytest.param("ray", 2, marks=pytest.mark.xdist_group("ray")),
    ],
    indirect=["way"],
)
@pytest.mark.usefixtures("questions", "way")
def test_what_is_spent_never_passes_the_budget(
    passhat: Passhat, serve: Serve, answer: Any, seed: int
) -> None:
    cap = random.Random(seed).uniform(0.008, 0.015)
    with serve(dice(answer, seed)) as (url, server):
        command = (*TASKS, "-a", f"openai:{MODEL.format(url)}", "-n", "14", "--jobs", "40")
        ended = passhat(*command, "--budget", str(cap), "--set", "max_steps=2")
        spent = dollars(server.served)
        assert 0 < spent <= cap
        assert spent > cap / 2, "a cap that stops long before it is reached is no use either"
        assert ended.code == ExitCode.INCOMPLETE
        assert "the cap is reached" in ended.err
        assert "larger --budget continues" in ended.err
        # What was not made is not in the store, and what was made is there with its cost.
        rows = stored()
        assert sum(row[7] for row in rows) == pytest.approx(spent)
        assert f"{70 - len(rows):,} attempts not made" in ended.err
        # The same command spends nothing more: the cap is the run's, not the command's.
        again = passhat(*command, "--budget", str(cap), "--set", "max_steps=2")
        assert again.code == ExitCode.INCOMPLETE
        assert dollars(server.served) <= cap
        # A larger one goes on to the end.
        assert passhat(*command, "--budget", "1", "--set", "max_steps=2").code == ExitCode.OK
    assert len(stored()) == 70


@pytest.mark.usefixtures("questions", "way")
def test_tokens_have_a_cap_of_their_own_and_need_no_price(
    passhat: Passhat, serve: Serve, answer: Any
) -> None:
    with serve(dice(answer, 1)) as (url, server):
        ended = passhat(
            *(*TASKS, "-a", f"openai:nameless@{url}/v1?max_output_tokens=200", "-n", "60"),
            *("--jobs", "20", "--set", "max_tokens=5000"),
        )
    assert ended.code == ExitCode.INCOMPLETE
    assert "max_tokens continues" in ended.err
    assert 2500 < sum(one.inputs + one.outputs for one in server.served) <= 5000


@pytest.mark.usefixtures("questions", "way")
def test_a_conversation_that_grows_past_its_share_is_cut_off_before_the_cap(
    passhat: Passhat, serve: Serve, answer: Callable[..., Answer]
) -> None:
    def endless(body: Body) -> Answer:
        tokens = len(str(body["messages"])) // 4
        return answer(calls=(("get_order", {"order": "R-2101"}),), inputs=tokens, outputs=20)

    with serve(endless) as (url, server):
        ended = passhat(
            *("run", "-s", "orderdesk/retail", "-a", f"openai:{MODEL.format(url)}", "-n", "2"),
            *("--budget", "0.05", "--jobs", "10"),
        )
    assert dollars(server.served) <= 0.05
    assert ended.code == ExitCode.INCOMPLETE
    reasons = Counter(str(row[3]) for row in stored())
    assert set(reasons) <= {"budget", "timeout"}
    assert reasons["budget"]
    assert "cut off" in ended.err


@pytest.mark.usefixtures("questions")
def test_two_runners_of_one_run_share_its_cap(
    passhat: Passhat, serve: Serve, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another runner finishes attempts of the same run while this one is at work."""
    monkeypatch.setattr(spending, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(spending, "_LOOK_FACTOR", 0.0)  # else a slow machine looks too rarely
    command = (*TASKS, "-n", "40", "--set", "max_steps=2", "--jobs", "4", "--budget", "0.01")
    others: list[Any] = []

    def script(_body: Body) -> Answer:
        # 0.0002 dollars each; after the tenth, another runner has used more than half of the cap.
        if len(server.served) == 10:
            with open_store() as store:
                (run,) = store.runs()
                wanted = [(f"t{task}", number) for number in range(36, 41) for task in range(5)]
                others[:] = store.claim(run.id, wanted)
                store.finish(run.id, [_used(one, 0.00024) for one in others])
        return answer("yes", inputs=120, outputs=20)  # type: ignore[no-any-return]

    with serve(script) as (url, server):
        ended = passhat(*command, "-a", f"openai:{MODEL.format(url)}")
    assert len(others) == 25
    assert ended.code == ExitCode.INCOMPLETE
    assert 0.008 < dollars(server.served) + 25 * 0.00024 <= 0.01
    assert sum(row[7] for row in stored()) == pytest.approx(dollars(server.served) + 0.006)


def _used(one: tuple[str, int], cost: float) -> AttemptRecord:
    return AttemptRecord(*one, Judgement.passed(), tokens=140.0, cost=cost)


@pytest.mark.usefixtures("questions")
def test_a_budget_without_a_price_is_refused_before_the_first_call(
    passhat: Passhat, serve: Serve, answer: Any
) -> None:
    with serve(lambda _body: answer("yes")) as (url, server):
        ended = passhat(*TASKS, "-a", f"openai:nameless@{url}/v1", "--budget", "5.00")
        assert ended.code == ExitCode.USAGE
        assert "no price for openai:nameless" in ended.err
        assert "passhat-prices.toml" in ended.err
        ended = passhat(
            *("run", "-s", "orderdesk/retail", "-a", f"openai:small@{url}/v1"),
            *("--user", f"openai:nameless@{url}/v1", "--budget", "5.00"),
        )
        assert "no price for openai:nameless" in ended.err
        assert not server.requests
    ended = passhat(*TASKS, "-a", "python:json:dumps", "--budget", "5.00")
    assert (ended.code, "does not say what it uses" in ended.err) == (ExitCode.INCOMPLETE, True)
    ended = passhat(*TASKS, "-a", "python:json:dumps", "--budget", "0")
    assert (ended.code, "more than 0" in ended.err) == (ExitCode.USAGE, True)


@pytest.mark.usefixtures("questions", "way")
def test_a_cap_below_a_single_call_makes_nothing_and_says_why(
    passhat: Passhat, serve: Serve, answer: Any
) -> None:
    with serve(lambda _body: answer("yes")) as (url, server):
        ended = passhat(*TASKS, "-a", f"openai:{MODEL.format(url)}", "--budget", "0.0001")
        assert not server.requests
    assert ended.code == ExitCode.INCOMPLETE
    assert "Not one call was sure to fit" in ended.err
    assert stored() == []
