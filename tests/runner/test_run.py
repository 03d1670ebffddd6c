"""Attempts are made once, written down, resumed, extended, and survive what agents do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.cli.shared.exits import ExitCode
from passhat.errors import ReadError
from passhat.runner.run import Stop, expire_leases, silent
from passhat.store import Store, open_store

Passhat = Callable[..., Any]
PATIENCE = 300
"""Seconds; the machines that run this are shared."""
PASSHAT = [sys.executable, "-m", "passhat"]
TASKS = ["run", "-s", "jsonl:tasks.jsonl"]


@pytest.fixture(autouse=True)
def _on_both_stores(store_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of these tests keeps its attempts there."""
    monkeypatch.setenv("PASSHAT_STORE", store_place)


def _store() -> Store:
    return open_store(os.environ["PASSHAT_STORE"], must_exist=True)


def _ended() -> Counter[tuple[str, str]]:
    with _store() as store:
        rows = [row for run in store.runs() for block in store.rows(run.id) for row in block]
    return Counter((str(row[2]), str(row[3])) for row in rows)


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
def test_every_attempt_is_made_once_and_reported(passhat: Passhat) -> None:
    ended = passhat(*TASKS, "-a", "python:some_agents:coin", "-n", "4")
    assert ended.code == 0
    assert "20 of 20 attempts" in ended.err
    assert "of single attempts pass" in ended.out
    assert sum(_ended().values()) == 20


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        ("python:mine:answer", "def answer(prompt):\n    return 'yes'\n"),
        (
            f"command:{sys.executable} mine.py notes.txt",
            'for _ in open(0):\n    print(\'{"text": "yes"}\', flush=True)\n',
        ),
    ],
)
def test_changed_code_is_another_run(passhat: Passhat, folder: Path, agent: str, code: str) -> None:
    command = [*TASKS, "-a", agent, "-n", "1"]
    (folder / "mine.py").write_text(code)
    (folder / "notes.txt").write_text("before")
    assert passhat(*command).code == 0
    (folder / "notes.txt").write_text("a log that the agent writes is not its code")
    assert "changed since" not in passhat(*command).err
    assert sum(_ended().values()) == 5
    (folder / "mine.py").write_text(code.replace("yes", "no"))
    sys.modules.pop("mine", None)
    again = passhat(*command)
    assert "note: mine.py changed since run " in again.err
    assert sum(_ended().values()) == 10
    with _store() as store:
        first, second = (store.protocol(run.id) for run in store.runs())
    assert first != second
    assert first.differences(second) == first.differences(first)  # the two can be compared
    sys.modules.pop("mine", None)


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
def test_the_same_command_again_makes_nothing_and_a_larger_n_adds(passhat: Passhat) -> None:
    command = [*TASKS, "-a", "python:some_agents:coin", "-n"]
    first = passhat(*command, "2").out
    with _store() as store:
        before = list(store.rows(store.runs()[0].id))
    assert "attempts:" not in passhat(*command, "2").err
    assert passhat(*command, "2").out == first
    assert "10 of 10 attempts" in passhat(*command, "4").err
    with _store() as store:
        (run,) = store.runs()
        after = [row for block in store.rows(run.id) for row in block]
    assert [row for row in after if int(str(row[1])) <= 2] == [r for block in before for r in block]
    assert (run.planned, run.attempts, run.status) == (4, 20, "complete")


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("python:some_agents:hangs", "timeout"),
        ("python:some_agents:raises", "exception"),
        ("python:some_agents:nonsense", "format_error"),
        ("command:false", "agent_error"),
        ("command:cat", ""),
        ("command:yes", "format_error"),
        ("command:sleep 60", "timeout"),
    ],
)
def test_what_an_agent_does_wrong_fails_its_attempt_alone(
    passhat: Passhat, agent: str, why: str
) -> None:
    patience = "0.5" if why == "timeout" else "60"
    limit = ("--set", f"step_timeout={patience}")
    ended = passhat(*TASKS, "-a", agent, "-n", "1", "--keep-going", *limit)
    # Without any answer there is no number, and the exit code says so.
    assert ended.code == (4 if why in ("exception", "agent_error") else 0)
    (((verdict, found), count),) = _ended().items()
    # `cat` answers with what it was told: the right form, the wrong answer.
    assert (verdict, found, count) == ("0", why or "wrong_answer", 5)


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("agent", "cause"),
    [
        ("raises", "3 of 3 attempts raised RuntimeError: my key is"),
        ("silent", "3 of 3 attempts gave an empty answer: answered ''"),
    ],
)
def test_the_same_cause_three_times_in_a_row_ends_the_run(
    passhat: Passhat, agent: str, cause: str
) -> None:
    ended = passhat(*TASKS, "-a", f"python:some_agents:{agent}", "-n", "4")
    assert ended.code == ExitCode.USAGE
    cause = f"passhat: {cause}"
    assert any(line.startswith(cause) for line in ended.err.splitlines())
    assert "--keep-going" in ended.err
    assert not ended.out
    assert _ended() == {}


