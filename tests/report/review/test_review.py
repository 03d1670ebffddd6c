"""Claims, good and bad: what the rules find in each, and what the data would support instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import compare, estimate, read
from passhat.report.review import RULES, review
from passhat.stats.compare import compare_all

Passhat = Callable[..., Any]

GOOD = (
    "On the same 164 tasks of HumanEval v1 (temperature 0.8, n = 8 attempts), pass^4 of B"
    " is 6.1 points above that of A; the 95% interval of the paired lift, +1.2 to +11.0 "
    "points, lies above zero.",
    "pass^1 = 0.58 [0.51, 0.65] (95%, new tasks; 164 tasks, 8 attempts each; HumanEval, "
    "temperature 0.2).",
    "pass@5 is 64% (95% interval 57% to 71%; 200 tasks, n = 20 samples; suite retail v3, T = 0.8).",
    "Inconclusive: pass^4 of B is 2.0 points above that of A; the 95% interval of the "
    "lift, -3.1 to +7.1 points, includes zero (120 paired tasks, protocol "
    "125d4fc18ab0c073).",
    "B is more reliable: pass^8 went from 0.31 to 0.44 on the same 150 tasks (n = 8, "
    "greedy decoding, tau2-bench 0.2); 95% interval of the paired lift +4.0 to +22.0 "
    "points.",
    "On 50 tasks x 4 attempts of tau-bench airline (temperature 0), pass^4 is 20.0%, 95% "
    "interval 10.9% to 33.0%.",
    "One of 5 slices looked at, corrected by Holm: on hard tasks pass^1 of B is 9 points "
    "above that of A, interval +2.0 to +16.0 points (80 paired tasks, protocol "
    "125d4fc18ab0c073).",
    "Missing attempts are counted as failed: pass^1 = 0.128 [0.090, 0.170] (95%; 80 "
    "tasks, 5 attempts each, benchmark terminal v2, temperature 0.7).",
    "pass@1000 is a forecast from n = 100 samples at 128 problems: band [0.61, 0.92] "
    "(MATH suite, temperature 0.6).",
    "Both pass@5 (B 71%, A 64%) and pass@1 (B 60%, A 58%) are higher than before on the "
    "same 164 tasks of HumanEval at T = 0.8, n = 20; intervals of the paired lifts are in"
    " the table.",
)

BAD = (
    (
        "Model B is better because its pass@5 is 64%, while Model A's pass@1 is 58%",
        {"mismatched-k", "missing-interval", "missing-n", "missing-protocol", "unpaired"},
    ),
    (
        "Our agent reaches pass^4 = 0.72.",
        {"missing-interval", "missing-n", "missing-protocol"},
    ),
    (
        "With pass@10 of 97% the agent is highly reliable (164 tasks, n = 10, HumanEval, "
        "T = 0.8, 95% interval 93% to 99%).",
        {"called-reliable"},
    ),
    (
        "B beats A: 64% against 58% of 200 tasks, and their error bars do not overlap.",
        {"missing-metric", "two-intervals", "unpaired"},
    ),
    (
        "On the hard slice pass^1 of B is better than that of A, 0.41 against 0.29 "
        "(paired, 30 tasks, interval of the lift +1.0 to +23.0 points, protocol "
        "125d4fc18ab0c073).",
        {"cherry-picked"},
    ),
    (
        "pass@10 is 88% (50 tasks, 5 attempts each, 95% interval 80% to 94%, MBPP, T = 0.8).",
        {"k-beyond-n"},
    ),
    (
        "The agent solves 64% of tasks.",
        {"missing-interval", "missing-metric", "missing-n"},
    ),
    (
        "B improves pass^1 by 6% on the same 164 tasks of HumanEval at temperature 0, 95%"
        " interval reported below.",
        {"percent-or-points"},
    ),
    (
        "Excluding timeouts, pass^1 is 0.625 [0.45, 0.78] (95%; 32 tasks, HumanEval, T = 0).",
        {"dropped"},
    ),
    (
        "B is better: pass^4 is 3 points higher than before on 120 paired tasks, 95% "
        "interval -2.0 to +8.0 points (protocol 125d4fc18ab0c073).",
        {"lift-includes-zero"},
    ),
    (
        "Our best seed reaches pass^1 = 0.81 [0.75, 0.86] (95%; 164 tasks, HumanEval, T = 0.2).",
        {"best-of"},
    ),
    (
        "This proves that B outperforms A on the same tasks (pass^1 0.64 against 0.58, "
        "164 tasks, HumanEval, T = 0, interval of the lift +1.0 to +11.0 points).",
        {"overclaimed"},
    ),
    (
        "pass^1 of B is significantly higher than that of A (p = 0.03) on the same 164 "
        "tasks of HumanEval at T = 0.",
        {"missing-interval", "p-alone"},
    ),
    (
        "pass@k rises to 88% [0.80, 0.94] on 50 tasks of MBPP at T = 0.8.",
        {"missing-k"},
    ),
)


@pytest.mark.parametrize("claim", GOOD)
def test_nothing_is_found_in_a_good_claim(claim: str) -> None:
    found = review(claim)
    assert [one.rule for one in found.claims[0].findings] == []


@pytest.mark.parametrize(("claim", "rules"), BAD)
def test_what_is_wrong_is_found(claim: str, rules: set[str]) -> None:
    (one,) = review(claim).claims
    found = {finding.rule for finding in one.findings}
    assert rules <= found
    if len(rules) == 1:
        assert found == rules
    assert all(finding.message and finding.fix for finding in one.findings)


def test_every_rule_is_tried_by_a_bad_claim() -> None:
    named = {rule for _, rules in BAD for rule in rules}
    attempts = {one.rule for one in review("pass@5 is 64% of 20 tasks.").claims[0].findings}
    assert set(RULES) == named | {"missing-attempts"}
    assert "missing-attempts" in attempts


def test_what_passhat_itself_writes_is_clean() -> None:
    a, b = read("example:helpdesk")
    sentences = [one.sentence for one in compare(a, b, ["pass^1", "pass^4", "pass@8"]).results]
    sentences += [one.sentence for one in compare(b, a, "pass^4").results]
    for sentence in sentences:
        (one,) = review(sentence).claims
        assert one.findings == (), sentence


def test_the_sentence_the_data_would_support() -> None:
    a, b = read("example:helpdesk")
    (one,) = review("hasty is better: its pass^4 is 64%", [a, b]).claims
    assert one.offers[0].sentence == compare(a, b, "pass^4").results[0].sentence
    (wrong,) = [found for found in one.findings if found.rule == "not-in-data"]
    for run in (a, b):
        assert f"{run.name} {estimate(run.outcomes, 'pass^4').value:.3f}" in wrong.fix
    (true,) = review(f"careful: pass^4 = {estimate(a.outcomes, 'pass^4').value:.3f}", [a]).claims
    assert "not-in-data" not in {found.rule for found in true.findings}
    assert str(estimate(a.outcomes, "pass^4")) in true.offers[0].sentence
    (far,) = review("careful has a pass@100 of 99%", [a, b]).claims
    assert not far.offers[0].supported
    assert "100" in far.offers[0].sentence


def test_three_runs_are_ranked() -> None:
    a, b = read("example:helpdesk")
    third = type(a)("third", "third", b.outcomes, b.protocol)
    (one,) = review("third is the best by pass^1", [a, b, third]).claims
    ranks = compare_all([a, b, third], "pass^1").ranks
    assert all(entry.name in one.offers[0].sentence for entry in ranks)


def test_a_markdown_file(passhat: Passhat, tmp_path: Path) -> None:
    page = tmp_path / "blog.md"
    page.write_text(
        "# pass@5 is 64%\n\nAll runs: HumanEval, temperature 0.8.\n\n"
        "- **pass^1** is 58% on 164 tasks,\n  interval 50% to 66%.\n- We like blue.\n\n"
        "| metric | value |\n| --- | --- |\n| pass@5 | 64% |\n\n```\npass@5 is 64%\n```\n\n"
        "pass@5 is 64%.\n",
        encoding="utf-8",
    )
    ended = passhat("review", page, "--json")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert found["schema"] == "passhat.review/1"
    assert [claim["line"] for claim in found["claims"]] == [5, 17]
    assert found["claims"][0]["findings"] == []
    rules = [finding["rule"] for finding in found["claims"][1]["findings"]]
    assert rules == ["missing-n", "missing-attempts", "missing-interval"]


def test_the_command(passhat: Passhat) -> None:
    bad = passhat("review", BAD[0][0], "--source", "example:helpdesk")
    assert bad.code == 1
    assert "mismatched-k" in bad.out
    assert "supported" in bad.out
    good = passhat("review", GOOD[1])
    assert (good.code, "clean" in good.out) == (0, True)
    nothing = passhat("review", "The sky is blue.")
    assert (nothing.code, "no claim" in nothing.out) == (0, True)
    absent = passhat("review", "blog.md")
    assert (absent.code, "no such file" in absent.err) == (2, True)
