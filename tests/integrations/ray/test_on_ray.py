"""Attempts made by a real Ray cluster of two workers: the same ones, none lost, none twice."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.cli.shared.exits import ExitCode
from passhat.errors import EngineUnavailable, InvalidValue
from passhat.integrations.ray.ray_runner import OnRay
from passhat.runner.run_spec import RunSpec
from passhat.stats.outcomes import Verdict
from passhat.store import open_store
from postgres_cluster import Cluster
from ray_cluster import RayCluster

Passhat = Callable[..., Any]

pytestmark = pytest.mark.xdist_group("ray")
"""One cluster for all of them, whichever process runs them."""

MAIN = "import sys; from passhat.cli import main; sys.exit(main())"
IMPATIENT = f"from passhat.integrations.ray import ray_pool; ray_pool._HEAD_SECONDS = 3.0; {MAIN}"
"""Misses the head of a cluster sooner than after ten seconds."""
LOOKING_OFTEN = (
    f"from passhat.integrations.ray import ray_pool; ray_pool._NODE_SECONDS = 0.5; {MAIN}"
)
"""Looks for processors that joined more often than every five seconds."""

AGENT = """
import os, time

def note(text):
    fd = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (text + "\\n").encode())
    os.close(fd)

def begun():
    with open("notes", "rb") as notes:
        return notes.read().count(b"\\n")

def agent(prompt, attempt):
    note(f"{os.getpid()} {attempt.task} {attempt.seed}")
    if attempt.task == "deadly":
        os._exit(1)
    while os.path.exists("hold") and begun() >= 100:
        time.sleep(0.01)
    time.sleep(1.0 if os.path.exists("slow") else 0.01 if attempt.number > 20 else 0.03)
    return "yes"
