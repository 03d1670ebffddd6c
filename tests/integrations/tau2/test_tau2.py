"""tau2-bench as a suite, against a stand-in checkout: the same names, tasks of our own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.readers import read
from passhat.reporting.answers import find_answers
from passhat.store import open_store

Call = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("shop")


def _verdicts(store: str = ".passhat/passhat.db") -> dict[str, list[tuple[str, str]]]:
    """Task to (verdict, why) of its attempts, over the newest run in the store."""
    with open_store(store, must_exist=True) as found:
        run = found.runs()[-1].id
        rows: dict[str, list[tuple[str, str]]] = {}
        for block in found.rows(run):
            for task, _, verdict, why, *_ in block:
                rows.setdefault(str(task), []).append((str(verdict), str(why)))
    return rows


def _run(passhat: Call, agent: str, *more: object, suite: str = "tau2:mock", n: int = 1) -> Any:
    return passhat("run", "-s", suite, "-a", f"python:shop_agents:{agent}", "-n", n, *more)


def test_a_good_agent_passes_everything_and_a_forgetful_one_does_not(passhat: Call) -> None:
    assert _run(passhat, "Good", n=2).code == 0
    good = _verdicts()
    assert good == {
        name: [("1", "")] * 2 for name in ("add_tea", "add_and_tell", "with_history", "both_act")
    }
    assert _run(passhat, "forgets").code == 0
    bad = _verdicts()
    assert bad["add_tea"] == [("0", "wrong_state")]
    assert bad["add_and_tell"] == [("0", "missing_outputs")]
    with open_store(".passhat/passhat.db") as store:
        ended = store.attempt(store.runs()[-1].id, "add_tea", 1)
    assert ended is not None
    assert ended.detail == "DB: things is [], it should be ['tea']"
    assert find_answers(ended.transcript).differences == ('things is [], expected ["tea"]',)


def test_the_tools_are_reached_by_mcp_as_well(passhat: Call) -> None:
    ended = _run(passhat, "by_mcp", "--set", "tools=mcp", "--verbose")
    assert ended.code == 0, ended.err
    assert set(map(tuple, _verdicts().values())) == {(("1", ""),)}, ended.err
    with open_store(".passhat/passhat.db") as store:
        (run,) = store.runs()
        found = store.attempt(run.id, "add_tea", 1)
    assert run.suite == "tau2:mock+mcp"
    assert found is not None
    assert [one["role"] for one in found.transcript[:6]] == [
        *("user", "agent", "tool", "agent", "tool", "agent")
    ]
    assert found.transcript[2]["text"] == "Tool result: 1 things"


def test_the_same_command_extends_and_every_attempt_has_its_seed(passhat: Call) -> None:
    assert "8 of 8" in _run(passhat, "coin", n=2).err
    assert "12 of 12" in _run(passhat, "coin", n=5).err
    with open_store(".passhat/passhat.db") as store:
        (run,) = store.runs()
        seeds = store._db.execute("SELECT seed FROM attempts").fetchall()
    assert run.attempts == 20
    assert len(set(seeds)) == 20
    assert 0 < run.passed < 20


@pytest.mark.parametrize(
    ("agent", "verdict", "why"),
    [
        ("mumbles", "0", "format_error"),
        ("blank", "0", "agent_error"),
        ("errs", "0", "agent_error"),  # too_many_errors
        ("crashes", "-1", "infrastructure"),
    ],
)
def test_faults_of_agent_and_world_are_kept_apart(
    passhat: Call, agent: str, verdict: str, why: str
) -> None:
    code = _run(passhat, agent, "--task", "add_tea").code
    # 4: the only attempt is missing, or no attempt gave an answer
    assert code == (4 if verdict == "-1" or why == "agent_error" else 0)
    assert _verdicts() == {"add_tea": [(verdict, why)]}


@pytest.mark.parametrize(
    ("user", "more", "verdict", "why"),
    [
        ("model/broken", (), "-1", "user_error"),
        ("model/sleepy", ("--set", "step_timeout=1"), "-1", "user_error"),
        ("model/endless", (), "0", "timeout"),  # tau2's own limit of messages
    ],
)
def test_faults_of_the_user_are_not_the_agents(
    passhat: Call, user: str, more: tuple[str, ...], verdict: str, why: str
) -> None:
    code = _run(passhat, "talks", "--task", "add_tea", "--user", user, *more).code
    assert code == (4 if verdict == "-1" else 0)  # 4: the only attempt is missing
    assert _verdicts() == {"add_tea": [(verdict, why)]}
    with open_store(".passhat/passhat.db") as store:
        assert store.protocol(store.runs()[0].id).user_simulator == user


def test_a_broken_judge_is_missing_and_one_kind_of_check_can_be_chosen(passhat: Call) -> None:
    _run(passhat, "Good", suite="tau2:judged")
    assert _verdicts() == {"by_rules": [("1", "")], "by_model": [("-1", "judge_error")]}
    _run(passhat, "Good", suite="tau2:judged@env")
    assert _verdicts() == {"by_rules": [("1", "")], "by_model": [("1", "")]}
    listed = json.loads(passhat("tasks", "tau2:judged", "--json").out)["tasks"]
    assert [one["labels"]["judge"] for one in listed] == ["rules", "model"]


def test_the_results_are_exported_in_tau2s_own_form(passhat: Call, shop: Path) -> None:
    _run(passhat, "Good", "--task", "add_tea", "--task", "both_act", n=3)
    written = passhat("export", ".passhat/passhat.db", "-o", "tau2")
    assert written.code == 0
    (shop / "results.json").write_text(written.out)
    results = json.loads(written.out)
    assert results["info"]["environment_info"]["domain_name"] == "mock"
    assert len(results["simulations"]) == 6
    (run,) = read("results.json")
    assert run.outcomes.c.tolist() == [3, 3]
    assert run.protocol.suite == "tau2:mock"


def _package(folder: Path, registry: str | None) -> Path:
    package = folder / "other" / "src" / "tau2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    if registry is not None:
        (package / "registry.py").write_text(registry)
    return folder / "other"


@pytest.mark.parametrize(
    ("registry", "said"),
    [
        (None, "a chemistry package, not the benchmark"),
        ("import no_such_dependency", "has no module 'no_such_dependency'"),
        ("raise RuntimeError('half a merge')", "half a merge"),
    ],
)
def test_a_checkout_that_cannot_be_used_says_what_to_install(
    passhat: Call, shop: Path, registry: str | None, said: str
) -> None:
    other = _package(shop, registry)
    ended = _run(passhat, "Good", "--set", f"tau2={other}")
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert "git clone" in ended.err or "pip install -e" in ended.err or "import tau2" in ended.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "tau2=nowhere"), "is not a checkout of tau2-bench"),
        (("--set", "tau2_python=./no-python"), "cannot be started"),
        (("--suite", "tau2:shoes"), "there are: judged, mock"),
        (("--suite", "tau2:mock@taste"), "is not a domain of tau2-bench"),
    ],
)
def test_wrong_options_are_explained(passhat: Call, options: tuple[str, ...], said: str) -> None:
    ended = passhat("run", "-s", "tau2:mock", "-a", "python:shop_agents:Good", *options)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


def test_without_a_checkout_it_is_said_how_to_get_one(
    passhat: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PASSHAT_TAU2")
    ended = _run(passhat, "Good")
    assert ended.code == 2
    assert "git clone" in ended.err
    monkeypatch.setenv("PASSHAT_TAU2_PYTHON", sys.executable)
    monkeypatch.setenv("PASSHAT_TAU2", str(Path(__file__).parent / "checkout"))
    assert _run(passhat, "Good", "--task", "add_tea").code == 0


def test_a_check_that_raises_is_the_agents_failure() -> None:
    """An agent that did nothing leaves nothing to look at, and the task's check raises."""
    from passhat.integrations.tau2.worker import is_check_error

    def assert_order_is_shipped() -> bool:
        orders: dict[str, str] = {}
        return orders["o1"] == "shipped"

    def judge_with_a_model() -> bool:
        raise RuntimeError("Missing credentials")

    def plain() -> None:
        assert not "nothing was said"

    for function, expected in (
        (assert_order_is_shipped, True),
        (judge_with_a_model, False),
        (plain, True),
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - any of three
            function()
        assert is_check_error(caught.value) is expected


def test_simulations_are_kept_in_tau2s_own_form(
    passhat: Call, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSHAT_TAU2_SAVE", "kept")
    assert _run(passhat, "coin", n=3).code == 0
    verdicts = {
        task: sorted(int(verdict) for verdict, _ in rows) for task, rows in _verdicts().items()
    }
    kept = json.loads((shop / "kept" / "results.json").read_text())
    assert kept["info"]["num_trials"] == 3
    assert kept["info"]["environment_info"]["domain_name"] == "mock"
    files = list((shop / "kept" / "simulations").iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.stem for path in files} == {one["id"] for one in kept["simulation_index"]}
    for task, passed in verdicts.items():
        own = [one for one in kept["simulation_index"] if one["task_id"] == task]
        assert sorted(one["trial"] for one in own) == [0, 1, 2]
        assert sorted(int(one["reward"]) for one in own) == passed
    (run,) = read(str(shop / "kept"))
    assert (run.outcomes.scored, run.outcomes.passes) == (12, sum(map(sum, verdicts.values())))
    monkeypatch.setenv("PASSHAT_TAU2_SAVE", "")
    assert _run(passhat, "Good").code == 0
    assert len(list((shop / "kept" / "simulations").iterdir())) == 12
