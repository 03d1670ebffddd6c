"""Wrong input to every command: exit code 2, one message that helps, nothing on standard output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from passhat.cli.main import cli

Passhat = Callable[..., Any]

TABLE = "model,task,trial,success\n" + "".join(
    f"m,{task},{trial},{passed}\n"
    for task, row in (("a", (1, 0)), ("b", (1, 1)), ("c", (0, 0)))
    for trial, passed in enumerate(row, 1)
)

CASES = {
    # sources
    "report nothere.csv": "there is no such file",
    "report empty.csv": "the file is empty",
    "report head.csv": "has no rows",
    "report maybe.csv": "line 2: column 'success' (read as success) should hold true or false",
    "report broken.json": "begins like JSON and is none",
    "report folder": "is a folder without any log or table",
    "report t.csv --map task=nope": "the table has no column 'nope'",
    "report t.csv --map tsk=task": "Did you mean 'task'?",
    "report t.csv --map task": "should read NAME=COLUMN",
    "read t.csv --records 'runs[*]' --map task=task,success=success": "rows are the records",
    "read t.csv --scorer exact": "no source has several (read as: table)",
    "read t.csv --pass success": "Write FIELD SIGN VALUE",
    "report t.csv --map a.toml --map b.toml": "a.toml and b.toml: only one file can be used",
    "report t.csv --map nothere.toml": "nothere.toml cannot be read: No such file",
    "read t.csv --max-unpacked lots": "write 4GB or 500MB",
    "read nothere.csv": "there is no such file",
    "read folder": "is a folder without any log",
    "validate nothere.jsonl": "there is no such file",
    "validate": "Missing argument 'SOURCE...'",
    "explain pass^2 nothere.csv": "there is no such file",
    "export nothere.csv": "there is no such file",
    "export t.csv --run other": "There are: m",
    "export t.csv -o folder/no/y.parquet": "cannot be written (No such file",
    "import nothere.csv --store s.db": "there is no such file",
    "review nothere.md": "Or give the claim itself",
    "judge nothere.jsonl -s code:ordercode": "cannot be read: No such file",
    "judge t.csv -s code:ordercode": "line 1: is not JSON",
    "tasks jsonl:nothere.jsonl": "cannot be read: No such file",
    "gate t.csv 80%": "Perhaps 'pass^1 >= 80%'. Rules look like:",
    "gate t.csv yes": "a limit. Rules look like:",
    # options that only passhat read has
    "report signed.csv --metric mean": "signed.csv --score-range LOWEST..HIGHEST -o runs.jsonl && "
    "passhat report runs.jsonl --metric mean",
    "report judges.csv": "passhat read judges.csv --scorer x -o runs.jsonl && passhat report",
    **{
        line: "passhat read stars.csv --pass-at 4 --score-range 1..5 -o runs.jsonl "
        f"&& passhat {line.replace('stars.csv', 'runs.jsonl')}"
        for line in (
            *("report stars.csv", "compare stars.csv", "leaderboard stars.csv -o site"),
            *("gate stars.csv 'pass^1 >= 0.5'", "history stars.csv", "explain mean stars.csv"),
            *("figure curves stars.csv -o f.svg", "plan stars.csv --half-width 0.1"),
            *("forecast stars.csv", "temperature fit stars.csv", "export stars.csv"),
        )
    },
    # options that only another command has
    "gate t.csv --against other.csv": "passhat gate has no --unpaired; it is an option of compare",
    # k, metrics, levels
    "report t.csv -k 0": "k starts at 1 and ranges go upwards",
    "report t.csv -k x": "'x' is not a k; write 1,2,4 or 1-4",
    "report t.csv -k 3-1": "k starts at 1 and ranges go upwards",
    "report t.csv -k 9": "pass^9 needs 9 attempts on every task; 3 tasks of 3 have fewer",
    "report t.csv --metric pass^0": "k must be at least 1",
    "report t.csv --metric pas^4": "Did you mean pass^4?",
    "report t.csv --level 1.5": "level must lie between 0 and 1, not 1.5",
    "report t.csv --level nan": "level must lie between 0 and 1, not nan",
    "report t.csv --cluster repo": "there is no slice called 'repo'",
    "report t.csv --by repo": "slices here: none",
    "explain nothing": "Metrics look like: pass@4",
    "explain pass^9 t.csv": "pass^9 needs 9 attempts",
    # comparisons
    "compare t.csv": "two runs are needed to compare",
    "compare t.csv u.csv --metric delta^2": "Ask for what it is made of",
    "compare t.csv u.csv --run other": "no run is called 'other'",
    "compare t.csv u.csv --alternative better": "is not one of 'two-sided'",
    "compare t.csv u.csv --about these-tasks --cluster x": "clusters matter for new tasks only",
    # gates
    "gate t.csv": "a gate needs a rule",
    "gate t.csv pass^4": "it needs a subject, a sign and a limit",
    "gate t.csv 'pass^2 = 0.5'": "Use >=, >, <= or <",
    "gate t.csv 'pass^2 >= 50'": "Did you mean 50%?",
    "gate t.csv 'pass^9 >= 0.5'": "pass^9 needs 9 attempts",
    "gate t.csv 'cost <= 1'": "not recorded is not zero",
    "gate t.csv 'pass^1 >= base'": "compares with base, and there is none",
    "gate t.csv 'pass^1 >= 0.5' --level 0.4": "one-sided and lies between 0.5 and 1",
    "gate t.csv 'pass^1 >= 0.5' --margin 5": "a margin belongs to the gate without a rule",
    "gate t.csv --against u.csv --margin 0": "0.0 is not in the range 0<x<100",
    "gate t.csv 'pass^1 >= 0.5' --attempts 0": "0 is not in the range",
    "gate t.csv 'pass^1 >= 0.5' --tasks x": "neither a number nor a file of task ids",
    "gate t.csv 'pass^1 >= 0.5' --watch 10": "--watch needs the plan",
    # plans and forecasts
    "plan": "a plan needs one goal",
    "plan t.csv --half-width 0.1 --detect 0.1": "a plan needs one goal",
    "plan t.csv --detect 2": "detect must lie between 0 and 1, not 2",
    "plan --half-width 0.1 --assume mean=0.5": "the mean and the ICC you expect",
    "plan --half-width 0.1 --assume mean=1.5,icc=0.2": "mean must lie between 0 and 1",
    "plan t.csv --half-width 0.1 --metric delta^2": "Plan for pass^2 or pass@2",
    "plan t.csv --half-width 0.1 --metric pass^3 --attempts 2": "at least 3 attempts per task",
    "plan t.csv --half-width 0.1 --power 0.9": "the chance to see the difference of --detect",
    "plan t.csv --budget 10": "Add --allocate",
    "plan t.csv --allocate --budget 2": "Give a budget of 6 or more",
    "plan t.csv --detect 0.1 --power 0.3": "power must lie from 0.5 to below 1",
    "plan t.csv --detect 0.1 --assume correlation=3": "correlation must lie from 0 to 1",
    "forecast t.csv --metric first@9": "Forecast pass@9 instead",
    "forecast t.csv --metric pass@99999999999": "k may be at most 1,000,000,000",
    "forecast t.csv --reach 0": "the target must lie between 0 and 1",
    "forecast t.csv --users 0": "0 is not in the range",
    "temperature fit t.csv": "--map temperature=COLUMN",
    # stores and runs
    "show run1 --store nothere.db": "there is no store",
    "show run1 --store t.csv": "cannot be used as a store (file is not a database)",
    "runs --store nothere.db": "there is no store",
    "rm x --store nothere.db": "there is no store",
    "regrade x --store nothere.db": "there is no store",
    "store copy nothere.db b.db": "there is no store",
    "store nothing": "There is no command 'nothing'",
    "run -a demo:careful -s nothing:x": "'nothing:x' is not a suite",
    "run -a demo -s orderdesk:retail": "'demo' is not an agent",
    "run -a demo:careful -s orderdesk:retail -n 0": "attempts must be a whole number of at least 1",
    "run -a demo:careful -s orderdesk:retail -n x": "neither a whole number nor a plan",
    "run -a demo:careful -s orderdesk:retail --shard 3/2": "Write NUMBER/COUNT",
    "run -a demo:careful -s orderdesk:retail --jobs 0": "jobs must be a whole number of at least 1",
    "run -a demo:careful -s orderdesk:retail --task nothing": "Tasks: retail/001",
    "run -n x": "neither a whole number nor a plan",
    # files that are written, and the rest
    "report t.csv -o folder/no/y.md": "folder/no/y.md cannot be written",
    "figure curves t.csv": "a figure needs a file",
    "figure lift t.csv u.csv -o x.bmp": "written as .svg, .png, .pdf",
    "init t.csv": "t.csv is in the way: it is a file, and a folder is needed there",
    "serve --cap x": "--cap takes NAME=NUMBER",
    "view --port -1": "-1 is not in the range",
    "completion nothing": "'nothing' is not one of 'bash'",
    "battle": "a battle needs either a scenario file or --backend",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables, and files that are broken in different ways."""
    path = tmp_path_factory.mktemp("bad")
    (path / "t.csv").write_text(TABLE)
    (path / "u.csv").write_text(TABLE.replace("m,", "k,"))
    (path / "empty.csv").write_text("")
    (path / "head.csv").write_text("task,success\n")
    (path / "maybe.csv").write_text("task,success\na,maybe\n")
    (path / "broken.json").write_text('{"id": 1')
    (path / "folder").mkdir()
    (path / "other.csv").write_text(TABLE.replace("m,", "m,other-"))
    rows = "".join(f"a,{score}\nb,{score}\n" for score in range(1, 6))
    (path / "stars.csv").write_text(f"task,score\n{rows}")
    (path / "signed.csv").write_text("task,score\na,-0.5\na,0.5\nb,1\nb,0\n")
    (path / "judges.csv").write_text(
        "task,scorer,trial,success\n" + "".join(f"a,x,{i},1\na,y,{i},0\n" for i in range(4))
    )
    return path


