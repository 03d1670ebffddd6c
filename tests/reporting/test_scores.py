"""The report on scores: beside the verdicts, over k, and over the threshold."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.documents.report import report_document
from passhat.reporting.figures import Material, make_figure
from passhat.reporting.markdown import render_markdown
from passhat.reporting.scores import ScoreFacts, summarize_scores
from passhat.stats.outcomes import Outcomes, Run

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
