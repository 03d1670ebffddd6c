"""passhat label, and report with labels: drawn, asked for, from and to a table, corrected."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]


def table(tasks: int = 12, n: int = 4) -> str:
    """A table in which the judge fails every third task once."""
    rows = ["task,trial,success"]
    for task in range(tasks):
        rows += [f"t{task},{j},{int(not (task % 3 == 0 and j == 1))}" for j in range(1, n + 1)]
    return "\n".join(rows) + "\n"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passhat: Passhat) -> str:
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text(table())
    assert passhat("import", "runs.csv", "--store", "s.db").code == 0
    return "s.db"


def answer(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{key}\n" for key in keys)))


def test_labels_are_asked_for_one_by_one_and_continued(
    store: str, passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "rrx")
    first = passhat("label", "latest", "--whole-tasks", 6, "--store", store, "--person", "ada")
    assert first.code == 0
    assert "drawn: whole tasks 6 of 12, seed 1 (24 attempts)" in first.out
    assert "1 of 24" in first.out
    assert "passed" not in first.out.replace("drawn: ", "")
    assert "ada: 2 right, 0 wrong, 0 skipped" in first.out
    assert "22 drawn attempts without a label" in first.out
    answer(monkeypatch, "wus" + "r" * 21)
    second = passhat("label", "latest", "--store", store, "--person", "ada")
    assert "3 of 24" in second.out
    assert "ada: 23 right, 0 wrong, 1 skipped" in second.out
    assert "without a label" not in second.out
    answer(monkeypatch, "rq")
    third = passhat("label", "latest", "--store", store, "--person", "bob")
    assert "bob: 1 right" in third.out


def test_a_table_is_written_filled_in_and_read_back(store: str, passhat: Passhat) -> None:
    command = ("label", "latest", "--store", store)
    passhat(*command, "--sample", 10, "--failures", 2, "--seed", 5, "-o", "labels.csv")
    rows = list(csv.DictReader(Path("labels.csv").read_text().splitlines()))
    assert len(rows) == 10
    assert {row["label"] for row in rows} == {""}
    assert "verdict" not in rows[0]
    lines = ["task,attempt,label,person"]
    lines += [f"{row['task']},{row['attempt']},right,ada" for row in rows]
    Path("filled.csv").write_text("\n".join(lines) + "\n")
    assert "10 labels read, 10 new" in passhat(*command, "--from", "filled.csv").out
    assert "10 labels read, 0 new" in passhat(*command, "--from", "filled.csv").out
    passhat(*command, "-o", "labels.csv")
    rows = list(csv.DictReader(Path("labels.csv").read_text().splitlines()))
    assert {(row["label"], row["person"]) for row in rows} == {("right", "ada")}


def test_a_report_shows_the_judge_and_the_corrected_numbers(store: str, passhat: Passhat) -> None:
    lines = ["task,attempt,label,person"]
    lines += [f"t{task},{j},right,ada" for task in range(8) for j in range(1, 5)]
    Path("labels.csv").write_text("\n".join(lines) + "\n")
    assert "32 new" in passhat("label", "latest", "--store", store, "--from", "labels.csv").out
    shown = passhat("report", store, "--corrected").out
    words = " ".join(shown.split())
    assert "Judge: fails 9.4%" in words
    assert "would read pass^4 = 67%" in words
    assert "8 tasks of 12 labeled whole (32 labels)" in words
    assert "not drawn by passhat" in words
    (run,) = json.loads(passhat("report", store, "--corrected", "--json").out)["runs"]
    (value, *_) = [one for one in run["sections"]["corrected"]["estimates"]
                   if one["metric"] == "pass^4" and one["about"] == "new tasks"]  # fmt: skip
    assert value["value"] == 1.0
    assert value["judged"]["value"] == pytest.approx(8 / 12)
    assert run["sections"]["judge"]["false_failures"]["errors"] == 3
    outside = passhat("report", "runs.csv", "--labels", "labels.csv", "--corrected", "--json")
    (run,) = json.loads(outside.out)["runs"]
    assert run["sections"]["corrected"]["estimates"][0]["value"] == 1.0


def write_labels(name: str, rows: list[tuple[str, int, str]], separator: str = ",") -> None:
    lines = [
        ("task", "attempt", "label"),
        *((task, str(number), word) for task, number, word in rows),
    ]
    Path(name).write_text("\n".join(map(separator.join, lines)) + "\n")


def test_tasks_that_are_whole_by_a_draw_of_failures_do_not_count(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """12 tasks x 2 of which 6 fail twice: drawing all failures labels exactly those whole."""
    monkeypatch.chdir(tmp_path)
    rows = [f"t{i:02},{j},{int(i >= 6)}" for i in range(12) for j in (1, 2)]
    Path("two.csv").write_text("task,trial,success\n" + "\n".join(rows) + "\n")
    passhat("import", "two.csv", "--store", "two.db")
    label = ("label", "latest", "--store", "two.db", "--person", "ada")
    passhat(*label, "--sample", 13, "--failures", 12, "-o", "drawn.csv")
    drawn = list(csv.DictReader(Path("drawn.csv").read_text().splitlines()))
    places = [(row["task"], int(row["attempt"])) for row in drawn]
    write_labels("filled.csv", [(task, n, "wrong") for task, n in places], ";")
    assert "13 labels read, 13 new" in passhat(*label, "--from", "filled.csv").out
    ended = passhat("report", "two.db", "--corrected", "-k", 2)
    words = " ".join(ended.err.split())
    assert ended.code == 2
    assert "0 tasks of a fair choice have a label on every attempt" in words
    assert "6 more are labeled whole" in words
    assert "passhat label RUN --whole-tasks 20" in words
    # The same labels without the record of the draw: the judge's verdicts give it away.
    outside = passhat("report", "two.csv", "--labels", "filled.csv", "--corrected", "-k", 2)
    assert "hardly drawn at random" in " ".join(outside.err.split())
    # A draw of whole tasks counts, and only its tasks do.
    passhat(*label, "--whole-tasks", 8, "-o", "drawn.csv")
    drawn = list(csv.DictReader(Path("drawn.csv").read_text().splitlines()))
    write_labels("more.csv", [(row["task"], int(row["attempt"]), "right") for row in drawn
                              if not row["label"]])  # fmt: skip
    passhat(*label, "--from", "more.csv")
    full = " ".join(passhat("report", "two.db", "--corrected", "-k", 2).out.split())
    assert "8 tasks of 12 labeled whole" in full
    # The draws go with an export.
    passhat("export", "two.db", "-o", "run.jsonl")
    again = " ".join(passhat("report", "run.jsonl", "--corrected", "-k", 2).out.split())
    assert "8 tasks of 12 labeled whole" in again


def test_skipped_attempts_are_not_called_labels(store: str, passhat: Passhat) -> None:
    words = ["skip" if j == 4 else "right" for _ in range(8) for j in range(1, 5)]
    places = [(f"t{i}", j) for i in range(8) for j in range(1, 5)]
    write_labels("labels.csv", [(*place, word) for place, word in zip(places, words, strict=True)])
    shown = " ".join(
        passhat("report", "runs.csv", "--labels", "labels.csv", "--corrected").out.split()
    )
    assert "8 tasks of 12 looked at whole (24 labels, 8 attempts without one)" in shown
    assert shown.index("Corrected by labels:") < shown.index("By the judge alone:")
    command = ("label", "latest", "--store", store, "--person", "ada")
    passhat(*command, "--from", "labels.csv")
    write_labels("other.csv", [("t0", 1, "wrong"), ("t9", 1, "right")])
    assert "2 labels read, 1 new, 1 changed" in passhat(*command, "--from", "other.csv").out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("label latest --store s.db", "no attempts of run"),
        ("label latest --store s.db --sample 3 --whole-tasks 2", "choose one"),
        ("label latest --store s.db --failures 3", "give both"),
        ("report s.db --corrected", "has no labels"),
        ("report --corrected s.db", "passhat report s.db --corrected"),
        ("label latest --store s.db --from absent.csv", "cannot be read"),
        ("label latest --store s.db --from runs.csv", "has no column attempt and label"),
        ("label latest --store s.db --from bad.csv", "right, wrong or skip"),
        ("label latest --store s.db --from ghost.csv", "ghost.csv, line 3: labels t9x#1"),
        ("report runs.csv --labels ghost.csv --corrected", "ghost.csv, line 3: labels t9x#1"),
        ("label latest --store s.db --from twice.csv", "line 3: calls t0#1 wrong, and line 2"),
        (
            "report runs.csv --labels twice.csv",
            "line 3: calls t0#1 wrong, and line 2 calls it right",
        ),
        (
            "report runs.csv --labels tie.csv --corrected",
            "1 attempt of runs was looked at, and none",
        ),
        ("judge-check latest --store s.db", "was imported and names no suite"),
    ],
)
def test_mistakes_are_answered(store: str, passhat: Passhat, words: str, reason: str) -> None:
    Path("bad.csv").write_text("task,attempt,label\nt0,1,maybe\n")
    Path("ghost.csv").write_text("task,attempt,label\nt0,1,right\nt9x,1,right\n")
    Path("twice.csv").write_text("task,attempt,label,person\nt0,1,right,eve\nt0,1,wrong,eve\n")
    Path("tie.csv").write_text("task,attempt,label,person\nt0,1,right,eve\nt0,1,wrong,bob\n")
    ended = passhat(*words.split())
    assert ended.code == 2
    assert reason in " ".join(ended.err.split())
    assert store


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs by one judge that fails a right attempt of every third task of the second one."""
    monkeypatch.chdir(tmp_path)
    rows, labels = ["agent,task,trial,success"], ["run,task,attempt,label"]
    for agent in ("old", "new"):
        for task in range(24):
            for j in range(1, 5):
                right = task >= 4 or (agent == "new" and task >= 2)
                verdict = right and not (agent == "new" and task % 3 == 0 and j == 1)
                rows.append(f"{agent},t{task},{j},{int(verdict)}")
                if task % 2 == 0:
                    labels.append(f"{agent},t{task},{j},{'right' if right else 'wrong'}")
    Path("runs.csv").write_text("\n".join(rows) + "\n")
    Path("labels.csv").write_text("\n".join(labels) + "\n")
    return tmp_path