@pytest.mark.also_on_ray
def test_a_flood_of_output_is_cut_off(passhat: Passhat, folder: Path) -> None:
    flood = folder / "flood"
    flood.write_text(f"#!{sys.executable}\nimport sys\nsys.stdout.write('x' * 50_000_000)\n")
    flood.chmod(0o755)
    passhat(*TASKS, "-a", f"command:{flood}", "-n", "1", "--task", "t0")
    assert _ended() == {("0", "format_error"): 1}


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
def test_every_attempt_gets_a_fresh_agent(passhat: Passhat) -> None:
    passhat(*TASKS, "-a", "python:some_agents:Remembers", "-n", "3")
    assert _ended() == {("1", ""): 15}


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
def test_a_function_may_be_async_and_ask_for_what_it_needs(passhat: Passhat) -> None:
    passhat(*TASKS, "-a", "python:some_agents:ayes", "-n", "2", "--temperature", "0.7")
    assert _ended() == {("1", ""): 10}


@pytest.mark.also_on_ray
def test_a_judge_that_breaks_leaves_missing_attempts_that_can_be_repaired(
    passhat: Passhat, folder: Path
) -> None:
    judge = folder / "own_judge.py"
    judge.write_text("def grade(answer, expected):\n    raise OSError('judge is down')\n")
    line = {"id": "a", "prompt": "?", "answer": "yes", "grader": "python:own_judge:grade"}
    (folder / "tasks.jsonl").write_text(json.dumps(line))
    command = [*TASKS, "-a", "python:some_agents:yes", "-n", "2"]
    assert passhat(*command).code == 4
    assert _ended() == {("-1", "judge_error"): 2}
    sys.modules.pop("own_judge")
    judge.write_text("def grade(answer, expected):\n    return answer == expected\n")
    assert passhat(*command).code == 4
    assert _ended() == {("-1", "judge_error"): 2}
    assert passhat(*command, "--only-missing").code == 0
    assert _ended() == {("1", ""): 2}
    sys.modules.pop("own_judge")