"""
NOTING = ("-s", "jsonl:tasks.jsonl", "-a", "python:noting:agent")


@pytest.fixture
def notes(folder: Path) -> Path:
    """Where an agent that takes 30 ms writes down every attempt that is begun."""
    (folder / "noting.py").write_text(AGENT)
    return folder / "notes"


@contextmanager
def held(notes: Path) -> Iterator[None]:
    """Nobody gets beyond the hundredth attempt: what is done here comes before the end."""
    hold = notes.with_name("hold")
    hold.touch()
    try:
        yield
    finally:
        hold.unlink()


def write_tasks(folder: Path, *names: str) -> None:
    lines = [{"id": name, "prompt": "yes?", "answer": "yes"} for name in names]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))


def start(ray_cluster: RayCluster, *arguments: str, program: str = MAIN) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, "run", *arguments],
        env={**os.environ, **ray_cluster.environment, "RAY_ADDRESS": ray_cluster.address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def begun(notes: Path) -> list[list[str]]:
    """Process, task and seed of every attempt that was begun, as often as it was."""
    lines = notes.read_text().splitlines(keepends=True) if notes.exists() else []
    return [line.split() for line in lines if line.endswith("\n")]


def wait_for(notes: Path, count: int, over: Callable[[], bool]) -> None:
    """Until so many attempts were begun: how long that takes depends on the machine."""
    end = time.monotonic() + 120
    while len(begun(notes)) < count:
        assert not over(), f"it ended after {len(begun(notes))} attempts"
        assert time.monotonic() < end
        time.sleep(0.02)


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def has_kept() -> bool:
    """Whether something has come back and was written."""
    with open_store(must_exist=True) as store:
        return any(run.attempts for run in store.runs())


def begun_again(notes: Path) -> int:
    return sum(many - 1 for many in Counter(map(tuple, (one[1:] for one in begun(notes)))).values())


@pytest.mark.usefixtures("workers_of_its_own")
def test_workers_and_the_server_are_killed_and_every_attempt_is_stored_once(
    passhat: Passhat, folder: Path, notes: Path, own_postgres: Cluster
) -> None:
    write_tasks(folder, *(f"t{i}" for i in range(20)))
    place = own_postgres.make_database("team")
    over = threading.Event()

    def kill() -> None:
        for count in (40, 80):
            wait_for(notes, count, over.is_set)
            os.kill(int(begun(notes)[-1][0]), signal.SIGKILL)
        own_postgres.kill()
        own_postgres.start()
        # All are held. Of two workers both were killed, or the second one of the first twice.
        wait_until(lambda: len({one[0] for one in begun(notes)}) > 2)
        hold.close()

    with ThreadPoolExecutor() as beside, ExitStack() as hold:
        hold.enter_context(held(notes))
        killing = beside.submit(kill)
        ended = passhat("run", *NOTING, "--store", place, "-n", "15", "--jobs", "4")
        over.set()
        killing.result()
    assert ended.code == 0, ended.err
    assert "2 Ray workers" in ended.err
    with open_store(place) as store:
        (run,) = store.runs()
        assert (run.status, run.attempts, run.passed) == ("complete", 300, 300)
        assert len(store.load_attempts(run.id)) == 300
    assert len({(task, seed) for _, task, seed in begun(notes)}) == 300
    # Begun twice is only what was in flight on workers that died: four slots, small batches.
    assert begun_again(notes) <= 2 * 4 * 8


def test_a_node_that_joins_is_used_and_one_that_leaves_is_not_missed(
    folder: Path, notes: Path
) -> None:
    """On a cluster of its own: Ray counts the processors of a killed node for a while."""
    write_tasks(folder, *(f"t{i}" for i in range(20)))
    (folder / "slow").touch()  # until the node has come and gone
    cluster = RayCluster(processors=1)
    try:
        process = start(
            cluster, "--on", "ray", *NOTING, "-n", "80", "--jobs", "6", program=LOOKING_OFTEN
        )
        wait_for(notes, 10, lambda: process.poll() is not None)
        first_pids = {one[0] for one in begun(notes)}
        node = cluster.add_node(1)
        try:
            wait_until(
                lambda: (
                    process.poll() is not None
                    or not first_pids.issuperset(one[0] for one in begun(notes))
                ),
                seconds=240,
            )
            assert process.poll() is None
        finally:
            os.killpg(node.pid, signal.SIGKILL)
            node.wait()
            (folder / "slow").unlink()
        _, said = process.communicate(timeout=240)
    finally:
        cluster.stop()
    assert process.returncode == 0, said
    with open_store() as store:
        (run,) = store.runs()
        assert (run.status, run.attempts, run.passed) == ("complete", 1600, 1600)
    assert len({(task, seed) for _, task, seed in begun(notes)}) == 1600


@pytest.mark.usefixtures("workers_of_its_own")
def test_an_attempt_that_workers_die_of_ends_as_missing_and_no_other(
    passhat: Passhat, folder: Path, notes: Path
) -> None:
    write_tasks(folder, "deadly", "a", "b", "c")
    assert passhat("run", *NOTING, "-n", "1", "--jobs", "4").code == 4
    with open_store() as store:
        (run,) = store.runs()
        verdicts = {task: verdict for task, _, verdict in store.verdicts(run.id)}
        passed = dict.fromkeys(("a", "b", "c"), Verdict.PASSED)
        assert verdicts == {"deadly": Verdict.MISSING, **passed}
        ended = store.attempt(run.id, "deadly", 1)
        assert ended is not None
        assert (ended.why, "worker died" in ended.detail) == ("infrastructure", True)
    assert [one[1] for one in begun(notes)].count("deadly") == 3


def test_workers_elsewhere_make_what_this_machine_would(
    passhat: Passhat, folder: Path, ray_cluster: RayCluster
) -> None:
    command = ["-s", "orderdesk/retail", "-a", "demo:hasty", "-n", "2", "--random", "5"]
    there = start(ray_cluster, *command, "--store", "there.db", "--on", ray_cluster.client)
    assert passhat("run", *command, "--store", "here.db").code == 0
    _, said = there.communicate(timeout=300)
    assert there.returncode == 0, said
    found = []
    for place in ("here.db", "there.db"):
        with open_store(str(folder / place)) as store:
            (run,) = store.runs()
            ended = [store.attempt(run.id, t, n) for t, n, _ in store.verdicts(run.id)]
            found.append([(e.task, e.number, e.verdict, e.transcript) for e in ended if e])
    assert len(found[0]) == 10
    assert found[0] == found[1]


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


@pytest.mark.usefixtures("on_ray")
def test_three_attempts_that_raise_the_same_end_the_run_on_workers_as_well(
    passhat: Passhat, folder: Path
) -> None:
    write_tasks(folder, "a", "b", "c", "d")
    (folder / "keyless.py").write_text(
        "def agent(prompt):\n    raise KeyError('PASSHAT_TEST_NO_KEY')\n"
    )
    command = ("run", "-s", "jsonl:tasks.jsonl", "-a", "python:keyless:agent", "-n", "8")
    ended = passhat(*command)
    assert ended.code == 2
    assert "3 of 3 attempts raised KeyError: 'PASSHAT_TEST_NO_KEY' (keyless.py:2)" in ended.err
    with open_store() as store:
        assert [run.attempts for run in store.runs()] == [0]


def test_a_suite_that_runs_itself_is_refused() -> None:
    itself: Any = SimpleNamespace(suite=SimpleNamespace(name="theirs", harness="inspect"))
    with pytest.raises(InvalidValue, match="theirs makes its attempts by itself"):
        OnRay(itself, RunSpec(suite="inspect:x", agent="inspect:y"))


def test_ctrl_c_stores_what_is_in_flight_and_the_command_goes_on(
    notes: Path, ray_cluster: RayCluster
) -> None:
    process = start(ray_cluster, "--on", "ray", *NOTING, "-n", "400", "--jobs", "1")
    wait_for(notes, 5, lambda: process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.STOPPED, said
    assert "finishing what is in flight" in said
    assert "the same command continues" in said
    with open_store() as store:
        (run,) = store.runs()
        assert (run.attempts, run.status) == (len(begun(notes)), "stopped")
        assert len(store.load_attempts(run.id)) == run.attempts


def test_a_head_that_dies_is_told_plainly_and_the_command_goes_on(
    passhat: Passhat,
    notes: Path,
    ray_cluster: RayCluster,
    kill_ray_cluster: Callable[[], None],
) -> None:
    command = (*NOTING, "-n", "40", "--jobs", "2")
    with held(notes):
        process = start(ray_cluster, "--on", "ray", *command, program=IMPATIENT)
        wait_for(notes, 20, lambda: process.poll() is not None)
        wait_until(has_kept)
        kill_ray_cluster()
        _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.USAGE, said
    assert "passhat: the head of the Ray cluster is gone" in said
    assert "Finished attempts are kept; the same command continues" in said
    assert "Traceback" not in said
    with open_store() as store:
        (run,) = store.runs()
        kept = store.load_attempts(run.id)
        assert 0 < len(kept) < 200
    # Without a cluster, this machine can finish what workers have begun.
    assert passhat("run", *command).code == 0
    with open_store() as store:
        (run,) = store.runs()
        assert (run.status, run.attempts, run.passed) == ("complete", 200, 200)
        assert len(store.load_attempts(run.id)) == 200
    assert len({(task, seed) for _, task, seed in begun(notes)}) == 200
    assert begun_again(notes) <= 2 * 8  # what was in flight, and nothing that was kept


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("ray://127.0.0.1:{port}", "no server listens there: Connection refused"),
        ("ray://127.0.0.1", "it needs a port, as in ray://HEAD:10001"),
    ],
)
def test_a_wrong_address_is_told_at_once(
    passhat: Passhat, folder: Path, monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    del folder
    import ray

    # Others of these tests leave this process connected, and then no address is looked at.
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda *_, **__: pytest.fail("asked Ray all the same"))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = address.format(port=closed.getsockname()[1])
        ended = passhat(
            "run", "-s", "jsonl:tasks.jsonl", "-a", "python:some_agents:yes", "--on", place
        )
    assert ended.code == ExitCode.USAGE
    assert f"passhat: the Ray cluster {place} cannot be used ({why})" in ended.err
    assert "ray start --head" in ended.err
    with open_store() as store:
        assert store.runs() == []


def test_a_head_that_is_too_busy_to_take_us_in_is_asked_again() -> None:
    asked: list[str] = []

    def init(address: str, **_: object) -> None:
        asked.append(address)
        if len(asked) < failing:
            raise ConnectionAbortedError("Initialization failure from server:\nProxy failed")

    plan: Any = SimpleNamespace(suite=SimpleNamespace(harness=""))
    for failing, tries in ((3, 3), (9, 3)):
        asked.clear()
        engine = OnRay(plan, RunSpec(suite="x", agent="y"), [plan], "auto")
        engine._ray = SimpleNamespace(init=init, is_initialized=lambda: False)
        if failing > tries:
            with pytest.raises(EngineUnavailable, match="failure from server: Proxy failed"):
                engine._connect()
        else:
            engine._connect()
        assert asked == ["auto"] * tries


def test_where_to_run_is_read_from_the_option() -> None:
    assert OnRay.address_of("ray") == ""
    assert OnRay.address_of("ray", here="127.0.0.1:6379") == "127.0.0.1:6379"
    assert OnRay.address_of("ray://head:10001") == "ray://head:10001"
    for wrong in ("spark", "ray://", "ray:head"):
        with pytest.raises(InvalidValue, match="not something to run on"):
            OnRay.address_of(wrong)


def test_the_local_runner_does_not_import_ray() -> None:
    program = "import sys, passhat.cli.run, passhat.runner.run_spec; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
