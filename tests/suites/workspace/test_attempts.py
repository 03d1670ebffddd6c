"""Attempts in workspaces: fresh every time, told in any way, judged by hidden tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.suites.workspace.conftest import SHELL_TESTS, Attempting, remains, write_task

from passhat.agents.base import AttemptInfo
from passhat.errors import InvalidValue
from passhat.judging.bench import JudgingChoice
from passhat.runner.run_spec import RunSpec, run
from passhat.suites import load_suite
from passhat.suites.base import Settings
from passhat.suites.workspace.places import Places

FIX = "sed -i 's/ - / + /' add.sh"


def test_a_fix_passes_and_its_diff_is_kept(attempt: Attempting) -> None:
    ended = attempt(f"{FIX}; echo done")
    assert (ended.verdict, ended.score) == ("passed", 1.0)
    assert ended.texts["got"] == "1 file changed, +1 -1: add.sh"
    assert "-echo $(($1 - $2))\n+echo $(($1 + $2))" in ended.texts["diff"]
    assert "ok 2 - large" in ended.texts["tests"]
    assert ended.texts["agent"] == "done"


def test_half_of_the_tests_are_half_a_score(attempt: Attempting) -> None:
    ended = attempt("echo '[ $1 = 2 ] && echo 5 || echo 0' > add.sh")
    assert (ended.verdict, ended.why, ended.score) == ("failed", "wrong_answer", 0.5)
    assert ended.detail == "1 of 2 tests did not pass: large"


def test_an_agent_that_changes_nothing_fails(attempt: Attempting) -> None:
    ended = attempt("echo I would add them.")
    assert (ended.verdict, ended.why) == ("failed", "missing_outputs")
    assert "it changed nothing; it ended with: I would add them." in ended.detail


def test_an_agent_that_breaks_down_says_why(attempt: Attempting) -> None:
    ended = attempt("echo no key is set >&2; exit 3")
    assert (ended.verdict, ended.why) == ("failed", "agent_error")
    assert ended.detail == "ended without an answer (exit 3): no key is set"


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("command:sh agent.sh {prompt}", 'printf "%s" "$1"'),
        ("command:sh agent.sh", "cat"),
        ("command:sh agent.sh {prompt_file}", 'cat "$1"'),
    ],
)
def test_the_instruction_is_an_argument_the_input_or_a_file(
    attempt: Attempting, words: str, script: str
) -> None:
    ended = attempt(script, agent=words)
    assert ended.texts["agent"] == ended.texts["user"]
    assert ended.texts["agent"].endswith("Fix add.sh.")


def test_every_attempt_has_a_home_and_a_workspace_of_its_own(attempt: Attempting) -> None:
    script = "ls -A ~ . /tmp; echo $HOME $PWD; touch ~/memory /tmp/memory memory"
    first, second = (attempt(script, number=i) for i in (1, 2))
    assert first.texts["agent"] == second.texts["agent"]
    assert "memory" not in second.texts["agent"]
    assert str(Path.home()) not in first.texts["agent"].split()[-2:]


def test_a_function_has_the_workspace(
    attempt: Attempting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "coder.py").write_text(
        "def fix(prompt, attempt):\n"
        "    place = attempt.workspace\n"
        "    place.write('add.sh', place.read('add.sh').replace(' - ', ' + '))\n"
        "    open('/etc/passhat-was-here', 'a') if attempt.number > 1 else None\n"
        "    return place.run('sh add.sh 20 3').output + place.diff()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    ended = attempt("", agent="python:coder:fix")
    assert ended.verdict == "passed"
    assert ended.texts["agent"].startswith("23\ndiff --git a/add.sh b/add.sh")
    assert ended.texts["tool"].startswith("diff --git")  # the last command that it ran


def test_a_function_in_this_process_keeps_to_its_workspace(attempt: Attempting) -> None:
    def fix(prompt: str, attempt: AttemptInfo) -> str:  # noqa: ARG001
        assert attempt.workspace is not None
        with pytest.raises(InvalidValue, match="outside"):
            attempt.workspace.read("../home/x")
        attempt.workspace.write("add.sh", "echo $(($1 + $2))\n")
        return attempt.workspace.run("touch /etc/passhat-was-here; pwd").output

    ended = attempt("", agent=fix)
    assert ended.verdict == "passed"
    assert "Read-only file system" in ended.texts["agent"]


@pytest.mark.parametrize("sandbox", ["landlock", "none"])
def test_without_bubblewrap(attempt: Attempting, sandbox: str) -> None:
    choice = JudgingChoice(
        sandbox="auto" if sandbox == "none" else sandbox, unsafe=sandbox == "none"
    )
    script = (
        f"echo x > /etc/passhat-was-here; (setsid sleep 5511 &) ; {FIX}"
        if sandbox != "none"
        else FIX
    )
    ended = attempt(script, judging=choice)
    assert ended.verdict == "passed", ended
    assert not Path("/etc/passhat-was-here").exists()
    running = subprocess.run(["pgrep", "-f", "sleep 5511"], capture_output=True).stdout
    assert running == b""


def test_landlock_hides_the_tests(attempt: Attempting, tasks: Path, workspace_cache: Path) -> None:
    script = f"cat {tasks}/shell/hidden/checks/run.sh; ls {workspace_cache}/attempts; exit 0"
    ended = attempt(script, judging=JudgingChoice(sandbox="landlock"))
    assert "ok 1" not in ended.texts["agent"]
    assert "Permission denied" in ended.texts["agent"]


def test_keeping_the_home_is_part_of_the_protocol(tasks: Path) -> None:
    judges = []
    for settings in (Settings(), Settings(keep_home=True)):
        suite = load_suite(f"workspace:{tasks}", settings)
        judges.append(suite.judge)
    assert judges == [
        "hidden tests (bubblewrap)",
        "hidden tests (bubblewrap); the agent keeps the user's home",
    ]


def test_many_at_once_share_nothing(tasks: Path, tmp_path: Path, workspace_cache: Path) -> None:
    agent = tmp_path / "agent.sh"
    agent.write_text(
        f"ls; ls /tmp | grep mine; {FIX}; touch mine /tmp/mine ~/mine; sleep 0.2; ls ~"
    )
    said = set()
    spec = RunSpec(
        agent=f"command:sh {agent}",
        suite=f"workspace:{tasks}",
        tasks=("shell",),
        attempts=6,
        jobs=6,
        store=str(tmp_path / "s.db"),
    )
    result = run(spec, progress=lambda record, _: said.add(record.transcript[1]["text"]))
    assert result.stored.passed == 6
    assert said == {"README.md\nadd.sh\nmine"}
    assert remains(workspace_cache) == []


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """A runner that is killed cannot clean up; its lock is free, and so its folder goes."""
    code = (
        "import sys, pathlib, time\n"
        "from passhat.suites.workspace.places import Places\n"
        "place = Places(pathlib.Path(sys.argv[1])).open()\n"
        "(place / 'work').mkdir(); print('ready', flush=True); time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    alive = Places(tmp_path)
    mine = alive.open()
    assert len(list((tmp_path / "attempts").iterdir())) == 2  # one that lives is left alone
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    other = Places(tmp_path)
    assert {path.name for path in (tmp_path / "attempts").iterdir()} >= {mine.name}
    other.open()
    assert len(list((tmp_path / "attempts").iterdir())) == 2
    asyncio.run(alive.close())
    asyncio.run(other.close())
    assert list((tmp_path / "attempts").iterdir()) == []


def test_a_set_up_runs_once_and_is_kept(tmp_path: Path, attempt: Attempting) -> None:
    write_task(
        tmp_path / "prepared",
        'instruction = "Fix."\ntest = "sh checks/run.sh"\nresult = "tap"\n'
        'setup = "date +%s%N > made; mkdir node_modules; echo x > node_modules/dep"\n',
        **{
            "start__add.sh": "echo 0\n",
            "solution__add.sh": "cat node_modules/dep >/dev/null && echo $(($1 + $2))\n",
            "hidden__checks__run.sh": SHELL_TESTS,
        },
    )
    script = "cat made; git status --short; echo 'echo $(($1 + $2))' > add.sh"
    one, two = (attempt(script, "prepared", tmp_path / "prepared", number=i) for i in (1, 2))
    assert one.verdict == two.verdict == "passed"
    assert one.texts["agent"] == two.texts["agent"]
    assert "node_modules" not in one.texts["agent"]


def test_an_agent_without_files_is_refused(tasks: Path, tmp_path: Path) -> None:
    spec = RunSpec(
        agent="openai:gpt-5@http://127.0.0.1:9/v1",
        suite=f"workspace:{tasks}",
        store=str(tmp_path / "s.db"),
    )
    with pytest.raises(InvalidValue, match="needs an agent that edits files"):
        spec.plan()
