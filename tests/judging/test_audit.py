"""An audit sample for a person, and how often the person agrees."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.reporting.audit import Audited, agreement, audit_as_markdown, audit_sample

JUDGED = [Audited(f"t/{i}", 1, i % 5 == 0, "", "", f"x = {i}") for i in range(100)]


def test_the_sample_is_stratified_seeded_and_independent_of_the_order() -> None:
    sample = audit_sample(JUDGED, 20, seed=3)
    assert [one.passed for one in sample].count(True) == 10
    shuffled = random.Random(1).sample(JUDGED, len(JUDGED))
    assert audit_sample(shuffled, 20, seed=3) == sample
    assert audit_sample(JUDGED, 20, seed=4) != sample
    few = [one for one in JUDGED if not one.passed or one.task in ("t/0", "t/5")]
    assert [one.passed for one in audit_sample(few, 20, 0)].count(True) == 2
    assert len(audit_sample(few, 20, 0)) == 20
    assert len(audit_sample(JUDGED, 1000, 0)) == 100


def test_agreement_has_an_exact_interval_for_each_word() -> None:
    found = agreement([(True, True)] * 19 + [(True, False)] + [(False, False)] * 10)
    assert found is not None
    assert (found.passed, found.failed) == ((19, 20), (10, 10))
    # Clopper and Pearson's bounds for 19 of 20 and 10 of 10, from printed tables.
    assert found.interval("passed") == pytest.approx((0.7513, 0.9987), abs=1e-4)
    assert found.interval("failed") == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert "agreed on 19: 95.0%" in found.sentences()[0]
    assert agreement([]) is None


def test_a_hostile_program_does_not_break_the_page_or_the_terminal() -> None:
    page = audit_as_markdown(
        [Audited("t", 1, False, "exception", "x", "a = '```'\n\x1b[2J")], 1, 0, None, ""
    )
    assert "\x1b" not in page
    assert "````python" in page


@pytest.mark.usefixtures("best")
def test_audit_of_results_and_of_a_stored_run(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bodies = ["    return min(10, 2 * max(0, days_late))\n", "    return 2 * days_late\n"]
    rows = [{"task_id": "ordercode/late_credit", "completion": body} for body in bodies * 3]
    Path("s.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    call = ("judge", "s.jsonl", "-s", "code:ordercode")
    assert passhat(*call, "-o", "r.jsonl").code == 0
    assert passhat(*call, "--store", "s.db").code == 0
    run = json.loads(passhat("runs", "--store", "s.db", "--json").out)["runs"][0]["id"]
    from_file = json.loads(passhat("judge", "--audit", "4", "r.jsonl", "--json").out)
    stored = passhat("judge", "--audit", "4", run, "--store", "s.db", "--json")
    assert json.loads(stored.out)["sample"] == from_file["sample"]
    assert [one["verdict"] for one in from_file["sample"]].count("passed") == 2
    page = passhat("judge", "--audit", "4", run, "--store", "s.db").out
    assert f"passhat show {run} TASK#N --override" in page
    assert "return 2 * days_late" in page
    assert passhat("judge", "--audit", "4").code == 2
    assert "no run" in passhat("judge", "--audit", "4", "nope", "--store", "s.db").err
    Path("old.jsonl").write_text('{"task": "a", "trial": 0, "success": 1}\n')
    assert "holds no program" in passhat("judge", "--audit", "4", "old.jsonl").err
