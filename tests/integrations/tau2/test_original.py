"""The original tau-bench as a suite, against a stand-in checkout: the same names, our own tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import pytest

from passhat import estimate, read
from passhat.store import open_store
from passhat.suites.registry import load_suite

Call = Callable[..., Any]

FILES = {
    "tau_bench/__init__.py": "",
    "tau_bench/types.py": """
class Plain:
    def __init__(self, **fields):
        self.__dict__.update(fields)
    def model_dump(self, mode="python"):
        return {name: [one.__dict__ if isinstance(one, Plain) else one for one in value]
                if isinstance(value, list) else value for name, value in self.__dict__.items()}

class Action(Plain):
    pass
""",
    "tau_bench/envs/user.py": """
class Model:
    def __init__(self, model, provider):
        self.model, self.said = model, 0
        assert provider == "shop", provider
        if model == "no-key":
            raise RuntimeError("no key")
    def reset(self, instruction=None):
        return "hello"
    def step(self, content):
        self.said += 1
        if self.model == "breaks":
            raise RuntimeError("out of order")
        return "go on" if self.said < 3 else "###STOP###"
    def get_total_cost(self):
        return 0.0

def load_user(user_strategy, model="gpt-4o", provider=None):
    return None if user_strategy == "human" else Model(model, provider)
""",
    "tau_bench/envs/__init__.py": """
from tau_bench.envs.user import load_user
from tau_bench.types import Action, Plain

def tool(name):
    return {"type": "function", "function": {"name": name, "description": f"{name} it.",
            "parameters": {"type": "object", "properties": {"thing": {"type": "string"}}}}}

class Env:
    tools_info = [tool("add"), tool("transfer")]
    wiki = "Be brief."

    def __init__(self, tasks, user):
        self.tasks, self.user, self.data = tasks, user, {"things": []}

    def reset(self, task_index):
        self.task, self.data, self.actions = self.tasks[task_index], {"things": []}, []
        return Plain(observation=self.user.reset(instruction=self.task.instruction))

    def step(self, action):
        self.actions.append(action)
        info, done, source = Plain(reward_info=None, source=action.name), False, action.name
        if action.name == "respond":
            info.source, text = "user", self.user.step(action.kwargs["content"])
            done = "###STOP###" in text
        elif action.name == "add":
            if "thing" not in action.kwargs:
                text = "Error: no thing"
            else:
                self.data["things"].append(action.kwargs["thing"])
                text = f"{len(self.data['things'])} things"
        else:
            text, done = "transferred", action.name == "transfer"
        reward = 0.0
        if done:
            info.reward_info = self.judge()
            reward = info.reward_info.reward
        return Plain(observation=text, reward=reward, done=done, info=info)

    def judge(self):
        if self.task.instruction == "cannot be judged":
            raise KeyError("gold")
        right = self.data["things"] == [one.kwargs["thing"] for one in self.task.actions]
        said = " ".join(one.kwargs["content"] for one in self.actions if one.name == "respond")
        info = Plain(r_actions=float(right))
        if self.task.outputs:
            info = Plain(r_outputs=float(all(one in said for one in self.task.outputs)))
        return Plain(reward=float(right and getattr(info, "r_outputs", 1.0)), info=info)

def get_env(name, user_strategy, user_model, task_split, user_provider=None, task_index=None):
    if name != "shop":
        raise ValueError(f"Unknown environment: {name}")
    gold = lambda *things: [Action(name="add", kwargs={"thing": one}) for one in things]
    tasks = [Plain(user_id="u", instruction="Tea, please?", actions=gold("tea"), outputs=[]),
             Plain(user_id="u", instruction="How many?", actions=[], outputs=["7"]),
             Plain(user_id="u", instruction="cannot be judged", actions=[], outputs=[])]
    return Env(tasks[:2] if task_split == "train" else tasks, load_user(user_strategy))
""",
    "original_agents.py": """
import json

def call(name, **arguments):
    return "<json>" + json.dumps({"name": name, "arguments": arguments}) + "</json>"

