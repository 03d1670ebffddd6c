"""What an agent does to its process costs its own attempt; the good half of a run is all there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults import hostile_agents, more_hostile_agents

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
    assert len(hostile_agents.AGENTS) >= 140


NAMES = sorted(hostile_agents.AGENTS)
GROUPS = [NAMES[start::10] for start in range(10)]


@pytest.mark.parametrize("names", GROUPS, ids=[names[0] for names in GROUPS])
def test_a_harm_costs_its_own_attempt(names: list[str], tmp_path: Path) -> None:
    _write_tasks(tmp_path)
    _run_apart([_spec(name) for name in names], tmp_path)
    for name in names:
        assert (tmp_path / f"{name}.db.left").read_text() == "0", name
        _check(name, tmp_path)


def _write_tasks(folder: Path) -> None:
    lines = [{"id": word, "prompt": word, "answer": "yes"} for word in ("bad", "good")]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))


def _run_apart(specs: list[dict[str, object]], folder: Path) -> str:
    """Make runs in a process of its own, from which workers are forked.

    It has no threads of pytest's, and what one harm leaves behind in it would be met by the next.
    """
    code = (
        "import sys\n"
        "from passhat.runner.run_spec import RunSpec, run\n"
        "def tell(line):\n"
        "    print(line, file=sys.stderr)\n"
        f"for spec in {specs!r}:\n"
        "    left = run(RunSpec(**spec), tell=tell).left\n"
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
    return ended.stderr


DAEMONS = {
    "leaves_a_daemon": b"4321",
    "leaves_a_daemon_and_kills_its_parent": b"4322",
    "leaves_a_daemon_that_kills_its_parent": b"4323",
    "leaves_many_daemons": b"4324",
}


def test_processes_that_an_agent_leaves_end_with_its_worker(tmp_path: Path) -> None:
    _write_tasks(tmp_path)
    _run_apart([_spec(name) for name in DAEMONS], tmp_path)
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    for name, seconds in DAEMONS.items():
        _check(name, tmp_path)
        assert b"sleep\x00" + seconds + b"\x00" not in commands, name


IN_PROCESS = [
    *("sleeps", "async_sleeps", "async_never_ends", "async_swallows_its_cancellation"),
    *("async_ignores_signals_and_sleeps", "async_cancels_all_tasks", "async_stops_the_loop"),
    *("async_exits_in_a_task", "async_closes_the_loop", "async_leaves_tasks", "recurses"),
    *("leaves_a_deleted_folder", "works_in_a_folder_of_its_own", "leaves_threads", "exits"),
    *("handles_signals", "raises_another_base", "answers_half_a_letter", "stops_iterating"),
    *("blocks_signals", "runs_the_loop_within_itself", "leaves_tasks_that_fail"),
    *("leaves_a_generator", "raises_a_group_of_groups", "answers_text_of_another_kind"),
]


def test_the_good_half_is_there_without_worker_processes(tmp_path: Path) -> None:
    """A function given as an object shares the process of the runner."""
    _write_tasks(tmp_path)
    specs = [_spec(name) | {"in_process": True} for name in IN_PROCESS]
    for spec in specs:
        spec["step_seconds"] = min(1.0, float(str(spec["step_seconds"])))
    said = _run_apart(specs, tmp_path)
    for name in IN_PROCESS:
        _check(name, tmp_path, is_strict=False)
    assert len(said) < 4000, said
    assert "Traceback" not in said


def test_ctrl_c_ends_a_run_whose_event_loop_an_agent_emptied(tmp_path: Path) -> None:
    _write_tasks(tmp_path)
    program = (
        "import passhat; from tests.faults.more_hostile_agents import empties_the_loop as agent\n"
        "async def told(prompt, attempt):\n"
        "    print(prompt, flush=True)\n"
        "    return await agent(prompt, attempt)\n"
        "passhat.run(told, 'jsonl:tasks.jsonl', 2, store='s.db', progress=False)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(hostile_agents.__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() != "bad\n":
        pass
    for _ in range(600):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            break
    _, said = process.communicate()
    assert said.rstrip().endswith("KeyboardInterrupt"), said


def test_the_harm_of_a_grader_costs_its_own_verdict(tmp_path: Path) -> None:
    plain = [
        name
        for name in NAMES
        if not name.startswith("async_") and name not in more_hostile_agents.ADDED
    ]
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


def _module(name: str) -> str:
    is_added = name in more_hostile_agents.ADDED
    return (more_hostile_agents if is_added else hostile_agents).__name__


def _spec(name: str) -> dict[str, object]:
    is_hanging = name in hostile_agents.HANGING
    return {
        "agent": f"python:{_module(name)}:{name}",
        "suite": "jsonl:tasks.jsonl",
        "attempts": 1 if is_hanging else ATTEMPTS,
        "store": f"{name}.db",
        "jobs": 3,
        "step_seconds": 5.0 if is_hanging else 120.0,
        "give_up_after": 0,
        "keep_going": True,
    }


def _check(name: str, folder: Path, *, is_strict: bool = True) -> None:
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
    elif is_strict and name.removeprefix("async_") in FAILING:
        assert {verdict for verdict, _ in bad} == {0}, (name, bad)
        assert {why for _, why in bad} <= {"exception", "format_error"}, (name, bad)
