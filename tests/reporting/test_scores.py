"""The report on scores: beside the verdicts, over k, and over the threshold."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from passhat.errors import InvalidValue
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.document import Level
from passhat.reporting.documents.report import report_document
from passhat.reporting.figures import Material, make_figure
from passhat.reporting.markdown import render_markdown
from passhat.reporting.measures import ScoreFacts, summarize_scores
from passhat.reporting.terminal import render_terminal
from passhat.reporting.view import estimate_text
from passhat.stats.outcomes import MissingPolicy, Outcomes, Run, ScoreRange
from passhat.stats.outcomes.rewards import check_threshold
from passhat.stats.terms import Terms

SCORES = np.array([[1, 0.5, 0.25, 1], [0.5, 0.5, 1, 0], [0.25, 1, 1, 1], [0, 0, 0.5, 0.25]])
RUN = Run("graded", "graded", Outcomes.from_scores(SCORES))


def _facts() -> ScoreFacts:
    facts = summarize_scores(RUN)
    assert facts is not None
    return facts


def test_pass_over_the_threshold_is_the_share_of_scores_at_or_above() -> None:
    facts = _facts()
    assert [cut.threshold for cut in facts.cuts] == [1, 0.5, 0.25]
    for cut in facts.cuts:
        assert cut.pass_one == pytest.approx((cut.threshold <= SCORES).mean())
        assert cut.pass_all == pytest.approx((cut.threshold <= SCORES).all(axis=1).mean())
    assert facts.judged.pass_one == pytest.approx((SCORES == 1).mean())


def test_worst_and_best_frame_the_mean_and_move_apart() -> None:
    facts = _facts()
    assert facts.worst[0].value == facts.best[0].value == pytest.approx(SCORES.mean())
    assert facts.worst[-1].value == pytest.approx(SCORES.min(axis=1).mean())
    assert facts.best[-1].value == pytest.approx(SCORES.max(axis=1).mean())


def test_a_report_shows_verdicts_and_scores() -> None:
    report = build_report([RUN], ReportOptions(short=True))
    names = [str(estimate.metric) for estimate in report.runs[0].estimates]
    assert {"pass^1", "pass^4", "mean", "worst@4", "best@4"} <= set(names)
    text = render_markdown(report_document(report))
    assert "The verdict over its threshold" in text
    assert "| as judged | 37.5%" in text
    assert "worst@k" in text


def test_verdicts_alone_have_no_section_of_scores() -> None:
    plain = Run("plain", "plain", Outcomes.from_matrix(SCORES == 1))
    report = build_report([plain], ReportOptions(short=True))
    assert "scores" not in report.runs[0].sections
    assert make_figure("scores", Material(report)) is None


def test_the_figures_hold_the_numbers_of_the_report() -> None:
    material = Material(build_report([RUN], ReportOptions(short=True)))
    band, over = make_figure("scores", material), make_figure("thresholds", material)
    assert band is not None
    assert band.rows[-1][1:3] == ("4", "0.125")
    assert over is not None
    assert [row[1] for row in over.rows] == ["1", "0.5", "0.25"]
    both = Material(build_report([RUN, RUN], ReportOptions(short=True)))
    assert make_figure("thresholds", both) is not None


def test_a_requested_metric_is_shown_on_every_screen() -> None:
    words = ("pass^1", "mean", "worst@2", "best@2", "worst@4", "pass@2", "pass^2", "pass@1")
    second = Run("other", "other", RUN.outcomes)
    for runs in ([RUN], [RUN, second]):
        report = build_report(runs, ReportOptions(metrics=words, short=True))
        text = render_terminal(report_document(report), Console(width=160), Level.SHORT)
        over_k = {"pass^1", "pass@1", "pass^2", "pass@2"} if "(pass@k)" in text else set()
        assert set(words) <= set(text.split()) | over_k
    document = report_document(build_report([RUN, second]))
    assert " mean" in render_terminal(document, Console(width=160), Level.SHORT)


def test_scores_follow_the_policy_for_missing_attempts() -> None:
    rows = SCORES.copy()
    rows[1, 3] = rows[3, 0] = np.nan
    run = Run("open", "open", Outcomes.from_scores(rows))
    facts = summarize_scores(run, Terms(missing=MissingPolicy.EXCLUDE))
    assert facts is not None
    assert facts.judged.pass_one == pytest.approx(
        np.nanmean(np.where(np.isnan(rows), np.nan, rows == 1), axis=1).mean()
    )
    assert "left out" in facts.sensitivity
    failed = summarize_scores(run)
    assert failed is not None
    assert failed.judged.pass_one < facts.judged.pass_one
    assert "as failed" in failed.sensitivity


def test_one_number_has_one_interval_on_a_screen() -> None:
    run = Run("one", "one", Outcomes.from_scores([[0.5, 0.75]]))
    (report,) = build_report([run], ReportOptions(metrics=("mean",), short=True)).runs
    (estimate,) = report.main_estimates
    assert estimate_text(estimate).partition(" (")[2].rstrip(")") in report.headline
    assert "One task says nothing about other tasks" in report.headline


@pytest.mark.parametrize("pass_at", [np.nan, np.inf, 9.0, 1.0])
def test_a_threshold_that_decides_nothing_is_refused(pass_at: float) -> None:
    with pytest.raises(InvalidValue, match="threshold"):
        check_threshold(pass_at, ScoreRange(1, 5))
    check_threshold(5, ScoreRange(1, 5))
