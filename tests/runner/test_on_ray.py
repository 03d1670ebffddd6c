"""Attempts made by a real Ray cluster of two workers: the same ones, none lost, none twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.cli.exits import ExitCode
from passhat.errors import InvalidValue
from passhat.outcomes import Verdict
from passhat.runner.on_ray import OnRay
from passhat.runner.set_up import SetUp
from passhat.store import open_store
from postgres_cluster import Cluster
from ray_cluster import RayCluster

Passhat = Callable[..., Any]

pytestmark = pytest.mark.xdist_group("ray")
"""One cluster for all of them, whichever process runs them."""

PASSHAT = [sys.executable, "-c", "import sys; from passhat.cli import main; sys.exit(main())"]

AGENT = """
import os, time

def note(text):
    fd = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (text + "\\n").encode())
    os.close(fd)

def agent(prompt, task, seed):
    note(f"{os.getpid()} {task} {seed}")
    if task == "deadly":
        os._exit(1)
    time.sleep(0.03)
    return "yes"
"""


def start(folder: Path, ray_cluster: RayCluster, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PASSHAT, "run", *arguments],
        cwd=folder,
        env={**os.environ, **ray_cluster.environment, "RAY_ADDRESS": ray_cluster.address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for_notes(notes: Path, count: int, process: subprocess.Popen[str]) -> list[str]:
    """Until so many attempts were begun: how long that takes depends on the machine."""
    end = time.monotonic() + 120
    while not notes.exists() or len(notes.read_text().splitlines()) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    return notes.read_text().splitlines()


@pytest.mark.usefixtures("needs_postgres")
def test_a_worker_and_the_server_are_killed_and_every_attempt_is_stored_once(
    folder: Path, ray_cluster: RayCluster
) -> None:
    notes = folder / "notes"
    (folder / "noting.py").write_text(AGENT)
    lines = [{"id": f"t{i}", "prompt": "yes?", "answer": "yes"} for i in range(20)]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    server = Cluster()
    server.start()
    try:
        place = server.make_database("team")
        process = start(
            *(folder, ray_cluster, "--on", "ray", "-s", "jsonl:tasks.jsonl", "--store", place),
            *("-a", "python:noting:agent", "-n", "15", "--jobs", "4"),
        )
        begun = _wait_for_notes(notes, 60, process)
        os.kill(int(begun[-1].split()[0]), signal.SIGKILL)
        _wait_for_notes(notes, 120, process)
        server.kill()
        server.start()
        _, said = process.communicate(timeout=180)
        with open_store(place) as store:
            (run,) = store.runs()
            made = store.made(run.id)
    finally:
        server.stop()
    assert process.returncode == 0, said
    assert "2 Ray workers" in said
    assert (run.status, run.attempts, run.passed) == ("complete", 300, 300)
    assert len(made) == 300
    begun = notes.read_text().splitlines()
    assert len({line.split()[0] for line in begun}) >= 2
    times = Counter(tuple(line.split()[1:]) for line in begun)
    assert len(times) == 300
    # Begun twice is only what was in flight on the worker that died: four slots, small batches.
    assert sum(count - 1 for count in times.values()) <= 4 * 8


def test_workers_elsewhere_make_what_this_machine_would(
    folder: Path, ray_cluster: RayCluster
) -> None:
    command = ["-s", "orderdesk/retail", "-a", "demo:hasty", "-n", "2", "--random", "5"]
    ends = [
        start(folder, ray_cluster, *command, "--store", "here.db"),
        start(folder, ray_cluster, *command, "--store", "there.db", "--on", ray_cluster.client),
    ]
    for process in ends:
        _, said = process.communicate(timeout=180)
        assert process.returncode == 0, said
    found = []
    for place in ("here.db", "there.db"):
        with open_store(str(folder / place)) as store:
            (run,) = store.runs()
            ended = [store.attempt(run.id, t, n) for t, n, _ in store.verdicts(run.id)]
            found.append([(e.task, e.number, e.verdict, e.transcript) for e in ended if e])
    assert len(found[0]) == 10
    assert found[0] == found[1]


def test_an_attempt_that_workers_die_of_ends_as_missing(
    folder: Path, ray_cluster: RayCluster
) -> None:
    (folder / "noting.py").write_text(AGENT)
    lines = [{"id": name, "prompt": "yes?", "answer": "yes"} for name in ("deadly", "fine")]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    process = start(
        *(
            folder,
            ray_cluster,
            "--on",
            "ray",
            "-s",
            "jsonl:tasks.jsonl",
            "-a",
            "python:noting:agent",
        ),
        *("-n", "1", "--jobs", "2"),
    )
    _, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    with open_store(str(folder / ".passhat" / "passhat.db")) as store:
        (run,) = store.runs()
        verdicts = {task: verdict for task, _, verdict in store.verdicts(run.id)}
        assert verdicts == {"deadly": Verdict.MISSING, "fine": Verdict.PASSED}
        ended = store.attempt(run.id, "deadly", 1)
        assert ended is not None
        assert (ended.why, "worker died" in ended.detail) == ("infrastructure", True)


@pytest.mark.usefixtures("on_ray")
def test_what_workers_cannot_load_is_told_before_anything_is_claimed(
    passhat: Passhat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNED_HERE", "1")
    (folder / "here_only.py").write_text(
        "import os\nassert os.environ.get('PLANNED_HERE'), 'only where it was planned'\n"
        "def agent(prompt):\n    return 'yes'\n"
    )
    ended = passhat("run", "-s", "jsonl:tasks.jsonl", "-a", "python:here_only:agent", "-n", "1")
    sys.modules.pop("here_only")
    assert ended.code == 2
    assert "a worker cannot load" in ended.err
    assert "Traceback" not in ended.err
    with open_store() as store:
        assert store.runs() == []


def test_a_suite_that_runs_itself_is_refused() -> None:
    itself: Any = SimpleNamespace(suite=SimpleNamespace(name="theirs", harness="inspect"))
    with pytest.raises(InvalidValue, match="theirs makes its attempts by itself"):
        OnRay(itself, SetUp("inspect:x", "inspect:y"))


def test_ctrl_c_stores_what_is_in_flight_and_the_command_goes_on(
    folder: Path, ray_cluster: RayCluster
) -> None:
    (folder / "noting.py").write_text(AGENT)
    command = ("--on", "ray", "-s", "jsonl:tasks.jsonl", "-a", "python:noting:agent", "-n", "400")
    process = start(folder, ray_cluster, *command, "--jobs", "1")
    _wait_for_notes(folder / "notes", 5, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == ExitCode.STOPPED, said
    assert "finishing what is in flight" in said
    assert "the same command goes on" in said
    begun = (folder / "notes").read_text().splitlines()
    with open_store(str(folder / ".passhat" / "passhat.db")) as store:
        (run,) = store.runs()
        assert (run.attempts, run.status) == (len(begun), "stopped")
        assert len(store.made(run.id)) == run.attempts


def test_where_to_run_is_read_from_the_option() -> None:
    assert OnRay.address_of("ray") == ""
    assert OnRay.address_of("ray", here="127.0.0.1:6379") == "127.0.0.1:6379"
    assert OnRay.address_of("ray://head:10001") == "ray://head:10001"
    for wrong in ("spark", "ray://", "ray:head"):
        with pytest.raises(InvalidValue, match="not something to run on"):
            OnRay.address_of(wrong)


def test_the_local_runner_does_not_import_ray() -> None:
    program = "import sys, passhat.cli.run, passhat.runner.planning; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
