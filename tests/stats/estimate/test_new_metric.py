"""A metric of its own file and one line in the registry is known everywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console

from passhat._serialize import as_json
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.data import as_csv
from passhat.reporting.documents.report import report_document
from passhat.reporting.explanation import explain
from passhat.reporting.figures import Material, figure_bytes, make_figure
from passhat.reporting.markdown import render_markdown
from passhat.reporting.terminal import render_terminal
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.compare import compare
from passhat.stats.estimate import estimate, grammar
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.forecast import forecast
from passhat.stats.gate import gate
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.plan import plan_tasks


@dataclass(frozen=True, slots=True)
class PassBoth(CountMetric):
    """Do k attempts hold both a pass and a failure?"""

    word: ClassVar[str] = "mixed^"
    question: ClassVar[str] = (
        "If every task gets {k} tries, how often do some succeed and some not?"
    )
    formula: ClassVar[str] = "mixed^k = 1 - C(c, k)/C(n, k) - C(n-c, k)/C(n, k)"
    paper: ClassVar[str] = "defined in this test"

    @property
    def estimator(self) -> str:
        return "task mean of 1 - P(all) - P(none)"

    def values(self, n: IntArray, c: IntArray) -> FloatArray:
        from scipy.special import comb

        ways = comb(n, self.k)
        return np.asarray(1 - (comb(c, self.k) + comb(n - c, self.k)) / ways, np.float64)

    def value_at_rate(self, p: FloatArray) -> FloatArray:
        return 1.0 - p**self.k - (1.0 - p) ** self.k

    @property
    def cell_python(self) -> str:
        return "(1 - (comb(c, k) + comb(n - c, k)) / comb(n, k))"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "GRAMMAR", {**grammar.GRAMMAR, "mixed^": PassBoth})


A = Run("a", "a", Outcomes.from_counts(4, [4, 4, 3, 2, 0, 4, 1, 4] * 3))
B = Run("b", "b", Outcomes.from_counts(4, [4, 4, 4, 4, 0, 4, 0, 4] * 3))
WORD = "mixed^2"


def test_it_is_estimated_for_both_populations() -> None:
    for about in ("new tasks", "these tasks"):
        found = estimate(A.outcomes, WORD, about=about)
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low < found.value < found.high <= 1


def test_it_is_reported_and_exported() -> None:
    report = build_report([A], ReportOptions(metrics=(WORD,), with_details=True))
    value = estimate(A.outcomes, WORD).value
    data = json.loads(as_json(report))
    assert any(
        entry["metric"] == WORD and entry["value"] == pytest.approx(value)
        for entry in data["runs"][0]["estimates"]
    )
    document = report_document(report)
    texts = (render_markdown(document), render_terminal(document, Console(width=160)))
    for text in (as_csv(report), *texts):
        assert WORD in text


def test_it_is_compared_gated_drawn_forecast_planned_and_explained() -> None:
    comparison = compare(A, B, WORD)
    assert str(comparison.results[0].metric) == WORD
    assert gate(B, f"{WORD} <= 0.5").results
    report = build_report([A, B], ReportOptions(metrics=(WORD,), with_details=True))
    figure = make_figure("forest", Material(report, comparison))
    assert figure is not None
    assert figure_bytes(figure, "svg").startswith(b"<svg")
    assert 0 <= forecast(A, "mixed^8").low <= 1
    assert WORD in str(plan_tasks(A, metric=WORD, half_width=0.1))
    explained = "\n".join(explain(WORD, A).lines())
    assert "comb(n - c, k)" in explained


def test_the_python_of_an_explanation_gives_the_value() -> None:
    names: dict[str, object] = {}
    exec(explain(WORD, A).python, names)
    assert names["value"] == pytest.approx(estimate(A.outcomes, WORD).value)
