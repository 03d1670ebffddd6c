"""The built-in suite: right programs pass, listed mistakes do not, and no test is idle."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from passhat.judging.bench import judge_all
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import SandboxKind
from passhat.suites.ordercode import ORDER_TASKS, OrderTask, demo_samples, ordercode

IDS = [one.task.entry_point for one in ORDER_TASKS]


def holds(one: OrderTask, body: str, test: str) -> bool:
    """Run our own program against one of our own tests, in this process."""
    names: dict[str, object] = {}
    exec(one.task.tests.partition("def check")[0] + one.task.program(body), names)
    names["f"] = names[one.task.entry_point]
    try:
        return bool(eval(test, names))
    except Exception:
        return False


def test_thirty_tasks_in_three_bands() -> None:
    assert Counter(one.band for one in ORDER_TASKS) == {"easy": 10, "middle": 10, "hard": 10}
    assert len(ordercode().tasks) == 30


@pytest.mark.parametrize("one", ORDER_TASKS, ids=IDS)
def test_a_task_is_sound(one: OrderTask) -> None:
    assert all(holds(one, one.task.canonical, test) for test in one.tests)
    kills = {test: [not holds(one, body, test) for body in one.wrong] for test in one.tests}
    idle = [test for test, killed in kills.items() if not any(killed)]
    assert idle == []
    alive = [body for i, body in enumerate(one.wrong) if not any(k[i] for k in kills.values())]
    assert alive == []


@pytest.mark.parametrize("one", ORDER_TASKS, ids=IDS)
def test_the_visible_example_is_true(one: OrderTask) -> None:
    call, _, answer = one.task.prompt.partition(">>> ")[2].partition("\n")
    names: dict[str, object] = {}
    exec(one.task.program(one.task.canonical), names)
    assert eval(call, names) == eval(answer.strip().partition("\n")[0])


def test_the_judge_agrees(best: SandboxKind, interpreter: Interpreter) -> None:
    work = [(one.task, one.task.program(one.task.canonical)) for one in ORDER_TASKS]
    work += [(one.task, one.task.program(one.wrong[0])) for one in ORDER_TASKS]
    found = dict(judge_all(work, kind=best, interpreter=interpreter, jobs=2))
    assert [int(found[i].verdict) for i in range(60)] == [1] * 30 + [0] * 30


def test_demo_coders_get_worse_with_temperature() -> None:
    right = {one.task.id: one.task.canonical for one in ORDER_TASKS}
    shares = []
    for temperature in (0.0, 1.0, 5.0):
        samples = demo_samples(np.random.default_rng(1), temperature, attempts=20)
        shares.append(np.mean([right[s["task_id"]] == s["completion"] for s in samples]))
    assert shares[0] == 1
    assert shares[0] > shares[1] > shares[2]
