"""Forms for other programs: CSV, JUnit and scores, each parsed back and compared with the data."""

from __future__ import annotations

import csv
import io
import json
from math import comb
from xml.etree import ElementTree

import pytest

from passhat import Outcomes, Run, estimate, gate
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.data import as_csv, as_wandb, gate_as_junit, plain_name, task_scores

HOSTILE = "=cmd|'x'!A0 <b>&amp;\"\n\x1b[2J漢"


def _run(name: str = "run", *, missing: int = 0) -> Run:
    outcomes = Outcomes.from_counts(
        [4, 4, 4 - missing],
        [4, 2, 0],
        ["a", "b", "c"],
        missing=[0, 0, missing],
        labels={"level": ["easy", "hard", "hard"]},
    )
    return Run(name, name, outcomes, source=f"/data/{name}")


def _rows(run: Run, **options: object) -> list[dict[str, str]]:
    chosen = ReportOptions(metrics=("pass^2", "rate"), **options)  # type: ignore[arg-type]
    return list(csv.DictReader(io.StringIO(as_csv(build_report([run], chosen)))))


def test_csv_has_a_line_per_metric_population_and_slice() -> None:
    rows = _rows(_run(), by="level")
    places = [(row["slice"], row["metric"], row["about"]) for row in rows]
    assert len(set(places)) == len(places)
    assert {row["slice"] for row in rows} == {"", "level=easy", "level=hard"}
    value = {(row["slice"], row["metric"]): float(row["value"]) for row in rows}
    # 1, C(2,2)/C(4,2) = 1/6 and 0 of three tasks; of the two hard ones half of 1/6.
    assert value["", "pass^2"] == pytest.approx((1 + 1 / 6) / 3)
    assert value["level=hard", "pass^2"] == pytest.approx(1 / 12)
    assert value["", "rate"] == pytest.approx(6 / 12)
    assert value["level=easy", "rate"] == 1
    for row in rows:
        assert 0 <= float(row["low"]) <= float(row["value"]) <= float(row["high"]) <= 1
        assert row["missing"] == "0"


def test_csv_states_missing_attempts() -> None:
    rows = [row for row in _rows(_run(missing=1)) if row["metric"] == "rate"]
    assert {row["missing"] for row in rows} == {"1"}
    # Counted as failed 6 of 12; had it passed, the mean of 1, 1/2 and 1/4.
    assert {float(row["value"]) for row in rows} == {0.5}
    assert float(rows[0]["value_if_passed"]) == pytest.approx((1 + 0.5 + 0.25) / 3)


def test_a_hostile_name_is_a_cell_and_no_formula() -> None:
    rows = _rows(_run(HOSTILE))
    assert len({row["run"] for row in rows}) == 1
    assert rows[0]["run"].startswith("'=cmd")
    assert "\x1b" not in as_csv(build_report([_run(HOSTILE)], ReportOptions(metrics=("rate",))))


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("rate >= 0.01", None),
        ("rate >= 0.99", "failure"),
        ("rate >= 0.5", "error"),
    ],
)
def test_junit_says_proven_refuted_or_not_settled(rule: str, kind: str | None) -> None:
    result = gate(_run(HOSTILE), rule)
    suite = ElementTree.fromstring(gate_as_junit(result))[0]
    counts = {name: int(suite.get(name) or 0) for name in ("failures", "errors", "skipped")}
    cases = suite.findall("testcase")
    assert int(suite.get("tests") or 0) == len(cases)
    found = [child.tag for case in cases for child in case if child.tag != "system-out"]
    assert found == ([] if kind is None else [kind])
    assert counts["failures"] == found.count("failure")
    assert counts["errors"] == found.count("error")
    assert "<b>&amp;" in str(suite.get("name"))  # as text, not as markup


@pytest.mark.parametrize("missing", [0, 2])
def test_the_mean_of_the_scores_of_tasks_is_the_value(missing: int) -> None:
    run = _run(missing=missing)
    for word in ("pass^2", "pass@3", "pass^4"):
        found = estimate(run, word)
        scores = task_scores(run, found)
        assert list(scores) == ["a", "b", "c"]
        assert sum(scores.values()) / 3 == pytest.approx(found.value)
    scores = task_scores(run, estimate(run, "pass@3"))
    assert scores["b"] == pytest.approx(1 - comb(2, 3) / comb(4, 3))
    assert task_scores(run, estimate(run, "rate")) == {}


def test_names_that_trackers_take() -> None:
    assert plain_name("pass^4") == "pass_hat_4"
    assert plain_name("pass@10") == "pass_at_10"
    assert plain_name("g-pass@4:0.5") == "g_pass_at_4_0_5"
    words = ["pass^1", "pass@1", "delta^1", "rate", "pass^11"]
    assert len({plain_name(word) for word in words}) == len(words)


def test_wandb_numbers_are_the_estimates() -> None:
    run = _run(HOSTILE)
    report = build_report([run], ReportOptions(metrics=("pass^2",)))
    (data,) = json.loads(as_wandb(report))["runs"]
    assert data["name"] == HOSTILE
    assert data["summary"]["pass_hat_2"] == estimate(run, "pass^2").value
