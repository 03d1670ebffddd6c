"""passhat gate: exit codes, forms, the job summary, and watching a file that grows."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from passhat.cli.gate import watch_source
from passhat.cli.main import main
from passhat.errors import ReadError
from passhat.stats.gate.sequential_gate import Watcher
from passhat.stats.outcomes import Outcomes, Run


def table(path: Path, passes: Iterable[int], n: int = 8, **columns: object) -> str:
    """A table of attempts: one row each, the passes first."""
    names = ["task", "trial", "success", *columns]
    lines = [",".join(names)]
    for task, c in enumerate(passes):
        lines += [
            ",".join(map(str, [f"t{task}", trial, int(trial < c), *columns.values()]))
            for trial in range(n)
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def good(tmp_path: Path) -> str:
    return table(tmp_path / "good.csv", [8] * 40, cost=0.25)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    return table(tmp_path / "bad.csv", [1] * 40, cost=0.75)


def test_a_run_that_is_its_own_baseline_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "good.csv"
    table.write_text("task,n,c\na,8,8\nb,8,7\n")
    same = ["gate", str(table), "--against", str(table)]
    assert main(same) == 2
    assert "both the run and its baseline" in capsys.readouterr().err
    assert main([*same, "--allow"]) == 0


def test_without_a_rule_the_run_is_held_against_its_baseline(
    good: str, bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", good, "--against", good, "--allow"]) == 0
    assert "No regression: No change of pass^1" in capsys.readouterr().out
    broken = table(tmp_path / "broken.csv", [8] * 39 + [0])
    assert main(["gate", broken, "--against", good, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert [change["task"] for change in data["rules"][0]["broken"]] == ["t39"]
    assert data["rules"][0]["about"] == "these tasks"
    assert main(["gate", bad, "--against", good, "--margin", "5"]) == 1


def test_unsettled_warns_in_every_form(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flaky = table(tmp_path / "flaky.csv", [5, 4, 6, 3] * 5)
    other = table(tmp_path / "other.csv", [4, 5, 5, 4] * 5)
    asked = ["gate", flaky, "--against", other, "--margin", "1"]
    assert main([*asked, "-o", "junit"]) == 0
    suite = ElementTree.fromstring(capsys.readouterr().out)[0]
    assert (suite.get("skipped"), suite.get("errors"), suite.get("failures")) == ("1", "0", "0")
    assert main(asked) == 0
    assert "Unsettled (warning): " in capsys.readouterr().out
    assert main([*asked, "--unsettled", "fail"]) == 3
    assert (
        main(["gate", good, "pass^4 >= base", "--against", good, "--allow", "--unsettled", "warn"])
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "needs a rule"),
        (["rate >= 0.5", "--seed", "1"], "--seed repeats"),
        (["rate >= 0.5", "--metric", "pass^4"], "--metric belongs"),
        (["rate >= 0.5", "--margin", "5"], "margin belongs"),
        (["rate >= 0.5", "--about", "this suite"], "--about"),
        (["cost <= 0.5", "--about", "new-tasks"], "changes nothing"),
        (["rate >= 0.5", "--cluster", "repo"], "repo"),
    ],
)
def test_no_option_is_silently_ignored(
    good: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", good, *arguments]) == 2
    assert says in capsys.readouterr().err


def test_clusters_come_from_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["task,trial,success,slice:repo"]
    lines += [f"t{t},{k},{int(t // 10 % 2)},r{t // 10}" for t in range(60) for k in range(2)]
    path = tmp_path / "repos.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    main(["gate", str(path), "rate >= 0.1", "--cluster", "repo"])
    assert "only 6 clusters of repo" in " ".join(capsys.readouterr().out.split())


def test_exit_codes_of_paired_rules(good: str, bad: str) -> None:
    assert main(["gate", good, "pass^4 >= base - 0.03", "--against", bad]) == 0
    assert main(["gate", bad, "pass^4 >= base - 0.03", "--against", good]) == 1
    assert main(["gate", good, "pass^4 >= base", "--against", good, "--allow"]) == 3


def test_exit_codes_of_plain_rules(good: str, bad: str) -> None:
    assert main(["gate", good, "pass^4 >= 0.6"]) == 0
    assert main(["gate", bad, "pass^4 >= 0.6"]) == 1
    assert main(["gate", good, "pass^4 >= 0.99"]) == 3


def test_counted_rules(good: str) -> None:
    assert main(["gate", good, "cost <= 0.5", "cost/solved <= 0.25", "missing <= 2%"]) == 0
    assert main(["gate", good, "cost <= 0.2"]) == 1


def test_rules_that_cannot_be_asked(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    for rule, says in [
        ("pass^9 >= 0.5", "needs 9 attempts"),
        ("tokens <= 5", "not recorded is not zero"),
        ("pass^4 >= base", "--against"),
        ("pas^4 >= 0.5", "Did you mean pass^4?"),
        ("cost", "in quotes"),
    ]:
        assert main(["gate", good, rule]) == 2
        assert says in capsys.readouterr().err


def test_incomplete_runs(good: str, tmp_path: Path) -> None:
    assert main(["gate", good, "cost <= 0.5", "--tasks", "41"]) == 4
    assert main(["gate", good, "cost <= 0.5", "--tasks", "40", "--attempts", "8"]) == 0
    assert main(["gate", good, "cost <= 0.5", "--attempts", "9"]) == 4
    lossy = tmp_path / "lossy.csv"
    lossy.write_text("task,trial,success\na,1,1\na,2,\nb,1,1\nb,2,1\n", encoding="utf-8")
    assert main(["gate", str(lossy), "missing <= 2%"]) == 4
    assert main(["gate", str(lossy), "missing <= 25%"]) == 0


def test_short_tasks_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.csv"
    path.write_text("task,n,c\na,4,4\nb,4,3\nc,1,1\n", encoding="utf-8")
    assert main(["gate", str(path), "pass^4 >= 0.01"]) == 2
    assert "c has 1" in capsys.readouterr().err
    assert main(["gate", str(path), "pass^4 >= 0.5", "--drop-short"]) == 3
    assert "left out" in capsys.readouterr().out


def test_json_and_nothing_else(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", good, "cost <= 0.5", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "passhat.gate/1"
    assert data["exit_code"] == 0
    assert data["rules"][0]["rule"] == "cost <= 0.5"


def test_markdown_junit_and_the_job_summary(
    good: str, bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    md, junit, summary = (tmp_path / name for name in ("gate.md", "gate.xml", "summary.md"))
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    rules = ["pass^4 >= base", "cost <= 0.5", "missing <= 2%"]
    code = main(["gate", bad, *rules, "--against", good, "-o", str(md), "-o", str(junit)])
    assert code == 1
    assert "- **✗ refuted** pass^4 >= base\n" in md.read_text(encoding="utf-8")
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## passhat gate: bad against good")
    suite = ElementTree.fromstring(junit.read_text(encoding="utf-8"))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    assert [case.get("name") for case in suite] == rules


def test_junit_counts_what_is_open_or_absent_as_errors(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--against", good, "--allow", "--tasks", "41", "-o", "junit"]
    assert main(["gate", good, "rate >= base", *options]) == 4
    suite = ElementTree.fromstring(capsys.readouterr().out)[0]
    assert (suite.get("tests"), suite.get("errors")) == ("2", "2")


def test_a_summary_that_cannot_be_written_does_not_change_the_verdict(
    good: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "such" / "folder"))
    assert main(["gate", good, "cost <= 0.5"]) == 0
    assert "cannot be written" in capsys.readouterr().err


def test_several_runs_need_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.csv"
    path.write_text("model,task,success,cost\nA,t,1,1\nB,t,0,3\n", encoding="utf-8")
    assert main(["gate", str(path), "cost <= 2"]) == 2
    assert "--run: A, B" in capsys.readouterr().err
    assert main(["gate", str(path), "cost <= 2", "--run", "A"]) == 0
    assert main(["gate", str(path), "cost <= 2", "--run", "B"]) == 1
    assert main(["gate", str(path), "cost <= 2", "--run", "C"]) == 2
    against = ["--against", str(path), "--base-run", "B"]
    assert main(["gate", str(path), "cost <= base", "--run", "A", *against]) == 0


# -- watching ---------------------------------------------------------------------------------


def test_watching_needs_the_plan(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", good, "pass^4 >= 0.5", "--watch", "10"]) == 2
    assert "--tasks N" in capsys.readouterr().err
    assert main(["gate", good, "pass^4 >= 0.5", "--watch", "10", "--tasks", "no-file"]) == 2


@pytest.mark.parametrize(("c", "code"), [(8, 0), (0, 1)])
def test_watching_a_finished_file(tmp_path: Path, c: int, code: int) -> None:
    path = table(tmp_path / "done.csv", [c] * 30)
    plan = ["--tasks", "30", "--attempts", "8"]
    assert main(["gate", path, "pass^4 >= 0.5", "--watch", "10", *plan]) == code


def test_watching_to_the_end_may_stay_open(tmp_path: Path) -> None:
    path = table(tmp_path / "done.csv", [8, 0] * 10)
    plan = ["--watch", "10", "--tasks", "20", "--attempts", "8", "--about", "new-tasks"]
    assert main(["gate", path, "pass^4 >= 0.45", *plan]) == 3


def grow(path: Path, parts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let a file grow by one part between two looks; after the last it stays as it is."""
    left = list(parts)

    def sleep(_seconds: float) -> None:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(left.pop(0) if left else "")

    path.write_text(left.pop(0), encoding="utf-8")
    monkeypatch.setattr("passhat.cli.gate.watch_source.__defaults__", (sleep,))
    return left


