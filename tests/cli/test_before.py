"""What is said before the first attempt, while nothing is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.cli.shared.live import _needs_line
from passhat.runner.preview import preview_run

Passhat = Callable[..., Any]

RUN = ["run", "-s", "jsonl:tasks.jsonl", "-a", "command:cat", "-n", "2"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "yes?")
    return tmp_path


def write(folder: Path, prompt: str, answer: str = "yes") -> None:
    lines = [{"id": f"t{i}", "prompt": prompt, "answer": answer} for i in range(3)]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))


def test_limits_at_first_and_then_what_was_seen(passhat: Passhat) -> None:
    first = passhat(*RUN).err.splitlines()[0]
    assert first == (
        "6 attempts to make: time unknown until the first are done, at most 10 min 00 s, 6 calls"
    )
    more = passhat(*RUN[:-1], "3").err.splitlines()[0]
    assert more.startswith("3 attempts to make: about ")
    assert more.endswith("judging by 6 earlier attempts")
    assert "attempts to make" not in passhat(*RUN).err


def test_temperature_0_is_warned_about_before_the_first_call(passhat: Passhat) -> None:
    said = passhat(*RUN, "--temperature", "0").err
    assert said.index("temperature 0") < said.index("6 of 6 attempts")
    assert "temperature 0" not in passhat(*RUN[:-1], "1", "--temperature", "0", "--seed", "1").err


def test_a_suite_that_changed_is_pointed_out_before_anything_is_made(
    passhat: Passhat, here: Path
) -> None:
    assert "changed" not in passhat(*RUN).err
    (first,) = json.loads(passhat("runs", "--json").out)["runs"]
    write(here, "really?")
    said = passhat(*RUN).err
    assert f"changed since run {first['id']}" in said
    assert "it has other tasks," in said
    assert said.index("changed since") < said.index("6 of 6 attempts")
    # Going on with that run is no news, unless it is compared with another by name.
    assert "changed" not in passhat(*RUN[:-1], "3").err
    assert "changed since" in passhat(*RUN[:-1], "4", "--set", f"baseline={first['id']}").err
    write(here, "really?", answer="no")
    assert "it has another judge," in passhat(*RUN).err
    assert passhat(*RUN[:-1], "5", "--set", "baseline=zzz").code == 2


PRICED = """
from passhat.agents import Agent, Session
from passhat.agents.prices import Price

class Priced(Agent, Session):
    name = "priced"
    price = Price(input=1.0, output=10.0)
    async def session(self, attempt):
        return self
    async def answer(self, turn):
        return "yes"
"""


def test_a_price_makes_an_estimate_of_the_cost(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from passhat.cli.shared.live import print_preview
    from passhat.runner.run_spec import RunSpec
    from passhat.store import open_store

    names: dict[str, Any] = {}
    exec(PRICED, names)
    plan = RunSpec(suite="jsonl:tasks.jsonl", agent=names["Priced"](), attempts=2).plan()
    with open_store(str(here / "x.db")) as store:
        print_preview(plan, store)
    # 6 calls of 500 and 50 tokens to 180 calls of 4,000 and 500
    expected = "6 calls, $0.006 to $0.054 at 500 to 4,000 tokens a call"
    assert expected in capsys.readouterr().err


def test_a_bound_of_days_is_not_printed() -> None:
    """All limits of 4,000 attempts together say nothing about a run of seconds."""
    line = _needs_line(preview_run(4_000, jobs=8, max_steps=1), at_most=300_000.0)
    assert line == "4,000 attempts to make: time unknown until the first are done, 4,000 calls"
