"""Errors of the library name options as data; the command line words its flags."""

from __future__ import annotations

import json
import pickle
import re
import shlex
from pathlib import Path

import pytest

from make_reader_fixtures import inspect_log
from passhat.cli import main
from passhat.cli.shared.exits import hint_text, word_flag
from passhat.errors import Hint, InvalidValue


def test_python_reads_keywords_and_the_command_line_flags() -> None:
    hint = Hint("Leave out {cluster}, or ask {about}.", cluster=None, about="new tasks")
    error = InvalidValue("clusters matter for new tasks only.", hint=hint)
    assert str(error).endswith("Leave out cluster, or ask about='new tasks'.")
    assert hint_text(error) == "Leave out --cluster, or ask --about new-tasks."


@pytest.mark.parametrize(
    ("name", "value", "flag"),
    [
        ("margin", 0.05, "--margin 5"),
        ("drop_short", True, "--drop-short"),
        ("against", "BASELINE", "--against BASELINE"),
        ("columns", {"task": "COLUMN"}, "--map task=COLUMN"),
        ("columns", {"n": "total", "c": "good"}, "--map n=total,c=good"),
        ("passes", "COLUMN == WORD", "--pass 'COLUMN == WORD'"),
        ("half_width", 0.05, "--half-width 0.05"),
    ],
)
def test_a_flag(name: str, value: object, flag: str) -> None:
    assert word_flag(name, value) == flag


def test_advice_after_advice_keeps_the_options_of_both() -> None:
    first = Hint("Either {columns[n]} or {columns[c]}. ", columns={"n": "x", "c": "{y}"})
    both = first.then(Hint("Or {most}.", most=4))
    assert both.reword(word_flag) == "Either --map n=x or --map c={y}. Or --most 4."
    assert first.then("{plain}").reword(word_flag) == "Either --map n=x or --map c={y}. {plain}"


def test_rows_that_are_lost_come_with_advice_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "words.csv"
    table.write_text("task,success\na,yes\nb,maybe\nc,perhaps\n", encoding="utf-8")
    assert main(["report", str(table)]) == 4
    printed = capsys.readouterr().err
    assert printed.count("state it: --pass 'success == WORD'") == 1
    line = f"Write: passhat read {table} --pass 'success == WORD' -o runs.jsonl && passhat report"
    assert printed.count(line) == 1
    assert "line 4" in printed


def test_a_placeholder_is_not_quoted() -> None:
    assert str(Hint("Name it: {against}.", against="BASELINE")) == "Name it: against=BASELINE."


def test_a_hint_keeps_its_options_through_another_error_and_through_pickle() -> None:
    first = InvalidValue("no.", hint=Hint("Give {most}.", most=4))
    second = pickle.loads(pickle.dumps(InvalidValue("again.", hint=first.hint).hint))
    assert isinstance(second, Hint)
    assert (second, second.reword(word_flag)) == ("Give most=4.", "Give --most 4.")
    assert hint_text(InvalidValue("no.")) == ""


def test_the_first_of_the_listed_judges_makes_a_command_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    values = {"judge": {"value": {"All Correct": 1, "Steps": 4}}}
    (tmp_path / "logs" / "log.json").write_text(json.dumps(inspect_log(scores=values)))
    assert main(["report", "logs"]) == 2
    (line,) = re.findall(r"Write: (.+)", capsys.readouterr().err)
    for command in line.split(" && "):
        assert main(shlex.split(command)[1:]) == 0
    assert "4 passed" in capsys.readouterr().out
