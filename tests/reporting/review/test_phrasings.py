"""Claims as papers, release posts and READMEs phrase them, and claims against their sources."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passhat import Outcomes, Run
from passhat.reporting.review import Support, review, review_document
from passhat.reporting.review.claim_text import passages

PHRASINGS: tuple[tuple[str, list[float], dict[str, object]], ...] = (
    # text, shares in percent, then what else is read
    ("77.2% on SWE-bench Verified", [77.2], {}),
    ("71.3 ± 0.4", [71.3], {}),
    ("best of 5 runs: 74.4%", [74.4], {"attempts": 5}),
    ("maj@64 reaches 81.2 on AIME 2025", [81.2], {"metric": "maj@64"}),
    ("cons@32 of 68.0 on AIME", [68.0], {"metric": "cons@32"}),
    ("avg@16: 63.5", [63.5], {"metric": "avg@16"}),
    ("In 100 runs the agent never failed.", [100], {}),
    ("It passed all its checks without a single failure across 50 attempts.", [100], {}),
    ("All 40 tasks were solved.", [100], {}),
    ("Zero failures in 200 trials.", [100], {}),
    ("We reach 90%.", [90], {}),
    ("Our agent solves 82% of tasks.", [82], {}),
    ("pass@1 of 45.3 (avg of 64 samples)", [45.3], {"metric": "pass@1", "attempts": 64}),
    ("Pass@1 = 45.3 on LiveCodeBench v6", [45.3], {"metric": "pass@1"}),
    ("pass@10: 71", [71], {"metric": "pass@10"}),
    ("pass^8 drops to 25%", [25], {"metric": "pass^8"}),
    ("achieves a pass^4 of 0.383 in airline", [38.3], {"metric": "pass^4"}),
    ("Model A outperforms model B on HumanEval (92.1 vs 88.4).", [92.1, 88.4], {"compares": True}),
    ("The agent succeeded in 37 of 40 tasks.", [92.5], {"tasks": 40}),
    ("Accuracy improved from 61% to 74%.", [61, 74], {"compares": True}),
    ("a resolve rate of 65.4% on SWE-bench Lite (300 instances)", [65.4], {"tasks": 300}),
    ("scores 59.6 on Terminal-Bench 2.0", [59.6], {}),
    ("Sets a new state of the art on GAIA with 72.1%", [72.1], {"compares": True}),
    ("SOTA: 80.9% on SWE-bench Verified", [80.9], {"compares": True}),
    ("success rate of 14.9% on OSWorld", [14.9], {}),
    ("The success rate is 35.8 on WebArena.", [35.8], {}),
    ("achieves 94.2% accuracy on GSM8K (8-shot)", [94.2], {}),
    ("62.3% of issues resolved", [62.3], {}),
    ("It resolved 134 of 500 issues.", [26.8], {"tasks": 500}),
    ("resolves 26.8 percent of the 500 issues", [26.8], {"tasks": 500}),
    ("fails on only 3% of tasks", [97], {}),
    ("an error rate of 12%", [88], {}),
    ("failed 3 of 60 runs", [95], {"attempts": 60}),
    ("B beats A by 30 points, interval 21 to 39", [], {"gain": 30, "ends": (21, 39)}),
    ("+4.2 points over the baseline on BFCL", [], {"gain": 4.2}),
    ("improves over the baseline by 5.1 percentage points", [], {"gain": 5.1}),
    ("a 12-point gain on tau-bench retail", [], {"gain": 12}),
    ("pass^4 is 8 points lower than before", [], {"metric": "pass^4", "gain": -8}),
    ("GPQA Diamond: 84.0%, up from 68.5%", [84.0, 68.5], {"compares": True}),
    ("Ours 71.4 vs. 66.0 for the previous best", [71.4, 66.0], {}),
    ("from 48.1% to 55.6% on the same 164 problems", [48.1, 55.6], {"tasks": 164}),
    ("pass@1 is 67.0% ± 2.1% over 5 seeds", [67.0], {"metric": "pass@1", "attempts": 5}),
    ("Mean accuracy 0.713 (95% CI [0.66, 0.76], n = 300)", [71.3], {}),
    ("78.0% (95% CI: 71.2–83.9) on 150 tasks", [78.0], {"tasks": 150}),
    ("0.62 ± 0.03 pass^1", [62], {"metric": "pass^1"}),
    ("pass@5 rises to 88%, pass^5 falls to 31%", [88, 31], {"metric": "pass@5"}),
    ("The agent gets it right 9 times out of 10 attempts", [], {}),
    ("reliability of 99.9%", [99.9], {}),
    ("completes 7 of 10 tasks end to end", [70], {"tasks": 10}),
    ("solved 23/50 problems", [46], {"tasks": 50}),
    ("worst@4 of 0.31", [31], {"metric": "worst@4"}),
    ("best@8 = 0.77", [77], {"metric": "best@8"}),
    ("G-Pass@16 of 24.3", [24.3], {}),
    ("Average success rate over 3 runs: 41.3%", [41.3], {"attempts": 3}),
    ("hits 100% on our internal suite", [100], {}),
    ("It reached 73.3 on AIME 2024 and 66.7 on AIME 2025.", [73.3, 66.7], {}),
    ("an accuracy of 81.6", [81.6], {}),
    ("a pass rate of 93.4 percent after retries", [93.4], {}),
    (r"pass@1 of \textbf{45.3\%} on HumanEval", [45.3], {"metric": "pass@1"}),
    (r"$\text{pass}^4$ is $38.2 \pm 1.4$", [38.2], {"metric": "pass^4"}),
    ("| model | pass@1 |\n| --- | --- |\n| Ours | 61.2 |\n| Theirs | 55.0 |", [61.2, 55.0], {}),
    ("Model & SWE-bench \\\\\n\\midrule\nOurs & 61.2 \\\\\nTheirs & 55.0 \\\\", [61.2, 55.0], {}),
    ("B is more reliable than A: 74% against 58% of attempts", [74, 58], {"compares": True}),
    ("never fails in our 30 test runs", [100], {"attempts": 30}),
)


@pytest.mark.parametrize(
    ("text", "percents", "more"), PHRASINGS, ids=[p[0][:40] for p in PHRASINGS]
)
def test_a_phrasing_is_recognized(
    text: str, percents: list[float], more: dict[str, object]
) -> None:
    (passage,) = passages(text)
    shares = [round(100 * value.share, 1) for value in passage.values]
    if percents:
        assert shares == percents
    seen = {
        "metric": passage.metrics[0].word if passage.metrics else None,
        "tasks": passage.tasks,
        "attempts": passage.attempts,
        "gain": passage.gain,
        "ends": passage.lift_interval,
        "compares": passage.compares,
    }
    assert {name: seen[name] for name in more} == more
    assert review(text).findings > 0  # none of them says all that it should


@pytest.mark.parametrize(
    "text",
    [
        "The sky is blue and 40% of it is cloudy.",
        "Install it in 5 minutes; it needs Python 3.11.",
        "Version 71.3 was released on 4 May.",
        "Costs fell by 30% and answers came 2 times faster.",
        "The window is 128 tokens wide, at temperature 0.7.",
        "See section 3.2 and figure 4.",
    ],
)
def test_other_numbers_are_no_claims(text: str) -> None:
    assert passages(text) == []


def _runs() -> list[Run]:
    """A passes 55% of 40 x 8, B 62.5%."""
    tasks = [f"t{number}" for number in range(40)]
    a = [8, 0, 5, 4, 5] * 8  # 22 of 40
    b = [8, 2, 5, 5, 5] * 8  # 25 of 40
    return [
        Run("old", "old", Outcomes.from_counts(8, a, tasks=tasks)),
        Run("new", "new", Outcomes.from_counts(8, b, tasks=tasks)),
    ]


def _supports(text: str) -> list[Support]:
    return [check.support for claim in review(text, _runs()).claims for check in claim.checks]


@pytest.mark.parametrize(
    "text",
    [
        "B beats A by 30 points, interval 21 to 39",
        "B beats A by 30 points",
        "B beats A by 7.9 points",
        "A beats B",
        "old outperforms new on pass^1",
        "new is worse than old",
        "new reaches 62.5% on 4,000 tasks",
        "new reaches 62.5% (40 tasks, 64 attempts each)",
        "new reaches 72.5%",
        "old: 62.5%, new: 55%",
        "pass^1 of new is 62.5% [61%, 64%]",
        "pass^8 of new is 62.5%",
        "new never failed in 320 attempts",
        "new passes 30 of 40 tasks",
        "pass@1 rose by 15 points to 62.5%",
        "new fails on 10% of attempts",
        "| agent | pass^1 |\n| --- | --- |\n| old | 55 |\n| new | 91 |",
        "The lift of new over old is 8 points, interval 7 to 9",
        "pass^1 of old is 55.0 ± 0.4",
    ],
)
def test_a_fabrication_does_not_pass(text: str) -> None:
    rules = {one.rule for claim in review(text, _runs()).claims for one in claim.findings}
    assert rules & {"not-in-data", "not-shown"}, text


@pytest.mark.parametrize(
    "text",
    [
        "new reaches 62.5% of attempts on 40 tasks, 8 attempts each",
        "new 62.5% vs old 55.0%",
        "old: 55%, new: 62.5%",
        "pass^1 went from 55% to 62.5%",
        "new is 7.5 points better than old",
        "B beats A by 7.5 points on pass^1",
        "old fails on 45% of attempts",
        "old is worse than new by 7.5 points",
        "40 tasks, 320 attempts: pass^1 of new is 0.625",
        "| agent | pass^1 |\n| --- | --- |\n| old | 55.0 |\n| new | 62.5 |",
    ],
)
def test_what_is_true_is_no_fabrication(text: str) -> None:
    supports = _supports(text)
    assert Support.CONTRADICTED not in supports, review(text, _runs()).claims
    assert Support.SUPPORTED in supports


@pytest.mark.parametrize(
    "text", ["new is not better than old", "new does not beat old", "old isn't any worse than new"]
)
def test_a_denial_of_what_is_shown_is_contradicted(text: str) -> None:
    assert _supports(text) == [Support.CONTRADICTED]


def test_what_no_source_has_is_not_checkable() -> None:
    assert _supports("pass@100 of new is 99%") == [Support.NOT_CHECKABLE]


@pytest.mark.parametrize(
    "text",
    [
        "new reaches ⟦v0⟧ 62.5%",
        "⟦r9⟧ beats old by ⟦d3⟧ points",
        "new\0 passes 1/0 tasks, 0 of 0 attempts, pass@0 is 9" + "9" * 40,
        "| metric | value |\n|---|---|\n| success rate | 72.9% | 57.5% |",
        "| new | ⟦m1⟧ |\n|---|---|\n| pass^ | ± |",
    ],
)
def test_no_text_breaks_the_review(text: str) -> None:
    assert review_document(review(text, _runs())).sections


def test_of_names_that_begin_alike_the_longest_is_meant() -> None:
    runs = _runs()
    runs = [
        replace(runs[0], name="m-5", agent="m-5"),
        replace(runs[1], name="m-5+x", agent="m-5+x"),
    ]
    (claim,) = review("m-5 passes 55% of attempts, m-5+x 62.5%.", runs).claims
    assert {check.support for check in claim.checks} == {Support.SUPPORTED}