@pytest.mark.usefixtures("pair")
def test_compare_and_gate_by_corrected_numbers(passhat: Passhat) -> None:
    labels = ("--labels", "labels.csv", "--corrected")
    compared = passhat("compare", "runs.csv", "-k", 4, *labels, "--json")
    (lift,) = json.loads(compared.out)["corrected"]
    assert lift["judged"] < 0 < lift["lift"]
    assert lift["low"] <= lift["lift"] <= lift["high"]
    assert "12 tasks of 24 labeled whole on both sides" in lift["basis"]
    words = " ".join(passhat("compare", "runs.csv", "-k", 4, *labels).out.split())
    assert "Corrected by labels: no difference between old and new is shown." in words
    rules = ("--run", "new", *labels)
    plain = passhat("gate", "runs.csv", "pass^4 >= 0.7", "--run", "new")
    assert plain.code == 3
    corrected = passhat("gate", "runs.csv", "pass^4 >= 0.5", *rules)
    assert corrected.code == 0
    text = " ".join(corrected.out.split())
    assert "corrected by labels of 12 whole tasks" in text
    (result,) = json.loads(passhat("gate", "runs.csv", "pass^4 >= 0.5", *rules, "--json").out)[
        "rules"
    ]
    assert result["about"] == "new tasks, corrected by labels of 12 whole tasks"
    assert any("by the judge alone pass^4 is" in note for note in result["notes"])
    against = ("--against", "runs.csv", "--base-run", "old", *rules, "--json")
    (result,) = json.loads(passhat("gate", "runs.csv", "pass^4 >= base - 0.4", *against).out)[
        "rules"
    ]
    assert result["about"] == "these tasks, corrected by labels"
    assert result["verdict"] == "shown"


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("gate runs.csv --run new --against runs.csv --base-run old --corrected", "no rule here"),
        ("gate runs.csv --run new 'each pass^1>=0.5' 'pass^1>=0.5' --corrected", "each task"),
        ("gate runs.csv --run new 'pass^1>=0.5' --corrected", "new has no labels"),
        ("compare runs.csv --corrected", "has no labels"),
    ],
)
def test_what_labels_cannot_correct_is_refused(passhat: Passhat, words: str, reason: str) -> None:
    ended = passhat(*shlex.split(words))
    assert ended.code == 2
    assert reason in " ".join(ended.err.split())


