"""How any command ends: exit codes, errors, Ctrl-C, a closed pipe, a light start."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import passhat as package
from passhat.cli.main import COMMANDS, cli
from passhat.cli.shared.commands import every_command
from passhat.cli.shared.exits import ExitCode

DOCS = Path(__file__).parents[2] / "docs"
PASSHAT = [sys.executable, "-m", "passhat"]

Passhat = Callable[..., Any]


def test_version_and_help(passhat: Passhat) -> None:
    assert passhat("--version").out == f"passhat, version {package.__version__}\n"
    ended = passhat("--help")
    assert ended.code == 0
    assert all(command in ended.out for command in COMMANDS)


HELP = """
import os, sys
from passhat.cli import main
for command in {commands}:
    sys.stdout.flush()
    if os.fork() == 0:  # nothing that one command loads is there for the next
        main([*command, "--help"])
        heavy = {{"numpy", "scipy", "rich", "msgspec", "duckdb", "vl_convert"}} & set(sys.modules)
        print(" ".join(command), len(sys.modules), *heavy, sep=",", file=sys.stderr)
        os._exit(0)
    os.wait()
"""


def test_help_loads_neither_numpy_nor_scipy_nor_rich() -> None:
    commands = [[], *([name] for name in COMMANDS), ["temperature", "fit"]]
    code = HELP.format(commands=commands)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = [line.split(",") for line in done.stderr.splitlines()]
    assert [line[0] for line in lines] == [" ".join(command) for command in commands]
    for name, count, *heavy in lines:
        assert (name, heavy) == (name, [])
        assert int(count) < 250, name


def test_a_report_on_a_small_table_loads_neither_scipy_nor_gates(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("task,attempt,passed\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    code = (
        "import sys; from passhat.cli import main; assert main(['report', 't.csv']) == 0; "
        "print([m for m in ('scipy', 'numpy.ma', 'passhat.stats.gate', 'passhat.stats.compare', "
        "'passhat.stats.labels.correction') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.endswith("\n[]\n"), done.stdout + done.stderr


def test_importing_the_package_is_light() -> None:
    code = "import sys, passhat; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_wrong_usage_ends_with_2_and_no_traceback(passhat: Passhat) -> None:
    for arguments in (
        ["nonsense"],
        ["report"],
        ["report", "--level"],
        ["explain"],
        ["report", "x"],
    ):
        ended = passhat(*arguments)
        assert ended.code == ExitCode.USAGE, arguments
        assert "Traceback" not in ended.err
        assert ended.err


def test_ctrl_c_is_a_clean_stop() -> None:
    with subprocess.Popen(
        [*PASSHAT, "report", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        # More than a pipe holds (64 KiB on Linux): returns only once passhat reads, and the end of
        # the table is not there, so that it is still reading when the signal comes.
        process.stdin.write(b"task,success\n" + b"a,1\n" * 100_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        # A signal that comes just before Python blocks in read() is noticed when that returns.
        process.stdin.close()
        process.wait(300)
        errors = process.stderr.read()
        assert process.returncode == ExitCode.STOPPED
    assert errors.decode().strip() == "stopped"


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = " ".join(f"'{word}'" for word in [*PASSHAT, "report", "example:helpdesk", "--json"])
    script = f"set -o pipefail; {command} | head -n 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


def test_the_exit_codes_are_the_documented_ones() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert documented == set(ExitCode)


def test_every_command_and_option_is_documented() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, command in every_command(cli):
        assert command.help
        section = text.split(f"# passhat {name}\n", 1)[1].split("\n##", 1)[0]
        for parameter in command.params:
            for flag in parameter.opts:
                assert flag in section or isinstance(parameter, click.Argument), (name, flag)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(passhat: Passhat, shell: str) -> None:
    ended = passhat("completion", shell)
    assert ended.code == 0
    assert "_PASSHAT_COMPLETE" in ended.out


def test_completion_completes(tmp_path: Path) -> None:
    done = subprocess.run(
        PASSHAT,
        env={"_PASSHAT_COMPLETE": "bash_complete", "COMP_WORDS": "passhat rep", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "report" in done.stdout


def test_json_is_all_that_json_prints(passhat: Passhat) -> None:
    ended = passhat("report", "example:helpdesk", "--json")
    assert json.loads(ended.out)["schema"] == "passhat.report/1"
    assert ended.err == ""