@pytest.mark.also_on_ray
def test_secrets_never_reach_the_store(
    passhat: Passhat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    (folder / "leaky.py").write_text("def agent(p):\n    return 'use correct-horse-battery now'\n")
    passhat(*TASKS, "-a", "python:some_agents:raises", "-n", "1", "--keep-going")
    passhat(*TASKS, "-a", "python:leaky:agent", "-n", "1")
    with _store() as store:
        text = ""
        for run in store.runs():
            ended = store.attempt(run.id, "t0", 1)
            assert ended is not None
            text += f"{ended.detail} {ended.transcript}"
    assert "sk-abcdef" not in text
    assert "correct-horse" not in text
    assert text.count("[redacted]") >= 2


@pytest.mark.also_on_ray
@pytest.mark.usefixtures("folder")
def test_some_tasks_by_id_by_place_and_drawn(passhat: Passhat) -> None:
    command = [*TASKS, "-a", "python:some_agents:yes", "-n", "1"]
    assert "1 of 1" in passhat(*command, "--task", "t3").err
    assert "2 of 2" in passhat(*command, "--task", "0", "--task", "4", "--name", "x").err
    assert "3 of 3" in passhat(*command, "--random", "3", "--name", "y").err
    assert passhat(*command, "--task", "t9").code == 2
    assert passhat(*command, "--random", "9").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "jsonl:none.jsonl", "-a", "python:some_agents:yes"], "cannot be read"),
        (["-s", "nonsense:x", "-a", "python:some_agents:yes"], "is not a suite"),
        (["-s", "jsonl:tasks.jsonl", "-a", "nonsense:x"], "is not an agent"),
        (["-s", "jsonl:tasks.jsonl", "-a", "python:some_agents:none"], "has no 'none'"),
        (["-s", "jsonl:tasks.jsonl", "-a", "python:nowhere"], "should read MODULE:NAME"),
        (["-s", "jsonl:tasks.jsonl", "-a", "command:no-such-program"], "there is no program"),
        (["-s", "jsonl:tasks.jsonl", "-a", "python:some_agents:yes", "-n", "0"], "at least 1"),
        (["-s", "jsonl:tasks.jsonl", "-a", "python:some_agents:yes", "--on", "x"], "to run on"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(
    passhat: Passhat, folder: Path, arguments: list[str], message: str
) -> None:
    ended = passhat("run", *arguments)
    assert ended.code == ExitCode.USAGE
    assert message in ended.err
    assert not (folder / "store").exists()


def _start(folder: Path, agent: str, n: int, *more: str) -> subprocess.Popen[str]:
    command = [*PASSHAT, *TASKS, "-a", agent, "-n", str(n), "--jobs", "4", *more]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for_attempts(process: subprocess.Popen[str], *, finished: bool = True) -> None:
    """Until the runner has begun, or is through: how long that takes depends on the machine."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(ReadError), _store() as store:
            if any(
                run.attempts if finished else store.load_attempts(run.id) for run in store.runs()
            ):
                return
        time.sleep(0.02)
    if process.poll() is None:
        pytest.fail("the runner made no attempt")


def test_two_runners_on_one_store_never_make_the_same_attempt(folder: Path) -> None:
    log = folder / "log.txt"
    (folder / "logging_agent.py").write_text(
        "import os, time\n"
        "def agent(prompt, attempt):\n"
        f"    fd = os.open({str(log)!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
        "    os.write(fd, f'{attempt.task} {attempt.seed}\\n'.encode())\n"
        "    os.close(fd)\n"
        "    time.sleep(0.02)\n"
        "    return 'yes'\n"
    )
    both = [_start(folder, "python:logging_agent:agent", 20) for _ in range(2)]
    codes = []
    for process in both:
        _, said = process.communicate(timeout=PATIENCE)
        codes.append(process.returncode)
        # One that is through while the other still makes attempts says so, and leaves them to it.
        assert codes[-1] == 0 or "being made by another runner" in said, said
    assert sorted(codes) in ([ExitCode.OK, ExitCode.OK], [ExitCode.OK, ExitCode.INCOMPLETE])
    assert _ended() == {("1", ""): 100}
    lines = log.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 100


def test_ctrl_c_once_finishes_what_is_in_flight_and_the_command_goes_on(folder: Path) -> None:
    (folder / "held_agent.py").write_text(
        "import os, time\n"
        "calls = []\n"
        "def agent(prompt):\n"
        "    calls.append(prompt)\n"
        "    while len(calls) > 20 and not os.path.exists('go'):\n"
        "        time.sleep(0.02)\n"
        "    return 'yes'\n"
    )
    process = _start(folder, "python:held_agent:agent", 200)
    _wait_for_attempts(process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("finishing what is in flight" in line for line in process.stderr)
    (folder / "go").touch()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.STOPPED, said
    with _store() as store:
        (run,) = store.runs()
        assert 0 < run.attempts < 1000
        assert run.status == "stopped"
        assert len(store.load_attempts(run.id)) == run.attempts


def test_ctrl_c_twice_stops_at_once(folder: Path) -> None:
    (folder / "hanging_agent.py").write_text(
        "import time\ndef agent(prompt):\n    time.sleep(3600)\n"
    )
    process = _start(folder, "python:hanging_agent:agent", 2, "--set", "step_timeout=3600")
    _wait_for_attempts(process, finished=False)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("Ctrl-C again stops at once" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)  # sooner than the agent's own time limit would end it
    assert process.returncode == ExitCode.STOPPED
    with _store() as store:
        (run,) = store.runs()
        assert run.attempts == 0
        # A store that is slow is given a second to take the claims back; then they expire.
        asyncio.run(expire_leases(store, run.id, Stop(), silent))
        assert len(store.load_attempts(run.id)) == 0


def test_a_store_that_cannot_be_written_stops_the_run_with_a_reason(
    passhat: Passhat, folder: Path
) -> None:
    (folder / "file").write_text("")
    ended = passhat(*TASKS, "-a", "python:some_agents:yes", "--store", folder / "file" / "x.db")
    assert ended.code == 2
    assert "cannot be used as a store" in ended.err
    other = folder / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE mine (x)")
    ended = passhat(*TASKS, "-a", "python:some_agents:yes", "--store", other)
    assert ended.code == 2
    assert "not one of passhat" in ended.err


@pytest.mark.usefixtures("folder")
def test_runs_show_and_rm(passhat: Passhat) -> None:
    passhat(*TASKS, "-a", "python:some_agents:coin", "-n", "2")
    (run,) = json.loads(passhat("runs", "--json").out)["runs"]
    assert {"id", "agent", "suite", "tasks", "attempts", "missing", "started", "status"} <= set(run)
    assert run["id"] in passhat("runs").out
    shown = passhat("show", run["id"][:6], "t0#1").out
    assert "yes?" in shown
    assert passhat("show", run["id"], "t0#9").code == 2
    assert passhat("show", run["id"], "t0").code == 2
    assert passhat("show", "zzz").code == 2
    assert "5 tasks x 2 attempts" in passhat("show", run["id"]).out
    place = os.environ["PASSHAT_STORE"]
    assert "5 tasks x 2 attempts" in passhat("report", place).out
    assert "5 tasks x 2 attempts" in passhat("report", run["id"][:6]).out
    assert passhat("report", "no-such-run").code == 2
    if place.startswith("postgresql:"):
        assert "5 tasks x 2 attempts" in passhat("report", f"{place}#{run['id']}").out
    assert passhat("rm", run["id"], "--yes").code == 0
    assert json.loads(passhat("runs", "--json").out)["runs"] == []
    assert passhat("runs", "--store", "nothing.db").code == 2
