"""Claims, good and bad: what the rules find in each, and what the data would support instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import compare, estimate, read
from passhat.reporting.review import RULES, review
from passhat.reporting.review.claim_text import passages
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
    # A claim that names another metric without claiming anything about it.
    "On the same 180 paired refund tasks, under a fixed pass@1 protocol, B raised the pass rate "
    "and improved by 3.0 percentage points; its paired interval and the cost limits follow below. "
    "pass@5 is reported apart because it measures a larger search budget.",
    "The agent gets pass@3 = 66 percent on 3 tasks with 3 attempts per task. pass@1 is 33 percent. "
    "The sample is tiny, so take it as a teaching example.",
    "pass^1 = 0.41 [0.33, 0.50] (95%; 120 tasks, T=0, 4 attempts, suite retail v2).",
    "pass^4 is 31%, 95% interval 24% to 39% (150 tasks, T=0, 4 attempts each, suite airline v1).",
    "B passed 38 of 50 tasks (pass^1; 95% interval 63 to 86 percent; benchmark desk v4, greedy).",
    "A and B cannot be told apart: inconclusive, pass^1 differs by 0.4 points, 95% interval of the "
    "paired lift -5.0 to +5.8 points (200 shared tasks, protocol 125d4fc18ab0c073).",
    "B is equivalent to A within the margin of 3 points chosen beforehand: 95% interval of the "
    "paired lift -1.2 to +1.9 points, pass^1, 900 shared tasks, protocol 125d4fc18ab0c073.",
    "By a sequential test that allows a look after every task, stopped once it was ahead: pass^1 "
    "of B is higher than that of A, interval of the paired lift +0.8 to +9.0 points (140 tasks, "
    "protocol 125d4fc18ab0c073).",
    "The best prompt of 20 was chosen before, on other tasks; on 200 held-out tasks its pass^1 is "
    "0.62 [0.55, 0.69] (95%, T = 0.2, suite desk v4).",
    "The posterior puts 95% probability on the true pass^1 between 0.41 and 0.56 (uniform prior; "
    "95% credible interval, 164 tasks, HumanEval, T = 0).",
    "B beats A at the same budget: pass@5 is 71% against 64% on the same 164 tasks (n = 20, "
    "HumanEval, T = 0.8); 95% interval of the paired lift +2.1 to +11.9 points.",
    "At temperatures 0.2 and 0.8 alike, pass^1 is 58%, 95% interval 50 to 66 percent (160 tasks, "
    "benchmark desk v4).",
    "pass@8 lies at 91.5 percent (95% interval 86 to 95 percent, 1,319 tasks, n = 16 samples, "
    "GSM8K benchmark, T = 0.7).",
)

BAD = (
    (
        "Model B is better because its pass@5 is 64%, while Model A's pass@1 is 58%",
        {
            *("mismatched-k", "extra-budget", "missing-interval", "missing-n"),
            *("missing-protocol", "unpaired"),
        },
    ),
    (
        "The new agent is better. Its pass@8 is 81 percent. The old agent's pass@1 is 74 percent.",
        {"mismatched-k", "extra-budget"},
    ),
    ("The model gets 66 percent.", {"missing-metric", "missing-n", "missing-interval"}),
    ("Success rate: 75% (3/4 successful)", {"missing-metric", "missing-interval"}),
    (
        "Agent A passed 3 out of 5. Agent B passed 4 out of 5.",
        {"missing-metric", "missing-interval"},
    ),
    ("Our agent solves 60 to 65 percent of issues.", {"missing-metric", "missing-n"}),
    ("It scores 60–65%.", {"missing-metric", "missing-n", "missing-interval"}),
    ("B passes one more task than A on a six-task suite.", {"unpaired", "missing-interval"}),
    (
        "A and B are equally good on pass^1: their 95% intervals overlap (0.58 and 0.61, 164 "
        "tasks, HumanEval, T = 0).",
        {"called-equal"},
    ),
    (
        "There is no difference between A and B in pass^1 (p = 0.21; 95% intervals in the table, "
        "164 tasks, HumanEval, T = 0).",
        {"called-equal"},
    ),
    (
        "Since p > 0.05, both agents are the same on pass^4 (80 tasks, 4 attempts, T=0, desk "
        "benchmark, intervals below).",
        {"called-equal"},
    ),
    (
        "The drop was not significant, so B is as good as A: pass^1 0.55 and 0.59 (164 tasks, "
        "HumanEval, T = 0, 95% intervals below).",
        {"called-equal"},
    ),
    (
        "There is a 95% probability that the true pass^1 lies in 0.41 to 0.56 (164 tasks, "
        "HumanEval, T = 0, confidence interval).",
        {"probability-of-truth"},
    ),
    (
        "With 95% certainty the true pass^4 is between 31% and 52% (interval; 50 tasks, 8 "
        "attempts, tau-bench, T = 0).",
        {"probability-of-truth"},
    ),
    (
        "Our best of 20 prompts reaches pass^1 = 0.71 [0.64, 0.78] (95%; 164 tasks, HumanEval, "
        "T = 0.2).",
        {"best-of"},
    ),
    (
        "We tried 12 configurations and report the best: pass^1 = 0.71 [0.64, 0.78] (95%; 164 "
        "tasks, HumanEval, T = 0.2).",
        {"best-of"},
    ),
    (
        "We stopped once B was significantly ahead: pass^1 0.66 against 0.58 on the same 90 tasks, "
        "interval of the lift +1.0 to +15.0 points (HumanEval, T = 0).",
        {"stopped-when-good"},
    ),
    (
        "We kept adding tasks until the interval excluded zero: pass^1 of B is better than that of "
        "A, +0.5 to +12.0 points on the same 210 tasks (HumanEval, T = 0).",
        {"stopped-when-good"},
    ),
    (
        "pass^8 is 0.30 [0.20, 0.41] (95%; 60 tasks, T=0, 4 attempts, desk benchmark).",
        {"k-beyond-n"},
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
    (reviewed,) = review(claim).claims
    assert [finding.rule for finding in reviewed.findings] == []


@pytest.mark.parametrize(("claim", "rules"), BAD)
def test_what_is_wrong_is_found(claim: str, rules: set[str]) -> None:
    (reviewed,) = review(claim).claims
    named = {finding.rule for finding in reviewed.findings}
    assert rules <= named
    if len(rules) == 1:
        assert named == rules
    assert all(finding.message and finding.fix for finding in reviewed.findings)


@pytest.mark.parametrize(
    ("text", "tasks", "attempts"),
    [
        ("pass^1 is 40%, T=0, 4 attempts", None, 4),
        ("pass^1 is 40%, temperature 0, 12 tasks, 4 attempts", 12, 4),
        ("pass^1 is 40%, T = 0.8 50 tasks", 50, None),
        ("pass@1 is 40% on 1,319 tasks, 16 samples", 1319, 16),
        ("pass^1: it passed 3 of 4", 4, None),
        ("pass^1: 3 of 4 attempts passed", None, 4),
        ("pass^1 is 40% on 50 tasks x 4", 50, 4),
    ],
)
def test_settings_are_not_read_as_counts(
    text: str, tasks: int | None, attempts: int | None
) -> None:
    (passage,) = passages(text)
    assert (passage.tasks, passage.attempts) == (tasks, attempts)


def test_shares_are_read_in_every_form() -> None:
    def shares(text: str) -> list[float]:
        (passage,) = passages(text)
        return [round(value.share, 3) for value in passage.values]

    assert shares("pass@1 is 33 percent and pass@3 66 per cent.") == [0.33, 0.66]
    assert shares("pass@1 is 60 to 65%.") == [0.6, 0.65]
    assert shares("pass@1 is between 60% and 65%.") == [0.6, 0.65]
    assert shares("It passed 3 of 4 tasks, then 1/3 tasks.") == [0.75, 0.333]
    assert shares("pass@1 is .58 at T = 0.8, 95 percent interval 50 to 66%.") == [0.58]
    assert shares("On one of 5 slices pass^1 is 0.4.") == [0.4]


@pytest.mark.parametrize(
    "text",
    [
        "The sky is 66 percent cloudy.",
        "Null hypothesis: B isn't truly better than A on these tasks.",
        "Does B pass more tasks?",
        "B might win at T = 1 on some tasks.",
    ],
)
def test_what_claims_nothing_is_left_alone(text: str) -> None:
    assert review(text).findings == 0


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
    wrong, direction = [found for found in one.findings if found.rule == "not-in-data"]
    assert direction.message.startswith("hasty is better than careful")
    assert f"hasty pass^4 = {estimate(b.outcomes, 'pass^4').value:.3f}" in wrong.fix
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
    assert [claim["line"] for claim in found["claims"]] == [1, 5, 9, 17]
    assert found["claims"][1]["findings"] == []
    rules = [finding["rule"] for finding in found["claims"][3]["findings"]]
    assert rules == ["missing-n", "missing-attempts", "missing-interval"]


def test_the_command(passhat: Passhat) -> None:
    bad = passhat("review", BAD[0][0], "--source", "example:helpdesk")
    assert bad.code == 1
    assert "mismatched-k" in bad.out
    assert "the data say" in bad.out
    good = passhat("review", GOOD[1])
    assert (good.code, "clean" in good.out) == (0, True)
    nothing = passhat("review", "The sky is blue.")
    assert (nothing.code, "No claim" in nothing.out) == (3, True)
    absent = passhat("review", "blog.md")
    assert (absent.code, "no such file" in absent.err) == (2, True)
