"""Every command ends its help with two examples, and they run."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from passhat.cli.main import cli, main
from passhat.cli.shared.commands import Command, every_command

SERVERS = ("view", "serve", "white")
ELSEWHERE = {
    "demo": "takes seconds; tests/cli/test_demo.py runs both",
    "battle": "needs agents of a scenario; tests/integrations/agentbeats runs it",
    "judge": "needs samples of programs; docs/judging-code.md runs it",
    "bisect": "needs a history with a break; docs/which-change.md runs it",
    "mcp": "needs a client; tests/cli/test_mcp.py has one",
    "sandbox check": "tests/judging runs it with what this machine has",
}
ENDS_WITH = {"gate": (0, 1, 3), "review": (1,), "doctor": (0, 1)}


EXAMPLES = {
    name: command.examples for name, command in every_command(cli) if isinstance(command, Command)
}


def test_every_command_has_two_examples_at_the_end_of_its_help() -> None:
    for name, command in every_command(cli):
        text = command.get_help(click.Context(command, info_name=f"passhat {name}"))
        tail = text.rpartition("Examples:\n")[2].splitlines()
        assert len(EXAMPLES[name]) == 2
        assert [line.strip() for line in tail] == list(EXAMPLES[name]), name


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after ``passhat init`` and two runs."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        patch.delenv("PASSHAT_STORE", raising=False)
        for line in ("init", "run", "run --seed 1 --name again"):
            assert main(line.split()) == 0
        with (folder / "attempts.jsonl").open("w") as out, redirect_stdout(out):
            assert main(["export", "latest"]) == 0
    return folder


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared folder, with the process in it."""
    folder = tmp_path / "a" / "folder"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("PASSHAT_STORE", raising=False)
    monkeypatch.syspath_prepend("")
    sys.modules.pop("agent", None)
    return folder


def _arguments(line: str) -> list[str]:
    """The words after ``passhat``, without what the shell does with the output."""
    inner = re.fullmatch(r'eval "\$\((.*)\)"', line)
    words = shlex.split(inner[1] if inner else line)
    ends = [words.index(sign) for sign in ("|", ">") if sign in words]
    return words[1 : min(ends, default=len(words))]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in (*ELSEWHERE, *SERVERS)])
def test_the_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in EXAMPLES[name]:
        code = main(_arguments(line))
        printed = capsys.readouterr()
        assert code in ENDS_WITH.get(name, (0,)), f"{line}\n{printed.out}{printed.err}"


@pytest.mark.parametrize("name", SERVERS)
def test_the_servers_start(name: str, here: Path) -> None:
    """A server says its address and ends when it is interrupted."""
    words = [*_arguments(EXAMPLES[name][1].replace("8000", "0"))]
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", *words],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    seen = ""
    for text in process.stdout:
        seen += text
        if re.search(r"http://127\.0\.0\.1:\d+", text):
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert "http://127.0.0.1:" in seen, seen


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("runns", "Write: passhat runs or: passhat run"),
        ("store chek", "Write: passhat store check"),
        ("xyzzy", "There is no command 'xyzzy'. 'passhat -h' lists all."),
        ("run -a python:agent.py:answer", "Write python:agent:answer"),
        ("run -a python:agent:anser", "Did you mean python:agent:answer?"),
        ("run -a python:agnt:answer", "Did you mean python:agent:...?"),
        ("run -a python:agent:nothing_like_it", "It has: answer"),
        ("run -a command:./tasks.jsonl", "is not executable"),
        ("run -a command:./absent.sh", "there is no program './absent.sh'"),
        ("run --random 9", "the suite has 5 tasks"),
        ("report", "passhat run makes one"),
    ],
)
def test_a_slip_gets_a_hint(
    line: str,
    words: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if line == "report":
        monkeypatch.chdir(here.parent)
    assert main(line.split()) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_file_of_this_folder_does_not_replace_an_installed_module(here: Path) -> None:
    """The folder is looked at for python: agents only, and last."""
    for name in ("rich", "numpy"):
        (here / f"{name}.py").write_text("open('executed', 'w').close()\nraise SystemExit(9)\n")
    program = Path(sys.executable).parent / "passhat"
    done = subprocess.run(
        [program, "run", "-n", "2", "--store", "other.db"], cwd=here, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not (here / "executed").exists()


def test_init_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("mine")
    assert main(["init"]) == 0
    printed = capsys.readouterr().out
    assert "kept  agent.py" in printed
    assert "wrote tasks.jsonl" in printed
    assert (tmp_path / "agent.py").read_text() == "mine"
    assert (tmp_path / ".github" / "workflows" / "passhat.yml").is_file()


@pytest.mark.parametrize(
    ("origin", "step"),
    [
        (None, "- run: pip install passhat==9.9"),
        ('{"url": "file:///checkout", "dir_info": {}}', "- run: pip install ./passhat"),
        (
            '{"url": "https://host/p", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "- run: pip install 'passhat @ git+https://host/p@abc'",
        ),
        ('{"url": "https://host/p.whl", "archive_info": {}}', "'passhat @ https://host/p.whl'"),
    ],
)
def test_the_workflow_installs_passhat_from_where_it_came(
    origin: str | None, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = SimpleNamespace(version="9.9", read_text=lambda _name: origin)
    monkeypatch.setattr("passhat.cli.init.distribution", lambda _name: package)
    assert main(["init", str(tmp_path)]) == 0
    text = (tmp_path / ".github" / "workflows" / "passhat.yml").read_text()
    assert step in text
    assert "{install}" not in text


@pytest.mark.usefixtures("here")
def test_runs_keeps_ids_whole_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(re.match(r"[0-9a-f]{10} ", line) for line in lines[2:]), lines
