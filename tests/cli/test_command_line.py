"""The command line as a whole: how many options, whole sentences, and the right line for a slip."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from passhat.cli.main import COMMANDS, SECTIONS, cli
from passhat.cli.shared.commands import every_command

Passhat = Callable[..., Any]
MOST_OPTIONS = 256
"""Of the commands and options that version 0.2.0 began with."""
LATER_COMMANDS = {
    "label": 8,
    "judge-check": 6,
    "history": 9,
    "bisect": 10,
    "leaderboard": 8,
    "mcp": 1,
}
"""Commands that came after, with the most options of each."""
LATER_OPTIONS = {
    "--corrected",
    "--labels",
    "--score-range",
    "--unpaired",
    "--keep-home",
    "--coding",
    "--check",
}
"""Options of the earlier commands that came after."""


def options() -> dict[str, list[click.Option]]:
    """The options of every command; ``--help`` is added by click and is none of them."""
    return {
        name: [param for param in command.params if isinstance(param, click.Option)]
        for name, command in every_command(cli)
    }


def test_the_number_of_options_is_limited() -> None:
    counts = {
        name: sum(not LATER_OPTIONS & set(option.opts) for option in found)
        for name, found in options().items()
    }
    for name, most in LATER_COMMANDS.items():
        assert counts.pop(name, 0) <= most, name
    listed = ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda one: -one[1]))
    assert sum(counts.values()) <= MOST_OPTIONS, listed


def test_every_option_has_one_line_of_help_and_a_value_has_an_example() -> None:
    example = re.compile(r"\bas in\b|, as |\[default")
    for name, found in options().items():
        for option in found:
            text, shown = option.help or "", f"{name} {max(option.opts, key=len)}"
            assert 0 < len(text) <= 125, f"{shown}: {len(text)} characters"
            assert "\n" not in text, shown
            takes_value = not option.is_flag and not isinstance(option.type, click.Choice)
            if takes_value and not option.show_default:
                assert example.search(text), f"{shown}: {text}"


def test_help_lists_every_command_once_with_a_whole_sentence(passhat: Passhat) -> None:
    text = passhat("--help").out
    assert "..." not in text.partition("Options:")[2]
    assert sorted(COMMANDS) == sorted({name for names in SECTIONS.values() for name in names})
    for heading in SECTIONS:
        assert f"\n{heading}:\n" in text
    for _, command in every_command(cli):
        sentence = (command.help or "").partition("\n\n")[0]
        assert sentence.rstrip()[-1] in ".?", sentence


TABLE = "task,success,domain\n" + "a,1,x\na,0,x\nb,1,y\nb,1,y\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "u.csv"):
        (tmp_path / name).write_text(TABLE)
    return tmp_path


READ = "passhat read"
SLIPS = {
    # options that only passhat read has
    "report t.csv --pass-at 0.5": f"{READ} t.csv --pass-at 0.5 -o runs.jsonl && "
    "passhat report runs.jsonl",
    "report t.csv --records '[*]' --map task=id": f"{READ} t.csv --records '[*]' --map task=id -o "
    "runs.jsonl && passhat report runs.jsonl",
    "report t.csv --by domain --agent me": f"{READ} t.csv --agent me --slice domain -o runs.jsonl "
    "&& passhat report runs.jsonl --by domain",
    "compare t.csv u.csv --join-by=folder -k 1": f"{READ} t.csv u.csv --join-by=folder -o "
    "runs.jsonl && passhat compare runs.jsonl -k 1",
    "gate t.csv 'pass^1 >= base' --against u.csv --pass-at 1": f"{READ} t.csv --pass-at 1 -o "
    f"runs.jsonl && {READ} u.csv --pass-at 1 -o base.jsonl && "
    "passhat gate runs.jsonl 'pass^1 >= base' --against base.jsonl",
    # options of earlier versions
    "report t.csv --md r.md": "passhat report t.csv -o r.md",
    "report t.csv --md -": "passhat report t.csv -o md",
    "report t.csv --md notes": "passhat report t.csv -o md:notes",
    "gate t.csv --against u.csv --junit=g.xml": "passhat gate t.csv --against u.csv -o g.xml",
    "export t.csv --tau2": "passhat export t.csv -o tau2",
    "plan --detect 0.1 --mean 0.5": "passhat plan --detect 0.1 --assume mean=0.5",
    "run -a a --lease 60": "passhat run -a a --set lease=60",
    "run --no-canary -n 4": "passhat run --set canary=no -n 4",
    "run --unsafe-no-sandbox": "passhat run --sandbox none",
    "judge s.jsonl --timeout 3": "passhat judge s.jsonl --set program_seconds=3",
    "config -n 16": "passhat run --show-config -n 16",
    # near misses
    "report t.csv --metrics pass^1": "passhat report t.csv --metric pass^1",
    "reprot t.csv": "passhat report t.csv",
    "store chek": "passhat store check",
    # options of another command
    "report latest --margin 5": "passhat gate latest --margin 5",
    # words in another order
    "t.csv report": "passhat report t.csv",
    "-k 4 report t.csv": "passhat report t.csv -k 4",
    "t.csv -k 1": "passhat report t.csv -k 1",
    "check store": "passhat store check",
    "vacuum": "passhat store vacuum",
    "pass^4": "passhat explain pass^4",
    "explain t.csv pass^4": "passhat explain pass^4 t.csv",
    "figure t.csv curves -o f.svg": "passhat figure curves t.csv -o f.svg",
    "run demo:careful orderdesk -n 4": "passhat run -a demo:careful -s orderdesk -n 4",
    "gate t.csv u.csv": "--against u.csv",
    "report compare t.csv u.csv": "passhat compare t.csv u.csv",
    "report run": "passhat report latest",
    # a metric where it does not stand, and words that people try
    "report t.csv pass@2": "Write: passhat report t.csv --metric pass@2",
    "report t.csv --pass@k 3 --full": "passhat report t.csv --metric pass@3 --full",
    "report t.csv --pass@3 --full": "passhat report t.csv --metric pass@3 --full",
    "forecast t.csv pass@10": "passhat forecast t.csv --metric pass@10",
    "report t.csv -k 50": "As in: passhat forecast t.csv --metric pass^50",
    "report t.csv --html": "passhat report t.csv -o report.html",
    "report nothere@2.csv": "Check the path or the glob.",
    "estimate t.csv": "passhat report t.csv",
    "help": "passhat --help",
    "version": "passhat --version",
    "gate t.csv --rule 'pass^1 >= 0.5'": "passhat gate t.csv 'pass^1 >= 0.5'",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_is_answered_with_the_right_command_line(passhat: Passhat, line: str) -> None:
    ended = passhat(*shlex.split(line))
    assert ended.code == 2
    assert " ".join(SLIPS[line].split()) in " ".join(ended.err.split())


@pytest.mark.usefixtures("here")
def test_what_read_writes_is_what_the_other_command_would_have_read(passhat: Passhat) -> None:
    """The line that a moved option is answered with works when it is typed."""
    said = passhat("report", "t.csv", "--by", "domain", "--agent", "me").err
    first, second = said.rpartition("Write:\n")[2].strip().split(" && ")
    assert passhat(*shlex.split(first)[1:]).code == 0
    ended = passhat(*shlex.split(second)[1:], "--json")
    (run,) = json.loads(ended.out)["runs"]
    assert (run["agent"], run["passed"]) == ("me", 3)
    assert set(run["slices"]) == {"x", "y"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "lesae=3"), "Did you mean lease?"),
        (("--set", "jobs=3"), "jobs is an option: --jobs 3"),
        (("--set", "lease"), "should read lease=VALUE"),
        (("--set", "lease=soon"), "'soon' is not a valid float"),
        (("--set", "tools=ssh"), "'ssh' is not one of"),
    ],
)
def test_a_wrong_setting_says_what_is_right(
    passhat: Passhat, words: tuple[str, ...], message: str
) -> None:
    ended = passhat("run", "-a", "demo:careful", "-s", "orderdesk/retail", *words)
    assert ended.code == 2
    assert message in ended.err


def test_a_rule_may_come_before_the_source(passhat: Passhat, here: Path) -> None:
    first = passhat("gate", "pass^1 >= 0.01", "t.csv")
    assert (first.code, first.out) == (0, passhat("gate", "t.csv", "pass^1 >= 0.01").out)
    assert here.joinpath("t.csv").exists()


@pytest.mark.usefixtures("here")
def test_a_file_that_is_replaced_is_never_half_written(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    from passhat.reporting import export

    Path("b.jsonl").write_text("the old baseline")
    rows = iter([{"task": "a"}])

    def broken(_runs: object) -> Any:
        yield next(rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(export, "export_rows", broken)
    assert passhat("export", "t.csv", "-o", "b.jsonl").code == 130
    assert Path("b.jsonl").read_text() == "the old baseline"
    assert not Path("b.jsonl.part").exists()


def test_a_line_that_deletes_is_never_offered(passhat: Passhat) -> None:
    done = passhat("read", "t.csv", "--force")
    assert "passhat rm t.csv" not in done.err
    assert "It is an option of passhat rm." in done.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["list"], "passhat runs"),
        (["test", "agent.py"], "passhat run agent.py"),
        (["eval", "old.csv"], "passhat report old.csv"),
        (["help", "report"], "passhat report --help"),
    ],
)
def test_words_of_other_tools_get_the_command_that_does_the_same(
    passhat: Passhat, words: list[str], line: str
) -> None:
    ended = passhat(*words)
    assert ended.code == 2
    assert ended.err.rstrip().endswith(line)