def test_watching_a_file_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passhat.cli.gate._PATIENCE", 10_000)  # a slow writer has not ended
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(f"t{i}" for i in range(60)) + "\n\n", encoding="utf-8")
    path = tmp_path / "grows.csv"
    path.write_text("task,trial,success\n", encoding="utf-8")
    stopped = threading.Event()

    def write() -> None:
        for task in range(60):
            with path.open("a", encoding="utf-8") as stream:
                for trial in range(4):
                    stream.write(f"t{task},{trial},")
                    stream.flush()
                    stream.write("1\n")
            if stopped.wait(0.005):
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        plan = ["--watch", "0.02", "--tasks", str(ids), "--attempts", "4"]
        assert main(["gate", str(path), "pass^2 >= 0.5", *plan]) == 0
    finally:
        stopped.set()
        writer.join()


WATCH = ["--watch", "10", "--tasks", "2", "--attempts", "2"]


def test_a_row_counts_once_it_is_written_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a row, however long it lies there, is neither a missing attempt nor a broken file."""
    path = tmp_path / "grows.csv"
    parts = ["", "", "", "", "", "task,tri", "al,success\n", "", "", "", "", "", "a,1"]
    parts += [",1\na,2,1\nb,1,1\nb,2,", "1", "\n"]
    left = grow(path, parts, monkeypatch)
    assert main(["gate", str(path), "missing <= 10%", "pass^1 >= 0.9", *WATCH]) == 0
    assert left == []
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"nothing to be read yet ({path}: the file is empty.)"
    assert "b, which has 1 of 2 attempts" in said[-1]


def test_a_last_line_without_an_end_counts_once_nobody_writes_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "done.jsonl"
    rows = [f'{{"task": "{task}", "trial": {i}, "success": 1}}' for task in "ab" for i in (1, 2)]
    left = grow(path, ["\n".join(rows)[:-4], "", "", "", "", "", "", rows[-1][-4:]], monkeypatch)
    assert main(["gate", str(path), "pass^1 >= 0.9", *WATCH]) == 0
    assert left == []
    assert "b, which has 1 of 2 attempts" in capsys.readouterr().err


def test_an_unreadable_moment_is_waited_out_but_not_for_ever() -> None:
    run = Run("a", "a", Outcomes.from_counts(4, [4] * 20, [str(i) for i in range(20)]))
    answers: list[Run | ReadError] = [ReadError("cut", source="f"), run]
    slept: list[float] = []

    def read(_growing: bool) -> Run:
        answer = answers.pop(0)
        if isinstance(answer, ReadError):
            raise answer
        return answer

    watcher = Watcher(["pass^2 >= 0.5"], tasks=20, attempts=4, seed=0)
    assert watch_source(read, watcher, 7.0, slept.append).exit_code == 0
    assert slept == [7.0]
    answers[:] = [ReadError("broken", source="f")] * 9
    with pytest.raises(ReadError, match="broken"):
        watch_source(
            read, Watcher(["rate >= 0.5"], tasks=20, attempts=4, seed=0), 1.0, slept.append
        )


def test_control_c_ends_watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "part.csv", [8] * 3)

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    monkeypatch.setattr("passhat.cli.gate.watch_source.__defaults__", (interrupt,))
    plan = ["--watch", "10", "--tasks", "30", "--attempts", "8"]
    assert main(["gate", path, "pass^4 >= 0.5", *plan]) == 130
    assert "stopped" in capsys.readouterr().err


def test_a_reader_that_goes_away_does_not_change_the_verdict() -> None:
    import subprocess
    import sys

    code = (
        "import os, sys; from passhat.cli import main; "
        "sys.exit(main(['gate', 'example:helpdesk', '--run', sys.argv[1], 'pass^8 >= 0.5']))"
    )
    for run, verdict in (("hasty", 1), ("careful", 3)):
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, run], stdout=write_end, stderr=subprocess.PIPE
            )
        finally:
            os.close(write_end)
        assert (done.returncode, done.stderr) == (verdict, b"")


def test_attempts_at_settled_tasks_are_pointed_out(
    passhat: Callable[..., Any], tmp_path: Path
) -> None:
    paths = []
    for name, shift in (("base", 0), ("new", 1)):
        counts = [0] * 40 + [8] * 5 + [3 + (i + shift) % 5 for i in range(15)]
        lines = [f"{name},t{i},8,{c}" for i, c in enumerate(counts)]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["model,task,n,c", *lines]) + "\n", encoding="utf-8")
        paths.append(str(path))
    base, new = paths
    text = " ".join(passhat("gate", new, "--against", base, "--metric", "pass^4").out.split())
    assert "75% of the baseline's attempts are at settled tasks" in text
    assert "--gate -o plan.json" in text
    page = tmp_path / "gate.md"
    assert passhat("gate", new, "--against", base, "-o", page).code == 0
    assert "settled tasks" in page.read_text(encoding="utf-8")  # what the Action comments
