"""passhat compare, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passhat.cli import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two agents, 30 tasks, 4 attempts; the second is better, and costs more."""
    path = tmp_path / "both.csv"
    lines = ["model,task,trial,success,cost,slice:domain"]
    for task in range(30):
        for trial in range(4):
            lines.append(f"old,t{task},{trial},{int(trial < task % 3)},0.01,{'ab'[task % 2]}")
            lines.append(f"new,t{task},{trial},{int(trial < task % 3 + 2)},0.03,{'ab'[task % 2]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "three.csv"
    lines = ["model,task,trial,success"]
    for model, rate in (("a", 2), ("b", 3), ("c", 7)):
        lines += [f"{model},t{i},0,{int(i % 10 < rate)}" for i in range(60)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_two_runs_in_one_file(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(table), "--full"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "new (B) against old (A)",
        "30 paired tasks",
        "pass^1 rose by 50 points, between 38 and 61, on these 30 tasks, from 25% (old) to 75%",
        "A rise is shown for new tasks as well",
        "What both use, on the paired tasks",
        "cost 0.01 0.03",
        "unverified",
        "Lifts are B minus A",
    ):
        assert text in printed


def test_json_and_several_metrics(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(table), "-k", "1,2", "--metric", "pass@4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "passhat.comparison/1"
    assert [found["metric"] for found in data["results"]] == ["pass@4", "pass^1", "pass^2"]
    assert {found["claim"] for found in data["results"]} == {"improvement"}
    assert data["tasks"] == {"paired": 30, "only_a": 0, "only_b": 0}


def test_runs_from_two_files_in_the_order_given(
    three: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *rows = three.read_text().splitlines()
    first, second = tmp_path / "x.csv", tmp_path / "y.csv"
    first.write_text("\n".join([header, *(row for row in rows if row[0] == "c")]) + "\n")
    second.write_text("\n".join([header, *(row for row in rows if row[0] == "a")]) + "\n")
    assert main(["compare", str(first), str(second), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["a"], data["b"]) == ("c", "a")
    assert data["results"][0]["claim"] == "regression"
    assert data["results"][0]["lift"] == pytest.approx(-0.5)


def test_slices_and_markdown(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.md"
    assert main(["compare", str(table), "--by", "domain", "-o", str(target)]) == 0
    text = target.read_text()
    assert "## new (B) against old (A)" in text
    assert "| domain = a |" in text
    assert "| cost | 0.01 | 0.03 |" in text
    assert "domain = b" in capsys.readouterr().out


def test_markdown_alone_on_standard_output(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(table), "-o", "md"]) == 0
    assert capsys.readouterr().out.startswith("## new (B)")


def test_one_sided(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(table), "--alternative", "greater", "--full"]) == 0
    assert "pass^1 rose by at least 40 points" in " ".join(capsys.readouterr().out.split())


def test_three_runs_are_ranked(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(three), "--full"]) == 0
    printed = capsys.readouterr().out
    assert "3 runs compared, 3 pairs" in printed
    assert "possible ranks" in printed
    assert "3 over 1" in printed
    assert main(["compare", str(three), "-o", "md"]) == 0
    assert "## 3 runs compared" in capsys.readouterr().out
    assert main(["compare", str(three), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"][0]["name"] == "c"


def test_runs_can_be_chosen(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(three), "--run", "c", "--run", "b", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["a"], data["b"]) == ("c", "b")
    assert main(["compare", str(three), "--run", "d"]) == 2
    assert "There are: a, b, c" in capsys.readouterr().err


def test_protocols_that_differ_are_refused_unless_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hot.csv"
    rows = [f"m,t{i},0,{i % 2},{temp}" for i in range(10) for temp in (0.2, 0.8)]
    path.write_text("\n".join(["model,task,trial,success,temperature", *rows]) + "\n")
    assert main(["compare", str(path)]) == 2
    assert "decoding.temperature: 0.2 against 0.8" in capsys.readouterr().err
    assert main(["compare", str(path), "--allow", "--full"]) == 0
    assert "differs: decoding.temperature" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--by", "domain"], ["--alternative", "less"]])
def test_what_is_about_two_is_refused_for_three(
    three: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(three), *option]) == 2
    err = capsys.readouterr().err
    assert option[0] in err
    assert "--run NAME" in err


def test_one_run_is_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.csv"
    path.write_text("model,task,trial,success\nm,t,0,1\n")
    assert main(["compare", str(path)]) == 2
    assert "two runs are needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("passes", "advice"),
    [
        ((7, 8), "as at pass^"),
        ((8, 8), "; harder tasks would tell more"),
        ((0, 0), "; easier tasks would tell more"),
        ((4, 5), None),
    ],
)
def test_runs_near_zero_or_one_are_told_where_they_would_differ(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    passes: tuple[int, int],
    advice: str | None,
) -> None:
    """Two agents that differ by nothing that ten tasks could show, of eight attempts each."""
    rows = ["model,task,n,c"]
    for place, model in enumerate("ab"):
        for task in range(10):
            # One attempt in eight fails at most tasks, so that all eight pass at few of them.
            c = passes[(task + place) % 2] if task else passes[0]
            rows.append(f"{model},t{task},8,{c}")
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(rows) + "\n")
    assert main(["compare", str(path), "-k", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert ("told apart best where rates are near one half" in printed) == (advice is not None)
    assert advice is None or advice in printed


def test_moves_that_are_not_shown_are_no_losses_beside_one_that_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {"old": [8] * 10, "new": [0, 6, *[8] * 8]}
    for name, passed in sides.items():
        rows = [f"t{i},{int(k < c)}" for i, c in enumerate(passed) for k in range(8)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["task,passed", *rows]) + "\n")
    files = [str(tmp_path / "old.csv"), str(tmp_path / "new.csv")]
    assert main(["compare", *files]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Lost: t0 8 of 8 -> 0 of 8 More:" in text
    assert main(["compare", *files, "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Lost: t0 8 of 8 -> 0 of 8 Largest moves down, none of them shown by itself: t1" in text
