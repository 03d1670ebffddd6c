"""passhat plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passhat.cli.main import main


@pytest.fixture
def pilot(tmp_path: Path) -> str:
    lines = ["model,task,n,c"]
    lines += [
        f"{model},t{i},8,{(i * 3 + shift) % 9}"
        for model, shift in (("A", 0), ("B", 1))
        for i in range(30)
    ]
    path = tmp_path / "pilot.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_from_a_pilot(pilot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", pilot, "--run", "A", "--detect", "0.03", "--metric", "pass^4"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("To see a lift of 0.03 in pass^4 with power 80%")
    assert "difficulty as in the pilot" in text


def test_against_a_second_pilot(pilot: str, capsys: pytest.CaptureFixture[str]) -> None:
    against = ["--against", pilot, "--base-run", "B"]
    assert main(["plan", pilot, "--run", "A", *against, "--detect", "0.05", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["goal"] == "detect"
    assert any("measured" in line for line in data["assumptions"])


@pytest.mark.parametrize("width", ["0.05", "5%", " 5 %"])
def test_from_assumptions(capsys: pytest.CaptureFixture[str], width: str) -> None:
    assert main(["plan", "--half-width", width, "--assume", "mean=0.7,icc=0.4"]) == 0
    out = capsys.readouterr().out
    assert "no pilot: 70% of attempts pass" in out
    assert "0.05" in out or "5 points" in out


def test_a_width_that_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--half-width", "wide"]) == 2
    assert "'wide' is not a number; write 0.05 or 5%." in capsys.readouterr().err


def test_mistakes(pilot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--detect", "0.05"]) == 2
    assert "--assume mean=0.7 --assume icc=0.4" in capsys.readouterr().err
    assert main(["plan", pilot, "--run", "A"]) == 2
    assert "--detect 0.03" in capsys.readouterr().err
    assert main(["plan", pilot, "--detect", "0.05"]) == 2
    assert "--run: A, B" in capsys.readouterr().err


def test_a_gate_is_planned_in_attempts(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "example:helpdesk", "--run", "careful", "--gate", "--detect", "0.05", "--json"]
    assert main(asked) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["about"], data["gate"]) == ("these tasks", True)
    assert data["cheapest"]["tasks"] == 24
    assert data["cheapest"]["attempts"] > 8
    assert main([*asked, "--about", "new-tasks"]) == 2
    assert main(["plan", "--gate", "--detect", "0.05", "--assume", "mean=0.5,icc=0.3"]) == 2


def test_attempts_per_task(pilot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", pilot, "--run", "A", "--allocate", "--metric", "pass^4"]
    path = tmp_path / "plan.json"
    assert main([*asked, "--budget", "270", "--most", "20", "-o", str(path)]) == 0
    text = capsys.readouterr().out
    assert "attempts each" in text
    assert f"passhat run --attempts {path}" in text
    made = json.loads(path.read_text())["allocation"]
    assert sum(made["attempts"].values()) == made["total_attempts"] <= 270
    assert 4 <= min(made["attempts"].values()) < max(made["attempts"].values()) <= 20
    assert made["earlier"]["name"] == "A"
    assert main([*asked, "--budget", "60"]) == 2
    assert "120 in all" in capsys.readouterr().err
    assert main(["plan", pilot, "--run", "A", "--budget", "60"]) == 2
    assert "--allocate" in capsys.readouterr().err
