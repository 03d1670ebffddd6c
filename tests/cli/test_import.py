"""passhat import, and runs of the store by their id."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import read

Passhat = Callable[..., Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_what_is_imported_reads_the_same(passhat: Passhat) -> None:
    ended = passhat("import", "example:helpdesk")
    assert ended.code == 0
    assert ended.err.count("192 attempts added") == 2
    assert passhat("import", "example:helpdesk").err.count("0 attempts added") == 2
    ids = [run["id"] for run in json.loads(passhat("runs", "--json").out)["runs"]]
    for original, stored in zip(read("example:helpdesk"), ids, strict=True):
        (again,) = read(stored)
        assert again.outcomes.to_dict() == original.outcomes.to_dict()
        assert again.missing_by_reason == original.missing_by_reason
        assert again.failures_by_category == original.failures_by_category
        assert again.protocol.decoding == original.protocol.decoding
        both = (again.attempts or (), original.attempts or ())
        costs, others = ([one.measures.get("cost") for one in side] for side in both)
        assert costs == others
        assert len(costs) == 192
    compared = passhat("compare", *ids)
    assert compared.code == 0
    assert passhat("gate", ids[0][:6], "pass^1 >= 0.1").code == 0


def test_counts_have_no_attempts_to_import(passhat: Passhat, here: Path) -> None:
    (here / "counts.csv").write_text("task,n,c\na,4,2\n")
    ended = passhat("import", "counts.csv")
    assert "only counts are known" in ended.err


def test_a_word_that_is_neither_file_nor_run(passhat: Passhat, here: Path) -> None:
    passhat("import", "example:helpdesk")
    assert (here / ".passhat" / "passhat.db").exists()
    ended = passhat("report", "zzz")
    assert ended.code == 2
    assert "there is no such file" in ended.err


def test_an_imported_log_is_shown_with_the_expected_answer(passhat: Passhat, here: Path) -> None:
    cases = [
        {"input": "a", "success": False, "actualOutput": "5", "expectedOutput": "4"},
        {"input": "b", "success": True, "actualOutput": "6", "expectedOutput": "6"},
    ]
    (here / "deepeval.json").write_text(json.dumps({"testCases": cases}))
    assert passhat("import", "deepeval.json").code == 0
    shown = passhat("show", "latest", "a#1").out
    assert [line.split()[:2] for line in shown.splitlines()[2:4]] == [
        ["expected", "4"],
        ["got", "5"],
    ]
    rows = passhat("export", ".passhat/passhat.db").out.splitlines()
    assert [json.loads(row)["expected"] for row in rows] == ["4", "6"]


@pytest.mark.usefixtures("here")
def test_two_prompts_of_one_file_are_two_runs_of_the_store(passhat: Passhat, here: Path) -> None:
    rows = [
        {
            "promptIdx": prompt,
            "prompt": {"raw": f"{prompt} {{{{q}}}}"},
            "vars": {"q": f"t{task}"},
            "testIdx": task,
            "provider": {"id": "p"},
            "success": task > prompt,
            "response": {"output": "o"},
        }
        for prompt in range(2)
        for task in range(3)
    ]
    data = {"evalId": "e", "results": {"version": 3, "results": rows, "prompts": []}}
    (here / "two.json").write_text(json.dumps(data))
    assert passhat("import", "two.json").err.count("3 attempts added") == 2
    assert passhat("import", "two.json").err.count("0 attempts added") == 2
    assert len(json.loads(passhat("runs", "--json").out)["runs"]) == 2


def test_an_import_makes_no_order_out_of_nothing(passhat: Passhat, here: Path) -> None:
    (here / "r.csv").write_text("task,success\na,1\na,0\nb,1\nb,1\n")
    direct = passhat("report", "r.csv", "--metric", "first@2")
    assert passhat("import", "r.csv").code == 0
    stored = passhat("report", "latest", "--metric", "first@2")
    assert (direct.code, stored.code) == (2, 2)
    assert "the order of the attempts is not known" in stored.err
    assert "--one-by-one" not in direct.err  # it would print the same again
    assert "order known" not in passhat("report", "latest").out
    (here / "n.csv").write_text("task,trial,success\na,1,1\na,2,0\nb,1,1\nb,2,1\n")
    passhat("import", "n.csv")
    assert passhat("report", "latest", "--metric", "first@2").code == 0
    assert passhat("runs").code == 0


def test_imported_runs_keep_their_names_and_the_next_step_can_be_typed(
    passhat: Passhat, here: Path
) -> None:
    ended = passhat("import", "example:helpdesk")
    listed = json.loads(passhat("runs", "--json").out)["runs"]
    assert [run["name"] for run in listed] == ["careful", "hasty"]
    step = ended.err.partition("Next: passhat ")[2].split()
    assert "careful" in passhat(*step).out
    assert passhat("report", "hasty").out.startswith("hasty: 24 tasks")
    elsewhere = passhat("import", "example:helpdesk", "--store", str(here / "other.db")).err
    assert passhat(*elsewhere.partition("Next: passhat ")[2].split()).code == 0