def test_a_corrected_number_is_explained_by_code_that_gives_it(passhat: Passhat) -> None:
    for correction, value in (((), 0.574871), (("errors",), None)):
        ended = passhat("explain", "pass^4", "example:judged", "--corrected", *correction)
        if value is None:
            assert "depend on the task" in ended.err
            continue
        code = ended.out.partition("The same number in Python:\n\n")[2]
        lines = "\n".join(line[4:] for line in code.splitlines())
        names: dict[str, Any] = {}
        exec(lines.partition("import numpy")[0], names)
        assert names["value"] == pytest.approx(value, abs=1e-6)
        assert "by the judge alone" in ended.out


@pytest.mark.usefixtures("pair")
def test_error_rates_are_explained_by_code_that_gives_them(passhat: Passhat) -> None:
    rows, labels = ["task,trial,success"], ["task,attempt,label"]
    for task in range(30):
        for j in range(1, 5):
            right = task % 3 != 0
            verdict = right != ((task + j) % 17 == 0)
            rows.append(f"t{task},{j},{int(verdict)}")
            labels.append(f"t{task},{j},{'right' if right else 'wrong'}")
    Path("one.csv").write_text("\n".join(rows) + "\n")
    Path("one-labels.csv").write_text("\n".join(labels) + "\n")
    for word in ("pass^3", "pass@2", "rate"):
        options = ("--labels", "one-labels.csv", "--corrected", "errors")
        ended = passhat("explain", word, "one.csv", *options)
        assert ended.code == 0, ended.err
        code = ended.out.partition("The same number in Python:\n\n")[2]
        names: dict[str, Any] = {}
        exec("\n".join(line[4:] for line in code.splitlines()), names)
        shown = float(ended.out.partition("  value     ")[2].split()[0])
        assert min(max(names["value"], 0.0), 1.0) == pytest.approx(shown, abs=1e-9)
    plan = passhat("plan", "one.csv", "--labels", "one-labels.csv", "--corrected", "--json")
    assert json.loads(plan.out)["labeled_tasks"] == 30
    refused = passhat("plan", "one.csv", "--corrected", "--detect", "0.1")
    assert refused.code == 2
    assert "one run with labels" in refused.err
