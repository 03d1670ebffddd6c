"""Runs whose attempts differ by task: made, continued, split, shown, and kept apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passhat as api
from passhat.agents import AttemptInfo
from passhat.dashboard.run_summaries import Summaries
from passhat.errors import InvalidValue
from passhat.readers.store import run_from_store
from passhat.runner.run_spec import RunSpec
from passhat.runner.task_choice import distribute_attempts
from passhat.stats.plan import Allocation, EarlierRun, allocate, plan_tasks
from passhat.store import PlannedAttempts, open_store
from passhat.store.opening import open_reading
from passhat.suites import load_suite

Passhat = Callable[..., Any]
SUITE = "orderdesk/retail"
EARLIER = EarlierRun(name="base", id="0123456789", suite=SUITE, attempts=8)
RUN = ["run", "-s", SUITE, "-a", "demo:hasty", "--random", "6"]


def _tasks() -> list[str]:
    return [task.id for task in load_suite(SUITE).tasks]


def _plan_file(folder: Path, attempts: dict[str, int], **changes: object) -> str:
    """A plan as ``passhat plan -o`` writes it."""
    made = {
        "metric": "pass^2",
        "others": 3,
        "earlier": {"name": "base", "id": "0123456789", "suite": SUITE},
        "attempts": attempts,
    }
    path = folder / "plan.json"
    data = {"schema": "passhat.plan/1", "allocation": made | changes}
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


def _made(place: str) -> Counter[str]:
    with open_store(place, must_exist=True) as store:
        (run,) = store.runs()
        return Counter(task for task, _, _ in store.verdicts(run.id))


def _by_position() -> dict[str, int]:
    return {task: 2 + place % 4 for place, task in enumerate(_tasks())}


@pytest.mark.usefixtures("way")
def test_every_task_gets_its_number_and_the_same_command_goes_on(
    passhat: Passhat, folder: Path
) -> None:
    wanted = _by_position()
    plan = _plan_file(folder, wanted)
    ended = passhat(*RUN, "--attempts", plan)
    assert ended.code == 0
    made = _made(".passhat/passhat.db")
    assert len(made) == 6
    assert made == {task: wanted[task] for task in made}
    total = sum(made.values())
    assert f"{total} attempts to make" in ended.err
    assert f"{total} of {total} attempts" in ended.err
    again = passhat(*RUN, "--attempts", plan)
    assert again.code == 0
    assert "attempts to make" not in again.err
    with open_store(".passhat/passhat.db", must_exist=True) as store:
        (run,) = store.runs()
        assert (run.status, run.total, run.planned) == ("complete", total, max(made.values()))
        read = run_from_store(store, run)
    assert read.protocol.attempts is None
    numbers = f"{min(made.values())} to {run.planned} by task"
    assert read.protocol.allocation == f"{numbers} for pass^2, from run 0123456789"
    assert read.planned is not None
    assert read.planned.tolist() == [wanted[task] for task in read.outcomes.tasks]
    full = passhat("report", "latest", "--full").out
    assert "attempts per task were planned" in " ".join(full.split())
    assert "fewer scored attempts" not in full


@pytest.mark.usefixtures("way")
def test_merged_shards_have_all_attempts(passhat: Passhat, folder: Path) -> None:
    plan = _plan_file(folder, _by_position())
    for number in (1, 2):
        shard = ["--store", f"part{number}.db", "--shard", f"{number}/2"]
        assert passhat(*RUN, "--attempts", plan, *shard).code == 0
    assert passhat("store", "merge", "part1.db", "part2.db", "--store", "merged.db").code == 0
    assert passhat(*RUN, "--attempts", plan, "--store", "whole.db").code == 0
    assert _made("merged.db") == _made("whole.db")
    with open_store("merged.db") as store:
        assert store.runs()[0].status == "complete"
    other = _plan_file(folder, dict.fromkeys(_tasks()[:-1], 2) | {_tasks()[-1]: 3})
    assert passhat(*RUN, "--attempts", other, "--store", "other.db").code == 0
    refused = passhat("store", "merge", "other.db", "--store", "merged.db")
    assert refused.code != 0
    assert "other numbers of attempts per task" in refused.err


def test_the_dashboard_counts_what_is_planned(passhat: Passhat, folder: Path) -> None:
    plan = _plan_file(folder, _by_position())
    assert passhat(*RUN, "--attempts", plan, "--shard", "1/2").code == 0
    with open_reading(str(folder / ".passhat/passhat.db")) as reading:
        (summary,) = Summaries(reading).all()
        planned = reading.plan_of(summary.head.key)
    assert summary.total == sum(planned.by_task.values()) > summary.counts.attempts
    assert summary.status == "stopped"


def test_the_list_of_runs_averages_over_tasks(passhat: Passhat, folder: Path) -> None:
    tasks = {f"t{i}": 20 if i == 0 else 2 for i in range(5)}
    plan = _plan_file(folder, tasks, earlier={"name": "base"})
    ran = ["run", "-s", "jsonl:tasks.jsonl", "-a", "python:one_fails:agent", "--attempts", plan]
    (folder / "one_fails.py").write_text(
        "def agent(prompt, attempt):\n    return 'no' if attempt.task == 't0' else 'yes'\n"
    )
    assert passhat(*ran).code == 0
    assert "80%" in passhat("runs").out  # of the tasks; of the attempts 29%


def test_tasks_that_are_new_get_the_uniform_number(passhat: Passhat, folder: Path) -> None:
    known = dict.fromkeys(_tasks()[2:], 2)
    suite = load_suite(SUITE)
    messages: list[str] = []
    allocation = Allocation(
        *("pass^2", tuple(known), tuple(known.values()), 5, EARLIER, 0.95, 0.1, 0.1, 99)
    )
    planned = distribute_attempts(allocation, suite, suite.tasks, messages.append)
    assert [planned.of(task) for task in _tasks()[:3]] == [5, 5, 2]
    assert "2 tasks not in run 0123456789" in messages[0]
    ended = passhat(*RUN, "--attempts", _plan_file(folder, known))
    assert ended.code == 0


def test_an_allocation_for_another_suite_is_refused(passhat: Passhat, folder: Path) -> None:
    earlier = {"name": "x", "suite": "orderdesk/airline", "suite_fingerprint": "other"}
    ended = passhat(*RUN, "--attempts", _plan_file(folder, _by_position(), earlier=earlier))
    assert ended.code == 2
    assert "another suite, orderdesk/airline" in ended.err
    strange = {f"other/{i}": 4 for i in range(24)}
    ended = passhat(*RUN, "--attempts", _plan_file(folder, strange))
    assert ended.code == 2
    assert "has 0 of the 6 tasks" in ended.err
    assert not (folder / ".passhat").exists()


def test_an_allocation_from_the_run_itself_is_refused(passhat: Passhat, folder: Path) -> None:
    assert passhat(*RUN, "-n", "4").code == 0
    for word in ("latest", ".passhat/passhat.db"):
        ended = passhat(*RUN, "--set", f"attempts_from={word}")
        assert ended.code == 2
        assert "bias" in ended.err
        assert "--name" in ended.err
    # Also by way of a file that does not know the run's id.
    (folder / "copy.jsonl").write_text(passhat("export", "latest").out, encoding="utf-8")
    assert "bias" in passhat(*RUN, "--set", "attempts_from=copy.jsonl").err
    ended = passhat(
        *RUN, "--set", "attempts_from=latest", "--set", "attempts_total=26", "--name", "new"
    )
    assert ended.code == 0
    with open_store(".passhat/passhat.db") as store:
        new = store.find("new")
        assert new.total <= 26
        assert new.plan.source["id"] == store.runs()[0].id


def test_a_run_keeps_the_numbers_it_was_begun_with(passhat: Passhat, folder: Path) -> None:
    plan = _plan_file(folder, _by_position())
    assert passhat(*RUN, "--attempts", plan).code == 0
    for other in ("4", _plan_file(folder, dict.fromkeys(_tasks(), 3))):
        ended = passhat(*RUN, "--attempts", other)
        assert ended.code == 2
        assert "begun with other numbers of attempts per task" in ended.err


def test_what_is_no_number_and_no_plan(passhat: Passhat, folder: Path) -> None:
    (folder / "notes.json").write_text("{}")
    for word, message in (
        ("many", "neither a whole number nor a plan"),
        ("notes.json", "is not a plan"),
        ("0", "at least 1"),
    ):
        ended = passhat(*RUN, "--attempts", word)
        assert ended.code == 2
        assert message in ended.err
    assert "go with attempts_from" in passhat(*RUN, "--set", "attempts_total=40").err
    plan = _plan_file(folder, _by_position())
    assert "--stop-when" in passhat(*RUN, "--attempts", plan, "--stop-when", "rate > 0.5").err
    both = passhat(*RUN, "--attempts", "4", "--set", "attempts_from=latest")
    assert "both say how many" in both.err


def test_python_takes_a_plan(folder: Path) -> None:
    tasks = [{"id": f"t{i}", "prompt": str(i), "answer": "yes"} for i in range(6)]

    def agent(prompt: str, attempt: AttemptInfo) -> str:
        return "yes" if prompt in "012" or (prompt in "34" and attempt.seed % 2) else "no"

    earlier = api.run(agent, tasks, n=4, store=str(folder / "runs.db"), progress=False)
    made = allocate(earlier, metric="pass^2", budget=30)
    assert made.allocation is not None
    run = api.run(agent, tasks, n=made, store=str(folder / "runs.db"), name="again", progress=False)
    assert run.outcomes.attempts == made.allocation.total
    with pytest.raises(InvalidValue, match="how many at which task"):
        api.run(agent, tasks, n=plan_tasks(mean=0.5, icc=0.3, detect=0.1), progress=False)


def test_planned_attempts_survive_the_store() -> None:
    planned = PlannedAttempts(5, {"a": 2, "b": 5}, {"id": "x", "metric": "pass^2"})
    assert PlannedAttempts.from_text(planned.text, 5) == planned
    assert (planned.fewest, planned.total(["a", "b"])) == (2, 7)
    assert PlannedAttempts.from_text("", 4) == PlannedAttempts(4)
    with pytest.raises(InvalidValue, match="whole number"):
        RunSpec(agent="demo:hasty", suite=SUITE, attempts=0)
