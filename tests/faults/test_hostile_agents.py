"""What an agent does to its process costs its own attempt; the good half of a run is all there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import hostile_agents

from passhat.store import open_store

ATTEMPTS = int(os.environ.get("PASSHAT_ATTEMPTS", "6"))
"""Of each of two tasks, one good and one bad."""
FAILING = {
    *("ends_its_process", "ends_its_process_with_an_error", "exits", "interrupts", "aborts"),
    *("raises_another_base", "raises_without_text", "raises_a_novel", "is_killed", "recurses"),
    *("terminates_itself", "sends_itself_ctrl_c", "reads_at_null", "kills_its_group"),
    *("closes_descriptors", "runs_out_of_memory", "forks_and_the_child_stays", "stops_iterating"),
    *("answers_a_number", "answers_half_a_letter", "answers_too_much", "cancels_itself"),
    *("cancels_all_tasks", "stops_the_loop", "exits_in_a_task"),
}
"""Harms that fail their attempt at once; others leave an answer, and the next attempt is fresh."""


def test_the_battery_is_large() -> None:
    assert len(hostile_agents.AGENTS) >= 80


NAMES = sorted(hostile_agents.AGENTS)
GROUPS = [NAMES[start::10] for start in range(10)]


@pytest.mark.parametrize("names", GROUPS, ids=[names[0] for names in GROUPS])
def test_a_harm_costs_its_own_attempt(names: list[str], tmp_path: Path) -> None:
    lines = [{"id": word, "prompt": word, "answer": "yes"} for word in ("bad", "good")]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _run_apart([_spec(name) for name in names], tmp_path)
    for name in names:
        assert (tmp_path / f"{name}.db.left").read_text() == "0", name
        _check(name, tmp_path)


def _run_apart(specs: list[dict[str, object]], folder: Path) -> None:
    """Make runs in a process of its own, from which workers are forked.

    It has no threads of pytest's, and what one harm leaves behind in it would be met by the next.
    """
    code = (
        "from passhat.runner.run_spec import RunSpec, run\n"
        f"for spec in {specs!r}:\n"
        "    left = run(RunSpec(**spec)).left\n"
        "    open(spec['store'] + '.left', 'w').write(str(left))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(hostile_agents.__file__).parents[2])}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr


def test_processes_that_an_agent_leaves_end_with_its_worker(tmp_path: Path) -> None:
    lines = [{"id": word, "prompt": word, "answer": "yes"} for word in ("bad", "good")]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _run_apart([_spec("leaves_a_daemon")], tmp_path)
    _check("leaves_a_daemon", tmp_path)
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert b"sleep\x004321\x00" not in commands


def test_the_harm_of_a_grader_costs_its_own_verdict(tmp_path: Path) -> None:
    plain = [name for name in NAMES if not name.startswith("async_")]
    # Another harm kills the process that would end the daemon.
    left_out = {"leaves_a_daemon", *hostile_agents.HANGING} - {"sleeps", "never_ends"}
    names = [name for name in plain if name not in left_out]
    lines = [
        {
            "id": f"{word} {name}",
            "prompt": word,
            "answer": name,
            "grader": "python:tests.faults.hostile_agents:grade",
        }
        for name in names
        for word in ("bad", "good")
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    spec = _spec("repeats") | {"attempts": 1, "attempt_seconds": 10.0}
    _run_apart([spec], tmp_path)
    with open_store(str(tmp_path / "repeats.db"), read_only=True) as store:
        (stored,) = store.runs()
        assert stored.status == "complete"
        rows = [row for block in store.rows(stored.id, details=True) for row in block]
    verdicts = {str(row[0]): (row[2], row[3]) for row in rows}
    good = {task: verdict for task, verdict in verdicts.items() if task.startswith("good")}
    assert good == {f"good {name}": (1, "") for name in names}
    bad = {name: verdicts[f"bad {name}"] for name in names}
    for name in ("sleeps", "never_ends", "ends_its_process", "exits", "reads_at_null"):
        assert bad[name] == (-1, "judge_error"), name  # the judge's fault, not the agent's


def _spec(name: str) -> dict[str, object]:
    is_hanging = name in hostile_agents.HANGING
    return {
        "agent": f"python:tests.faults.hostile_agents:{name}",
        "suite": "jsonl:tasks.jsonl",
        "attempts": 1 if is_hanging else ATTEMPTS,
        "store": f"{name}.db",
        "jobs": 3,
        "step_seconds": 5.0 if is_hanging else 120.0,
        "give_up_after": 0,
        "keep_going": True,
    }


def _check(name: str, folder: Path) -> None:
    """The good half of the run is all there, the bad half ended as it had to."""
    with open_store(str(folder / f"{name}.db"), read_only=True) as store:
        (stored,) = store.runs()
        assert stored.status == "complete", name
        rows = [row for block in store.rows(stored.id, details=True) for row in block]
    good = [(row[2], row[3]) for row in rows if row[0] == "good"]
    bad = {(row[2], row[3]) for row in rows if row[0] == "bad"}
    assert good == [(1, "")] * len(good), (name, [row[11] for row in rows])
    assert len(good) == _spec(name)["attempts"], name
    if name in hostile_agents.HANGING:
        assert bad == {(0, "timeout")}, name
    elif name.removeprefix("async_") in FAILING:
        assert {verdict for verdict, _ in bad} == {0}, (name, bad)
        assert {why for _, why in bad} <= {"exception", "format_error"}, (name, bad)