def _check_options(line: str, message: str) -> None:
    """Every option that a message names is one of the command that it is written behind.

    Options outside of a command line belong to the command that was typed, unless a command
    line or a list of owners follows.
    """
    denied = set(re.findall(r"has no (--[a-z-]+)", message))
    lines = re.findall(r"passhat [a-z][^;,\n]*?(?= && |[;,\n]|\. |$)", message)
    lines = [part for part in lines if " has no --" not in part]
    for part in lines:
        assert _flags_in(part) <= _flags_of(part.split()[1:]), part
        message = message.replace(part, "")
    explained = denied.union(*map(_flags_in, lines))
    assert _flags_in(message) - explained <= _flags_of(shlex.split(line))


def _flags_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z-]+", text))


def _flags_of(words: list[str]) -> set[str]:
    context = click.Context(cli)
    command = cli.get_command(context, words[0])
    if isinstance(command, click.Group):
        command = command.commands.get((*words[1:], "")[0])
    params = command.params if command is not None else []
    return {"--help"} | {flag for p in params for flag in (*p.opts, *p.secondary_opts)}


@pytest.mark.parametrize("line", list(CASES))
def test_a_mistake_is_one_message_and_exit_code_2(
    line: str, folder: Path, passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    ended = passhat(*shlex.split(line))
    assert ended.code == 2
    assert ended.out == ""
    assert CASES[line] in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert "Errno" not in ended.err
    _check_options(line, ended.err)
    made = [path for path in sorted(folder.rglob("*")) if path not in before]
    assert made == [], "a refused command leaves no file behind"


def test_a_truncated_file_is_not_called_valid(
    passhat: Passhat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ended = passhat("report", "broken.json")
    assert "valid JSON" not in ended.err
    assert "truncated" in ended.err