class Coin:
    def __init__(self):
        self.turns = []
    def __call__(self, prompt, attempt):
        self.turns.append(prompt)
        if len(self.turns) == 1:
            assert "Be brief." in prompt and "- add: add it." in prompt
            if attempt.task == "0" and attempt.seed % 2:
                return call("add", thing="tea")
            if attempt.task == "0":
                return call("add")
        elif len(self.turns) == 2 and attempt.task == "0":
            assert prompt in ("Tool result: 1 things", "Tool result: Error: no thing")
        return call("respond", content="7." if attempt.seed % 3 else "Done.")

def talks(prompt):
    return call("respond", content="I am looking into it.")

def asks(prompt):
    return call("respond", content="What else?")

def transfers(prompt):
    return call("transfer")
""",
}


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "original_agents", raising=False)
    monkeypatch.setenv("PASSHAT_TAU2", str(tmp_path))
    monkeypatch.delenv("PASSHAT_TAU2_PYTHON", raising=False)
    return tmp_path


def _run(passhat: Call, agent: str, *more: object, suite: str = "tau2:original/shop") -> Any:
    return passhat("run", "-s", suite, "-a", f"python:original_agents:{agent}", *more)


def _ends() -> dict[tuple[str, int], tuple[str, str]]:
    with open_store(must_exist=True) as store:
        run = store.runs()[-1].id
        return {
            (str(row[0]), int(str(row[1]))): (str(row[2]), str(row[3]))
            for block in store.rows(run)
            for row in block
        }


def test_rewards_and_pass_hat_are_those_of_tau_bench(passhat: Call) -> None:
    ended = _run(passhat, "Coin", "-n", 8, suite="tau2:original/shop-train")
    assert ended.code == 0, ended.err
    ends = _ends()
    assert len(ends) == 16
    passes = {"0": 0, "1": 0}
    with open_store(must_exist=True) as store:
        run = store.runs()[-1].id
        for (task, number), (verdict, why) in ends.items():
            attempt = store.attempt(run, task, number)
            assert attempt is not None
            assert attempt.seed is not None
            right = attempt.seed % 2 if task == "0" else attempt.seed % 3
            passes[task] += bool(right)
            category = "wrong_state" if task == "0" else "missing_outputs"
            assert (verdict, why) == (("1", "") if right else ("0", category))
    # tau-bench's own formula, C(c, k) / C(n, k), mean over tasks.
    own = sum(comb(count, 2) / comb(8, 2) for count in passes.values()) / 2
    (read_run,) = read(".passhat/passhat.db")
    assert estimate(read_run, "pass^2").value == pytest.approx(own)


@pytest.mark.parametrize(
    ("agent", "task", "more", "end"),
    [
        ("transfers", "1", (), ("0", "missing_outputs")),
        ("talks", "2", (), ("-1", "judge_error")),
        ("asks", "0", ("--set", "max_steps=3"), ("0", "timeout")),
        ("talks", "0", ("--user", "shop/breaks"), ("-1", "user_error")),
        ("talks", "0", ("--user", "shop/no-key"), ("-1", "user_error")),
        ("talks", "1", ("--user", "shop/model"), ("0", "missing_outputs")),
    ],
    ids=["terminal-tool", "judge", "steps", "user", "user-without-key", "model-user"],
)
def test_ends(
    passhat: Call, agent: str, task: str, more: tuple[str, ...], end: tuple[str, str]
) -> None:
    _run(passhat, agent, "-n", 1, "--task", task, "--keep-going", *more)
    assert _ends() == {(task, 1): end}


def test_thirty_turns_are_the_limit() -> None:
    assert load_suite("tau2:original/shop").max_steps == 30
    assert load_suite("tau2:retail").max_steps == 100


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        ("tau2:original/bank", "there is no domain 'bank'"),
        ("tau2:original/shop@env", "is not a domain"),
        ("tau2:shop", "name its domains as tau2:original/DOMAIN"),
        ("tau2:original/", "is not a domain"),
    ],
)
def test_a_wrong_word(passhat: Call, suite: str, words: str) -> None:
    ended = _run(passhat, "talks", suite=suite)
    assert ended.code == 2
    assert words in ended.err


def test_a_checkout_of_the_other_version(passhat: Call, shop: Path) -> None:
    (shop / "tau_bench").rename(shop / "other")
    (shop / "src" / "tau2").mkdir(parents=True)
    ended = _run(passhat, "talks")
    assert ended.code == 2
    assert "name its domains as tau2:DOMAIN" in ended.err
