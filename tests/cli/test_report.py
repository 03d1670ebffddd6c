"""passhat report"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import estimate, read

Passhat = Callable[..., Any]
Table = Callable[..., Path]


def test_tau_bench_from_the_command_line(passhat: Passhat, shared_data: Path) -> None:
    path = shared_data / "tau_bench_airline_gpt4o.csv"
    ended = passhat("report", path, "-k", "1-4", "--json")
    (run,) = json.loads(ended.out)["runs"]
    found = {one["metric"]: one["value"] for one in run["estimates"]}
    assert [found[f"pass^{k}"] for k in (1, 2, 3, 4)] == pytest.approx(
        [0.42, 0.27333, 0.22, 0.2], abs=1e-5
    )
    assert [found[f"pass@{k}"] for k in (1, 2, 3, 4)] == pytest.approx(
        [0.42, 0.56667, 0.66, 0.72], abs=1e-5
    )
    (own,) = read(path)
    assert all(value == estimate(own.outcomes, word).value for word, value in found.items())
    text = passhat("report", path, "-k", "1-4").out
    for row in ("1 42%", "2 27%", "3 22%", "4 20%"):
        assert row in " ".join(text.split())


def test_k_beyond_n_is_refused_with_a_sentence_that_helps(passhat: Passhat, table: Table) -> None:
    path = table("model,task,n,c\nm,a,5,0\nm,b,12,0\n")
    for arguments in (["-k", "10"], ["--metric", "pass@10"], ["--metric", "delta^10", "--json"]):
        ended = passhat("report", path, *arguments)
        assert ended.code == 2
        assert ended.out == ""
        assert "needs 10 attempts on every task; 1 task of 2 has fewer: a has 5" in ended.err
        assert "--drop-short" in ended.err
    assert passhat("report", path, "-k", "10", "--drop-short").code == 0
    assert passhat("explain", "pass@10", path).code == 2


def test_files_are_written(passhat: Passhat, tmp_path: Path) -> None:
    md, csv = tmp_path / "r.md", tmp_path / "r.csv"
    ended = passhat("report", "example:helpdesk", "-o", md, "-o", csv)
    assert ended.code == 0
    assert "pass^8" in ended.out
    assert ended.err.splitlines() == [f"wrote {md}", f"wrote {csv}"]
    assert md.read_text(encoding="utf-8").startswith("## 2 runs\n")
    assert csv.read_text(encoding="utf-8").startswith("run,slice,metric,value,")


def test_a_dash_writes_to_standard_output_alone(passhat: Passhat) -> None:
    ended = passhat("report", "example:helpdesk", "-o", "csv")
    assert ended.out.startswith("run,slice,metric")
    assert "Protocol" not in ended.out


def test_a_file_that_cannot_be_written(passhat: Passhat, tmp_path: Path) -> None:
    ended = passhat("report", "example:helpdesk", "-o", tmp_path / "no" / "r.md")
    assert ended.code == 2
    assert "cannot be written: No such file or directory" in ended.err


def test_map_and_pass_at(passhat: Passhat, table: Table) -> None:
    path = table("llm,q,points\nm,a,60\nm,a,30\n")
    ended = passhat(
        *("read", path, "--map", "model=llm,task=q", "--map", "success=points"),
        *("--pass-at", "50", "--json"),
    )
    (run,) = json.loads(ended.out)["runs"]
    assert (run["name"], run["passed"], run["protocol"]["pass_at"]) == ("m", 1, 50.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--map", "model"], "should read NAME=COLUMN"),
        (["--map", "model=none"], "no column 'none'"),
        (["-k", "0"], "k starts at 1"),
        (["-k", "two"], "'two' is not a k"),
        (["-k", "4-2"], "ranges go upwards"),
        (["--metric", "pas^4"], "Did you mean pass^4?"),
        (["--missing", "drop"], "'drop' is not one of"),
        (["--level", "95"], "level must lie between 0 and 1"),
        (["--by", "colour"], "no slice called 'colour'; slices here: band"),
    ],
)
def test_wrong_options_say_what_is_right(
    passhat: Passhat, arguments: list[str], message: str
) -> None:
    ended = passhat("report", "example:helpdesk", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert ended.out == ""


def test_slices_and_tasks_are_shown(passhat: Passhat) -> None:
    ended = passhat("report", "example:helpdesk", "--by", "band", "--tasks")
    assert "band = easy" in ended.out
    assert "the most unsettled first" in ended.out
    assert "●" in ended.out


def test_policies(passhat: Passhat) -> None:
    found = {}
    for policy in ("bound", "fail", "exclude"):
        ended = passhat("report", "example:helpdesk", "--missing", policy, "-k", "1", "--json")
        run = json.loads(ended.out)["runs"][0]
        assert run["missing_policy"] == run["protocol"]["missing"] == policy
        found[policy] = (run["estimates"][0]["value"], run["estimates"][0]["value_if_passed"])
    assert found["bound"][0] == found["fail"][0] < found["exclude"][0] <= found["bound"][1]
    assert found["fail"][1] is None
