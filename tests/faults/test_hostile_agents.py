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
    # A process of its own: the workers are forked from it, and it has no threads of pytest's. What
    # one harm leaves behind in it would be met by the next run.
    code = (
        "from passhat.runner.run_spec import RunSpec, run\n"
        f"for spec in {[_spec(name) for name in names]!r}:\n"
        "    left = run(RunSpec(**spec)).left\n"
        "    open(spec['store'] + '.left', 'w').write(str(left))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(hostile_agents.__file__).parents[2])}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    for name in names:
        assert (tmp_path / f"{name}.db.left").read_text() == "0", name
        _check(name, tmp_path)


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
