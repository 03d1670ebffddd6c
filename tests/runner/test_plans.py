"""What a run's options come to: the plan and the protocol, or the words of the refusal.

``plans.json`` has all of it for one option after the other.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

from kept_results import check_results
from passhat.agents.base import Agent, AttemptInfo, Session
from passhat.agents.prices import PriceTable
from passhat.errors import PasshatError
from passhat.judging.bench import JudgingChoice
from passhat.protocol import Question
from passhat.runner.run_spec import RunSpec
from passhat.runner.spending import Spending
from passhat.runner.task_choice import Shard, choose_tasks
from passhat.suites.base import Episode, Suite, Task


class _Asks(Suite):
    name = "asks"
    tasks = tuple(Task(f"t{number}", f"{number}?") for number in range(5))
    judge_fingerprint = "j1"
    max_steps, step_seconds, attempt_seconds = 7, 8.0, 9.0
    takes_reference = True

    def episode(self, task: Task, seed: int) -> Episode:
        raise NotImplementedError(f"{task} {seed}")


class _Elsewhere(_Asks):
    name = "elsewhere"
    harness = "other"


class _Mine(Agent):
    name = "mine"
    decoding = MappingProxyType({"temperature": 0.5, "effort": "low"})

    async def session(self, attempt: AttemptInfo) -> Session:
        raise NotImplementedError(str(attempt))


CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "late answers are missing": {"timeouts_are": "missing"},
    "late answers are odd": {"timeouts_are": "odd"},
    "no attempts": {"attempts": 0},
    "half an attempt": {"attempts": 0.5},
    "true attempts": {"attempts": True},
    "no jobs": {"jobs": 0},
    "one job": {"jobs": 1, "attempts": 1},
    "tools": {"tools": "odd"},
    "limits": {"max_steps": 3, "step_seconds": 4.0, "attempt_seconds": 5.0},
    "sampling": {"temperature": 0.0, "top_p": 0.5, "seed": 3, "canary": False},
    "a reference": {"canary": True},
    "a name": {"name": "night", "revision": "abc"},
    "a question": {"question": Question("pass^2", "greater", 0.9)},
    "a rule": {"stop_when": ("pass^1 >= 0.5",)},
    "a rule of a shard": {"stop_when": ("pass^1 >= 0.5",), "shard": Shard(1, 2)},
    "tasks by name and place": {"tasks": ("t3", "0", "t3")},
    "a task beyond the last": {"tasks": ("5",)},
    "the last task": {"tasks": ("4",)},
    "an unknown task": {"tasks": ("x",)},
    "some tasks": {"random_tasks": 2},
    "some tasks by another seed": {"random_tasks": 2, "seed": 1},
    "all tasks at random": {"random_tasks": 5},
    "no tasks at random": {"random_tasks": 0},
    "more tasks than there are": {"random_tasks": 6},
    "more than the chosen": {"random_tasks": 2, "tasks": ("t1",)},
    "the first shard": {"shard": Shard(1, 2)},
    "the second shard": {"shard": Shard(2, 2)},
    "a shard of nothing": {"shard": Shard(6, 6)},
    "isolated": {"isolate": True},
    "a harness": {"suite": _Elsewhere()},
    "judging": {"judging": JudgingChoice()},
    "a cap": {"spending": Spending(cost=1.0)},
    "a rate": {"spending": Spending(rates={"openai": 2.0})},
    "no suite": {"suite": "no such file.jsonl"},
}  # fmt: skip


def _facts(options: dict[str, Any]) -> object:
    try:
        spec = RunSpec(**{"agent": _Mine(), "suite": _Asks(), "prices": PriceTable({}), **options})
        loaded = spec.load()
        plan = spec.plan(loaded)
    except PasshatError as error:
        return f"{type(error).__name__}: {error}"
    names = (
        *("jobs", "seed", "temperature", "top_p", "stop_when", "give_up_after"),
        *("keep_going", "wait", "canary", "timeouts_are_missing"),
    )
    protocol = plan.record.protocol.to_dict()
    return {
        **{name: getattr(plan, name) for name in names},
        "run": [plan.record.id, plan.record.name, plan.record.revision, plan.record.agent],
        "tasks": [[task.id for task in plan.record.tasks], [task.id for task in plan.tasks]],
        "attempts": [plan.attempts.each, list(plan.order_attempts())],
        "limits": plan.limits,
        "protocol": {name: value for name, value in protocol.items() if value is not None},
        "models": [type(model).__name__ for model in loaded.models],
        "portable": spec.is_portable,
    }


def _shards() -> dict[str, object]:
    found: dict[str, object] = {}
    for text in ("1/1", " 2 / 3 ", "3/3", "4/3", "0/3", "1/0", "-1/3", "1", "a/b", "1/2/3"):
        try:
            shard = Shard.of_text(text)
            found[f"shard {text!r}"] = [str(shard), [one.id for one in shard.of(_Asks.tasks)]]
        except PasshatError as error:
            found[f"shard {text!r}"] = str(error)
    return found


def test_every_option_of_a_plan() -> None:
    results = {name: _facts(options) for name, options in CASES.items()}
    results["chosen"] = [task.id for task in choose_tasks(_Asks(), ("t1", "t2", "t4"), 2, 7)]
    check_results(Path(__file__).with_name("plans.json"), results | _shards())
