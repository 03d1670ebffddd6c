"""Runs without a verdict or without an answer: no screen shows a number for them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from passhat.cli import main

AGENTS = """
def boom(prompt):
    raise KeyError("OPENAI_API_KEY")


def right(prompt):
    return "4"


def judge(answer, expected):
    raise KeyError("J4")
"""


def write_table(path: Path, passed: dict[str, list[str]], tasks: int = 3) -> str:
    """A table of the models, each task with the same verdicts, an empty one for missing."""
    rows = [
        f"{model},t{task},{number},{verdict}"
        for model, verdicts in passed.items()
        for task in range(tasks)
        for number, verdict in enumerate(verdicts)
    ]
    path.write_text("\n".join(["model,task,attempt,passed", *rows]), encoding="utf-8")
    return str(path)


def run_main(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(list(words))
    return code, " ".join(capsys.readouterr().out.split())


def test_a_gate_with_nothing_judged_prints_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "c.csv", {"A": ["", ""], "B": ["", ""]})
    base = write_table(tmp_path / "b.csv", {"A": ["1", "1"]})
    for rule in ("pass^1 >= 0.5", "each pass^1 >= 0.5", "pass^1 >= base - 0.1"):
        against = ["--against", base] if "base" in rule else []
        code, printed = run_main(capsys, "gate", table, rule, "--run", "A", *against)
        assert code == 4
        assert "0.000" not in printed
        assert "–: nothing judged, no attempt of A has a verdict" in printed
    main(["gate", table, "pass^1 >= 0.5", "--run", "A", "--json"])
    (result,) = json.loads(capsys.readouterr().out)["rules"]
    assert (result["value"], result["low"], result["high"]) == (None, None, None)
    _, printed = run_main(capsys, "report", table)
    assert "One attempt per task" not in printed
    assert "0 to 100%" not in printed


def test_a_page_of_a_run_with_costs_and_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"t{i},{trial},,0.5\n" for i in range(3) for trial in range(2))
    table = tmp_path / "c.csv"
    table.write_text(f"task,trial,success,cost\n{rows}", encoding="utf-8")
    page = tmp_path / "c.html"
    code, printed = run_main(capsys, "report", str(table), "-o", str(page))
    assert code == 0
    assert "No attempt has a verdict: all 6 are missing." in printed
    assert "What an attempt takes" not in page.read_text(encoding="utf-8")


def test_ranges_of_missing_attempts_are_in_the_table_of_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = {"A": ["1", "", "1", "1"], "B": ["0", "", "0", "0"]}
    _, printed = run_main(capsys, "compare", write_table(tmp_path / "c.csv", verdicts, 6))
    assert "pass^1 75 to 100% 0 to 25% -100 to -21 -100 to 19" in printed
    assert "12 attempts are missing" in printed


def test_an_overview_of_one_task_has_intervals_for_its_own_attempts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "c.csv", {"A": ["1"] * 8, "B": ["0"] * 8}, 1)
    _, printed = run_main(capsys, "report", table)
    assert "A 1 0 100% (63 to 100%)" in printed
    assert "95% intervals for fresh attempts at this task." in printed


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("silent_agents.py").write_text(AGENTS, encoding="utf-8")
    task = {"id": "sum", "prompt": "2 + 2?", "answer": "4"}
    Path("t.jsonl").write_text(json.dumps(task), encoding="utf-8")
    task["grader"] = "python:silent_agents:judge"
    Path("j.jsonl").write_text(json.dumps(task), encoding="utf-8")
    return str(tmp_path / "s.db")


def run_agent(name: str, store: str, suite: str = "t.jsonl") -> int:
    agent = f"python:silent_agents:{name}"
    return main(["run", "-s", f"jsonl:{suite}", "-a", agent, "-n", "2", "--store", store])


def test_a_run_without_an_answer_has_no_rate_on_any_screen(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_agent("boom", store) == 4
    _, printed = run_main(capsys, "runs", "--store", store)
    assert re.search(r" 2 – (\d\d-\d\d \S+ )?no answers", printed)
    code, printed = run_main(capsys, "gate", store, "pass^1 >= 0.5")
    assert code == 3
    assert "pass^1 is –: no attempt gave an answer: 2 exceptions (KeyError:" in printed
    assert "more task" not in printed
    for rule in ("pass^1 >= 0.999", "pass^1 <= 0.999"):
        _, printed = run_main(capsys, "gate", store, rule)
        assert "not settled" in printed
        assert "refuted" not in printed.lower()
    assert run_agent("right", store) == 0
    _, printed = run_main(capsys, "report", store)
    assert "boom 1 0 no answer no answer" in printed
    _, printed = run_main(capsys, "compare", store)
    assert printed.startswith("No attempt of silent_agents:boom gave an answer: 2 exceptions")


def test_the_message_of_a_judge_that_raises_is_on_the_screen(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_agent("right", store, "j.jsonl")
    for more in ((), ("--full",)):
        _, printed = run_main(capsys, "report", store, *more)
        assert "judge_error 2 (KeyError: 'J4'" in printed
